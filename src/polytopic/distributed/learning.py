"""Counting and learning: tables of counts and rows from one pass, and labelers fitted on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from sys import getsizeof
from typing import Any

import numpy as np
from scipy import sparse

from polytopic.counts import TUNING_DOCS, DocumentRows, LabelSetCounts, TextSample
from polytopic.distributed.engine import (
    Progress,
    broadcast,
    delayed,
    get_client,
    map_tasks,
    n_workers,
    run,
    sum_results,
    tree_reduce,
)
from polytopic.distributed.partitions import PartReader, SkippedLines, read
from polytopic.errors import PolytopicError
from polytopic.labeler import Labeler
from polytopic.labeler.learning import learn_counts, learn_documents, new_analyzer, new_model
from polytopic.labeler.reading import LabelReader, collect_rows, count_texts
from polytopic.labels import LabelSpace, widen
from polytopic.models.registry import CLUSTER_QUALITY, LARGE_LABELS, find_model, load
from polytopic.text import Analyzer

# Labelers


def fit(
    labeler: Labeler,
    corpus: Any,
    *,
    parts: int | None = None,
    client: Any = None,
    progress: Progress | None = None,
    on_skipped: Callable[[SkippedLines], object] | None = None,
    **reading: Any,
) -> Labeler:
    """Fit a labeler on a corpus in partitions, and return it.

    A count model is bit for bit the same as with ``labeler.fit``. It is tuned
    (``temperature="auto"``) on the same thousand documents, of which counts, not texts, come to the
    client.

    CoL takes the same steps as on one machine, up to the order of summation. The counts of the
    documents that it holds out, at most 3000, and of one document per topic come to the client.
    MML learns by rounds of CoCoA+, in which parts of the documents are visited in parallel: its
    weights differ from those learned on one machine, and depend on the number of parts. BoosTexter
    cannot be fitted on a cluster.

    Parameters
    ----------
    labeler : Labeler
        The labeler to fit.
    corpus : anything that :func:`read` accepts
        The labelled documents.
    parts : int, default=None
        Number of parts that CoL and MML learn from in parallel; by default one per worker.
    client : distributed.Client, default=None
        The cluster; by default the client that was created last.
    progress : callable, default=None
        Called with the number of finished partitions and of all partitions; then, by CoL and MML,
        with the number of finished steps or rounds and the largest number of them.
    on_skipped : callable, default=None
        Called with the lines that could not be read, if ``on_error="skip"``.
    **reading
        As for :func:`read`.
    """
    model, corpus = new_model(labeler), read(corpus, **reading)
    _check_distributable(model)
    if labeler.features:
        raise PolytopicError("Features beside the words are not learned on Dask; use Labeler.fit.")
    if labeler.guarantee is not None:
        raise ValueError("guarantee needs the documents on one machine; Dask has none to hold out.")
    client = get_client(client)
    if model.learns_from == "documents":
        summary = _fit_documents(labeler, corpus, parts, client, progress)
    else:
        summary = _fit_counts(labeler, model, corpus, client, progress)
    if on_skipped is not None:
        on_skipped(summary.skipped)
    LabelReader(labeler.tree, renamed=summary.renamed).warn(labeler.classes_.tolist())
    return labeler


def _check_distributable(model) -> None:
    if not model.can_distribute:
        raise PolytopicError(
            f"{type(model).__name__} learns on one machine only, not on Dask; use another model, "
            f"or Labeler(quality={CLUSTER_QUALITY!r}) with fewer than {LARGE_LABELS} labels."
        )


def _fit_counts(labeler, model, corpus, client, progress) -> CorpusSummary:
    analyzer, fields = new_analyzer(labeler), labeler.fields
    summary = count_corpus(
        corpus,
        analyzer,
        fields,
        tree=labeler.tree,
        sample_size=TUNING_DOCS if model.needs_documents else 0,
        client=client,
        progress=progress,
    )
    rows = collect_rows(summary.sample.texts, summary.sample.labels, analyzer, fields)
    labeler.set_state(learn_counts(labeler, summary.counts, analyzer, sample=rows))
    return summary


def _fit_documents(labeler, corpus, n_parts, client, progress) -> CorpusSummary:
    analyzer = new_analyzer(labeler)
    rows, summary = collect(client, corpus, analyzer, labeler.fields, labeler.tree, progress)
    counts = summary.counts

    def learn(model, vocabulary, weights):
        _check_distributable(model)
        view = vocabulary, counts.labels, weights
        collected = CollectedRows(client, rows, summary.sizes, n_parts, view)
        parts_class = load(find_model(model.name).partitions)
        documents = parts_class.from_rows(collected, progress)
        model.fit_documents(documents, counts.labels, counts.indicator, counts.set_docs)

    labeler.set_state(learn_documents(labeler, counts, learn, analyzer))
    return summary


@dataclass
class CorpusSummary:
    """What the client learns about documents; the sum of two describes all of their documents.

    Attributes
    ----------
    counts : LabelSetCounts
        Table of counts.
    renamed : dict of str to str
        Names of labels that were read, and their ids.
    skipped : SkippedLines
        Lines that could not be read.
    sample : TextSample
        Some documents as bags of words, selected by their contents.
    sizes : tuple of int
        Number of documents of each partition.
    """

    counts: LabelSetCounts
    renamed: dict[str, str]
    skipped: SkippedLines
    sample: TextSample
    sizes: tuple[int, ...] = ()

    def __sizeof__(self) -> int:
        return getsizeof(self.counts)  # so that Dask knows how much memory it takes

    def __add__(self, other: CorpusSummary) -> CorpusSummary:
        return CorpusSummary(
            self.counts + other.counts,
            self.renamed | other.renamed,
            self.skipped + other.skipped,
            self.sample + other.sample,
            self.sizes + other.sizes,
        )


# Tables of counts


def count(
    corpus: Any,
    analyzer: Analyzer | None = None,
    *,
    language: str | None = "en",
    fields: Any = None,
    client: Any = None,
    progress: Progress | None = None,
    **reading: Any,
) -> LabelSetCounts:
    """Count the terms of documents by label set, in one pass over the partitions.

    The table is bit for bit the same as on one machine, however the corpus is cut, as long as all
    counts are integers; with fractional weights of fields, the last bits differ.

    Parameters
    ----------
    corpus : anything that :func:`read` accepts
        The documents; those without labels are not counted.
    analyzer : Analyzer, default=None
        Turns texts into terms; by default the analyzer of the ``language``.
    language : str or None, default="en"
        Language of the texts.
    fields : mapping of str to float, default=None
        Weights of fields.
    client : distributed.Client, default=None
        The cluster; by default the client that was created last.
    progress : callable, default=None
        Called with the number of finished partitions and of all partitions.
    **reading
        As for :func:`read`.
    """
    analyzer, corpus = analyzer or Analyzer(language), read(corpus, **reading)
    return count_corpus(corpus, analyzer, fields, client=client, progress=progress).counts


def count_corpus(
    corpus, analyzer, fields, *, tree=None, sample_size=0, client=None, progress=None
) -> CorpusSummary:
    """Return all that a count model learns from: the table, and a sample for tuning."""
    settings = broadcast((corpus.reading, analyzer, fields, tree, sample_size))
    leaves = map_tasks(count_part, corpus.parts, settings)
    return run(get_client(client), leaves, tree_reduce(leaves, sum_results), progress)


def count_part(part, settings) -> CorpusSummary:
    """Count the documents of a part, on a worker."""
    reading, analyzer, fields, tree, sample_size = settings
    reader, sample, labels = PartReader(part, reading), TextSample(sample_size), LabelReader(tree)
    counts = count_texts(reader.documents(), None, analyzer, fields, sample, reader=labels)
    return CorpusSummary(
        counts, labels.renamed, reader.skipped, sample.count_terms(analyzer, fields)
    )


# Rows of counts that stay on workers


def collect(client, corpus, analyzer, fields, tree, progress) -> tuple[list, CorpusSummary]:
    """Return the rows of each partition as tasks, and a summary of them."""
    settings = broadcast((corpus.reading, analyzer, fields, tree))
    rows = client.persist(map_tasks(_collect_part, corpus.parts, settings))
    leaves = map_tasks(_summarize, rows)
    return rows, run(client, leaves, tree_reduce(leaves, sum_results), progress)


def _collect_part(part, settings) -> tuple[DocumentRows, dict[str, str], SkippedLines]:
    reading, analyzer, fields, tree = settings
    reader, labels = PartReader(part, reading), LabelReader(tree)
    rows = collect_rows(reader.documents(), None, analyzer, fields, reader=labels)
    return rows, labels.renamed, reader.skipped


def _summarize(collected) -> CorpusSummary:
    rows, renamed, skipped = collected
    return CorpusSummary(rows.table(), renamed, skipped, TextSample(0), (rows.X.shape[0],))


@dataclass
class CollectedRows:
    """Rows on workers, to be divided into parts of about the same size.

    Parts depend on the number of documents, not on how files are cut into partitions. Each is a
    task that returns a pair of CSR matrices, words and labels.

    Attributes
    ----------
    client : distributed.Client
        The cluster.
    rows : list
        Tasks that return the rows of each partition.
    sizes : sequence of int
        Number of documents of each partition.
    n_parts : int or None
        Number of parts; None means one per worker.
    view : tuple
        Vocabulary, labels and term weights that matrices are made of.
    """

    client: Any
    rows: list
    sizes: Any
    n_parts: int | None
    view: tuple

    def __post_init__(self):
        self._ends = np.cumsum([0, *self.sizes])
        n_parts = self.n_parts or n_workers(self.client)
        self._n_parts = max(1, min(n_parts, int(self._ends[-1])))
        self._slice, self._stack = delayed(_slice_rows), delayed(_stack)
        self._view = broadcast(self.view)

    def deal(self) -> list:
        """Return parts that get the documents in turn, so that they resemble each other."""
        parts = []
        for k in range(self._n_parts):
            starts = [int(k - end) % self._n_parts for end in self._ends[:-1]]
            pieces = [
                self._slice(rows, slice(start, None, self._n_parts), self._view)
                for rows, start in zip(self.rows, starts, strict=True)
            ]
            parts.append(self._stack(pieces))
        return self.client.persist(parts)

    def in_order(self) -> tuple[list, list[int]]:
        """Return parts of consecutive documents, and their sizes."""
        ends = self._ends
        borders = np.linspace(0, ends[-1], self._n_parts + 1).astype(int)
        parts = []
        for start, stop in pairwise(borders.tolist()):
            touched = np.flatnonzero((ends[:-1] < stop) & (ends[1:] > start))
            pieces = [
                self._slice(
                    self.rows[p],
                    slice(max(start - ends[p], 0), min(stop, ends[p + 1]) - ends[p]),
                    self._view,
                )
                for p in touched
            ]
            parts.append(self._stack(pieces))
        return self.client.persist(parts), np.diff(borders).tolist()


def _slice_rows(collected, places, view):
    vocabulary, labels, weights = view
    rows = collected[0]
    X = vocabulary.select(rows.X[places], rows.terms)
    X = X if weights is None else weights.transform(X, copy=False)
    return X, widen(rows.Y[places], rows.labels, LabelSpace(labels))


def _stack(pieces):
    X, Y = (sparse.vstack(matrices, format="csr") for matrices in zip(*pieces, strict=True))
    return X, Y


def take_rows(parts: list, owner: np.ndarray, positions: np.ndarray) -> Any:
    """Return a task for the rows of documents, given by their part and position in it."""
    owners = np.unique(owner).tolist()
    take, join = delayed(_take), delayed(_join)
    order = np.argsort(np.concatenate([np.flatnonzero(owner == p) for p in owners]))
    return join([take(parts[p], positions[owner == p]) for p in owners], order)


def _take(part, rows):
    X, Y = part
    return X[rows], Y[rows]


def _join(pieces, order):
    X, Y = _stack(pieces)
    return X[order], Y[order]
