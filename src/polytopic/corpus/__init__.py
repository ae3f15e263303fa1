"""Documents: read, write and split them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from polytopic.corpus.document import Document
from polytopic.corpus.readers import load_sample, read_documents
from polytopic.corpus.writers import write_documents

if TYPE_CHECKING:
    from polytopic.corpus.splits import folds, random_split, stratified_split, time_split

__all__ = [
    "Document",
    "folds",
    "load_sample",
    "random_split",
    "read_documents",
    "stratified_split",
    "time_split",
    "write_documents",
]
_SPLITS = {"folds", "random_split", "stratified_split", "time_split"}  # they need NumPy


def __getattr__(name: str) -> Any:
    """Import a function that splits corpora on first use."""
    if name in _SPLITS:
        return getattr(import_module("polytopic.corpus.splits"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
