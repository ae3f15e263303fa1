"""What boosted rules of one word answer, and why."""

from __future__ import annotations

from copy import copy
from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.labels import with_fallback
from polytopic.models.arrays import NOTHING_CHOSEN, check_chosen, check_rules
from polytopic.models.boost_training import Rules
from polytopic.models.checks import check_words
from polytopic.models.linear_reasons import LinearReasons
from polytopic.models.words import Account, softmax


class WordRule(NamedTuple):
    """A rule: what is added to the scores of a document that has a word."""

    word: int
    outputs: np.ndarray  # (n_labels,), 0 for a label without documents
    z: float  # by which the total of the weights was multiplied


class BoostAnswers(LinearReasons):
    """Adds up what rules say of the words that a document has."""

    # What was learned

    def _set_rules(self, rules: Rules, n_words):
        """Take over rules; those of the same word become one."""
        self._rules, self.n_features_in_ = rules, n_words
        self._words, place = np.unique(rules.words, return_inverse=True)
        self._weights = np.zeros((self._words.size, self._columns.size))
        np.add.at(self._weights, place, rules.outputs)
        self._open = np.ones(self._columns.size, dtype=bool)  # labels that may be answered

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
        """What each round multiplied the total of the weights by."""
        check_is_fitted(self)
        return self._rules.z

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        words, outputs, z = self._rules
        return {"words": words, "outputs": outputs, "z": z, **self._label_arrays()}

    def from_arrays(self, arrays, *, labels, n_words, chosen=None):
        """Take over what :meth:`to_arrays` gave; prediction is then the same to the bit.

        Arrays that no model could have given raise ValueError.
        """
        self._check_parameters()
        check_rules(arrays, len(labels), n_words)
        self._take_labels(arrays, labels, check_chosen(chosen, NOTHING_CHOSEN))
        self._set_rules(Rules(*(arrays[name] for name in Rules._fields)), n_words)
        return self

    def restricted(self, allowed):
        """Return this model with some of its labels only: those where ``allowed`` is true."""
        model = copy(self)
        model._open = np.asarray(allowed)[self._columns]
        if not model._open.any():
            raise ValueError("none of the labels that are allowed has a document.")
        model._fallback = self._fallback_within(allowed)
        return model

    # Answers

    def _check_words(self, X, *, reset=False):
        """Return which words documents have: ones."""
        X = check_words(self, X, reset=reset)
        return sparse.csr_matrix((np.ones(X.nnz), X.indices, X.indptr), shape=X.shape)

    def _known(self, X):
        """Return which words with rules documents have."""
        return sparse.csr_matrix(X[:, self._words])

    def _scores(self, X):
        """Return the sum of what the rules say; ``-inf`` for labels that are never answered."""
        scores = np.full((X.shape[0], self.classes_.size), -np.inf)
        scores[:, self._columns[self._open]] = (self._known(X) @ self._weights)[:, self._open]
        return scores

    def decision_function(self, X):
        """Return the sum of what the rules say of each label; 0 where they all abstain.

        It is ``-inf`` for a label without documents.
        """
        check_is_fitted(self)
        scores = self._scores(self._check_words(X))
        if self._form.kind == "single" and scores.shape[1] == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def predict_proba(self, X):
        """Return one probability for each document and label; see the notes of the class."""
        check_is_fitted(self)
        X = self._check_words(X)
        return self._probabilities(X, self._scores(X))

    def _probabilities(self, X, scores):
        proba = softmax(scores) if self._form.kind == "single" else expit(2.0 * scores)
        proba[self._known(X).getnnz(axis=1) == 0] = self.label_docs_ / self._n_docs
        proba[np.isneginf(scores)] = 0.0
        if self._form.kind == "single":
            proba /= proba.sum(axis=1, keepdims=True)
        return proba

    def assess(self, X, labels=None):
        """Return predicted sets (CSR indicator), scores and probabilities."""
        check_is_fitted(self)
        X = self._check_words(X)
        scores = self._scores(X)
        return self._chosen(X, scores), scores, self._probabilities(X, scores)

    def choose(self, X) -> sparse.csr_matrix:
        """Return the predicted label sets as a sparse indicator, whatever the form of ``Y``."""
        check_is_fitted(self)
        X = self._check_words(X)
        return self._chosen(X, self._scores(X))

    def _chosen(self, X, scores):
        single, docs = self._form.kind == "single", np.arange(X.shape[0])
        given = np.zeros(scores.shape, dtype=bool) if single else scores > 0.0
        if single or self.best_if_none:
            docs = np.flatnonzero(~given.any(axis=1))
            given[docs, scores[docs].argmax(axis=1)] = True
        sets = sparse.csr_matrix(given.astype(np.float64))
        return with_fallback(self._known(X), sets, self._fallback)

    def best_with(self, X, label) -> sparse.csr_matrix:
        """Return each document's best label set that holds a label (a column), as an indicator."""
        check_is_fitted(self)
        X = self._check_words(X)
        check_scalar(label, "label", Integral, min_val=0, max_val=self.classes_.size - 1)
        self._check_label(label, self._columns[self._open])
        given = (self._scores(X) > 0.0) & (self._form.kind != "single")
        given[:, label] = True
        return sparse.csr_matrix(given.astype(np.float64))

    # Reasons

    def account(self, x, y) -> Account:
        """Return what one document's score of a label set is made of, for words that count one."""
        check_is_fitted(self)
        counts = check_words(self, x)
        by_label = self._word_scores(counts, y) / counts.data[:, None]
        return Account(by_label.sum(axis=1), 0.0, by_label)

    def top_words(self, label, k):
        """Return the ``k`` words that speak most for a label (a column), and their weights."""
        check_is_fitted(self)
        place = np.flatnonzero(self._columns == label)
        if not place.size:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        weights = np.zeros(self.n_features_in_)
        weights[self._words] = self._weights[:, int(place[0])]
        words = np.argsort(-weights, kind="stable")[:k]
        return words, weights[words]

    def _word_scores(self, x, y):
        """Return what one document's words add to the score of each label of a set."""
        weights = np.zeros((self._words.size + 1, self.classes_.size))  # the last has no rule
        weights[:-1, self._columns] = self._weights
        place = np.full(self.n_features_in_, self._words.size)
        place[self._words] = np.arange(self._words.size)
        return weights[np.ix_(place[x.indices], sparse.csr_matrix(y).indices)]
