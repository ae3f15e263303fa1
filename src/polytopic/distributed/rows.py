"""Documents as rows of counts, which stay with the workers, in parts of about the same size."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from sys import getsizeof
from typing import Any

import numpy as np
from scipy import sparse

from polytopic.counts import LabelSetCounts
from polytopic.distributed.counting import Skipped, _sum
from polytopic.distributed.engine import merged, n_workers, run, shared, tasks
from polytopic.distributed.partitions import documents
from polytopic.labeler.learning import collect_rows
from polytopic.labeler.reading import LabelReader
from polytopic.labeler.rows import DocumentRows
from polytopic.labels import LabelSpace, widen


@dataclass
class Collected:
    """What is told of rows: their table, how many they are in each partition, and labels read."""

    counts: LabelSetCounts
    sizes: list[int]
    renamed: dict[str, str]
    skipped: Skipped

    def __sizeof__(self) -> int:
        return getsizeof(self.counts)

    def __add__(self, other: Collected) -> Collected:
        return Collected(
            self.counts + other.counts,
            [*self.sizes, *other.sizes],
            self.renamed | other.renamed,
            self.skipped + other.skipped,
        )


def collect(client, corpus, analyzer, fields, tree, progress) -> tuple[list, Collected]:
    """Count the documents of each partition; return their rows as tasks, and what is told."""
    settings = shared((corpus.reading, analyzer, fields, tree))
    found = client.persist(tasks(_collect_part, corpus.parts, settings, name="rows"))
    leaves = tasks(_told, found, name="table")
    return found, run(client, leaves, merged(leaves, _sum), progress)


def _collect_part(part, settings) -> tuple[DocumentRows, dict[str, str], Skipped]:
    reading, analyzer, fields, tree = settings
    bad: list[str] = []
    reader = LabelReader(tree)
    texts = (document for document, _ in documents(part, reading, bad))
    rows = collect_rows(texts, None, analyzer, fields, reader=reader)
    return rows, reader.renamed, Skipped.of(bad)


def _told(found) -> Collected:
    rows, renamed, skipped = found
    return Collected(rows.table(), [rows.X.shape[0]], renamed, skipped)


def dealt(client, found: list, sizes: list[int], n_parts: int | None, *shown) -> list:
    """Return tasks of pairs of matrices, words and labels; documents are dealt to parts in turn.

    So the parts are alike whatever the order of documents is. They depend on how many there are,
    not on partitions. ``shown`` is vocabulary, labels and weights.
    """
    import dask

    ends = np.cumsum([0, *sizes])
    n_parts = _n_parts(client, n_parts, ends[-1])
    cut, stack, how = dask.delayed(_slice), dask.delayed(_stacked), shared(shown)
    starts = [[int(k - end) % n_parts for end in ends[:-1]] for k in range(n_parts)]
    parts = [
        stack([cut(rows, slice(k, None, n_parts), how) for rows, k in zip(found, own, strict=True)])
        for own in starts
    ]
    return client.persist(parts)


def in_order(
    client, found: list, sizes: list[int], n_parts: int | None, *shown
) -> tuple[list, list[int]]:
    """Return tasks of pairs of matrices as :func:`dealt` does, of documents in order; and sizes."""
    import dask

    ends = np.cumsum([0, *sizes])
    borders = np.linspace(0, ends[-1], _n_parts(client, n_parts, ends[-1]) + 1).astype(int)
    cut, stack, how = dask.delayed(_slice), dask.delayed(_stacked), shared(shown)
    parts = []
    for start, stop in pairwise(borders.tolist()):
        own = np.flatnonzero((ends[:-1] < stop) & (ends[1:] > start))
        pieces = [
            cut(found[p], slice(max(start - ends[p], 0), min(stop, ends[p + 1]) - ends[p]), how)
            for p in own
        ]
        parts.append(stack(pieces))
    return client.persist(parts), np.diff(borders).tolist()


def _n_parts(client, wanted: int | None, n_docs) -> int:
    return max(1, min(wanted or n_workers(client), int(n_docs)))


def _slice(found, which, shown):
    vocabulary, labels, weights = shown
    rows = found[0]
    X = vocabulary.select(rows.X[which], rows.terms)
    X = X if weights is None else weights.transform(X, copy=False)
    return X, widen(rows.Y[which], rows.labels, LabelSpace(labels))


def _stacked(pieces):
    X, Y = (sparse.vstack(each, format="csr") for each in zip(*pieces, strict=True))
    return X, Y


def rows_of(parts: list, owner: np.ndarray, places: np.ndarray) -> Any:
    """Return the task of the rows of documents, by their parts and their places in these."""
    import dask

    used = np.unique(owner).tolist()
    take, join = dask.delayed(_take), dask.delayed(_joined)
    order = np.argsort(np.concatenate([np.flatnonzero(owner == p) for p in used]))
    return join([take(parts[p], places[owner == p]) for p in used], order)


def _take(part, rows):
    X, Y = part
    return X[rows], Y[rows]


def _joined(pieces, order):
    X, Y = _stacked(pieces)
    return X[order], Y[order]
