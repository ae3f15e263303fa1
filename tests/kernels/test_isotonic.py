"""Isotonic regression is SciPy's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from polytopic.kernels.isotonic import pool_adjacent
from tests.twins import kernels as twins


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), min_size=1, max_size=60))
def test_steps_are_those_of_isotonic_regression(pairs):
    """SciPy finds the same values; each step is higher than the one before."""
    values, weights = np.array(pairs, dtype=float).T
    begins, heights = np.empty(values.size + 1, np.int64), np.empty(values.size)

    n = pool_adjacent(values.copy(), weights.copy(), begins, heights)

    expected_begins, expected_heights = twins.pool_adjacent(values, weights)
    expected = np.repeat(expected_heights, np.diff(expected_begins))
    assert (np.diff(heights[:n]) > 0).all()
    np.testing.assert_allclose(np.repeat(heights[:n], np.diff(begins[: n + 1])), expected)
