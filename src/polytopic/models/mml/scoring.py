"""Scores of label sets by linear weights of words, and the best label sets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from polytopic.kernels.blocks import map_rows
from polytopic.labels import stack_sets
from polytopic.models.mml import search_kernels
from polytopic.models.mml.embedding import with_knots
from polytopic.text.weights import unit_rows


@dataclass(frozen=True)
class SetScorer:
    """Scores label sets by the words of documents of unit length.

    Attributes
    ----------
    weights : ndarray of shape (n_words, rank, n_columns)
        Weights of words for the labels that have any.
    vectors : ndarray of shape (n_sizes, rank)
        Embedding of the sizes of label sets, from the empty set on.
    columns : ndarray of shape (n_columns,)
        The labels that have weights.
    allowed : ndarray
        Places in ``columns`` of the labels that may be predicted.
    n_labels : int
        Number of labels, with weights or without.
    single : bool
        Whether all label sets have one label.
    has_empty : bool
        Whether the empty set may be predicted, too; it scores 0.
    """

    weights: np.ndarray
    vectors: np.ndarray
    columns: np.ndarray
    allowed: np.ndarray
    n_labels: int
    single: bool
    has_empty: bool = False

    @cached_property
    def labels(self):
        """The labels that may be predicted."""
        return self.columns[self.allowed]

    @cached_property
    def sizes(self):
        """The embedding of the sizes that label sets may have."""
        largest = 1 if self.single else self.allowed.size
        vectors = self.vectors[: largest + 1].astype(self.weights.dtype)
        return with_knots(vectors, has_empty=self.has_empty and not self.single)

    # Label sets

    def best(self, X) -> sparse.csr_matrix:
        """Return each document's best label set."""
        return stack_sets(self._map_scores(lambda Z, _: self._best(Z), X), self.n_labels)

    def _best(self, Z):
        """Return the sizes of the best label sets, and their labels."""
        n_docs, rank, n_labels = Z.shape
        labels, set_sizes = np.empty(n_docs * n_labels, np.int32), np.empty(n_docs, np.int64)
        work = search_kernels.new_search(rank, n_labels, Z.dtype)
        n = search_kernels.best_sets(Z, self.sizes, work, labels, set_sizes)
        return set_sizes, self.labels[labels[:n]]

    def best_with(self, X, label) -> sparse.csr_matrix:
        """Return each document's best label set that contains a label, which must be allowed."""
        place = int(np.flatnonzero(self.labels == label)[0])

        def block(Z, rows):
            chosen = np.zeros((Z.shape[0], self.labels.size), dtype=bool)
            search_kernels.best_with(Z, self.sizes, place, chosen)
            return chosen.sum(axis=1), self.labels[np.nonzero(chosen)[1]]

        return stack_sets(self._map_scores(block, X), self.n_labels)

    def n_best(self, X, n_best):
        """Return the best label sets, ``n_best`` rows per document, and their scores."""
        scores = np.empty((X.shape[0], n_best))

        def block(Z, rows):
            chosen = np.zeros((Z.shape[0], n_best, self.labels.size), dtype=bool)
            listing = search_kernels.new_listing(n_best, self.labels.size)
            search_kernels.n_best_sets(Z, self.sizes, listing, chosen, scores[rows])
            return chosen.sum(axis=2).ravel(), self.labels[np.nonzero(chosen)[2]]

        return stack_sets(self._map_scores(block, X, n_best), self.n_labels), scores

    def leads(self, X):
        """Return the score of each document's best label set minus that of the second best."""
        leads = np.empty(X.shape[0])
        self._map_scores(lambda Z, rows: search_kernels.leads(Z, self.sizes, leads[rows]), X, 2)
        return leads

    def margins(self, X):
        """Return the score of the best set with each label minus that of the best without it."""
        margins = np.full((X.shape[0], self.n_labels), -np.inf)

        def block(Z, rows):
            margins[rows, self.labels] = self._margins(Z)

        self._map_scores(block, X)
        return margins

    def _margins(self, Z):
        out = np.empty((Z.shape[0], self.labels.size))
        search_kernels.margins(Z, self.sizes, out)
        return out

    def assess(self, X):
        """Return each document's best label set, and the margins of all labels."""
        margins = np.full((X.shape[0], self.n_labels), -np.inf)

        def block(Z, rows):
            margins[rows, self.labels] = self._margins(Z)
            return self._best(Z)

        return stack_sets(self._map_scores(block, X), self.n_labels), margins

    def label_scores(self, X):
        """Return the score of each single label."""
        scores = np.full((X.shape[0], self.n_labels), -np.inf)
        vector = self.vectors[1].astype(self.weights.dtype)

        def block(Z, rows):
            scores[rows, self.labels] = np.einsum("q,dqj->dj", vector, Z)

        self._map_scores(block, X)
        return scores

    def _map_scores(self, function, X, n_answers=1):
        """Call ``function(Z, rows)`` for blocks of documents with their scores.

        Where it gives many answers per document, blocks are smaller.
        """
        weights = self.weights
        if X.shape[1] != weights.shape[0]:
            raise ValueError(f"X has {X.shape[1]} words, the model has {weights.shape[0]}.")
        flat_weights = weights.reshape(len(weights), -1)

        def block(data, indices, indptr, rows):
            flat_Z = np.empty((indptr.size - 1, flat_weights.shape[1]), weights.dtype)
            search_kernels.project_rows(data, indices, indptr, flat_weights, flat_Z)
            Z = flat_Z.reshape(-1, *weights.shape[1:])
            if self.allowed.size < self.columns.size:
                Z = np.ascontiguousarray(Z[:, :, self.allowed])
            return function(Z, rows)

        X = unit_rows(X)
        X.data = X.data.astype(weights.dtype)
        return map_rows(block, X, (8 + n_answers) * self.columns.size)

    # Words

    def word_scores(self, words, labels):
        """Return the weights of words for each label of a set, at its size."""
        place = np.full(self.n_labels, -1)
        place[self.columns] = np.arange(self.columns.size)
        weights = self.weights[words][:, :, place[labels]].astype(np.float64)
        size = min(len(labels), len(self.vectors) - 1)
        scores = np.einsum("q,wqj->wj", self.vectors[size], weights)
        scores[:, place[labels] < 0] = 0.0  # labels without documents have no weights
        return scores

    def top_words(self, label, k):
        """Return the ``k`` words with the highest weights for a label alone, and the weights."""
        place = np.flatnonzero(self.columns == label)
        if not place.size:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        weights = self.weights[:, :, int(place[0])].astype(np.float64) @ self.vectors[1]
        top = np.argsort(-weights, kind="stable")[:k]
        return top, weights[top]
