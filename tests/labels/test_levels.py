"""Labels rolled up to a level of the tree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from polytopic.labels import LabelTree, Level
from tests.labels.strategies import trees

TREE = LabelTree.from_names(["science/space/mars", "science/space", "science/biology", "sport"])
LABELS = ["science/biology", "science/space", "science/space/mars", "sport", "stranger"]


@st.composite
def answers(draw):
    """Draw a tree, some of its labels and some others, and probabilities for documents."""
    tree = draw(trees())
    labels = draw(st.lists(st.sampled_from([*tree.nodes, "stranger"]), min_size=1, unique=True))
    proba = hnp.arrays(float, (3, len(labels)), elements=st.floats(0, 1))
    return tree, labels, draw(proba)


def test_answers_at_a_level():
    """A label gets the union, the best score and the probability of any label below it."""
    level = Level(LABELS, TREE, 1)

    assert level.labels == ("science/biology", "science/space", "sport", "stranger")
    assert level.sets([[0, 1, 1, 0, 0], [0, 0, 1, 0, 1]]).toarray().tolist() == [
        [0, 1, 0, 0],
        [0, 1, 0, 1],
    ]
    assert level.scores(np.array([[-1.0, -3, -2, -np.inf, 0]])).tolist() == [[-1, -2, -np.inf, 0]]
    proba = level.proba(np.array([[0.5, 0.5, 0.8, 0.1, 1.0]]))
    assert proba.tolist() == [pytest.approx([0.5, 0.9, 0.1, 1.0])]


@given(answers(), st.integers(0, 3))
def test_each_group_by_itself(drawn, height):
    """Groups are rolled up independently of each other."""
    tree, labels, proba = drawn
    level = Level(labels, tree, height)

    above = [tree.at_level(label, height) if label in tree else label for label in labels]

    assert list(level.labels) == sorted(set(above))
    for column, node in enumerate(level.labels):
        own = proba[:, [place for place, label in enumerate(above) if label == node]]
        assert (level.scores(proba)[:, column] == own.max(axis=1)).all()
        rolled = level.proba(proba)[:, column]
        np.testing.assert_allclose(rolled, 1 - np.prod(1 - own, axis=1), atol=1e-12)
        assert (rolled >= own.max(axis=1) - 1e-12).all()
        assert (rolled <= own.sum(axis=1) + 1e-12).all()
        chosen = level.sets(proba > 0.5).toarray()[:, column]
        assert (chosen == (own > 0.5).any(axis=1)).all()


@given(answers(), st.integers(0, 3), st.integers(0, 3))
def test_step_by_step_is_the_same_as_at_once(drawn, low, high):
    """Rolling up in two steps gives the same as in one."""
    tree, labels, proba = drawn
    first = Level(labels, tree, low + high)

    second, once = Level(first.labels, tree, high), Level(labels, tree, high)

    assert second.labels == once.labels
    Y = sparse.csr_matrix(proba > 0.5)
    assert (second.sets(first.sets(Y)) != once.sets(Y)).nnz == 0
    assert (second.scores(first.scores(proba)) == once.scores(proba)).all()
    np.testing.assert_allclose(second.proba(first.proba(proba)), once.proba(proba), atol=1e-12)


@given(answers(), st.integers(0, 2), st.randoms())
def test_the_order_of_labels_does_not_matter(drawn, height, random):
    """Columns in another order give the same result."""
    tree, labels, proba = drawn
    order = list(range(len(labels)))
    random.shuffle(order)

    one, other = Level(labels, tree, height), Level([labels[k] for k in order], tree, height)

    assert one.labels == other.labels
    assert (one.scores(proba) == other.scores(proba[:, order])).all()
    np.testing.assert_allclose(one.proba(proba), other.proba(proba[:, order]), atol=1e-12)


@pytest.mark.parametrize("level", [-1, 0.5, "1"])
def test_invalid_levels(level):
    """A level is an integer that is at least 0."""
    with pytest.raises((TypeError, ValueError), match="level"):
        Level(LABELS, TREE, level)
    with pytest.raises((TypeError, ValueError), match="level"):
        Level(["unknown"], TREE, level)
