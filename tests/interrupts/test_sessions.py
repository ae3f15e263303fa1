"""An interrupted session can continue; kernels return only what survives an interrupt."""

import ast
import random
import select
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import numba
import pytest

import polytopic
from tests import compiling
from tests.interrupts.session import TASKS

PACKAGE = Path(polytopic.__file__).parent
PATIENCE = 20  # seconds until an interrupt counts as dropped
MAX_REPEATED = 2  # interrupts that may have to be sent again, per session
LIMIT = 300  # seconds in which a session must end that is no longer interrupted
SCALARS = numba.types.Number, numba.types.Boolean, numba.types.NoneType


def interrupt(name, times, longest):
    """Interrupt a session after random times; return its exit code, last output and errors."""
    random_times, repeated = random.Random(0), 0
    session = subprocess.Popen(
        [sys.executable, "-m", "tests.interrupts.session", name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a background job of a shell inherits that interrupts are ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    with session:
        try:
            for _ in range(times):
                session.stdin.write("begin\n")
                session.stdin.flush()
                if not says(session, "begun"):
                    break
                time.sleep(random_times.uniform(0, longest))
                session.send_signal(signal.SIGINT)
                # Python drops an interrupt that it notices in a finalizer; this is rare
                while not select.select([session.stdout], [], [], PATIENCE)[0]:
                    repeated += 1
                    assert repeated <= MAX_REPEATED, f"interrupts are lost\n{stacks(session)}"
                    session.send_signal(signal.SIGINT)
                if not says(session, "interrupted"):
                    break
            try:
                last, errors = session.communicate(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                pytest.fail(f"the session does not end\n{stacks(session)}")
        finally:
            session.kill()  # otherwise, a session that was not interrupted would run forever
    return session.returncode, last, errors


def says(session, word):
    """Return whether a session says a word; if it has ended instead, it says nothing."""
    line = session.stdout.readline()
    assert line in (f"{word}\n", ""), f"{line!r} instead of {word!r}\n{stacks(session)}"
    return bool(line)


def stacks(session):
    """Return what a session has written to stderr, and where each of its threads is; end it."""
    session.send_signal(signal.SIGUSR1)
    time.sleep(1)
    session.kill()
    return session.stderr.read()


@pytest.mark.compiled
@pytest.mark.parametrize("name", TASKS)
def test_a_session_continues_after_interrupts(name):
    """Each raises KeyboardInterrupt, none a crash or SystemError, and results stay the same."""
    assert_continues(name, times=25, longest=0.1)


def assert_continues(name, times, longest):
    """Check that an interrupted session computes the same result as before."""
    code, last, errors = interrupt(name, times, longest)
    assert (code, last, errors) == (0, "same\n", ""), errors


@pytest.mark.long
@pytest.mark.compiled
@pytest.mark.parametrize("name", TASKS)
def test_a_session_continues_after_many_interrupts(name):
    """The same, hundreds of times."""
    assert_continues(name, times=500, longest=0.2)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_kernels_return_scalars_to_python():
    """Arrays are filled, not returned: an interrupt while numba boxes a result is not safe.

    With a named tuple numba crashes; with other tuples and arrays it raises SystemError.
    """
    for models in compiling.MODELS.values():
        for model in models:
            compiling.use(model)
    for name in compiling.LABELERS.values():
        compiling.use_labeler(name)

    returned = {
        f"{module}.{name}": {
            signature.return_type
            for signature in getattr(import_module(module), name).nopython_signatures
        }
        for module, name in kernels_called_from_python()
    }

    assert [name for name, types in returned.items() if not types] == []  # all were called
    assert {
        name: types
        for name, types in returned.items()
        if not all(isinstance(each, SCALARS) for each in types)
    } == {}


def kernels_called_from_python():
    """Return the module and the name of each function that is marked as ``@compiled``."""
    sources = [*PACKAGE.glob("kernels/*.py"), *PACKAGE.glob("*/**/*kernels*.py")]
    return sorted(
        (".".join(("polytopic", *path.relative_to(PACKAGE).with_suffix("").parts)), node.name)
        for path in sources
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and is_marked(node)
    )


def is_marked(function):
    """Return whether a function is decorated with ``@compiled``."""
    return any(
        isinstance(decorator, ast.Name) and decorator.id == "compiled"
        for decorator in function.decorator_list
    )
