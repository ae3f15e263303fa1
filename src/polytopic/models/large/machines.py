"""Linear machines of thousands of labels, each trained on the documents that resemble its own."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.special import expit

from polytopic.array_specs import ArraySpec, check_arrays, check_rows
from polytopic.interrupts import checkpoint
from polytopic.kernels.blocks import map_rows, run_tasks
from polytopic.models.base import LABEL_ARRAYS, check_label_arrays
from polytopic.models.checks import LARGEST_WEIGHT, check_cost, check_tuned
from polytopic.models.large import ranking_kernels, training_kernels
from polytopic.models.large.candidates import (
    NO_LABEL,
    CandidateModel,
    Candidates,
    column_words,
    word_rows,
)

BLOCK_WORK = 4000  # labels and documents of labels in a block, which one thread trains
CAPACITY = 1 << 20  # weights that are stored at once
OTHER_COSTS = 0.1, 0.3  # of errors on other documents, for rare and for frequent labels
FREQUENT = 20  # documents from which on a label is frequent
SHORTLIST = 1000, 20  # other documents, at least and more for each own document
MAX_PASSES = 5
TOLERANCE = 0.5  # of the projected gradients
SMALLEST = 0.05  # weights nearer to 0 are left out
BLOCK_LABELS = 4000  # as if there were so many: blocks have enough rows, and there are enough
CUT = -0.5  # labels with a higher score are predicted

ARRAYS = LABEL_ARRAYS | {
    "data": ArraySpec(("float32",), ("n_entries",), -LARGEST_WEIGHT, LARGEST_WEIGHT),
    "indices": ArraySpec(("int32",), ("n_entries",), 0, below="n_words"),
    "indptr": ArraySpec(("int64",), ("n_columns+1",), 0),
}


class ShortlistSVM(CandidateModel):
    r"""Linear support vector machines for thousands of labels, each trained on a shortlist.

    The documents that resemble those of a label most are found through an index of words, and only
    these are its negatives. For each label, with :math:`y_d = 1` for its own documents and
    :math:`-1` for the others of its shortlist,

    .. math:: \min_w \tfrac12 w^\top w + \sum_d C_d \max(0, 1 - y_d (w^\top x_d - 1))^2

    is solved by dual coordinate descent [1]_. The bias is fixed at -1, so a document that shares no
    word with a label costs nothing, in training as in prediction. Weights are sparse. Rows of ``X``
    are scaled to unit length.

    Parameters
    ----------
    C : float, default=1.0
        The cost of an error on a label's own documents. On others it is a tenth, or three tenths
        for labels with 20 documents or more.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order, or column numbers if fitted on an indicator.
    tuned_ : dict
        Empty: nothing is tuned.

    Notes
    -----
    ``decision_function`` returns :math:`w^\top x - 1`, for the best 100 labels of each document;
    labels above -0.5 are predicted, or the best one. ``predict_proba`` returns the logistic
    function of the score, which is not calibrated. See :class:`CandidateModel` for the form of the
    answers.

    References
    ----------
    .. [1] Hsieh, Chang, Lin, Keerthi and Sundararajan, "A Dual Coordinate Descent Method for
       Large-scale Linear SVM", ICML 2008.

    Examples
    --------
    >>> X = [[3, 0, 1], [0, 2, 1], [2, 2, 0]]
    >>> model = ShortlistSVM().fit(X, [["sport"], ["film"], ["film", "sport"]])
    >>> model.decision_function([[4, 0, 1]]).toarray().round(2)
    array([[-0.34,  0.58]])
    """

    name = "shortlist-svm"
    cut = CUT

    def __init__(self, C=1.0):
        self.C = C

    def _learn(self, X, Y, tuned):
        self._set_weights(train_machines(X, Y, cost=float(self.C)))

    def _set_weights(self, by_label):
        self._weights = sparse.csr_matrix(by_label.T)
        self._weights.sort_indices()

    def _check_parameters(self):
        check_cost(self.C, "C")

    # Files and stores

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        return {**machine_arrays(self._weights), **self._label_arrays()}

    def from_arrays(self, arrays, *, labels, n_words, tuned=None):
        """Restore what :meth:`to_arrays` returned; predictions are then identical bit for bit.

        Arrays that no model could have produced raise ValueError.
        """
        self._check_parameters()
        check_arrays(arrays, ARRAYS, n_labels=len(labels), n_words=n_words)
        check_label_arrays(arrays)
        self._restore_labels(arrays, labels, check_tuned(tuned, {}))
        self._set_weights(restore_machines(arrays, self._columns.size, n_words))
        self._allowed = np.ones(self._columns.size, dtype=bool)
        self.n_features_in_ = n_words
        return self

    # Scores

    def _rank(self, X, allowed, extra):
        n_places = min(ranking_kernels.MAX_CANDIDATES, allowed.size) + extra.size
        n_places = min(n_places, allowed.size)
        labels = np.full((X.shape[0], n_places), NO_LABEL, np.int32)
        scores = np.zeros(labels.shape)
        weights = arrays_of(self._weights)

        def block(data, indices, indptr, rows):
            ranking_kernels.rank_machine(
                data, indices, indptr, *weights, allowed, extra, labels[rows], scores[rows]
            )

        map_rows(block, X.astype(np.float32), BLOCK_LABELS)
        return Candidates(labels, scores)

    def _proba(self, scores):
        return expit(scores - self.cut)

    def _choose(self, scores, proba, used):
        return scores > self.cut

    # Explaining

    def _word_evidence(self, x, columns):
        return word_rows(self._weights, x.indices, columns)

    def _column_words(self, column):
        return column_words(self._weights, column)


def machine_arrays(weights) -> dict[str, np.ndarray]:
    """Return the weights of words × labels as plain arrays, label by label."""
    by_label = weights.tocsc()
    by_label.sort_indices()
    data, indices, indptr = arrays_of(by_label)
    return {"data": data, "indices": indices, "indptr": indptr}


def restore_machines(arrays, n_labels: int, n_words: int) -> sparse.csr_matrix:
    """Return the weights of labels × words; raise if arrays are no such matrix."""
    check_rows("indices", arrays["indices"], arrays["indptr"])
    parts = tuple(arrays[name] for name in ("data", "indices", "indptr"))
    return sparse.csr_matrix(parts, shape=(n_labels, n_words))


def arrays_of(matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of a compressed matrix in the types that kernels are compiled for."""
    return matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int64)


def train_machines(X, Y, *, cost: float = 1.0) -> sparse.csr_matrix:
    """Return the weights of words for each label (n_labels, n_words), in single precision.

    Parameters
    ----------
    X : csr_matrix of shape (n_docs, n_words)
        Documents of unit length.
    Y : csr_matrix of shape (n_docs, n_labels)
        Their labels.
    cost : float, default=1.0
        The cost of an error on a label's own documents; it multiplies that on others, too.
    """
    X = X.astype(np.float32)
    of_labels = Y.tocsc()
    of_labels.sort_indices()
    _, docs, starts = arrays_of(of_labels)
    rows, columns = arrays_of(X), arrays_of(X.tocsc())
    costs = np.array([OTHER_COSTS[0] * cost, OTHER_COSTS[1] * cost, FREQUENT, cost])
    shortlist = np.array(SHORTLIST, dtype=np.float64)
    work = starts + np.arange(starts.size)
    cuts = np.searchsorted(work, np.arange(BLOCK_WORK, work[-1], BLOCK_WORK))
    borders = np.unique(np.concatenate([[0], cuts, [Y.shape[1]]])).tolist()

    def train_block(block):
        begin, end = block
        parts, sizes = [], []
        capacity = CAPACITY
        while begin < end:
            checkpoint()
            words = np.empty(capacity, np.int32)
            weights, ends = np.empty(capacity, np.float32), np.zeros(end - begin + 1, np.int64)
            after = training_kernels.train_labels(
                *rows,
                *columns,
                docs,
                starts,
                begin,
                end,
                costs,
                shortlist,
                MAX_PASSES,
                TOLERANCE,
                SMALLEST,
                words,
                weights,
                ends,
            )
            ends = ends[: after - begin + 1]
            parts.append((words[: ends[-1]].copy(), weights[: ends[-1]].copy()))
            sizes.append(np.diff(ends))
            capacity, begin = max(capacity, X.shape[1]), after  # one label always fits
        return parts, sizes

    blocks = run_tasks(train_block, list(pairwise(borders)))
    parts = [part for parts, _ in blocks for part in parts]
    sizes = [size for _, sizes in blocks for size in sizes]
    words = np.concatenate([np.zeros(0, np.int32), *(part[0] for part in parts)])
    weights = np.concatenate([np.zeros(0, np.float32), *(part[1] for part in parts)])
    ends = np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, np.int64), *sizes]))])
    return sparse.csr_matrix((weights, words, ends), shape=(Y.shape[1], X.shape[1]))
