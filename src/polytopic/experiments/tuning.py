"""Settings chosen on documents that are held out of those to learn from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from polytopic.experiments.methods import Method
from polytopic.experiments.parts import Part
from polytopic.metrics import labeling_f

HELD_OUT = 0.25
MOST = 12  # settings that are tried one after another


def chosen_settings(method: Method, train: Part, seed: int, trials: int | None) -> dict[str, Any]:
    """Return the settings with the best labelling F on a held-out quarter.

    Every combination is tried if there are few; with ``trials``, Optuna searches as many.
    """
    if not method.space or train.X.shape[0] < 8:
        return dict(method.settings)
    rest, held_out = _development(train, seed)

    def quality(settings: Mapping[str, Any]) -> float:
        answer = method.fit(rest, settings, seed)(held_out)
        return labeling_f(held_out.Y, answer.sets)

    if trials is not None:
        return _searched(method, quality, seed, trials)
    tried = [dict(settings) for settings in _grid(method)]
    return max(tried, key=quality)


def _development(train: Part, seed: int) -> tuple[Part, Part]:
    order = np.random.default_rng(seed).permutation(train.X.shape[0])
    cut = max(1, int(HELD_OUT * order.size))
    return train.rows(order[cut:]), train.rows(order[:cut])


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


def _searched(method: Method, quality, seed: int, trials: int) -> dict[str, Any]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))

    def objective(trial) -> float:
        return quality(dict(method.settings) | _suggested(trial, method.space))

    study.optimize(objective, n_trials=trials)
    return dict(method.settings) | _suggested(study.best_trial, method.space, found=True)


def _suggested(trial, space: Mapping[str, tuple], *, found: bool = False) -> dict[str, Any]:
    """Return what a trial tries: between the limits of numbers, on a logarithmic scale above 0."""
    if found:
        return dict(trial.params)
    return {name: _suggest(trial, name, values) for name, values in space.items()}


def _suggest(trial, name: str, values: tuple) -> Any:
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(numbers) < len(values) or any(isinstance(value, bool) for value in values):
        return trial.suggest_categorical(name, values)
    low, high = min(numbers), max(numbers)
    if all(isinstance(value, int) for value in values):
        return trial.suggest_int(name, low, high)
    return trial.suggest_float(name, low, high, log=low > 0)
