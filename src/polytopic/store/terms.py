"""The terms of a store: their names by number, and in how many documents they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, bindparam, insert, select, update

from polytopic.errors import DamagedError, StoreError
from polytopic.store.database import fetch, run_many
from polytopic.store.packing import read_json
from polytopic.store.tables import terms as table

PAGE = 1024  # terms in a row of the table
MOST = 2**32  # that numbers of four bytes can tell apart
REMEMBERED = 512  # pages whose names need not be read again: one change comes after the other


# Statements are built once: building one takes longer than running it.
_same_page = table.c.page == bindparam("own")
_counts: dict[str, Any] = {name: bindparam(name) for name in ("documents", "uses")}
READ_PAGES = select(table.c.names, table.c.documents, table.c.uses, table.c.page)
INSERT_PAGE = insert(table)
UPDATE_PAGE = update(table).where(_same_page).values(names=bindparam("names"), **_counts)
UPDATE_COUNTS = update(table).where(_same_page).values(_counts)


class Page(NamedTuple):
    """The names of a page of terms, None for those that are gone, and the place of each."""

    names: list[str | None]
    places: dict[str | None, int]


@lru_cache(REMEMBERED)
def read_page(names: str) -> Page:
    """Read the names of a page, as they are stored."""
    found = read_json(names, "a page of terms")
    if not isinstance(found, list) or not {str, type(None)}.issuperset(map(type, found)):
        raise DamagedError("a page of terms is not a list of terms")
    return Page(found, dict(zip(found, range(len(found)), strict=True)))


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
        rows = fetch(connection, READ_PAGES)
        rows.sort(key=lambda row: row[-1])
        if [row[-1] for row in rows] != list(range(len(rows))):
            raise DamagedError("pages of terms are missing")
        self._pages = [read_page(row[0]) for row in rows]
        if any(len(page.names) != PAGE for page in self._pages[:-1]):
            raise DamagedError("pages of terms have other numbers of names")
        if any(len(row[k]) % 4 for row in rows for k in (1, 2)):
            raise DamagedError("terms have other numbers of names and documents")
        self.names: list[str | None] = []
        for page in self._pages:
            self.names += page.names
        self.documents, self.uses = (
            np.frombuffer(b"".join(row[k] for row in rows), dtype="<u4").astype(np.int64)
            for k in (1, 2)
        )
        if not len(self.names) == self.documents.size == self.uses.size:
            raise DamagedError("terms have other numbers of names and documents")
        self._counted: set[int] = set()  # pages of which other numbers are to be written
        self._named: set[int] = set()  # pages of which names are to be written, too

    def __len__(self) -> int:
        return len(self.names)

    def numbered(self, names: Sequence[str]) -> np.ndarray:
        """Return the number of each term; a new one gets the next."""
        known = self._find(names)
        new = [name for name in names if name not in known]
        if len(self) + len(new) > MOST:
            raise StoreError(f"a store has room for {MOST:,} terms, which are used up.")
        known |= zip(new, range(len(self), len(self) + len(new)), strict=True)
        if new:
            self._named.update(range(len(self) // PAGE, (len(self) + len(new) - 1) // PAGE + 1))
        self.names += new
        self.documents, self.uses = (
            np.concatenate([n, np.zeros(len(new), dtype=np.int64)])
            for n in (self.documents, self.uses)
        )
        return np.fromiter(map(known.__getitem__, names), dtype=np.int64, count=len(names))

    def _find(self, names: Sequence[str]) -> dict[str, int]:
        """Return the numbers of the terms that are known, the quicker way: by pages, or all."""
        if len(names) * len(self._pages) > len(self):
            wanted = set(names)
            return {name: k for k, name in enumerate(self.names) if name in wanted}
        return {
            name: number * PAGE + page.places[name]
            for number, page in enumerate(self._pages)
            for name in names
            if name in page.places
        }

    def add(self, documents: np.ndarray, uses: np.ndarray) -> int:
        """Add to both numbers of each term; return how many terms are gone by that."""
        touched = np.flatnonzero((documents != 0) | (uses != 0))
        self.documents, self.uses = self.documents + documents, self.uses + uses
        if (self.documents < 0).any() or (self.uses < 0).any():
            raise StoreError("the counts do not agree with the ledger; verify tells where.")
        gone = touched[self.uses[touched] == 0].tolist()
        for number in gone:
            self.names[number] = None
        self._named.update(number // PAGE for number in gone)
        self._counted.update(np.unique(touched // PAGE).tolist())
        return len(gone)

    def write(self) -> None:
        """Write what has changed of the pages: names seldom do."""
        run, n_before = partial(run_many, self.connection), len(self._pages)
        named = [(self._names(k), *self._numbers(k), k) for k in sorted(self._named)]
        counted = [(*self._numbers(k), k) for k in sorted(self._counted - self._named)]
        new = [row for row in named if row[-1] >= n_before]
        run(INSERT_PAGE, ["names", "documents", "uses", "page"], new)
        changed = [row for row in named if row[-1] < n_before]
        run(UPDATE_PAGE, ["names", "documents", "uses", "own"], changed)
        run(UPDATE_COUNTS, ["documents", "uses", "own"], counted)

    def _names(self, page: int) -> str:
        return json.dumps(self.names[page * PAGE : (page + 1) * PAGE], ensure_ascii=False)

    def _numbers(self, page: int) -> tuple[bytes, bytes]:
        part = slice(page * PAGE, (page + 1) * PAGE)
        documents, uses = (n[part].astype("<u4").tobytes() for n in (self.documents, self.uses))
        return documents, uses

    def in_order(self, wanted: np.ndarray) -> tuple[list[str], np.ndarray]:
        """Return the wanted terms (a mask), sorted, and each number's place among them, or -1."""
        numbers = np.flatnonzero(wanted).tolist()
        numbers.sort(key=self.names.__getitem__)  # type: ignore[arg-type]
        places = np.full(len(self), -1, dtype=np.int64)
        places[numbers] = np.arange(len(numbers))
        return [self.names[k] for k in numbers], places  # type: ignore[misc]
