"""Settings chosen on documents that are held out of those to learn from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from polytopic.experiments.methods import Deciding, Method
from polytopic.experiments.parts import Part
from polytopic.metrics import samples_f1

HELD_OUT = 0.25
FEW = 1000  # documents below which every quarter is held out in its turn
MOST = 12  # settings that are tried one after another
THRESHOLDS = 40  # thresholds that are tried on the scores of one fit
LEAST, GREATEST = 0.25, 4.0  # labels that pass them, in parts of those that are true

Quality = Callable[[Mapping[str, Any]], tuple[float, dict[str, Any]]]


def chosen_settings(method: Method, train: Part, seed: int, trials: int | None) -> dict[str, Any]:
    """Return the settings with the best samples F1 on a held-out quarter, or on each of four.

    Every combination is tried if there are few; with ``trials``, Optuna searches as many. A
    threshold is chosen on the scores of each fit.
    """
    if not (method.space or method.decide) or train.X.shape[0] < 8:
        return dict(method.settings)
    pairs = _development(train, seed)
    Y = sparse.vstack([held_out.Y for _, held_out in pairs], format="csr")

    def quality(settings: Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
        answers = [method.fit(rest, settings, seed)(held_out) for rest, held_out in pairs]
        sets = sparse.vstack([answer.sets for answer in answers], format="csr")
        usual = samples_f1(Y, sets), dict(settings)
        if method.decide is None:
            return usual
        scores = np.vstack([np.asarray(answer.scores) for answer in answers])
        value, threshold = best_threshold(scores, Y, method.decide)
        return usual if usual[0] >= value else (value, {**settings, "threshold": threshold})

    if trials is not None and method.space:
        return _searched(method, quality, seed, trials)
    tried = [quality(settings) for settings in _grid(method)]
    return max(tried, key=lambda pair: pair[0])[1]


def best_threshold(scores: np.ndarray, Y, decide: Deciding) -> tuple[float, float]:
    """Return the best samples F1, and the threshold that gives it.

    The thresholds tried let pass from a quarter of as many labels as are true to four times as
    many, so that they suit scores on any scale.
    """
    ranked = np.sort(scores[np.isfinite(scores)])[::-1]
    if ranked.size < 2:
        return -np.inf, 0.0
    wanted = np.geomspace(LEAST, GREATEST, THRESHOLDS) * Y.sum()
    places = np.unique(np.clip(np.rint(wanted).astype(int), 1, ranked.size - 1))
    between = [float(ranked[place - 1] + ranked[place]) / 2 for place in places]
    tried = [(samples_f1(Y, decide(scores, value)), value) for value in between]
    return max(tried, key=lambda pair: pair[0])


def _development(train: Part, seed: int) -> list[tuple[Part, Part]]:
    """Return what is learned and what is held out: a quarter, or each of them in turn."""
    order = np.random.default_rng(seed).permutation(train.X.shape[0])
    cut = max(1, int(HELD_OUT * order.size))
    turns = order.size // cut if order.size < FEW else 1
    starts = range(0, turns * cut, cut)
    return [
        (
            train.rows(np.concatenate([order[:start], order[start + cut :]])),
            train.rows(order[start : start + cut]),
        )
        for start in starts
    ]


def _grid(method: Method) -> Iterator[dict[str, Any]]:
    """Yield combinations, all if they are few, else one setting changed at a time."""
    usual = dict(method.settings)
    combinations = [
        usual | dict(zip(method.space, values, strict=True))
        for values in product(*method.space.values())
    ]
    if len(combinations) <= MOST:
        yield from combinations
        return
    yield usual
    for name, values in method.space.items():
        yield from (usual | {name: value} for value in values[1:])


def _searched(method: Method, quality: Quality, seed: int, trials: int) -> dict[str, Any]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))

    def objective(trial) -> float:
        suggested = {name: _suggest(trial, name, values) for name, values in method.space.items()}
        value, settings = quality(dict(method.settings) | suggested)
        trial.set_user_attr("settings", settings)
        return value

    study.optimize(objective, n_trials=trials)
    return study.best_trial.user_attrs["settings"]


def _suggest(trial, name: str, values: tuple) -> Any:
    """Return what a trial tries: between the limits of numbers, on a logarithmic scale above 0."""
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(numbers) < len(values) or any(isinstance(value, bool) for value in values):
        return trial.suggest_categorical(name, values)
    low, high = min(numbers), max(numbers)
    if all(isinstance(value, int) for value in values):
        return trial.suggest_int(name, low, high)
    return trial.suggest_float(name, low, high, log=low > 0)
