"""Drift as a figure of matplotlib."""

from __future__ import annotations

from collections import defaultdict
from datetime import date

import numpy as np

from polytopic.errors import PolytopicError
from polytopic.explain.drawing import PALETTE
from polytopic.store.drift import Drift, LabelPeriod, first_days

WIDTH = 10.0  # of the figure in inches
HEIGHT, ROW = 1.3, 0.25  # of a small drawing, and of a label
MOST_LABELS = 12
LONGEST = 30  # characters of a label that are drawn
STRONGEST = 4.0  # deviation that has the full colour
FEW = 60  # periods that have a large mark each
FAINT = "#e6e6e6"  # where there are no documents


def draw(found: Drift):
    """Draw documents, perplexity, unknown words and the labels that changed most over time."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PolytopicError(
            "matplotlib is not installed. Install it with: pip install 'polytopic[plots]'"
        ) from error
    if not found.periods:
        raise PolytopicError("there are no documents in these periods, so nothing can be drawn.")
    labels = _most_changed(found)
    heights = [HEIGHT] * 3 + ([ROW * max(len(labels), 3)] if labels else [])
    figure = Figure(figsize=(WIDTH, sum(heights) + 0.9), layout="constrained")
    axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    edges = _edges(found)
    _draw_documents(axes[0], found, edges)
    _draw_line(axes[1], found, edges, [p.perplexity for p in found.periods], 1)
    axes[1].set_title("perplexity of known words, given the labels", loc="left", fontsize="medium")
    unknown = [None if p.unknown is None else 100 * p.unknown for p in found.periods]
    _draw_line(axes[2], found, edges, unknown, 2)
    axes[2].set_title("unknown words", loc="left", fontsize="medium")
    axes[2].set_yscale("symlog", linthresh=1)  # streams begin with 100%, and go on with a few
    axes[2].set_yticks([0, 1, 10, 100], ["0%", "1%", "10%", "100%"])
    axes[2].set_ylim(0, 100)
    if labels:
        _draw_labels(axes[3], found, edges, labels)
    axes[0].set_xlim(edges[0], edges[-1])
    return figure


def _edges(found: Drift) -> np.ndarray:
    """Return the first days of all periods, also of those without documents, and the end."""
    first, last = (np.datetime64(found.periods[k].start) for k in (0, -1))
    days = np.arange(first, last + np.timedelta64(367, "D"))
    starts = np.unique(first_days(days, found.by))
    return starts[: np.searchsorted(starts, last) + 2]


def _places(found: Drift, edges: np.ndarray) -> np.ndarray:
    return np.searchsorted(edges, np.array([p.start for p in found.periods], "datetime64[D]"))


def _draw_documents(axes, found: Drift, edges: np.ndarray) -> None:
    heights = np.zeros(edges.size - 1)
    heights[_places(found, edges)] = [period.documents for period in found.periods]
    axes.stairs(heights, edges, fill=True, color=PALETTE[0])
    axes.set_title(f"documents a {found.by}", loc="left", fontsize="medium")
    axes.set_ylim(bottom=0)
    _lighten(axes)


def _draw_line(axes, found: Drift, edges: np.ndarray, values, color: int) -> None:
    """Draw a line through the middles of the periods; it is faint across those without a value."""
    middle = edges[:-1] + np.diff(edges).astype("timedelta64[h]") // 2
    told = np.full(middle.size, np.nan)
    told[_places(found, edges)] = [np.nan if value is None else value for value in values]
    known = np.isfinite(told)
    size = 5 if known.sum() <= FEW else 2
    axes.plot(middle[known], told[known], color=PALETTE[color], linewidth=0.8, alpha=0.4)
    axes.plot(middle, told, color=PALETTE[color], linewidth=1.4, marker=".", markersize=size)
    axes.set_ylim(bottom=0)
    _lighten(axes)


def _lighten(axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)


def _draw_labels(axes, found: Drift, edges: np.ndarray, labels: list[str]) -> None:
    values = np.full((len(labels), edges.size - 1), np.nan)
    row = {label: k for k, label in enumerate(labels)}
    for place, period in zip(_places(found, edges), found.periods, strict=True):
        values[:, place] = 0
        for label in period.labels:
            if label.label in row and label.expected is not None:
                values[row[label.label], place] = _deviation(label)
    axes.set_facecolor(FAINT)
    image = axes.pcolormesh(
        edges,
        np.arange(len(labels) + 1),
        values,
        cmap="RdBu_r",
        vmin=-STRONGEST,
        vmax=STRONGEST,
        rasterized=True,
    )
    axes.invert_yaxis()
    names = [_drawable(label) for label in labels]
    axes.set_yticks(np.arange(len(labels)) + 0.5, names, fontsize="small", parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)
    axes.set_title("labels: more or fewer documents than before", loc="left", fontsize="medium")
    bar = axes.figure.colorbar(image, cax=axes.inset_axes((1.01, 0.0, 0.012, 1.0)))
    bar.set_ticks([-STRONGEST, 0, STRONGEST], labels=["fewer", "as before", "more"])
    bar.ax.tick_params(labelsize="small", length=0)
    bar.outline.set_visible(False)


def _most_changed(found: Drift) -> list[str]:
    """Return the labels that departed most from what was expected, in the order they came."""
    changes: dict[str, float] = defaultdict(float)
    documents: dict[str, int] = defaultdict(int)
    days: dict[str, int] = defaultdict(int)  # sums over documents
    for period in found.periods:
        day = date.fromisoformat(period.start).toordinal()
        for label in period.labels:
            changes[label.label] += _deviation(label) ** 2 if label.trend else 0.0
            documents[label.label] += label.documents
            days[label.label] += label.documents * day
    changed = [label for label, change in changes.items() if change]
    most = sorted(changed, key=lambda label: (-changes[label], label))[:MOST_LABELS]
    return sorted(most, key=lambda label: (days[label] / max(documents[label], 1), label))


def _deviation(label: LabelPeriod) -> float:
    """Return by how much more documents there are than expected, in standard deviations."""
    expected = label.expected or 0.0
    return (label.documents - expected) / (expected + 1) ** 0.5


def _drawable(name: str) -> str:
    """Return a name on one short line."""
    line = "".join(c if c.isprintable() else " " for c in name)
    half = (LONGEST - 1) // 2  # of paths the ends tell most
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1 - half]}…{line[-half:]}"
