"""Compiled loops over plain arrays."""

from pathlib import Path

from numba import njit, version_info

# A kernel is compiled into those that call it, so what is kept on disk is as old as all of them.
_FILES = [file.stat() for file in sorted(Path(__file__).parent.glob("*.py"))]
_STAMP = max(file.st_mtime for file in _FILES), sum(file.st_size for file in _FILES)

_KNOWN_RELEASES = [(0, 68)]  # of numba, whose inner parts are used where kernels are loaded


def compiled(function, **options):
    """Compile a kernel, without the GIL; keep the result on disk where there is a place for it."""
    try:
        kernel = njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        return njit(nogil=True, **options)(function)
    kept = getattr(getattr(kernel, "_cache", None), "_cache_file", None)  # none when uncompiled
    if kept is not None:
        kept._source_stamp = _STAMP
        kept._load_index = _forgiving(kept._load_index)
        if version_info.short in _KNOWN_RELEASES:
            from polytopic.kernels.kept import load_lightly  # here: other releases may lack parts

            load_lightly(kernel._cache)
    return kernel


def reordered(function):
    """Compile a kernel whose sums may be taken in any order, many at the same time.

    For bounds alone: which order is taken, and so the last digit, depends on the processor.
    """
    return compiled(function, fastmath={"reassoc", "nsz"})


# A kernel that is copied into those that call it, where a call takes longer than what it does.
inlined = njit(inline="always")


def _forgiving(load_index):
    """Return what loads the list of kept results; one that cannot be read counts as empty.

    It names classes of the release that wrote it, which may be elsewhere now.
    """

    def load():
        try:
            return load_index()
        except (AttributeError, ImportError):
            return {}

    return load
