"""Changes that are asked for under a key, so that asking again gives the same receipt.

A receipt is kept for two days without what it is about, which may be forgotten meanwhile. Of the
key and of what was asked only digests are kept, the second one keyed by the key itself, so that
neither can be guessed without it. Names that the request holds are kept as places in it, since
they come again with the request. Labels that lost their last document are in no request: they are
kept until a document is forgotten, and not at all for forgetting.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, delete, insert, or_, select, update

from polytopic.errors import DamagedError, StoreError
from polytopic.store.database import fetch
from polytopic.store.packing import read_json, read_labels
from polytopic.store.receipts import Receipt
from polytopic.store.selection import stored_time
from polytopic.store.tables import requests as table

KEPT = timedelta(days=2)
MARK = "sha256:"  # what kept keys begin with; earlier releases kept the keys themselves
NO_GONE_LABELS = '"gone_labels": []'  # in a kept receipt


@dataclass(frozen=True)
class KeyedRequest:
    """A change that is asked for under a key.

    Attributes
    ----------
    key : str
        The key.
    action : str
        What is to be done.
    content : Any
        What makes two requests the same, ready for JSON.
    ids : sequence of str
        The documents that it may miss.
    label_sets : sequence of str
        The label sets that it brings, as they are stored.
    """

    key: str
    action: str
    content: Any
    ids: Sequence[str] = ()
    label_sets: Sequence[str] = ()

    @cached_property
    def _asked(self) -> bytes:
        return json.dumps([self.action, self.content]).encode()

    @cached_property
    def _kept_key(self) -> str:
        return MARK + sha256(self._secret).hexdigest()

    @property
    def _secret(self) -> bytes:
        return self.key.encode(errors="surrogatepass")

    @property
    def _names(self) -> dict[str, list[str]]:
        """The names that places of a kept receipt stand for."""
        labels = {label for names in set(self.label_sets) for label in read_labels(names)}
        return {"missing": list(self.ids), "new_labels": sorted(labels)}

    def find(self, connection: Connection) -> Receipt | None:
        """Return the receipt of the first time, None if this is the first time."""
        own = table.c.key.in_([self._kept_key, self.key])
        for row in fetch(connection, select(table).where(own)):
            is_old = row.key == self.key
            digest = sha256(self._asked).hexdigest() if is_old else self._digest
            if not hmac.compare_digest(row.request, digest):
                raise StoreError(
                    f"the key {self.key!r} was used for another request; take a new one."
                )
            try:
                receipt = json.loads(row.receipt)
                return Receipt(**receipt if is_old else self._named(receipt))
            except (IndexError, KeyError, TypeError, ValueError) as error:
                raise DamagedError("the receipt of an earlier request cannot be read") from error
        return None

    def keep(self, connection: Connection, receipt: Receipt) -> None:
        """Keep the receipt; those that are too old go."""
        oldest = stored_time(datetime.now(UTC) - KEPT)
        connection.execute(delete(table).where(table.c.time < oldest))
        row = {
            "key": self._kept_key,
            "request": self._digest,
            "receipt": json.dumps(self._nameless(receipt.to_dict())),
            "time": receipt.time,
        }
        connection.execute(insert(table), row)

    @property
    def _digest(self) -> str:
        return hmac.digest(self._secret, self._asked, "sha256").hex()

    def _nameless(self, receipt: dict[str, Any]) -> dict[str, Any]:
        for what, names in self._names.items():
            places = {name: k for k, name in enumerate(names)}
            receipt[what] = [places[name] for name in receipt[what]]
        if self.action == "forget":
            receipt["gone_labels"] = []
        return receipt

    def _named(self, receipt: dict[str, Any]) -> dict[str, Any]:
        for what, names in self._names.items():
            receipt[what] = [names[k] for k in receipt[what]]
        return receipt


def clear_names(connection: Connection) -> bool:
    """Leave no name in the receipts that are kept; return whether there was any.

    Receipts of earlier releases, and those that are too old, are deleted.
    """
    oldest = stored_time(datetime.now(UTC) - KEPT)
    gone = connection.execute(
        delete(table).where(or_(table.c.key.not_like(f"{MARK}%"), table.c.time < oldest))
    ).rowcount
    named = table.c.receipt.not_like(f"%{NO_GONE_LABELS}%")
    rows = fetch(connection, select(table.c.key, table.c.receipt).where(named))
    for key, receipt in rows:
        cleared = json.dumps(read_json(receipt, "a receipt") | {"gone_labels": []})
        connection.execute(update(table).where(table.c.key == key).values(receipt=cleared))
    return bool(gone or rows)
