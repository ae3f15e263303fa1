"""The models; a class is loaded when it is first used.

``base`` says what every model does, and ``registry`` lists the models by name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polytopic.models.base import CountModel, DocumentModel, LabelSetClassifier, Model
    from polytopic.models.boostexter import BoosTexter, WordRule
    from polytopic.models.col import CoL
    from polytopic.models.label_sets import LabelSets
    from polytopic.models.mixture import PDMM, PMM1, PMM2, SetPrior
    from polytopic.models.mml import MML
    from polytopic.models.naive_bayes import NaiveBayes
    from polytopic.models.words import ScoreBreakdown, WordLabels, WordScores

_HOMES = {
    "BoosTexter": "boostexter",
    "CoL": "col",
    "CountModel": "base",
    "DocumentModel": "base",
    "LabelSetClassifier": "base",
    "LabelSets": "label_sets",
    "MML": "mml",
    "Model": "base",
    "NaiveBayes": "naive_bayes",
    "PDMM": "mixture",
    "PMM1": "mixture",
    "PMM2": "mixture",
    "ScoreBreakdown": "words",
    "SetPrior": "mixture",
    "WordLabels": "words",
    "WordRule": "boostexter",
    "WordScores": "words",
}

__all__ = [
    "MML",
    "PDMM",
    "PMM1",
    "PMM2",
    "BoosTexter",
    "CoL",
    "CountModel",
    "DocumentModel",
    "LabelSetClassifier",
    "LabelSets",
    "Model",
    "NaiveBayes",
    "ScoreBreakdown",
    "SetPrior",
    "WordLabels",
    "WordRule",
    "WordScores",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
