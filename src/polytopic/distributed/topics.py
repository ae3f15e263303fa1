"""CoL on a cluster: workers compute the expectations of their documents, and sums are merged."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from polytopic.distributed.engine import (
    broadcast,
    delayed,
    map_tasks,
    sum_results,
    sum_tuples,
    tree_reduce,
)
from polytopic.distributed.learning import CollectedRows, take_rows
from polytopic.models.col.label_prior import distinct_sets
from polytopic.models.col.topics import Topics, WordIndex
from polytopic.models.col.training import (
    TopicDocuments,
    TrainingTrace,
    label_means,
    maximize,
    penalized_bound,
)


class TopicParts:
    """Documents in parts on a cluster, with the methods of :class:`TopicDocuments`.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    parts : list
        Tasks that give pairs of CSR matrices, words and labels.
    sizes : list of int
        Number of documents in each part.
    progress : callable, default=None
        Called with the number of EM steps done and the largest number of steps.
    """

    def __init__(self, client: Any, parts: list, sizes: list[int], progress: Any = None):
        self.client, self.sizes, self.progress = client, sizes, progress
        self.parts = client.persist(parts)
        self._starts = np.cumsum([0, *sizes])
        self._docs_by_part: np.ndarray | None = None

    @classmethod
    def from_rows(cls, rows: CollectedRows, progress: Any = None) -> TopicParts:
        """Divide rows into parts, in order."""
        return cls(rows.client, *rows.in_order(), progress)

    def _map(self, function: Callable, *arguments: Any) -> list:
        """Return one task per part: the function applied to its :class:`TopicDocuments`."""
        return map_tasks(partial(_on_part, function), self.parts, *arguments)

    def _gather(self, futures: list) -> list:
        return self.client.gather(self.client.compute(futures))

    def _merge(self, tasks: list, merge: Callable) -> Any:
        return self.client.compute(tree_reduce(tasks, merge)).result()

    @property
    def _label_docs(self) -> np.ndarray:
        """Number of documents of each label in each part."""
        if self._docs_by_part is None:
            self._docs_by_part = np.array(self._gather(self._map(_label_docs)))
        return self._docs_by_part

    @property
    def label_docs(self) -> np.ndarray:
        """Number of documents of each label."""
        return self._label_docs.sum(axis=0)

    def nonempty(self) -> np.ndarray:
        """Return the rows of documents that have words."""
        rows = self._gather(self._map(TopicDocuments.nonempty))
        return np.concatenate([a + b for a, b in zip(self._starts, rows, strict=False)])

    def rows(self, rows):
        """Return the word counts and labels of some documents, which come to the client."""
        rows = np.asarray(rows)
        owner = np.searchsorted(self._starts, rows, side="right") - 1
        return self.client.compute(
            take_rows(self.parts, owner, rows - self._starts[owner])
        ).result()

    def take(self, rows) -> TopicParts:
        """Return some of the documents; rows are in ascending order."""
        borders = np.searchsorted(rows, self._starts)
        pairs = zip(self._starts, pairwise(borders), strict=False)
        rows_by_part = [rows[a:b] - start for start, (a, b) in pairs]
        take = delayed(_take_rows)
        parts = [
            take(part, part_rows)
            for part, part_rows in zip(self.parts, rows_by_part, strict=True)
            if part_rows.size
        ]
        sizes = [part_rows.size for part_rows in rows_by_part if part_rows.size]
        return TopicParts(self.client, parts, sizes, self.progress)

    def with_labels(self, columns) -> TopicParts:
        """Return the documents with these label columns, in this order."""
        parts = map_tasks(_with_labels, self.parts, columns)
        return TopicParts(self.client, parts, self.sizes, self.progress)

    def label_sums(self) -> np.ndarray:
        """Return four sums over each label's documents that tell labels apart."""
        sums = delayed(partial(_on_part, TopicDocuments.label_sums))
        tasks = [sums(part, int(k)) for part, k in zip(self.parts, self._starts, strict=False)]
        return self._merge(tasks, sum_results)

    def word_sums(self) -> np.ndarray:
        """Return the total count of each word."""
        return self._merge(self._map(TopicDocuments.word_sums), sum_results)

    def label_words(self) -> sparse.csr_matrix:
        """Return the word counts of each label; a document's words are split among its labels."""
        return self._merge(self._map(TopicDocuments.label_words), sum_results)

    def members(self, labels, positions) -> sparse.csr_matrix:
        """Return the words of documents: of each label, the one at this position among its own."""
        before = np.vstack(
            [np.zeros_like(self._label_docs[:1]), np.cumsum(self._label_docs, axis=0)]
        )
        owner = (before[1:, labels] <= positions).sum(axis=0)
        parts = np.unique(owner).tolist()
        members = delayed(partial(_on_part, TopicDocuments.members))
        words = self._gather(
            [
                members(self.parts[p], labels[mask], (positions - before[p, labels])[mask])
                for p in parts
                for mask in [owner == p]
            ]
        )
        order = np.argsort(np.concatenate([np.flatnonzero(owner == p) for p in parts]))
        return sparse.vstack(words, format="csr")[order]

    def label_sets(self) -> tuple[sparse.csr_matrix, np.ndarray]:
        """Return the distinct label sets, and the number of documents of each."""
        return self._merge(self._map(TopicDocuments.label_sets), _merge_sets)

    def fit(self, topics: Topics, *, smoothing, max_iter, tol) -> TrainingTrace:
        """Run variational EM as :meth:`TopicDocuments.fit` does, one graph per step.

        Topics and posteriors stay with the workers; only the bound comes to the client.
        """
        expect, bound, step_to = map(delayed, (_expect, _bound, _maximize))
        trace, docs = TrainingTrace(topics), broadcast(self.label_docs)
        current, posteriors = broadcast(topics), [None] * len(self.parts)
        for step in range(max_iter + 1):
            expected = [expect(*pair, current) for pair in zip(self.parts, posteriors, strict=True)]
            sums = tree_reduce([pair[1] for pair in expected], sum_tuples)
            value = bound(current, sums, smoothing)
            following = step_to(current, docs, sums, smoothing)
            value, following, *posteriors = self.client.persist(
                [value, following, *(pair[0] for pair in expected)]
            )
            trace.record(self.client.compute(value).result(), tol)
            if self.progress is not None:
                self.progress(step, max_iter)
            if trace.converged or step == max_iter:
                break
            current = following
        if topics.family == "factored":
            posteriors = map_tasks(_infer_precisely, self.parts, current)
        tasks = map_tasks(_topic_shares, posteriors)
        trace.topics, sums = self._gather([current, tree_reduce(tasks, sum_results)])
        trace.label_topics = label_means(sums, self.label_docs)
        return trace

    def fit_stepwise(self, topics: Topics, **settings) -> TrainingTrace:
        """Raise ValueError: batches are drawn from all documents, which no worker has."""
        raise ValueError("batch_size works on one machine only; on Dask, leave it None.")


# On workers


def _on_part(function, part, *arguments):
    return function(TopicDocuments(*part), *arguments)


def _label_docs(documents):
    return documents.label_docs


def _take_rows(part, rows):
    return TopicDocuments(*part).rows(rows)


def _with_labels(part, columns):
    documents = TopicDocuments(*part).with_labels(columns)
    return documents.X, documents.Y


def _expect(part, posteriors, topics):
    """Return the posteriors of a part, and sums of their expectations: the E step."""
    X, Y = part
    inference = topics.infer(X, Y, known=posteriors)
    sums = inference.bounds.sum(), inference.log_shares(), inference.word_counts(WordIndex(X))
    return inference, sums


def _bound(topics, sums, smoothing):
    return penalized_bound(topics, sums[0], smoothing)


def _maximize(topics, docs, sums, smoothing):
    return maximize(topics, docs, sums[1], sums[2].copy(), smoothing)


def _infer_precisely(part, topics):
    return topics.infer(*part, topics.scoring)


def _topic_shares(inference):
    return inference.topic_shares()


def _merge_sets(parts):
    """Return the distinct label sets of all parts, and the number of documents of each."""
    sets = sparse.vstack([sets for sets, _ in parts], format="csr")
    docs = np.concatenate([docs for _, docs in parts])
    distinct, _ = distinct_sets(sets)
    places = {tuple(row): k for k, row in enumerate(_label_lists(distinct))}
    total = np.zeros(len(places))
    for row, n_docs in zip(_label_lists(sets), docs, strict=True):
        total[places[tuple(row)]] += n_docs
    return distinct, total


def _label_lists(sets):
    return [row.tolist() for row in np.split(sets.indices, sets.indptr[1:-1])]
