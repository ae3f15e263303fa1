"""The terms of a store: their numbers, and how many documents contain them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import islice
from operator import eq
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, bindparam, insert, select, update

from polytopic.errors import DamagedError, StoreError
from polytopic.store.database import fetch, run_many
from polytopic.store.encoding import read_json
from polytopic.store.schema import terms as table

PAGE = 1024  # terms in a row of the table
MAX_TERMS = 2**32  # numbers have four bytes
CACHE_SIZE = 512  # pages whose names are not parsed again at the next change

# Statements are built once: building one takes longer than running it.
_same_page = table.c.page == bindparam("own")
_counts: dict[str, Any] = {name: bindparam(name) for name in ("documents", "uses")}
READ_PAGES = select(table.c.names, table.c.documents, table.c.uses, table.c.page)
INSERT_PAGE = insert(table)
UPDATE_PAGE = update(table).where(_same_page).values(names=bindparam("names"), **_counts)
UPDATE_COUNTS = update(table).where(_same_page).values(_counts)


class Page(NamedTuple):
    """The terms of a page (None for a deleted one), and the place of each."""

    names: list[str | None]
    places: dict[str | None, int]


@lru_cache(CACHE_SIZE)
def read_page(names: str) -> Page:
    """Parse the stored names of a page."""
    terms = read_json(names, "a page of terms")
    if not isinstance(terms, list) or not {str, type(None)}.issuperset(map(type, terms)):
        raise DamagedError("a page of terms is not a list of terms")
    places = dict(zip(terms, range(len(terms)), strict=True))
    if len(places) < len(terms) - max(terms.count(None) - 1, 0):
        raise DamagedError("a term occurs twice")
    return Page(terms, places)


class Terms:
    """All terms of a store, read at once and written back by pages.

    Attributes
    ----------
    names : list of str or None
        Terms by number; None for deleted terms, whose numbers are not reused.
    documents, uses : ndarray of int
        How many labelled documents, and how many rows of the ledger, contain each term.
    """

    def __init__(self, connection: Connection):
        self.connection = connection
        rows = fetch(connection, READ_PAGES)
        rows.sort(key=lambda row: row[-1])
        if [row[-1] for row in rows] != list(range(len(rows))):
            raise DamagedError("pages of terms are missing")
        self._pages = [read_page(row[0]) for row in rows]
        if any(len(page.names) != PAGE for page in self._pages[:-1]):
            raise DamagedError(f"a page of terms does not have {PAGE:,} terms")
        if any(len(row[k]) % 4 for row in rows for k in (1, 2)):
            raise DamagedError("the terms and the numbers of their documents differ in length")
        self.names: list[str | None] = []
        for page in self._pages:
            self.names += page.names
        self.documents, self.uses = (
            np.frombuffer(b"".join(row[k] for row in rows), dtype="<u4").astype(np.int64)
            for k in (1, 2)
        )
        if not len(self.names) == self.documents.size == self.uses.size:
            raise DamagedError("the terms and the numbers of their documents differ in length")
        self._recounted: set[int] = set()  # pages with changed numbers
        self._renamed: set[int] = set()  # pages with changed names

    def __len__(self) -> int:
        return len(self.names)

    def assign_numbers(self, names: Sequence[str]) -> np.ndarray:
        """Return the number of each term, and give new terms the next numbers."""
        known = self._find(names)
        new = [name for name in names if name not in known]
        if len(self) + len(new) > MAX_TERMS:
            raise StoreError(f"the store would have more than {MAX_TERMS:,} terms.")
        known |= zip(new, range(len(self), len(self) + len(new)), strict=True)
        if new:
            self._renamed.update(range(len(self) // PAGE, (len(self) + len(new) - 1) // PAGE + 1))
        self.names += new
        self.documents, self.uses = (
            np.concatenate([n, np.zeros(len(new), dtype=np.int64)])
            for n in (self.documents, self.uses)
        )
        return np.fromiter(map(known.__getitem__, names), dtype=np.int64, count=len(names))

    def _find(self, names: Sequence[str]) -> dict[str, int]:
        """Return the numbers of known terms; few are looked up page by page, which is faster."""
        if len(names) * len(self._pages) > len(self):
            requested = set(names)
            return {name: k for k, name in enumerate(self.names) if name in requested}
        return {
            name: number * PAGE + page.places[name]
            for number, page in enumerate(self._pages)
            for name in names
            if name in page.places
        }

    def add(self, documents: np.ndarray, uses: np.ndarray) -> int:
        """Add to both numbers of each term; return how many terms this deletes."""
        touched = np.flatnonzero((documents != 0) | (uses != 0))
        self.documents, self.uses = self.documents + documents, self.uses + uses
        if (self.documents < 0).any() or (self.uses < 0).any():
            raise StoreError("the counts do not match the ledger; run polytopic store verify.")
        unused = touched[self.uses[touched] == 0].tolist()
        for number in unused:
            self.names[number] = None
        self._renamed.update(number // PAGE for number in unused)
        self._recounted.update(np.unique(touched // PAGE).tolist())
        return len(unused)

    def write(self) -> None:
        """Write the pages that have changed; names change rarely."""
        run, n_before = partial(run_many, self.connection), len(self._pages)
        renamed = [(self._names(k), *self._numbers(k), k) for k in sorted(self._renamed)]
        recounted = [(*self._numbers(k), k) for k in sorted(self._recounted - self._renamed)]
        new = [row for row in renamed if row[-1] >= n_before]
        run(INSERT_PAGE, ["names", "documents", "uses", "page"], new)
        changed = [row for row in renamed if row[-1] < n_before]
        run(UPDATE_PAGE, ["names", "documents", "uses", "own"], changed)
        run(UPDATE_COUNTS, ["documents", "uses", "own"], recounted)

    def _names(self, page: int) -> str:
        return json.dumps(self.names[page * PAGE : (page + 1) * PAGE], ensure_ascii=False)

    def _numbers(self, page: int) -> tuple[bytes, bytes]:
        part = slice(page * PAGE, (page + 1) * PAGE)
        documents, uses = (n[part].astype("<u4").tobytes() for n in (self.documents, self.uses))
        return documents, uses

    def sort(self, mask: np.ndarray) -> tuple[list[str], np.ndarray]:
        """Return the terms of a mask, sorted, and the place of each number among them, or -1."""
        numbers = np.flatnonzero(mask).tolist()
        numbers.sort(key=self.names.__getitem__)  # type: ignore[arg-type]
        names: list[str] = [self.names[k] for k in numbers]  # type: ignore[misc]
        if any(map(eq, names, islice(names, 1, None))):
            raise DamagedError("a term occurs twice")
        places = np.full(len(self), -1, dtype=np.int64)
        places[numbers] = np.arange(len(numbers))
        return names, places
