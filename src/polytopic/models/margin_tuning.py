"""What maximal margin labeling chooses by held-out documents: C, and curves of probabilities."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from polytopic.kernels.blocks import n_threads
from polytopic.metrics import exact_match, labeling_f
from polytopic.models.checks import is_auto
from polytopic.models.curves import rising_curve

COSTS = (0.1, 0.3, 1.0, 3.0)
USUAL_COST = 1.0  # where there are too few documents to choose
FEWEST = 30  # documents to choose by
TUNING_DOCS, CALIBRATION_DOCS = 3000, 12000
FOLDS = 3


def picked(model, n_docs: int) -> np.ndarray:
    """Return the documents that things are chosen by, in order; of some the first ones count."""
    most = max(TUNING_DOCS, CALIBRATION_DOCS)
    return check_random_state(model.random_state).permutation(n_docs)[:most]


def chosen(model, X, Y, order=None) -> dict:
    """Return what is chosen of that which is not fixed, by documents of unit length.

    ``order`` has the documents that were ``picked``; by default that is done here.
    """
    found, enough = {}, X.shape[0] >= FEWEST
    if is_auto(model.C):
        found["C"] = _best_cost(model, X, Y, order) if enough else USUAL_COST
    if model.calibrate and enough and model._form.kind != "single":
        cost = found.get("C", model.C)
        (judged,) = _held_out(model, X, Y, order, CALIBRATION_DOCS, [cost], _judge)
        leads, right, margins, truth = map(np.concatenate, zip(*judged, strict=True))
        found["set_curve"] = rising_curve(leads, right)
        if margins.size:  # a label that is alone has no margin
            found["label_curve"] = rising_curve(margins, truth)
    return found


def _best_cost(model, X, Y, order):
    """Return the C with the best measure over held-out documents, the smallest of several."""
    measure = exact_match if model.goal == "exact" else labeling_f
    values = _held_out(
        model, X, Y, order, TUNING_DOCS, COSTS, lambda fitted, X, Y: measure(Y, fitted.choose(X))
    )
    return COSTS[int(np.argmax(np.mean(values, axis=1)))]


def _judge(fitted, X, Y):
    """Return the leads of answers, whether these are right, and margins and truth of labels."""
    margins = fitted.decision_function(X)
    known = np.isfinite(margins)
    right = (fitted.choose(X) != Y).getnnz(axis=1) == 0
    return fitted.lead(X), right, margins[known], (Y.toarray() > 0)[known]


def _held_out(model, X, Y, order, n_docs, costs, judge):
    """Return what is made of each fold's documents by a model without them, for each C."""
    order = (picked(model, X.shape[0]) if order is None else order)[:n_docs]
    plain = clone(model).set_params(calibrate=False)
    folds = [np.arange(order.size) % FOLDS == fold for fold in range(FOLDS)]

    def run(task):
        cost, out = task
        fitted = clone(plain).set_params(C=cost).fit(X[order[~out]], Y[order[~out]])
        return judge(fitted, X[order[out]], Y[order[out]])

    with warnings.catch_warnings(), ThreadPoolExecutor(n_threads()) as pool:
        warnings.simplefilter("ignore", ConvergenceWarning)  # that of the last fit is told
        results = list(pool.map(run, [(cost, out) for cost in costs for out in folds]))
    return [results[start : start + FOLDS] for start in range(0, len(results), FOLDS)]
