"""Isotonic regression.

===========  ==========================================================================
``values``   what is approximated by rising steps, in the order of their scores
``weights``  how much each value counts
``begins``   (n_values + 1,) takes where each step begins, and then the number of values
``heights``  (n_values,) takes the height of each step
===========  ==========================================================================
"""

import numpy as np

from polytopic.kernels import compiled


@compiled
def pool_adjacent(values, weights, begins, heights):
    """Find the rising steps nearest to values, in weighted squares; return how many there are.

    Neighbours that fall, or are level, are merged into one step at their weighted mean, until none
    do. Equivalent to ``scipy.optimize.isotonic_regression(values, weights=weights)``.
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
