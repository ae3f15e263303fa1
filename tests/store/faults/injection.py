"""A process in which calls to the system fail: run with the shim preloaded.

It takes requests as lines of JSON (an operation, and how many of all faults to try, drawn with a
seed) and answers each with a line: how many faults were tried, and what went wrong. Operations run
in processes of their own, forked from this one, which has loaded all that takes time.
"""

import ctypes
import errno
import json
import os
import pickle
import random
import shutil
import signal
import sys
import tempfile
import traceback
from itertools import product
from pathlib import Path

from polytopic.errors import PolytopicError
from tests.store.faults.operations import OPERATIONS, prepare

COUNT, ONCE, EVER, SHORT, KILL, TORN = range(1, 7)  # as in faults.c
FAULTS = [
    (ONCE, errno.EIO),
    (ONCE, errno.ENOSPC),
    (EVER, errno.ENOSPC),
    (SHORT, errno.EIO),
    (KILL, 0),
    (TORN, 0),
]
NAMES = {ONCE: "once", EVER: "ever", SHORT: "short", KILL: "kill", TORN: "torn"}
SHIM = ctypes.CDLL(None)


def forked(function, *arguments):
    """Return what a function returns in another process, and the signal that ended it, if any."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(_caught(function, *arguments), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        content = pipe.read()
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    returned, failure = pickle.loads(content)  # noqa: S301  # of our own process
    if failure:
        raise AssertionError(failure)
    return returned, None


def _caught(function, *arguments):
    try:
        return function(*arguments), None
    except BaseException:
        return None, traceback.format_exc()


def armed(operation, folder, mode, point, code):
    """Run an operation while a call fails; return its message, and the number of calls."""
    SHIM.faults_arm(f"{folder}/".encode(), mode, ctypes.c_long(point), code)
    message = "done"
    try:
        operation.run(folder)
    except PolytopicError as error:
        message = str(error)
    finally:
        calls = SHIM.faults_disarm()
    return message, calls


def attempt(operation, folder, mode, point, code):
    """Run an operation while a call fails, then read the state in the same process."""
    message, calls = armed(operation, folder, mode, point, code)
    state = operation.read(folder / operation.target) if mode != EVER else None
    return message, calls, state


class Trial:
    """An operation, with the states before and after it."""

    def __init__(self, operation, place):
        self.operation, self.place = operation, place
        self.template, self.folder = place / "template", place / "run"
        self.before = forked(self._read, self.template)[0]
        self._copy()
        (message, self.calls), _ = forked(armed, operation, self.folder, COUNT, 0, 0)
        if message != "done":
            raise AssertionError(message)
        self.after = forked(self._read, self.folder)[0]
        self._check_secrets()

    def _copy(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.template, self.folder)

    def _read(self, folder):
        return self.operation.read(folder / self.operation.target)

    def fails(self, point, mode, code):
        """Make a call fail; return what went wrong because of it, None if nothing did."""
        self._copy()
        try:
            self._try(point, mode, code)
        except AssertionError as error:
            return str(error)
        return None

    def _try(self, point, mode, code):
        answer, ended_by = forked(attempt, self.operation, self.folder, mode, point, code)
        message = None
        if answer is None:
            _assert(ended_by == signal.SIGKILL and mode in (KILL, TORN), f"ended by {ended_by}")
        else:
            message, _, state_inside = answer
            _assert("\n" not in message, f"several lines: {message}")
            if state_inside is not None:
                self._check(message, state_inside, "in the same process")
        state = forked(self._read, self.folder)[0]
        self._check(message, state, "after it was opened again")
        if state != self.after:
            forked(self.operation.run, self.folder)
            state = forked(self._read, self.folder)[0]
            _assert(state == self.after, "trying again does not do it")
        elif self.operation.secrets:
            forked(self.operation.run, self.folder)
        self._check_secrets()

    def _check(self, message, state, when):
        """Check that a state is consistent with the message."""
        stages = (self.before, self.after, *self.operation.stages)
        _assert(state in stages, f"{when}: it is neither as before nor as after ({message})")
        if message == "done" or "are deleted, but copies" in (message or ""):
            _assert(state == self.after, f"{when}: reported as done, but is not ({message})")
        if message and "nothing was changed" in message:
            _assert(state != self.after, f"{when}: reported as not done, but is ({message})")

    def _check_secrets(self):
        files = self.folder.glob(f"{self.operation.target}*")
        content = b"".join(file.read_bytes() for file in files)
        left = [mark for mark in self.operation.secrets if mark in content]
        _assert(not left, f"traces are left: {left}")


def _assert(holds, message):
    if not holds:
        raise AssertionError(message)


def serve(place):
    """Answer requests."""
    (place / "template").mkdir()
    (place / "warm").mkdir()
    forked(prepare, place / "template")
    for (
        operation
    ) in OPERATIONS.values():  # once here, so that the children inherit the loaded modules
        shutil.rmtree(place / "warm")
        shutil.copytree(place / "template", place / "warm")
        operation.run(place / "warm")
    trials = {}
    print("ready", flush=True)
    for line in sys.stdin:
        name, number, seed = json.loads(line)
        if name not in trials:
            trials[name] = Trial(OPERATIONS[name], place)
        trial = trials[name]
        faults = list(product(range(1, trial.calls + 1), FAULTS))
        if number is not None:
            faults = random.Random(seed).sample(faults, min(number, len(faults)))
        wrong = {}
        for point, (mode, code) in faults:
            problem = trial.fails(point, mode, code)
            if problem:
                wrong[f"call {point}, {NAMES[mode]}, {errno.errorcode.get(code)}"] = problem
        print(json.dumps([trial.calls, len(faults), wrong]), flush=True)


if __name__ == "__main__":
    memory = "/dev/shm"  # noqa: S108  # where files are synchronised in no time
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        serve(Path(os.path.realpath(folder)))
