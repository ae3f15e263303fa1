"""Nearest neighbours by cosine, and ML-kNN."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

BLOCK = 512  # documents compared at once


class CosineNeighbours:
    """The share of the ``k`` nearest documents that have a label, each weighing its similarity.

    Parameters
    ----------
    k : int, default=10
        Neighbours.
    """

    def __init__(self, k: int = 10):
        self.k = k

    def fit(self, X, Y) -> CosineNeighbours:
        """Keep the documents."""
        self._X, self._Y = normalize(X), sparse.csr_matrix(Y)
        return self

    def proba(self, X) -> np.ndarray:
        """Return the weight of the neighbours with each label, in parts of that of all."""
        return np.vstack([self._vote(near, weight) for near, weight in self._near(X)])

    def _vote(self, near: np.ndarray, weight: np.ndarray) -> np.ndarray:
        votes = _rows(near, weight, self._Y.shape[0]) @ self._Y
        total = weight.sum(axis=1, keepdims=True)
        return votes.toarray() / np.where(total > 0, total, 1.0)

    def _near(self, X, *, leave_out: bool = False):
        """Yield places and similarities of the nearest documents, block by block."""
        X, k = normalize(X), min(self.k, self._X.shape[0] - leave_out)
        others = self._X.T.tocsr()
        for start in range(0, X.shape[0], BLOCK):
            similarity = (X[start : start + BLOCK] @ others).toarray()
            if leave_out:  # the documents themselves
                rows = np.arange(similarity.shape[0])
                similarity[rows, start + rows] = -1.0
            near = np.argpartition(-similarity, k - 1, axis=1)[:, :k]
            yield near, np.maximum(np.take_along_axis(similarity, near, axis=1), 0.0)


class MLkNN(CosineNeighbours):
    """Labels by how many of the nearest documents have them (Zhang and Zhou, 2007).

    The posterior of a label given the number of neighbours that have it, from the counts of the
    documents learned, each of which is left out among its own neighbours.

    Parameters
    ----------
    k : int, default=10
        Neighbours.
    smoothing : float, default=1.0
        Pseudo-count.
    """

    def __init__(self, k: int = 10, smoothing: float = 1.0):
        super().__init__(k)
        self.smoothing = smoothing

    def fit(self, X, Y) -> MLkNN:
        """Count the neighbours with each label of documents with it, and of those without it."""
        super().fit(X, Y)
        n_docs, n_labels = self._Y.shape
        s = self.smoothing
        counts = np.vstack([self._count(near) for near, _ in self._near(X, leave_out=True)])
        has = self._Y.toarray() > 0
        self._log_prior = np.log((s + has.sum(axis=0)) / (2 * s + n_docs))
        self._log_absent = np.log((s + (~has).sum(axis=0)) / (2 * s + n_docs))
        self._given, self._without = (
            np.log(self._frequencies(counts, rows, n_labels)) for rows in (has, ~has)
        )
        return self

    def _frequencies(self, counts, rows, n_labels) -> np.ndarray:
        """Return how often each number of neighbours occurs, (k + 1, n_labels), smoothed."""
        found = np.full((self.k + 1, n_labels), self.smoothing)
        for number in range(self.k + 1):
            found[number] += ((counts == number) & rows).sum(axis=0)
        return found / found.sum(axis=0)

    def _count(self, near: np.ndarray) -> np.ndarray:
        ones = np.ones(near.shape)
        return np.rint((_rows(near, ones, self._Y.shape[0]) @ self._Y).toarray()).astype(int)

    def proba(self, X) -> np.ndarray:
        """Return the posterior of each label."""
        columns = np.arange(self._Y.shape[1])
        blocks = []
        for near, _ in self._near(X):
            counts = self._count(near)
            yes = self._log_prior + self._given[counts, columns]
            no = self._log_absent + self._without[counts, columns]
            blocks.append(1.0 / (1.0 + np.exp(no - yes)))
        return np.vstack(blocks)


def _rows(near: np.ndarray, weight: np.ndarray, n_docs: int) -> sparse.csr_matrix:
    """Return weights of documents as a sparse matrix."""
    n_rows, k = near.shape
    ends = np.arange(0, n_rows * k + 1, k)
    return sparse.csr_matrix((weight.ravel(), near.ravel(), ends), shape=(n_rows, n_docs))
