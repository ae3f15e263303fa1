"""Documents as the ledger has them: names, labels, times and counts of numbered terms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from scipy import sparse
from sqlalchemy import Connection, Row, func, select

from polytopic.errors import DamagedError
from polytopic.store.database import fetch, fetch_among
from polytopic.store.packing import unpack
from polytopic.store.tables import documents as ledger
from polytopic.store.tables import revisions

TIME = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(T[\d:.]{15}\+00:00)?")
_first_known = (
    select(revisions.c.time).where(revisions.c.revision == ledger.c.first).scalar_subquery()
)
MOMENT = func.coalesce(ledger.c.time, _first_known).label("moment")
COLUMNS = (
    ledger.c.row,
    ledger.c.document,
    ledger.c.labels,
    ledger.c.time,
    ledger.c.first,
    ledger.c.learned,
    ledger.c.replaced,
    ledger.c.digest,
    ledger.c.text,
    ledger.c.terms,
    ledger.c.counts,
    MOMENT,
)
ROWS = select(*COLUMNS).where(ledger.c.learned > 0)  # the others are blank
CURRENT_ROWS = ROWS.where(ledger.c.replaced.is_(None))


@dataclass(frozen=True)
class Bags:
    """Rows of the ledger.

    Attributes
    ----------
    names : sequence of str
        Ids of the documents.
    labels : sequence of str
        Label sets as they are stored, JSON.
    times, texts : sequence
        Times and texts as they are stored, None for none.
    digests : sequence of bytes
        Digests of their terms and counts.
    counts : csr_matrix of shape (n_docs, n_numbers)
        Counts by the number of a term, in the order of the terms' names.
    rows, first, learned, replaced : sequence of int
        Their places in the ledger, and the revisions that they were first and last learned at,
        and that they were replaced at, if they were; none for what is not in the ledger yet.
    moments : sequence of str
        Their times, or where they have none when they were first learned.
    """

    names: Sequence[str]
    labels: Sequence[str]
    times: Sequence[str | None]
    texts: Sequence[str | None]
    digests: Sequence[bytes]
    counts: sparse.csr_matrix
    rows: Sequence[int] = ()
    first: Sequence[int] = ()
    learned: Sequence[int] = ()
    replaced: Sequence[int | None] = ()
    moments: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def marked(self):
        """Pairs of the labels and the digest of each: what a digest of all is made of."""
        return zip(self.labels, self.digests, strict=True)

    def at(self, places: Sequence[int]) -> Bags:
        """Return some of them."""

        def some(values):
            return [values[k] for k in places] if len(values) else ()

        return Bags(
            names=some(self.names),
            labels=some(self.labels),
            times=some(self.times),
            texts=some(self.texts),
            digests=some(self.digests),
            counts=self.counts[np.asarray(places, dtype=np.intp)],
            rows=some(self.rows),
            first=some(self.first),
            learned=some(self.learned),
            replaced=some(self.replaced),
            moments=some(self.moments),
        )


def check_times(times: Iterable[str | None]) -> None:
    """Raise if one of these is no time as a store keeps it; a day alone will do."""
    for time in set(times):
        if time is None or not TIME.fullmatch(time):
            raise DamagedError("a document has no time, or one that cannot be read")


def read_bags(
    connection: Connection, n_numbers: int, *conditions, newest: int | None = None
) -> Bags:
    """Return the rows of the ledger under some conditions, in the order of their names.

    With ``newest``, only as many of those that were learned last.
    """
    query = ROWS.where(*conditions)
    if newest is not None:
        query = query.order_by(ledger.c.row.desc()).limit(newest)
    return _bags(fetch(connection, query), n_numbers)


def read_current(connection: Connection, n_numbers: int, names: Iterable[str]) -> Bags:
    """Return the current versions of documents, in the order of their names."""
    return _bags(fetch_among(connection, CURRENT_ROWS, ledger.c.document, names), n_numbers)


def _bags(rows: list[Row], n_numbers: int) -> Bags:
    rows.sort(key=itemgetter(1, 5))  # document, learned
    check_times(row[-1] for row in rows)
    row, names, labels, times, first, learned, replaced, digests, texts, terms, counts, moments = (
        zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    )
    return Bags(
        names,
        labels,
        times,
        texts,
        digests,
        unpack(terms, counts, n_numbers),
        rows=row,
        first=first,
        learned=learned,
        replaced=replaced,
        moments=moments,
    )
