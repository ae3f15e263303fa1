"""McCallum's mixture: label sets with weights of their own, trained by EM."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from polytopic.counts import LabelSetCounts
from polytopic.labels import Targets

LARGEST = 6  # labels of a set that is looked at


class McCallumMixture:
    r"""A word of a document comes from one of its labels, with weights of the label set [1]_.

    .. math:: p(d \mid s) = \prod_w \Big(\sum_{c \in s} \lambda_{sc} \theta_{cw}\Big)^{x_{dw}}

    EM on the counts by label set gives the words' distributions and each set's weights; a set is
    weighed by its share of the documents. As in [1]_, sets are searched greedily: labels are added
    one by one while the posterior rises. A set that no document has gets equal weights, and the
    prior of half a document. What is left out of [1]_ is the common "English" component.

    Parameters
    ----------
    smoothing : float, default=1.0
        Pseudo-count of each label's words.
    max_iter : int, default=30
        Steps of EM.

    References
    ----------
    .. [1] McCallum, "Multi-label text classification with a mixture model trained by EM", AAAI
       workshop on text learning, 1999.
    """

    def __init__(self, smoothing: float = 1.0, max_iter: int = 30):
        self.smoothing, self.max_iter = smoothing, max_iter

    def fit(self, X, Y) -> McCallumMixture:
        """Learn by EM; ``log_likelihood_`` has the smoothed likelihood of each step."""
        counts = LabelSetCounts.from_matrix(
            X, Targets(sparse.csr_matrix(Y), tuple(range(Y.shape[1])))
        )
        sets = [tuple(row) for row in _rows_of(counts.indicator)]
        labels = list(counts.labels)
        self._sets = [tuple(labels[c] for c in row) for row in sets]
        self._n_labels, table = Y.shape[1], counts.matrix.tocsr()
        theta = np.full((self._n_labels, X.shape[1]), 1.0 / X.shape[1])
        start = np.zeros_like(theta)
        for k, row in enumerate(self._sets):  # words of the documents of a label, to begin with
            start[list(row)] += table[k].toarray()[0] / len(row)
        theta = (start + self.smoothing) / (start + self.smoothing).sum(axis=1, keepdims=True)
        weights = [np.full(len(row), 1.0 / len(row)) for row in self._sets]
        self.log_likelihood_ = []
        for _ in range(self.max_iter):
            theta, weights, value = self._step(table, theta, weights)
            self.log_likelihood_.append(value)
        self._log_theta, self._theta = np.log(theta), theta
        docs = np.asarray(counts.set_docs, dtype=float)
        total = docs.sum() + 0.5
        self._known = {
            frozenset(row): (np.log(n / total), w)
            for row, n, w in zip(self._sets, docs, weights, strict=True)
        }
        self._log_unseen = np.log(0.5 / total)
        return self

    def _step(self, table, theta, weights):
        """Return better parameters, and how good those before them were."""
        expected, value = np.zeros_like(theta), self.smoothing * np.log(theta).sum()
        new = []
        for k, row in enumerate(self._sets):
            columns, n = _row(table, k)
            joint = weights[k][:, None] * theta[list(row)][:, columns]
            mixed = joint.sum(axis=0)
            value += float(n @ np.log(mixed)) if columns.size else 0.0
            part = joint / mixed * n
            np.add.at(expected, (np.array(row)[:, None], columns[None, :]), part)
            own = part.sum(axis=1)
            new.append(own / own.sum() if own.sum() else weights[k])
        smoothed = expected + self.smoothing
        return smoothed / smoothed.sum(axis=1, keepdims=True), new, value

    def predict(self, X) -> sparse.csr_matrix:
        """Return the label sets that are found greedily."""
        X = sparse.csr_matrix(X)
        sets = np.zeros((X.shape[0], self._n_labels))
        for doc in range(X.shape[0]):
            sets[doc, list(self._best(*_row(X, doc)))] = 1.0
        return sparse.csr_matrix(sets)

    def _best(self, columns: np.ndarray, n: np.ndarray) -> tuple[int, ...]:
        found: tuple[int, ...] = ()
        best = -np.inf
        for _ in range(LARGEST):
            tried = [
                (self._score((*found, c), columns, n), c) for c in self._near(found, columns, n)
            ]
            score, label = max(tried, default=(-np.inf, -1))
            if score <= best:
                break
            best, found = score, (*found, label)
        return found

    def _near(self, found, columns, n):
        """Return labels to try: those that say the words best, by themselves."""
        single = self._log_theta[:, columns] @ n
        order = np.argsort(-single)[: 20 if found else self._n_labels]
        return [c for c in order.tolist() if c not in found]

    def _score(self, labels, columns, n) -> float:
        log_prior, weights = self._known.get(frozenset(labels), (self._log_unseen, None))
        own = sorted(labels)
        if weights is None:
            weights = np.full(len(own), 1.0 / len(own))
        mixed = weights @ self._theta[own][:, columns]
        return float(log_prior + n @ np.log(mixed))


def _row(matrix: sparse.csr_matrix, k: int) -> tuple[np.ndarray, np.ndarray]:
    own = slice(matrix.indptr[k], matrix.indptr[k + 1])
    return matrix.indices[own], matrix.data[own]


def _rows_of(matrix: sparse.csr_matrix):
    for k in range(matrix.shape[0]):
        yield sorted(matrix.indices[matrix.indptr[k] : matrix.indptr[k + 1]].tolist())
