"""Work that takes the processor: in threads, and never more of it than can be done soon."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class BusyError(Exception):
    """There is too much to do already."""


class Workers:
    """Threads that work off a queue of limited length.

    Parameters
    ----------
    threads : int
        Threads that work.
    waiting : int
        Calls that may wait for one.
    """

    def __init__(self, threads: int, waiting: int):
        self.threads, self.limit = threads, threads + waiting
        self.pending = 0
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="polytopic-work")

    def enter(self) -> None:
        """Count one more call; raise :class:`BusyError` where too many wait."""
        if self.pending >= self.limit:
            raise BusyError
        self.pending += 1

    def leave(self) -> None:
        """Count one call less."""
        self.pending -= 1

    def start(self, function: Callable, *arguments: Any) -> asyncio.Future:
        """Call a function in a thread, uncounted."""
        return asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)

    async def run(self, function: Callable, *arguments: Any) -> Any:
        """Call a function in a thread; raise :class:`BusyError` where too many wait."""
        self.enter()
        future = self.start(function, *arguments)
        future.add_done_callback(self._done)  # also where nobody waits for it any more
        return await asyncio.shield(future)

    def _done(self, future: asyncio.Future) -> None:
        self.leave()
        if not future.cancelled():
            future.exception()  # looked at, so that nobody complains of it

    def close(self) -> None:
        """Wait for what is being done, and end."""
        self._pool.shutdown()
