"""The models, one file a family, each reading like its paper; each is loaded when it is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polytopic.models.base import CountModel
    from polytopic.models.boostexter import BoosTexter, WordRule
    from polytopic.models.classifier import LabelSetClassifier
    from polytopic.models.col import CoL
    from polytopic.models.documents import DocumentModel
    from polytopic.models.label_sets import LabelSets
    from polytopic.models.mml import MML
    from polytopic.models.naive_bayes import NaiveBayes
    from polytopic.models.pdmm import PDMM
    from polytopic.models.pmm import PMM1, PMM2
    from polytopic.models.prior import SetPrior
    from polytopic.models.words import Account, WordLabels

# Where each name comes from. Modules are imported on first use, so that programs start fast.
_MODULES = {
    "MML": "mml",
    "NaiveBayes": "naive_bayes",
    "PMM1": "pmm",
    "PMM2": "pmm",
    "PDMM": "pdmm",
    "CoL": "col",
    "BoosTexter": "boostexter",
    "Account": "words",
    "CountModel": "base",
    "DocumentModel": "documents",
    "LabelSetClassifier": "classifier",
    "LabelSets": "label_sets",
    "SetPrior": "prior",
    "WordLabels": "words",
    "WordRule": "boostexter",
}
_NAMED = {
    "mml": "MML",
    "nb": "NaiveBayes",
    "pmm1": "PMM1",
    "pmm2": "PMM2",
    "pdmm": "PDMM",
    "col": "CoL",
    "boostexter": "BoosTexter",
}


class _Models(Mapping[str, Any]):
    """The models by the names that commands and files know them by."""

    def __getitem__(self, name: str) -> Any:
        model = _NAMED[name]
        return getattr(import_module(f"{__name__}.{_MODULES[model]}"), model)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMED)

    def __len__(self) -> int:
        return len(_NAMED)


MODELS = _Models()

__all__ = [
    "MML",
    "MODELS",
    "PDMM",
    "PMM1",
    "PMM2",
    "Account",
    "BoosTexter",
    "CoL",
    "CountModel",
    "DocumentModel",
    "LabelSetClassifier",
    "LabelSets",
    "NaiveBayes",
    "SetPrior",
    "WordLabels",
    "WordRule",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
