"""What a method is: something that learns from one part of a corpus and labels another.

A method's functions are sent to other processes, so they must be picklable: functions of a module,
or partial calls of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from polytopic.experiments.protocols import Part
from polytopic.text.weights import TermWeights


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
