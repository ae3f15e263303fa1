"""Nearest neighbours: a slow twin, ties, and documents without a common word."""

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

from polytopic import NearestNeighbours
from polytopic.models.neighbours import kernels
from tests.strategies import matrices
from tests.twins import neighbours as twins


def unit(X):
    """Return rows of unit length; empty rows stay empty."""
    norm = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(norm > 0, norm, 1.0)


def nearest(X, learned, k):
    """Return the numbers and cosines that the kernel finds."""
    rows, by_word = sparse.csr_matrix(X), sparse.csc_matrix(learned)
    similarity, numbers = np.zeros((len(X), k)), np.empty((len(X), k), np.int32)
    kernels.find_nearest(
        rows.data,
        rows.indices.astype(np.int32),
        rows.indptr.astype(np.int64),
        by_word.data,
        by_word.indices.astype(np.int32),
        by_word.indptr.astype(np.int64),
        len(learned),
        similarity,
        numbers,
    )
    return numbers, similarity


@given(matrices())
def test_find_nearest(drawn):
    """The nearest documents and their cosines are those of the twin, also with ties."""
    learned = np.round(unit(drawn[0].astype(float)), 3)
    X = np.round(unit(learned[::-1] + np.eye(*learned.shape)), 3)

    numbers, similarity = nearest(X, learned, 3)

    rows, expected = twins.find_nearest(X, learned, 3)
    n = expected.shape[1]
    np.testing.assert_allclose(similarity[:, :n], expected, atol=1e-12)
    cosine = X @ learned.T
    for d in range(len(X)):
        for place in range(n):
            if numbers[d, place] >= 0:
                assert cosine[d, numbers[d, place]] == pytest.approx(expected[d, place])
            else:
                assert rows[d, place] == -1


def test_of_equal_neighbours_the_first_come_first():
    """Of equally near documents the first ones are taken, so the result is unique."""
    numbers, similarity = nearest(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]] * 4), 3)

    assert numbers.tolist() == [[0, 1, 2]]
    assert similarity.tolist() == [[1.0, 1.0, 1.0]]


def test_votes():
    """Scores are the votes of the twin."""
    rng = np.random.default_rng(0)
    learned, X = (unit(rng.poisson(0.5, (40, 15)) + 0.0) for _ in range(2))
    learned[:, 0] += 0.01
    Y = (rng.random((40, 6)) < 0.3).astype(int)
    Y[:, 0] |= ~Y.any(axis=1)

    scores = NearestNeighbours(7).fit(learned, Y).decision_function(X)

    np.testing.assert_allclose(scores, twins.votes(X, unit(learned), Y, 7), atol=1e-6)


def test_fewer_documents_than_neighbours():
    """If there are too few documents, all of them vote."""
    model = NearestNeighbours(20).fit([[1, 0], [1, 1]], [["a"], ["b"]])

    assert model.neighbours([[1, 0]]).rows.tolist() == [[0, 1]]
    assert model.decision_function([[1.0, 0.0]])[0] == pytest.approx([0.5858, 0.4142], abs=1e-4)


def test_no_common_word():
    """Without a neighbour, all labels score 0 and the first is the best."""
    model = NearestNeighbours(2).fit([[1, 0, 0], [0, 1, 0]], [["a"], ["b"]])

    assert model.neighbours([[0, 0, 1]]).rows.tolist() == [[-1, -1]]
    assert model.decision_function([[0, 0, 1]]).tolist() == [[0.0, 0.0]]


def test_few_of_many_documents_are_kept():
    """At most ``max_docs`` documents are kept, in order, and those depend on the seed."""
    X, Y = np.eye(50), np.eye(50)

    models = [NearestNeighbours(50, max_docs=7, random_state=seed).fit(X, Y) for seed in (0, 0, 1)]

    kept = [np.flatnonzero(model.neighbours(X).rows[:, 0] >= 0).tolist() for model in models]
    assert len(kept[0]) == 7
    assert kept[0] == kept[1] != kept[2]
    assert models[0].predict(X[kept[0]]).argmax(axis=1).tolist() == kept[0]


def test_wrong_parameters():
    """The error names the parameter."""
    with pytest.raises(ValueError, match="n_neighbours == 0, must be >= 1"):
        NearestNeighbours(0).fit([[1, 0], [0, 1]], [["a"], ["b"]])
    with pytest.raises(ValueError, match="max_docs == 0, must be >= 1"):
        NearestNeighbours(max_docs=0).fit([[1, 0], [0, 1]], [["a"], ["b"]])
