"""Iterative stratification: documents dealt to parts so that each gets its share of every label.

Sechidis, Tsoumakas and Vlahavas, "On the Stratification of Multi-Label Data", ECML PKDD 2011.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Array = NDArray[Any]


def label_matrix(labels: Any) -> csr_array:
    """Return the indicator of the labels that two documents or more have.

    ``labels`` holds the label names of each document, or the documents, or is an indicator.
    """
    if hasattr(labels, "tocsr") or getattr(labels, "ndim", 1) == 2:
        Y = csr_array(labels)
    else:
        items = [_names(item) for item in labels]
        named = all(isinstance(name, str) for item in items for name in item)
        Y = _named_matrix(items) if named else csr_array(np.asarray(items))
    Y = csr_array(Y != 0, dtype=float)
    return Y[:, np.flatnonzero(Y.sum(axis=0) >= 2)]


def _names(item: Any) -> Any:
    names = getattr(item, "labels", item)
    many = isinstance(names, Iterable) and not isinstance(names, str)
    return names if many else (str(names),)


def _named_matrix(items: list[Any]) -> csr_array:
    number: dict[str, int] = {}
    rows = [[number.setdefault(name, len(number)) for name in sorted(set(item))] for item in items]
    indices = np.array([label for row in rows for label in row], dtype=np.int64)
    indptr = np.cumsum([0, *map(len, rows)])
    return csr_array((np.ones(len(indices)), indices, indptr), shape=(len(rows), len(number)))


def deal(Y: csr_array, wanted: Array, room: Array, seed: int | None) -> Array:
    """Return the part of each document.

    Parameters
    ----------
    Y : csr_array of shape (n_docs, n_labels)
        Label indicator.
    wanted : ndarray of shape (n_labels, n_parts)
        How many documents with the label each part should get, as nearly as may be.
    room : ndarray of shape (n_parts,)
        How many documents each part gets; the sum is ``n_docs``.
    seed : int or None
        Seed of the order in which documents are dealt.
    """
    order = np.random.default_rng(seed).permutation(Y.shape[0])
    part = _deal_labelled(Y, wanted, room, order)
    space = room - np.bincount(part[part >= 0], minlength=len(room))
    _deal_others(part, space, order)
    _even_out(part, space, Y, wanted)
    return part


def _deal_labelled(Y: csr_array, wanted: Array, room: Array, order: Array) -> Array:
    """Deal the documents label by label, the one with fewest documents left first (Algorithm 1)."""
    labels_of = _lists(Y)
    docs_of = [order[docs].tolist() for docs in _lists(csr_array(Y[order].T))]
    part, want, space = [-1] * Y.shape[0], wanted.tolist(), room.tolist()
    left = [len(docs) for docs in docs_of]
    queue = [(count, label) for label, count in enumerate(left)]
    heapify(queue)
    while queue:
        count, label = heappop(queue)
        if count != left[label]:  # out of date: a later entry has the count of now
            continue
        for doc in docs_of[label]:
            if part[doc] < 0:
                neediest = max(zip(want[label], space, range(len(space)), strict=True))[2]
                part[doc] = neediest
                space[neediest] -= 1
                for other in labels_of[doc]:
                    want[other][neediest] -= 1
                    left[other] -= 1
                    heappush(queue, (left[other], other))
    return np.array(part)


def _deal_others(part: Array, space: Array, order: Array) -> None:
    """Put the documents without labels where room is left, in place."""
    others = order[part[order] < 0]
    free = np.repeat(np.arange(len(space)), np.maximum(space, 0))
    part[others] = free[np.linspace(0, len(free), len(others), endpoint=False).astype(int)]
    space -= np.bincount(part[others], minlength=len(space))


def _even_out(part: Array, space: Array, Y: csr_array, wanted: Array) -> None:
    """Move documents from parts with too many to parts with too few, in place.

    Each time the document that mends most, by the squares of what is wanted and not there:
    rare labels weigh more.
    """
    count = Y.sum(axis=0)
    want = wanted - np.column_stack([Y[part == p].sum(axis=0) for p in range(len(space))])
    while space.min() < 0:
        source, target = space.argmin(), space.argmax()
        gain = Y @ ((want[:, target] - want[:, source] - 1) / count)
        doc = np.where(part == source, gain, -np.inf).argmax()
        labels = Y.indices[Y.indptr[doc] : Y.indptr[doc + 1]]
        part[doc] = target
        space[source] += 1
        space[target] -= 1
        want[labels, source] += 1
        want[labels, target] -= 1


def _lists(matrix: csr_array) -> list[Any]:
    return [each.tolist() for each in np.split(matrix.indices, matrix.indptr[1:-1])]
