"""Comparisons as tables: for a terminal, in Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from typing import NamedTuple

import numpy as np

from polytopic.experiments.comparison import Comparison, Row

SIGNIFICANT = 0.05  # p-value below which a method is called worse than the best


class Column(NamedTuple):
    """A column of a table: a metric, its heading and digits, and whether higher is better."""

    metric: str
    heading: str
    digits: int = 3
    higher: bool = True


MAIN = (
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


def entries(comparison: Comparison, columns: tuple[Column, ...] = MAIN) -> list[list[Entry]]:
    """Return the cells of the methods that have results."""
    rows = comparison.successful
    return [[_entry(comparison, row, column) for column in columns] for row in rows]


def _entry(comparison: Comparison, row: Row, column: Column) -> Entry:
    means = np.array([each.mean(column.metric) for each in comparison.successful])
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


def to_markdown(comparison: Comparison, columns: tuple[Column, ...] = MAIN) -> str:
    """Return a table in Markdown."""
    lines = [
        "| method | " + " | ".join(column.heading for column in columns) + " |",
        "|" + " --- |" * (len(columns) + 1),
    ]
    for row, cells in zip(comparison.successful, entries(comparison, columns), strict=True):
        shown = (f"**{cell.text}**" if cell.best else cell.text for cell in cells)
        lines.append(f"| {row.title} | " + " | ".join(shown) + " |")
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
    more = ("fit_seconds", "predict_seconds", "tune_seconds", "memory_mb", "n_train", "n_test")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["corpus", "method", "split", *names, *more, "settings", "failure"])
    for row in comparison.rows:
        if row.failure:
            blank = [""] * (len(names) + len(more) + 1)
            writer.writerow([comparison.corpus, row.method, "", *blank, row.failure])
        for split, one in zip(comparison.splits, row.results, strict=False):
            values = [one["metrics"].get(name, "") for name in names]
            others = [one[name] for name in more]
            line = [comparison.corpus, row.method, split, *values, *others, one["settings"], ""]
            writer.writerow(line)
    return text.getvalue()


def to_latex(comparison: Comparison, columns: tuple[Column, ...] = MAIN) -> str:
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
        shown = [_latex(cell.text).replace("±", "$\\pm$") for cell in cells]
        bold = [
            f"\\textbf{{{text}}}" if cell.best else text
            for text, cell in zip(shown, cells, strict=True)
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
