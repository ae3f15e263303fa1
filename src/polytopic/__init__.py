"""Label texts with several topics at once, and explain why.

>>> import polytopic
>>> documents = polytopic.corpus.load_sample()
>>> labeler = polytopic.Labeler().fit([d.text for d in documents], [d.labels for d in documents])
>>> labeler.predict(["The striker scored twice in the final match of the league."])
[['sport/football']]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polytopic import (
        corpus,
        counts,
        decision,
        errors,
        explain,
        labels,
        metrics,
        models,
        store,
        text,
    )
    from polytopic.corpus import Document
    from polytopic.counts import LabelSetCounts
    from polytopic.errors import PolytopicError
    from polytopic.labeler import Labeler, load
    from polytopic.labels import LabelSpace, LabelTree
    from polytopic.models import (
        MML,
        PDMM,
        PMM1,
        PMM2,
        BoosTexter,
        CandidateStack,
        CoL,
        LinearSVM,
        NaiveBayes,
        NearestNeighbours,
        RandomForest,
        ShortlistSVM,
        Stack,
    )
    from polytopic.store import Store
    from polytopic.text import Analyzer, TextCounts

__version__ = "0.1.0"

__all__ = [
    "MML",
    "PDMM",
    "PMM1",
    "PMM2",
    "Analyzer",
    "BoosTexter",
    "CandidateStack",
    "CoL",
    "Document",
    "LabelSetCounts",
    "LabelSpace",
    "LabelTree",
    "Labeler",
    "LinearSVM",
    "NaiveBayes",
    "NearestNeighbours",
    "PolytopicError",
    "RandomForest",
    "ShortlistSVM",
    "Stack",
    "Store",
    "TextCounts",
    "__version__",
    "corpus",
    "counts",
    "decision",
    "errors",
    "explain",
    "labels",
    "load",
    "metrics",
    "models",
    "store",
    "text",
]

# Where each name comes from. Modules are imported on first use, so that programs start fast.
_MODULES = {
    **dict.fromkeys(["Labeler", "load"], "labeler"),
    **dict.fromkeys(["MML", "PDMM", "PMM1", "PMM2", "BoosTexter", "CoL", "NaiveBayes"], "models"),
    **dict.fromkeys(["LinearSVM", "NearestNeighbours", "RandomForest", "Stack"], "models"),
    **dict.fromkeys(["CandidateStack", "ShortlistSVM"], "models"),
    **dict.fromkeys(["LabelSpace", "LabelTree"], "labels"),
    **dict.fromkeys(["Analyzer", "TextCounts"], "text"),
    "Document": "corpus",
    "LabelSetCounts": "counts",
    "PolytopicError": "errors",
    "Store": "store",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'polytopic' has no attribute {name!r}")
    from polytopic.interrupts import hold_interrupts

    with hold_interrupts():  # a part of numba that was interrupted cannot be imported again
        module = import_module(f"polytopic.{_MODULES.get(name, name)}")
    return getattr(module, name) if name in _MODULES else module


def __dir__() -> list[str]:
    return __all__
