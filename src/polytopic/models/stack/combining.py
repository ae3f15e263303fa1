"""How the scores of several models become one probability per label.

Each member's scores are turned into probabilities by one rising curve for all labels. A logistic
regression on the log odds of these probabilities weighs the members. Both are fitted on documents
that the members were not fitted on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit

from polytopic.models.calibration import rising_curve
from polytopic.models.checks import LARGEST_WEIGHT, check_curve
from polytopic.models.stack import kernels

SURE = 1e-4  # probabilities of members are not nearer to 0 and 1
MAX_PAIRS = 500_000  # of documents and labels that the regression is fitted on
RIDGE = 10.0  # C of the regression
N_BINS = 1000  # in which curves are looked up


class Combination(NamedTuple):
    """A fitted combination.

    Attributes
    ----------
    curves : list of pairs of lists
        For each member, scores and the probabilities that they stand for.
    weights : list of float
        The weight of each member.
    intercept : float
        What is added to their weighted log odds.
    """

    curves: list
    weights: list[float]
    intercept: float

    @classmethod
    def fit(cls, scores: list[np.ndarray], truth: np.ndarray, seed: int = 0) -> Combination:
        """Fit a combination on held-out documents.

        Parameters
        ----------
        scores : list of ndarray of shape (n_docs, n_labels)
            The scores of each member; -inf for a label that it never saw.
        truth : ndarray of shape (n_docs, n_labels)
            Which labels are right.
        seed : int, default=0
            Determines which pairs of documents and labels are used if there are many.
        """
        from sklearn.linear_model import LogisticRegression  # here: predicting does without it

        right = truth.ravel()
        curves = [rising_curve(member.ravel(), right) for member in scores]
        odds = [member_odds(curve, s).ravel() for curve, s in zip(curves, scores, strict=True)]
        features = np.column_stack(odds)
        if right.size > MAX_PAIRS:
            pairs = np.random.RandomState(seed).choice(right.size, MAX_PAIRS, replace=False)
            features, right = features[pairs], right[pairs]
        if right.all() or not right.any():
            return cls(curves, [1 / len(scores)] * len(scores), 0.0)
        regression = LogisticRegression(C=RIDGE, solver="newton-cholesky").fit(features, right)
        return cls(curves, regression.coef_[0].tolist(), float(regression.intercept_[0]))

    def log_odds(self, scores: list[np.ndarray]) -> np.ndarray:
        """Return the log odds of labels by the scores of each member."""
        total = np.full(scores[0].shape, float(self.intercept))
        for curve, weight, member in zip(self.curves, self.weights, scores, strict=True):
            _add_odds(curve, member, weight, total)
        return total


def member_odds(curve, scores) -> np.ndarray:
    """Return the log odds that scores stand for."""
    odds = np.zeros(scores.shape)
    _add_odds(curve, scores, 1.0, odds)
    return odds


def _add_odds(curve, scores, weight, total):
    """Add the weighted log odds that scores stand for."""
    x, y = (np.array(knots, dtype=np.float64) for knots in curve)
    begins = np.searchsorted(x, np.linspace(x[0], x[-1], N_BINS, endpoint=False), side="right") - 1
    kernels.add_log_odds(
        np.ascontiguousarray(scores, dtype=np.float64).ravel(),
        x,
        y,
        logit(np.clip(y, SURE, 1 - SURE)),
        begins,
        SURE,
        float(weight),
        total.ravel(),
    )


def without_infinity(scores: np.ndarray) -> np.ndarray:
    """Return scores, where an infinite one is the highest or lowest log odds of a member."""
    return np.nan_to_num(scores, posinf=logit(1 - SURE), neginf=logit(SURE))


def best_thresholds(proba: np.ndarray) -> np.ndarray:
    r"""Return for each label the highest expected F1 over thresholds, given its probabilities.

    That is :math:`F^* = \max_k 2 \sum_{i \le k} p_i / (k + \sum_i p_i)` with probabilities in
    descending order. A label is worth predicting, as far as its own F1 is concerned, if its
    probability is above :math:`F^* / 2`.
    """
    ranked = -np.sort(-proba, axis=0)
    hits = np.cumsum(ranked, axis=0)
    sizes = np.arange(1, len(proba) + 1)[:, None]
    return (2 * hits / (sizes + hits[-1])).max(axis=0)


def check_combination(tuned: Mapping[str, Any] | None, n_members: int) -> None:
    """Raise ValueError unless these are the tuned values of a stack."""
    if not tuned:
        return
    for name in ("members", *Combination._fields, "thresholds", "set_curve"):
        if name not in tuned:
            raise ValueError(f"the tuned values have no {name}")
    for name in ("curves", "weights", "members"):
        if not isinstance(tuned[name], list | tuple) or len(tuned[name]) != n_members:
            raise ValueError(f"{name} must be a list of {n_members} values, one per member")
    for number, curve in enumerate(tuned["curves"]):
        check_curve(f"curves[{number}]", curve)
    check_curve("set_curve", tuned["set_curve"])
    if not isinstance(tuned["thresholds"], Mapping):
        kind = type(tuned["thresholds"]).__name__
        raise ValueError(f"thresholds is a {kind}, must be a mapping from labels to numbers")
    numbers = [*tuned["weights"], tuned["intercept"], *tuned["thresholds"].values()]
    for number in numbers:
        if not isinstance(number, int | float) or not abs(number) <= LARGEST_WEIGHT:
            raise ValueError(
                f"a weight, the intercept or a threshold == {number!r}, must be a number from "
                f"-{LARGEST_WEIGHT} to {LARGEST_WEIGHT}"
            )
