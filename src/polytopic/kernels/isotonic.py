"""Isotonic regression."""

import numpy as np

from polytopic.kernels import compiled


@compiled
def pool_adjacent(values, weights, begins, heights):
    """Find the rising steps that are nearest to values; return how many there are.

    Neighbours that fall, or are level, become one step at their weighted mean, until none do.
    ``begins``, which has one place more than there are values, takes where each step begins, and
    then the number of values; ``heights`` takes the height of each.
    """
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
    return n
