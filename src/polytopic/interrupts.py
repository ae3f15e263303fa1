"""Ctrl+C at points where nothing is left open or running.

Python raises KeyboardInterrupt in the main thread, between any two of its steps, and nowhere else.
So long tasks in other threads end at their next `checkpoint`, and code that must not stop between
two steps, such as a transaction, holds interrupts back until its end or its next `checkpoint`.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from types import FrameType

PATIENCE = 3.0  # seconds after which another Ctrl+C is no longer held back


class _Interrupts:
    """The interrupts of this process that are held back."""

    def __init__(self) -> None:
        # what handles them when they are released
        self.former: Callable = signal.default_int_handler
        self.since: float | None = None  # when the first one arrived

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Remember an interrupt, or handle it at once if the last one has not helped."""
        if self.since is None:
            self.since = time.monotonic()
        elif time.monotonic() - self.since > PATIENCE:
            self.former(number, frame)

    def release(self) -> None:
        """Handle the interrupt that was held back, if there is one."""
        if self.since is not None:
            self.since = None
            self.former(signal.SIGINT, None)


_interrupts = _Interrupts()
_local = threading.local()  # its ``stops`` are the events that end the tasks of this thread


@contextmanager
def hold_interrupts() -> Iterator[None]:
    """Hold Ctrl+C back until the end of the block, or until a `checkpoint` in it."""
    former = signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or not callable(former) or former == _interrupts.receive:
        yield
        return
    _interrupts.former = former
    signal.signal(signal.SIGINT, _interrupts.receive)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
        _interrupts.release()


def checkpoint() -> None:
    """Raise if this thread's task should end, or if an interrupt is being held back."""
    if any(stop.is_set() for stop in stop_events()):
        raise CancelledError
    if _interrupts.since is not None and threading.current_thread() is threading.main_thread():
        _interrupts.release()


def stop_events() -> tuple[threading.Event, ...]:
    """Return the events that tell the tasks of this thread to end."""
    return getattr(_local, "stops", ())


@contextmanager
def stop_on(*stops: threading.Event) -> Iterator[None]:
    """End this thread's task at its first `checkpoint` after one of the events."""
    before = stop_events()
    _local.stops = stops
    try:
        yield
    finally:
        _local.stops = before
