"""Isotonic regression.

===========  =============================================================================
``values``   what is approximated by rising steps, in the order of their scores
``weights``  how much each value counts
``begins``   (n_values + 1,) receives where each step begins, then the number of values
``heights``  (n_values,) receives the height of each step
===========  =============================================================================
"""

import numpy as np

from polytopic.kernels import compiled


@compiled
def pool_adjacent(values, weights, begins, heights):
    """Fit rising steps to values by weighted least squares; return the number of steps.

    Neighbouring steps that do not rise are merged at their weighted mean, until all do. Equivalent
    to::

        fit = scipy.optimize.isotonic_regression(values, weights=weights)
        n = fit.blocks.size - 1
        begins[: n + 1], heights[:n] = fit.blocks, fit.x[fit.blocks[:-1]]
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
