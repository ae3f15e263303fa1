"""Ctrl+C is held back where it would leave something open, but is never lost."""

import os
import signal
import threading
import time
from concurrent.futures import CancelledError

import pytest

from polytopic.interrupts import PATIENCE, checkpoint, hold_interrupts, stop_events, stop_on
from polytopic.kernels.blocks import run_tasks


@pytest.fixture(autouse=True)
def default_handler():
    """Let interrupts raise KeyboardInterrupt, as in a Python session."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def interrupt():
    """Interrupt this process, and let Python notice it."""
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0)


def test_an_interrupt_comes_at_the_end():
    """All work inside the context is finished first, including that of an inner context."""
    done = []

    def work():
        with hold_interrupts():
            with hold_interrupts():
                interrupt()
                done.append("inner")
            done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["inner", "outer"]


def test_an_interrupt_comes_at_a_checkpoint():
    """It is raised once, and in the main thread only."""
    with hold_interrupts():
        interrupt()
        other = threading.Thread(target=checkpoint)
        other.start()
        other.join()
        with pytest.raises(KeyboardInterrupt):
            checkpoint()
        checkpoint()


def test_an_error_of_held_code_does_not_lose_the_interrupt():
    """The interrupt wins; the error is its context."""

    def fail():
        with hold_interrupts():
            interrupt()
            raise ValueError("an error")

    with pytest.raises(KeyboardInterrupt) as raised:
        fail()
    assert isinstance(raised.value.__context__, ValueError)


def test_a_second_interrupt_after_a_while_is_not_held_back(monkeypatch):
    """A user who waits for a server that does not answer can still leave."""
    now = time.monotonic()
    with hold_interrupts():
        interrupt()
        interrupt()
        monkeypatch.setattr(time, "monotonic", lambda: now + PATIENCE + 1)
        with pytest.raises(KeyboardInterrupt):
            interrupt()
        monkeypatch.undo()
        with pytest.raises(KeyboardInterrupt):
            checkpoint()


def test_other_threads_and_ignored_interrupts_are_left_alone():
    """Signal handlers stay as they are in other threads, and where interrupts are ignored."""
    raised = []

    def work():
        with hold_interrupts():
            raised.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert raised == [signal.default_int_handler]

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with hold_interrupts():
        interrupt()
        checkpoint()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_tasks_within_tasks_end_with_the_outer_ones(monkeypatch):
    """A cancelled task cancels the tasks that it has started."""
    monkeypatch.setenv("POLYTOPIC_NUM_THREADS", "2")
    outer, begun, ended = threading.Event(), threading.Event(), []

    def inner(_):
        begun.set()
        try:
            while True:
                checkpoint()
                time.sleep(0.001)
        except CancelledError:
            ended.append("inner")
            raise

    def run():
        with stop_on(outer), pytest.raises(CancelledError):
            run_tasks(inner, range(2))
        assert stop_events() == ()

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(10)
    outer.set()
    thread.join(10)

    assert not thread.is_alive()
    assert ended
