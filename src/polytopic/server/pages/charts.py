"""Small charts: where bars and points stand, for drawings that need no script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 600, 120  # of a drawing, in units of its own


class Bar(NamedTuple):
    """A bar, with what it stands for."""

    x: float
    y: float
    width: float
    height: float
    start: str
    value: float


class Point(NamedTuple):
    """A point of a line."""

    x: float
    y: float
    start: str
    value: float


def bars(starts: Sequence[str], values: Sequence[float]) -> list[Bar]:
    """Return bars that fill a drawing."""
    highest, step = max([*values, 1]), WIDTH / max(len(values), 1)
    return [
        Bar(
            round(k * step + step * 0.1, 2),
            round(HEIGHT * (1 - value / highest), 2),
            round(step * 0.8, 2),
            round(HEIGHT * value / highest, 2),
            start,
            value,
        )
        for k, (start, value) in enumerate(zip(starts, values, strict=True))
    ]


def points(starts: Sequence[str], values: Sequence[float | None], top: float) -> list[Point]:
    """Return the points of a line from 0 to ``top``, without those that have no value."""
    step = WIDTH / max(len(values), 1)
    return [
        Point(round((k + 0.5) * step, 2), round(HEIGHT * (1 - value / top), 2), start, value)
        for k, (start, value) in enumerate(zip(starts, values, strict=True))
        if value is not None
    ]
