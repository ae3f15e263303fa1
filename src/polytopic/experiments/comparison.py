"""Comparison: methods beside each other on a corpus, by repeated splits."""

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
from polytopic.experiments.cells import Cell, Cells, ClusterCells, digest_of
from polytopic.experiments.methods import Method
from polytopic.experiments.parts import Prepared
from polytopic.experiments.protocols import Protocol, Split
from polytopic.experiments.registry import METHODS
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
        Its name, and its name in tables.
    results : list of dict
        What was measured on each split.
    failure : str or None
        Why it has no results.
    """

    method: str
    title: str
    results: list[dict[str, Any]]
    failure: str | None = None

    def values(self, measure: str) -> np.ndarray:
        """Return a measure on each split."""
        return np.array([_value(result, measure) for result in self.results])

    def mean(self, measure: str) -> float:
        """Return the mean of a measure."""
        return float(self.values(measure).mean()) if self.results else np.nan

    def std(self, measure: str) -> float:
        """Return the standard deviation of a measure."""
        return float(self.values(measure).std(ddof=1)) if len(self.results) > 1 else np.nan


def _value(result: dict[str, Any], measure: str) -> float:
    found = result["measures"].get(measure, result.get(measure))
    return np.nan if found is None else found


@dataclass(frozen=True)
class Comparison:
    """What :func:`compare` found.

    Attributes
    ----------
    corpus : str
        The name of the corpus.
    about : dict
        Documents, labels, terms, and labels a document.
    protocol : Protocol
        How splits were made.
    splits : list of str
        Their names.
    rows : list of Row
        The methods, the best samples F1 first; those that failed last.
    """

    corpus: str
    about: dict[str, Any]
    protocol: Protocol
    splits: list[str]
    rows: list[Row]

    def largest(self) -> Comparison:
        """Return the comparison without the splits of a curve that have fewer documents."""
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

    def best(self, measure: str) -> Row | None:
        """Return the method with the highest mean."""
        able = [row for row in self.rows if row.results and not np.isnan(row.mean(measure))]
        return max(able, key=lambda row: row.mean(measure), default=None)

    def chance(self, row: Row, measure: str = "samples_f1") -> float | None:
        """Return how probable so large a difference from the best method is by chance alone.

        See :func:`polytopic.experiments.significance.compare_pairs`.
        """
        best = self.best(measure)
        if best is None or row is best or len(row.results) != len(best.results):
            return None
        return compare_pairs(best.results, row.results, measure)

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        from polytopic.experiments.tables import to_markdown  # here: tables know comparisons

        return to_markdown(self.largest())

    def to_csv(self) -> str:
        """Return all that was measured, a line for each method and split."""
        from polytopic.experiments.tables import to_csv

        return to_csv(self)

    def to_latex(self) -> str:
        """Return the table in LaTeX."""
        from polytopic.experiments.tables import to_latex

        return to_latex(self.largest())

    def to_html(self) -> str:
        """Return a report that stands alone: tables, figures, and what they say."""
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
    tell: Callable[[str], None] = lambda sentence: None,
) -> Comparison:
    """Compare methods on labelled documents.

    Parameters
    ----------
    documents : sequence of Document
        The corpus.
    methods : sequence of str or Method
        Names of :data:`METHODS`, or methods of one's own, whose functions other processes can
        import.
    protocol : Protocol or str, default="auto"
        How to split.
    name : str, default="corpus"
        What the corpus is called.
    language : str or None, default="en"
        Language of the texts.
    folder : path, default="polytopic-compare"
        Where finished cells are kept: what was run is not run again.
    workers : int, default=1
        Processes that run at once, each of one thread.
    tune : int, default=None
        Settings that Optuna tries; a small grid is tried by default, and with 0 nothing is tuned.
    timeout : float, default=None
        Seconds that one method may take on one split.
    client : distributed.Client, default=None
        A Dask cluster whose workers run the cells instead; they must see the ``folder``.
    tell : callable, default=nothing
        Is told of progress, sentence by sentence.
    """
    protocol = Protocol(protocol) if isinstance(protocol, str) else protocol
    if tune and find_spec("optuna") is None:
        raise PolytopicError("Optuna is not installed. Install it: pip install 'polytopic[bench]'.")
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
            raise ValueError("timeout is for processes of this machine, not for a Dask cluster.")
        cells = ClusterCells(Path(folder), client)
    results: dict[tuple[str, str], dict[str, Any]] = {}
    tasks, total = [], 0
    for split in splits:
        documents_digest = digest_of(split.train, split.test)
        for name_of, method in chosen.items():
            asked = (name_of, method.asked, protocol.seed, tune)
            cell = Cell(digest, split.name, documents_digest, *asked)
            total += 1
            kept = cells.kept(cell)
            if kept is not None:
                results[name_of, split.name] = kept
            elif method.missing:
                results[name_of, split.name] = {"failure": method.missing}
            else:
                tasks.append((cell, method, split, place))
    if len(tasks) < total:
        tell(f"{total - len(tasks)} of {total} cells are known already or cannot be run.")

    began, known = time.monotonic(), total - len(tasks)

    def told(cell: Cell, result: dict[str, Any]) -> None:
        done = len(results) + 1
        outcome = result.get("failure") or f"F {result['measures']['samples_f1']:.3f}"
        left = _left((time.monotonic() - began) / (done - known) * (total - done))
        tell(f"{done}/{total} {chosen[cell.method].title} on {cell.split}: {outcome}{left}")

    for cell, result in cells.run(tasks, told):
        results[cell.method, cell.split] = result
    rows = [_row(method, splits, results) for method in chosen.values()]
    rows.sort(key=_rank)
    return Comparison(prepared.name, _about(prepared), protocol, [s.name for s in splits], rows)


def _left(seconds: float) -> str:
    """Return how much time is left, in words; nothing if it is next to none."""
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
        "labels_a_document": float(prepared.Y.sum() / n_docs),
    }
