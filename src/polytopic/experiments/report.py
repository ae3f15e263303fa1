"""Reports of a comparison: tables (for a terminal, Markdown, CSV, LaTeX) and an HTML page."""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from polytopic.errors import PolytopicError
from polytopic.experiments.comparison import Comparison, Row
from polytopic.experiments.runner import FREQUENCIES, LARGEST_SIZE, N_BINS
from polytopic.explain.html import safe, section, table, whole_page

SIGNIFICANT = 0.05  # p-value below which a method is called worse than the best
STYLE = """body { max-width: 76rem } .scroll { overflow-x: auto }
img { width: 100%; height: auto; background: #fff; border-radius: .5rem }
.figures { display: grid; gap: 0 2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr)) }
td:first-child { padding-right: 1.5rem } .scroll td { white-space: nowrap; font-size: .9rem }
small { color: var(--soft); font-size: .75rem }
"""
NEGLIGIBLE = 0.01  # difference in samples F1
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#666666")
MARKERS = "osD^vPX<>*"
MIN_PAIRS = 10  # of document and label, for a point of the calibration curve
MAX_LINES = 7  # methods in a figure with a line for each
PAGE_POLICY = "img-src data:"


# Tables


class Column(NamedTuple):
    """A column of a table: a metric, its heading and digits, and whether higher is better."""

    metric: str
    heading: str
    digits: int = 3
    higher: bool = True


MAIN_COLUMNS = (
    Column("samples_f1", "samples F1"),
    Column("subset_accuracy", "subset accuracy"),
    Column("macro_f1", "macro F1"),
    Column("micro_f1", "micro F1"),
    Column("precision_at_1", "P@1"),
    Column("ndcg_at_5", "nDCG@5"),
    Column("fit_seconds", "fit s", 2, higher=False),
    Column("predict_seconds", "predict s", 2, higher=False),
    Column("memory_mb", "MB", 0, higher=False),
)
EXTRA_COLUMNS = (
    Column("samples_precision", "precision"),
    Column("samples_recall", "recall"),
    Column("document_f1", "document F1"),
    Column("precision_at_3", "P@3"),
    Column("precision_at_5", "P@5"),
    Column("ndcg_at_3", "nDCG@3"),
    Column("tune_seconds", "tune s", 1, higher=False),
)


class Entry(NamedTuple):
    """A cell of a table.

    ``best`` says whether no method has a better mean, ``worse`` whether the method is significantly
    worse than the best.
    """

    mean: float
    std: float
    digits: int
    best: bool
    worse: bool

    @property
    def text(self) -> str:
        """The mean, with its standard deviation and a star if it is worse."""
        if np.isnan(self.mean):
            return "–"
        text = f"{self.mean:.{self.digits}f}"
        if not np.isnan(self.std):
            text += f" ± {self.std:.{self.digits}f}"
        return text + ("*" if self.worse else "")


def entries(
    comparison: Comparison, columns: tuple[Column, ...] = MAIN_COLUMNS
) -> list[list[Entry]]:
    """Return the cells of the methods that have results."""
    rows = comparison.successful
    return [[_entry(comparison, row, column) for column in columns] for row in rows]


def _entry(comparison: Comparison, row: Row, column: Column) -> Entry:
    means = np.array([other.mean(column.metric) for other in comparison.successful])
    mean = row.mean(column.metric)
    top = np.nan if np.isnan(means).all() else (np.nanmax if column.higher else np.nanmin)(means)
    best = bool(round(mean, column.digits) == round(float(top), column.digits))
    p = comparison.p_value(row, column.metric) if column.higher and column.digits == 3 else None
    worse = p is not None and p < SIGNIFICANT and not best
    return Entry(mean, row.std(column.metric), column.digits, best, worse)


def summary(comparison: Comparison) -> str:
    """Return a sentence about the corpus and the splits."""
    about, n = comparison.about, len(comparison.splits)
    return (
        f"{comparison.corpus}: {about['documents']:,} documents, {about['labels']:,} labels, "
        f"{about['labels_per_document']:.2f} per document, {about['terms']:,} terms; "
        f"{n} {'split' if n == 1 else 'splits'} ({comparison.splits[0]}{', …' if n > 1 else ''})."
    )


def notes(comparison: Comparison) -> str:
    """Return how to read a table."""
    spread, test = "", "permutation test over documents"
    if len(comparison.splits) > 1:
        spread, test = ", with the standard deviation over splits", "corrected resampled t-test"
    return (
        f"Means{spread}; best in bold; * significantly worse than the best ({test}, "
        f"p < {SIGNIFICANT:g}). Times are CPU seconds on one thread, without tuning."
    )


def to_markdown(comparison: Comparison, columns: tuple[Column, ...] = MAIN_COLUMNS) -> str:
    """Return a table in Markdown."""
    lines = [
        "| method | " + " | ".join(column.heading for column in columns) + " |",
        "|" + " --- |" * (len(columns) + 1),
    ]
    for row, cells in zip(comparison.successful, entries(comparison, columns), strict=True):
        texts = (f"**{cell.text}**" if cell.best else cell.text for cell in cells)
        lines.append(f"| {row.title} | " + " | ".join(texts) + " |")
    lines += [
        f"| {row.title} | {row.failure} |" + " |" * (len(columns) - 1)
        for row in comparison.rows
        if row.failure
    ]
    return "\n".join([summary(comparison), "", *lines, "", notes(comparison), ""])


def to_csv(comparison: Comparison) -> str:
    """Return all metrics, one line per method and split."""
    text = io.StringIO()
    results = [result for row in comparison.rows for result in row.results]
    names = sorted({name for result in results for name in result["metrics"]})
    costs = ("fit_seconds", "predict_seconds", "tune_seconds", "memory_mb", "n_train", "n_test")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["corpus", "method", "split", *names, *costs, "settings", "failure"])
    for row in comparison.rows:
        if row.failure:
            blank = [""] * (len(names) + len(costs) + 1)
            writer.writerow([comparison.corpus, row.method, "", *blank, row.failure])
        for split, result in zip(comparison.splits, row.results, strict=False):
            values = [result["metrics"].get(name, "") for name in names]
            values += [result[name] for name in costs]
            start = [comparison.corpus, row.method, split]
            writer.writerow([*start, *values, result["settings"], ""])
    return text.getvalue()


def to_latex(comparison: Comparison, columns: tuple[Column, ...] = MAIN_COLUMNS) -> str:
    """Return a table in LaTeX, for the package booktabs."""
    head = " & ".join(["method", *(_latex(column.heading) for column in columns)])
    lines = [
        f"% {summary(comparison)}",
        "\\begin{tabular}{l" + "r" * len(columns) + "}",
        "\\toprule",
        head + " \\\\",
        "\\midrule",
    ]
    for row, cells in zip(comparison.successful, entries(comparison, columns), strict=True):
        texts = [_latex(cell.text).replace("±", "$\\pm$") for cell in cells]
        bold = [
            f"\\textbf{{{text}}}" if cell.best else text
            for text, cell in zip(texts, cells, strict=True)
        ]
        lines.append(" & ".join([_latex(row.title), *bold]) + " \\\\")
    lines += [
        f"{_latex(row.title)} & \\multicolumn{{{len(columns)}}}{{l}}{{{_latex(row.failure)}}} \\\\"
        for row in comparison.rows
        if row.failure
    ]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


def _latex(text: str) -> str:
    return "".join(f"\\{c}" if c in "&%$#_{}" else c for c in text).replace("–", "--")


# The page: self-contained, without scripts


def to_html(comparison: Comparison, *, title: str | None = None) -> str:
    """Return a report that says which method to choose."""
    largest = comparison.largest()
    figure_sections = "".join(_figure_section(*figure) for figure in figures(comparison))
    overview = f'{_table(largest, MAIN_COLUMNS)}<p class="soft">{safe(notes(largest))}</p>'
    sections = [
        f"<p>{safe(summary(largest))}</p>",
        _conclusions(largest),
        _learning_curve(comparison),
        section("All methods", overview),
        f'<div class="figures">{figure_sections}</div>',
        section("More metrics", _table(largest, EXTRA_COLUMNS)),
        _settings(largest),
        _failures(largest),
    ]
    page = whole_page(title or f"Methods on {comparison.corpus}", sections, STYLE)
    return page.replace("style-src 'unsafe-inline'", f"style-src 'unsafe-inline'; {PAGE_POLICY}")


def _conclusions(comparison: Comparison) -> str:
    """Return the conclusions in sentences."""
    lines = []
    for metric, name in (("samples_f1", "samples F1"), ("subset_accuracy", "subset accuracy")):
        best = comparison.best(metric)
        if best is None:
            continue
        equal = [row for row in comparison.rows if _may_be_equal(comparison, row, best, metric)]
        also = (
            f" The difference from {_join(equal)} may be due to chance; all others are worse."
            if equal
            else " All others are significantly worse."
        )
        first = f"<strong>{safe(best.title)}</strong> has the best {name}, {best.mean(metric):.3f}."
        lines.append(f"<p>{first}{safe(also) if len(comparison.rows) > 1 else ''}</p>")
    return section("In short", "\n".join([*lines, _fastest(comparison)])) if lines else ""


def _may_be_equal(comparison: Comparison, row: Row, best: Row, metric: str) -> bool:
    """Return whether chance may explain why a method is not the best."""
    if row is best or not row.results:
        return False
    return (comparison.p_value(row, metric) or 0) >= SIGNIFICANT


def _join(rows: list[Row]) -> str:
    *first, last = [row.title for row in rows]
    return f"{'; '.join(first)} and {last}" if first else last


def _fastest(comparison: Comparison) -> str:
    """Return which method is fastest among those that are about as good as the best."""
    best = comparison.best("samples_f1")
    if best is None:
        return ""
    lowest = best.mean("samples_f1") - NEGLIGIBLE
    fastest = min(
        (row for row in comparison.successful if row.mean("samples_f1") >= lowest), key=_seconds
    )
    if fastest is best:
        return ""
    return (
        f"<p><strong>{safe(fastest.title)}</strong> is the fastest method whose samples F1 is at "
        f"most {NEGLIGIBLE:g} lower. It trains and predicts in {_seconds(fastest):.2g} CPU "
        f"seconds, {safe(best.title)} in {_seconds(best):.2g}.</p>"
    )


def _seconds(row: Row) -> float:
    return row.mean("fit_seconds") + row.mean("predict_seconds")


def _learning_curve(comparison: Comparison) -> str:
    """Return what the last step to more training documents gained, if there is a curve."""
    if comparison.protocol.kind != "curve":
        return ""
    best = comparison.largest().best("samples_f1")
    row = next((row for row in comparison.rows if best and row.method == best.method), None)
    if row is None:
        return ""
    sizes = [result["n_train"] for result in row.results]
    if len(set(sizes)) < 2:
        return ""
    before, last = sorted(set(sizes))[-2:]
    values = row.values("samples_f1")
    f, g = (values[np.array(sizes) == size].mean() for size in (before, last))
    return (
        f"<p>From {before:,} to {last:,} training documents, the samples F1 of {safe(row.title)} "
        f"changed from {f:.3f} to {g:.3f}.</p>"
    )


def _table(comparison: Comparison, columns) -> str:
    rows = [
        (
            safe(row.title),
            *(f"<strong>{_spread(c)}</strong>" if c.best else _spread(c) for c in cells),
        )
        for row, cells in zip(comparison.successful, entries(comparison, columns), strict=True)
    ]
    heads = ["method", *(f">{column.heading}" for column in columns)]
    return f'<div class="scroll">{table(heads, rows)}</div>'


def _spread(entry: Entry) -> str:
    """Return an entry with its standard deviation in small print."""
    mean, sign, spread = entry.text.partition(" ± ")
    return f"{mean} <small>{sign.strip()} {spread}</small>" if sign else mean


def _figure_section(heading: str, sentence: str, figure) -> str:
    image = io.BytesIO()
    figure.savefig(image, format="svg")
    data = base64.b64encode(image.getvalue()).decode()
    image_tag = f'<img alt="{safe(sentence)}" src="data:image/svg+xml;base64,{data}">'
    return section(heading, f'<p class="soft">{safe(sentence)}</p>{image_tag}')


def _settings(comparison: Comparison) -> str:
    rows = [
        (
            safe(row.title),
            safe("; ".join(sorted({_describe(result["settings"]) for result in row.results}))),
        )
        for row in comparison.rows
        if row.results and any(result["settings"] for result in row.results)
    ]
    return section("Settings", table(["method", "chosen on held-out documents"], rows))


def _describe(settings: dict[str, object]) -> str:
    """Return settings as text."""
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in settings.items()
    )


def _failures(comparison: Comparison) -> str:
    rows = [(safe(row.title), safe(row.failure)) for row in comparison.rows if row.failure]
    return section("Not run", table(["method", "why"], rows)) if rows else ""


# Figures


def figures(comparison: Comparison) -> Iterator[tuple[str, str, object]]:
    """Yield a heading, a sentence and a figure for each aspect of a comparison."""
    if not comparison.successful:
        return
    largest = comparison.largest().successful
    styles = {row.method: _style(k) for k, row in enumerate(largest)}
    if comparison.protocol.kind == "curve":
        yield (
            "More training documents",
            "Samples F1 and subset accuracy by the number of training documents.",
            _curves(comparison, comparison.successful[:MAX_LINES], styles),
        )
    yield (
        "Quality",
        "Samples F1 and subset accuracy; bars are the standard deviation over splits.",
        _quality(largest),
    )
    yield (
        "Time and quality",
        "Samples F1 against the CPU time to train and predict; up and to the left is better.",
        _time(largest, styles),
    )
    yield (
        "Rare and common labels",
        "F1 of labels by the number of their training documents.",
        _groups(largest[:MAX_LINES], "by_frequency", "from", "training documents", styles),
    )
    yield (
        "Few and many labels",
        "F1 of documents by how many labels they have.",
        _groups(largest[:MAX_LINES], "by_size", "size", "labels per document", styles),
    )
    with_proba = [row for row in largest if row.results[0]["calibration"]]
    if with_proba:
        yield (
            "Calibration",
            "How often labels of a given probability are right; the diagonal is perfect.",
            _calibration(with_proba[:MAX_LINES], styles),
        )


def require_figures():
    """Return matplotlib's Figure, or raise if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PolytopicError(
            "matplotlib is not installed. Install it with: pip install 'polytopic[plots]'"
        ) from error
    return Figure


def _axes(width=7.0, height=4.0, columns=1):
    Figure = require_figures()
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, columns)
    for axis in np.atleast_1d(axes):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(visible=True, color="#ddd", linewidth=0.6)
    return figure, axes


def _style(k: int) -> dict:
    return {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)]}


def _curves(comparison: Comparison, rows: list[Row], styles: dict[str, dict]):
    figure, axes = _axes(9.0, 4.0, 2)
    sizes = np.array([int(re.match(r"\d+", name)[0]) for name in comparison.splits])  # type: ignore[index]
    for axis, metric, name in zip(
        axes, ("samples_f1", "subset_accuracy"), ("samples F1", "subset accuracy"), strict=True
    ):
        for row in rows:
            values = row.values(metric)
            x = np.unique(sizes)
            mean = [values[sizes == size].mean() for size in x]
            spread = [values[sizes == size].std() for size in x]
            axis.errorbar(x, mean, spread, label=row.title, capsize=2, **styles[row.method])
        axis.set_xscale("log")
        axis.set_xticks(np.unique(sizes), [str(size) for size in np.unique(sizes)], minor=False)
        axis.set_xticks([], minor=True)
        axis.set_xlabel("training documents")
        axis.set_title(name, loc="left", fontsize="medium")
    axes[0].legend(fontsize="small", frameon=False)
    return figure


def _quality(rows: list[Row]):
    figure, axes = _axes(7.0, 1.2 + 0.3 * len(rows))
    places = np.arange(len(rows))
    for k, (metric, name) in enumerate(
        (("samples_f1", "samples F1"), ("subset_accuracy", "subset accuracy"))
    ):
        means = [row.mean(metric) for row in rows]
        spread = [np.nan_to_num(row.std(metric)) for row in rows]
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
    axes.set_xlim(10 ** np.floor(low), 10 ** np.ceil(high))  # whole decades have tick labels
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("CPU seconds to train and predict")
    axes.set_ylabel("samples F1")
    axes.legend(
        fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), ncols=1
    )
    return figure


def _groups(rows: list[Row], group: str, key: str, xlabel: str, styles: dict[str, dict]):
    figure, axes = _axes()
    keys = sorted({part[key] for row in rows for result in row.results for part in result[group]})
    for row in rows:
        means = []
        for value in keys:
            values = [
                part["f1"] for result in row.results for part in result[group] if part[key] == value
            ]
            means.append(np.mean(values) if values else np.nan)
        axes.plot(range(len(keys)), means, label=row.title, **styles[row.method])
    axes.set_xticks(range(len(keys)), _ranges(keys, group))
    axes.set_xlabel(xlabel)
    axes.set_ylabel("F1")
    axes.set_ylim(0, 1)
    axes.legend(fontsize="small", frameon=False)
    return figure


def _ranges(keys: list[int], group: str) -> list[str]:
    """Return the tick labels: sizes, or ranges of training documents."""
    if group == "by_size":
        return [f"{key} or more" if key == LARGEST_SIZE else str(key) for key in keys]
    ends = dict(pairwise(FREQUENCIES))
    return [f"{key}–{ends[key] - 1}" if key in ends else f"{key} or more" for key in keys]


def _calibration(rows: list[Row], styles: dict[str, dict]):
    figure, axes = _axes(5.5, 5.0)
    axes.plot([0, 1], [0, 1], color="#999", linewidth=1, linestyle="--")
    for row in rows:
        bins = _pool_bins(row)
        x, y = ([point[k] for point in bins] for k in range(2))
        axes.plot(x, y, label=row.title, **styles[row.method])
    axes.set_xlabel("probability")
    axes.set_ylabel("share of hits")
    axes.legend(fontsize="small", frameon=False)
    return figure


def _pool_bins(row: Row) -> list[tuple[float, float]]:
    """Return mean probability and share of hits per bin over all splits, except for few pairs."""
    sums = np.zeros((N_BINS, 3))
    for result in row.results:
        for part in result["calibration"]:
            n = part["pairs"]
            sums[part["bin"]] += n, n * part["probability"], n * part["right"]
    return [(p / n, right / n) for n, p, right in sums if n >= MIN_PAIRS]
