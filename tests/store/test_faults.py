"""Every call that writes fails once: a change is there whole or not at all, and nothing is damaged.

As SQLite's own tests do: a shim that is preloaded counts the calls below a folder that write,
synchronise, cut, rename or delete files or open them for writing, and lets one of them go wrong.
Then the store is opened again, verified, compared with what it was and what it should be, and
what was to be done is done again.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.faults.operations import OPERATIONS

SOURCE = Path(__file__).parent / "faults" / "faults.c"
SAMPLED = 5  # faults per operation in the short test


@pytest.fixture(scope="module")
def inject(tmp_path_factory):
    """Return a function that makes calls fail during an operation, and returns the problems."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("a C compiler on Linux is needed to let calls fail")
    shim = tmp_path_factory.mktemp("faults") / "faults.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", shim, SOURCE, "-ldl"], check=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.store.faults.injection"],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"LD_PRELOAD": str(shim)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"

    def request(operation, number, seed=0):
        process.stdin.write(json.dumps([operation, number, seed]) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    yield request
    process.stdin.close()
    assert process.wait(60) == 0


@pytest.mark.parametrize("operation", OPERATIONS)
def test_some_faults_leave_no_partial_change(inject, operation):
    """Some faults at random moments: a change is complete or absent, and can be repeated."""
    calls, tried, problems = inject(operation, SAMPLED, seed=7)

    assert calls > 4
    assert tried == SAMPLED
    assert problems == {}


@pytest.mark.long
@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_fault_leaves_a_partial_change(inject, operation):
    """All faults at all moments."""
    calls, tried, problems = inject(operation, None)

    assert tried >= 5 * calls
    assert problems == {}
