"""Compiled loops: what is kept on disk is used without the compiler."""

import os
import subprocess
import sys

import numba
import pytest

from polytopic.kernels import _KNOWN_RELEASES

PROGRAM = """
import sys
import numba
import numpy as np
from numba.core.runtime import rtsys
from polytopic.kernels.mixture import add_scores
from polytopic.kernels.mixture import count_slots

words = np.ones(1), np.zeros(1, np.int32), np.arange(2), np.full((1, 2), 3.0)
add_scores(*words, out := np.zeros((1, 2)))
print(out.tolist(), sum(add_scores.stats.cache_hits.values()))
words_ends, rows, sets, set_ends = np.array([0, 2, 3]), *np.array([[0, 1, 1], [0, 1, 1], [0, 1, 3]])
count_slots(words_ends, rows, sets, set_ends, 2, slots := np.zeros(3, np.int64))
print(slots.tolist())
try:
    count_slots(words_ends, rows, sets, set_ends, -2, slots)
except ValueError as error:
    print(error)
print({"numba.np.linalg", "numba.np.arrayobj"} & set(sys.modules), rtsys._init)


@numba.njit
def add_twice(data, indices, indptr, weights):
    out = np.zeros((1, 2))
    for _ in range(2):
        add_scores(data, indices, indptr, weights, out)
    return out


count_slots(words_ends, rows, sets, set_ends, 2, slots)
print(add_twice(*words).tolist(), slots.tolist())
"""


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.skipif(numba.version_info.short not in _KNOWN_RELEASES, reason="another numba")
def test_kept_kernels_need_no_compiler():
    """A second program runs what the first has compiled, and loads little of numba.

    Kernels have memory for arrays, and raise errors. The compiler is still there for new functions,
    which kept ones can be compiled into.
    """
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
        )

    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "[[3.0, 3.0]] 1",
        "[0, 2, 3]",
        "negative dimensions not allowed",
        "set() False",
        "[[6.0, 6.0]] [0, 2, 3]",
    ]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_other_releases_of_numba_load_kernels_their_own_way(tmp_path):
    """Where inner parts of numba may be others, what it has kept is loaded by it alone."""
    program = (
        "import numba; numba.version_info = numba.version_info._replace(short=(0, 1))\n"
        + PROGRAM.split("words_ends, rows")[0]
        + 'print("polytopic.kernels.kept" in sys.modules)'
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )

    assert done.stderr == ""
    assert done.stdout.splitlines() == ["[[3.0, 3.0]] 1", "False"]
