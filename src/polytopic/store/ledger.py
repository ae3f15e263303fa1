"""The ledger: versions of documents with their counts, and which of them a selection means."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

import numpy as np
from scipy import sparse
from sqlalchemy import Connection, Row, func, or_, select

from polytopic.corpus.document import parse_time
from polytopic.errors import DamagedError
from polytopic.store.database import fetch, fetch_where_in
from polytopic.store.encoding import decode_rows, read_json, read_labels
from polytopic.store.schema import documents as ledger
from polytopic.store.schema import revisions

TIME = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(T[\d:.]{15}\+00:00)?")
_first_learned = (
    select(revisions.c.time).where(revisions.c.revision == ledger.c.first).scalar_subquery()
)
EFFECTIVE_TIME = func.coalesce(ledger.c.time, _first_learned).label("effective_time")
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
    EFFECTIVE_TIME,
)
IS_CURRENT = ledger.c.replaced.is_(None)
IS_LABELLED = ledger.c.labels != "[]"
READ_ROWS = select(*COLUMNS).where(ledger.c.learned > 0)  # 0: a blank row
READ_CURRENT_ROWS = READ_ROWS.where(IS_CURRENT)


# Rows


@dataclass(frozen=True)
class LedgerRows:
    """Rows of the ledger, one per version of a document.

    Attributes
    ----------
    ids : sequence of str
        Ids of the documents.
    labels : sequence of str
        Their label sets, as JSON.
    times, texts : sequence of str or None
        Their times and texts, as they are stored.
    digests : sequence of bytes
        Digests of their terms and counts.
    counts : csr_matrix of shape (n_rows, n_terms)
        Counts by the number of a term; within a row, terms are in the order of their names.
    numbers : sequence of int
        Numbers of the rows; empty, like all that follow, for rows that are not stored yet.
    first, learned : sequence of int
        The revisions at which the document and this version of it were learned.
    replaced : sequence of int or None
        The revision at which a newer version replaced this one.
    effective_times : sequence of str
        The document's time, or the time at which it was first learned if it has none.
    """

    ids: Sequence[str]
    labels: Sequence[str]
    times: Sequence[str | None]
    texts: Sequence[str | None]
    digests: Sequence[bytes]
    counts: sparse.csr_matrix
    numbers: Sequence[int] = ()
    first: Sequence[int] = ()
    learned: Sequence[int] = ()
    replaced: Sequence[int | None] = ()
    effective_times: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def labelled_digests(self) -> Iterator[tuple[str, bytes]]:
        """Pairs of label set and digest, which the digest of the store is made of."""
        return zip(self.labels, self.digests, strict=True)

    def take(self, places: Sequence[int]) -> LedgerRows:
        """Return the rows at some places."""

        def at_places(values):
            return [values[k] for k in places] if len(values) else ()

        return LedgerRows(
            ids=at_places(self.ids),
            labels=at_places(self.labels),
            times=at_places(self.times),
            texts=at_places(self.texts),
            digests=at_places(self.digests),
            counts=self.counts[np.asarray(places, dtype=np.intp)],
            numbers=at_places(self.numbers),
            first=at_places(self.first),
            learned=at_places(self.learned),
            replaced=at_places(self.replaced),
            effective_times=at_places(self.effective_times),
        )

    def current(self) -> LedgerRows:
        """Return the rows that no newer version has replaced."""
        return self.take([k for k, revision in enumerate(self.replaced) if revision is None])

    def labelled(self) -> LedgerRows:
        """Return the rows that have labels."""
        return self.take([k for k, labels in enumerate(self.labels) if labels != "[]"])


def read_ledger(
    connection: Connection, n_terms: int, *conditions, newest: int | None = None
) -> LedgerRows:
    """Return the rows that meet all conditions, sorted by document and version.

    With ``newest``, only that many of those that were learned last.
    """
    query = READ_ROWS.where(*conditions)
    if newest is not None:
        query = query.order_by(ledger.c.row.desc()).limit(newest)
    return _ledger_rows(fetch(connection, query), n_terms)


def read_current_rows(connection: Connection, n_terms: int, ids: Iterable[str]) -> LedgerRows:
    """Return the current rows of documents, by id."""
    rows = fetch_where_in(connection, READ_CURRENT_ROWS, ledger.c.document, ids)
    return _ledger_rows(rows, n_terms)


def _ledger_rows(rows: list[Row], n_terms: int) -> LedgerRows:
    rows.sort(key=itemgetter(1, 5))  # document, learned
    check_times(row[-1] for row in rows)
    (
        numbers,
        ids,
        labels,
        times,
        first,
        learned,
        replaced,
        digests,
        texts,
        terms,
        counts,
        effective_times,
    ) = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    return LedgerRows(
        ids,
        labels,
        times,
        texts,
        digests,
        decode_rows(terms, counts, n_terms),
        numbers,
        first,
        learned,
        replaced,
        effective_times,
    )


# Selections


@dataclass(frozen=True)
class Selection:
    """The labelled documents of a store as of a revision, or a part of them.

    Attributes
    ----------
    revision : int or None
        The revision; None for a model that was fitted elsewhere, on unknown documents.
    since, until : str or None
        Only documents from this time on, and before that one.
    labels : list of str or None
        Only documents with at least one of these labels.
    read_at : int or None
        The revision of the store when they were read. Documents forgotten by then are left out.
    base : int or None
        The number of a published model that was fitted elsewhere, and whose documents count as
        well.
    after : int or None
        Only versions of documents that were learned after this revision: when the base was
        published.
    """

    revision: int | None = None
    since: str | None = None
    until: str | None = None
    labels: list[str] | None = None
    read_at: int | None = None
    base: int | None = None
    after: int | None = None

    def to_json(self) -> str:
        """Return the selection as a store keeps it."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Selection:
        """Return the selection that :meth:`to_json` describes."""
        values = read_json(text, "the selection that a model was fitted on")
        try:
            selection = cls(**values)
        except TypeError as error:
            raise DamagedError("the selection that a model was fitted on is invalid") from error
        numbers = selection.revision, selection.read_at, selection.base, selection.after
        times = selection.since, selection.until
        if not (
            all(isinstance(number, int | None) for number in numbers)
            and all(isinstance(time, str | None) for time in times)
            and (selection.labels is None or isinstance(selection.labels, list))
        ):
            raise DamagedError("the selection that a model was fitted on is invalid")
        return selection

    @property
    def is_part(self) -> bool:
        """Whether it is limited to some times, labels or revisions."""
        return not (self.since is self.until is self.labels is self.after is None)

    @property
    def is_past(self) -> bool:
        """Whether it is as of a revision that was not the last one when it was read."""
        return None not in (self.revision, self.read_at) and self.revision != self.read_at

    def conditions(self) -> list[Any]:
        """Return the conditions on rows of the ledger, except for the one on labels."""
        conditions = [
            IS_LABELLED,
            ledger.c.learned <= self.revision,
            or_(IS_CURRENT, ledger.c.replaced > self.revision),
        ]
        if self.since is not None:
            conditions.append(self.since <= EFFECTIVE_TIME)
        if self.until is not None:
            conditions.append(self.until > EFFECTIVE_TIME)
        if self.after is not None:
            conditions.append(ledger.c.learned > self.after)
        return conditions

    def matching(self, label_sets: Sequence[str]) -> list[int]:
        """Return the places of the label sets (JSON) that have one of the labels."""
        if self.labels is None:
            return list(range(len(label_sets)))
        own_labels = set(self.labels)
        matches = {
            names: not own_labels.isdisjoint(read_labels(names)) for names in set(label_sets)
        }
        return [k for k, names in enumerate(label_sets) if matches[names]]

    def includes_any(self, versions: LedgerRows) -> bool:
        """Return whether at least one of these versions may be among the documents."""
        if self.revision is None or self.base is not None:  # nobody knows all of them
            return len(versions) > 0
        last = self.revision
        rows = zip(versions.learned, versions.replaced, versions.effective_times, strict=True)
        return any(
            learned <= last
            and (replaced is None or replaced > last)
            and versions.labels[place] != "[]"
            and (self.since is None or time >= self.since)
            and (self.until is None or time < self.until)
            for place, (learned, replaced, time) in enumerate(rows)
            if self.matching([versions.labels[place]])
        )


def revision_at(connection: Connection, as_of: Any, last: int) -> int:
    """Return the revision with a number, or the one at a time; None stands for the last one."""
    if as_of is None:
        return last
    if isinstance(as_of, int) and not isinstance(as_of, bool):
        if not 0 <= as_of <= last:
            raise ValueError(f"as_of == {as_of}, must be a revision from 0 to {last}, or a time.")
        return as_of
    time = read_time("as_of", as_of)
    query = select(func.max(revisions.c.revision)).where(revisions.c.time <= time)
    ((revision,),) = fetch(connection, query)
    return revision or 0


# Times


def read_time(name: str, value: Any) -> str | None:
    """Return the time that a parameter gives, as a store keeps it."""
    return None if value is None else stored_time(parse_time(name, value))


def stored_time(time: datetime) -> str:
    """Return a time as a store keeps it: text that sorts by time."""
    try:
        return time.astimezone(UTC).isoformat(timespec="microseconds")
    except OverflowError:
        raise ValueError(
            f"time == {time.isoformat()!r}, must be in the years 1 to 9999 in UTC."
        ) from None


def now() -> str:
    """Return the present time, as a store keeps it."""
    return stored_time(datetime.now(UTC))


def check_times(times: Iterable[str | None]) -> None:
    """Raise unless all are times, or days, as a store keeps them."""
    for time in set(times):
        if time is None or not TIME.fullmatch(time):
            raise DamagedError("a document has no time, or one that cannot be read")
