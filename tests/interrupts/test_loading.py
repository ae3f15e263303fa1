"""Ctrl+C while numba compiles or loads a kernel for the first time does no lasting harm."""

import subprocess
import sys

import pytest

PROGRAM = """
import itertools, os, signal, sys
import numpy as np
import polytopic

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it


def interrupt_once(frame, event, argument, calls=itertools.count(1)):
    '''Interrupt one of the calls of a file's code.'''
    if frame.f_code.co_filename.endswith(sys.argv[2]) and next(calls) == int(sys.argv[3]):
        sys.settrace(None)
        os.kill(os.getpid(), signal.SIGINT)


def count_steps():
    '''Return the number of rising steps that fit two falling values.'''
    polytopic.Labeler
    from polytopic.kernels.isotonic import pool_adjacent
    begins, heights = np.empty(3, np.int64), np.empty(2)
    return pool_adjacent(np.array([3.0, 1.0]), np.ones(2), begins, heights)


if sys.argv[1] == "kernel":
    import polytopic.kernels.isotonic
sys.settrace(interrupt_once)
try:
    count_steps()
except KeyboardInterrupt:
    print("interrupted")
sys.settrace(None)
print(count_steps())
"""


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("loaded", "file", "call"),
    [
        ("kernel", "numba/cpython/unicode.py", 5),
        ("library", "numba/core/types/__init__.py", 1),
        ("library", "numba/core/pythonapi.py", 1),
    ],
)
def test_an_interrupted_session_can_still_use_kernels(loaded, file, call):
    """The interrupt comes once the kernel or the library is loaded, and the next call works."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, loaded, file, str(call)],
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert (done.stdout, done.stderr) == ("interrupted\n1\n", "")
