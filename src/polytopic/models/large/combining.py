"""How what three sources say of candidates becomes one probability, and these a label set.

A logistic regression on the features of a document and a candidate ranks the candidates, and a
rising curve turns its scores into probabilities. Both are fitted on documents that the sources were
not fitted on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from polytopic.models.calibration import rising_curve
from polytopic.models.checks import LARGEST_WEIGHT, check_curve
from polytopic.models.large.ranking_kernels import N_FEATURES

RIDGE = 1.0  # C of the regression
MISSED_SHARE = 0.3  # of the right labels beyond the candidates, when a set is chosen
TINY = 1e-12


class CandidateCombination(NamedTuple):
    """A fitted combination.

    Attributes
    ----------
    weights : list of float
        The weight of each feature.
    intercept : float
        What is added to the weighted features.
    curve : pair of lists
        Scores, and the probabilities that they stand for.
    missed : float
        The mean number of right labels that are not candidates.
    """

    weights: list[float]
    intercept: float
    curve: list
    missed: float

    @classmethod
    def fit(cls, features, right, missed: float) -> CandidateCombination | None:
        """Fit a combination on held-out documents; None if all candidates are right, or none.

        Parameters
        ----------
        features : ndarray of shape (n_candidates, N_FEATURES)
            The features of all candidates of all documents.
        right : ndarray of bool, shape (n_candidates,)
            Which of them are right.
        missed : float
            The mean number of right labels that are not candidates.
        """
        from sklearn.linear_model import LogisticRegression  # here: predicting does without it

        if right.all() or not right.any():
            return None
        features = features.astype(np.float64)
        mean, scale = features.mean(axis=0), features.std(axis=0)
        scale[scale < TINY] = 1.0
        regression = LogisticRegression(C=RIDGE, solver="newton-cholesky")
        regression.fit((features - mean) / scale, right)
        weights = regression.coef_[0] / scale
        intercept = float(regression.intercept_[0] - weights @ mean)
        curve = rising_curve(features @ weights + intercept, right)
        return cls(weights.tolist(), intercept, curve, missed)

    def scores(self, features) -> np.ndarray:
        """Return the scores of candidates, by their features in the last dimension."""
        return features @ np.array(self.weights) + self.intercept

    def proba(self, scores) -> np.ndarray:
        """Return the probabilities that scores stand for."""
        return np.interp(scores, *self.curve)


def choose_sets(proba: np.ndarray, missed: float = 0.0) -> np.ndarray:
    r"""Return which candidates of each document are predicted, given their probabilities.

    They are the :math:`k` most probable ones with the highest approximate expected F1,
    :math:`2 \sum_{i \le k} p_i / (k + \sum_i p_i + c)`, where :math:`c` are right labels beyond the
    candidates.
    """
    order = np.argsort(-proba, axis=1, kind="stable")
    ranked = np.take_along_axis(proba, order, axis=1)
    hits, sizes = np.cumsum(ranked, axis=1), np.arange(1, proba.shape[1] + 1)
    total = ranked.sum(axis=1, keepdims=True)
    expected = hits / (sizes + total + MISSED_SHARE * missed)
    n_best = expected.argmax(axis=1) + 1 if sizes.size else np.zeros(len(proba), dtype=int)
    chosen = np.zeros(proba.shape, dtype=bool)
    np.put_along_axis(chosen, order, sizes <= n_best[:, None], axis=1)
    return chosen


def check_candidate_combination(tuned: Mapping[str, Any]) -> None:
    """Raise ValueError unless these are the tuned values of a stack of candidates."""
    if not tuned:
        return
    for name in (*CandidateCombination._fields, "set_curve"):
        if name not in tuned:
            raise ValueError(f"the tuned values have no {name}")
    weights = tuned["weights"]
    if not isinstance(weights, list | tuple) or len(weights) != N_FEATURES:
        raise ValueError(f"weights must be a list of {N_FEATURES} numbers")
    for number in (*weights, tuned["intercept"], tuned["missed"]):
        if not isinstance(number, int | float) or not abs(number) <= LARGEST_WEIGHT:
            raise ValueError(
                f"a weight, the intercept or missed == {number!r}, must be a number from "
                f"-{LARGEST_WEIGHT} to {LARGEST_WEIGHT}"
            )
    if tuned["missed"] < 0:
        raise ValueError(f"missed == {tuned['missed']}, must be >= 0")
    for name in ("curve", "set_curve"):
        check_curve(name, tuned[name])
