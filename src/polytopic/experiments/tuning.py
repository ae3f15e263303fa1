"""Choose the settings of methods on held-out training documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from polytopic.experiments.methods import Decider, Method
from polytopic.experiments.protocols import Part
from polytopic.metrics import samples_f1

HELD_OUT = 0.25
FEW_DOCS = 1000  # training documents below which each quarter is held out in turn
MAX_GRID = 12  # largest number of combinations that are all tried
N_THRESHOLDS = 40  # tried on the scores of each fit
FEWEST_LABELS, MOST_LABELS = 0.25, 4.0  # above a threshold, relative to the true ones

Objective = Callable[[Mapping[str, Any]], tuple[float, dict[str, Any]]]


def tune_settings(method: Method, train: Part, seed: int, trials: int | None) -> dict[str, Any]:
    """Return the settings with the best samples F1 on a held-out quarter, or on each of four.

    If there are few combinations, all are tried; with ``trials``, Optuna tries that many. The
    threshold is chosen on the scores of each fit.
    """
    if not (method.space or method.decide) or train.X.shape[0] < 8:
        return dict(method.settings)
    pairs = _hold_out(train, seed)
    Y = sparse.vstack([held_out.Y for _, held_out in pairs], format="csr")

    def objective(settings: Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
        predictions = [method.fit(rest, settings, seed)(held_out) for rest, held_out in pairs]
        sets = sparse.vstack([prediction.sets for prediction in predictions], format="csr")
        plain = samples_f1(Y, sets), dict(settings)
        if method.decide is None:
            return plain
        scores = np.vstack([np.asarray(prediction.scores) for prediction in predictions])
        value, threshold = best_threshold(scores, Y, method.decide)
        return plain if plain[0] >= value else (value, {**settings, "threshold": threshold})

    if trials is not None and method.space:
        return _search(method, objective, seed, trials)
    tried = [objective(settings) for settings in _grid(method)]
    return max(tried, key=lambda pair: pair[0])[1]


def best_threshold(scores: np.ndarray, Y, decide: Decider) -> tuple[float, float]:
    """Return the best samples F1, and the threshold that reaches it.

    The thresholds accept from a quarter of the number of true labels to four times as many, so
    they suit scores on any scale.
    """
    ranked = np.sort(scores[np.isfinite(scores)])[::-1]
    if ranked.size < 2:
        return -np.inf, 0.0
    n_labels = np.geomspace(FEWEST_LABELS, MOST_LABELS, N_THRESHOLDS) * Y.sum()
    places = np.unique(np.clip(np.rint(n_labels).astype(int), 1, ranked.size - 1))
    between = [float(ranked[place - 1] + ranked[place]) / 2 for place in places]
    tried = [(samples_f1(Y, decide(scores, value)), value) for value in between]
    return max(tried, key=lambda pair: pair[0])


def _hold_out(train: Part, seed: int) -> list[tuple[Part, Part]]:
    """Return the rest and a held-out quarter, or each of four in turn."""
    order = np.random.default_rng(seed).permutation(train.X.shape[0])
    cut = max(1, int(HELD_OUT * order.size))
    turns = order.size // cut if order.size < FEW_DOCS else 1
    starts = range(0, turns * cut, cut)
    return [
        (
            train.take(np.concatenate([order[:start], order[start + cut :]])),
            train.take(order[start : start + cut]),
        )
        for start in starts
    ]


def _grid(method: Method) -> Iterator[dict[str, Any]]:
    """Yield all combinations of settings if there are few, else changes of one setting each."""
    default = dict(method.settings)
    combinations = [
        default | dict(zip(method.space, values, strict=True))
        for values in product(*method.space.values())
    ]
    if len(combinations) <= MAX_GRID:
        yield from combinations
        return
    yield default
    for name, values in method.space.items():
        yield from (default | {name: value} for value in values[1:])


def _search(method: Method, objective: Objective, seed: int, trials: int) -> dict[str, Any]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))

    def try_settings(trial) -> float:
        suggested = {name: _suggest(trial, name, values) for name, values in method.space.items()}
        value, settings = objective(dict(method.settings) | suggested)
        trial.set_user_attr("settings", settings)
        return value

    study.optimize(try_settings, n_trials=trials)
    return study.best_trial.user_attrs["settings"]


def _suggest(trial, name: str, values: tuple) -> Any:
    """Suggest a value: for numbers between their limits, on a logarithmic scale if above 0."""
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(numbers) < len(values) or any(isinstance(value, bool) for value in values):
        return trial.suggest_categorical(name, values)
    low, high = min(numbers), max(numbers)
    if all(isinstance(value, int) for value in values):
        return trial.suggest_int(name, low, high)
    return trial.suggest_float(name, low, high, log=low > 0)
