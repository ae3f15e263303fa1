"""Topics of words that labels are made of: the word part of the correlated labeling model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import digamma
from threadpoolctl import threadpool_limits

from polytopic.kernels import topics as kernels
from polytopic.kernels.blocks import block_borders, map_sets, run_blocks


class Precision(NamedTuple):
    """How closely the posteriors of documents are found."""

    max_iter: int = 20
    tol: float = 1e-3  # of a word, by which a step changes what topics say
    least: float = 1e-6  # part of a document that a topic must say to count


LEARNING, ASKING = Precision(), Precision(max_iter=200, tol=1e-6, least=1e-9)


@dataclass(frozen=True)
class Topics:
    """Topics of words, and how much labels use them.

    Attributes
    ----------
    alpha : ndarray of shape (n_labels, n_topics)
        Dirichlet parameters of each label's topics.
    beta : ndarray of shape (n_words, n_topics)
        Word distribution of each topic, word-major.
    """

    alpha: np.ndarray
    beta: np.ndarray

    @cached_property
    def _prior(self) -> kernels.TopicPrior:
        shares = np.empty(self.alpha.shape)
        kernels.exp_digammas(self.alpha, shares)
        used = shares > 0
        used[np.arange(len(used)), self.alpha.argmax(axis=1)] = True  # a label has one at least
        used = sparse.csr_matrix(used)
        ends, topics = used.indptr.astype(np.int64), used.indices.astype(np.int32)
        return kernels.TopicPrior(self.alpha, self.alpha.sum(axis=1), shares, ends, topics)

    def label_words(self) -> np.ndarray:
        r"""Return the word distribution of each label, word-major.

        It is :math:`p(w \mid c) = \sum_j \bar\alpha_{cj} \beta_{jw}`, with
        :math:`\bar\alpha_c = \alpha_c / \sum_s \alpha_{cs}`.
        """
        shares = self.alpha / self.alpha.sum(axis=1, keepdims=True)
        with threadpool_limits(1, "blas"):  # whose threads change the last bits
            return self.beta.astype(np.float64) @ shares.T

    def infer(self, X, Y, precision=LEARNING, known=None) -> Inference:
        """Return the posteriors of documents with labels; ``known`` has earlier ones of theirs."""

        def block(*documents):
            rows = documents[-1]
            earlier = None if known is None else known.blocks[rows.start]
            return rows.start, self._infer(documents, precision, earlier)

        return Inference(self, Y, dict(map_sets(block, X, Y)))

    def bound(self, X, Y) -> np.ndarray:
        """Return a lower bound of the log likelihood of each document, given its labels."""
        found = map_sets(lambda *documents: self._infer(documents, ASKING).bounds, X, Y)
        return np.concatenate(found)

    def _infer(self, documents, precision, known=None):
        """Return the posterior of a block of documents as :func:`map_sets` gives it."""
        data, indices, indptr, labels, ends, _ = documents
        known = known or _nothing(indptr.size - 1)
        out = self._room_for(indptr, labels, ends, known)
        kernels.infer(
            data, indices, indptr, labels, ends, known, self._prior, self.beta, *precision, out
        )
        n_active, n_counts = out.ends[-1], out.starts[-1]
        return out._replace(
            topics=out.topics[:n_active].copy(),
            e=out.e[:n_active].copy(),
            counts=out.counts[:n_counts].copy(),
        )

    def _room_for(self, indptr, labels, ends, known):
        """Return a posterior with place for all topics that documents may have.

        These are the topics of their labels, and those they are known to have.
        """
        own = np.diff(self._prior.ends)[labels[ends[0] : ends[-1]]]
        before = np.concatenate([[0], np.cumsum(own)])
        most = np.diff(known.ends) + np.diff(before[ends - ends[0]])
        most = np.minimum(most, self.alpha.shape[1])
        n_docs, n_active, n_counts = most.size, most.sum(), (most * np.diff(ends)).sum()
        return kernels.Posterior(
            np.zeros(n_docs + 1, dtype=np.int64),
            np.empty(n_active, dtype=np.int32),
            np.empty(n_active),
            np.zeros(n_docs + 1, dtype=np.int64),
            np.empty(n_counts),
            np.empty(indptr[-1] - indptr[0]),
            np.empty(n_docs),
        )


def _nothing(n_docs):
    """Return the posterior of documents of which nothing is known."""
    none = np.zeros(0)
    ends = np.zeros(n_docs + 1, dtype=np.int64)
    return kernels.Posterior(ends, np.zeros(0, dtype=np.int32), none, ends, none, none, none)


@dataclass(frozen=True)
class Inference:
    """The posteriors of documents, in blocks by their first rows."""

    topics: Topics
    Y: sparse.csr_matrix
    blocks: dict[int, kernels.Posterior]

    def _joined(self, name):
        return np.concatenate([getattr(block, name) for block in self.blocks.values()])

    @property
    def bounds(self) -> np.ndarray:
        """At least the log likelihood of each document."""
        return self._joined("bounds")

    @property
    def n_topics(self) -> np.ndarray:
        """How many topics each document has."""
        return np.concatenate([np.diff(block.ends) for block in self.blocks.values()])

    def word_counts(self, index: WordIndex) -> np.ndarray:
        """Return how often each topic is expected to have said each word, word-major."""
        ratios, topics, e = map(self._joined, ("ratios", "topics", "e"))
        ratios, ends = ratios[index.places], np.concatenate([[0], np.cumsum(self.n_topics)])
        beta = self.topics.beta
        out = np.empty(beta.shape)

        def block(words):
            word_ends = index.ends[words.start : words.stop + 1]
            kernels.count_words(
                word_ends, index.docs, ratios, ends, topics, e, beta[words], out[words]
            )

        run_blocks(block, block_borders(index.ends, row_cost=1 + beta.shape[1] // 32))
        return out

    def log_shares(self) -> np.ndarray:
        """Return the expected logarithms of each label's topic shares, summed over documents."""
        alpha = self.topics.alpha
        sums, totals = np.zeros(alpha.shape), np.zeros(alpha.shape[0])
        for labels, ends, block in self._by_block():
            kernels.add_psi(labels, ends, block, self.topics._prior, sums, totals)
        return sums + self.Y.getnnz(axis=0)[:, None] * digamma(alpha) - totals[:, None]

    def topic_shares(self) -> np.ndarray:
        """Return the expected topic shares of each label, summed over documents."""
        sums = np.zeros(self.topics.alpha.shape)
        for labels, ends, block in self._by_block():
            kernels.add_shares(labels, ends, block, self.topics._prior, sums)
        return sums

    def _by_block(self):
        labels, ends = self.Y.indices.astype(np.int64), self.Y.indptr.astype(np.int64)
        for start, block in self.blocks.items():
            yield labels, ends[start : start + block.bounds.size + 1], block


class WordIndex:
    """The documents of each word: ``docs[ends[w] : ends[w + 1]]``, and their places in ``X``."""

    def __init__(self, X):
        places = sparse.csr_matrix((np.arange(1, X.nnz + 1), X.indices, X.indptr), shape=X.shape)
        by_word = places.tocsc()
        self.ends, self.docs = by_word.indptr.astype(np.int64), by_word.indices.astype(np.int32)
        self.places = by_word.data - 1
