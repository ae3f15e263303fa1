"""The engine: a Dask cluster, graphs of tasks that it runs, and their progress."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from polytopic.errors import PolytopicError

FAN_IN = 8  # results that are merged at once
LARGE_GRAPH = "4 GB"  # models are part of graphs, so that a lost one can be had again

Progress = Callable[[int, int], object]
"""Is called with the tasks that are done, and all of them."""


def require_dask() -> None:
    """Say in a sentence what to install where Dask is missing."""
    try:
        import dask.bag
        import dask.distributed  # noqa: F401
    except ImportError:
        raise PolytopicError(
            "Dask is not installed. Install it with: pip install 'polytopic[dask]'"
        ) from None


@contextmanager
def connect(address: str | None = None, *, workers: int | None = None) -> Iterator[Any]:
    """Give the client of a cluster, which is left at the end.

    Parameters
    ----------
    address : str, default=None
        Of the cluster's scheduler, such as ``"tcp://10.0.0.1:8786"``, or a file that tells it.
    workers : int, default=None
        Without an address: processes of a cluster on this machine, each of one thread; by default
        one for each core.

    Examples
    --------
    >>> with connect(workers=1) as client:  # doctest: +SKIP
    ...     labeler = fit(Labeler("pmm1"), "news-*.jsonl", client=client)
    """
    require_dask()
    import dask
    from dask.distributed import Client, LocalCluster

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": LARGE_GRAPH}):
        if address is not None:
            try:
                where = {"scheduler_file": address} if os.path.isfile(address) else {}
                client = Client(**where) if where else Client(address)
            except (OSError, ValueError) as error:
                raise PolytopicError(f"no Dask scheduler answers at {address!r}.") from error
            with client:
                yield client
            return
        with (
            LocalCluster(
                n_workers=workers or os.cpu_count(),
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                env={"POLYTOPIC_NUM_THREADS": "1"},
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client


def the_client(client: Any) -> Any:
    """Return the client that is given, or the one that was made last."""
    require_dask()
    from dask.distributed import default_client

    return default_client() if client is None else client


def n_workers(client: Any) -> int:
    """Return how many workers a cluster has."""
    return max(1, len(client.scheduler_info(n_workers=-1)["workers"]))


def delayed(function: Callable) -> Any:
    """Return a function whose calls are tasks; equal calls are different tasks."""
    import dask

    return dask.delayed(function, pure=False)


def tasks(function: Callable, items: Sequence, *shared: Any, name: str) -> list:
    """Return a task for each item, which is called with it and with what all share."""
    import dask

    whole = dask.delayed(function, name=name, pure=False)
    return [whole(item, *shared) for item in items]


def shared(value: Any) -> Any:
    """Return a value that is sent to the scheduler once, and to workers when they need it."""
    import dask

    return dask.delayed(value, traverse=False)


def merged(parts: Sequence, merge: Callable[[list], Any]) -> Any:
    """Return the task that merges the results of tasks, a few at a time, in their order."""
    import dask

    merging = dask.delayed(merge, pure=False)
    parts = list(parts)
    while True:
        parts = [merging(parts[k : k + FAN_IN]) for k in range(0, len(parts), FAN_IN)]
        if len(parts) == 1:
            return parts[0]


def run(client: Any, leaves: Sequence, root: Any, progress: Progress | None = None) -> Any:
    """Run a graph whose root needs all leaves, and return the result of the root.

    Progress is that of the leaves. What fails is raised, and the rest given up.
    """
    from dask.distributed import as_completed

    future, *waiting = client.compute([root, *leaves])
    total = len(waiting)
    try:
        finished = as_completed(waiting)
        del waiting  # a result is forgotten when it has been merged
        for done, leaf in enumerate(finished, start=1):
            if leaf.status == "error":
                leaf.result()
            leaf.release()
            if progress is not None:
                progress(done, total)
        return future.result()
    finally:
        future.cancel() if not future.done() else future.release()
