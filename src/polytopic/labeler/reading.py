"""Reads what a labeler is given: texts, labels, and names of labels."""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Mapping, Sequence

import numpy as np

from polytopic.corpus.document import Document
from polytopic.errors import LabelWarning
from polytopic.labels import LabelSpace, LabelTree, Targets, read_targets


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


class LabelReader:
    """Reads the labels of texts; those that are names in a tree get their ids.

    Parameters
    ----------
    tree : LabelTree or None
        What knows labels by name.
    known : sequence of str
        Labels in sorted order that are taken as they are.

    Attributes
    ----------
    renamed : dict of str to str
        The names that were read so far, and their ids.
    """

    def __init__(self, tree: LabelTree | None, known: Sequence[str] = ()):
        self.tree, self.known = tree, known
        self.renamed: dict[str, str] = {}

    def read(self, labels, n_texts: int) -> Targets:
        """Return the labels of texts."""
        targets = read_labels(labels, n_texts)
        if self.tree is None:
            return targets
        ids = {label: self.resolve(label) for label in targets.labels}
        renamed = {label: other for label, other in ids.items() if other != label}
        self.renamed |= renamed
        return targets.renamed(ids) if renamed else targets

    def resolve(self, label: str) -> str:
        """Return the id of a label, which it is itself where no name is known to the tree."""
        found = None if self.tree is None else self.tree.find(label)
        place = bisect_left(self.known, label)
        known = place < len(self.known) and self.known[place] == label
        return label if found is None or known else found

    def branch(self, space: LabelSpace, label: str) -> list[int]:
        """Return the columns of a label and of all labels below it in the tree."""
        label = self.resolve(label)
        if self.tree is None or label not in self.tree:
            return [space.index(label)]
        nodes = (label, *self.tree.descendants(label))
        under = [space.index(node) for node in nodes if node in space]
        if not under:
            raise ValueError(f"label {label!r} is in the tree, but nothing was learned under it.")
        return under

    def warn(self, learned: Sequence[str]) -> None:
        """Tell of names that got ids, and of labels that are not in the tree."""
        if self.tree is None:
            return
        strange = [label for label in learned if label not in self.tree]
        sentences = []
        if self.renamed:
            name = min(self.renamed)
            sentences.append(
                f"{len(self.renamed):,} labels are names in the tree and are learned by their "
                f"ids, such as {name!r} by {self.renamed[name]!r}."
            )
        if strange:
            sentences.append(
                f"{len(strange):,} of {len(learned):,} labels are not in the tree, such as "
                f"{strange[0]!r}; they stand beside it, as roots."
            )
        for sentence in sentences:
            warnings.warn(sentence, LabelWarning, stacklevel=3)


def read_names(what: str, labels) -> set[str]:
    """Return label names, which must not be one string."""
    if isinstance(labels, str):
        raise ValueError(f"{what} == {labels!r} is one string, must be a list of labels.")
    return set(labels)


def allowed_labels(space: LabelSpace, reader: LabelReader, include, exclude) -> np.ndarray:
    """Return which labels are allowed: those included, or all, but none that are excluded.

    A label stands for all that are below it in the tree, too.
    """
    allowed = np.full(len(space), include is None)
    for label in read_names("include", include or ()):
        allowed[reader.branch(space, label)] = True
    for label in read_names("exclude", exclude or ()):
        allowed[reader.branch(space, label)] = False
    if not allowed.any():
        raise ValueError("include and exclude leave no label.")
    return allowed
