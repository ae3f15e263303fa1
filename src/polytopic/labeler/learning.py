"""Reading texts and labels, counting them block by block, and choosing a model to fit."""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from heapq import heappush, heappushpop
from itertools import count, islice

import numpy as np
from sklearn.base import clone

from polytopic.corpus.document import Document
from polytopic.counts import LabelSetCounts
from polytopic.errors import LabelWarning, PolytopicError
from polytopic.labeler.rows import DocumentRows, RowCollector
from polytopic.labels import LabelSpace, LabelTree, Targets, read_targets
from polytopic.models import Model
from polytopic.models.checks import require_counts
from polytopic.models.registry import create_model, model_names
from polytopic.text import Analyzer, Vocabulary, least_documents


class LabelLists(list):
    """A list of lists of labels, which NumPy converts to one object per text."""

    def __array__(self, dtype=None, copy=None):
        array = np.empty(len(self), dtype=object)
        array[:] = list(self)  # a plain list, to avoid recursion
        return array


def check_iterable(texts):
    """Return the texts; raise if they are a single text."""
    if isinstance(texts, str | bytes | Mapping | Document) or hasattr(texts, "columns"):
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
    known : sequence of str
        Labels, sorted, that are never replaced.

    Attributes
    ----------
    renamed : dict of str to str
        The names replaced so far, and their ids.
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
        """Return the id of a label: itself, unless it is a name that the tree knows."""
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
            raise ValueError(f"label {label!r} is in the tree, but no label below it was learned.")
        return under

    def warn(self, learned: Sequence[str]) -> None:
        """Warn of names that were replaced by ids, and of labels that are not in the tree."""
        if self.tree is None:
            return
        strange = [label for label in learned if label not in self.tree]
        sentences = []
        if self.renamed:
            name = min(self.renamed)
            sentences.append(
                f"{len(self.renamed):,} labels are names in the tree and were replaced by their "
                f"ids, such as {name!r} by {self.renamed[name]!r}."
            )
        if strange:
            sentences.append(
                f"{len(strange):,} of {len(learned):,} labels are not in the tree, such as "
                f"{strange[0]!r}; they are treated as roots."
            )
        for sentence in sentences:
            warnings.warn(sentence, LabelWarning, stacklevel=3)


def read_names(what: str, labels) -> set[str]:
    """Return label names; raise if they are one string."""
    if isinstance(labels, str):
        raise ValueError(f"{what} == {labels!r} is one string, must be a list of labels.")
    return set(labels)


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


BLOCK = 8192  # documents counted at once


class Sample:
    """A sample of a stream of labelled texts that depends on their content, not their order."""

    def __init__(self, size: int):
        self.size = size
        self._kept: list[tuple] = []  # a heap, largest hash first
        self._place = count()  # breaks ties, so that texts are never compared

    def add(self, texts, labels) -> None:
        """Keep the texts with the smallest hashes."""
        if not self.size:
            return
        for text, names in zip(texts, labels, strict=True):
            if names:
                content = text if isinstance(text, str) else getattr(text, "content", text)
                content = repr(content).encode("utf-8", "backslashreplace")
                mark = int.from_bytes(blake2b(content, digest_size=8).digest(), "big")
                self._keep(-mark, names, text)

    def _keep(self, mark, names, text) -> None:
        if len(self._kept) < self.size:
            heappush(self._kept, (mark, sorted(names), next(self._place), text))
        elif mark >= self._kept[0][0]:
            heappushpop(self._kept, (mark, sorted(names), next(self._place), text))

    def __add__(self, other: Sample) -> Sample:
        """Return the sample of both streams together, in any order."""
        both = Sample(self.size)
        for mark, names, _, text in [*self._kept, *other._kept]:
            both._keep(mark, names, text)
        return both

    def counted(self, analyzer, fields) -> Sample:
        """Return the sample with bags of words, which count the same, in place of texts."""
        X, terms = analyzer.count(self.texts, fields)
        counted = Sample(self.size)
        for row, (mark, names, *_) in enumerate(self._in_order()):
            own = slice(*X.indptr[row : row + 2])
            words = [terms[column] for column in X.indices[own].tolist()]
            counted._keep(mark, names, dict(zip(words, X.data[own].tolist(), strict=True)))
        return counted

    def _in_order(self) -> list[tuple]:
        """Return the sample in an order that does not depend on that of the stream."""
        return sorted(self._kept, key=lambda entry: entry[:2])

    @property
    def texts(self) -> list:
        """The texts of the sample."""
        return [text for *_, text in self._in_order()]

    @property
    def labels(self) -> list:
        """Their labels."""
        return [names for _, names, *_ in self._in_order()]


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


def collect_rows(texts, labels, analyzer: Analyzer, fields, *, reader=None) -> DocumentRows:
    """Return texts as rows of counts; documents from an iterator are read block by block."""
    rows = RowCollector()
    for block, targets in _blocks(texts, labels, reader):
        rows.add(*analyzer.count(block, fields), targets)
    return rows.rows()


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


def choose_vocabulary(counts: LabelSetCounts, min_df, max_terms) -> Vocabulary:
    """Return the terms of a table that a model uses."""
    if not counts.set_docs.size:
        raise ValueError("Y has no labelled document; at least one is needed.")
    min_df = least_documents(min_df, counts.n_docs)
    vocabulary = Vocabulary.from_frequencies(
        counts.terms, counts.document_frequency, min_df=min_df, max_size=max_terms
    )
    if not len(vocabulary):
        raise ValueError(
            f"no term occurs in min_df == {min_df} of the {counts.n_docs} labelled documents."
        )
    return vocabulary


def vocabulary_view(counts: LabelSetCounts, vocabulary: Vocabulary) -> LabelSetCounts:
    """Return the part of a table that has the terms of a vocabulary."""
    kept = np.flatnonzero(vocabulary.columns(counts.terms) >= 0)
    return counts.select(kept, vocabulary.terms)


def new_model(model, rule, tree):
    """Return an unfitted model, by name or as a clone; raise if the rule cannot work with it."""
    model = create_model(model) if isinstance(model, str) else _cloned_model(model)
    if rule is not None and rule.needs_reference and not model.has_world_score:
        raise ValueError(
            f"the rule {type(rule).__name__} needs a model of the whole corpus, which "
            f"{type(model).__name__} does not have; use NaiveBayes or another rule."
        )
    if rule is not None and rule.needs_tree and rule.tree is None and tree is None:
        raise ValueError(
            f"the rule {type(rule).__name__} needs the tree of labels; use Labeler(tree=...)."
        )
    return model


def _cloned_model(model):
    if not isinstance(model, Model):
        raise TypeError(
            f"model is a {type(model).__name__}, must be one of {', '.join(model_names())} "
            "or an instance of such a model."
        )
    return clone(model)


def require_documents(state) -> DocumentRows:
    """Return the rows that a labeler has kept; raise if there are none."""
    if state.documents is None:
        require_counts(state.counts)
        raise PolytopicError(
            f"{type(state.model).__name__} learns from whole documents, which this labeler has "
            "not kept, so it cannot learn or forget. Fit it with keep_documents=True "
            "(--keep-documents)."
        )
    return state.documents


def check_warm_start(model: Model) -> Model:
    """Return a model that a warm start can begin from; raise if it cannot."""
    if not model.can_warm_start:
        raise ValueError(f"warm == True is not for {type(model).__name__}; leave it out.")
    if not model.can_continue:
        raise PolytopicError(
            "a model that was loaded from a file cannot be continued; learn or forget once "
            "without warm=True."
        )
    return model


def require_some(n_docs: float) -> None:
    """Raise if nothing would be left to learn from."""
    if not n_docs:
        raise ValueError("no document would be left to learn from; nothing was forgotten.")
