"""What maximal margin labeling chooses by held-out documents: C, and curves of probabilities."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state

from polytopic.metrics import exact_match, labeling_f
from polytopic.models.checks import is_auto

COSTS = (0.1, 0.3, 1.0, 3.0)
USUAL_COST = 1.0  # where there are too few documents to choose
FEWEST = 30  # documents to choose by
TUNING_DOCS, CALIBRATION_DOCS = 3000, 12000
FOLDS = 3
KNOTS = 200  # of a curve


def tune(model, X, Y):
    """Choose what is not fixed, into ``chosen_``, by documents of unit length."""
    if is_auto(model.C):
        model.chosen_["C"] = _best_cost(model, X, Y)
    if model.calibrate and model._form.kind != "single" and X.shape[0] >= FEWEST:
        margins, leads, truth, right = [], [], [], []
        for fitted, X_out, Y_out in _folds(model, X, Y, CALIBRATION_DOCS, C=model_cost(model)):
            margins.append(fitted.decision_function(X_out))
            leads.append(fitted.lead(X_out))
            truth.append(Y_out.toarray() > 0)
            right.append((fitted.choose(X_out) != Y_out).getnnz(axis=1) == 0)
        known = np.vstack(margins)
        model.chosen_["set_curve"] = _logistic(np.concatenate(leads), np.concatenate(right))
        if np.isfinite(known).any():  # a label that is alone has no margin
            model.chosen_["label_curve"] = _isotonic(known, np.vstack(truth))


def model_cost(model):
    """Return the C that is used."""
    return model.chosen_.get("C", model.C)


def _best_cost(model, X, Y):
    """Return the C with the best measure over held-out documents, the smallest of several."""
    if X.shape[0] < FEWEST:
        return USUAL_COST
    measure = exact_match if model.goal == "exact" else labeling_f
    values = []
    for cost in COSTS:
        answers = [
            (Y_out, fitted.choose(X_out))
            for fitted, X_out, Y_out in _folds(model, X, Y, TUNING_DOCS, C=cost)
        ]
        values.append(np.mean([measure(truth, answer) for truth, answer in answers]))
    return COSTS[int(np.argmax(values))]


def _folds(model, X, Y, n_docs, **settings):
    """Yield models fitted without a fold of the documents, and the fold."""
    order = check_random_state(model.random_state).permutation(X.shape[0])[:n_docs]
    plain = clone(model).set_params(calibrate=False, **settings)
    for fold in range(FOLDS):
        held_out = np.zeros(order.size, dtype=bool)
        held_out[fold::FOLDS] = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # that of the last fit is told
            fitted = clone(plain).fit(X[order[~held_out]], Y[order[~held_out]])
        yield fitted, X[order[held_out]], Y[order[held_out]]


def _logistic(leads, right):
    """Return slope and height of the logistic function that tells how often a lead is right."""
    if right.all() or not right.any():
        return [0.0, float(np.log((right.sum() + 1) / ((~right).sum() + 1)))]
    curve = LogisticRegression(C=np.inf).fit(leads[:, None], right)
    return [float(curve.coef_[0, 0]), float(curve.intercept_[0])]


def _isotonic(margins, truth):
    """Return knots of the rising curve that tells how often labels with a margin are right."""
    known = np.isfinite(margins)
    curve = IsotonicRegression(y_min=0.0, y_max=1.0).fit(margins[known], truth[known])
    x, y = curve.X_thresholds_, curve.y_thresholds_
    if x.size > KNOTS:
        kept = np.unique(np.linspace(0, x.size - 1, KNOTS).astype(int))
        x, y = x[kept], y[kept]
    return [x.tolist(), y.tolist()]
