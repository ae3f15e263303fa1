"""Compiled kernels: the cache on disk, and the notice while compiling."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import polytopic

PROGRAM = """
import numpy as np
from polytopic.kernels.isotonic import pool_adjacent

begins, heights = np.empty(4, np.int64), np.empty(3)
n = pool_adjacent(np.array([1.0, 3.0, 2.0]), np.ones(3), begins, heights)
print(heights[:n].tolist(), sum(pool_adjacent.stats.cache_hits.values()))
"""
SLOW = "import polytopic.kernels as kernels; kernels._NOTICE_AFTER = 0.0\n" + PROGRAM

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


def run(program, **environment):
    """Run a program in another process; return what it writes to stdout and stderr."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | environment,
    )
    return done.stdout.strip(), done.stderr.strip()


@pytest.fixture
def package(tmp_path):
    """Copy the package; return the folder that contains it."""
    shutil.copytree(
        Path(polytopic.__file__).parent,
        tmp_path / "polytopic",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    return tmp_path


def test_another_process_loads_what_the_first_has_compiled(tmp_path):
    """The second process has a cache hit and the same result."""
    outputs = [run(PROGRAM, NUMBA_CACHE_DIR=str(tmp_path))[0] for _ in range(2)]

    assert outputs == ["[1.0, 2.5] 0", "[1.0, 2.5] 1"]


def test_a_change_of_any_kernel_source_invalidates_the_cache(package):
    """Also of one that the kernel does not use; outdated folders are deleted."""
    folders = package / "polytopic" / "__pycache__"
    first = run(PROGRAM, PYTHONPATH=str(package), NUMBA_CACHE_DIR="")
    before = list(folders.glob("polytopic-kernels-*"))
    with open(package / "polytopic" / "kernels" / "blocks.py", "a") as file:
        file.write("# changed\n")

    again = run(PROGRAM, PYTHONPATH=str(package), NUMBA_CACHE_DIR="")

    assert first[0] == again[0] == "[1.0, 2.5] 0"
    assert len(before) == 1
    assert len(after := list(folders.glob("polytopic-kernels-*"))) == 1
    assert before != after


def test_numba_keeps_its_cache_folder():
    """Decorating a kernel does not move the caches of other programs."""
    program = "import numba, polytopic.kernels.isotonic; print(numba.config.CACHE_DIR)"

    assert run(program, NUMBA_CACHE_DIR="")[0] == ""


def test_compiling_is_announced_once(tmp_path):
    """On stderr, when it takes long; not when the kernel is loaded from the cache."""
    messages = [run(SLOW, NUMBA_CACHE_DIR=str(tmp_path))[1] for _ in range(2)]

    assert messages == ["Compiling (once per installation) …", ""]


def test_kernels_work_where_no_folder_is_writable(package):
    """They are compiled in each process, and the notice says why."""
    for name in ("user", "numba"):
        (package / name).touch()  # a file where a folder would be needed
    shutil.rmtree(package / "polytopic" / "__pycache__", ignore_errors=True)
    (package / "polytopic" / "__pycache__").touch()

    done = run(
        SLOW,
        PYTHONPATH=str(package),
        PYTHONDONTWRITEBYTECODE="1",
        XDG_CACHE_HOME=str(package / "user"),
        NUMBA_CACHE_DIR=str(package / "numba"),
    )

    assert done == ("[1.0, 2.5] 0", "Compiling (no cache folder is writable) …")
