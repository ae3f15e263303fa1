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
MANY = 2000  # documents of which one fold is enough
CLEARLY = 0.003  # so much better must a C be that is not in the middle


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
        plain = clone(model).set_params(calibrate=False, C=found.get("C", model.C))
        judged = _held_out([plain], X, Y, _some(model, X, order, CALIBRATION_DOCS), _judge)
        leads, right, margins, truth = map(np.concatenate, zip(*judged[0], strict=True))
        found["set_curve"] = rising_curve(leads, right)
        if margins.size:  # a label that is alone has no margin
            found["label_curve"] = rising_curve(margins, truth)
    return found


def _best_cost(model, X, Y, order):
    """Return the C with the best measure over held-out documents, the smallest of several.

    The two in the middle are tried first, then the one beside the better of them, which has to
    be clearly better still.
    """
    measure = exact_match if model.goal == "exact" else labeling_f
    plain = clone(model).set_params(calibrate=False)
    found: dict[float, float] = {}
    order = _some(model, X, order, TUNING_DOCS)

    def try_costs(*costs):
        models = [clone(plain).set_params(C=cost) for cost in costs]
        values = _held_out(models, X, Y, order, lambda fitted, X, Y: measure(Y, fitted.choose(X)))
        found.update(zip(costs, np.mean(values, axis=1), strict=True))

    lowest, low, high, highest = COSTS
    try_costs(low, high)
    last = lowest if found[low] >= found[high] else highest
    try_costs(last)
    found[last] -= CLEARLY
    return max(sorted(found), key=found.__getitem__)


def _judge(fitted, X, Y):
    """Return the leads of answers, whether these are right, and margins and truth of labels."""
    margins = fitted.decision_function(X)
    known = np.isfinite(margins)
    right = (fitted.choose(X) != Y).getnnz(axis=1) == 0
    return fitted.lead(X), right, margins[known], (Y.toarray() > 0)[known]


def _some(model, X, order, n_docs):
    return (picked(model, X.shape[0]) if order is None else order)[:n_docs]


def _held_out(models, X, Y, order, judge):
    """Return for each model what is made of each fold's documents when it is fitted without them.

    Of many documents one fold is held out, else each in its turn.
    """
    folds = [
        np.arange(order.size) % FOLDS == fold for fold in range(FOLDS if order.size < MANY else 1)
    ]

    def run(task):
        model, out = task
        fitted = clone(model).fit(X[order[~out]], Y[order[~out]])
        return judge(fitted, X[order[out]], Y[order[out]])

    with warnings.catch_warnings(), ThreadPoolExecutor(n_threads()) as pool:
        warnings.simplefilter("ignore", ConvergenceWarning)  # that of the last fit is told
        results = list(pool.map(run, [(model, out) for model in models for out in folds]))
    return [results[start : start + len(folds)] for start in range(0, len(results), len(folds))]
