"""A scikit-learn classifier as a model."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from polytopic.kernels.blocks import run_tasks
from polytopic.models.base import Model
from polytopic.models.label_scores import WordWeightModel
from polytopic.models.results import LabelEvidence

SAMPLE = 32  # documents on which a classifier shows whether it is linear


class ClassifierModel(WordWeightModel):
    """Makes a scikit-learn classifier a model of weighted words, for label sets.

    One that supports several labels is fitted once, and any other one on each label. Rows of ``X``
    are scaled to unit length; they become dense if the classifier does not read sparse matrices.

    Parameters
    ----------
    classifier : estimator
        A classifier with ``decision_function`` or ``predict_proba``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order, or column numbers if fitted on an indicator.
    classifiers_ : list of estimators
        The fitted classifier, or one per label.
    is_linear_ : bool
        Whether the scores are sums over words, so that words explain them.
    tuned_ : dict
        Empty: nothing is tuned.

    Notes
    -----
    ``decision_function`` is that of the classifier or, if it has none, its probability minus 0.5;
    labels above 0 are predicted, or the best one. ``predict_proba`` returns the classifier's
    probability if it has no ``decision_function``, and the logistic function of the score
    otherwise. A label that every document has scores infinity.

    The scores of a classifier with ``coef_`` are explained by words. The scores of others are not
    made of words: evidence is 0, and shares are equal. It cannot be written to a file, because
    every format that holds any classifier can also run code.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = [[3, 0, 1], [0, 2, 1], [2, 2, 0]]
    >>> model = ClassifierModel(LogisticRegression(C=100.0))
    >>> model.fit(X, [["sport"], ["film"], ["film", "sport"]]).predict([[4, 0, 1]])
    array([[0, 1]])
    """

    name = "classifier"
    cut = 0.0

    def __init__(self, classifier):
        self.classifier = classifier

    # Learning

    def _learn(self, X, Y, tuned):
        Y = Y.toarray().astype(np.int64)
        varies = np.flatnonzero(Y.min(axis=0) == 0)  # no classifier learns a label that all have
        several = varies.size > 1 and get_tags(self.classifier).classifier_tags.multi_label
        self._parts = [varies] if several else [np.array([column]) for column in varies]
        X_read = self._readable(X)

        def fit_part(columns):
            y = Y[:, columns] if several else Y[:, columns[0]]
            return clone(self.classifier).fit(X_read, y)

        self.classifiers_ = run_tasks(fit_part, self._parts)
        self._n_columns = Y.shape[1]
        self._set_weights(X[:SAMPLE])

    def _set_weights(self, X):
        """Take the weights of words, if the scores of some documents are sums of these."""
        self.is_linear_ = False
        if not all(hasattr(c, "coef_") and _has_scores(c) for c in self.classifiers_):
            return
        weights = np.zeros((X.shape[1], self._n_columns))
        bias = np.full(self._n_columns, np.inf)
        for columns, classifier in zip(self._parts, self.classifiers_, strict=True):
            coefficients = classifier.coef_
            if sparse.issparse(coefficients):
                coefficients = coefficients.toarray()
            coefficients = np.atleast_2d(coefficients)
            if coefficients.shape != (columns.size, X.shape[1]):
                return
            weights[:, columns] = coefficients.T
            bias[columns] = getattr(classifier, "intercept_", 0.0)
        if np.allclose(X @ weights + bias, self._column_scores(X), rtol=1e-3, atol=1e-6):
            self.is_linear_, self._weights, self._bias = True, weights, bias

    def _readable(self, X):
        """Return documents in a form that the classifier reads."""
        return X if get_tags(self.classifier).input_tags.sparse else X.toarray()

    def _check_parameters(self):
        if not is_foreign_classifier(self.classifier):
            raise TypeError(
                f"classifier == {self.classifier!r}, must be a classifier of scikit-learn."
            )
        if not _has_scores(self.classifier) and not hasattr(self.classifier, "predict_proba"):
            raise ValueError(
                f"{type(self.classifier).__name__} has neither decision_function nor "
                "predict_proba, so it does not score labels; use another classifier."
            )

    # Scores

    def _column_scores(self, X):
        scores, X = np.full((X.shape[0], self._n_columns), np.inf), self._readable(X)
        for columns, classifier in zip(self._parts, self.classifiers_, strict=True):
            scores[:, columns] = _scores(classifier, X, columns.size)
        return scores

    def _score_proba(self, scores):
        if all(map(_has_scores, self.classifiers_)):
            return expit(scores)
        return np.clip(scores + 0.5, 0.0, 1.0)

    # Explaining

    def _column_evidence(self, x, columns):
        if not self.is_linear_:
            none = np.zeros((x.nnz, len(columns)))
            return LabelEvidence(x.data, none, self._column_scores(x)[0, columns])
        return LabelEvidence(x.data, self._weights[np.ix_(x.indices, columns)], self._bias[columns])

    def top_words(self, label, k):
        """Return the ``k`` words with the largest weights for a label (a column), and these.

        There are none if the classifier is not linear.
        """
        check_is_fitted(self)
        if not self.is_linear_:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        return super().top_words(label, k)

    def _column_words(self, column):
        return self._weights[:, column]

    # Files

    def to_arrays(self):
        """Raise ValueError: a classifier cannot be stored."""
        raise ValueError(self._why_no_file())

    def from_arrays(self, arrays, *, labels, n_words, tuned=None):
        """Raise ValueError: a classifier cannot be stored."""
        raise ValueError(self._why_no_file())

    def _why_no_file(self):
        return (
            f"{type(self.classifier).__name__} is not a model of polytopic, so it cannot be saved: "
            "that would need a file that can run code. Use a model such as 'svm' or 'forest'."
        )


def is_foreign_classifier(value) -> bool:
    """Return whether a value is an instance of a classifier that is not a model of ours."""
    return (
        isinstance(value, BaseEstimator) and not isinstance(value, Model) and is_classifier(value)
    )


def _has_scores(classifier):
    return hasattr(classifier, "decision_function")


def _scores(classifier, X, n_labels):
    """Return the scores (n_docs, n_labels) of one label or several, each with two classes."""
    if _has_scores(classifier):
        return classifier.decision_function(X).reshape(X.shape[0], n_labels)
    proba = classifier.predict_proba(X)
    if isinstance(proba, list):  # one array per label
        proba = np.column_stack([of_label[:, -1] for of_label in proba])
    elif n_labels == 1:
        proba = proba[:, -1:]
    return proba - 0.5
