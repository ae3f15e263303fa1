"""Special functions that SciPy has and numba lacks.

``digamma`` agrees with SciPy to 1e-14. CoL mostly needs ``exp(digamma(x))``, for which there is a
faster series without a logarithm, exact to 2e-11; ``log_exp_digamma`` is the logarithm of that
series, for sums that must be consistent with it.

===========  ==============================================================================
``z, x``     the argument, above zero
``y``        ``1 / z**2``, the variable of the series
``a, b``     ``exp(digamma(x))`` as ``a * exp(-b)``, which may underflow although both do not
===========  ==============================================================================
"""

import math

import numpy as np

from polytopic.kernels import helper

ASYMPTOTIC_FROM = 10.0  # where six terms of the series of digamma give full precision
EXP_SERIES_FROM = 8.0  # where four terms of the series of exp(digamma) are enough


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


@helper
def exp_digamma(x):
    """Return ``np.exp(scipy.special.digamma(x))`` at ``x > 0``, without computing a logarithm."""
    a, b = _exp_digamma_parts(x)
    return a * math.exp(-b)


@helper
def log_exp_digamma(x):
    """Return ``np.log(exp_digamma(x))`` at ``x > 0``, also where that underflows."""
    a, b = _exp_digamma_parts(x)
    return math.log(a) - b


@helper
def _exp_digamma_parts(x):
    """Return ``a, b`` with ``a * exp(-b) == exp(digamma(x))``."""
    b = 0.0
    while x < EXP_SERIES_FROM:
        b += 1.0 / x
        x += 1.0
    x -= 0.5
    y = 1.0 / (x * x)
    series = 1 / 24 + y * (-37 / 5760 + y * (10313 / 2903040 - y * (5509121 / 1393459200)))
    return x * (1.0 + y * series), b
