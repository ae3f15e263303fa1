"""The kernels of models for thousands of labels: slow twins."""

import numpy as np
import pytest
from scipy import sparse

from polytopic.models.large import ranking_kernels, training_kernels
from polytopic.models.large.combining import choose_sets
from polytopic.models.large.machines import arrays_of
from polytopic.models.large.stack import is_right, unit_centroids
from tests.twins import large as twins

LIMITS = {
    "depth": ranking_kernels.DEPTH,
    "most": ranking_kernels.MAX_CANDIDATES,
    "near": ranking_kernels.N_NEAREST,
    "close": ranking_kernels.N_CLOSE,
    "floor": ranking_kernels.FLOOR,
}


def corpus(n_docs=150, n_words=40, n_labels=60, seed=0):
    """Return dense documents of unit length, and labels of which each document has some."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.12, (n_docs, n_words)) * rng.uniform(0.5, 2, (n_docs, n_words))
    X[np.arange(n_docs), rng.integers(0, n_words, n_docs)] += 1
    Y = (rng.random((n_docs, n_labels)) < 0.04).astype(float)
    Y[np.arange(n_docs), np.arange(n_docs) % n_labels] = 1
    return X / np.linalg.norm(X, axis=1, keepdims=True), Y


def single(X):
    """Return a matrix in the precision of the kernels."""
    return sparse.csr_matrix(X, dtype=np.float32)


def train(X, Y, begin, end, costs, sizes, max_passes, tolerance, smallest, capacity):
    """Return the weights that the kernel stores, and the first label that it has not trained."""
    words, weights = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
    ends = np.zeros(end - begin + 1, np.int64)
    of_labels = sparse.csc_matrix(Y)
    after = training_kernels.train_labels(
        *arrays_of(single(X)),
        *arrays_of(single(X).tocsc()),
        *arrays_of(of_labels)[1:],
        begin,
        end,
        np.array(costs, dtype=float),
        np.array(sizes, dtype=float),
        max_passes,
        tolerance,
        smallest,
        words,
        weights,
        ends,
    )
    ends = ends[: after - begin + 1]
    parts = weights[: ends[-1]], words[: ends[-1]], ends
    return sparse.csr_matrix(parts, shape=(after - begin, X.shape[1])), after


@pytest.mark.parametrize("sizes", [(10, 2), (3, 0), (1000, 20)])
def test_train_labels(sizes):
    """The weights are those of the twin, for rare and frequent labels."""
    X, Y = corpus()
    settings = (0.1, 0.3, 8, 1.0), sizes, 4, 0.1, 0.05

    W, after = train(X, Y, 5, 25, *settings, capacity=10_000)

    expected = twins.train_labels(X, Y, 5, 25, *settings)
    assert after == 25
    assert (Y.sum(axis=0)[5:25] < 8).any()
    assert (Y.sum(axis=0)[5:25] >= 8).any()
    np.testing.assert_allclose(W.toarray(), expected, atol=2e-4)


def test_training_ends_at_the_optimum():
    """After many passes, the gradient of the objective is zero."""
    X, Y = corpus()
    W, _ = train(X, Y, 0, 10, (0.1, 0.3, 99, 1.0), (20, 0), 2000, 1e-5, 0.0, capacity=10_000)

    for label, w in enumerate(W.toarray().astype(float)):
        own = Y[:, label] > 0
        docs = twins.shortlist(X, own, 20)
        y, cost = np.where(own[docs], 1, -1), np.where(own[docs], 1.0, 0.1)
        slack = np.maximum(0, 1 - y * (X[docs] @ w - 1))
        gradient = w - 2 * (cost * y * slack) @ X[docs]
        np.testing.assert_allclose(gradient, 0, atol=1e-3)


def test_training_stops_when_the_weights_do_not_fit():
    """The label that did not fit is the first one of the next call."""
    X, Y = corpus()
    settings = (0.1, 0.3, 8, 1.0), (10, 2), 4, 0.1, 0.05
    whole, _ = train(X, Y, 0, 12, *settings, capacity=10_000)

    parts, begin = [], 0
    while begin < 12:
        part, begin = train(X, Y, begin, 12, *settings, capacity=60)
        parts.append(part)

    assert len(parts) > 1
    np.testing.assert_array_equal(sparse.vstack(parts).toarray(), whole.toarray())


def sources():
    """Return learned documents and labels, machines and centroids, and new documents."""
    X, Y = corpus()
    W = np.random.default_rng(1).normal(size=(40, 60)) * (
        np.random.default_rng(2).random((40, 60)) < 0.2
    )
    centroids = unit_centroids(single(X.T), sparse.csr_matrix(Y)).toarray()
    return X, Y, W, centroids, corpus(seed=3)[0][:40]


EXTRA = [np.zeros(0, np.int64), np.array([3, 17])]


@pytest.mark.parametrize("extra", EXTRA, ids=["none", "two"])
def test_rank_machine(extra):
    """Candidates and scores are those of the twin."""
    _, _, W, _, new = sources()
    allowed = np.arange(60) % 7 != 0
    labels, scores = np.full((40, 60), -1, np.int32), np.zeros((40, 60))

    ranking_kernels.rank_machine(
        *arrays_of(single(new)), *arrays_of(single(W)), allowed, extra, labels, scores
    )

    for x, row, values in zip(new, labels, scores, strict=True):
        expected, expected_scores = twins.rank_machine(x, W, allowed, extra, LIMITS["most"])
        n = len(expected)
        assert sorted(row[:n].tolist()) == sorted(expected)
        assert (row[n:] == -1).all()
        by_label = dict(zip(row[:n].tolist(), values[:n].tolist(), strict=True))
        np.testing.assert_allclose([by_label[a] for a in expected], expected_scores, atol=1e-5)


@pytest.mark.parametrize("extra", EXTRA, ids=["none", "two"])
def test_rank_candidates(extra):
    """Candidates and features are those of the twin."""
    X, Y, W, centroids, new = sources()
    new[0] = 0
    allowed = np.arange(60) % 7 != 0
    labels = np.full((40, 60), -1, np.int32)
    features = np.zeros((40, 60, ranking_kernels.N_FEATURES), np.float32)
    rows = sparse.csr_matrix(Y)

    ranking_kernels.rank_candidates(
        *arrays_of(single(new)),
        *arrays_of(single(W)),
        *arrays_of(single(centroids)),
        *arrays_of(single(X.T)),
        *arrays_of(rows)[1:],
        np.log(Y.sum(axis=0)).astype(np.float32),
        allowed,
        extra,
        labels,
        features,
    )

    for x, row, values in zip(new, labels, features, strict=True):
        expected, expected_values = twins.rank_candidates(
            x, W, centroids, X, Y, allowed, extra, **LIMITS
        )
        n = len(expected)
        assert row[:n].tolist() == expected
        assert (row[n:] == -1).all()
        np.testing.assert_allclose(values[:n], expected_values, atol=1e-4)


@pytest.mark.parametrize("missed", [0.0, 0.7, 3.0])
def test_choose_sets(missed):
    """The label sets are those of the twin."""
    proba = np.random.default_rng(0).random((50, 12)) ** 4

    chosen = choose_sets(proba, missed)

    np.testing.assert_array_equal(chosen, [twins.choose_set(row, missed) for row in proba])


def test_centroids():
    """A centroid is the sum of a label's documents in unit length."""
    X, Y = corpus()

    centroids = unit_centroids(single(X.T), sparse.csr_matrix(Y)).toarray()

    sums = X.T @ Y
    np.testing.assert_allclose(centroids, sums / np.linalg.norm(sums, axis=0), atol=1e-6)


def test_right_candidates():
    """A candidate is right if it is a label of its document; an empty place is not."""
    labels = np.array([[2, 0, -1], [1, 2, 0]])
    Y = sparse.csr_matrix([[1, 0, 0], [0, 1, 1]], dtype=float)

    right = is_right(labels, Y)

    assert right.tolist() == [[False, True, False], [True, True, False]]
