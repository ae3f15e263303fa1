"""What changed between two moments: which labels, and which of their words."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.special import rel_entr

from polytopic.counts import LabelSetCounts
from polytopic.labeler.reading import LabelReader, read_names
from polytopic.labels import LabelSpace, LabelTree, widen
from polytopic.store.selection import revision_at
from polytopic.store.state import last_revision
from polytopic.text import Vocabulary

if TYPE_CHECKING:
    from polytopic.store.store import Store


@dataclass(frozen=True)
class TermChange:
    """A term of a label: its counts, and its shares of all words of the label."""

    term: str
    before: float
    after: float
    share_before: float
    share_after: float


@dataclass(frozen=True)
class LabelDifference:
    """What changed in a label.

    Attributes
    ----------
    label : str
        The label.
    documents_before, documents_after : int
        Its documents.
    words_before, words_after : int
        The words of its documents.
    divergence : float
        Jensen-Shannon divergence of its word distributions in bits: 0 if they are the same, 1 if
        they share no word. It is 1, too, where only one moment has words, and 0 where none has.
    growing, falling : list of TermChange
        The terms whose share rose, and those whose share fell; what is most of the divergence
        comes first.
    """

    label: str
    documents_before: float
    documents_after: float
    words_before: float
    words_after: float
    divergence: float
    growing: list[TermChange]
    falling: list[TermChange]

    @property
    def change(self) -> float:
        """How much changed: the divergence times the documents of both moments."""
        return self.divergence * (self.documents_before + self.documents_after)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return asdict(self)


def diff(
    store: Store,
    before: Any,
    after: Any = None,
    *,
    n_terms: int = 10,
    labels: Collection[str] | None = None,
) -> list[LabelDifference]:
    """Return which labels of a store changed between two moments, and in which words.

    Documents that were forgotten since are in neither moment.

    Parameters
    ----------
    store : Store
        The store.
    before, after : int, datetime or string
        Revisions or ISO 8601 times; a string of digits is a revision. None is now.
    n_terms : int, default=10
        Terms to tell of each label, of the growing and of the falling ones each.
    labels : collection of str, default=None
        Labels to tell of, with those below them in the tree; all by default.
    """
    first, last = (
        store.counts(as_of=_revision(store, name, moment))
        for name, moment in (("before", before), ("after", after))
    )
    told = None
    if labels:
        space = LabelSpace([*first.labels, *last.labels])
        told = [space.ids[k] for k in np.flatnonzero(label_mask(space, store.tree, labels))]
    return label_differences(first, last, n_terms, labels=told)


def label_differences(
    before: LabelSetCounts,
    after: LabelSetCounts,
    n_terms: int = 10,
    *,
    labels: Collection[str] | None = None,
) -> list[LabelDifference]:
    """Return what changed in each label between two tables, the most changed first.

    Labels with the same documents and counts of words in both are left out, and where ``labels``
    are given, all others than these.

    Examples
    --------
    >>> before = LabelSetCounts([({"goal": 3, "ball": 1}, ["sport"]), ({"moon": 2}, ["space"])])
    >>> after = before + LabelSetCounts([({"goal": 1, "race": 3}, ["sport"])])
    >>> (sport,) = label_differences(before, after)
    >>> sport.label, round(sport.divergence, 2), [change.term for change in sport.growing]
    ('sport', 0.22, ['race'])
    """
    space = LabelSpace([*before.labels, *after.labels])
    vocabulary = Vocabulary([*before.terms, *after.terms])
    (docs_before, words_before), (docs_after, words_after) = (
        _by_label(table, space, vocabulary) for table in (before, after)
    )
    counts = sparse.csr_matrix(words_before + 1j * words_after)  # a real and an imaginary part
    row = _rows(counts)
    changed = docs_before != docs_after
    changed[row[counts.data.real != counts.data.imag]] = True
    if labels is not None:
        changed &= np.isin(np.array(space.ids, dtype=object), np.array([*labels], dtype=object))
    rows = np.flatnonzero(changed)
    found = _Changes(counts[rows], vocabulary.terms, whole=before.exact and after.exact)
    documents = np.stack([docs_before, docs_after], axis=1)[rows]
    differences = [
        found.difference(k, space.ids[label], documents[k], n_terms) for k, label in enumerate(rows)
    ]
    return sorted(differences, key=_most_changed)


def _by_label(table: LabelSetCounts, space: LabelSpace, vocabulary: Vocabulary):
    """Return the documents and the counts of words of each label."""
    sets = widen(table.indicator, table.labels, space)
    words = sets.T @ vocabulary.select(table.matrix, table.terms)
    return sets.T @ table.set_docs, sparse.csr_matrix(words)


def _rows(matrix: sparse.csr_matrix) -> np.ndarray:
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


class _Changes:
    """Counts of labels before (the real parts) and after, and what is made of them."""

    def __init__(self, counts: sparse.csr_matrix, terms, *, whole: bool):
        counts.sort_indices()
        self.counts, self.terms, row = counts, terms, _rows(counts)
        self.kind = np.int64 if whole else np.float64
        self.pairs = counts.data.view(np.float64).reshape(-1, 2)
        self.words = np.zeros((counts.shape[0], 2))
        np.add.at(self.words, row, self.pairs)
        self.shares = self.pairs / np.maximum(self.words, np.finfo(float).tiny)[row]
        middle = self.shares.mean(axis=1, keepdims=True)
        self.parts = rel_entr(self.shares, middle).sum(axis=1) / (2 * np.log(2))
        sums = np.bincount(row, weights=self.parts, minlength=counts.shape[0])
        one_side = (self.words == 0).sum(axis=1) == 1
        self.divergence = np.where(one_side, 1.0, np.clip(sums, 0.0, 1.0))

    def difference(self, row: int, label, documents, n_terms: int) -> LabelDifference:
        """Return what changed in the label of a row."""
        entries = np.arange(*self.counts.indptr[row : row + 2])
        entries = entries[np.argsort(-self.parts[entries], kind="stable")]
        rise = self.shares[entries] @ [-1, 1]
        documents_before, documents_after = documents.astype(self.kind).tolist()
        words_before, words_after = self.words[row].astype(self.kind).tolist()
        return LabelDifference(
            label=label,
            documents_before=documents_before,
            documents_after=documents_after,
            words_before=words_before,
            words_after=words_after,
            divergence=float(self.divergence[row]),
            growing=self._terms(entries[rise > 0][:n_terms]),
            falling=self._terms(entries[rise < 0][:n_terms]),
        )

    def _terms(self, entries: np.ndarray) -> list[TermChange]:
        terms = [self.terms[column] for column in self.counts.indices[entries].tolist()]
        counts = self.pairs[entries].astype(self.kind).T.tolist()
        shares = self.shares[entries].T.tolist()
        return [TermChange(*change) for change in zip(terms, *counts, *shares, strict=True)]


def _most_changed(difference: LabelDifference):
    more = abs(difference.documents_after - difference.documents_before)
    return -difference.change, -more, difference.label


def label_mask(space: LabelSpace, tree: LabelTree | None, labels: Collection[str]) -> np.ndarray:
    """Return which labels are meant: some by their ids or names, and all below them in a tree."""
    reader, meant = LabelReader(tree), np.zeros(len(space), dtype=bool)
    for label in read_names("labels", labels):
        meant[reader.branch(space, label)] = True
    return meant


def _revision(store: Store, name: str, moment: Any) -> int:
    """Return the revision that a moment means."""
    if isinstance(moment, str) and moment.isdecimal():
        moment = int(moment)
    with store._database.reading() as connection:
        last = last_revision(connection)
        try:
            return revision_at(connection, moment, last)
        except ValueError:
            raise ValueError(
                f"{name} == {moment!r}, must be a revision from 0 to {last}, or an ISO 8601 time, "
                "such as '2024-05-31T12:00:00Z'."
            ) from None
