"""Curves from scores to probabilities."""

from __future__ import annotations

import numpy as np

from polytopic.kernels.isotonic import pool_adjacent

KNOTS = 200


def rising_curve(scores, right):
    """Return the knots of a rising curve: how often predictions with a score are right.

    Scores between which isotonic regression sees no rise share one value: the fraction of them that
    is right. Half a prediction of each kind is added to each step, so that a few predictions never
    make it certain; steps that fall because of this are merged. Infinite scores count as the
    highest or lowest finite one.
    """
    finite = scores[np.isfinite(scores)]
    scores = np.clip(scores, finite.min(initial=0.0), finite.max(initial=0.0))
    values, place = np.unique(scores, return_inverse=True)
    n_all, n_right = np.bincount(place), np.bincount(place, weights=right)
    steps, _ = rising_steps(n_right / n_all, n_all.astype(np.float64))
    n_all, n_right = (np.add.reduceat(sums, steps[:-1]) for sums in (n_all, n_right))
    borders, heights = rising_steps((n_right + 0.5) / (n_all + 1), n_all + 1.0)
    share = np.repeat(heights, np.diff(borders))
    low, high = values[steps[:-1]], values[steps[1:] - 1]
    x, y = np.column_stack([low, high]).ravel(), np.repeat(share, 2)
    knots = np.unique(np.linspace(0, x.size - 1, min(x.size, KNOTS)).astype(int))
    return [x[knots].tolist(), y[knots].tolist()]


def rising_steps(values, weights):
    """Return the rising steps nearest to values: where each begins, and its height.

    The number of values follows the last beginning.
    """
    begins, heights = np.empty(values.size + 1, np.int64), np.empty(values.size)
    n = pool_adjacent(values, weights, begins, heights)
    return begins[: n + 1], heights[:n]
