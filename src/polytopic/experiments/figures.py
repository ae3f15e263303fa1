"""Figures of a comparison, by matplotlib."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from polytopic.errors import PolytopicError
from polytopic.experiments.comparison import Comparison, Row
from polytopic.experiments.measures import BINS, FREQUENCIES, LARGEST

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#666666")
MARKERS = "osD^vPX<>*"
ENOUGH = 10  # labels of documents by which a share is drawn
MOST = 7  # methods in a figure with a line for each


def figures(found: Comparison) -> Iterator[tuple[str, str, object]]:
    """Yield what a comparison shows: a heading, a sentence, and the figure."""
    able = [row for row in found.rows if row.results]
    if not able:
        return
    largest = [row for row in found.largest().rows if row.results]
    styles = {row.method: _style(k) for k, row in enumerate(largest)}
    if found.protocol.kind == "curve":
        yield (
            "More documents to learn from",
            "Samples F1 and subset accuracy by the number of documents to learn from.",
            _curves(found, able[:MOST], styles),
        )
    yield (
        "Quality",
        "Samples F1 and subset accuracy; lines are the standard deviation over splits.",
        _quality(largest),
    )
    yield (
        "Time and quality",
        "Samples F1 beside the CPU time to learn and to answer; up and to the left is better.",
        _time(largest, styles),
    )
    yield (
        "Rare and common labels",
        "The F-measure of labels by how many documents to learn from have them.",
        _groups(largest[:MOST], "by_frequency", "from", "documents to learn from", styles),
    )
    yield (
        "Few and many labels",
        "The F-measure of documents by how many labels they have.",
        _groups(largest[:MOST], "by_size", "size", "labels of a document", styles),
    )
    honest = [row for row in largest if row.results[0]["calibration"]]
    if honest:
        yield (
            "Calibration",
            "How often labels of a probability are right; the diagonal is honest.",
            _calibration(honest[:MOST], styles),
        )


def require_figures():
    """Return matplotlib's Figure; say what to install where it is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PolytopicError(
            "matplotlib is not installed, which figures need: pip install 'polytopic[plots]'."
        ) from error
    return Figure


def _axes(width=7.0, height=4.0, columns=1):
    Figure = require_figures()
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, columns)
    for one in np.atleast_1d(axes):
        one.spines[["top", "right"]].set_visible(False)
        one.grid(visible=True, color="#ddd", linewidth=0.6)
    return figure, axes


def _style(k: int) -> dict:
    return {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)]}


def _curves(found: Comparison, rows: list[Row], styles: dict[str, dict]):
    figure, axes = _axes(9.0, 4.0, 2)
    sizes = np.array([int(re.match(r"\d+", name)[0]) for name in found.splits])  # type: ignore[index]
    for axis, measure, name in zip(
        axes, ("samples_f1", "subset_accuracy"), ("F", "subset accuracy"), strict=True
    ):
        for row in rows:
            values = row.values(measure)
            x = np.unique(sizes)
            mean = [values[sizes == size].mean() for size in x]
            spread = [values[sizes == size].std() for size in x]
            axis.errorbar(x, mean, spread, label=row.title, capsize=2, **styles[row.method])
        axis.set_xscale("log")
        axis.set_xticks(np.unique(sizes), [str(size) for size in np.unique(sizes)], minor=False)
        axis.set_xticks([], minor=True)
        axis.set_xlabel("documents to learn from")
        axis.set_title(name, loc="left", fontsize="medium")
    axes[0].legend(fontsize="small", frameon=False)
    return figure


def _quality(rows: list[Row]):
    figure, axes = _axes(7.0, 1.2 + 0.3 * len(rows))
    places = np.arange(len(rows))
    for k, (measure, name) in enumerate(
        (("samples_f1", "F"), ("subset_accuracy", "subset accuracy"))
    ):
        means = [row.mean(measure) for row in rows]
        spread = [np.nan_to_num(row.std(measure)) for row in rows]
        axes.errorbar(
            means,
            places + 0.12 * (2 * k - 1),
            xerr=spread,
            fmt="oD"[k],
            color=COLOURS[k],
            label=name,
        )
    axes.set_yticks(places, [row.title for row in rows])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.legend(fontsize="small", frameon=False)
    return figure


def _time(rows: list[Row], styles: dict[str, dict]):
    figure, axes = _axes(7.0, 4.5)
    for row in rows:
        seconds = row.mean("fit_seconds") + row.mean("predict_seconds")
        x, y = max(seconds, 1e-3), row.mean("samples_f1")
        axes.plot(x, y, linestyle="", label=row.title, **styles[row.method])
    axes.set_xscale("log")
    low, high = np.log10(axes.get_xlim())
    axes.set_xlim(10 ** np.floor(low), 10 ** np.ceil(high))  # whole decades, which have numbers
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("CPU seconds to learn and to answer")
    axes.set_ylabel("samples F1")
    axes.legend(
        fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), ncols=1
    )
    return figure


def _groups(rows: list[Row], group: str, key: str, xlabel: str, styles: dict[str, dict]):
    figure, axes = _axes()
    keys = sorted({one[key] for row in rows for result in row.results for one in result[group]})
    for row in rows:
        means = []
        for value in keys:
            own = [one["f"] for result in row.results for one in result[group] if one[key] == value]
            means.append(np.mean(own) if own else np.nan)
        axes.plot(range(len(keys)), means, label=row.title, **styles[row.method])
    axes.set_xticks(range(len(keys)), _ranges(keys, group))
    axes.set_xlabel(xlabel)
    axes.set_ylabel("F")
    axes.set_ylim(0, 1)
    axes.legend(fontsize="small", frameon=False)
    return figure


def _ranges(keys: list[int], group: str) -> list[str]:
    """Return what stands under the axis: sizes, or the documents of a class of labels."""
    if group == "by_size":
        return [f"{key} or more" if key == LARGEST else str(key) for key in keys]
    ends = dict(pairwise(FREQUENCIES))
    return [f"{key}–{ends[key] - 1}" if key in ends else f"{key} or more" for key in keys]


def _calibration(rows: list[Row], styles: dict[str, dict]):
    figure, axes = _axes(5.5, 5.0)
    axes.plot([0, 1], [0, 1], color="#999", linewidth=1, linestyle="--")
    for row in rows:
        bins = _pooled(row)
        x, y = ([one[k] for one in bins] for k in range(2))
        axes.plot(x, y, label=row.title, **styles[row.method])
    axes.set_xlabel("probability")
    axes.set_ylabel("share that is right")
    axes.legend(fontsize="small", frameon=False)
    return figure


def _pooled(row: Row) -> list[tuple[float, float]]:
    """Return mean probabilities and shares that are right, of all splits; none by few pairs."""
    sums = np.zeros((BINS, 3))
    for result in row.results:
        for one in result["calibration"]:
            n = one["pairs"]
            place = min(int(one["probability"] * BINS), BINS - 1)
            sums[place] += n, n * one["probability"], n * one["right"]
    return [(p / n, right / n) for n, p, right in sums if n >= ENOUGH]
