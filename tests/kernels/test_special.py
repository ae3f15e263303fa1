"""Special functions of the kernels are SciPy's."""

import numpy as np
import pytest

from polytopic.kernels import special
from tests.twins import kernels as twins


def test_digamma():
    """The recurrence and the asymptotic series are exact everywhere."""
    points = np.geomspace(1e-6, 1e8, 200)

    values = [special.digamma(z) for z in points]

    np.testing.assert_allclose(values, twins.digamma(points), rtol=1e-12)


@pytest.mark.parametrize("x", [1e-6, 1e-3, 0.04, 0.5, 1.0, 3.7, 7.99, 8.0, 120.0, 1e6])
def test_exponents_of_digamma(x):
    """The series without a logarithm is nearly as exact, and so is its logarithm."""
    log_value, value = special.log_exp_digamma(x), special.exp_digamma(x)

    assert log_value == pytest.approx(twins.log_exp_digamma(x), rel=1e-10, abs=1e-10)
    assert value == pytest.approx(twins.exp_digamma(x), rel=1e-9)
