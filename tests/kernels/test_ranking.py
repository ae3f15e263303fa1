"""The highest values, and labels in order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from polytopic.kernels.ranking import highest, rank_labels
from tests.twins import kernels as twins


@given(st.lists(st.tuples(st.sampled_from([-np.inf, 0.0, 0.5, 2.0]), st.booleans())))
def test_the_highest_values(rows):
    """They are those that sorting gives; of equal values, the first come first."""
    values, skip = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows], bool)
    top = np.empty(values.size, np.int64)

    for n in range(values.size + 1):
        expected = twins.highest(values, skip, n)

        assert top[: highest(values, skip, n, top)].tolist() == expected.tolist()


@given(st.data())
def test_the_order_of_labels(data):
    """Chosen labels come first, then the best others; of equal labels, the first."""
    n_labels, k = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 9))
    row = st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0]), min_size=n_labels)
    scores = np.array([data.draw(row)[:n_labels] for _ in range(3)])
    chosen = np.array([[data.draw(st.booleans()) for _ in range(n_labels)] for _ in range(3)])
    order = np.full((3, n_labels), -1)

    rank_labels(scores, chosen, k, order)

    expected = twins.rank_labels(scores, chosen, k)
    assert order.tolist() == [labels + [-1] * (n_labels - len(labels)) for labels in expected]
