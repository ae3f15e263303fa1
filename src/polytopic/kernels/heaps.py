"""A binary heap in arrays: the first of many items is at hand, others come and go quickly."""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled


class Heap(NamedTuple):
    """Items by rising key, and of equal keys by rising rank; the first one at the root.

    The caller counts them; ``item`` is whatever number it knows them by.
    """

    key: np.ndarray
    rank: np.ndarray
    item: np.ndarray


@compiled
def new_heap(most):
    """Return an empty heap with room for so many items."""
    return Heap(np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64))


@compiled
def push(heap, n, key, rank, item):
    """Add an item to ``n`` others."""
    place = n
    while place > 0:
        above = (place - 1) // 2
        if not _before(key, rank, heap.key[above], heap.rank[above]):
            break
        _copy(heap, above, place)
        place = above
    _put(heap, place, key, rank, item)


@compiled
def pop(heap, n):
    """Take the first of ``n`` items away."""
    last, place, below = n - 1, 0, 1
    key, rank = heap.key[last], heap.rank[last]
    while below < last:
        other = below + 1
        if other < last and _before(
            heap.key[other], heap.rank[other], heap.key[below], heap.rank[below]
        ):
            below = other
        if not _before(heap.key[below], heap.rank[below], key, rank):
            break
        _copy(heap, below, place)
        place, below = below, 2 * below + 1
    _put(heap, place, key, rank, heap.item[last])


@compiled
def _before(key, rank, other_key, other_rank):
    return key < other_key or (key == other_key and rank < other_rank)


@compiled
def _copy(heap, source, place):
    _put(heap, place, heap.key[source], heap.rank[source], heap.item[source])


@compiled
def _put(heap, place, key, rank, item):
    heap.key[place], heap.rank[place], heap.item[place] = key, rank, item
