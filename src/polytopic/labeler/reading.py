"""Reads what a labeler is given: texts, labels, and names of labels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from polytopic.corpus.document import Document
from polytopic.labels import LabelSpace, Targets, read_targets


class LabelLists(list):
    """A list of lists of labels that NumPy sees as one object a text, whatever their lengths."""

    def __array__(self, dtype=None, copy=None):
        array = np.empty(len(self), dtype=object)
        array[:] = list(self)  # a plain list, which does not come back here
        return array


def check_iterable(texts):
    """Return the texts, which must not be one text."""
    if isinstance(texts, str | bytes | Mapping | Document) or hasattr(texts, "columns"):
        raise ValueError(f"texts is one {type(texts).__name__}, must be a list of texts.")
    return texts


def read_labels(labels, n_texts: int) -> Targets:
    """Return the labels of texts, which must be names."""
    targets = read_targets(labels)
    if not all(isinstance(label, str) for label in targets.labels):
        raise ValueError("labels must be names: one collection of strings a text, or one string.")
    if targets.Y.shape[0] != n_texts:
        raise ValueError(
            f"there are {n_texts} texts and labels for {targets.Y.shape[0]}; they must be as many."
        )
    return targets


def read_names(what: str, labels) -> set[str]:
    """Return label names, which must not be one string."""
    if isinstance(labels, str):
        raise ValueError(f"{what} == {labels!r} is one string, must be a list of labels.")
    return set(labels)


def allowed_labels(space: LabelSpace, include, exclude) -> np.ndarray:
    """Return which labels are allowed: those included, or all, but none that are excluded."""
    allowed = np.full(len(space), include is None)
    allowed[[space.index(label) for label in read_names("include", include or ())]] = True
    allowed[[space.index(label) for label in read_names("exclude", exclude or ())]] = False
    if not allowed.any():
        raise ValueError("include and exclude leave no label.")
    return allowed
