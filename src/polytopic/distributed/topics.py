"""Topics learned from documents in parts: expectations where they are, and sums of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from polytopic.distributed.engine import merged, shared, tasks
from polytopic.distributed.rows import rows_of
from polytopic.models.label_training import distinct_sets
from polytopic.models.topic_documents import TopicDocuments, label_words, members
from polytopic.models.topic_training import (
    Course,
    maximised,
    means_of,
    objective,
    start_topics,
)
from polytopic.models.topics import Inference, WordIndex


class TopicParts:
    """Documents in parts, with what :class:`polytopic.models.topic_documents.TopicDocuments` can.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    parts : list
        Tasks of pairs of matrices, words and labels.
    sizes : list of int
        Documents in each part.
    progress : callable, default=None
        Is called with the number of steps taken, and of all that may be.
    """

    def __init__(self, client: Any, parts: list, sizes: list[int], progress: Any = None):
        self.client, self.sizes, self.progress = client, sizes, progress
        self.parts = client.persist(parts)
        self._own_docs: np.ndarray | None = None

    def _all(self, function, *given) -> list:
        """Return what a function makes of each part."""
        found = tasks(function, self.parts, *given, name=function.__name__.strip("_"))
        return self.client.gather(self.client.compute(found))

    def _sum(self, function, *given) -> Any:
        """Return the sum of what a function makes of each part."""
        found = tasks(function, self.parts, *given, name=function.__name__.strip("_"))
        return self.client.compute(merged(found, _sum)).result()

    @property
    def _docs(self) -> np.ndarray:
        """Documents of each label in each part."""
        if self._own_docs is None:
            self._own_docs = np.array(self._all(_label_docs))
        return self._own_docs

    @property
    def label_docs(self) -> np.ndarray:
        """Documents of each label."""
        return self._docs.sum(axis=0)

    def known(self) -> np.ndarray:
        """Return the places of documents that have words."""
        return np.flatnonzero(np.concatenate(self._all(_has_words)))

    def rows(self, places):
        """Return some documents, which come to the client: word counts and labels."""
        places, ends = np.asarray(places), np.cumsum([0, *self.sizes])
        owner = np.searchsorted(ends, places, side="right") - 1
        return self.client.compute(rows_of(self.parts, owner, places - ends[owner])).result()

    def part(self, places) -> TopicParts:
        """Return these documents alone; places rise."""
        ends = np.cumsum([0, *self.sizes])
        borders = np.searchsorted(places, ends)
        own = [
            (part, places[a:b] - first)
            for part, a, b, first in zip(
                self.parts, borders[:-1], borders[1:], ends[:-1], strict=True
            )
            if b > a
        ]
        import dask

        take = dask.delayed(_rows)
        taken = [take(part, rows) for part, rows in own]
        return TopicParts(self.client, taken, [rows.size for _, rows in own], self.progress)

    def over(self, columns) -> TopicParts:
        """Return the documents with these labels, in this order."""
        parts = tasks(_over, self.parts, columns, name="over")
        return TopicParts(self.client, parts, self.sizes, self.progress)

    def label_sums(self) -> np.ndarray:
        """Return sums over the documents of each label that tell labels apart."""
        import dask

        sums, first = dask.delayed(_label_sums), np.cumsum([0, *self.sizes])
        found = [sums(part, int(k)) for part, k in zip(self.parts, first[:-1], strict=True)]
        return self.client.compute(merged(found, _sum)).result()

    def word_sums(self) -> np.ndarray:
        """Return how often each word occurs."""
        return self._sum(_word_sums)

    def sets(self):
        """Return the label sets that occur, and how often each does."""
        found = tasks(_sets, self.parts, name="sets")
        return self.client.compute(merged(found, _joined_sets)).result()

    def start(self, n_topics: int, random):
        """Return topics to start from; the single documents' words come to the client."""
        words, label_docs = self._sum(_label_words), self.label_docs
        return start_topics(words, label_docs, self.word_sums(), n_topics, random, self._members)

    def _members(self, labels, places):
        before = np.vstack([np.zeros_like(self._docs[:1]), np.cumsum(self._docs, axis=0)])
        owner = (before[1:, labels] <= places).sum(axis=0)
        import dask

        take = dask.delayed(_members)
        used = np.unique(owner).tolist()
        pieces = [
            take(self.parts[p], labels[owner == p], (places - before[p, labels])[owner == p])
            for p in used
        ]
        order = np.argsort(np.concatenate([np.flatnonzero(owner == p) for p in used]))
        found = self.client.gather(self.client.compute(pieces))
        return sparse.vstack(found, format="csr")[order]

    def learn(self, topics, *, smoothing, max_iter, tol) -> Course:
        """Climb the bound by variational EM, one graph a step; see ``learn_in_turns``.

        The topics stay with the workers, and the bound comes to the client.
        """
        import dask

        expect, reach, step_to = map(dask.delayed, (_expect, _reached, _maximised))
        course, docs = Course(topics), shared(self.label_docs)
        here, known = shared(topics), [None] * len(self.parts)
        for step in range(max_iter + 1):
            found = [expect(*pair, here) for pair in zip(self.parts, known, strict=True)]
            sums = merged([pair[1] for pair in found], _sum_all)
            value = reach(here, sums, smoothing)
            there = step_to(here, docs, sums, smoothing)
            value, there, *known = self.client.persist([value, there, *(p[0] for p in found)])
            course.reach(self.client.compute(value).result(), tol)
            if self.progress is not None:
                self.progress(step, max_iter)
            if course.converged or step == max_iter:
                break
            here = there
        shares = dask.delayed(_shares)
        found = [shares(*pair, here) for pair in zip(self.parts, known, strict=True)]
        course.topics, sums = self.client.gather(self.client.compute([here, merged(found, _sum)]))
        course.label_topics = means_of(sums, self.label_docs)
        return course

    def learn_stepwise(self, topics, **how) -> Course:
        """Refuse: batches are of all documents."""
        raise ValueError("batch_size is for one machine; on Dask, CoL learns from all documents.")


# On workers


def _sum(parts):
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _sum_all(parts):
    """Return the sums of tuples."""
    return tuple(map(_sum, zip(*parts, strict=True)))


def _label_docs(part):
    return part[1].getnnz(axis=0)


def _has_words(part):
    return part[0].getnnz(axis=1) > 0


def _rows(part, rows):
    return part[0][rows], part[1][rows]


def _over(part, columns):
    documents = TopicDocuments(*part).over(columns)
    return documents.X, documents.Y


def _label_sums(part, first):
    return TopicDocuments(*part).label_sums(first)


def _word_sums(part):
    return TopicDocuments(*part).word_sums()


def _label_words(part):
    return label_words(part[0], part[1])


def _members(part, labels, places):
    return members(part[0], part[1], labels, places)


def _sets(part):
    return distinct_sets(part[1])


def _joined_sets(parts):
    """Return the label sets of all parts, and how often each occurs."""
    sets = sparse.vstack([sets for sets, _ in parts], format="csr")
    docs = np.concatenate([docs for _, docs in parts])
    distinct, _ = distinct_sets(sets)
    places = {tuple(row): k for k, row in enumerate(_rows_of(distinct))}
    total = np.zeros(len(places))
    for row, n_docs in zip(_rows_of(sets), docs, strict=True):
        total[places[tuple(row)]] += n_docs
    return distinct, total


def _rows_of(sets):
    return [row.tolist() for row in np.split(sets.indices, sets.indptr[1:-1])]


def _expect(part, known, topics):
    """Return the posteriors of a part, and sums of what they expect: the E step."""
    X, Y = part
    earlier = None if known is None else Inference(topics, Y, known)
    found = topics.infer(X, Y, known=earlier)
    sums = found.bounds.sum(), found.log_shares(), found.word_counts(WordIndex(X))
    return found.blocks, sums


def _reached(topics, sums, smoothing):
    return objective(topics, sums[0], smoothing)


def _maximised(topics, docs, sums, smoothing):
    return maximised(topics, docs, sums[1], sums[2].copy(), smoothing)


def _shares(part, known, topics):
    return Inference(topics, part[1], known).topic_shares()
