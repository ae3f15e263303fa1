"""What the correlated labeling model chooses by held-out documents."""

from __future__ import annotations

from copy import copy

import numpy as np
from sklearn.utils import check_random_state

from polytopic.metrics import samples_f1
from polytopic.models.col_answers import log_odds
from polytopic.models.curves import rising_curve
from polytopic.models.label_training import fit_sets

FEWEST = 30  # documents to choose by
MOST_HELD_OUT = 3000
STEPS = 8  # of EM at most, without the held-out documents
TEMPERATURES = (0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.0)
USUAL = {"threshold": float(np.log(0.5)), "temperature": 1.0}
N_THRESHOLDS = 100


def chosen_by_documents(model, documents) -> dict:
    """Return the threshold, the temperature of label sets, and the curve of probabilities.

    A fifth of the documents is held out, and the rest learned, for as many steps as are enough.
    """
    known = documents.known()
    if known.size < FEWEST or model._form.kind == "single":
        return dict(USUAL)
    order = check_random_state(model.random_state).permutation(known)
    n_out = min(known.size // 5, MOST_HELD_OUT)
    out, rest = order[:n_out], np.sort(order[n_out:])
    own = documents.part(rest)
    seen = np.flatnonzero(own.label_docs)
    own, by_sets = own.over(seen), model.predict_mode == "sets"
    part = copy(model)
    part.chosen_, part._columns = dict(USUAL), model._columns[seen]
    prior = fit_sets(own.sets(), model.covariance)[0] if by_sets else None
    part._learn(own, min(model._steps, STEPS), prior)
    X, Y = documents.rows(out)
    truth = Y.toarray() > 0
    return _choose(part, X, truth[:, seen], truth.sum(axis=1))


def _choose(part, X, truth, n_true):
    found = dict(USUAL)
    if part.predict_mode == "sets":
        found["temperature"] = _best_temperature(part, X, truth)
        return found
    scores = part._log_scores(X)
    relative = scores - scores.max(axis=1, keepdims=True)
    found["threshold"] = best_threshold(relative, truth, n_true)
    if part.predict_mode == "weights":
        found["label_curve"] = rising_curve(log_odds(scores).ravel(), truth.ravel())
    return found


def best_threshold(relative, truth, n_true):
    """Return the threshold of scores, relative to each document's best, with the best mean F.

    One that tells no answers apart is the usual one.
    """
    values = relative[truth & (relative < 0)]
    if not values.size:
        return USUAL["threshold"]
    best, top = 0.0, -1.0
    values = values[np.isfinite(values)]
    tried = np.quantile(values, np.linspace(0, 1, N_THRESHOLDS)) if values.size else []
    for threshold in np.unique([*tried, 0.0]):  # 0: the best label alone
        given = relative >= threshold
        f = (2 * (given & truth).sum(axis=1) / (given.sum(axis=1) + n_true)).mean()
        if f > top:
            best, top = float(threshold), f
    return best


def _best_temperature(part, X, truth):
    """Return the temperature whose most probable sets have the best F, the lowest of several."""
    best, top = 1.0, -1.0
    for temperature in TEMPERATURES:
        part.chosen_["temperature"] = temperature
        f = samples_f1(truth.astype(int), part.choose(X)[:, part._columns].toarray())
        if f > top:
            best, top = temperature, f
    return best
