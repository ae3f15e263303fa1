"""Figures of a comparison, by matplotlib."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from polytopic.errors import PolytopicError
from polytopic.experiments.comparison import Comparison, Row

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#666666")
MARKERS = "osD^vPX<>*"
MOST = 7  # methods in a figure with a line for each


def figures(found: Comparison) -> Iterator[tuple[str, str, object]]:
    """Yield what a comparison shows: a heading, a sentence, and the figure."""
    able = [row for row in found.rows if row.results]
    if not able:
        return
    if found.protocol.kind == "curve":
        yield (
            "More documents to learn from",
            "Labelling F and exact match by the number of documents to learn from.",
            _curves(found, able[:MOST]),
        )
    able = [row for row in found.largest().rows if row.results]
    yield (
        "Time and quality",
        "Labelling F beside the CPU time to learn and to answer; up and to the left is better.",
        _time(able),
    )
    yield (
        "Rare and common labels",
        "The F-measure of labels by how many documents to learn from have them.",
        _groups(able[:MOST], "by_frequency", "from", "documents to learn from, at least"),
    )
    yield (
        "Few and many labels",
        "The F-measure of documents by how many labels they have.",
        _groups(able[:MOST], "by_size", "size", "labels of a document (6: or more)"),
    )
    honest = [row for row in able if row.results[0]["calibration"]]
    if honest:
        yield (
            "Calibration",
            "How often labels of a probability are right; the diagonal is honest.",
            _calibration(honest[:MOST]),
        )


def _axes(width=7.0, height=4.0, columns=1):
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PolytopicError(
            "matplotlib is not installed, which figures need: pip install 'polytopic[plots]'."
        ) from error
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, columns)
    for one in np.atleast_1d(axes):
        one.spines[["top", "right"]].set_visible(False)
        one.grid(visible=True, color="#ddd", linewidth=0.6)
    return figure, axes


def _style(k: int) -> dict:
    return {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)]}


def _curves(found: Comparison, rows: list[Row]):
    figure, axes = _axes(9.0, 4.0, 2)
    sizes = np.array([int(re.match(r"\d+", name)[0]) for name in found.splits])  # type: ignore[index]
    for axis, measure, name in zip(
        axes, ("labeling_f", "exact_match"), ("F", "exact match"), strict=True
    ):
        for k, row in enumerate(rows):
            values = row.values(measure)
            x = np.unique(sizes)
            mean = [values[sizes == size].mean() for size in x]
            spread = [values[sizes == size].std() for size in x]
            axis.errorbar(x, mean, spread, label=row.title, capsize=2, **_style(k))
        axis.set_xscale("log")
        axis.set_xticks(np.unique(sizes), [str(size) for size in np.unique(sizes)], minor=False)
        axis.set_xticks([], minor=True)
        axis.set_xlabel("documents to learn from")
        axis.set_title(name, loc="left", fontsize="medium")
    axes[0].legend(fontsize="small", frameon=False)
    return figure


def _time(rows: list[Row]):
    figure, axes = _axes(7.5, 4.5)
    for k, row in enumerate(rows):
        seconds = row.mean("fit_seconds") + row.mean("predict_seconds")
        axes.plot(max(seconds, 1e-3), row.mean("labeling_f"), linestyle="", **_style(k))
        axes.annotate(
            row.title,
            (max(seconds, 1e-3), row.mean("labeling_f")),
            xytext=(5, 3),
            textcoords="offset points",
            fontsize="x-small",
        )
    axes.set_xscale("log")
    axes.margins(x=0.25)
    axes.set_xlabel("CPU seconds to learn and to answer")
    axes.set_ylabel("labelling F")
    return figure


def _groups(rows: list[Row], group: str, key: str, xlabel: str):
    figure, axes = _axes()
    keys = sorted({one[key] for row in rows for result in row.results for one in result[group]})
    for k, row in enumerate(rows):
        means = []
        for value in keys:
            own = [one["f"] for result in row.results for one in result[group] if one[key] == value]
            means.append(np.mean(own) if own else np.nan)
        axes.plot(range(len(keys)), means, label=row.title, **_style(k))
    axes.set_xticks(range(len(keys)), [str(value) for value in keys])
    axes.set_xlabel(xlabel)
    axes.set_ylabel("F")
    axes.set_ylim(0, 1)
    axes.legend(fontsize="small", frameon=False)
    return figure


def _calibration(rows: list[Row]):
    figure, axes = _axes(5.5, 5.0)
    axes.plot([0, 1], [0, 1], color="#999", linewidth=1, linestyle="--")
    for k, row in enumerate(rows):
        bins = row.results[0]["calibration"]
        x, y = ([one[name] for one in bins] for name in ("probability", "right"))
        axes.plot(x, y, label=row.title, **_style(k))
    axes.set_xlabel("probability")
    axes.set_ylabel("share that is right")
    axes.legend(fontsize="small", frameon=False)
    return figure
