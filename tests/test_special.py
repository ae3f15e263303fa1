"""Special functions of the kernels are SciPy's."""

import numpy as np
import pytest
from scipy import special as scipy_special

from polytopic.kernels import special


def test_digamma():
    """The recurrence and the asymptotic series are exact everywhere."""
    points = np.geomspace(1e-6, 1e8, 200)

    found = [special.digamma(z) for z in points]

    np.testing.assert_allclose(found, scipy_special.digamma(points), rtol=1e-12)


@pytest.mark.parametrize("x", [1e-6, 1e-3, 0.04, 0.5, 1.0, 3.7, 7.99, 8.0, 120.0, 1e6])
def test_exponents_of_digamma(x):
    """The series without a logarithm is nearly as exact, and so is its logarithm."""
    expected = scipy_special.digamma(x)

    assert special.log_exp_digamma(x) == pytest.approx(expected, rel=1e-10, abs=1e-10)
    assert special.exp_digamma(x) == pytest.approx(np.exp(expected), rel=1e-9)
