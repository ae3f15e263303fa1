"""A binary heap in arrays, with the smallest item at index 0.

=========  ===============================================================
``key``    what items are ordered by, smallest first
``rank``   breaks ties between equal keys, smallest first
``item``   the caller's number of the item
``n``      how many items the heap holds; the caller keeps count
=========  ===============================================================
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import helper


class Heap(NamedTuple):
    """Items in heap order."""

    key: np.ndarray
    rank: np.ndarray
    item: np.ndarray


def new_heap(capacity):
    """Return an empty heap for up to ``capacity`` items."""
    return Heap(np.empty(capacity), np.empty(capacity, np.int64), np.empty(capacity, np.int64))


@helper
def push(heap, n, key, rank, item):
    """Add an item to ``n`` others: ``heapq.heappush(h, (key, rank, item))``."""
    keys, ranks, items = heap.key, heap.rank, heap.item
    place = n
    while place > 0:
        parent = (place - 1) // 2
        if not (key < keys[parent] or (key == keys[parent] and rank < ranks[parent])):
            break
        keys[place], ranks[place], items[place] = keys[parent], ranks[parent], items[parent]
        place = parent
    keys[place], ranks[place], items[place] = key, rank, item


@helper
def pop(heap, n):
    """Remove the smallest of ``n`` items: ``heapq.heappop(h)``."""
    keys, ranks, items = heap.key, heap.rank, heap.item
    last, place, child = n - 1, 0, 1
    key, rank, item = keys[last], ranks[last], items[last]
    while child < last:
        other = child + 1
        if other < last and (
            keys[other] < keys[child]
            or (keys[other] == keys[child] and ranks[other] < ranks[child])
        ):
            child = other
        if not (keys[child] < key or (keys[child] == key and ranks[child] < rank)):
            break
        keys[place], ranks[place], items[place] = keys[child], ranks[child], items[child]
        place, child = child, 2 * child + 1
    keys[place], ranks[place], items[place] = key, rank, item
