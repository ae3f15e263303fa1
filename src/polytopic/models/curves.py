"""Curves from scores to probabilities."""

from __future__ import annotations

import numpy as np

KNOTS = 200


def rising_curve(scores, right):
    """Return knots of the rising curve that tells how often answers with a score are right.

    Scores between which isotonic regression sees no rise share one value, their part that is
    right; half an answer of each kind is added, so that few answers never make it certain, and
    steps that fall for it are made one. An infinite score, of a set without a rival, is as good
    as the highest one.
    """
    from sklearn.isotonic import IsotonicRegression, isotonic_regression  # slow to load

    scores = np.minimum(scores, scores[np.isfinite(scores)].max(initial=0.0))
    level = IsotonicRegression().fit(scores, right).predict(scores)
    _, step = np.unique(level, return_inverse=True)
    n_answers = np.bincount(step) + 1.0
    share = (np.bincount(step, weights=right) + 0.5) / n_answers
    share = isotonic_regression(share, sample_weight=n_answers)
    low, high = np.full(share.size, np.inf), np.full(share.size, -np.inf)
    np.minimum.at(low, step, scores)
    np.maximum.at(high, step, scores)
    x, y = np.column_stack([low, high]).ravel(), np.repeat(share, 2)
    kept = np.unique(np.linspace(0, x.size - 1, min(x.size, KNOTS)).astype(int))
    return [x[kept].tolist(), y[kept].tolist()]
