"""What a method is, and how its settings are tuned.

A method learns from one part of a corpus and labels another. Its functions are sent to other
processes, so they must be picklable: functions of a module, or partial calls of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from polytopic.experiments.protocols import Part
from polytopic.metrics import samples_f1
from polytopic.text.weights import TermWeights

HELD_OUT = 0.25
FEW_DOCS = 1000  # training documents below which each quarter is held out in turn
MAX_GRID = 12  # largest number of combinations that are all tried
N_THRESHOLDS = 40  # tried on the scores of each fit
MIN_LABELS, MAX_LABELS = 0.25, 4.0  # above a threshold, relative to the true ones


class Prediction(NamedTuple):
    """What a method predicts for some documents, arrays of shape (n_docs, n_labels).

    ``sets`` is an indicator, ``scores`` rank the labels and ``proba`` are their probabilities; None
    for a method without them.
    """

    sets: Any
    scores: np.ndarray | None = None
    proba: np.ndarray | None = None


Predictor = Callable[[Part], Prediction]
Fitter = Callable[[Part, Mapping[str, Any], int], Predictor]
Decider = Callable[[np.ndarray, float], Any]
Objective = Callable[[Mapping[str, Any]], tuple[float, dict[str, Any]]]


@dataclass(frozen=True)
class Method:
    """A way to label documents.

    Attributes
    ----------
    name : str
        Name on the command line.
    title : str
        Name in tables.
    fit : callable
        Learns from a part, given settings and a seed; returns a function from a part to its
        :class:`Prediction`.
    settings : dict
        Default settings.
    space : dict
        Values to try for each setting that is tuned, the default first; Optuna searches between the
        lowest and the highest number.
    decide : callable or None
        Turns scores and a threshold into an indicator. If given, the setting ``threshold`` is tuned
        on the held-out scores of each fit, without further fits.
    package : str or None
        Module that must be installed.
    find_missing : callable or None
        Returns what else is missing, or None if nothing is.
    by_default : bool
        Whether it is compared if no methods are named.
    """

    name: str
    title: str
    fit: Fitter
    settings: Mapping[str, Any] = field(default_factory=dict)
    space: Mapping[str, tuple] = field(default_factory=dict)
    decide: Decider | None = None
    package: str | None = None
    find_missing: Callable[[], str | None] | None = None
    by_default: bool = False

    @property
    def missing(self) -> str | None:
        """Why the method cannot run, or None."""
        if self.package is not None and find_spec(self.package) is None:
            install = "Install it with: pip install 'polytopic[bench]'"
            return f"{self.package} is not installed. {install}"
        return None if self.find_missing is None else self.find_missing()

    @property
    def signature(self) -> str:
        """The settings, what is tuned and what ``fit`` is bound to, as text."""
        space = {name: tuple(values) for name, values in self.space.items()}
        bound = (self.fit.args, self.fit.keywords) if isinstance(self.fit, partial) else ()
        settings = sorted(self.settings.items()), sorted(space.items()), self.decide is not None
        return repr((*settings, bound))


# Parts of methods


def ltc_weights(train: Part) -> Callable[[Part], sparse.csr_matrix]:
    """Return a function from a part to its ltc weights."""
    weights = TermWeights("ltc").fit(train.X)
    return lambda part: weights.transform(part.X)


def is_trained(train: Part) -> np.ndarray:
    """Return which labels have a training document."""
    return np.asarray(train.Y.sum(axis=0)).ravel() > 0


def apply_threshold(
    scores: np.ndarray, threshold: float, *, best_if_none: bool
) -> sparse.csr_matrix:
    """Return the labels above a threshold; if asked, the best label where there is none."""
    sets = scores > threshold
    if best_if_none:
        empty = ~sets.any(axis=1)
        sets[empty, scores[empty].argmax(axis=1)] = True
    return sparse.csr_matrix(sets.astype(float))


def threshold_or_best(scores: np.ndarray, threshold: float) -> sparse.csr_matrix:
    """Return the labels above a threshold, or the best label where there is none."""
    return apply_threshold(scores, threshold, best_if_none=True)


def predict_by_scores(
    train: Part,
    compute_scores: Callable[[Part], Any],
    threshold: float,
    *,
    best_if_none: bool = True,
    is_proba: bool = False,
) -> Predictor:
    """Return a predictor by scores; labels without a training document are never predicted."""
    absent = ~is_trained(train)

    def predict(part: Part) -> Prediction:
        scores = np.array(compute_scores(part), dtype=float)
        proba = np.where(absent, 0.0, scores) if is_proba else None
        scores[:, absent] = -np.inf
        sets = apply_threshold(scores, threshold, best_if_none=best_if_none)
        return Prediction(sets, scores, proba)

    return predict


# Tuning on held-out training documents


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
    results = [objective(settings) for settings in _grid(method)]
    return max(results, key=lambda pair: pair[0])[1]


def best_threshold(scores: np.ndarray, Y, decide: Decider) -> tuple[float, float]:
    """Return the best samples F1, and the threshold that reaches it.

    The thresholds accept from a quarter of the number of true labels to four times as many, so
    they suit scores on any scale.
    """
    ranked = np.sort(scores[np.isfinite(scores)])[::-1]
    if ranked.size < 2:
        return -np.inf, 0.0
    n_labels = np.geomspace(MIN_LABELS, MAX_LABELS, N_THRESHOLDS) * Y.sum()
    places = np.unique(np.clip(np.rint(n_labels).astype(int), 1, ranked.size - 1))
    between = [float(ranked[place - 1] + ranked[place]) / 2 for place in places]
    results = [(samples_f1(Y, decide(scores, value)), value) for value in between]
    return max(results, key=lambda pair: pair[0])


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
