"""The BoosTexter estimator: boosting, scores and explanations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.array_specs import DOUBLE, WHOLE, ArraySpec, check_arrays
from polytopic.models.base import LABEL_ARRAYS, check_label_arrays
from polytopic.models.boostexter import kernels
from polytopic.models.checks import (
    ROUNDING,
    check_number_or,
    check_pseudo_count,
    check_size,
    check_tuned,
    check_words,
)
from polytopic.models.label_scores import LabelScoreModel

ROUNDS_PER_SUM = 200  # rounds after which sums of weights are recomputed
ROUNDS_PER_CALL = 10  # a kernel call cannot be interrupted
DENSE = 4  # a word with at least 1 / DENSE of the labels keeps sums for all: faster to update

LARGEST_OUTPUT = 1e15

# The arrays of a model in files: rules of one word each, and the labels
RULES = LABEL_ARRAYS | {
    "words": ArraySpec(WHOLE, ("n_rules",), 0, below="n_words"),
    "outputs": ArraySpec(DOUBLE, ("n_rules", "n_columns"), -LARGEST_OUTPUT, LARGEST_OUTPUT),
    "z": ArraySpec(DOUBLE, ("n_rules",), -ROUNDING, 1 + ROUNDING),  # a difference, so inexact
}


class WordRule(NamedTuple):
    """A rule: what the scores of a document gain if it contains a word."""

    word: int
    outputs: np.ndarray  # (n_labels,), 0 for a label without documents
    z: float  # factor by which the rule changed the total of the weights


class Rules(NamedTuple):
    """Rules in the order in which boosting found them, over the labels that have documents."""

    words: np.ndarray  # (n_rules,)
    outputs: np.ndarray  # (n_rules, n_labels)
    z: np.ndarray  # (n_rules,)


class BoosTexter(LabelScoreModel):
    r"""Real abstaining AdaBoost.MH: rules of one word each, which abstain if it is absent.

    The rule of a word gives each label of a document with that word a number ([1]_, section 4.2),

    .. math:: c_l = \tfrac12 \ln \frac{W_+^l + \varepsilon}{W_-^l + \varepsilon}

    where :math:`W_\pm^l` is the weight of the documents that have the word, with and without the
    label; other documents get 0. Each round takes the word with the smallest :math:`Z = W_0 + 2
    \sum_l \sqrt{W_+^l W_-^l}`, and multiplies the weights of documents and labels by
    :math:`e^{\mp c_l}`. The score of a label is the sum over rules; labels above 0 are predicted.

    Parameters
    ----------
    n_rounds : int, default=1000
        Number of rules; boosting stops earlier if no further rule lowers Z.
    best_if_none : bool, default=True
        Whether a document without a label above 0 gets the best label; otherwise it gets none.
    smoothing : float or None, default=None
        :math:`\varepsilon`, as a fraction of all weights. None is the choice of [1]_: one over
        the number of documents times the number of labels.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order, or column numbers if fitted on an indicator.
    rules_ : list of WordRule
        The rules in the order in which they were found: ``word``, its column in ``X``;
        ``outputs`` for each label; and ``z``. A word may have several rules.
    z_ : ndarray of shape (n_iter_,)
        Factor by which each round changed the total of the weights, at most 1. The product is
        the mean of :math:`e^{-Y f}` over documents and labels, which bounds the Hamming loss.
    n_iter_ : int
        Number of rules.
    tuned_ : dict
        Empty: nothing is tuned.

    Notes
    -----
    Only the presence of a word counts, not its frequency. Words without a rule are unknown: a
    document without other words gets the most frequent label set. Labels without documents, and
    documents without a label or a word, are neither learned from nor counted in ``smoothing``.

    Words whose Z differs by less than 1e-12 are tied, and the first is taken. Sums of weights are
    updated by differences and recomputed every 200 rounds; in each round, the words that may
    be the best despite rounding errors are weighed exactly.

    ``decision_function`` returns the sum of the rules. ``predict_proba`` returns
    :math:`1 / (1 + e^{-2f})` of it ([2]_), which is not calibrated, or the labels' document
    shares if all rules abstain.

    References
    ----------
    .. [1] Schapire and Singer, "BoosTexter: A Boosting-based System for Text Categorization",
       Machine Learning 39, 2000.
    .. [2] Friedman, Hastie and Tibshirani, "Additive Logistic Regression: A Statistical View of
       Boosting", Annals of Statistics 28, 2000.

    Examples
    --------
    >>> X = [[3, 0, 1], [0, 2, 1], [2, 2, 0]]
    >>> model = BoosTexter(10).fit(X, [["sport"], ["film"], ["film", "sport"]])
    >>> model.classes_, model.predict([[4, 0, 1]])
    (array(['film', 'sport'], dtype=object), array([[0, 1]]))
    >>> [rule.word for rule in model.rules_[:2]]
    [0, 1]
    """

    name = "boostexter"

    def __init__(self, n_rounds=1000, *, best_if_none=True, smoothing=None):
        self.n_rounds = n_rounds
        self.best_if_none = best_if_none
        self.smoothing = smoothing

    def _learn(self, X, Y, tuned):
        smoothing = 1.0 / max(np.prod(Y.shape), 1) if self.smoothing is None else self.smoothing
        self._set_rules(boost(X, Y, int(self.n_rounds), float(smoothing)))

    def _set_rules(self, rules: Rules):
        """Set the rules, and add up those of the same word."""
        self._rules = rules
        self._words, place = np.unique(rules.words, return_inverse=True)
        self._weights = np.zeros((self._words.size, self._columns.size))
        np.add.at(self._weights, place, rules.outputs)

    def _check_parameters(self):
        check_size(self.n_rounds, "n_rounds")
        check_scalar(self.best_if_none, "best_if_none", bool)
        if self.smoothing is not None:
            check_number_or(" or None", self.smoothing, "smoothing")
            check_pseudo_count(self.smoothing, "smoothing")

    # What was learned

    @property
    def rules_(self) -> list[WordRule]:
        """The rules in the order in which they were found."""
        check_is_fitted(self)
        outputs = np.zeros((self._rules.z.size, self.classes_.size))
        outputs[:, self._columns] = self._rules.outputs
        words, z = self._rules.words.tolist(), self._rules.z.tolist()
        return list(map(WordRule, words, outputs, z))

    @property
    def z_(self):
        """Factor by which each round changed the total of the weights."""
        check_is_fitted(self)
        return self._rules.z

    @property
    def n_iter_(self) -> int:
        """Number of rules."""
        return self.z_.size

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        words, outputs, z = self._rules
        return {"words": words, "outputs": outputs, "z": z, **self._label_arrays()}

    def from_arrays(self, arrays, *, labels, n_words, tuned=None):
        """Restore what :meth:`to_arrays` returned; predictions are then identical bit for bit.

        Arrays that no model could have produced raise ValueError.
        """
        self._check_parameters()
        check_arrays(arrays, RULES, n_labels=len(labels), n_words=n_words)
        check_label_arrays(arrays)
        self._restore_labels(arrays, labels, check_tuned(tuned, {}))
        self._set_rules(Rules(*(arrays[name] for name in Rules._fields)))
        self._allowed = np.ones(self._columns.size, dtype=bool)
        self.n_features_in_ = n_words
        return self

    # Scores

    def _check_words(self, X, *, reset=False):
        """Return ones for the words that documents contain."""
        X = check_words(self, X, reset=reset)
        return sparse.csr_matrix((np.ones(X.nnz), X.indices, X.indptr), shape=X.shape)

    def _known_words(self, X):
        """Return the columns of words that have rules."""
        return sparse.csr_matrix(X[:, self._words])

    def _column_scores(self, X):
        return self._known_words(X) @ self._weights

    def _score_proba(self, scores):
        return softmax(scores, axis=1) if self._form.kind == "single" else expit(2.0 * scores)

    # Explanations

    def _word_contributions(self, x, y):
        counts = check_words(self, x)
        return counts.data, self._word_scores(counts, y) / counts.data[:, None]

    def _column_words(self, column):
        weights = np.zeros(self.n_features_in_)
        weights[self._words] = self._weights[:, column]
        return weights

    def _word_scores(self, x, y):
        """Return what each word of one document adds to the score of each label of a set."""
        weights = np.zeros((self._words.size + 1, self.classes_.size))  # last row: no rule
        weights[:-1, self._columns] = self._weights
        place = np.full(self.n_features_in_, self._words.size)
        place[self._words] = np.arange(self._words.size)
        return weights[np.ix_(place[x.indices], sparse.csr_matrix(y).indices)]


# Boosting


def boost(X, Y, n_rounds, smoothing) -> Rules:
    """Boost rules of one word each.

    Parameters
    ----------
    X, Y : csr_matrix of shape (n_docs, n_words) and (n_docs, n_labels)
        Words and labels of documents; all stored entries are non-zero, and every document has a
        label.
    n_rounds : int
        Largest number of rules.
    smoothing : float
        Added to sums of weights, as a fraction of their total.
    """
    n_labels, n_words, blocks = Y.shape[1], X.shape[1], [_empty_rules(0, Y.shape[1])]
    documents = _index_documents(X, Y)
    pairs = _index_pairs(X, Y, documents)
    D = np.full(Y.shape, 1.0)
    n_pairs = pairs.label.size
    sums = kernels.Sums(*map(np.empty, (n_pairs, n_pairs, n_words, n_words)))
    n_remaining = n_rounds if D.size else 0
    while n_remaining:
        kernels.sum_weights(documents, pairs, D, sums)
        rules = _empty_rules(min(n_remaining, ROUNDS_PER_SUM), n_labels)
        n_rules = _boost_rounds(documents, pairs, D, sums, smoothing, rules)
        if not n_rules:
            break
        blocks.append(Rules(*(part[:n_rules] for part in rules)))
        n_remaining -= n_rules
    return Rules(*map(np.concatenate, zip(*blocks, strict=True)))


def _boost_rounds(documents, pairs, D, sums, smoothing, rules):
    """Fill ``rules`` from normalized weights; return how many were found."""
    total, n_rules = np.ones(1), 0
    for begin in range(0, rules.words.size, ROUNDS_PER_CALL):
        block = Rules(*(part[begin : begin + ROUNDS_PER_CALL] for part in rules))
        n_found = kernels.add_rules(documents, pairs, D, sums, smoothing, total, *block)
        n_rules += n_found
        if n_found < block.words.size:
            break
    return n_rules


def _empty_rules(n_rules, n_labels):
    return Rules(np.zeros(n_rules, np.int64), np.zeros((n_rules, n_labels)), np.zeros(n_rules))


def _index_documents(X, Y):
    by_word, Y = X.tocsc(), Y.sorted_indices()
    return kernels.Documents(
        X.indices.astype(np.int32, copy=False),
        X.indptr.astype(np.int64),
        Y.indices.astype(np.int64),
        Y.indptr.astype(np.int64),
        by_word.indices.astype(np.int32, copy=False),
        by_word.indptr.astype(np.int64),
    )


def _index_pairs(X, Y, documents):
    """Return the pairs of words and labels that occur together; all of a frequent word."""
    n_labels = Y.shape[1]
    together = sparse.csr_matrix(X.T @ Y)
    together.sort_indices()
    sizes = np.diff(together.indptr)
    dense = sizes * DENSE >= n_labels
    sizes = np.where(dense, n_labels * (sizes > 0), sizes)
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    word = np.repeat(np.arange(sizes.size), sizes)
    label = (np.arange(ends[-1]) - ends[word]).astype(np.int32)  # right for dense words
    label[~dense[word]] = together.indices[~np.repeat(dense, np.diff(together.indptr))]
    starts = np.concatenate([[0], np.cumsum(np.diff(X.indptr) * np.diff(Y.indptr))])
    position = np.empty(starts[-1], np.int64)
    kernels.locate_pairs(documents, label, ends, starts, position)
    return kernels.Pairs(label, ends, position, starts)
