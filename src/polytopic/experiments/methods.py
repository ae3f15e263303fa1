"""What a method is: something that learns from one part of a corpus and labels another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from polytopic.experiments.parts import Part


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
        Takes a part, settings and a seed; returns a function from a part to a
        :class:`Prediction`.
    settings : dict
        Default settings.
    space : dict
        Values to try of each setting that is tuned, the default first; Optuna searches between the
        lowest and the highest number.
    decide : callable or None
        Takes scores and a threshold, and returns an indicator. If given, the setting ``threshold``
        is tuned on the held-out scores of each fit, without further fits.
    package : str or None
        Module that must be installed.
    find_missing : callable or None
        Returns what else is missing, or None if nothing is.
    ours : bool
        Whether it is one of polytopic's models.
    """

    name: str
    title: str
    fit: Fitter
    settings: Mapping[str, Any] = field(default_factory=dict)
    space: Mapping[str, tuple] = field(default_factory=dict)
    decide: Decider | None = None
    package: str | None = None
    find_missing: Callable[[], str | None] | None = None
    ours: bool = False

    @property
    def missing(self) -> str | None:
        """Why the method cannot run, or None."""
        if self.package is not None and find_spec(self.package) is None:
            install = "Install it with: pip install 'polytopic[bench]'"
            return f"{self.package} is not installed. {install}"
        return None if self.find_missing is None else self.find_missing()

    @property
    def signature(self) -> str:
        """The settings and what is tuned, as text."""
        space = {name: tuple(values) for name, values in self.space.items()}
        return repr((sorted(self.settings.items()), sorted(space.items()), self.decide is not None))
