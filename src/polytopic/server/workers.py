"""CPU-bound work off the event loop: a bounded thread pool, and a batcher on top of it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class BusyError(Exception):
    """The queue is full."""


class Workers:
    """A thread pool with a bounded queue.

    Parameters
    ----------
    threads : int
        Number of threads.
    max_waiting : int
        Number of calls that may wait for a thread.

    Attributes
    ----------
    pending : int
        Number of calls that are running or waiting.
    limit : int
        The largest number of pending calls.
    """

    def __init__(self, threads: int, max_waiting: int):
        self.threads, self.limit = threads, threads + max_waiting
        self.pending = 0
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="polytopic-worker")

    def enter(self) -> None:
        """Count one more pending call; raise :class:`BusyError` if the queue is full."""
        if self.pending >= self.limit:
            raise BusyError
        self.pending += 1

    def leave(self) -> None:
        """Count one fewer pending call."""
        self.pending -= 1

    def submit(self, function: Callable, *arguments: Any) -> asyncio.Future:
        """Call a function in a thread without counting the call."""
        return asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)

    async def run(self, function: Callable, *arguments: Any) -> Any:
        """Call a function in a thread; raise :class:`BusyError` if the queue is full."""
        self.enter()
        future = self.submit(function, *arguments)
        future.add_done_callback(self._finish)  # runs even if the caller is cancelled
        try:
            return await asyncio.shield(future)
        finally:
            del future  # an error would refer to it, and it to the error, until the next collection

    def _finish(self, future: asyncio.Future) -> None:
        self.leave()
        if not future.cancelled():
            future.exception()  # mark it as retrieved, or asyncio logs it

    def close(self) -> None:
        """Wait for running calls and stop the threads."""
        self._pool.shutdown()


class Batcher:
    """Collects the items that arrive while all threads are busy, and processes them together.

    Parameters
    ----------
    workers : Workers
        The threads to use; each item counts as one pending call.
    function : callable
        Takes a sequence of items with the same key and returns a list with one result per item.
        If it raises, the items are retried one by one, so that only the bad ones fail.
    max_items : int, default=64
        The largest batch.
    """

    def __init__(self, workers: Workers, function: Callable[[Sequence], list], max_items: int = 64):
        self.workers, self.function, self.max_items = workers, function, max_items
        self._idle_threads = workers.threads
        self._queues: dict[Hashable, deque[tuple[Any, asyncio.Future]]] = {}

    async def run(self, key: Hashable, item: Any) -> Any:
        """Return the result of one item; items with equal keys may share a batch."""
        self.workers.enter()
        try:
            loop = asyncio.get_running_loop()
            future = loop.create_future()
            self._queues.setdefault(key, deque()).append((item, future))
            loop.call_soon(self._start_next)  # after all requests read in this loop iteration
            return await future
        finally:
            self.workers.leave()
            del future  # an error would refer to it, and it to the error

    def _start_next(self) -> None:
        """Start the next batch if there is one and a thread is idle."""
        if not self._idle_threads or not self._queues:
            return
        key, queue = next(iter(self._queues.items()))
        del self._queues[key]
        batch = [queue.popleft() for _ in range(min(self.max_items, len(queue)))]
        if queue:
            self._queues[key] = queue  # moves to the end: round robin over the keys
        self._idle_threads -= 1
        future = self.workers.submit(self._process, [item for item, _ in batch])
        future.add_done_callback(lambda done: self._deliver(batch, done.result()))

    def _process(self, items: Sequence) -> list[tuple[Any, Exception | None]]:
        """Return a (result, error) pair per item; runs in a thread."""
        try:
            return [(result, None) for _, result in zip(items, self.function(items), strict=True)]
        except Exception as error:
            if len(items) == 1:
                return [(None, error)]
            return [self._process([item])[0] for item in items]

    def _deliver(self, batch: list[tuple[Any, asyncio.Future]], results) -> None:
        self._idle_threads += 1
        self._start_next()
        for (_, future), (result, error) in zip(batch, results, strict=True):
            if future.done():  # the caller was cancelled
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
        results.clear()  # frames in the traceback of an error refer to it
