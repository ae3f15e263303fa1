"""How a labeler learns: texts counted block by block, a sample to choose by, and a model."""

from __future__ import annotations

from hashlib import blake2b
from heapq import heappush, heappushpop
from itertools import count, islice

import numpy as np
from sklearn.base import clone

from polytopic.corpus.document import Document
from polytopic.counts import LabelSetCounts
from polytopic.labeler.reading import check_iterable, read_labels
from polytopic.labels import LabelSpace, read_targets
from polytopic.models import MODELS, CountModel
from polytopic.text import Vocabulary

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
                content = repr(getattr(text, "content", text)).encode("utf-8", "backslashreplace")
                mark = int.from_bytes(blake2b(content, digest_size=8).digest(), "big")
                entry = (-mark, sorted(names), next(self._place), text)
                if len(self._kept) < self.size:
                    heappush(self._kept, entry)
                else:
                    heappushpop(self._kept, entry)

    @property
    def texts(self) -> list:
        """The texts that were kept."""
        return [text for *_, text in self._kept]

    @property
    def labels(self) -> list:
        """Their labels."""
        return [names for _, names, *_ in self._kept]


def count_texts(texts, labels, analyzer, fields, sample=None) -> LabelSetCounts:
    """Count texts, or documents from any iterator block by block; keep a sample of them."""
    sample = Sample(0) if sample is None else sample
    if labels is not None:
        texts = list(check_iterable(texts))
        targets = read_labels(labels, len(texts))
        sample.add(texts, LabelSpace(targets.labels).decode(targets.Y))
        return _count_block(texts, targets, analyzer, fields)
    counts, documents = LabelSetCounts(), iter(check_iterable(texts))
    while block := list(islice(documents, BLOCK)):
        if not all(isinstance(document, Document) for document in block):
            raise ValueError("requires labels to be passed, but the target y is None.")
        targets = read_targets([document.labels for document in block])
        sample.add(block, [document.labels for document in block])
        counts += _count_block(block, targets, analyzer, fields)
    return counts


def _count_block(texts, targets, analyzer, fields):
    X, terms = analyzer.count(texts, fields)
    return LabelSetCounts.from_matrix(X, targets, terms=terms)


def vocabulary_view(counts: LabelSetCounts, vocabulary: Vocabulary) -> LabelSetCounts:
    """Return the table of a vocabulary's terms, which are all in the larger one."""
    kept = np.flatnonzero(vocabulary.columns(counts.terms) >= 0)
    return counts.select(kept, vocabulary.terms)


def new_model(model, rule) -> CountModel:
    """Return an unfitted model by its name, or like an instance, that the rule can work on."""
    model = _named_model(model) if isinstance(model, str) else _cloned_model(model)
    if rule is not None and rule.needs_reference and not hasattr(model, "world_score"):
        raise ValueError(
            f"the rule {type(rule).__name__} needs a general model, which "
            f"{type(model).__name__} has not; use model='nb' or another rule."
        )
    return model


def _named_model(name):
    if name not in MODELS:
        raise ValueError(f"model == {name!r}, must be one of {', '.join(MODELS)}.")
    return MODELS[name]()


def _cloned_model(model):
    if not isinstance(model, CountModel):
        raise TypeError(
            f"model is a {type(model).__name__}, must be one of {', '.join(MODELS)} "
            "or a count model."
        )
    return clone(model)
