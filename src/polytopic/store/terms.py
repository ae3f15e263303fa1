"""The terms of a store: their names by number, and in how many documents they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, insert, select, update

from polytopic.errors import StoreError
from polytopic.store.database import fetch, run_many
from polytopic.store.tables import terms as table

PAGE = 1024  # terms in a row of the table
MOST = 2**32  # that numbers of four bytes can tell apart
COLUMNS = ("names", "documents", "uses")


class Terms:
    """All terms, read at once and written back by pages.

    Attributes
    ----------
    names : list of str or None
        Terms by their numbers, which are never used again: None for those that are gone.
    documents, uses : ndarray of int
        In how many labelled documents, and in how many rows of the ledger each is.
    """

    def __init__(self, connection: Connection):
        self.connection = connection
        rows = fetch(
            connection, select(table.c.names, table.c.documents, table.c.uses, table.c.page)
        )
        rows.sort(key=lambda row: row[-1])
        self.names: list[str | None] = []
        for names, *_ in rows:
            self.names += json.loads(names)
        self.documents, self.uses = (
            np.frombuffer(b"".join(row[k] for row in rows), dtype="<u4").astype(np.int64)
            for k in (1, 2)
        )
        if not len(self.names) == self.documents.size == self.uses.size:
            raise ValueError("terms have other numbers of names and documents")
        self._n_pages = len(rows)
        self._dirty: set[int] = set()

    def __len__(self) -> int:
        return len(self.names)

    def numbered(self, names: Sequence[str]) -> np.ndarray:
        """Return the number of each term; a new one gets the next."""
        wanted = set(names)
        known = {name: k for k, name in enumerate(self.names) if name in wanted}
        new = [name for name in names if name not in known]
        if len(self) + len(new) > MOST:
            raise StoreError(f"a store has room for {MOST:,} terms, which are used up.")
        known |= zip(new, range(len(self), len(self) + len(new)), strict=True)
        self.names += new
        self.documents, self.uses = (
            np.concatenate([n, np.zeros(len(new), dtype=np.int64)])
            for n in (self.documents, self.uses)
        )
        return np.fromiter(map(known.__getitem__, names), dtype=np.int64, count=len(names))

    def add(self, documents: np.ndarray, uses: np.ndarray) -> int:
        """Add to both numbers of each term; return how many terms are gone by that."""
        touched = np.flatnonzero((documents != 0) | (uses != 0))
        self.documents, self.uses = self.documents + documents, self.uses + uses
        if (self.documents < 0).any() or (self.uses < 0).any():
            raise StoreError("the counts do not agree with the ledger; verify tells where.")
        gone = touched[self.uses[touched] == 0].tolist()
        for number in gone:
            self.names[number] = None
        self._dirty.update(np.unique(touched // PAGE).tolist())
        return len(gone)

    def write(self) -> None:
        """Write the pages that have changed."""
        rows = [(*self._page(page), page) for page in sorted(self._dirty)]
        run_many(
            self.connection,
            insert(table),
            [*COLUMNS, "page"],
            [row for row in rows if row[-1] >= self._n_pages],
        )
        own = table.c.page == bindparam("own")
        values: dict[str, Any] = {name: bindparam(name) for name in COLUMNS}
        run_many(
            self.connection,
            update(table).where(own).values(values),
            [*COLUMNS, "own"],
            [row for row in rows if row[-1] < self._n_pages],
        )

    def _page(self, page: int) -> tuple[str, bytes, bytes]:
        part = slice(page * PAGE, (page + 1) * PAGE)
        names = json.dumps(self.names[part], ensure_ascii=False)
        documents, uses = (n[part].astype("<u4").tobytes() for n in (self.documents, self.uses))
        return names, documents, uses

    def in_order(self, wanted: np.ndarray) -> tuple[list[str], np.ndarray]:
        """Return the wanted terms (a mask), sorted, and each number's place among them, or -1."""
        numbers = np.flatnonzero(wanted).tolist()
        numbers.sort(key=self.names.__getitem__)  # type: ignore[arg-type]
        places = np.full(len(self), -1, dtype=np.int64)
        places[numbers] = np.arange(len(numbers))
        return [self.names[k] for k in numbers], places  # type: ignore[misc]
