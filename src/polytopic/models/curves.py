"""Curves from scores to probabilities."""

from __future__ import annotations

import numpy as np

from polytopic.kernels.isotonic import pool_adjacent

KNOTS = 200


def rising_curve(scores, right):
    """Return knots of the rising curve that tells how often answers with a score are right.

    Scores between which isotonic regression sees no rise share one value, their part that is
    right; half an answer of each kind is added, so that few answers never make it certain, and
    steps that fall for it are made one. An infinite score, of a set without a rival, is as good
    as the highest one, and one of minus infinity as bad as the lowest.
    """
    finite = scores[np.isfinite(scores)]
    scores = np.clip(scores, finite.min(initial=0.0), finite.max(initial=0.0))
    values, place = np.unique(scores, return_inverse=True)
    n_answers, n_right = np.bincount(place), np.bincount(place, weights=right)
    steps, _ = rising_steps(n_right / n_answers, n_answers.astype(np.float64))
    n_answers, n_right = (np.add.reduceat(sums, steps[:-1]) for sums in (n_answers, n_right))
    borders, heights = rising_steps((n_right + 0.5) / (n_answers + 1), n_answers + 1.0)
    share = np.repeat(heights, np.diff(borders))
    low, high = values[steps[:-1]], values[steps[1:] - 1]
    x, y = np.column_stack([low, high]).ravel(), np.repeat(share, 2)
    kept = np.unique(np.linspace(0, x.size - 1, min(x.size, KNOTS)).astype(int))
    return [x[kept].tolist(), y[kept].tolist()]


def rising_steps(values, weights):
    """Return the rising steps that are nearest to values: where each begins, and its height.

    The last of the beginnings is the number of values.
    """
    begins, heights = np.empty(values.size + 1, np.int64), np.empty(values.size)
    n = pool_adjacent(values, weights, begins, heights)
    return begins[: n + 1], heights[:n]
