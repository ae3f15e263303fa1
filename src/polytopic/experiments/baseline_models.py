"""Baselines without a package of their own.

Nearest neighbours, ML-kNN and McCallum's mixture, and the binary classifiers that Ueda and Saito
compare their mixtures with.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.preprocessing import normalize

from polytopic.counts import LabelSetCounts
from polytopic.labels import Targets

BLOCK = 512  # documents compared at once
MAX_LABELS = 6  # of a set in McCallum's search
N_CANDIDATES = 20  # labels that it tries to add to a set
COSTS = ((100, 1), (10, 2), (10, 5), (10, 10), (30, 5), (100, 5), (1000, 1))  # C and J of an SVM
FEW_POSITIVES = -2.0  # bias at which a network starts: most documents lack a label


class CosineNeighbours:
    """The share of the ``k`` nearest documents with a label, weighted by similarity.

    Parameters
    ----------
    k : int, default=10
        Number of neighbours.
    """

    def __init__(self, k: int = 10):
        self.k = k

    def fit(self, X, Y) -> CosineNeighbours:
        """Keep the documents."""
        self._X, self._Y = normalize(X), sparse.csr_matrix(Y)
        return self

    def proba(self, X) -> np.ndarray:
        """Return the share of the neighbours' weight that has each label."""
        return np.vstack([self._vote(*pair) for pair in self.neighbours(X)])

    def _vote(self, neighbours: np.ndarray, weight: np.ndarray) -> np.ndarray:
        votes = _rows(neighbours, weight, self._Y.shape[0]) @ self._Y
        total = weight.sum(axis=1, keepdims=True)
        return votes.toarray() / np.where(total > 0, total, 1.0)

    def neighbours(self, X, *, leave_out: bool = False):
        """Yield row numbers and similarities of the nearest documents, block by block."""
        X, k = normalize(X), min(self.k, self._X.shape[0] - leave_out)
        documents = self._X.T.tocsr()
        for start in range(0, X.shape[0], BLOCK):
            similarity = (X[start : start + BLOCK] @ documents).toarray()
            if leave_out:  # the documents themselves
                rows = np.arange(similarity.shape[0])
                similarity[rows, start + rows] = -1.0
            near = np.argpartition(-similarity, k - 1, axis=1)[:, :k]
            yield near, np.maximum(np.take_along_axis(similarity, near, axis=1), 0.0)


class MLkNN(CosineNeighbours):
    """Labels by how many of the nearest documents have them (Zhang and Zhou, 2007).

    The posterior of a label given the number of neighbours that have it, estimated from the
    training documents. A document is not its own neighbour.

    Parameters
    ----------
    k : int, default=10
        Number of neighbours.
    smoothing : float, default=1.0
        Pseudo-count.
    """

    def __init__(self, k: int = 10, smoothing: float = 1.0):
        super().__init__(k)
        self.smoothing = smoothing

    def fit(self, X, Y) -> MLkNN:
        """Count the neighbours that share each label, for documents with it and without it."""
        super().fit(X, Y)
        n_docs, n_labels = self._Y.shape
        s = self.smoothing
        counts = np.vstack(
            [self.count_labels(near) for near, _ in self.neighbours(X, leave_out=True)]
        )
        has_label = self._Y.toarray() > 0
        self._log_prior = np.log((s + has_label.sum(axis=0)) / (2 * s + n_docs))
        self._log_absent = np.log((s + (~has_label).sum(axis=0)) / (2 * s + n_docs))
        self._log_if_present, self._log_if_absent = (
            np.log(self._frequencies(counts, rows, n_labels)) for rows in (has_label, ~has_label)
        )
        return self

    def _frequencies(self, counts, rows, n_labels) -> np.ndarray:
        """Return how often each number of neighbours occurs, (k + 1, n_labels), smoothed."""
        frequencies = np.full((self.k + 1, n_labels), self.smoothing)
        for number in range(self.k + 1):
            frequencies[number] += ((counts == number) & rows).sum(axis=0)
        return frequencies / frequencies.sum(axis=0)

    def count_labels(self, neighbours: np.ndarray) -> np.ndarray:
        """Return how many of the neighbours of each document have each label."""
        ones = np.ones(neighbours.shape)
        return np.rint((_rows(neighbours, ones, self._Y.shape[0]) @ self._Y).toarray()).astype(int)

    def proba(self, X) -> np.ndarray:
        """Return the posterior of each label."""
        columns = np.arange(self._Y.shape[1])
        blocks = []
        for near, _ in self.neighbours(X):
            counts = self.count_labels(near)
            present = self._log_prior + self._log_if_present[counts, columns]
            absent = self._log_absent + self._log_if_absent[counts, columns]
            blocks.append(1.0 / (1.0 + np.exp(absent - present)))
        return np.vstack(blocks)


class McCallumMixture:
    r"""Each word comes from one of the document's labels, by weights of the label set [1]_.

    .. math:: p(d \mid s) = \prod_w \Big(\sum_{c \in s} \lambda_{sc} \theta_{cw}\Big)^{x_{dw}}

    EM on the counts per label set estimates the word distributions and each set's weights; the
    prior of a set is its share of the documents. As in [1]_, sets are searched greedily: labels are
    added one by one while the posterior rises. A set without documents gets equal weights, and the
    prior of half a document.

    Parameters
    ----------
    smoothing : float, default=1.0
        Pseudo-count of each word in each label.
    max_iter : int, default=30
        Number of EM steps.
    common : bool, default=False
        Whether every set also contains a component that all documents share, for the words of
        ordinary English, as in [1]_. A set without documents gives it the mean weight that it has
        in training documents.

    References
    ----------
    .. [1] McCallum, "Multi-label text classification with a mixture model trained by EM", AAAI
       workshop on text learning, 1999.
    """

    def __init__(self, smoothing: float = 1.0, max_iter: int = 30, *, common: bool = False):
        self.smoothing, self.max_iter, self.common = smoothing, max_iter, common

    def fit(self, X, Y) -> McCallumMixture:
        """Fit by EM; ``log_likelihood_`` holds the smoothed log likelihood of each step."""
        counts = LabelSetCounts.from_matrix(
            X, Targets(sparse.csr_matrix(Y), tuple(range(Y.shape[1])))
        )
        sets = [tuple(row) for row in _rows_of(counts.indicator)]
        labels = list(counts.labels)
        self._n_labels, table = Y.shape[1], counts.matrix.tocsr()
        self._extra = (self._n_labels,) if self.common else ()  # components of every set
        self._sets = [(*(labels[c] for c in row), *self._extra) for row in sets]
        start = np.zeros((self._n_labels + len(self._extra), X.shape[1]))
        for k, row in enumerate(self._sets):  # EM starts from the words of each label's documents
            start[list(row)] += table[k].toarray()[0] / len(row)
        theta = (start + self.smoothing) / (start + self.smoothing).sum(axis=1, keepdims=True)
        weights = [np.full(len(row), 1.0 / len(row)) for row in self._sets]
        self.log_likelihood_ = []
        for _ in range(self.max_iter):
            theta, weights, value = self._step(table, theta, weights)
            self.log_likelihood_.append(value)
        self._log_theta, self._theta = np.log(theta[: self._n_labels]), theta
        docs = np.asarray(counts.set_docs, dtype=float)
        total = docs.sum() + 0.5
        self._parameters = {
            frozenset(row[: len(w) - self.common]): (np.log(n / total), w)
            for row, n, w in zip(self._sets, docs, weights, strict=True)
        }
        self._common_weight = (
            np.average([w[-1] for w in weights], weights=docs) if self.common else 0.0
        )
        self._log_unseen = np.log(0.5 / total)
        return self

    def _step(self, table, theta, weights):
        """Return the parameters after an EM step, and the log likelihood before it."""
        expected, value = np.zeros_like(theta), self.smoothing * np.log(theta).sum()
        new = []
        for k, row in enumerate(self._sets):
            columns, n = _row(table, k)
            joint = weights[k][:, None] * theta[list(row)][:, columns]
            mixed = joint.sum(axis=0)
            value += float(n @ np.log(mixed)) if columns.size else 0.0
            part = joint / mixed * n
            np.add.at(expected, (np.array(row)[:, None], columns[None, :]), part)
            label_counts = part.sum(axis=1)
            new.append(label_counts / label_counts.sum() if label_counts.sum() else weights[k])
        smoothed = expected + self.smoothing
        return smoothed / smoothed.sum(axis=1, keepdims=True), new, value

    def predict(self, X) -> sparse.csr_matrix:
        """Return the label sets that greedy search finds."""
        X = sparse.csr_matrix(X)
        sets = np.zeros((X.shape[0], self._n_labels))
        for doc in range(X.shape[0]):
            sets[doc, list(self._best(*_row(X, doc)))] = 1.0
        return sparse.csr_matrix(sets)

    def _best(self, columns: np.ndarray, n: np.ndarray) -> tuple[int, ...]:
        labels: tuple[int, ...] = ()
        best = -np.inf
        for _ in range(MAX_LABELS):
            candidates = self._candidates(labels, columns, n)
            scored = [(self._score((*labels, c), columns, n), c) for c in candidates]
            score, label = max(scored, default=(-np.inf, -1))
            if score <= best:
                break
            best, labels = score, (*labels, label)
        return labels

    def _candidates(self, labels, columns, n):
        """Return the labels to try next: those that explain the words best on their own."""
        single = self._log_theta[:, columns] @ n
        order = np.argsort(-single)[: N_CANDIDATES if labels else self._n_labels]
        return [c for c in order.tolist() if c not in labels]

    def _score(self, labels, columns, n) -> float:
        log_prior, weights = self._parameters.get(frozenset(labels), (self._log_unseen, None))
        ordered = [*sorted(labels), *self._extra]
        if weights is None:
            weights = np.full(len(ordered), (1.0 - self._common_weight) / len(labels))
            weights[len(labels) :] = self._common_weight
        mixed = weights @ self._theta[ordered][:, columns]
        return float(log_prior + n @ np.log(mixed))


class BinaryNaiveBayes:
    """One multinomial naive Bayes per label: the documents with it against those without it.

    Parameters
    ----------
    smoothing : float, default=1.0
        Pseudo-count of each word, in both classes.
    """

    def __init__(self, smoothing: float = 1.0):
        self.smoothing = smoothing

    def fit(self, X, Y) -> BinaryNaiveBayes:
        """Count the words of both classes."""
        X, Y = sparse.csr_matrix(X, dtype=float), sparse.csr_matrix(Y, dtype=float)
        inside = (Y.T @ X).toarray()
        outside = np.asarray(X.sum(axis=0)) - inside
        own, other = (
            np.log(counts + self.smoothing)
            - np.log((counts + self.smoothing).sum(axis=1, keepdims=True))
            for counts in (inside, outside)
        )
        n_docs = np.asarray(Y.sum(axis=0)).ravel()
        with np.errstate(divide="ignore"):  # a label that no document has, or all have
            self._prior = np.log(n_docs) - np.log(X.shape[0] - n_docs)
        self._words = (own - other).T
        return self

    def decision_function(self, X) -> np.ndarray:
        """Return the log odds of each label; they do not underflow as probabilities do."""
        return X @ self._words + self._prior


class CostSVM:
    r"""One linear SVM per label, with ``C`` and ``J`` chosen for each label on held-out documents.

    A wrong document costs ``C`` times its hinge loss, and ``C * J`` if it has the label, as in
    SVMlight. The pair with the best F1 of the label on the held-out documents is chosen.
    The words of a document sum to 1.

    Parameters
    ----------
    costs : sequence of (float, float)
        Pairs of C and J to choose from.
    held_out : float, default=1/3
        Share of the documents to choose on.
    seed : int, default=0
        Decides which documents these are.

    Attributes
    ----------
    costs_ : dict
        The chosen pair of each label that some documents have, but not all.
    """

    def __init__(
        self,
        costs: Sequence[tuple[float, float]] = COSTS,
        held_out: float = 1 / 3,
        seed: int = 0,
    ):
        self.costs, self.held_out, self.seed = costs, held_out, seed

    def fit(self, X, Y) -> CostSVM:
        """Choose the costs, then learn from all documents."""
        X, Y = normalize(X, norm="l1"), sparse.csr_matrix(Y).toarray() > 0
        kernel = (X @ X.T).toarray()
        order = np.random.default_rng(self.seed).permutation(X.shape[0])
        held_out, rest = np.split(order, [int(X.shape[0] * self.held_out)])
        own, other = kernel[np.ix_(rest, rest)], kernel[np.ix_(held_out, rest)]
        self._weights = np.zeros((X.shape[1], Y.shape[1]))
        self._bias = np.where(Y.all(axis=0), 1.0, -np.inf)
        self.costs_ = {}
        for label in np.flatnonzero(Y.any(axis=0) & ~Y.all(axis=0)).tolist():
            y = Y[:, label]
            pair = self.costs[0]
            if len(self.costs) > 1 and np.unique(y[rest]).size == 2:
                fits = [_fit_svm(own, y[rest], *costs) for costs in self.costs]
                scores = [_f1(y[held_out], other @ dual + bias > 0) for dual, bias in fits]
                pair = self.costs[int(np.argmax(scores))]
            dual, self._bias[label] = _fit_svm(kernel, y, *pair)
            self._weights[:, label] = X.T @ dual
            self.costs_[label] = pair
        return self

    def decision_function(self, X) -> np.ndarray:
        """Return the margin of each label."""
        return normalize(X, norm="l1") @ self._weights + self._bias


def _fit_svm(kernel: np.ndarray, y: np.ndarray, C: float, J: float) -> tuple[np.ndarray, float]:
    """Return the signed dual variables and the bias."""
    from sklearn.svm import SVC

    model = SVC(C=C, kernel="precomputed", class_weight={True: J}).fit(kernel, y)
    dual = np.zeros(y.size)
    dual[model.support_] = model.dual_coef_[0]
    return dual, float(model.intercept_[0])


def _f1(true: np.ndarray, predicted: np.ndarray) -> float:
    return 2 * (true & predicted).sum() / max(true.sum() + predicted.sum(), 1)


class HiddenLayerNetwork:
    r"""A layer of tanh units and a layer of logistic units, one per label.

    Minimizes the mean cross entropy of the documents plus ``decay`` / 2 times the squared weights,
    by L-BFGS on all documents at once.

    Parameters
    ----------
    decay : float, default=1e-4
        Weight of the squared weights.
    rows : {"unit", "counts"}, default="unit"
        Scale documents to unit length, or take the counts as they are.
    units : int, default=50
        Number of hidden units.
    steps : int, default=60
        Number of steps.
    seed : int, default=0
        Seed of the initial weights.
    """

    def __init__(
        self,
        decay: float = 1e-4,
        rows: str = "unit",
        units: int = 50,
        steps: int = 60,
        seed: int = 0,
    ):
        self.decay, self.rows, self.units, self.steps = decay, rows, units, steps
        self.seed = seed

    def fit(self, X, Y) -> HiddenLayerNetwork:
        """Fit from random weights; words that no document has are left out."""
        self._known = np.flatnonzero(X.getnnz(axis=0))
        X, Y = self._prepare(X), sparse.csr_matrix(Y).toarray()
        self._shapes = [(X.shape[1], self.units), (self.units,)]
        self._shapes += [(self.units, Y.shape[1]), (Y.shape[1],)]
        rng = np.random.default_rng(self.seed)
        start = [rng.normal(scale=0.1, size=shape) for shape in self._shapes]
        start[3][:] = FEW_POSITIVES
        self._layers = self._unpack(
            minimize(
                self.loss_and_gradient,
                np.concatenate([part.ravel() for part in start]),
                (X, X.T.tocsr(), Y),
                method="L-BFGS-B",
                jac=True,
                options={"maxiter": self.steps, "maxcor": 5},
            ).x
        )
        return self

    def proba(self, X) -> np.ndarray:
        """Return the probability of each label."""
        inner, inner_bias, outer, outer_bias = self._layers
        return expit(np.tanh(self._prepare(X) @ inner + inner_bias) @ outer + outer_bias)

    def loss_and_gradient(self, flat, X, X_transposed, Y) -> tuple[float, np.ndarray]:
        """Return the loss of flat parameters, and its gradient."""
        inner, inner_bias, outer, outer_bias = self._unpack(flat)
        hidden = np.tanh(X @ inner + inner_bias)
        scores = hidden @ outer + outer_bias
        loss = float((np.logaddexp(0, scores) - Y * scores).sum() / len(Y))
        error = (expit(scores) - Y) / len(Y)
        back = error @ outer.T * (1 - hidden**2)
        slopes = [X_transposed @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]
        for part, slope in ((inner, slopes[0]), (outer, slopes[2])):
            loss += self.decay / 2 * float((part**2).sum())
            slope += self.decay * part
        return loss, np.concatenate([slope.ravel() for slope in slopes])

    def _prepare(self, X) -> sparse.csr_matrix:
        X = sparse.csr_matrix(X, dtype=float)[:, self._known]
        return normalize(X) if self.rows == "unit" else X

    def _unpack(self, flat: np.ndarray) -> list[np.ndarray]:
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes])
        pieces = np.split(flat, ends[:-1])
        return [piece.reshape(shape) for piece, shape in zip(pieces, self._shapes, strict=True)]


def _rows(neighbours: np.ndarray, weight: np.ndarray, n_docs: int) -> sparse.csr_matrix:
    """Return the weights of neighbours as a sparse matrix."""
    n_rows, k = neighbours.shape
    ends = np.arange(0, n_rows * k + 1, k)
    return sparse.csr_matrix((weight.ravel(), neighbours.ravel(), ends), shape=(n_rows, n_docs))


def _row(matrix: sparse.csr_matrix, k: int) -> tuple[np.ndarray, np.ndarray]:
    cells = slice(matrix.indptr[k], matrix.indptr[k + 1])
    return matrix.indices[cells], matrix.data[cells]


def _rows_of(matrix: sparse.csr_matrix):
    for k in range(matrix.shape[0]):
        yield sorted(matrix.indices[matrix.indptr[k] : matrix.indptr[k + 1]].tolist())
