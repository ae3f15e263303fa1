"""A binary heap in arrays, which keeps the smallest of many items at index 0.

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
    """Remove the smallest of ``n`` items: ``heapq.heappop(h)``."""
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
