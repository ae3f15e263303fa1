"""Tests of whether two methods differ by more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

RESAMPLED = 9999  # random signs of the differences
PER_DOCUMENT = ("samples_f1", "subset_accuracy")


def compare_pairs(
    ours: Sequence[dict[str, Any]], theirs: Sequence[dict[str, Any]], metric: str
) -> float | None:
    """Return the p-value of the mean difference between two methods.

    For several splits this is the corrected resampled t-test of Nadeau and Bengio ("Inference for
    the generalization error", Machine Learning 52, 2003), which accounts for the documents that
    splits share. For one split it is a permutation test over documents, for metrics that are means
    over documents; None for others.
    """
    if len(ours) > 1:
        return _corrected_t(ours, theirs, metric)
    if metric not in PER_DOCUMENT:
        return None
    a, b = (np.array(one[0]["documents"][metric], dtype=float) for one in (ours, theirs))
    return _permuted(a - b)


def _corrected_t(ours, theirs, metric) -> float:
    difference = np.array(
        [a["metrics"][metric] - b["metrics"][metric] for a, b in zip(ours, theirs, strict=True)]
    )
    n = difference.size
    ratio = float(np.mean([one["n_test"] / one["n_train"] for one in ours]))
    variance = difference.var(ddof=1) * (1 / n + ratio)
    if variance == 0:
        return 1.0 if difference.mean() == 0 else 0.0
    return float(2 * stats.t.sf(abs(difference.mean()) / np.sqrt(variance), n - 1))


def _permuted(difference: np.ndarray) -> float:
    rng, observed = np.random.default_rng(0), abs(difference.sum())
    own = difference[difference != 0]
    if not own.size:
        return 1.0
    extreme = 0
    for _ in range(0, RESAMPLED, 1000):
        signs = rng.integers(0, 2, (1000, own.size)) * 2 - 1
        extreme += int((np.abs(signs @ own) >= observed - 1e-12).sum())
    return (extreme + 1) / (RESAMPLED + 2)
