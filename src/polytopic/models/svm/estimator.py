"""The estimator of linear support vector machines."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.utils import check_random_state, check_scalar

from polytopic.array_specs import REAL, ArraySpec, check_arrays
from polytopic.interrupts import checkpoint
from polytopic.kernels.blocks import map_rows, run_tasks
from polytopic.models.base import LABEL_ARRAYS, check_label_arrays
from polytopic.models.checks import (
    LARGEST_WEIGHT,
    check_cost,
    check_fits,
    check_size,
    check_tuned,
    is_auto,
)
from polytopic.models.label_scores import WordWeightModel
from polytopic.models.registry import MANY_PER_DOCUMENT
from polytopic.models.results import LabelEvidence
from polytopic.models.svm import kernels

CELL_BYTES = 8  # of weights, per word and label
BLOCK = 64  # labels that share a pass over the documents

ARRAYS = LABEL_ARRAYS | {
    "weights": ArraySpec(REAL, ("n_words", "n_columns"), -LARGEST_WEIGHT, LARGEST_WEIGHT),
    "bias": ArraySpec(REAL, ("n_columns",), -LARGEST_WEIGHT, LARGEST_WEIGHT),
}


class LinearSVM(WordWeightModel):
    r"""Linear support vector machines, one per label, all trained in the same passes.

    For each label, with :math:`y_d = 1` for documents that have it and :math:`-1` for others,

    .. math:: \min_{w, b} \tfrac12 (w^\top w + b^2) + \sum_d C_d \max(0, 1 - y_d (w^\top x_d + b))^2

    is solved by dual coordinate descent [1]_. A document is read once for all labels, which is
    many times faster than one machine after the other. Rows of ``X`` are scaled to unit length.

    Parameters
    ----------
    C : float, default=0.3
        The cost of an error.
    balanced : bool or "auto", default="auto"
        Whether documents with a label and those without it weigh the same in total: ``C`` is
        multiplied by half the number of documents, over that of documents with the label, or
        without it. Otherwise rare labels are neglected. "auto" is True for documents with fewer
        than 15 labels on average: with more, errors on other documents must count.
    max_iter : int, default=10
        Number of passes over the documents.
    random_state : int, RandomState or None, default=0
        Determines the order in which documents are visited.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order, or column numbers if fitted on an indicator.
    n_iter_ : int
        Number of passes.
    tuned_ : dict
        Empty: nothing is tuned.

    Notes
    -----
    ``decision_function`` returns :math:`w^\top x + b`; labels above 0 are predicted, or the best
    one. ``predict_proba`` returns the logistic function of the score, which is not calibrated.

    References
    ----------
    .. [1] Hsieh, Chang, Lin, Keerthi and Sundararajan, "A Dual Coordinate Descent Method for
       Large-scale Linear SVM", ICML 2008.

    Examples
    --------
    >>> X = [[3, 0, 1], [0, 2, 1], [2, 2, 0]]
    >>> model = LinearSVM().fit(X, [["sport"], ["film"], ["film", "sport"]])
    >>> model.classes_, model.predict([[4, 0, 1]])
    (array(['film', 'sport'], dtype=object), array([[0, 1]]))
    """

    name = "svm"
    cut = 0.0

    def __init__(self, C=0.3, *, balanced="auto", max_iter=10, random_state=0):
        self.C = C
        self.balanced = balanced
        self.max_iter = max_iter
        self.random_state = random_state

    def _learn(self, X, Y, tuned):
        check_fits(self, X.shape[1], Y.shape[1], CELL_BYTES)
        self.n_iter_, auto = int(self.max_iter), is_auto(self.balanced)
        self._weights, self._bias = train(
            X,
            Y,
            cost=float(self.C),
            balanced=Y.nnz < MANY_PER_DOCUMENT * Y.shape[0] if auto else bool(self.balanced),
            order=check_random_state(self.random_state),
            n_passes=self.n_iter_,
        )

    def _check_parameters(self):
        check_cost(self.C, "C")
        if not is_auto(self.balanced):
            check_scalar(self.balanced, "balanced", (bool, np.bool_))
        check_size(self.max_iter, "max_iter")

    # Files and stores

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        return {"weights": self._weights, "bias": self._bias, **self._label_arrays()}

    def from_arrays(self, arrays, *, labels, n_words, tuned=None):
        """Restore what :meth:`to_arrays` returned; predictions are then identical bit for bit.

        Arrays that no model could have produced raise ValueError.
        """
        self._check_parameters()
        check_arrays(arrays, ARRAYS, n_labels=len(labels), n_words=n_words)
        check_label_arrays(arrays)
        self._restore_labels(arrays, labels, check_tuned(tuned, {}))
        self._weights, self._bias = arrays["weights"], arrays["bias"]
        self.n_iter_ = int(self.max_iter)
        self._allowed = np.ones(self._columns.size, dtype=bool)
        self.n_features_in_ = n_words
        return self

    # Scores

    def _column_scores(self, X):
        X = X.astype(self._weights.dtype)

        def block(data, indices, indptr, rows):
            scores = np.empty((indptr.size - 1, self._bias.size), self._weights.dtype)
            kernels.score_rows(data, indices, indptr, self._weights, self._bias, scores)
            return scores

        return np.vstack(map_rows(block, X, self._bias.size))

    def _score_proba(self, scores):
        return expit(scores)

    def _column_evidence(self, x, columns):
        by_word = self._weights[np.ix_(x.indices, columns)].astype(np.float64)
        return LabelEvidence(x.data, by_word, self._bias[columns].astype(np.float64))

    def _column_words(self, column):
        return self._weights[:, column].astype(np.float64)


def train(X, Y, *, cost, balanced, order, n_passes):
    """Return the weights (n_words, n_labels) and biases of one machine per column of ``Y``."""
    (n_docs, n_words), n_labels = X.shape, Y.shape[1]
    with_label = Y.getnnz(axis=0)
    n_docs_of = np.stack([n_docs - with_label, with_label])
    factor = max(n_docs, 1) / (2 * np.maximum(n_docs_of, 1)) if balanced else np.ones((2, n_labels))
    slack = (1 / (2 * cost * factor)).astype(np.float32)
    data, indices = X.data.astype(np.float32), X.indices.astype(np.int32)
    indptr, passes = X.indptr.astype(np.int64), [order.permutation(n_docs) for _ in range(n_passes)]

    def train_block(columns):
        labels = Y[:, columns]
        block = labels.shape[1]
        weights, bias = np.zeros((n_words, block), np.float32), np.zeros(block, np.float32)
        alpha = np.zeros((n_docs, block), np.float32)
        for visited in passes:
            checkpoint()
            kernels.descend(
                data,
                indices,
                indptr,
                labels.indices.astype(np.int32),
                labels.indptr.astype(np.int64),
                visited,
                np.ascontiguousarray(slack[:, columns]),
                alpha,
                weights,
                bias,
            )
        return weights, bias

    blocks = [slice(k, k + BLOCK) for k in range(0, n_labels, BLOCK)]
    weights, bias = zip(*run_tasks(train_block, blocks), strict=True)
    return np.hstack(weights), np.concatenate(bias)
