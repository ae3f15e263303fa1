"""Topics of words, and the posteriors of documents with known labels."""

from __future__ import annotations

from collections.abc import Iterator
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
    least: float = 1e-6  # share of a document below which the joint family drops a topic


TRAINING, SCORING = Precision(), Precision(max_iter=200, tol=1e-6, least=1e-9)
EXACT = Precision(max_iter=2000, tol=1e-10)
ROWS = 1024  # of topic shares that are held at once


@dataclass(frozen=True)
class Topics:
    """Word distributions of topics, and the topics that labels use.

    Attributes
    ----------
    alpha : ndarray of shape (n_labels, n_topics)
        Dirichlet parameters of each label's topics.
    beta : ndarray of shape (n_words, n_topics)
        Word distribution of each topic, word-major.
    family : {"joint", "factored"}
        Whether the posterior of a word has its label and topic together, or as independent
        factors, as in the paper.
    """

    alpha: np.ndarray
    beta: np.ndarray
    family: str = "joint"

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

    @property
    def scoring(self) -> Precision:
        """How precisely documents are scored."""
        return SCORING if self.family == "joint" else EXACT

    def infer(self, X, Y, precision=None, known=None) -> JointInference | FactoredInference:
        """Return the posteriors of labelled documents, starting from ``known`` ones if given.

        The precision is that of training by default.
        """
        family = JointInference if self.family == "joint" else FactoredInference
        return family.run(self, X, Y, precision or TRAINING, known)

    def bound(self, X, Y) -> np.ndarray:
        """Return a lower bound of the log likelihood of each document, given its labels.

        The bound has several maxima. The joint family climbs from two starts, and the higher
        bound counts.
        """
        if self.family == "factored":
            return self.infer(X, Y, self.scoring).bounds
        starts = (JointInference.run(self, X, Y, SCORING, uniform=u).bounds for u in (False, True))
        return np.maximum(*starts)


class WordIndex:
    """The entries of ``X`` by word.

    Word ``w`` occurs in the documents ``docs[ends[w] : ends[w + 1]]``; ``entries`` are the
    positions of these occurrences in ``X.data``.
    """

    def __init__(self, X):
        self.X = X
        numbered = sparse.csr_matrix((np.arange(1, X.nnz + 1), X.indices, X.indptr), shape=X.shape)
        by_word = numbered.tocsc()
        self.ends, self.docs = by_word.indptr.astype(np.int64), by_word.indices.astype(np.int32)
        self.entries = by_word.data - 1

    def count(self, beta, function) -> np.ndarray:
        """Return word counts by topic; ``function(word_ends, beta, out)`` fills blocks of words."""
        out = np.empty(beta.shape)

        def block(words):
            function(self.ends[words.start : words.stop + 1], beta[words], out[words])

        run_blocks(block, block_borders(self.ends, row_cost=1 + beta.shape[1] // 32))
        return out


# The joint family: fast, since only topics that a document has are stored


@dataclass(frozen=True)
class JointInference:
    """The posteriors of documents in the joint family, in blocks keyed by their first row."""

    topics: Topics
    Y: sparse.csr_matrix
    blocks: dict[int, kernels.Posterior]

    @classmethod
    def run(cls, topics, X, Y, precision, known=None, uniform=False) -> JointInference:
        """Infer the posteriors; without known ones, from equal topics if ``uniform``."""

        def block(data, indices, indptr, labels, ends, rows):
            earlier = known.blocks[rows.start] if known else _empty_posterior(indptr.size - 1)
            out = _allocate(topics, indptr, labels, ends, earlier)
            kernels.infer_topics(
                data, indices, indptr, labels, ends, earlier, uniform, topics.prior, topics.beta,
                *precision, out,
            )  # fmt: skip
            n_active, n_counts = out.ends[-1], out.starts[-1]
            return rows.start, out._replace(
                topics=out.topics[:n_active].copy(),
                e=out.e[:n_active].copy(),
                counts=out.counts[:n_counts].copy(),
            )

        return cls(topics, Y, dict(map_sets(block, X, Y)))

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
        return index.count(
            self.topics.beta,
            lambda word_ends, beta, out: kernels.count_topic_words(
                word_ends, index.docs, ratios, ends, topics, e, beta, out
            ),
        )

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

    def topic_share_blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield labels, and the expected topic shares of each in one of its documents."""
        for labels, ends, block in self._labelled_blocks():
            own = labels[ends[0] : ends[-1]]
            gamma, row = self.topics.alpha[own], 0
            for d, size in enumerate(np.diff(ends)):
                topics = block.topics[block.ends[d] : block.ends[d + 1]]
                counts = block.counts[block.starts[d] : block.starts[d + 1]]
                gamma[row : row + size, topics] += counts.reshape(size, -1)
                row += size
            yield own, gamma / gamma.sum(axis=1, keepdims=True)

    def _labelled_blocks(self):
        labels, ends = self.Y.indices.astype(np.int64), self.Y.indptr.astype(np.int64)
        for start, block in self.blocks.items():
            yield labels, ends[start : start + block.bounds.size + 1], block


def _allocate(topics, indptr, labels, ends, known):
    """Return a posterior with space for all topics that the documents may have.

    A document without a known posterior may have any topic; others those that are known, and
    those of their labels.
    """
    n_topics = topics.alpha.shape[1]
    n_used = np.diff(topics.prior.ends)[labels[ends[0] : ends[-1]]]
    before = np.concatenate([[0], np.cumsum(n_used)])
    n_known = np.diff(known.ends)
    most = np.minimum(n_known + np.diff(before[ends - ends[0]]), n_topics)
    most = np.where(n_known > 0, most, n_topics)
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


# The paper's family: every topic of every label of every document is stored


@dataclass(frozen=True)
class FactoredInference:
    """The posteriors of documents in the paper's family, Eq. (3) to (6).

    Attributes
    ----------
    topics : Topics
        The topics.
    Y : csr_matrix of shape (n_docs, n_labels)
        Labels of the documents.
    gamma : ndarray of shape (Y.nnz, n_topics)
        Dirichlet parameters of each label of each document.
    sigma : ndarray
        Probability that each label of its document produced a word: one number per entry of ``X``
        and label, those of document ``d`` from ``sigma_ends[d]`` on.
    sigma_ends : ndarray of shape (n_docs + 1,)
        See ``sigma``.
    bounds : ndarray of shape (n_docs,)
        Lower bound of the log likelihood of each document.
    """

    topics: Topics
    Y: sparse.csr_matrix
    gamma: np.ndarray
    sigma: np.ndarray
    sigma_ends: np.ndarray
    bounds: np.ndarray

    @classmethod
    def run(cls, topics, X, Y, precision, known=None) -> FactoredInference:
        """Infer the posteriors; without known ones, from equal labels and topics of all words."""
        n_labels, n_topics = np.diff(Y.indptr), topics.alpha.shape[1]
        sizes = np.diff(X.indptr) * n_labels
        sigma_ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        if known is None:
            words = np.repeat(X.sum(axis=1).A1 / n_labels, n_labels)
            gamma = topics.alpha[Y.indices] + words[:, None] / n_topics
            sigma = np.repeat(1.0 / n_labels, sizes)
        else:
            gamma, sigma = known.gamma.copy(), known.sigma.copy()
        bounds = np.empty(X.shape[0])

        def block(data, indices, indptr, labels, ends, rows):
            kernels.infer_factored(
                data, indices, indptr, labels, ends, topics.prior, topics.beta,
                precision.max_iter, precision.tol, gamma[ends[0] : ends[-1]],
                sigma_ends[rows.start : rows.stop + 1], sigma, bounds[rows],
            )  # fmt: skip

        map_sets(block, X, Y)
        return cls(topics, Y, gamma, sigma, sigma_ends, bounds)

    def _expected_logs(self):
        return digamma(self.gamma) - digamma(self.gamma.sum(axis=1, keepdims=True))

    def word_counts(self, index: WordIndex) -> np.ndarray:
        """Return the expected counts of each word by topic, word-major (Eq. (14))."""
        psi, ends = self._expected_logs(), self.Y.indptr.astype(np.int64)
        share = np.exp(psi - psi.max(axis=1, keepdims=True))
        n, indptr = index.X.data.astype(np.float64), index.X.indptr.astype(np.int64)
        return index.count(
            self.topics.beta,
            lambda word_ends, beta, out: kernels.count_factored_words(
                word_ends, index.docs, index.entries, n, indptr, ends, psi, share,
                self.sigma_ends, self.sigma, beta, out,
            ),
        )  # fmt: skip

    def log_shares(self) -> np.ndarray:
        """Return the expected log topic shares of each label, summed over documents."""
        return self._sums_by_label(self._expected_logs())

    def topic_shares(self) -> np.ndarray:
        """Return the expected topic shares of each label, summed over documents (Eq. (17))."""
        return self._sums_by_label(self.gamma / self.gamma.sum(axis=1, keepdims=True))

    def topic_share_blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield labels, and the expected topic shares of each in one of its documents."""
        for begin in range(0, len(self.gamma), ROWS):
            gamma = self.gamma[begin : begin + ROWS]
            yield self.Y.indices[begin : begin + ROWS], gamma / gamma.sum(axis=1, keepdims=True)

    def _sums_by_label(self, values):
        sums = np.zeros(self.topics.alpha.shape)
        np.add.at(sums, self.Y.indices, values)
        return sums
