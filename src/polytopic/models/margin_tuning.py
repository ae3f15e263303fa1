"""What maximal margin labeling chooses by held-out documents: C, and curves of probabilities."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from polytopic.kernels.blocks import run_tasks
from polytopic.metrics import samples_f1, subset_accuracy
from polytopic.models.checks import is_auto
from polytopic.models.curves import rising_curve

COSTS = (0.3, 1.0)
USUAL_COST = 1.0  # where there are too few documents to choose
FEWEST = 30  # documents to choose by
MOST = 12000
FOLDS = 3
MANY = 2000  # documents of which one fold is enough


def picked(model, n_docs: int) -> np.ndarray:
    """Return the documents that things are chosen by, in order."""
    return check_random_state(model.random_state).permutation(n_docs)[:MOST]


def chosen(model, X, Y, order=None) -> dict:
    """Return what is chosen of that which is not fixed, by documents of unit length.

    ``order`` has the documents that were ``picked``; by default that is done here.
    """
    found: dict[str, Any] = {}
    to_choose = is_auto(model.C)
    calibrated = model.calibrate and model._form.kind != "single"
    if X.shape[0] < FEWEST or not (to_choose or calibrated):
        return {"C": USUAL_COST} if to_choose else found
    order = picked(model, X.shape[0]) if order is None else order
    plain = clone(model).set_params(calibrate=False)
    models = [clone(plain).set_params(C=cost) for cost in (COSTS if to_choose else [model.C])]
    judged = _held_out(models, X, Y, order, partial(_judge, calibrated=calibrated))
    values = [np.mean([one.value for one in folds]) for folds in judged]
    best = int(np.argmax(values))
    if to_choose:
        found["C"] = COSTS[best]
    if calibrated:
        leads, right, margins, truth = (
            np.concatenate(column)
            for column in zip(*(one.calibration for one in judged[best]), strict=True)
        )
        found["set_curve"] = rising_curve(leads, right)
        if margins.size:  # a label that is alone has no margin
            found["label_curve"] = rising_curve(margins, truth)
    return found


class Judgement(NamedTuple):
    """What a model makes of documents that it was not fitted on."""

    value: float  # of the measure that it is to be good at
    calibration: tuple = ()  # leads of answers, if these are right, margins of labels, their truth


def _judge(fitted, X, Y, *, calibrated):
    measure = subset_accuracy if fitted.goal == "exact" else samples_f1
    if not calibrated:
        return Judgement(measure(Y, fitted.choose(X)))
    sets, margins = fitted._sets_and_margins(X)
    known, right = np.isfinite(margins), (sets != Y).getnnz(axis=1) == 0
    truth = (Y.toarray() > 0)[known]
    return Judgement(measure(Y, sets), (fitted.lead(X), right, margins[known], truth))


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

    tasks = [(model, out) for model in models for out in folds]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # that of the last fit is told
        results = run_tasks(run, tasks)
    return [results[start : start + len(folds)] for start in range(0, len(results), len(folds))]
