"""What models return: label sets, the labels of words, and what a score is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polytopic.kernels import words as kernels
from polytopic.kernels.blocks import map_sets


@dataclass(frozen=True)
class LabelSets:
    """The best label sets of documents, best first.

    Attributes
    ----------
    sets : list of lists of tuples
        For each document its label sets, each a tuple of label ids.
    scores : ndarray of shape (n_docs, n_best)
        Their scores, the log posterior for mixtures; ``-inf`` where there are fewer sets.
    bound : ndarray of shape (n_docs,)
        No set that is not listed has a higher score.
    """

    sets: list
    scores: np.ndarray
    bound: np.ndarray

    @property
    def gap(self) -> np.ndarray:
        """How much better than the best listed set any other set can be; 0 if none can."""
        return np.maximum(self.bound - self.scores[:, 0], 0.0)

    @property
    def optimal(self) -> np.ndarray:
        """Whether the best listed set is proven to be the best of all."""
        return self.bound <= self.scores[:, 0]

    def certificate(self, doc: int) -> str:
        """Return in words what is proven about a document's first set."""
        if self.optimal[doc]:
            return "optimal: no other label set is better"
        return f"no set is better by more than {self.gap[doc]:.3g}"


class WordLabels(NamedTuple):
    """The labels of each word: parallel arrays, one entry per word and label of a document.

    ``label`` is a column of ``classes_``. The shares of a document's word sum to one.
    """

    doc: np.ndarray
    word: np.ndarray
    label: np.ndarray
    share: np.ndarray

    @classmethod
    def from_distributions(cls, X, sets, weights, theta) -> WordLabels:
        """Share each word among the labels of its document, by weighted word probabilities.

        ``theta`` is (n_words, n_labels); ``weights`` has one number for each label of each set.
        """
        n_labels, offsets = np.diff(sets.indptr), _offsets(X, sets)
        share = word_shares(X, sets, weights, theta)
        doc = np.repeat(np.arange(X.shape[0]), np.diff(offsets))
        place = np.arange(share.size) - offsets[doc]
        word = X.indices[X.indptr[doc] + place // n_labels[doc]]
        label = sets.indices[sets.indptr[doc] + place % n_labels[doc]]
        return cls(doc, word, label, share)


def word_shares(X, sets, weights, theta) -> np.ndarray:
    """Return the shares of :class:`WordLabels`, by document, word and label."""
    offsets = _offsets(X, sets)
    share = np.empty(offsets[-1])

    def block(data, indices, indptr, labels, ends, rows):
        out = share[offsets[rows.start] : offsets[rows.stop]]
        kernels.word_shares(indices, indptr, labels, ends, weights, theta, out)

    map_sets(block, X, sets)
    return share


def counts_by_label(X, sets) -> np.ndarray:
    """Return the count of each stored word once per label, in the order of :func:`word_shares`."""
    return np.repeat(X.data, np.repeat(np.diff(sets.indptr), np.diff(X.indptr)))


def _offsets(X, sets):
    """Return where the shares of each document begin, and where the last ones end."""
    return np.concatenate([[0], np.cumsum(np.diff(X.indptr) * np.diff(sets.indptr))])


@dataclass(frozen=True, slots=True)
class ScoreBreakdown:
    """The sums that the score of a label set is made of.

    ``corpus + words + features + mixing == log_likelihood``, and
    ``log_likelihood / temperature + log_prior == score``. ``corpus`` is the log likelihood of the
    words in the whole corpus, ``words`` the sum of their evidence, ``features`` what is read beside
    the words, and ``mixing`` the part that neither accounts for. The score of a linear model
    consists of ``words`` and ``features``.
    """

    corpus: float
    words: float
    mixing: float
    log_likelihood: float
    temperature: float
    log_prior: float
    score: float
    features: float = 0.0


class LabelEvidence(NamedTuple):
    """What the scores of labels are made of, for one document.

    ``base + weights @ by_word`` are the scores of ``decision_function``.

    Attributes
    ----------
    weights : ndarray of shape (n_words,)
        The weights of the document's words, as ``fit`` saw them.
    by_word : ndarray of shape (n_words, n_labels)
        What one unit of each word adds to the score of each label.
    base : ndarray of shape (n_labels,)
        The part of each score that no word of the document accounts for.
    """

    weights: np.ndarray
    by_word: np.ndarray
    base: np.ndarray


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
    features : float
        In a linear model, what is read beside the words adds to the score.
    """

    weights: np.ndarray
    word_scores: np.ndarray
    corpus_scores: np.ndarray
    mixing: float = 0.0
    temperature: float = 1.0
    log_prior: float = 0.0
    by_label: np.ndarray | None = None
    features: float = 0.0

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
        log_likelihood += self.features
        return ScoreBreakdown(
            corpus=float(self.weights @ self.corpus_scores),
            words=float(self.evidence.sum()),
            mixing=self.mixing,
            log_likelihood=log_likelihood,
            temperature=self.temperature,
            log_prior=self.log_prior,
            score=log_likelihood / self.temperature + self.log_prior,
            features=self.features,
        )
