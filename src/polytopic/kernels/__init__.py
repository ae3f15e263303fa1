"""Compiled loops over plain arrays."""

from functools import cache
from pathlib import Path

from llvmlite import binding
from numba import njit, version_info
from numba.core.runtime import _nrt_python, rtsys

# A kernel is compiled into those that call it, so what is kept on disk is as old as all of them.
_FILES = [file.stat() for file in sorted(Path(__file__).parent.glob("*.py"))]
_STAMP = max(file.st_mtime for file in _FILES), sum(file.st_size for file in _FILES)

_KNOWN_PARTS = "load_overload", "_load_overload", "_guard_against_spurious_io_errors"
_KNOWN_RELEASE = (0, 68)  # what is kept by it holds the functions that count references


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
        if all(hasattr(kernel._cache, name) for name in _KNOWN_PARTS):  # else numba has changed
            kernel._cache.load_overload = _without_a_compiler(kernel._cache)
    return kernel


def reordered(function):
    """Compile a kernel whose sums may be taken in any order, many at the same time.

    For bounds alone: which order is taken, and so the last digit, depends on the processor.
    """
    return compiled(function, fastmath={"reassoc", "nsz"})


# A kernel that is copied into those that call it, where a call takes longer than what it does.
inlined = njit(inline="always")


def _without_a_compiler(cache):
    """Return what loads a kept result; the compiler is made ready only if there is none.

    All that it knows of Python and NumPy takes long to load, and what is kept runs without.
    """
    compile_ready = cache.load_overload

    def load(signature, context):
        _make_memory_ready(context)
        with cache._guard_against_spurious_io_errors():
            kept = cache._load_overload(signature, context)
            if kept is not None:
                return kept
        return compile_ready(signature, context)

    return load


@cache
def _make_memory_ready(context):
    """Let kernels find what gives them memory for arrays.

    numba also compiles functions that count references, for which the system loads 20 MB of the
    compiler; but those are in each kernel that is kept.
    """
    if version_info.short != _KNOWN_RELEASE:
        rtsys.initialize(context)
        return
    for name, address in _nrt_python.c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


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
