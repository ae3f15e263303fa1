"""What models of thousands of labels share: each document has scores for some candidates only."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.labels import with_fallback
from polytopic.models.label_scores import WordWeightModel
from polytopic.models.registry import LARGE_LABELS
from polytopic.models.results import LabelEvidence

NO_LABEL = -1
N_FREQUENT = 100  # labels that a document without words has a probability for
MAX_EXTRA = 100  # labels whose scores can be asked for


class Candidates(NamedTuple):
    """The candidate labels of documents, and one number for each.

    Attributes
    ----------
    labels : ndarray of shape (n_docs, n_places)
        Columns, in any order; ``NO_LABEL`` in places that are not used, which come last.
    values : ndarray of shape (n_docs, n_places)
        Their scores or probabilities.
    """

    labels: np.ndarray
    values: np.ndarray

    @property
    def used(self) -> np.ndarray:
        """Which places have a label."""
        return self.labels != NO_LABEL

    def matrix(self, columns, n_labels: int) -> sparse.csr_matrix:
        """Return the numbers as a matrix of documents × labels, which stores those of candidates.

        ``columns`` are the labels that have documents.
        """
        used = self.used
        ends = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
        indices = columns[self.labels[used]]
        matrix = sparse.csr_matrix(
            (self.values[used].astype(np.float64), indices, ends),
            shape=(self.labels.shape[0], n_labels),
        )
        matrix.sort_indices()
        return matrix


class CandidateModel(WordWeightModel):
    """A model of weighted words that scores only the candidate labels of each document.

    ``decision_function`` and ``predict_proba`` return CSR matrices, where an absent label is not a
    candidate, and ``predict`` returns a CSR indicator. If the model was fitted on a dense ``Y``
    with fewer than ``LARGE_LABELS`` labels, all labels are candidates, and answers are dense.

    A subclass implements ``_learn``, ``_rank``, ``_proba`` and ``_choose``.
    """

    finds_candidates = True

    @abstractmethod
    def _rank(self, X, allowed, extra) -> Candidates:
        """Return the candidates of documents of unit length, and their scores.

        They are the best of the ``allowed`` columns, and all columns in ``extra``.
        """

    @abstractmethod
    def _proba(self, scores) -> np.ndarray:
        """Return the probabilities that scores stand for."""

    @abstractmethod
    def _choose(self, scores, proba, used) -> np.ndarray:
        """Return which of the candidates in each row are predicted."""

    @property
    def is_dense(self) -> bool:
        """Whether answers are dense, as the ``Y`` that was learned."""
        dense = self._form.kind in ("dense", "single")
        return dense and self.classes_.size < LARGE_LABELS

    # Answers

    def _candidates(self, X, labels=()) -> Candidates:
        """Return the candidates of documents; ``labels`` are columns that are asked for."""
        if self.is_dense:
            extra = np.flatnonzero(self._allowed)
        else:
            asked = np.asarray(labels, dtype=np.int64)
            places = np.searchsorted(self._columns, asked)[np.isin(asked, self._columns)]
            extra = np.unique(places[self._allowed[places]])
            extra = extra if extra.size <= MAX_EXTRA else extra[:0]
        return self._rank(self._scaled(X), self._allowed, extra)

    def _answer(self, candidates: Candidates, absent: float):
        """Return the numbers of candidates in the form of answers."""
        matrix = candidates.matrix(self._columns, self.classes_.size)
        if not self.is_dense:
            return matrix
        dense = np.full(matrix.shape, absent)
        dense[np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.indices] = (
            matrix.data
        )
        return dense

    def _scores(self, X):
        return self._answer(self._candidates(X), -np.inf)

    def _column_scores(self, X):
        raise NotImplementedError

    def _score_proba(self, scores):
        raise NotImplementedError

    def predict_proba(self, X):
        """Return one probability per document and candidate label."""
        check_is_fitted(self)
        X = self._check_words(X)
        return self._probabilities(X, self._candidates(X))

    def _probabilities(self, X, candidates):
        used = candidates.used
        if self._form.kind == "single":
            proba = odds_shares(np.where(used, candidates.values, -np.inf))
        else:
            proba = np.where(used, self._proba(candidates.values), 0.0)
        matrix = self._answer(candidates._replace(values=proba), 0.0)
        unknown = X.getnnz(axis=1) == 0
        if not unknown.any():
            return matrix
        return self._with_frequent(matrix, unknown)

    def _with_frequent(self, proba, rows):
        """Return probabilities, with those of frequent labels for documents without words."""
        docs = self.label_docs_[self._columns] * self._allowed
        n = docs.size if self.is_dense else min(N_FREQUENT, docs.size)
        frequent = np.sort(np.argsort(-docs, kind="stable")[:n])
        share = docs[frequent] / self._n_docs
        if self._form.kind == "single":
            share = share / share.sum()
        row = sparse.csr_matrix(
            (share, (np.zeros(n, dtype=int), self._columns[frequent])), shape=(1, proba.shape[1])
        )
        if self.is_dense:
            proba[rows] = row.toarray()
            return proba
        known = sparse.diags_array((~rows).astype(np.float64)) @ proba
        known.eliminate_zeros()
        return sparse.csr_matrix(known + sparse.csr_matrix(rows[:, None].astype(float)) @ row)

    def assess(self, X, labels=None):
        """Return predicted sets (CSR indicator), scores and probabilities.

        Up to ``MAX_EXTRA`` ``labels`` (columns) are scored even if they are not candidates.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        candidates = self._candidates(X, () if labels is None else labels)
        return (
            self._sets(X, candidates),
            self._answer(candidates, -np.inf),
            self._probabilities(X, candidates),
        )

    def predict(self, X):
        """Return the labels of each document: an indicator, which is sparse unless ``Y`` was dense.

        A document with no known words gets the most frequent label set.
        """
        Y = self.predict_indicator(X)
        if self._form.kind == "single":
            return self.classes_[Y.indices]
        return self._form.convert(Y) if self.is_dense else Y.astype(self._form.dtype)

    def predict_indicator(self, X) -> sparse.csr_matrix:
        """Return the predicted label sets as a sparse indicator, whatever the form of ``Y``."""
        check_is_fitted(self)
        X = self._check_words(X)
        return self._sets(X, self._candidates(X))

    def _chosen(self, candidates: Candidates) -> np.ndarray:
        """Return which candidates are predicted."""
        used = candidates.used
        scores = np.where(used, candidates.values, -np.inf)
        if self._form.kind == "single":
            chosen = np.zeros(used.shape, dtype=bool)
        else:
            proba = np.where(used, self._proba(candidates.values), 0.0)
            chosen = self._choose(scores, proba, used) & used
        if used.shape[1]:
            # of equal scores, the first label is the best one, as in a dense row
            order = np.lexsort((candidates.labels, -scores), axis=1)[:, 0]
            docs = np.flatnonzero(~chosen.any(axis=1))
            chosen[docs, order[docs]] = used[docs, order[docs]]
        return chosen

    def _sets(self, X, candidates):
        chosen = self._chosen(candidates)
        labels = np.where(chosen, candidates.labels, NO_LABEL)
        sets = Candidates(labels, chosen).matrix(self._columns, self.classes_.size)
        known = chosen.any(axis=1) & (X.getnnz(axis=1) > 0)
        known = sparse.csr_matrix(known[:, None].astype(np.float64))
        return with_fallback(known, sets, self._fallback)

    def best_with(self, X, label) -> sparse.csr_matrix:
        """Return the predicted label set of each document, with a label (a column) added."""
        check_is_fitted(self)
        X = self._check_words(X)
        check_scalar(label, "label", Integral, min_val=0, max_val=self.classes_.size - 1)
        self._check_label(label, self._columns[self._allowed])
        n_docs = X.shape[0]
        alone = sparse.csr_matrix(
            (np.ones(n_docs), np.full(n_docs, label), np.arange(n_docs + 1)),
            shape=(n_docs, self.classes_.size),
        )
        if self._form.kind == "single":
            return alone
        sets = sparse.csr_matrix(self.predict_indicator(X) + alone)
        sets.data[:] = 1.0
        return sets

    # Explaining

    def _column_evidence(self, x, columns) -> LabelEvidence:
        by_word = self._word_evidence(x, columns)
        if not len(columns):
            return LabelEvidence(x.data, by_word, np.zeros(0))
        asked = np.unique(columns)
        scored = self._rank(x, self._allowed, asked)
        of_label = dict(zip(scored.labels[0].tolist(), scored.values[0].tolist(), strict=True))
        scores = np.array([of_label[column] for column in np.asarray(columns).tolist()])
        return LabelEvidence(x.data, by_word, scores - x.data @ by_word)

    @abstractmethod
    def _word_evidence(self, x, columns) -> np.ndarray:
        """Return what one unit of each word of a document adds to the scores of columns."""


def odds_shares(log_odds) -> np.ndarray:
    """Return the share of each label in the odds of all labels of a document."""
    best = log_odds.max(axis=1, initial=-np.inf, keepdims=True)
    odds = np.exp(log_odds - np.where(np.isfinite(best), best, 0.0))
    total = odds.sum(axis=1, keepdims=True)
    return odds / np.where(total > 0, total, 1.0)


def column_words(matrix, column: int) -> np.ndarray:
    """Return a column of a CSR matrix of words × labels as an array."""
    return matrix[:, [column]].toarray()[:, 0]


def word_rows(matrix, words, columns) -> np.ndarray:
    """Return some rows and columns of a CSR matrix of words × labels as an array."""
    return matrix[words][:, columns].toarray().astype(np.float64)
