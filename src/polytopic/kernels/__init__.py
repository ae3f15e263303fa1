"""Compiled loops over plain arrays."""

from numba import njit


def compiled(function):
    """Compile a kernel, without the GIL; keep the result on disk where there is a place for it."""
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        return njit(nogil=True)(function)
