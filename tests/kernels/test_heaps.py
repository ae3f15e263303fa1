"""A heap in arrays is Python's heap."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from polytopic.kernels.heaps import new_heap, pop, push
from tests.twins import kernels as twins


@given(st.lists(st.sampled_from([None, 0.0, 0.5, 1.0, -np.inf]), max_size=60))
def test_a_heap_has_the_smallest_item_first(steps):
    """It has the lowest key and, of equal keys, the lowest rank, after any pushes and pops."""
    heap, items = new_heap(len(steps)), []

    for rank, key in enumerate(steps):
        if key is not None:
            push(heap, len(items), key, rank, -rank)
            twins.push(items, key, rank, -rank)
        elif items:
            pop(heap, len(items))
            twins.pop(items)
        if items:
            assert (heap.key[0], heap.rank[0], heap.item[0]) == items[0]
