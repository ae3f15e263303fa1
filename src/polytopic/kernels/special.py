"""Special functions that NumPy has and numba lacks."""

import numpy as np

from polytopic.kernels import helper

ASYMPTOTIC_FROM = 10.0  # where six terms of the series give full precision


@helper
def digamma(z):
    """Return the logarithmic derivative of the gamma function at ``z > 0``.

    Equivalent to ``scipy.special.digamma(z)``: the recurrence ``digamma(z) = digamma(z + 1) - 1/z``
    up to ``ASYMPTOTIC_FROM``, then the asymptotic series.
    """
    total = 0.0
    while z < ASYMPTOTIC_FROM:
        total -= 1.0 / z
        z += 1.0
    y = 1.0 / (z * z)
    series = 1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * (691.0 / 32760 - y / 12)))
    return total + np.log(z) - 0.5 / z - y * (1.0 / 12 - y * (1.0 / 120 - y * series))
