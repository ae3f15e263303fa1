"""What a store tells of a change."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Receipt:
    """What a change did; where nothing changed, the revision is the same after it.

    Attributes
    ----------
    action : str
        "learn", "forget", "relabel" or "merge".
    time : str
        When it was done.
    revision_before, revision_after : int
        Revisions of the store.
    digest_before, digest_after : str
        Digests of what is counted: the same for the same labelled bags of words, in any order.
    learned, corrected, unchanged, forgotten : int
        Documents that were new, that had other labels, words or another time before, that were
        known just so, and that are gone.
    missing : list of str
        Ids that the store does not know.
    new_labels, gone_labels : list of str
        Labels that had no document before, and those that have none any more.
    new_terms, gone_terms : int
        Terms that came, and that are gone.
    marked_models, purged_models : list of int
        Published models that had seen what was forgotten: marked as such, or deleted.
    """

    action: str
    time: str
    revision_before: int
    revision_after: int
    digest_before: str
    digest_after: str
    learned: int = 0
    corrected: int = 0
    unchanged: int = 0
    forgotten: int = 0
    missing: list[str] = field(default_factory=list)
    new_labels: list[str] = field(default_factory=list)
    gone_labels: list[str] = field(default_factory=list)
    new_terms: int = 0
    gone_terms: int = 0
    marked_models: list[int] = field(default_factory=list)
    purged_models: list[int] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether the store is another one after it."""
        return self.revision_after != self.revision_before

    def to_dict(self) -> dict[str, Any]:
        """Return the receipt as plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Verification:
    """What :meth:`Store.verify` found.

    Attributes
    ----------
    revision, documents : int
        The store's revision, and the documents in its ledger.
    digest : str
        The digest of what is counted, by the ledger.
    problems : list of str
        What does not agree, one sentence each; none if all is well.
    """

    revision: int
    documents: int
    digest: str
    problems: list[str]

    @property
    def ok(self) -> bool:
        """Whether all agrees."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return asdict(self) | {"ok": self.ok}
