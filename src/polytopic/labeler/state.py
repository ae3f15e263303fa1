"""The fitted state of a labeler: one immutable object."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from polytopic.counts import DocumentRows, LabelSetCounts
from polytopic.labeler.features import Features
from polytopic.labeler.reading import check_iterable
from polytopic.labels import LabelSpace
from polytopic.models import Model
from polytopic.models.checks import require_counts
from polytopic.models.registry import DEFAULT_COUNT_MODEL, create_model
from polytopic.text import Analyzer, Vocabulary
from polytopic.text.detection import scripts_of
from polytopic.text.weights import TermWeights

MIN_TEXTS, MAX_TEXTS = 256, 8192  # in a block
MAX_SCORES = 1 << 20  # of texts × labels in a block, if it has more than MIN_TEXTS
TINY = np.finfo(np.float64).tiny


class FittedFrom(NamedTuple):
    """The documents of a store that a labeler was fitted on.

    Attributes
    ----------
    url : URL
        The address of the store.
    selection : Selection
        The documents.
    published : int or None
        The number of the published model, if the labeler was read from one.
    """

    url: Any
    selection: Any
    published: int | None = None


@dataclass(frozen=True, eq=False)
class LabelerState:
    """What a labeler has learned.

    Learning and forgetting create a new state, and each answer comes from a single state, so one
    thread may learn while others predict.

    Attributes
    ----------
    model : model
        The fitted model.
    analyzer : Analyzer
        Splits texts into terms.
    vocabulary : Vocabulary
        The terms that the model uses.
    table : LabelSetCounts or None
        Counts of all terms; None if unknown, or if they follow from the documents.
    documents : DocumentRows or None
        The documents, if they are kept.
    weights : TermWeights or None
        The weights of terms, for a model that reads weights.
    training : mapping of str to number
        The numbers of documents, label sets and terms, and the usual share of known words.
    fitted_from : FittedFrom or None
        The documents of a store that it was fitted on, None if they come from elsewhere.
    features : Features or None
        What the model reads beside the words.
    texts : tuple of pairs or None
        The texts with their labels, if they are kept, for a labeler with features.
    threshold : float or None
        The score from which on labels are predicted to keep a guarantee; None without one.
    """

    model: Model
    analyzer: Analyzer
    vocabulary: Vocabulary
    table: LabelSetCounts | None
    documents: DocumentRows | None
    weights: TermWeights | None
    training: Mapping[str, Any]
    fitted_from: FittedFrom | None = None
    features: Features | None = None
    threshold: float | None = None
    texts: tuple[tuple[Any, tuple[str, ...]], ...] | None = None

    @cached_property
    def counts(self) -> LabelSetCounts | None:
        """The table of counts, computed from the documents if only these are stored."""
        if self.table is None and self.documents is not None:
            return self.documents.table()
        return self.table

    @cached_property
    def space(self) -> LabelSpace:
        """The labels."""
        return LabelSpace(self.model.classes_.tolist())

    @cached_property
    def scripts(self) -> frozenset[str]:
        """The scripts of the vocabulary."""
        return scripts_of(self.vocabulary.terms)

    @cached_property
    def mixture(self):
        """A mixture model: the model itself, or one fitted on the same counts."""
        if self.model.has_mixture:
            return self.model
        counts = require_counts(self.counts, "no mixture can be fitted")
        return create_model(DEFAULT_COUNT_MODEL).fit_counts(
            vocabulary_view(counts, self.vocabulary)
        )

    def with_counts(self, counts: LabelSetCounts | None) -> LabelerState:
        """Return the state with another table of counts, or without one."""
        model = self.model
        if model.learns_from == "counts":
            model = copy(model)
            model.counts_ = None if counts is None else vocabulary_view(counts, self.vocabulary)
        return replace(self, model=model, table=counts)

    # What the model reads of texts

    def transform(self, texts, fields) -> sparse.csr_matrix:
        """Return what the model reads of texts: counts of known terms, or weights and features."""
        texts = check_iterable(texts)
        if self.features is not None:
            texts = list(texts)
        X = self.analyzer.count_known(texts, self.vocabulary, fields)
        return self._read(X, texts, fields)

    def transform_by_blocks(self, texts, fields) -> Iterator[sparse.csr_matrix]:
        """Yield what the model reads of a stream of texts, in blocks of limited size."""
        queue = deque[Any]()
        for X in self.analyzer.count_known_by_blocks(
            _queued(texts, queue), self.vocabulary, fields, max_texts=self._max_texts
        ):
            yield self._read(X, _take(queue, X.shape[0]), fields)

    def transform_with_shares(
        self, texts, fields
    ) -> Iterator[tuple[sparse.csr_matrix, np.ndarray, list]]:
        """Yield the same blocks, with the known share of the words of each text, and the texts."""
        queue = deque[Any]()
        for X, totals in self.analyzer.count_known_and_totals(
            _queued(texts, queue), self.vocabulary, fields, max_texts=self._max_texts
        ):
            block = _take(queue, X.shape[0])
            shares = known_shares(X, totals)  # before counts become weights
            yield self._read(X, block, fields), shares, block

    def transform_all_with_shares(self, texts, fields) -> tuple[sparse.csr_matrix, np.ndarray]:
        """Return what the model reads of texts, and the known shares of their words."""
        blocks = list(self.transform_with_shares(texts, fields))
        if not blocks:
            return self.transform([], fields), np.zeros(0)
        X, shares, _ = zip(*blocks, strict=True)
        return sparse.csr_matrix(sparse.vstack(X, format="csr")), np.concatenate(shares)

    @property
    def _max_texts(self) -> int:
        max_texts = max(MIN_TEXTS, MAX_SCORES // max(len(self.space), 1))
        return min(max_texts, MAX_TEXTS)

    def _read(self, X: sparse.csr_matrix, texts: Sequence, fields) -> sparse.csr_matrix:
        """Return what the model reads of counts and their texts."""
        if self.features is None:
            return self.weigh(X, copy=False)
        return self.features.beside(self._weights_of(X, copy=False), texts, fields)

    def weigh(self, X: sparse.csr_matrix, *, copy: bool = True) -> sparse.csr_matrix:
        """Return what the model reads of counts alone: themselves, or weights."""
        if self.features is not None:
            raise ValueError(
                "this labeler reads features of texts beside the words, and word counts alone do "
                "not have them; give it texts, or fit a labeler without features."
            )
        return self._weights_of(X, copy=copy)

    def _weights_of(self, X, *, copy):
        return X if self.weights is None else self.weights.transform(X, copy)


def _queued(texts, queue: deque) -> Iterator[Any]:
    """Yield texts; those that were read wait in the queue until their block has been counted."""
    for text in check_iterable(texts):
        queue.append(text)
        yield text


def _take(queue: deque, n: int) -> list:
    """Remove the next texts from a queue, and return them."""
    return [queue.popleft() for _ in range(n)]


def known_shares(X: sparse.csr_matrix, totals: np.ndarray) -> np.ndarray:
    """Return the share of texts' words that are in ``X``, 0 for a text without words.

    ``totals`` are the numbers of words of the texts.
    """
    rows = np.repeat(np.arange(totals.size), X.indptr[1:] - X.indptr[:-1])
    sums = np.bincount(rows, weights=X.data, minlength=totals.size)
    return np.minimum(sums / np.maximum(totals, TINY), 1.0)  # sums of fractions are rounded


def vocabulary_view(counts: LabelSetCounts, vocabulary: Vocabulary) -> LabelSetCounts:
    """Return the part of a table that has the terms of a vocabulary."""
    columns = np.flatnonzero(vocabulary.columns(counts.terms) >= 0)
    return counts.select(columns, vocabulary.terms)
