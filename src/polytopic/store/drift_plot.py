"""Plotting drift with matplotlib."""

from __future__ import annotations

from collections import defaultdict
from datetime import date

import numpy as np

from polytopic.errors import PolytopicError
from polytopic.explain.display import PALETTE
from polytopic.store.analysis import Drift, LabelPeriod, first_days

WIDTH = 10.0  # of the figure, in inches
CHART_HEIGHT, LABEL_HEIGHT = 1.3, 0.25  # in inches
MAX_LABELS = 12
MAX_LENGTH = 30  # characters of a label
MAX_DEVIATION = 4.0  # standard deviations, shown in the strongest colour
MAX_LARGE_MARKERS = 60  # periods
GREY = "#e6e6e6"  # periods without documents


def plot_drift(drift: Drift):
    """Plot documents, perplexity, unknown words and the labels that changed most over time."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PolytopicError(
            "matplotlib is not installed. Install it with: pip install 'polytopic[plots]'"
        ) from error
    if not drift.periods:
        raise PolytopicError("there are no documents in these periods, so nothing to plot.")
    labels = _most_changed(drift)
    heights = [CHART_HEIGHT] * 3 + ([LABEL_HEIGHT * max(len(labels), 3)] if labels else [])
    figure = Figure(figsize=(WIDTH, sum(heights) + 0.9), layout="constrained")
    axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    edges = _edges(drift)
    _plot_documents(axes[0], drift, edges)
    _plot_line(axes[1], drift, edges, [p.perplexity for p in drift.periods], 1)
    axes[1].set_title("perplexity of known words, given the labels", loc="left", fontsize="medium")
    unknown = [None if p.unknown is None else 100 * p.unknown for p in drift.periods]
    _plot_line(axes[2], drift, edges, unknown, 2)
    axes[2].set_title("unknown words", loc="left", fontsize="medium")
    axes[2].set_yscale("symlog", linthresh=1)  # streams start at 100% and fall to a few
    axes[2].set_yticks([0, 1, 10, 100], ["0%", "1%", "10%", "100%"])
    axes[2].set_ylim(0, 100)
    if labels:
        _plot_labels(axes[3], drift, edges, labels)
    axes[0].set_xlim(edges[0], edges[-1])
    return figure


def _edges(drift: Drift) -> np.ndarray:
    """Return the first days of all periods, including those without documents, and the end."""
    first, last = (np.datetime64(drift.periods[k].start) for k in (0, -1))
    days = np.arange(first, last + np.timedelta64(367, "D"))
    starts = np.unique(first_days(days, drift.by))
    return starts[: np.searchsorted(starts, last) + 2]


def _places(drift: Drift, edges: np.ndarray) -> np.ndarray:
    return np.searchsorted(edges, np.array([p.start for p in drift.periods], "datetime64[D]"))


def _plot_documents(axes, drift: Drift, edges: np.ndarray) -> None:
    heights = np.zeros(edges.size - 1)
    heights[_places(drift, edges)] = [period.documents for period in drift.periods]
    axes.stairs(heights, edges, fill=True, color=PALETTE[0])
    axes.set_title(f"documents per {drift.by}", loc="left", fontsize="medium")
    axes.set_ylim(bottom=0)
    _lighten(axes)


def _plot_line(axes, drift: Drift, edges: np.ndarray, values, color: int) -> None:
    """Plot a line through the middles of the periods, faint across those without a value."""
    middle = edges[:-1] + np.diff(edges).astype("timedelta64[h]") // 2
    heights = np.full(middle.size, np.nan)
    heights[_places(drift, edges)] = [np.nan if value is None else value for value in values]
    known = np.isfinite(heights)
    size = 5 if known.sum() <= MAX_LARGE_MARKERS else 2
    axes.plot(middle[known], heights[known], color=PALETTE[color], linewidth=0.8, alpha=0.4)
    axes.plot(middle, heights, color=PALETTE[color], linewidth=1.4, marker=".", markersize=size)
    axes.set_ylim(bottom=0)
    _lighten(axes)


def _lighten(axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=GREY, linewidth=0.8)
    axes.set_axisbelow(True)


def _plot_labels(axes, drift: Drift, edges: np.ndarray, labels: list[str]) -> None:
    values = np.full((len(labels), edges.size - 1), np.nan)
    row = {label: k for k, label in enumerate(labels)}
    for place, period in zip(_places(drift, edges), drift.periods, strict=True):
        values[:, place] = 0
        for label in period.labels:
            if label.label in row and label.expected is not None:
                values[row[label.label], place] = _deviation(label)
    axes.set_facecolor(GREY)
    image = axes.pcolormesh(
        edges,
        np.arange(len(labels) + 1),
        values,
        cmap="RdBu_r",
        vmin=-MAX_DEVIATION,
        vmax=MAX_DEVIATION,
        rasterized=True,
    )
    axes.invert_yaxis()
    names = [_shorten(label) for label in labels]
    axes.set_yticks(np.arange(len(labels)) + 0.5, names, fontsize="small", parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)
    axes.set_title("labels: more or fewer documents than before", loc="left", fontsize="medium")
    bar = axes.figure.colorbar(image, cax=axes.inset_axes((1.01, 0.0, 0.012, 1.0)))
    bar.set_ticks([-MAX_DEVIATION, 0, MAX_DEVIATION], labels=["fewer", "as before", "more"])
    bar.ax.tick_params(labelsize="small", length=0)
    bar.outline.set_visible(False)


def _most_changed(drift: Drift) -> list[str]:
    """Return the labels that deviate most from the expected numbers, by their mean time."""
    changes: dict[str, float] = defaultdict(float)
    documents: dict[str, int] = defaultdict(int)
    days: dict[str, int] = defaultdict(int)  # sums over documents
    for period in drift.periods:
        day = date.fromisoformat(period.start).toordinal()
        for label in period.labels:
            changes[label.label] += _deviation(label) ** 2 if label.trend else 0.0
            documents[label.label] += label.documents
            days[label.label] += label.documents * day
    changed = [label for label, change in changes.items() if change]
    most = sorted(changed, key=lambda label: (-changes[label], label))[:MAX_LABELS]
    return sorted(most, key=lambda label: (days[label] / max(documents[label], 1), label))


def _deviation(label: LabelPeriod) -> float:
    """Return how many more documents there are than expected, in standard deviations."""
    expected = label.expected or 0.0
    return (label.documents - expected) / (expected + 1) ** 0.5


def _shorten(name: str) -> str:
    """Return a name on one short line; of a long one, the beginning and the end."""
    line = "".join(c if c.isprintable() else " " for c in name)
    half = (MAX_LENGTH - 1) // 2
    return line if len(line) <= MAX_LENGTH else f"{line[: MAX_LENGTH - 1 - half]}…{line[-half:]}"
