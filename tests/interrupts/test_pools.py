"""Wherever Ctrl+C interrupts a thread pool, the pool stays usable."""

import subprocess
import sys

import pytest

PROGRAM = """
import concurrent.futures, itertools, os, signal, sys, threading
import numpy as np
from polytopic.kernels.blocks import run_blocks, run_tasks

POOLS = os.path.dirname(concurrent.futures.__file__), threading.__file__
WORK = {
    "blocks": lambda: run_blocks(lambda block: block.start, np.arange(4)),
    "tasks": lambda: run_tasks(lambda task: task, range(3)),
}


def is_interrupted(work, step):
    '''Work, and interrupt at this step of the pool's code; return False if it has fewer steps.'''
    steps = itertools.count()

    def trace(frame, event, argument):
        inside = frame.f_code.co_filename.startswith(POOLS)
        if inside and event in ("line", "return") and next(steps) == step:
            os.kill(os.getpid(), signal.SIGINT)
        return trace if inside or event == "call" else None

    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
work = WORK[sys.argv[1]]
for step in itertools.count(step=int(sys.argv[2])):
    child = os.fork()
    if not child:
        signal.alarm(20)
        was_interrupted = is_interrupted(work, step)
        assert work() == [0, 1, 2]
        sys.exit(130 if was_interrupted else 0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code != 130:
        print(step, code)
        break
"""


@pytest.mark.parametrize("stride", [11, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("work", ["blocks", "tasks"])
def test_a_pool_works_after_an_interrupt(monkeypatch, work, stride):
    """Interrupt the pool's code at some or all of its lines and returns, then use it again."""
    monkeypatch.setenv("POLYTOPIC_NUM_THREADS", "2")

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, work, str(stride)],
        capture_output=True,
        text=True,
        timeout=600,
    )

    assert not done.stderr
    steps, code = map(int, done.stdout.split())
    assert code == 0  # no interrupt came, since the work has fewer steps
    assert steps > 100
