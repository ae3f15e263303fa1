"""The estimator that labels documents as the most similar ones are labelled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from polytopic.array_specs import REAL, WHOLE, ArraySpec, check_arrays, check_rows
from polytopic.counts.sampling import draw_documents
from polytopic.kernels.blocks import map_rows
from polytopic.labels import indicator
from polytopic.models.base import LABEL_ARRAYS, check_label_arrays
from polytopic.models.checks import check_size, check_tuned
from polytopic.models.label_scores import WordWeightModel
from polytopic.models.neighbours import kernels
from polytopic.models.results import LabelEvidence
from polytopic.text.weights import unit_rows

ARRAYS = LABEL_ARRAYS | {
    "data": ArraySpec(REAL, ("n_entries",), -1.001, 1.001),
    "indices": ArraySpec(WHOLE, ("n_entries",), 0, below="n_words"),
    "indptr": ArraySpec(WHOLE, ("n_rows+1",), 0),
    "row_labels": ArraySpec(WHOLE, ("n_members",), 0, below="n_columns"),
    "row_ends": ArraySpec(WHOLE, ("n_rows+1",), 0),
}


class Neighbours(NamedTuple):
    """The learned documents nearest to each document, best first.

    ``rows`` has their numbers among the learned documents that have labels and words, -1 where
    there are fewer; ``similarity`` their cosines, 0 there.
    """

    rows: np.ndarray
    similarity: np.ndarray


class NearestNeighbours(WordWeightModel):
    r"""Nearest neighbours by cosine: similar documents vote for their labels.

    The score of a label is its share of the votes. A neighbour's vote weighs as much as
    its cosine with the document:

    .. math:: s_l = \sum_{n \in N(x) : l \in y_n} \langle x, x_n \rangle \Big/
        \sum_{n \in N(x)} \langle x, x_n \rangle

    The search is exact. It reads only those entries of the learned documents that share a word with
    the document.

    Parameters
    ----------
    n_neighbours : int, default=20
        Number of neighbours.
    max_docs : int or None, default=None
        Maximum number of documents that are kept, drawn at random from those learned; all if None.
        By name, 8000.
    random_state : int, RandomState or None, default=0
        Determines which documents are kept.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order, or column numbers if fitted on an indicator.
    tuned_ : dict
        Empty: nothing is tuned.

    Notes
    -----
    Labels with more than half of the votes are predicted, or the best one. ``decision_function``
    returns the share of the votes, and ``predict_proba`` the same with half a vote for each label
    and half a vote against it, so that few neighbours are never certain.

    Examples
    --------
    >>> X = [[3, 0, 1], [0, 2, 1], [2, 2, 0]]
    >>> model = NearestNeighbours(1).fit(X, [["sport"], ["film"], ["film", "sport"]])
    >>> model.classes_, model.predict([[4, 0, 1]])
    (array(['film', 'sport'], dtype=object), array([[0, 1]]))
    """

    name = "knn"
    cut = 0.5

    def __init__(self, n_neighbours=20, *, max_docs=None, random_state=0):
        self.n_neighbours = n_neighbours
        self.max_docs = max_docs
        self.random_state = random_state

    def _learn(self, X, Y, tuned):
        if self.max_docs is not None and self.max_docs < X.shape[0]:
            drawn = np.sort(draw_documents(X.shape[0], int(self.max_docs), self.random_state))
            X, Y = X[drawn], Y[drawn]
        self._set_rows(X.astype(np.float32), Y)

    def _set_rows(self, rows, row_labels):
        self._rows, self._row_labels = rows, row_labels
        by_word = rows.tocsc()
        self._by_word = (
            by_word.data,
            by_word.indices.astype(np.int32),
            by_word.indptr.astype(np.int64),
        )

    def _check_parameters(self):
        check_size(self.n_neighbours, "n_neighbours")
        if self.max_docs is not None:
            check_size(self.max_docs, "max_docs")

    # Files and stores

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        return {
            "data": self._rows.data,
            "indices": self._rows.indices.astype(np.int32),
            "indptr": self._rows.indptr.astype(np.int64),
            "row_labels": self._row_labels.indices.astype(np.int32),
            "row_ends": self._row_labels.indptr.astype(np.int64),
            **self._label_arrays(),
        }

    def from_arrays(self, arrays, *, labels, n_words, tuned=None):
        """Restore what :meth:`to_arrays` returned; predictions are then identical bit for bit.

        Arrays that no model could have produced raise ValueError.
        """
        self._check_parameters()
        sizes = check_arrays(arrays, ARRAYS, n_labels=len(labels), n_words=n_words)
        check_label_arrays(arrays)
        check_rows("indices", arrays["indices"], arrays["indptr"], empty=False)
        check_rows("row_labels", arrays["row_labels"], arrays["row_ends"], empty=False)
        self._restore_labels(arrays, labels, check_tuned(tuned, {}))
        rows = sparse.csr_matrix(
            tuple(arrays[name] for name in ("data", "indices", "indptr")),
            shape=(sizes["n_rows"], n_words),
        )
        self._set_rows(
            rows, indicator(arrays["row_labels"], arrays["row_ends"], self._columns.size)
        )
        self._allowed = np.ones(self._columns.size, dtype=bool)
        self.n_features_in_ = n_words
        return self

    # Votes

    def neighbours(self, X) -> Neighbours:
        """Return the learned documents that are most similar to each document."""
        check_is_fitted(self)
        return self._nearest(unit_rows(self._check_words(X)))

    def _nearest(self, X) -> Neighbours:
        n_learned = self._rows.shape[0]
        k = min(int(self.n_neighbours), n_learned)

        def block(data, indices, indptr, rows):
            similarity = np.zeros((indptr.size - 1, k), np.float32)
            nearest = np.empty(similarity.shape, np.int32)
            kernels.find_nearest(
                data, indices, indptr, *self._by_word, n_learned, similarity, nearest
            )
            return nearest, similarity

        blocks = map_rows(block, X.astype(np.float32), n_learned)
        return Neighbours(*map(np.vstack, zip(*blocks, strict=True)))

    def _votes(self, X) -> sparse.csr_matrix:
        """Return the share of the votes that each learned document has (n_docs, n_learned)."""
        rows, similarity = self._nearest(X)
        weight = similarity.astype(np.float64)
        total = weight.sum(axis=1, keepdims=True)
        weight /= np.where(total > 0, total, 1.0)
        is_neighbour = rows >= 0
        ends = np.concatenate([[0], np.cumsum(is_neighbour.sum(axis=1))])
        shape = (X.shape[0], self._rows.shape[0])
        return sparse.csr_matrix((weight[is_neighbour], rows[is_neighbour], ends), shape=shape)

    def _column_scores(self, X):
        return (self._votes(X) @ self._row_labels).toarray()

    def _score_proba(self, scores):
        n_votes = int(self.n_neighbours)
        return (n_votes * np.maximum(scores, 0.0) + 0.5) / (n_votes + 1)

    def _column_evidence(self, x, columns):
        rows, similarity = self._nearest(x)
        rows, total = rows[rows >= 0], float(similarity.sum(dtype=np.float64))
        words = self._rows[rows][:, x.indices].astype(np.float64)
        by_word = words.T @ self._row_labels[rows][:, columns]
        return LabelEvidence(x.data, by_word.toarray() / (total or 1.0), np.zeros(len(columns)))

    def _column_words(self, column):
        with_label = self._row_labels[:, [column]]
        return (self._rows.T @ with_label).toarray()[:, 0] / with_label.nnz
