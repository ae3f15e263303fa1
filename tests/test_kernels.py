"""Compiled loops: what is kept on disk is used without the compiler."""

import os
import subprocess
import sys

import numba
import pytest

PROGRAM = """
import sys
import numpy as np
from polytopic.kernels import mixture

mixture.add_scores(
    np.ones(1), np.zeros(1, np.int32), np.arange(2), np.full((1, 2), 3.0), out := np.zeros((1, 2))
)
print(out.tolist(), sum(mixture.add_scores.stats.cache_hits.values()))
print("numba.np.linalg" in sys.modules)
"""


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_kept_kernels_need_no_compiler():
    """A second program runs what the first has compiled, and loads little of numba."""
    command = [sys.executable, "-c", PROGRAM]
    for _ in range(2):
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env=dict(os.environ)
        )

    assert done.stdout.split("\n")[:2] == ["[[3.0, 3.0]] 1", "False"]
