"""What a method is: it learns from a part, and answers for another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from polytopic.experiments.parts import Part


class Answer(NamedTuple):
    """What a method answers for some documents.

    ``sets`` is an indicator (n_docs, n_labels); ``scores`` ranks labels and ``proba`` are
    probabilities of labels, both (n_docs, n_labels), None where it has none.
    """

    sets: Any
    scores: np.ndarray | None = None
    proba: np.ndarray | None = None


Answering = Callable[[Part], Answer]
Fitting = Callable[[Part, Mapping[str, Any], int], Answering]
Deciding = Callable[[np.ndarray, float], Any]


@dataclass(frozen=True)
class Method:
    """A way to label documents.

    Attributes
    ----------
    name : str
        What it is called in commands.
    title : str
        What it is called in tables.
    fit : callable
        Takes a part, settings and a seed; returns what answers.
    settings : dict
        What it is set to where nothing is tuned.
    space : dict
        What may be tuned: each setting with its values, the usual one first; a search stays
        between the least and the greatest of numbers.
    decide : callable or None
        Takes scores and a threshold, and returns an indicator. Where a method has it, its setting
        ``threshold`` is chosen on the held-out scores of each fit, without fits of its own.
    package : str or None
        The module that it needs.
    lacks : callable or None
        Says what it needs besides and has not, None if there is nothing.
    ours : bool
        Whether it is polytopic's own.
    """

    name: str
    title: str
    fit: Fitting
    settings: Mapping[str, Any] = field(default_factory=dict)
    space: Mapping[str, tuple] = field(default_factory=dict)
    decide: Deciding | None = None
    package: str | None = None
    lacks: Callable[[], str | None] | None = None
    ours: bool = False

    @property
    def missing(self) -> str | None:
        """Why it cannot run, if it cannot."""
        if self.package is not None and find_spec(self.package) is None:
            return f"{self.package} is not installed: pip install 'polytopic[bench]'."
        return None if self.lacks is None else self.lacks()

    @property
    def asked(self) -> str:
        """What it is set to and what is tuned, as text."""
        space = {name: tuple(values) for name, values in self.space.items()}
        return repr((sorted(self.settings.items()), sorted(space.items()), self.decide is not None))
