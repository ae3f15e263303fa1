"""Compiled loops over plain arrays, shared by several model families, and the decorators for them.

``@compiled`` marks a kernel that Python calls: its machine code is cached on disk. ``@helper``
marks a function that only kernels call: it becomes part of their machine code.

A kernel contains the code of every kernel and helper that it calls, so a cached kernel is valid
only as long as none of their sources change. The cache folder is therefore named after a digest of
all kernel sources. They are the modules in this folder and every other module whose name contains
"kernels".
"""

import os
import shutil
import sys
import tempfile
import threading
import time
from hashlib import sha256
from pathlib import Path

import numba
import numpy as np
from numba.core import event
from numba.extending import register_jitable

from polytopic.interrupts import hold_interrupts

_PACKAGE = Path(__file__).parent.parent
_NOTICE_AFTER = 1.0  # seconds of compiling


def _find_folder() -> Path | None:
    """Return the first writable folder of NUMBA_CACHE_DIR, the package and the user's cache."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    for folder in (numba.config.CACHE_DIR, _PACKAGE / "__pycache__", user / "polytopic"):
        if folder:
            try:
                os.makedirs(folder, exist_ok=True)
                tempfile.TemporaryFile(dir=folder).close()
            except OSError:
                continue
            return Path(folder)
    return None


def _digest() -> str:
    """Return a digest of everything that compiled kernels depend on."""
    digest = sha256(f"{numba.__version__} {np.__version__}".encode())
    for source in sorted({*_PACKAGE.glob("kernels/*.py"), *_PACKAGE.glob("**/*kernels*.py")}):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _prepare_kernel_folder(cache: Path) -> Path:
    """Return the folder of kernels with these sources; delete those of earlier sources."""
    folder = cache / f"polytopic-kernels-{_digest()}"
    if not folder.exists():
        for outdated in cache.glob("polytopic-kernels-*"):
            shutil.rmtree(outdated, ignore_errors=True)
    return folder


# The folder for everything that is computed once per installation, None where none is writable.
cache_folder = _find_folder()
_kernel_folder = _prepare_kernel_folder(cache_folder) if cache_folder else None
_setting = threading.Lock()  # held while numba's cache folder is changed

# Kernels and helpers divide as NumPy does, without raising an error: numba counts references to the
# arrays of a function that has several exits. For the same reason, small helpers in inner loops
# avoid early returns. No other compiled code calls them by C's conventions, so a wrapper for that
# would only take time to compile.
_OPTIONS = {"error_model": "numpy", "no_cfunc_wrapper": True}


def compiled(function):
    """Compile a kernel, without the GIL; cache the result on disk."""
    if _kernel_folder is None:
        return numba.njit(nogil=True, **_OPTIONS)(function)
    with _setting:
        before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(_kernel_folder)
        try:
            return numba.njit(nogil=True, cache=True, **_OPTIONS)(function)
        finally:
            numba.config.CACHE_DIR = before


# For functions that only kernels call. They are part of the kernels' cached code, so they need no
# cache of their own, and no entry point for Python, which would take time to compile. Python runs
# them uncompiled.
helper = register_jitable(**_OPTIONS)


def reordered(function):
    """Compile a function whose sums may be computed in any order, several terms at a time.

    Use it for bounds only: the order, and so the last digit, depends on the processor.
    """
    return register_jitable(fastmath={"reassoc", "nsz"}, **_OPTIONS)(function)


# For small helpers in inner loops, where a call would take longer than the work itself.
inlined = register_jitable(forceinline=True, **_OPTIONS)


class _CompileNotice(event.Listener):
    """Reports on stderr, once per process, that compiling takes a while."""

    def __init__(self):
        self._depth, self._begin, self._spent, self._shown = 0, 0.0, 0.0, False

    def on_start(self, event):
        """Begin to compile a function, perhaps for another one that is being compiled."""
        if self._depth or event.data["dispatcher"].py_func.__module__.startswith("polytopic."):
            self._begin = self._begin if self._depth else time.perf_counter()
            self._depth += 1
            self._report()

    def on_end(self, event):
        """Finish a function."""
        if self._depth:
            self._report()
            self._depth -= 1
            if not self._depth:
                self._spent += time.perf_counter() - self._begin

    def _report(self):
        if not self._shown and self._spent + time.perf_counter() - self._begin > _NOTICE_AFTER:
            self._shown = True
            when = "once per installation" if cache_folder else "no cache folder is writable"
            print(f"Compiling ({when}) …", file=sys.stderr, flush=True)


class _Uninterrupted(event.Listener):
    """Holds Ctrl+C back while numba compiles or loads a kernel.

    It imports parts of itself then, and a part that was interrupted cannot be imported again.
    """

    def __init__(self):
        self._holds = []  # one for each kernel that is being compiled for another one

    def on_start(self, event):
        """Begin to compile or load a kernel."""
        if threading.current_thread() is threading.main_thread():
            hold = hold_interrupts()
            hold.__enter__()
            self._holds.append(hold)

    def on_end(self, event):
        """Finish it."""
        if threading.current_thread() is threading.main_thread():
            self._holds.pop().__exit__(None, None, None)


event.register("numba:compile", _CompileNotice())
event.register("numba:compiler_lock", _Uninterrupted())
