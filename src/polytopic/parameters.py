"""Validation of numeric parameters."""

import math
from numbers import Real
from typing import Any

LARGEST_COUNT = 2**53  # of a term in a document: larger integers are not exact as floats


def check_number(value: Any, name: str, **bounds: Any) -> None:
    """Raise if a value is not a finite number within the bounds of ``check_scalar``."""
    from sklearn.utils import check_scalar  # lazy: scikit-learn is slow to import

    check_scalar(value, name, Real, **bounds)
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        finite = False
    if not finite:
        raise ValueError(f"{name} == {value}, must be finite.")
