"""Kernels that read cuts and normalize scores, compared with their twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polytopic.decision import kernels
from tests.twins import decision as twins

FEW = st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0, np.inf])


@given(st.lists(FEW, min_size=1, max_size=8), FEW, st.integers(0, 3))
def test_accept(scores, cut, ties):
    """Labels above the cut are accepted, and the first ones exactly at it."""
    indices, ends = np.empty(len(scores), np.int32), np.empty(1, np.int64)

    assert kernels.accept(
        np.array([scores]), np.array([[cut]]), np.array([[ties]], np.int32), indices, ends
    )

    assert indices[: ends[0]].tolist() == twins.accept(scores, cut, ties)


@given(
    st.lists(FEW, min_size=1, max_size=8),
    st.lists(st.tuples(FEW, st.integers(0, 3)), min_size=1, max_size=4),
    st.sets(st.integers(0, 7)),
)
def test_count_accepted(scores, cuts, true):
    """One pass counts what each of many shrinking cuts accepts."""
    cuts = sorted(cuts, key=lambda pair: (pair[0], -pair[1]))
    cut, ties = map(list, zip(*cuts, strict=True))
    true = {c for c in true if c < len(scores)}
    accepted, right = np.empty((2, 1, len(cuts)), np.int32)

    assert kernels.count_accepted(
        np.array([scores]),
        np.array([cut]),
        np.array([ties], np.int32),
        np.array(sorted(true), np.int64),
        np.array([0, len(true)]),
        accepted,
        right,
    )

    expected = twins.count_accepted(scores, cut, ties, true)
    assert (accepted[0].tolist(), right[0].tolist()) == expected


@given(st.lists(FEW | st.integers(-99, 99).map(float), min_size=1, max_size=80), st.integers(1, 9))
def test_next_cuts(scores, size):
    """Each score is compared with those that follow; what is excluded is below the lowest cut."""
    known = [c for c, score in enumerate(scores) if score > -np.inf]
    out, few = np.empty((2, 1, len(scores)))
    cut, ties = np.empty((1, 2)), np.empty((1, 2), np.int32)

    for ratio, z in ((0.0, out), (0.8, few)):
        matrix = np.array([scores])
        ratios = np.array([ratio, 1.0])
        kernels.next_cuts(matrix, matrix.view(np.int64), size, ratios, False, z, cut, ties)

    if max(scores) == np.inf or not known:
        assert out[0].tolist() == few[0].tolist() == scores
    else:
        expected = twins.next_scores(scores, known, size)
        top = out[0, scores.index(max(scores))]
        assert out[0, known] == pytest.approx([expected[c] for c in known])
        assert cut[0] == pytest.approx([0.8 * top, top])
        assert all(few[0, c] == out[0, c] for c in known if out[0, c] >= cut[0, 0])
        assert set(few[0]) <= {*out[0], -np.inf}


@given(st.lists(st.tuples(FEW, st.integers(0, 2)), min_size=1, max_size=8))
def test_sibling_scores(pairs):
    """Each score is compared with the others of its group, or with all others."""
    scores, groups = map(list, zip(*pairs, strict=True))
    group = np.array(groups, np.uint32)
    known = [c for c, score in enumerate(scores) if score > -np.inf]
    siblings = {c: [o for o, g in enumerate(groups) if o != c and g == groups[c]] for c in known}
    out = np.empty((1, len(scores)))

    kernels.sibling_scores(np.array([scores]), group, np.bincount(group), out)

    if max(scores) == np.inf or not known:
        assert out[0].tolist() == scores
    else:
        expected = twins.sibling_scores(scores, known, siblings)
        assert out[0, known] == pytest.approx([expected[c] for c in known])
