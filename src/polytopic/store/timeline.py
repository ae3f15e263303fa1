"""Timeline: how many documents each label has, period by period."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import Text, func, select

from polytopic.models.checks import check_name
from polytopic.store import tables
from polytopic.store.bags import MOMENT, check_times
from polytopic.store.database import fetch
from polytopic.store.drift import PERIODS, first_days
from polytopic.store.packing import read_labels

if TYPE_CHECKING:
    from polytopic.store.store import Store

MOST = 36  # periods that "auto" makes of the whole time, but for years


@dataclass(frozen=True)
class Timeline:
    """Labelled documents by their time.

    Attributes
    ----------
    by : str
        "day", "week", "month" or "year".
    starts : list of str
        The first day of each period (UTC), also of those without documents.
    documents : list of int
        Documents of each period.
    labels : dict of str to list of int
        Documents of each label in each period.
    """

    by: str
    starts: list[str]
    documents: list[int]
    labels: dict[str, list[int]]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return asdict(self)


def timeline(store: Store, *, by: str = "auto") -> Timeline:
    """Count the labelled documents of a store by their time.

    Parameters
    ----------
    store : Store
        The store.
    by : {"auto", "day", "week", "month", "year"}, default="auto"
        How long a period is; "auto" takes the shortest of which there are 36 at most. A document
        without a time has that at which it was first learned.
    """
    check_name(by, "by", ("auto", *PERIODS))
    days, sets, counts = _read(store)
    if not counts.size:
        return Timeline("day" if by == "auto" else by, [], [], {})
    if by == "auto":
        by = next((p for p in PERIODS if _all_periods(days, p).size <= MOST), PERIODS[-1])
    starts = _all_periods(days, by)
    places = np.searchsorted(starts, first_days(days, by))
    documents = np.bincount(places, counts, starts.size).astype(int)
    found: dict[str, Counter] = {}
    for place, labels, n in zip(places.tolist(), sets, counts.tolist(), strict=True):
        for label in read_labels(labels):
            found.setdefault(label, Counter())[place] += n
    return Timeline(
        by,
        [start.isoformat() for start in starts.tolist()],
        documents.tolist(),
        {label: [own[k] for k in range(starts.size)] for label, own in sorted(found.items())},
    )


def _read(store: Store) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Return days, label sets, and how many documents have both."""
    ledger = tables.documents.c
    day = func.substr(MOMENT, 1, 10, type_=Text).label("day")
    with store._database.reading() as connection:
        dated = (
            select(day, ledger.labels)
            .where(ledger.replaced.is_(None), ledger.labels != "[]")
            .subquery()
        )
        keys = dated.c.day, dated.c.labels
        rows = fetch(connection, select(*keys, func.count()).group_by(*keys))
    days, sets, counts = zip(*rows, strict=True) if rows else ((), (), ())
    check_times(days)
    return np.array(days, dtype="datetime64[D]"), list(sets), np.array(counts, dtype=np.int64)


def _all_periods(days: np.ndarray, by: str) -> np.ndarray:
    """Return the first days of all periods from the first day to the last."""
    every = np.arange(days.min(), days.max() + 1)
    return np.unique(first_days(every, by))
