"""Topics of words, and the posteriors of documents with known labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import digamma
from threadpoolctl import threadpool_limits

from polytopic.kernels.blocks import block_borders, map_sets, run_blocks
from polytopic.models.col import kernels


class Precision(NamedTuple):
    """How precisely the posteriors of documents are computed."""

    max_iter: int = 20
    tol: float = 1e-3  # largest change of expected counts per word at the end
    least: float = 1e-6  # share of a document below which a topic is dropped from it


TRAINING, SCORING = Precision(), Precision(max_iter=200, tol=1e-6, least=1e-9)


@dataclass(frozen=True)
class Topics:
    """Word distributions of topics, and the topics that labels use.

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
    def prior(self) -> kernels.TopicPrior:
        """The prior of each label's topics, as kernels read it."""
        exp_digammas = np.empty(self.alpha.shape)
        kernels.exp_digammas(self.alpha, exp_digammas)
        used = exp_digammas > 0
        used[np.arange(len(used)), self.alpha.argmax(axis=1)] = True
        used = sparse.csr_matrix(used)
        ends, topics = used.indptr.astype(np.int64), used.indices.astype(np.int32)
        return kernels.TopicPrior(self.alpha, self.alpha.sum(axis=1), exp_digammas, ends, topics)

    def label_words(self) -> np.ndarray:
        r"""Return the word distribution of each label, word-major.

        It is :math:`p(w \mid c) = \sum_j \bar\alpha_{cj} \beta_{jw}`, with
        :math:`\bar\alpha_c = \alpha_c / \sum_s \alpha_{cs}`.
        """
        shares = self.alpha / self.alpha.sum(axis=1, keepdims=True)
        with threadpool_limits(1, "blas"):  # the number of threads would change the last bits
            return self.beta.astype(np.float64) @ shares.T

    def infer(self, X, Y, precision=TRAINING, known=None) -> Inference:
        """Return the posteriors of labelled documents, starting from ``known`` ones if given."""

        def block(*documents):
            rows = documents[-1]
            earlier = None if known is None else known.blocks[rows.start]
            return rows.start, self._infer(documents, precision, earlier)

        return Inference(self, Y, dict(map_sets(block, X, Y)))

    def bound(self, X, Y) -> np.ndarray:
        """Return a lower bound of the log likelihood of each document, given its labels."""
        blocks = map_sets(lambda *documents: self._infer(documents, SCORING).bounds, X, Y)
        return np.concatenate(blocks)

    def _infer(self, documents, precision, known=None):
        """Return the posterior of a block of documents that :func:`map_sets` passes."""
        data, indices, indptr, labels, ends, _ = documents
        known = known or _empty_posterior(indptr.size - 1)
        out = self._allocate(indptr, labels, ends, known)
        kernels.infer_topics(
            data, indices, indptr, labels, ends, known, self.prior, self.beta, *precision, out
        )
        n_active, n_counts = out.ends[-1], out.starts[-1]
        return out._replace(
            topics=out.topics[:n_active].copy(),
            e=out.e[:n_active].copy(),
            counts=out.counts[:n_counts].copy(),
        )

    def _allocate(self, indptr, labels, ends, known):
        """Return a posterior with space for all topics that the documents may have.

        These are the topics of their labels, and those of the known posterior.
        """
        n_used = np.diff(self.prior.ends)[labels[ends[0] : ends[-1]]]
        before = np.concatenate([[0], np.cumsum(n_used)])
        most = np.diff(known.ends) + np.diff(before[ends - ends[0]])
        most = np.minimum(most, self.alpha.shape[1])
        n_docs, n_active, n_counts = most.size, most.sum(), (most * np.diff(ends)).sum()
        return kernels.Posterior(
            ends=np.zeros(n_docs + 1, dtype=np.int64),
            topics=np.empty(n_active, dtype=np.int32),
            e=np.empty(n_active),
            starts=np.zeros(n_docs + 1, dtype=np.int64),
            counts=np.empty(n_counts),
            ratios=np.empty(indptr[-1] - indptr[0]),
            bounds=np.empty(n_docs),
        )


def _empty_posterior(n_docs):
    """Return a posterior without any topic, to start from the prior."""
    none, ends = np.zeros(0), np.zeros(n_docs + 1, dtype=np.int64)
    return kernels.Posterior(ends, np.zeros(0, dtype=np.int32), none, ends, none, none, none)


@dataclass(frozen=True)
class Inference:
    """The posteriors of documents, in blocks keyed by their first row."""

    topics: Topics
    Y: sparse.csr_matrix
    blocks: dict[int, kernels.Posterior]

    def _concatenate(self, name):
        return np.concatenate([getattr(block, name) for block in self.blocks.values()])

    @property
    def bounds(self) -> np.ndarray:
        """Lower bound of the log likelihood of each document."""
        return self._concatenate("bounds")

    @property
    def n_topics(self) -> np.ndarray:
        """Number of topics of each document."""
        return np.concatenate([np.diff(block.ends) for block in self.blocks.values()])

    def word_counts(self, index: WordIndex) -> np.ndarray:
        """Return the expected counts of each word by topic, word-major."""
        ratios, topics, e = map(self._concatenate, ("ratios", "topics", "e"))
        ratios, ends = ratios[index.entries], np.concatenate([[0], np.cumsum(self.n_topics)])
        beta = self.topics.beta
        out = np.empty(beta.shape)

        def block(words):
            word_ends = index.ends[words.start : words.stop + 1]
            kernels.count_topic_words(
                word_ends, index.docs, ratios, ends, topics, e, beta[words], out[words]
            )

        run_blocks(block, block_borders(index.ends, row_cost=1 + beta.shape[1] // 32))
        return out

    def log_shares(self) -> np.ndarray:
        """Return the expected log topic shares of each label, summed over documents."""
        alpha = self.topics.alpha
        sums, totals = np.zeros(alpha.shape), np.zeros(alpha.shape[0])
        for labels, ends, block in self._labelled_blocks():
            kernels.add_log_shares(labels, ends, block, self.topics.prior, sums, totals)
        return sums + self.Y.getnnz(axis=0)[:, None] * digamma(alpha) - totals[:, None]

    def topic_shares(self) -> np.ndarray:
        """Return the expected topic shares of each label, summed over documents."""
        sums = np.zeros(self.topics.alpha.shape)
        for labels, ends, block in self._labelled_blocks():
            kernels.add_topic_shares(labels, ends, block, self.topics.prior, sums)
        return sums

    def _labelled_blocks(self):
        labels, ends = self.Y.indices.astype(np.int64), self.Y.indptr.astype(np.int64)
        for start, block in self.blocks.items():
            yield labels, ends[start : start + block.bounds.size + 1], block


class WordIndex:
    """The entries of ``X`` by word.

    Word ``w`` occurs in the documents ``docs[ends[w] : ends[w + 1]]``; ``entries`` are the
    positions of these occurrences in ``X.data``.
    """

    def __init__(self, X):
        numbered = sparse.csr_matrix((np.arange(1, X.nnz + 1), X.indices, X.indptr), shape=X.shape)
        by_word = numbered.tocsc()
        self.ends, self.docs = by_word.indptr.astype(np.int64), by_word.indices.astype(np.int32)
        self.entries = by_word.data - 1
