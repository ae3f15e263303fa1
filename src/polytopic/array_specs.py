"""Specifications of arrays in files: their type, shape and range; and checks of sparse matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from operator import ge
from typing import Any

import numpy as np

WHOLE = ("int64", "int32")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
DOUBLE = ("float64",)
REAL = ("float64", "float32")

FREE_MEMORY = 1 << 30  # bytes that the arrays of any file may expand to
EXPANSION = 250  # bytes that each byte may expand to beyond that


@dataclass(frozen=True)
class ArraySpec:
    """The specification of an array.

    Attributes
    ----------
    dtypes : tuple of str
        Names of the types allowed.
    shape : tuple of str or int
        Its sizes. Equal names mean equal sizes; ``"n_rows+1"`` is one more than ``n_rows``.
    least, most : float
        The range of its numbers, both ends included. NaN is in no range.
    below : str, default=None
        The name of a size that all numbers must be below, for columns.
    """

    dtypes: tuple[str, ...]
    shape: tuple[str | int, ...]
    least: float = -np.inf
    most: float = np.inf
    below: str | None = None


def check_arrays(
    arrays: Mapping[str, np.ndarray], specs: Mapping[str, ArraySpec], **sizes: int
) -> dict[str, int]:
    """Raise ValueError if an array is missing or invalid; return all sizes by name.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        Arrays by name; those without a specification are ignored.
    specs : mapping of str to ArraySpec
        Their specifications.
    **sizes : int
        Known sizes. Others are taken from the first array that has them.

    Examples
    --------
    >>> specs = {"counts": ArraySpec(DOUBLE, ("n_words",), least=0)}
    >>> check_arrays({"counts": np.array([2.0, 1.0])}, specs)
    {'n_words': 2}
    >>> check_arrays({"counts": np.array([2.0, np.nan])}, specs)
    Traceback (most recent call last):
    ValueError: 'counts' holds values from nan to nan, must be from 0 to inf
    """
    for name, spec in specs.items():
        if name not in arrays:
            raise ValueError(f"{name!r} is missing")
        array = arrays[name]
        if array.dtype.name not in spec.dtypes:
            raise ValueError(f"{name!r} is {array.dtype}, must be {' or '.join(spec.dtypes)}")
        _check_shape(name, array.shape, spec.shape, sizes)
    for name, spec in specs.items():
        _check_range(name, arrays[name], spec, sizes)
    return sizes


def _check_shape(name, shape, symbols, sizes) -> None:
    fits = len(shape) == len(symbols)
    for size, symbol in zip(shape, symbols, strict=False):
        base, _, extra = str(symbol).partition("+")
        size -= int(extra or 0)
        fits &= (
            size >= 0 and (int(base) if base.isdigit() else sizes.setdefault(base, size)) == size
        )
    if not fits:
        known = ", ".join(f"{name} == {size}" for name, size in sizes.items())
        needed = f"({', '.join(map(str, symbols))})"
        raise ValueError(f"{name!r} has the shape {shape}, must have {needed}, where {known}")


def _check_range(name, array, spec, sizes) -> None:
    most = spec.most if spec.below is None else sizes[spec.below] - 1
    if not array.size or ((spec.least, most) == (-np.inf, np.inf) and array.dtype.kind != "f"):
        return
    low, high = array.min(), array.max()
    if not (spec.least <= low and high <= most):
        raise ValueError(
            f"{name!r} holds values from {low} to {high}, must be from {spec.least} to {most}"
        )


def check_rows(name: str, indices: np.ndarray, indptr: np.ndarray, *, empty: bool = True) -> None:
    """Raise ValueError unless ``indptr`` splits ``indices`` into rows of ascending columns."""
    ends = indptr.astype(np.int64, copy=False)
    sizes = np.diff(ends)
    if not ends.size or ends[0] != 0 or ends[-1] != indices.size or sizes.min(initial=0) < 0:
        raise ValueError(f"the rows of {name!r} overlap or leave gaps")
    if not empty and not sizes.all():
        raise ValueError(f"{name!r} has an empty row, must have none")
    ascends = indices[1:] > indices[:-1]
    starts = ends[1:-1]
    ascends[starts[(starts > 0) & (starts < indices.size)] - 1] = True  # where the next row begins
    if not ascends.all():
        raise ValueError(f"the columns in each row of {name!r} must ascend")


def check_sparse(X: Any, name: str = "X") -> None:
    """Raise ValueError if a sparse matrix has entries outside its shape; accept any dense one.

    SciPy creates such a matrix without complaint, and compiled loops would read and write memory
    that does not belong to it.

    >>> from scipy.sparse import csr_matrix
    >>> check_sparse(csr_matrix(([1.0], [2], [0, 1]), shape=(1, 2)))
    Traceback (most recent call last):
    ValueError: X has an entry in column 2, must have entries in columns 0 to 1 only.
    """
    layout = getattr(X, "format", None)
    if layout == "bsr":
        X.check_format(full_check=True)
    if layout not in ("csr", "csc"):
        return
    kind, (n_lines, n_places) = "column", X.shape
    if layout == "csc":
        kind, (n_places, n_lines) = "row", X.shape
    ends, places = X.indptr, X.indices
    if (
        ends.size != n_lines + 1
        or ends[0] != 0
        or (ends[1:] < ends[:-1]).any()
        or not ends[-1] <= places.size == X.data.size
    ):
        raise ValueError(
            f"{name} is not a valid {layout.upper()} matrix: its indptr must have {n_lines + 1} "
            f"values that rise from 0 to at most {min(places.size, X.data.size)}, the number of "
            "entries."
        )
    if not places.size:
        return
    low, high = places.min(), places.max()
    if low < 0 or high >= n_places:
        raise ValueError(
            f"{name} has an entry in {kind} {low if low < 0 else high}, must have entries in "
            f"{kind}s 0 to {n_places - 1} only."
        )


def check_memory(n_bytes: int, arrays: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError if ``n_bytes`` is out of proportion to the arrays that it comes from."""
    if n_bytes > max(FREE_MEMORY, EXPANSION * sum(array.nbytes for array in arrays.values())):
        raise ValueError(
            f"its arrays would take {n_bytes / 2**30:,.1f} GiB of memory, "
            f"more than {EXPANSION} times their size in the file"
        )


def check_names(names, what: str) -> None:
    """Raise ValueError unless these are distinct strings in sorted order."""
    if not isinstance(names, list | tuple) or not set(map(type, names)) <= {str}:
        raise ValueError(f"{what} must be a list of strings")
    if any(map(ge, names, islice(names, 1, None))):
        raise ValueError(f"{what} must be sorted and distinct")
