"""Compare methods on a corpus over repeated splits, and test their differences."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from polytopic.corpus.document import Document
from polytopic.errors import PolytopicError
from polytopic.experiments.methods import Method
from polytopic.experiments.protocols import CountedCorpus, Protocol, Split
from polytopic.experiments.registry import default_methods, find_method
from polytopic.experiments.runner import Cell, ClusterRunner, LocalRunner, digest_arrays

N_PERMUTATIONS = 9999  # random signs of the differences
PER_DOCUMENT = ("samples_f1", "subset_accuracy")  # metrics that results hold for each document


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
    value = result["metrics"].get(metric, result.get(metric))
    return np.nan if value is None else value


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

    @property
    def successful(self) -> list[Row]:
        """The methods that have results."""
        return [row for row in self.rows if row.results]

    def largest(self) -> Comparison:
        """Return the comparison on the largest training sets only, if there is a curve."""
        sizes = {result["n_train"] for row in self.rows for result in row.results}
        if self.protocol.kind != "curve" or len(sizes) < 2:
            return self
        size = f"{max(sizes)} of "
        largest = [k for k, name in enumerate(self.splits) if name.startswith(size)]
        rows = [
            replace(row, results=[row.results[k] for k in largest] if row.results else [])
            for row in self.rows
        ]
        rows.sort(key=_rank)
        return replace(self, rows=rows, splits=[self.splits[k] for k in largest])

    def best(self, metric: str) -> Row | None:
        """Return the method with the highest mean of a metric."""
        rows = [row for row in self.successful if not np.isnan(row.mean(metric))]
        return max(rows, key=lambda row: row.mean(metric), default=None)

    def p_value(self, row: Row, metric: str = "samples_f1") -> float | None:
        """Return the p-value of a method's difference from the best, see :func:`compare_pairs`."""
        best = self.best(metric)
        if best is None or row is best or len(row.results) != len(best.results):
            return None
        return compare_pairs(best.results, row.results, metric)

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        from polytopic.experiments.report import to_markdown  # here: reports import comparisons

        return to_markdown(self.largest())

    def to_csv(self) -> str:
        """Return all metrics, one line per method and split."""
        from polytopic.experiments.report import to_csv

        return to_csv(self)

    def to_latex(self) -> str:
        """Return the table in LaTeX."""
        from polytopic.experiments.report import to_latex

        return to_latex(self.largest())

    def to_html(self) -> str:
        """Return a self-contained page with tables, figures and conclusions."""
        from polytopic.experiments.report import to_html

        return to_html(self)


def compare_pairs(
    first: Sequence[dict[str, Any]], second: Sequence[dict[str, Any]], metric: str
) -> float | None:
    """Return the p-value of the mean difference between two methods.

    For several splits this is the corrected resampled t-test of Nadeau and Bengio ("Inference for
    the generalization error", Machine Learning 52, 2003), which accounts for the documents that
    splits share. For one split it is a permutation test over documents, for metrics that are means
    over documents; None for others.
    """
    if len(first) > 1:
        return _corrected_t(first, second, metric)
    if metric not in PER_DOCUMENT:
        return None
    a, b = (np.array(results[0]["documents"][metric], float) for results in (first, second))
    return _permutation_test(a - b)


def _corrected_t(first, second, metric) -> float:
    difference = np.array(
        [a["metrics"][metric] - b["metrics"][metric] for a, b in zip(first, second, strict=True)]
    )
    n = difference.size
    ratio = float(np.mean([result["n_test"] / result["n_train"] for result in first]))
    variance = difference.var(ddof=1) * (1 / n + ratio)
    if variance == 0:
        return 1.0 if difference.mean() == 0 else 0.0
    return float(2 * stats.t.sf(abs(difference.mean()) / np.sqrt(variance), n - 1))


def _permutation_test(difference: np.ndarray) -> float:
    rng, observed = np.random.default_rng(0), abs(difference.sum())
    nonzero = difference[difference != 0]
    if not nonzero.size:
        return 1.0
    extreme = 0
    for _ in range(0, N_PERMUTATIONS, 1000):
        signs = rng.integers(0, 2, (1000, nonzero.size)) * 2 - 1
        extreme += int((np.abs(signs @ nonzero) >= observed - 1e-12).sum())
    return (extreme + 1) / (N_PERMUTATIONS + 2)


def compare(
    documents: Sequence[Document],
    methods: Sequence[str | Method] | None = None,
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
    methods : sequence of str or Method, default=None
        Names in :func:`all_methods`, which include those of registered models, or methods of your
        own. Other processes must be able to import your functions and classes. By default, about
        ten methods are compared.
    protocol : Protocol or str, default="auto"
        How to split the corpus.
    name : str, default="corpus"
        Name of the corpus.
    language : str or None, default="en"
        Language of the texts.
    folder : path, default="polytopic-compare"
        Folder for finished results, which are not computed again.
    workers : int, default=1
        Number of processes at a time, with one thread each.
    tune : int, default=None
        Number of settings that Optuna tries; by default, a small grid is tried. With 0, nothing is
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
    by_name = {method.name: method for method in _methods(methods)}
    corpus = CountedCorpus.from_documents(name, documents, language)
    splits = protocol.splits(corpus)
    X, Y = corpus.X, corpus.Y
    digest = digest_arrays(X.data, X.indices, X.indptr, Y.indices, Y.indptr)
    corpus_folder = Path(folder) / "corpora" / digest
    if not (corpus_folder / "texts.json").exists():
        corpus.save(corpus_folder)
    runner = LocalRunner(Path(folder), workers, timeout)
    if client is not None:
        if timeout is not None:
            raise ValueError("timeout does not work with a Dask cluster; leave it out.")
        runner = ClusterRunner(Path(folder), client)
    results: dict[tuple[str, str], dict[str, Any]] = {}
    tasks, total = [], len(splits) * len(by_name)
    for split in splits:
        split_digest = digest_arrays(split.train, split.test)
        for method in by_name.values():
            settings = (method.name, method.signature, protocol.seed, tune)
            cell = Cell(digest, split.name, split_digest, *settings)
            stored = runner.load(cell)
            if stored is not None:
                results[method.name, split.name] = stored
            elif method.missing:
                results[method.name, split.name] = {"failure": method.missing}
            else:
                tasks.append((cell, method, split, corpus_folder))
    n_known = total - len(tasks)
    if n_known:
        progress(f"{n_known} of {total} results are known already or cannot be computed.")
    start = time.monotonic()

    def report(cell: Cell, result: dict[str, Any]) -> None:
        done = len(results) + 1
        outcome = result.get("failure") or f"F1 {result['metrics']['samples_f1']:.3f}"
        remaining = time_left((time.monotonic() - start) / (done - n_known) * (total - done))
        title = by_name[cell.method].title
        progress(f"{done}/{total} {title} on {cell.split}: {outcome}{remaining}")

    for cell, result in runner.run(tasks, report):
        results[cell.method, cell.split] = result
    rows = [_row(method, splits, results) for method in by_name.values()]
    rows.sort(key=_rank)
    return Comparison(name, _sizes(corpus), protocol, [split.name for split in splits], rows)


def _methods(methods: Sequence[str | Method] | None) -> list[Method]:
    methods = default_methods() if methods is None else methods
    return [one if isinstance(one, Method) else find_method(one) for one in methods]


def time_left(seconds: float) -> str:
    """Return the remaining time in words; nothing if there is little."""
    if seconds < 10:
        return ""
    if seconds < 90:
        return f" (about {seconds:.0f} seconds left)"
    return f" (about {seconds / 60:.0f} minutes left)"


def _rank(row: Row) -> tuple[bool, float]:
    return not row.results, -float(np.nan_to_num(row.mean("samples_f1")))


def _row(method: Method, splits: Sequence[Split], results) -> Row:
    by_split = [results[method.name, split.name] for split in splits]
    failures = [result["failure"] for result in by_split if "failure" in result]
    if failures:
        return Row(method.name, method.title, [], failures[0])
    return Row(method.name, method.title, by_split)


def _sizes(corpus: CountedCorpus) -> dict[str, Any]:
    n_docs, n_labels = corpus.Y.shape
    return {
        "documents": n_docs,
        "labels": n_labels,
        "terms": corpus.X.shape[1],
        "labels_per_document": float(corpus.Y.sum() / n_docs),
    }
