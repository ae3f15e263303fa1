"""Compare methods on a corpus over repeated splits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from polytopic.corpus.document import Document
from polytopic.errors import PolytopicError
from polytopic.experiments.methods import Method
from polytopic.experiments.parts import Prepared
from polytopic.experiments.protocols import Protocol, Split
from polytopic.experiments.registry import METHODS
from polytopic.experiments.runner import Cell, Cells, ClusterCells, digest_of
from polytopic.experiments.significance import compare_pairs

DEFAULT = (
    "mml",
    "mml-exact",
    "pmm1",
    "pdmm",
    "nb",
    "svm",
    "svm-threshold",
    "knn",
    "nb-one-vs-rest",
)


@dataclass(frozen=True)
class Row:
    """A method in a comparison.

    Attributes
    ----------
    method, title : str
        Name of the method, and its name in tables.
    results : list of dict
        Settings, costs and metrics on each split.
    failure : str or None
        Why there are no results.
    """

    method: str
    title: str
    results: list[dict[str, Any]]
    failure: str | None = None

    def values(self, metric: str) -> np.ndarray:
        """Return a metric on each split."""
        return np.array([_value(result, metric) for result in self.results])

    def mean(self, metric: str) -> float:
        """Return the mean of a metric over splits."""
        return float(self.values(metric).mean()) if self.results else np.nan

    def std(self, metric: str) -> float:
        """Return the standard deviation of a metric over splits."""
        return float(self.values(metric).std(ddof=1)) if len(self.results) > 1 else np.nan


def _value(result: dict[str, Any], metric: str) -> float:
    found = result["metrics"].get(metric, result.get(metric))
    return np.nan if found is None else found


@dataclass(frozen=True)
class Comparison:
    """The result of :func:`compare`.

    Attributes
    ----------
    corpus : str
        Name of the corpus.
    about : dict
        Numbers of documents, labels, terms, and labels per document.
    protocol : Protocol
        How the corpus was split.
    splits : list of str
        Names of the splits.
    rows : list of Row
        The methods, the best samples F1 first, those that failed last.
    """

    corpus: str
    about: dict[str, Any]
    protocol: Protocol
    splits: list[str]
    rows: list[Row]

    def largest(self) -> Comparison:
        """Return the comparison on the largest training sets only, if there is a curve."""
        sizes = {one["n_train"] for row in self.rows for one in row.results}
        if self.protocol.kind != "curve" or len(sizes) < 2:
            return self
        size = f"{max(sizes)} of "
        kept = [k for k, name in enumerate(self.splits) if name.startswith(size)]
        rows = [
            replace(row, results=[row.results[k] for k in kept] if row.results else [])
            for row in self.rows
        ]
        rows.sort(key=_rank)
        return replace(self, rows=rows, splits=[self.splits[k] for k in kept])

    def best(self, metric: str) -> Row | None:
        """Return the method with the highest mean of a metric."""
        able = [row for row in self.rows if row.results and not np.isnan(row.mean(metric))]
        return max(able, key=lambda row: row.mean(metric), default=None)

    def p_value(self, row: Row, metric: str = "samples_f1") -> float | None:
        """Return the p-value of a method's difference from the best method.

        See :func:`polytopic.experiments.significance.compare_pairs`.
        """
        best = self.best(metric)
        if best is None or row is best or len(row.results) != len(best.results):
            return None
        return compare_pairs(best.results, row.results, metric)

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        from polytopic.experiments.tables import to_markdown  # imports this module

        return to_markdown(self.largest())

    def to_csv(self) -> str:
        """Return all metrics, one line per method and split."""
        from polytopic.experiments.tables import to_csv

        return to_csv(self)

    def to_latex(self) -> str:
        """Return the table in LaTeX."""
        from polytopic.experiments.tables import to_latex

        return to_latex(self.largest())

    def to_html(self) -> str:
        """Return a self-contained page with tables, figures and conclusions."""
        from polytopic.experiments.report import to_html

        return to_html(self)


def compare(
    documents: Sequence[Document],
    methods: Sequence[str | Method] = DEFAULT,
    *,
    protocol: Protocol | str = "auto",
    name: str = "corpus",
    language: str | None = "en",
    folder: str | Path = "polytopic-compare",
    workers: int = 1,
    tune: int | None = None,
    timeout: float | None = None,
    client: Any = None,
    progress: Callable[[str], None] = lambda sentence: None,
) -> Comparison:
    """Compare methods on labelled documents.

    Parameters
    ----------
    documents : sequence of Document
        The corpus.
    methods : sequence of str or Method
        Names in :data:`METHODS`, or your own methods, whose functions other processes must be able
        to import.
    protocol : Protocol or str, default="auto"
        How to split the corpus.
    name : str, default="corpus"
        Name of the corpus.
    language : str or None, default="en"
        Language of the texts.
    folder : path, default="polytopic-compare"
        Folder of finished results, which are not computed again.
    workers : int, default=1
        Number of processes at a time, with one thread each.
    tune : int, default=None
        Number of settings that Optuna tries; by default a small grid is tried. With 0 nothing is
        tuned.
    timeout : float, default=None
        Seconds after which a method is stopped on a split.
    client : distributed.Client, default=None
        A Dask cluster to run the methods on instead; its workers must see the ``folder``.
    progress : callable, optional
        Called with a sentence whenever a method has finished on a split.
    """
    protocol = Protocol(protocol) if isinstance(protocol, str) else protocol
    if tune and find_spec("optuna") is None:
        raise PolytopicError(
            "Optuna is not installed. Install it with: pip install 'polytopic[bench]'"
        )
    chosen = {method.name: method for method in map(_method, methods)}
    prepared = Prepared.of(name, documents, language)
    splits = protocol.splits(prepared)
    X, Y = prepared.X, prepared.Y
    digest = digest_of(X.data, X.indices, X.indptr, Y.indices, Y.indptr)
    place = Path(folder) / "corpora" / digest
    if not (place / "texts.json").exists():
        prepared.save(place)
    cells = Cells(Path(folder), workers, timeout)
    if client is not None:
        if timeout is not None:
            raise ValueError("timeout does not work with a Dask cluster; leave it out.")
        cells = ClusterCells(Path(folder), client)
    results: dict[tuple[str, str], dict[str, Any]] = {}
    tasks, total = [], 0
    for split in splits:
        documents_digest = digest_of(split.train, split.test)
        for name_of, method in chosen.items():
            asked = (name_of, method.signature, protocol.seed, tune)
            cell = Cell(digest, split.name, documents_digest, *asked)
            total += 1
            known_result = cells.load(cell)
            if known_result is not None:
                results[name_of, split.name] = known_result
            elif method.missing:
                results[name_of, split.name] = {"failure": method.missing}
            else:
                tasks.append((cell, method, split, place))
    if len(tasks) < total:
        progress(
            f"{total - len(tasks)} of {total} results are known already or cannot be computed."
        )

    began, known = time.monotonic(), total - len(tasks)

    def report(cell: Cell, result: dict[str, Any]) -> None:
        done = len(results) + 1
        outcome = result.get("failure") or f"F {result['metrics']['samples_f1']:.3f}"
        left = _time_left((time.monotonic() - began) / (done - known) * (total - done))
        progress(f"{done}/{total} {chosen[cell.method].title} on {cell.split}: {outcome}{left}")

    for cell, result in cells.run(tasks, report):
        results[cell.method, cell.split] = result
    rows = [_row(method, splits, results) for method in chosen.values()]
    rows.sort(key=_rank)
    return Comparison(prepared.name, _about(prepared), protocol, [s.name for s in splits], rows)


def _time_left(seconds: float) -> str:
    """Return the remaining time in words; nothing if there is little."""
    if seconds < 10:
        return ""
    if seconds < 90:
        return f" (about {seconds:.0f} seconds left)"
    return f" (about {seconds / 60:.0f} minutes left)"


def _rank(row: Row) -> tuple[bool, float]:
    return not row.results, -float(np.nan_to_num(row.mean("samples_f1")))


def _method(method: str | Method) -> Method:
    if isinstance(method, Method):
        return method
    if method not in METHODS:
        raise ValueError(f"method == {method!r}, must be one of {', '.join(METHODS)}.")
    return METHODS[method]


def _row(method: Method, splits: Sequence[Split], results) -> Row:
    own = [results[method.name, split.name] for split in splits]
    failures = [result["failure"] for result in own if "failure" in result]
    if failures:
        return Row(method.name, method.title, [], failures[0])
    return Row(method.name, method.title, own)


def _about(prepared: Prepared) -> dict[str, Any]:
    n_docs, n_labels = prepared.Y.shape
    return {
        "documents": n_docs,
        "labels": n_labels,
        "terms": prepared.X.shape[1],
        "labels_per_document": float(prepared.Y.sum() / n_docs),
    }
