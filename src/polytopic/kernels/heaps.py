"""A binary heap in arrays: the first of many items is at hand, and others come and go quickly."""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import helper


class Heap(NamedTuple):
    """Items by rising key, and of equal keys by rising rank; the first one is at the root.

    The caller counts the items, and gives each a number.
    """

    key: np.ndarray
    rank: np.ndarray
    item: np.ndarray


def new_heap(capacity):
    """Return an empty heap."""
    return Heap(np.empty(capacity), np.empty(capacity, np.int64), np.empty(capacity, np.int64))


@helper
def push(heap, n, key, rank, item):
    """Add an item to a heap of ``n`` items."""
    place = n
    while place > 0:
        parent = (place - 1) // 2
        if not (key < heap.key[parent] or (key == heap.key[parent] and rank < heap.rank[parent])):
            break
        heap.key[place], heap.rank[place] = heap.key[parent], heap.rank[parent]
        heap.item[place] = heap.item[parent]
        place = parent
    heap.key[place], heap.rank[place], heap.item[place] = key, rank, item


@helper
def pop(heap, n):
    """Remove the first of ``n`` items."""
    last, place, child = n - 1, 0, 1
    key, rank, item = heap.key[last], heap.rank[last], heap.item[last]
    while child < last:
        other = child + 1
        if other < last and (
            heap.key[other] < heap.key[child]
            or (heap.key[other] == heap.key[child] and heap.rank[other] < heap.rank[child])
        ):
            child = other
        if not (heap.key[child] < key or (heap.key[child] == key and heap.rank[child] < rank)):
            break
        heap.key[place], heap.rank[place] = heap.key[child], heap.rank[child]
        heap.item[place] = heap.item[child]
        place, child = child, 2 * child + 1
    heap.key[place], heap.rank[place], heap.item[place] = key, rank, item
