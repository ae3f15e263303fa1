"""Isotonic regression."""

import numpy as np

from polytopic.kernels import compiled


@compiled
def pool_adjacent(values, weights):
    """Return the rising steps that are nearest to values: where each begins, and its height.

    Neighbours that fall, or are level, become one step at their weighted mean, until none do. The
    last of the beginnings is the number of values.
    """
    begins, heights = np.empty(values.size + 1, np.int64), np.empty(values.size)
    masses, n = np.empty(values.size), 0
    for k in range(values.size):
        begin, height, mass = k, values[k], weights[k]
        while n and heights[n - 1] >= height:
            n -= 1
            total = masses[n] + mass
            height = (masses[n] * heights[n] + mass * height) / total
            begin, mass = begins[n], total
        begins[n], heights[n], masses[n] = begin, height, mass
        n += 1
    begins[n] = values.size
    return begins[: n + 1], heights[:n]
