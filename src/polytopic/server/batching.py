"""Requests that wait at the same time, answered together, which is cheaper than one by one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from polytopic.server.work import Workers


class Batches:
    """Gathers what comes while a thread is busy, and gives it to a function at once.

    Parameters
    ----------
    workers : Workers
        Whose threads are used; each item counts as one of the calls that may wait.
    function : callable
        Called with items of the same kind; returns a list of as many results. Where it raises,
        the items are tried one by one, so that an item fails alone.
    most : int, default=64
        Items in one call.
    """

    def __init__(self, workers: Workers, function: Callable[[Sequence], list], most: int = 64):
        self.workers, self.function, self.most = workers, function, most
        self._free = workers.threads
        self._waiting: dict[Hashable, deque[tuple[Any, asyncio.Future]]] = {}

    async def run(self, kind: Hashable, item: Any) -> Any:
        """Return the result of one item."""
        self.workers.enter()
        try:
            loop = asyncio.get_running_loop()
            future = loop.create_future()
            self._waiting.setdefault(kind, deque()).append((item, future))
            loop.call_soon(self._next)  # all that is read in this round comes first
            return await future
        finally:
            self.workers.leave()

    def _next(self) -> None:
        """Start the next call, if there is something to do and a thread for it."""
        if not self._free or not self._waiting:
            return
        kind, queue = next(iter(self._waiting.items()))
        del self._waiting[kind]
        batch = [queue.popleft() for _ in range(min(self.most, len(queue)))]
        if queue:
            self._waiting[kind] = queue  # behind the others, so that all have their turn
        self._free -= 1
        work = self.workers.start(self._results, [item for item, _ in batch])
        work.add_done_callback(lambda done: self._give(batch, done.result()))

    def _results(self, items: Sequence) -> list[tuple[Any, Exception | None]]:
        """Return results and failures, in a thread."""
        try:
            return [(found, None) for _, found in zip(items, self.function(items), strict=True)]
        except Exception as error:
            if len(items) == 1:
                return [(None, error)]
            return [self._results([item])[0] for item in items]

    def _give(self, batch: list[tuple[Any, asyncio.Future]], results) -> None:
        self._free += 1
        self._next()
        for (_, future), (result, error) in zip(batch, results, strict=True):
            if future.done():  # nobody waits for it any more
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
