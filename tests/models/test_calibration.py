"""Curves from scores to probabilities."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from polytopic.models.calibration import KNOTS, rising_curve


def test_the_curve_is_the_share_of_right_answers():
    """If answers are right as often as their score says, the curve is the score."""
    rng = np.random.default_rng(0)
    scores = rng.uniform(0, 1, 200_000)
    x, y = rising_curve(scores, rng.uniform(size=scores.size) < scores)

    at = np.linspace(0.02, 0.98, 25)
    np.testing.assert_allclose(np.interp(at, x, y), at, atol=0.03)


def test_a_few_answers_do_not_lift_all_others():
    """A few answers at the bottom do not make all those above them more probable."""
    scores = np.concatenate([[-9.0, -8.0], np.linspace(-1, 0, 5000), np.linspace(0.1, 1, 50)])
    right = np.concatenate([[False, True], np.zeros(5000, bool), np.ones(50, bool)])
    x, y = rising_curve(scores, right)

    assert np.interp(-0.5, x, y) < 0.001
    assert 0.97 < np.interp(0.5, x, y) < 1


@given(st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=1, max_size=400))
def test_laws(answers):
    """The curve has few knots, rises, and is never certain."""
    scores, right = (np.array(column) for column in zip(*answers, strict=True))
    x, y = map(np.array, rising_curve(scores, right.astype(bool)))

    assert x.size <= KNOTS
    assert (np.diff(x) >= 0).all()
    assert (np.diff(y) >= 0).all()
    assert (y > 0).all()
    assert (y < 1).all()
