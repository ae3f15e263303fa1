"""Reading texts and their labels, and counting them block by block."""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np

from polytopic.corpus.document import Document
from polytopic.counts import DocumentRows, LabelSetCounts, RowCollector
from polytopic.errors import LabelWarning
from polytopic.labels import LabelSpace, LabelTree, Targets, read_targets
from polytopic.text import Analyzer

BLOCK = 8192  # documents counted at once


class LabelLists(list):
    """A list of lists of labels, which NumPy converts to one object per text."""

    def __array__(self, dtype=None, copy=None):
        array = np.empty(len(self), dtype=object)
        array[:] = list(self)  # a plain list, to avoid recursion
        return array


def check_iterable(texts):
    """Return the texts; raise if they are a single text."""
    is_table = hasattr(texts, "columns")  # of pandas or another library: iterating gives columns
    if isinstance(texts, str | bytes | Mapping | Document) or is_table:
        raise ValueError(f"texts is one {type(texts).__name__}, must be a list of texts.")
    return texts


def read_labels(labels, n_texts: int) -> Targets:
    """Return the labels of texts; raise if they are not names."""
    targets = read_targets(labels)
    if not all(isinstance(label, str) for label in targets.labels):
        raise ValueError(
            "labels must be names: one collection of strings, or one string, per text."
        )
    if targets.Y.shape[0] != n_texts:
        raise ValueError(f"there are {n_texts} texts, but labels for {targets.Y.shape[0]}.")
    return targets


class LabelReader:
    """Reads the labels of texts, and replaces names that a tree knows by their ids.

    Parameters
    ----------
    tree : LabelTree or None
        The tree of labels.
    labels : sequence of str
        Labels, sorted, that are never replaced.
    renamed : mapping of str to str, default=None
        Names that were replaced elsewhere, such as on a cluster, and their ids.

    Attributes
    ----------
    renamed : dict of str to str
        The names replaced so far, and their ids.
    """

    def __init__(
        self,
        tree: LabelTree | None,
        labels: Sequence[str] | np.ndarray = (),
        *,
        renamed: Mapping[str, str] | None = None,
    ):
        self.tree, self.labels = tree, labels
        self.renamed: dict[str, str] = dict(renamed or {})

    def read(self, labels, n_texts: int) -> Targets:
        """Return the labels of texts."""
        targets = read_labels(labels, n_texts)
        if self.tree is None:
            return targets
        ids = {label: self.resolve(label) for label in targets.labels}
        renamed = {label: id for label, id in ids.items() if id != label}
        self.renamed |= renamed
        return targets.rename(ids) if renamed else targets

    def resolve(self, label: str) -> str:
        """Return the id of a label: itself, unless it is a name that the tree knows."""
        id = None if self.tree is None else self.tree.find(label)
        place = bisect_left(self.labels, label)
        is_label = place < len(self.labels) and self.labels[place] == label
        return label if id is None or is_label else id

    def branch(self, space: LabelSpace, label: str) -> list[int]:
        """Return the columns of a label and of all labels below it in the tree."""
        label = self.resolve(label)
        if self.tree is None or label not in self.tree:
            return [space.index(label)]
        nodes = (label, *self.tree.descendants(label))
        columns = [space.index(node) for node in nodes if node in space]
        if not columns:
            raise ValueError(f"label {label!r} is in the tree, but no label below it was learned.")
        return columns

    def warn(self, learned: Sequence[str]) -> None:
        """Warn of names that were replaced by ids, and of labels that are not in the tree."""
        if self.tree is None:
            return
        outside = [label for label in learned if label not in self.tree]
        sentences = []
        if self.renamed:
            name = min(self.renamed)
            sentences.append(
                f"{len(self.renamed):,} labels are names in the tree and were replaced by their "
                f"ids, such as {name!r} by {self.renamed[name]!r}."
            )
        if outside:
            sentences.append(
                f"{len(outside):,} of {len(learned):,} labels are not in the tree, such as "
                f"{outside[0]!r}; they are treated as roots."
            )
        for sentence in sentences:
            warnings.warn(sentence, LabelWarning, stacklevel=3)


def read_names(parameter: str, labels) -> list[str]:
    """Return the labels that a parameter names, in their order; raise if they are one string."""
    if isinstance(labels, str):
        raise ValueError(f"{parameter} == {labels!r} is one string, must be a list of labels.")
    return list(labels)


def allowed_labels(space: LabelSpace, reader: LabelReader, include, exclude) -> np.ndarray:
    """Return which labels are allowed: those included, or all, without those excluded.

    A label includes all labels below it in the tree.
    """
    allowed = np.full(len(space), include is None)
    for label in read_names("include", include or ()):
        allowed[reader.branch(space, label)] = True
    for label in read_names("exclude", exclude or ()):
        allowed[reader.branch(space, label)] = False
    if not allowed.any():
        raise ValueError("include and exclude leave no label.")
    return allowed


def count_texts(texts, labels, analyzer, fields, sample=None, *, reader=None) -> LabelSetCounts:
    """Count texts, documents from an iterator block by block, and add them to a sample."""
    counts = LabelSetCounts()
    for block, targets in _blocks(texts, labels, reader):
        if sample is not None:
            sample.add(block, LabelSpace(targets.labels).decode(targets.Y))
        X, terms = analyzer.count(block, fields)
        block_counts = LabelSetCounts.from_matrix(X, targets, terms=terms)
        counts = counts + block_counts if counts.set_docs.size else block_counts
    return counts


def collect_rows(
    texts,
    labels,
    analyzer: Analyzer,
    fields,
    *,
    reader=None,
    kept: list | None = None,
    titles: list[str] | None = None,
) -> DocumentRows:
    """Return texts as rows of counts; documents from an iterator are read block by block.

    The texts of the rows are appended to ``kept``, and their titles to ``titles``, if given.
    """
    rows = RowCollector()
    for block, targets in _blocks(texts, labels, reader):
        rows.add(*analyzer.count(block, fields), targets)
        has_label = targets.Y.getnnz(axis=1) > 0
        used = [text for text, is_used in zip(block, has_label, strict=True) if is_used]
        if kept is not None:
            kept += used
        if titles is not None:
            titles += map(title_of, used)
    return rows.rows()


def title_of(text) -> str:
    """Return the first line of a string that has more than one; "" for any other text."""
    content = getattr(text, "content", text)
    if not isinstance(content, str):
        return ""
    title, _, rest = content.partition("\n")
    return title if rest.strip() else ""


def _blocks(texts, labels, reader):
    """Yield texts with their targets: all at once, or documents with labels in blocks."""
    reader = reader or LabelReader(None)
    if labels is not None:
        texts = list(check_iterable(texts))
        yield texts, reader.read(labels, len(texts))
        return
    documents = iter(check_iterable(texts))
    while block := list(islice(documents, BLOCK)):
        if not all(isinstance(document, Document) for document in block):
            raise ValueError("requires labels to be passed, but the target y is None.")
        yield block, reader.read([document.labels for document in block], len(block))
