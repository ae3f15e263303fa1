"""Which documents of a store are meant: known at a revision, of a time, with some labels."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, func, or_, select

from polytopic.corpus.document import parse_time
from polytopic.errors import DamagedError
from polytopic.store import tables
from polytopic.store.bags import MOMENT, Bags
from polytopic.store.database import fetch
from polytopic.store.packing import read_json, read_labels


@dataclass(frozen=True)
class Selection:
    """Labelled documents as they were known at a revision.

    Attributes
    ----------
    revision : int or None
        The revision; None for a model from elsewhere, of which nothing is known.
    since, until : str or None
        Times between which theirs lie, the second one excluded.
    labels : list of str or None
        Labels of which they have one at least.
    read_at : int or None
        The revision of the store when they were read, without what was forgotten until then.
    """

    revision: int | None = None
    since: str | None = None
    until: str | None = None
    labels: list[str] | None = None
    read_at: int | None = None

    def to_json(self) -> str:
        """Return it as a store keeps it."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Selection:
        """Return what :meth:`to_json` gave."""
        values = read_json(text, "what a model was fitted on")
        try:
            found = cls(**values)
        except TypeError as error:
            raise DamagedError("what a model was fitted on cannot be read") from error
        numbers, times = (found.revision, found.read_at), (found.since, found.until)
        if not (
            all(isinstance(number, int | None) for number in numbers)
            and all(isinstance(time, str | None) for time in times)
            and (found.labels is None or isinstance(found.labels, list))
        ):
            raise DamagedError("what a model was fitted on cannot be read")
        return found

    @property
    def is_part(self) -> bool:
        """Whether documents are left out that were known then."""
        return not (self.since is self.until is self.labels is None)

    @property
    def is_past(self) -> bool:
        """Whether they are meant as they were known at a moment that was past already."""
        return None not in (self.revision, self.read_at) and self.revision != self.read_at

    def conditions(self) -> list[Any]:
        """Return the conditions on rows of the ledger, but for that on labels."""
        ledger, conditions = tables.documents.c, [tables.documents.c.labels != "[]"]
        conditions.append(ledger.learned <= self.revision)
        conditions.append(or_(ledger.replaced.is_(None), ledger.replaced > self.revision))
        if self.since is not None:
            conditions.append(self.since <= MOMENT)
        if self.until is not None:
            conditions.append(self.until > MOMENT)
        return conditions

    def among(self, labels: Collection[str]) -> list[int]:
        """Return the places of label sets, as they are stored, that have one of the labels."""
        if self.labels is None:
            return list(range(len(labels)))
        wanted = set(self.labels)
        found = {names: not wanted.isdisjoint(read_labels(names)) for names in set(labels)}
        return [k for k, names in enumerate(labels) if found[names]]

    def saw(self, versions: Bags) -> bool:
        """Tell whether one of these versions of documents is among them."""
        if self.revision is None:
            return len(versions) > 0
        last = self.revision
        rows = zip(versions.learned, versions.replaced, versions.moments, strict=True)
        return any(
            learned <= last
            and (replaced is None or replaced > last)
            and versions.labels[place] != "[]"
            and (self.since is None or moment >= self.since)
            and (self.until is None or moment < self.until)
            for place, (learned, replaced, moment) in enumerate(rows)
            if self.among([versions.labels[place]])
        )


def revision_at(connection: Connection, as_of: Any, last: int) -> int:
    """Return the revision that is meant by its number, or by a time; the last one by None."""
    if as_of is None:
        return last
    if isinstance(as_of, int) and not isinstance(as_of, bool):
        if not 0 <= as_of <= last:
            raise ValueError(f"as_of == {as_of}, must be a revision from 0 to {last}, or a time.")
        return as_of
    moment = read_time("as_of", as_of)
    revisions = tables.revisions.c
    found = select(func.max(revisions.revision)).where(revisions.time <= moment)
    ((revision,),) = fetch(connection, found)
    return revision or 0


def read_time(name: str, value: Any) -> str | None:
    """Return a time as a store keeps it: text that sorts by time."""
    return None if value is None else stored_time(parse_time(name, value))


def stored_time(time: datetime) -> str:
    """Return a time as text that sorts by time."""
    try:
        return time.astimezone(UTC).isoformat(timespec="microseconds")
    except OverflowError:
        raise ValueError(
            f"time == {time.isoformat()!r}, must be of the years 1 to 9999 in UTC."
        ) from None


def now() -> str:
    """Return the time, as a store keeps it."""
    return stored_time(datetime.now(UTC))
