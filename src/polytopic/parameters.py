"""Checks of numbers, and the limits that they are held to."""

import math
from numbers import Real
from typing import Any

LARGEST_COUNT = 2**53  # of a term in a document: whole numbers up to here are exact as floats


def check_number(value: Any, name: str, **bounds: Any) -> None:
    """Refuse what is not a finite number within bounds, which are those of ``check_scalar``."""
    from sklearn.utils import check_scalar  # here: reading documents must not wait for it

    check_scalar(value, name, Real, **bounds)
    try:
        finite = math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        finite = False
    if not finite:
        raise ValueError(f"{name} == {value}, must be finite.")
