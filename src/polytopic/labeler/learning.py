"""How a labeler learns: texts counted block by block, a sample to choose by, and a model."""

from __future__ import annotations

from hashlib import blake2b
from heapq import heappush, heappushpop
from itertools import count, islice

import numpy as np
from sklearn.base import clone

from polytopic.corpus.document import Document
from polytopic.counts import LabelSetCounts
from polytopic.errors import PolytopicError
from polytopic.labeler.reading import LabelReader, check_iterable
from polytopic.labeler.rows import DocumentRows, RowCollector
from polytopic.labels import LabelSpace
from polytopic.models import Model
from polytopic.models.checks import require_counts
from polytopic.models.registry import create_model, model_names
from polytopic.text import Analyzer, Vocabulary, least_documents

BLOCK = 8192  # documents counted at once


class Sample:
    """Some of the labelled texts that pass by, picked by their contents, not by their order."""

    def __init__(self, size: int):
        self.size = size
        self._kept: list[tuple] = []  # a heap: the largest mark first
        self._place = count()  # so that texts are never compared

    def add(self, texts, labels) -> None:
        """Keep those with the smallest marks."""
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
        """Return the sample of what both have passed by, the same in any order."""
        both = Sample(self.size)
        for mark, names, _, text in [*self._kept, *other._kept]:
            both._keep(mark, names, text)
        return both

    def counted(self, analyzer, fields) -> Sample:
        """Return the sample with bags of words for texts, which count the same."""
        X, terms = analyzer.count(self.texts, fields)
        counted = Sample(self.size)
        for row, (mark, names, *_) in enumerate(self._in_order()):
            own = slice(*X.indptr[row : row + 2])
            words = [terms[column] for column in X.indices[own].tolist()]
            counted._keep(mark, names, dict(zip(words, X.data[own].tolist(), strict=True)))
        return counted

    def _in_order(self) -> list[tuple]:
        """Return what was kept in an order that does not depend on how it came."""
        return sorted(self._kept, key=lambda entry: entry[:2])

    @property
    def texts(self) -> list:
        """The texts that were kept."""
        return [text for *_, text in self._in_order()]

    @property
    def labels(self) -> list:
        """Their labels."""
        return [names for _, names, *_ in self._in_order()]


def count_texts(texts, labels, analyzer, fields, sample=None, *, reader=None) -> LabelSetCounts:
    """Count texts, or documents from any iterator block by block; keep a sample of them."""
    counts = LabelSetCounts()
    for block, targets in _blocks(texts, labels, reader):
        if sample is not None:
            sample.add(block, LabelSpace(targets.labels).decode(targets.Y))
        X, terms = analyzer.count(block, fields)
        block_counts = LabelSetCounts.from_matrix(X, targets, terms=terms)
        counts = counts + block_counts if counts.set_docs.size else block_counts
    return counts


def collect_rows(texts, labels, analyzer: Analyzer, fields, *, reader=None) -> DocumentRows:
    """Return texts as rows of counts; documents from any iterator are read block by block."""
    rows = RowCollector()
    for block, targets in _blocks(texts, labels, reader):
        rows.add(*analyzer.count(block, fields), targets)
    return rows.rows()


def _blocks(texts, labels, reader):
    """Yield texts with their targets: all at once, or documents that carry their own by blocks."""
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
    """Return the terms of a table that a model is to see."""
    if not counts.set_docs.size:
        raise ValueError("Y has no labelled document; at least one is needed.")
    min_df = least_documents(min_df, counts.n_docs)
    vocabulary = Vocabulary.from_frequencies(
        counts.terms, counts.document_frequency, min_df=min_df, max_size=max_terms
    )
    if not len(vocabulary):
        raise ValueError(
            f"no term is in min_df == {min_df} of the {counts.n_docs} labelled documents."
        )
    return vocabulary


def vocabulary_view(counts: LabelSetCounts, vocabulary: Vocabulary) -> LabelSetCounts:
    """Return the table of a vocabulary's terms, which are all in the larger one."""
    kept = np.flatnonzero(vocabulary.columns(counts.terms) >= 0)
    return counts.select(kept, vocabulary.terms)


def new_model(model, rule, tree):
    """Return an unfitted model by its name, or like an instance, that the rule can work on."""
    model = create_model(model) if isinstance(model, str) else _cloned_model(model)
    if rule is not None and rule.needs_reference and not model.has_world_score:
        raise ValueError(
            f"the rule {type(rule).__name__} needs a general model, which "
            f"{type(model).__name__} has not; use model='nb' or another rule."
        )
    if rule is not None and rule.needs_tree and rule.tree is None and tree is None:
        raise ValueError(
            f"the rule {type(rule).__name__} needs the tree of labels; give it to the labeler: "
            "Labeler(tree=...)."
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
    """Return the rows that a labeler has kept, or say what is lacking without them."""
    if state.documents is None:
        require_counts(state.counts)
        raise PolytopicError(
            f"{type(state.model).__name__} learns from whole documents, which this labeler has "
            "not kept, so it cannot learn or forget; use keep_documents=True "
            "(--keep-documents) when it is fitted."
        )
    return state.documents


def check_warm_start(model: Model) -> Model:
    """Return a model that a warm start can begin from; raise if it cannot."""
    if not model.can_warm_start:
        raise ValueError(f"warm == True is not for {type(model).__name__}; leave it out.")
    if not model.can_continue:
        raise PolytopicError(
            "a model file holds no dual variables to go on from; learn or forget once without "
            "warm=True."
        )
    return model


def require_some(n_docs: float) -> None:
    """Refuse to forget everything."""
    if not n_docs:
        raise ValueError("no document would be left to learn from; nothing was forgotten.")
