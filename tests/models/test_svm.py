"""Linear support vector machines: a slow twin, scikit-learn, the dual objective."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from polytopic import LinearSVM
from polytopic.models.svm import estimator, kernels
from tests.twins import svm as twins


@pytest.fixture
def documents():
    """Return dense documents of unit length and labels, one of them rare."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.4, (60, 12)).astype(float)
    X[:, 0] += 1
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Y = rng.random((60, 5)) < [0.5, 0.3, 0.3, 0.2, 0.05]
    Y[0] = True
    Y[:, 0] |= ~Y.any(axis=1)
    return X, Y


def state(X, Y, slack):
    """Return the arguments of the kernel, with random variables."""
    words, labels = sparse.csr_matrix(X), sparse.csr_matrix(Y.astype(float))
    rows = (words.data, words.indices.astype(np.int32), words.indptr.astype(np.int64))
    sets = (labels.indices.astype(np.int32), labels.indptr.astype(np.int64))
    n_labels = Y.shape[1]
    variables = np.zeros(Y.shape), np.zeros((X.shape[1], n_labels)), np.zeros(n_labels)
    return (*rows, *sets), slack, variables


def test_descend(documents):
    """A pass over the documents gives the variables of the twin; the dual never rises."""
    X, Y = documents
    slack = np.random.default_rng(1).uniform(0.1, 2, (2, 5))
    rows, slack, (alpha, W, bias) = state(X, Y, slack)
    expected, objective = (alpha, W, bias), [0.0]

    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(X))
        expected = twins.descend(X, Y, order, slack, *expected)
        kernels.descend(*rows, order, slack, alpha, W, bias)
        objective.append(twins.dual(Y, slack, alpha, W, bias))

    for ours, theirs in zip((alpha, W, bias), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)
    assert (np.diff(objective) < 0).all()


def test_score_rows(documents):
    """Scores are those of the twin."""
    X, _ = documents
    rng = np.random.default_rng(0)
    W, bias, scores = rng.normal(size=(12, 5)), rng.normal(size=5), np.empty((60, 5))
    words = sparse.csr_matrix(X)

    kernels.score_rows(
        words.data, words.indices.astype(np.int32), words.indptr.astype(np.int64), W, bias, scores
    )

    np.testing.assert_allclose(scores, twins.score_rows(X, W, bias), atol=1e-12)


@pytest.mark.parametrize("balanced", [True, False])
def test_scikit_learn(documents, balanced):
    """After enough passes, the scores are those of scikit-learn's one-vs-rest machines."""
    X, Y = documents
    weights = "balanced" if balanced else None
    peer = OneVsRestClassifier(LinearSVC(C=0.3, class_weight=weights, tol=1e-8, max_iter=100000))

    ours = LinearSVM(balanced=balanced, max_iter=300).fit(X, Y.astype(int)).decision_function(X)

    expected = peer.fit(X, Y.astype(int)).decision_function(X)
    np.testing.assert_allclose(ours, expected, atol=1e-3)


def test_blocks_of_labels(documents, monkeypatch):
    """Labels are independent of each other: blocks of any size give the same bits."""
    X, Y = documents
    expected = LinearSVM().fit(X, Y.astype(int)).decision_function(X)
    monkeypatch.setattr(estimator, "BLOCK", 2)

    np.testing.assert_array_equal(LinearSVM().fit(X, Y.astype(int)).decision_function(X), expected)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0}, "C == 0, must be > 0"),
        ({"C": 1e-39}, "C == 1e-39, must be >= 1e-30"),
        ({"C": "auto"}, "C"),
        ({"balanced": 1}, "balanced must be an instance of"),
        ({"max_iter": 0}, "max_iter == 0, must be >= 1"),
    ],
)
def test_wrong_parameters(parameters, message):
    """The error names the parameter."""
    with pytest.raises((ValueError, TypeError), match=message):
        LinearSVM(**parameters).fit([[1, 0], [0, 1]], [["a"], ["b"]])


def test_costs_of_many_labels():
    """By default, labels are balanced unless documents have many of them."""
    rng = np.random.default_rng(0)
    X, Y = rng.random((80, 30)), (rng.random((80, 40)) < 0.5).astype(int)
    few = Y[:, :20]

    assert Y.sum() > 15 * 80 > few.sum()
    for labels, balanced in ((Y, False), (few, True)):
        expected = LinearSVM(balanced=balanced).fit(X, labels).decision_function(X)
        other = LinearSVM(balanced=not balanced).fit(X, labels).decision_function(X)
        scores = LinearSVM().fit(X, labels).decision_function(X)
        np.testing.assert_array_equal(scores, expected)
        assert abs(scores - other).max() > 0.01
