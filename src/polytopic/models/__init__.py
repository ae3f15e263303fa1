"""The models; a class is loaded when it is first used.

``base`` says what every model does, and ``registry`` lists the models by name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polytopic.models.base import DocumentModel, LabelSetClassifier, Model
    from polytopic.models.boostexter import BoosTexter, WordRule
    from polytopic.models.col import CoL
    from polytopic.models.count_model import CountModel
    from polytopic.models.forest import RandomForest
    from polytopic.models.large import CandidateStack, ShortlistSVM
    from polytopic.models.mixture import PDMM, PMM1, PMM2, SetPrior
    from polytopic.models.mml import MML
    from polytopic.models.naive_bayes import NaiveBayes
    from polytopic.models.neighbours import NearestNeighbours
    from polytopic.models.results import LabelSets, ScoreBreakdown, WordLabels, WordScores
    from polytopic.models.stack import Stack
    from polytopic.models.svm import LinearSVM

_MODULES = {
    "BoosTexter": "boostexter",
    "CandidateStack": "large",
    "CoL": "col",
    "CountModel": "count_model",
    "DocumentModel": "base",
    "LabelSetClassifier": "base",
    "LabelSets": "results",
    "LinearSVM": "svm",
    "MML": "mml",
    "Model": "base",
    "NaiveBayes": "naive_bayes",
    "NearestNeighbours": "neighbours",
    "PDMM": "mixture",
    "PMM1": "mixture",
    "PMM2": "mixture",
    "RandomForest": "forest",
    "ScoreBreakdown": "results",
    "SetPrior": "mixture",
    "ShortlistSVM": "large",
    "Stack": "stack",
    "WordLabels": "results",
    "WordRule": "boostexter",
    "WordScores": "results",
}

__all__ = [
    "MML",
    "PDMM",
    "PMM1",
    "PMM2",
    "BoosTexter",
    "CandidateStack",
    "CoL",
    "CountModel",
    "DocumentModel",
    "LabelSetClassifier",
    "LabelSets",
    "LinearSVM",
    "Model",
    "NaiveBayes",
    "NearestNeighbours",
    "RandomForest",
    "ScoreBreakdown",
    "SetPrior",
    "ShortlistSVM",
    "Stack",
    "WordLabels",
    "WordRule",
    "WordScores",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
