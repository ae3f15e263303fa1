"""Receipts of changes, and the receipts that are kept for repeated requests.

A request with an idempotency key can be repeated: the store keeps its receipt for two days and
returns it again. Its documents may be forgotten in the meantime, so the kept receipt holds no ids
and no labels:

- Of the key and of the request only digests are kept. The digest of the request is keyed by the
  key, so that neither can be guessed without it.
- Ids and labels that are part of the request are replaced by their places in it, since a repeated
  request contains them again.
- Labels that lost their last document are in no request. They are kept until a document is
  forgotten, and never for a request to forget.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from hashlib import sha256
from reprlib import repr as short
from typing import Any

from sqlalchemy import Connection, delete, insert, or_, select, update

from polytopic.errors import DamagedError, StoreError
from polytopic.store.database import can_store, fetch
from polytopic.store.encoding import read_json, read_labels
from polytopic.store.ledger import stored_time
from polytopic.store.schema import requests as table

NAME_FIELDS = ("missing", "new_labels", "gone_labels")  # of receipts: lists of ids or labels
RETENTION = timedelta(days=2)
DIGEST_PREFIX = "sha256:"  # of keys; earlier releases kept the keys themselves
NO_GONE_LABELS = '"gone_labels": []'  # in a kept receipt


@dataclass(frozen=True)
class Receipt:
    """A report of one change to a store.

    Attributes
    ----------
    action : str
        "learn", "forget", "relabel" or "merge".
    time : str
        When the change was made.
    revision_before, revision_after : int
        Revisions of the store; equal if nothing changed.
    digest_before, digest_after : str
        Digests of the labelled documents; equal documents give equal digests, in any order.
    learned, corrected, unchanged, forgotten : int
        How many documents were new, were known with different labels, words or times, were known
        in exactly this form, and were deleted.
    missing : list of str
        Ids that the store does not know.
    new_labels, gone_labels : list of str
        Labels that got their first document, and labels that lost their last one.
    new_terms, gone_terms : int
        How many terms were added and deleted.
    marked_models, purged_models : list of int
        Published models that were fitted on a deleted document and are now marked, or deleted.
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
        """Whether the store has changed."""
        return self.revision_after != self.revision_before

    def to_dict(self) -> dict[str, Any]:
        """Return the receipt as plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class KeyedRequest:
    """A request for a change with an idempotency key.

    Attributes
    ----------
    key : str
        The key.
    action : str
        The change, as in :class:`Receipt`.
    content : Any
        The request itself: equal for equal requests, ready for JSON.
    ids : sequence of str
        Ids in the request that the store may not know.
    label_sets : sequence of str
        Label sets in the request, as they are stored.
    """

    key: str
    action: str
    content: Any
    ids: Sequence[str] = ()
    label_sets: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.key, str):
            raise TypeError(f"key == {short(self.key)}, must be a string.")

    @property
    def _secret(self) -> bytes:
        return self.key.encode(errors="surrogatepass")

    @cached_property
    def _key_digest(self) -> str:
        return DIGEST_PREFIX + sha256(self._secret).hexdigest()

    @cached_property
    def _request(self) -> bytes:
        return json.dumps([self.action, self.content]).encode()

    @property
    def _request_digest(self) -> str:
        return hmac.digest(self._secret, self._request, "sha256").hex()

    def find_receipt(self, connection: Connection) -> Receipt | None:
        """Return the receipt of the same request, None if it has not been made yet."""
        keys = filter(can_store, (self._key_digest, self.key))  # earlier releases kept the key
        same_key = table.c.key.in_(list(keys))
        for row in fetch(connection, select(table).where(same_key)):
            is_old = row.key == self.key
            digest = sha256(self._request).hexdigest() if is_old else self._request_digest
            if not hmac.compare_digest(row.request.encode(), digest.encode()):
                raise StoreError(
                    f"the key {short(self.key)} was used for a different request; use a new key."
                )
            try:
                receipt = json.loads(row.receipt)
                return Receipt(**receipt if is_old else self._names_for_places(receipt))
            except (IndexError, KeyError, TypeError, ValueError) as error:
                raise DamagedError("the receipt of an earlier request cannot be read") from error
        return None

    def keep_receipt(self, connection: Connection, receipt: Receipt) -> None:
        """Keep the receipt, and delete those that are too old."""
        connection.execute(delete(table).where(_is_too_old()))
        row = {
            "key": self._key_digest,
            "request": self._request_digest,
            "receipt": json.dumps(self._places_for_names(receipt.to_dict())),
            "time": receipt.time,
        }
        connection.execute(insert(table), row)

    @property
    def _names(self) -> dict[str, list[str]]:
        """The ids and labels that the places in a kept receipt refer to."""
        labels = {label for names in set(self.label_sets) for label in read_labels(names)}
        return {"missing": list(self.ids), "new_labels": sorted(labels)}

    def _places_for_names(self, receipt: dict[str, Any]) -> dict[str, Any]:
        for field_name, names in self._names.items():
            places = {name: k for k, name in enumerate(names)}
            receipt[field_name] = [places[name] for name in receipt[field_name]]
        if self.action == "forget":
            receipt["gone_labels"] = []
        return receipt

    def _names_for_places(self, receipt: dict[str, Any]) -> dict[str, Any]:
        for field_name, names in self._names.items():
            receipt[field_name] = [names[k] for k in receipt[field_name]]
        return receipt


def clear_kept_names(connection: Connection) -> bool:
    """Remove all labels from the kept receipts; return whether there were any.

    Receipts of earlier releases, which hold more, and those that are too old are deleted.
    """
    is_earlier = table.c.key.not_like(f"{DIGEST_PREFIX}%")
    n_deleted = connection.execute(delete(table).where(or_(is_earlier, _is_too_old()))).rowcount
    has_labels = table.c.receipt.not_like(f"%{NO_GONE_LABELS}%")
    rows = fetch(connection, select(table.c.key, table.c.receipt).where(has_labels))
    for key, receipt in rows:
        cleared = json.dumps(read_json(receipt, "a receipt") | {"gone_labels": []})
        connection.execute(update(table).where(table.c.key == key).values(receipt=cleared))
    return bool(n_deleted or rows)


def _is_too_old():
    return table.c.time < stored_time(datetime.now(UTC) - RETENTION)
