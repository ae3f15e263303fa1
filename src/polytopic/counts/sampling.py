"""The documents of a corpus that a model is tuned on.

A sample depends on the contents of the documents, neither on their order nor on how the corpus is
divided. Each document gets a mark that is computed from its content, and those with the smallest
marks are the sample. What the content is depends on where the documents are:

- :class:`TextSample` hashes texts, of a stream or of the parts of a corpus.
- :func:`smallest_digests` uses the digests that a store holds for its documents.
- :func:`sample_rows` projects rows of counts and labels onto random numbers.

A model whose training is itself random draws its documents with :func:`draw_documents`.
To divide a corpus into training and test documents, see
:mod:`polytopic.corpus.splits`.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from heapq import heappush, heappushpop
from itertools import count

import numpy as np
from sklearn.utils import check_random_state

from polytopic.corpus.document import Document

TUNING_DOCS = 1000  # documents that a count model is tuned on


class TextSample:
    """A sample of a stream of labelled texts.

    Parameters
    ----------
    size : int
        Maximum number of texts.

    Examples
    --------
    >>> texts, labels = ["goal", "orbit", "rover"], [["sport"], ["space"], ["space"]]
    >>> one, other = TextSample(2), TextSample(2)
    >>> one.add(texts, labels)
    >>> other.add(texts[::-1], labels[::-1])
    >>> one.texts == other.texts
    True
    """

    def __init__(self, size: int):
        self.size = size
        self._heap: list[tuple] = []  # negative marks, so that the largest mark comes first
        self._order = count()  # breaks ties, so that texts are never compared

    def add(self, texts, labels) -> None:
        """Add texts; those without labels are ignored."""
        if not self.size:
            return
        for text, names in zip(texts, labels, strict=True):
            if names:
                self._push(-_mark(text), names, text)

    def _push(self, mark, names, text) -> None:
        if len(self._heap) < self.size:
            heappush(self._heap, (mark, sorted(names), next(self._order), text))
        elif mark >= self._heap[0][0]:
            heappushpop(self._heap, (mark, sorted(names), next(self._order), text))

    def __add__(self, other: TextSample) -> TextSample:
        """Return the sample of both streams together."""
        sample = TextSample(self.size)
        for mark, names, _, text in [*self._heap, *other._heap]:
            sample._push(mark, names, text)
        return sample

    def count_terms(self, analyzer, fields) -> TextSample:
        """Return the same sample with the texts replaced by their bags of words."""
        X, terms = analyzer.count(self.texts, fields)
        sample = TextSample(self.size)
        for row, (mark, names, *_) in enumerate(self._entries()):
            own = slice(*X.indptr[row : row + 2])
            words = [terms[column] for column in X.indices[own].tolist()]
            sample._push(mark, names, dict(zip(words, X.data[own].tolist(), strict=True)))
        return sample

    def _entries(self) -> list[tuple]:
        """Return the sample in an order that does not depend on that of the stream."""
        return sorted(self._heap, key=lambda entry: entry[:2])

    @property
    def texts(self) -> list:
        """The texts of the sample."""
        return [text for *_, text in self._entries()]

    @property
    def labels(self) -> list:
        """Their labels."""
        return [names for _, names, *_ in self._entries()]


def _mark(text) -> int:
    content = repr(text.content if isinstance(text, Document) else text)
    digest = blake2b(content.encode("utf-8", "backslashreplace"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def smallest_digests(documents: Iterable[tuple[bytes, str, str]], n_docs: int) -> list[str]:
    """Return the ids of the sample, of documents given by digest, label set and id."""
    return [name for _, _, name in sorted(documents)[:n_docs]]


def sample_rows(X, Y, n_docs: int = TUNING_DOCS) -> np.ndarray:
    """Return the rows of the sample, of documents that have words and labels.

    ``X`` (n_docs, n_words) has their counts, and ``Y`` (n_docs, n_labels) is the indicator of their
    labels, both CSR.
    """
    rng = np.random.default_rng(0)
    words = rng.random(X.shape[1])
    labels = rng.random(Y.shape[1])
    mark = (X @ words + np.sqrt(2.0) * (Y @ labels)) * 1e4 % 1.0
    usable = np.flatnonzero((np.diff(X.indptr) > 0) & (np.diff(Y.indptr) > 0))
    order = usable[np.lexsort((usable, mark[usable]))]
    return order[:n_docs]


def draw_documents(n_docs: int, max_docs: int, random_state) -> np.ndarray:
    """Return at most ``max_docs`` of ``n_docs`` rows, drawn at random, in random order."""
    return check_random_state(random_state).permutation(n_docs)[:max_docs]
