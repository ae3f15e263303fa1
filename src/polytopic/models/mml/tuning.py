"""Tuning on held-out documents: ``C``, and curves from scores to probabilities."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from polytopic.counts.sampling import draw_documents
from polytopic.kernels.blocks import run_tasks
from polytopic.metrics import samples_f1, subset_accuracy
from polytopic.models.base import HeldOutScores
from polytopic.models.calibration import rising_curve
from polytopic.models.checks import is_auto

COSTS = (0.3, 1.0)
DEFAULT_COST = 1.0  # with fewer documents than FEWEST
FEWEST = 30  # documents to tune on
MOST = 12000
FOLDS = 3
MANY = 2000  # documents for which one fold is enough


def sample_documents(model, n_docs: int) -> np.ndarray:
    """Return the rows of the documents to tune on, in order."""
    return draw_documents(n_docs, MOST, model.random_state)


def tune(model, X, Y, order=None) -> dict:
    """Return the values of everything that is to be tuned, found on documents of unit length.

    ``order`` has the rows to use; by default, those of `sample_documents`.
    """
    tuned: dict[str, Any] = {}
    tune_cost = is_auto(model.C)
    calibrate = model.calibrate and model._form.kind != "single"
    if X.shape[0] < FEWEST or not (tune_cost or calibrate):
        return {"C": DEFAULT_COST} if tune_cost else tuned
    order = sample_documents(model, X.shape[0]) if order is None else order
    plain = clone(model).set_params(calibrate=False)
    models = [clone(plain).set_params(C=cost) for cost in (COSTS if tune_cost else [model.C])]
    evaluations = _cross_validate(models, X, Y, order, calibrate=calibrate)
    best = int(np.argmax([np.mean([fold.value for fold in folds]) for folds in evaluations]))
    if tune_cost:
        tuned["C"] = COSTS[best]
    if calibrate:
        leads, right, margins, truth = (
            np.concatenate(column)
            for column in zip(*(fold.calibration for fold in evaluations[best]), strict=True)
        )
        tuned["set_curve"] = rising_curve(leads, right)
        if margins.size:  # a model with one label has no margins
            tuned["label_curve"] = rising_curve(margins, truth)
    return tuned


class Evaluation(NamedTuple):
    """How a model does on documents that it was not fitted on."""

    value: float  # of the metric to maximise
    calibration: tuple = ()  # leads of sets, which sets are right, margins, true labels


def _evaluate(fitted, X, Y, *, calibrate):
    metric = subset_accuracy if fitted.goal == "exact" else samples_f1
    if not calibrate:
        return Evaluation(metric(Y, fitted.predict_indicator(X)))
    sets, margins, _ = fitted.assess(X)
    known, right = np.isfinite(margins), (sets != Y).getnnz(axis=1) == 0
    truth = (Y.toarray() > 0)[known]
    return Evaluation(metric(Y, sets), (fitted.lead(X), right, margins[known], truth))


def _cross_validate(models, X, Y, order, *, calibrate):
    """Return for each model its evaluations on the documents of each fold.

    With many documents, only one fold is held out.
    """
    n_folds = FOLDS if order.size < MANY else 1
    folds = [np.arange(order.size) % FOLDS == fold for fold in range(n_folds)]

    def run(task):
        model, out = task
        fitted = clone(model).fit(X[order[~out]], Y[order[~out]])
        return _evaluate(fitted, X[order[out]], Y[order[out]], calibrate=calibrate)

    tasks = [(model, out) for model in models for out in folds]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the final fit warns if need be
        results = run_tasks(run, tasks)
    return [results[start : start + n_folds] for start in range(0, len(results), n_folds)]


def score_held_out(model, X, Y, folds) -> HeldOutScores:
    """Return the margins of held-out documents, by the best cost if it is to be tuned."""
    tune_cost = is_auto(model.C)
    costs = COSTS if tune_cost else (model.C,)

    def run(task):
        cost, (train, test) = task
        fitted = clone(model).set_params(C=cost, calibrate=False).fit(X[train], Y[train])
        sets, margins, _ = fitted.assess(X[test])
        metric = subset_accuracy if fitted.goal == "exact" else samples_f1
        return metric(Y[test], sets), margins

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the final fit warns if need be
        found = run_tasks(run, [(cost, fold) for cost in costs for fold in folds])
    by_cost = [found[k : k + len(folds)] for k in range(0, len(found), len(folds))]
    best = int(np.argmax([np.mean([value for value, _ in folds]) for folds in by_cost]))
    margins = np.vstack([margins for _, margins in by_cost[best]])
    return HeldOutScores(margins, {"C": costs[best]} if tune_cost else {})
