"""polytopic labels texts with several topics at once, and says why.

>>> import polytopic
>>> documents = polytopic.corpus.load_sample()
>>> labeler = polytopic.Labeler().fit([d.text for d in documents], [d.labels for d in documents])
>>> labeler.predict(["The striker scored twice in the final match of the league."])
[['sport/football']]
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Each public name and the room it lives in; a room is loaded on first use of a name.
_ROOMS = {
    "Labeler": "labeler",
    "load": "labeler",
    "Store": "store",
    "NaiveBayes": "models",
    "MML": "models",
    "PMM1": "models",
    "PMM2": "models",
    "PDMM": "models",
    "CoL": "models",
    "BoosTexter": "models",
    "LabelSetCounts": "counts",
    "LabelSpace": "labels",
    "LabelTree": "labels",
    "Document": "corpus",
    "Analyzer": "text",
    "TextCounts": "text",
    "PolytopicError": "errors",
}
_MODULES = (
    "corpus",
    "counts",
    "decision",
    "errors",
    "explain",
    "labels",
    "metrics",
    "models",
    "store",
    "text",
)

__all__ = sorted([*_ROOMS, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"polytopic.{name}")
    if name in _ROOMS:
        return getattr(import_module(f"polytopic.{_ROOMS[name]}"), name)
    raise AttributeError(f"module 'polytopic' has no attribute {name!r}")


def __dir__():
    return __all__
