"""A pool whose threads are being started does not keep an interrupted process alive."""

import subprocess
import sys

PROGRAM = """
import os, sys, threading
import numpy as np
from polytopic.kernels.blocks import run_blocks


def interrupted(line):
    left = line

    def trace(frame, event, argument):
        nonlocal left
        if frame.f_code is threading.Thread.start.__code__:
            left -= event == "line"
            if left < 0:
                left = sys.maxsize
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        run_blocks(lambda block: block.start, np.arange(9))
    finally:
        sys.settrace(None)


for line in range(16):
    child = os.fork()
    if not child:
        try:
            interrupted(line)
        except KeyboardInterrupt:
            sys.exit(130)
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_an_interrupted_start_of_threads_does_not_hang(monkeypatch):
    """Wherever it is interrupted, the process ends; where all have started, it does its work."""
    monkeypatch.setenv("POLYTOPIC_NUM_THREADS", "2")

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True
    )

    codes = done.stdout.split()
    assert set(codes) == {"130", "0"}
