"""What the words of documents say: the likelihood of single labels, and the labels of each word.

Word distributions are word-major here, (n_words, n_labels), as the kernels read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polytopic.kernels import words as kernels
from polytopic.kernels.blocks import map_rows, map_sets
from polytopic.labels import indicator


class WordLabels(NamedTuple):
    """The labels of each word: parallel arrays, one entry per word and label of a document.

    ``label`` is a column of ``classes_``. The shares of a document's word sum to one.
    """

    doc: np.ndarray
    word: np.ndarray
    label: np.ndarray
    share: np.ndarray


@dataclass(frozen=True, slots=True)
class ScoreBreakdown:
    """The sums that the score of a label set is made of.

    ``corpus + words + mixing == log_likelihood``, and
    ``log_likelihood / temperature + log_prior == score``. ``corpus`` is the log likelihood of the
    words in the whole corpus, ``words`` the sum of their evidence, and ``mixing`` the part that no
    word accounts for. The score of a linear model consists of ``words`` alone.
    """

    corpus: float
    words: float
    mixing: float
    log_likelihood: float
    temperature: float
    log_prior: float
    score: float


@dataclass(frozen=True, eq=False)
class WordScores:
    """What each word of one document adds to the score of a label set.

    Attributes
    ----------
    weights : ndarray of shape (n_words,)
        Counts of the document's words or, for a model that reads weights, their weights.
    word_scores : ndarray of shape (n_words,)
        What one unit of each word adds: its log probability under the label set or, in a linear
        model, its weight.
    corpus_scores : ndarray of shape (n_words,)
        The log probability of each word in the whole corpus; 0 in a linear model.
    mixing : float
        The part of the log likelihood that no word accounts for, such as the cost of a mixture.
    temperature : float
        What the log likelihood is divided by.
    log_prior : float
        The log prior of the label set.
    by_label : ndarray of shape (n_words, n_set_labels) or None
        In a linear model, what each label contributes to ``word_scores``.
    """

    weights: np.ndarray
    word_scores: np.ndarray
    corpus_scores: np.ndarray
    mixing: float = 0.0
    temperature: float = 1.0
    log_prior: float = 0.0
    by_label: np.ndarray | None = None

    @property
    def unit(self) -> str:
        """The unit of the evidence: "nats", or "score" in a linear model."""
        return "nats" if self.by_label is None else "score"

    @property
    def evidence(self) -> np.ndarray:
        """How much each word speaks for the label set, compared with the whole corpus."""
        return self.weights * (self.word_scores - self.corpus_scores)

    @property
    def breakdown(self) -> ScoreBreakdown:
        """The sums over all words."""
        log_likelihood = float(self.weights @ self.word_scores + self.mixing)
        return ScoreBreakdown(
            corpus=float(self.weights @ self.corpus_scores),
            words=float(self.evidence.sum()),
            mixing=self.mixing,
            log_likelihood=log_likelihood,
            temperature=self.temperature,
            log_prior=self.log_prior,
            score=log_likelihood / self.temperature + self.log_prior,
        )


def label_scores(X, log_theta):
    """Return the log likelihood of each document under each single label."""
    return np.vstack(
        map_rows(
            lambda data, indices, indptr, rows: _block_scores(data, indices, indptr, log_theta),
            X,
            log_theta.shape[1],
        )
    )


def best_labels(X, log_theta, allowed):
    """Return the single best of the allowed labels of each document as an indicator."""

    def block(data, indices, indptr, rows):
        scores = _block_scores(data, indices, indptr, log_theta)
        scores[:, ~allowed] = -np.inf
        return np.argmax(scores, axis=1)

    blocks = map_rows(block, X, allowed.size)
    return indicator(np.concatenate(blocks), np.arange(X.shape[0] + 1), allowed.size)


def _block_scores(data, indices, indptr, log_theta):
    scores = np.zeros((indptr.size - 1, log_theta.shape[1]))
    kernels.add_scores(data, indices, indptr, log_theta, scores)
    return scores


def word_labels(X, sets, weights, theta) -> WordLabels:
    """Share each word among the labels of its document, by weighted word probabilities."""
    n_labels, offsets = np.diff(sets.indptr), _offsets(X, sets)
    share = shares(X, sets, weights, theta)
    doc = np.repeat(np.arange(X.shape[0]), np.diff(offsets))
    place = np.arange(share.size) - offsets[doc]
    word = X.indices[X.indptr[doc] + place // n_labels[doc]]
    label = sets.indices[sets.indptr[doc] + place % n_labels[doc]]
    return WordLabels(doc, word, label, share)


def shares(X, sets, weights, theta) -> np.ndarray:
    """Return the shares of :func:`word_labels`, by document and word."""
    offsets = _offsets(X, sets)
    share = np.empty(offsets[-1])

    def block(data, indices, indptr, labels, ends, rows):
        out = share[offsets[rows.start] : offsets[rows.stop]]
        kernels.word_shares(indices, indptr, labels, ends, weights, theta, out)

    map_sets(block, X, sets)
    return share


def counts_by_label(X, sets) -> np.ndarray:
    """Return the count of each stored word once per label of its document, as :func:`shares`."""
    return np.repeat(X.data, np.repeat(np.diff(sets.indptr), np.diff(X.indptr)))


def _offsets(X, sets):
    """Return where the shares of each document begin, and where the last ones end."""
    return np.concatenate([[0], np.cumsum(np.diff(X.indptr) * np.diff(sets.indptr))])


def softmax(scores):
    """Return ``exp(scores)``, each row normalised."""
    proba = np.exp(scores - scores.max(axis=1, keepdims=True))
    return proba / proba.sum(axis=1, keepdims=True)


def smoothed(label_counts, smoothing):
    """Return the word distributions of counts (n_labels, n_words), and their logarithms."""
    total = label_counts.sum(axis=1).A1 + smoothing * label_counts.shape[1]
    by_word = label_counts.tocsc()
    proba = (by_word.data + smoothing) / total[by_word.indices]
    theta = _filled(smoothing / total, proba, by_word)
    return theta, _filled(np.log(smoothing / total), np.log(proba), by_word)


def _filled(background, values, by_word):
    """Return a word-major array: these values at the entries of ``by_word`` (CSC)."""
    dense = np.empty((by_word.shape[1], by_word.shape[0]))
    dense[:] = background
    word = np.repeat(np.arange(by_word.shape[1]), np.diff(by_word.indptr))
    dense[word, by_word.indices] = values
    return dense
