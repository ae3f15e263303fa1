"""CandidateStack: its neighbours, and the combination in files."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from polytopic import CandidateStack, NearestNeighbours
from tests.models.large.test_kernels import corpus

X, Y = map(sparse.csr_matrix, corpus())


def test_neighbours():
    """They are those of NearestNeighbours."""
    ours = CandidateStack(machines=False).fit(X, Y).neighbours(X[:20])
    theirs = NearestNeighbours(100).fit(X, Y).neighbours(X[:20])

    np.testing.assert_array_equal(ours.rows, theirs.rows)
    np.testing.assert_array_equal(ours.similarity, theirs.similarity)


def test_labels_that_are_asked_for():
    """They are scored even if they are no candidates of a document."""
    model = CandidateStack(machines=False).fit(X, Y)
    empty = sparse.csr_matrix(X.shape)[:3]

    _, scores, _ = model.assess(empty, [4, 7])

    assert scores.indices.tolist() == [4, 7] * 3


def test_the_sum_of_words_and_base_is_the_score():
    """Evidence adds up for every candidate."""
    model = CandidateStack().fit(X, Y)
    scores = model.decision_function(X[:5])

    for d in range(5):
        labels = scores[[d]].indices
        evidence = model.label_evidence(X[[d]], labels)
        total = evidence.base + evidence.weights @ evidence.by_word
        np.testing.assert_allclose(total, scores[[d]].data, atol=1e-4)
        assert evidence.by_word.any()


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("weights", [1.0], "weights must be a list of 20 numbers"),
        ("intercept", 1e300, "must be a number from"),
        ("missed", -1.0, "missed == -1.0, must be >= 0"),
        ("curve", [[1.0, 0.0], [0.0, 1.0]], "must not decrease"),
    ],
)
def test_a_damaged_combination(name, value, sentence):
    """Tuned values that no fit could have chosen are rejected."""
    model = CandidateStack().fit(X, Y)
    tuned = {**model.tuned_, name: value}

    with pytest.raises(ValueError, match=sentence):
        clone(model).from_arrays(model.to_arrays(), labels=list(range(60)), n_words=40, tuned=tuned)
