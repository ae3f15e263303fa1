"""Models that score each label on its own, and predict those whose score is high enough."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from numbers import Integral

import numpy as np
from scipy import sparse
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted, validate_data

from polytopic.counts import canonical_counts
from polytopic.labels import read_targets, with_fallback
from polytopic.models.base import LinearModel
from polytopic.models.checks import check_same_length
from polytopic.models.results import LabelEvidence, WordScores
from polytopic.text.weights import is_valid_counts, unit_rows


class LabelScoreModel(LinearModel):
    """A document model with one score per label, which is made of its words.

    Labels with a score above ``cut`` are predicted, or the best one if there is none. A subclass
    implements ``_check_words``, ``_learn``, ``_column_scores``, ``_score_proba`` and
    ``_column_words``; columns are the labels that have documents.
    """

    cut = 0.0
    best_if_none = True

    # Learning

    def fit(self, X, y, *, tuned=None):
        """Learn from documents.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts, or weights such as ltc or tf-idf.
        y : indicator of shape (n_docs, n_labels), or one collection of names per document
            Labels; 1-D means one label per document. Documents without a label or without a word
            are ignored.
        tuned : dict, default=None
            What an earlier fit has tuned (``tuned_``), to be reused, if the model tunes anything.
        """
        X, Y, _ = self._read_documents(X, y)
        self._learn(X, Y, tuned)
        return self

    def _read_documents(self, X, y):
        """Set the labels; return the documents with words and labels, their labels and rows."""
        self._check_parameters()
        targets = read_targets(y)
        X = self._check_words(X, reset=True)
        check_same_length(X, targets.Y)
        is_labelled = targets.Y.getnnz(axis=1) > 0
        if not is_labelled.any():
            raise ValueError("Y has no labelled document; at least one is needed.")
        self._set_labels(targets)
        self._allowed = np.ones(self._columns.size, dtype=bool)
        self.tuned_ = {}
        used = np.flatnonzero(is_labelled & (X.getnnz(axis=1) > 0))
        return self._scaled(X[used]), targets.Y[used][:, self._columns], used

    @abstractmethod
    def _learn(self, X, Y, tuned) -> None:
        """Learn from documents, all with words and labels.

        A model that tunes something reuses what is ``tuned``, or tunes it if that is None, and sets
        ``tuned_``, which is empty otherwise.
        """

    def restrict_to(self, allowed):
        """Return a copy that predicts only the labels where ``allowed`` is true."""
        model = copy(self)
        model._allowed = np.asarray(allowed)[self._columns]
        if not model._allowed.any():
            raise ValueError("no allowed label has a document.")
        model._fallback = self._fallback_within(allowed)
        return model

    @abstractmethod
    def _check_words(self, X, *, reset=False) -> sparse.csr_matrix:
        """Return the words of documents; raise if they are not what the model reads."""

    def _scaled(self, X) -> sparse.csr_matrix:
        """Return documents as ``_learn`` and ``_column_scores`` see them."""
        return X

    def _known_words(self, X) -> sparse.csr_matrix:
        """Return the words that scores depend on; a document without any gets the fallback."""
        return X

    # Predicting

    @abstractmethod
    def _column_scores(self, X) -> np.ndarray:
        """Return one score per document and column."""

    @abstractmethod
    def _score_proba(self, scores) -> np.ndarray:
        """Return the probability of a label with each score, on several labels."""

    def _scores(self, X):
        """Return the scores of all labels; ``-inf`` for those that are never predicted."""
        scores = np.full((X.shape[0], self.classes_.size), -np.inf)
        columns = self._column_scores(self._scaled(X))
        scores[:, self._columns[self._allowed]] = columns[:, self._allowed]
        return scores

    def decision_function(self, X):
        """Return one score per document and label; the class documents its meaning.

        It is ``-inf`` for a label without documents.
        """
        check_is_fitted(self)
        scores = self._scores(self._check_words(X))
        if self._form.kind == "single" and scores.shape[1] == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def predict_proba(self, X):
        """Return one probability per document and label; the class documents its meaning."""
        check_is_fitted(self)
        X = self._check_words(X)
        return self._probabilities(X, self._scores(X))

    def _probabilities(self, X, scores):
        proba = self._score_proba(scores)
        proba[self._known_words(X).getnnz(axis=1) == 0] = self.label_docs_ / self._n_docs
        proba[np.isneginf(scores)] = 0.0
        if self._form.kind == "single":
            total = proba.sum(axis=1, keepdims=True)
            proba = np.where(total > 0, proba / np.where(total > 0, total, 1.0), 1 / proba.shape[1])
        return proba

    def assess(self, X, labels=None):
        """Return predicted sets (CSR indicator), scores and probabilities."""
        check_is_fitted(self)
        X = self._check_words(X)
        scores = self._scores(X)
        return self._label_sets(X, scores), scores, self._probabilities(X, scores)

    def predict_indicator(self, X) -> sparse.csr_matrix:
        """Return the predicted label sets as a sparse indicator, whatever the form of ``Y``."""
        check_is_fitted(self)
        X = self._check_words(X)
        return self._label_sets(X, self._scores(X))

    def _label_sets(self, X, scores):
        single = self._form.kind == "single"
        chosen = np.zeros(scores.shape, dtype=bool) if single else scores > self.cut
        if single or self.best_if_none:
            docs = np.flatnonzero(~chosen.any(axis=1))
            chosen[docs, scores[docs].argmax(axis=1)] = True
        sets = sparse.csr_matrix(chosen.astype(np.float64))
        return with_fallback(self._known_words(X), sets, self._fallback)

    def best_with(self, X, label) -> sparse.csr_matrix:
        """Return each document's best label set that contains a label (a column)."""
        check_is_fitted(self)
        X = self._check_words(X)
        check_scalar(label, "label", Integral, min_val=0, max_val=self.classes_.size - 1)
        self._check_label(label, self._columns[self._allowed])
        chosen = (self._scores(X) > self.cut) & (self._form.kind != "single")
        chosen[:, label] = True
        return sparse.csr_matrix(chosen.astype(np.float64))

    # Explaining

    def top_words(self, label, k):
        """Return the ``k`` words with the largest weights for a label (a column), and these."""
        check_is_fitted(self)
        place = np.flatnonzero(self._columns == label)
        if not place.size:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        weights = self._column_words(int(place[0]))
        words = np.argsort(-weights, kind="stable")[:k]
        return words, weights[words]

    @abstractmethod
    def _column_words(self, column) -> np.ndarray:
        """Return the weight of each word for a column, (n_words,)."""


class WordWeightModel(LabelScoreModel):
    """A label score model that reads weights of words, and scales documents to unit length.

    A subclass also implements ``_column_evidence``.
    """

    reads = "weights"

    def _check_words(self, X, *, reset=False):
        if not is_valid_counts(self, X, reset=reset):
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=reset)
        return canonical_counts(X)

    def _scaled(self, X):
        return unit_rows(X)

    def label_evidence(self, x, labels) -> LabelEvidence:
        """Return what the scores of labels (columns of ``classes_``) are made of.

        ``x`` is one document. A label without documents has no evidence, and no score.
        """
        check_is_fitted(self)
        x = self._check_words(x)
        length = sparse.linalg.norm(x) or 1.0
        place = np.searchsorted(self._columns, labels)
        known = np.isin(labels, self._columns)
        evidence = self._column_evidence(self._scaled(x), place[known])
        by_word, base = np.zeros((x.nnz, len(labels))), np.full(len(labels), -np.inf)
        by_word[:, known], base[known] = evidence.by_word / length, evidence.base
        return LabelEvidence(x.data, by_word, base)

    @abstractmethod
    def _column_evidence(self, x, columns) -> LabelEvidence:
        """Return what the scores of columns are made of, for a document of unit length."""

    def explain_words(self, x, y):
        """Return what the score of a label set, the sum of its labels', is made of."""
        evidence = self.label_evidence(x, sparse.csr_matrix(y).indices)
        return WordScores(
            weights=evidence.weights,
            word_scores=evidence.by_word.sum(axis=1),
            corpus_scores=np.zeros(evidence.weights.size),
            mixing=float(evidence.base.sum()),
            by_label=evidence.by_word,
        )

    def _word_contributions(self, x, y):
        evidence = self.label_evidence(x, y.indices)
        return evidence.weights, evidence.by_word

    def _word_scores(self, x, y):
        return self._word_contributions(x, sparse.csr_matrix(y))[1]
