"""Coordinates of small charts, which the templates draw as SVG without a script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 600, 120  # of the SVG view box


class Bar(NamedTuple):
    """A bar of a bar chart."""

    x: float
    y: float
    width: float
    height: float
    start: str
    value: float


class Point(NamedTuple):
    """A point of a line chart."""

    x: float
    y: float
    start: str
    value: float


def bars(starts: Sequence[str], values: Sequence[float]) -> list[Bar]:
    """Return one bar per value; the highest one has the height of the chart."""
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
    """Return one point per value, on a scale from 0 to ``top``; None values are left out."""
    step = WIDTH / max(len(values), 1)
    return [
        Point(round((k + 0.5) * step, 2), round(HEIGHT * (1 - value / top), 2), start, value)
        for k, (start, value) in enumerate(zip(starts, values, strict=True))
        if value is not None
    ]
