"""The engine: a Dask cluster, graphs of tasks, and their progress."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import add
from typing import Any

from polytopic.errors import PolytopicError

FAN_IN = 8  # results that one task merges
LARGE_GRAPH = "4 GB"  # graphs contain models, so that a lost one can be sent again

Progress = Callable[[int, int], object]
"""Called with the number of finished tasks and the number of all tasks."""


def require_dask() -> None:
    """Raise an error that says what to install if Dask is missing."""
    try:
        import dask.bag
        import dask.distributed  # noqa: F401
    except ImportError:
        raise PolytopicError(
            "Dask is not installed. Install it with: pip install 'polytopic[dask]'"
        ) from None


@contextmanager
def connect(address: str | None = None, *, workers: int | None = None) -> Iterator[Any]:
    """Yield a client of a cluster, and close it at the end.

    Parameters
    ----------
    address : str, default=None
        Address of the cluster's scheduler, such as ``"tcp://10.0.0.1:8786"``, or the path of a
        scheduler file.
    workers : int, default=None
        Without an address: number of processes of a cluster on this machine, each with one
        thread; by default one per core.

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
                is_file = os.path.isfile(address)
                client = Client(scheduler_file=address) if is_file else Client(address)
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


def get_client(client: Any = None) -> Any:
    """Return the given client, or the one that was created last."""
    require_dask()
    from dask.distributed import default_client

    return default_client() if client is None else client


def n_workers(client: Any) -> int:
    """Return the number of workers of a cluster."""
    return max(1, len(client.scheduler_info(n_workers=-1)["workers"]))


def delayed(function: Any) -> Callable[..., Any]:
    """Return a function whose calls are tasks; two equal calls are two tasks."""
    import dask

    return dask.delayed(function, pure=False)


def map_tasks(function: Callable, items: Sequence, *common: Any) -> list:
    """Return one task per item: ``function(item, *common)``."""
    call = delayed(function)
    return [call(item, *common) for item in items]


def broadcast(value: Any) -> Any:
    """Return a value that goes to the scheduler once, and to workers when they need it."""
    import dask

    return dask.delayed(value, traverse=False)


def tree_reduce(parts: Sequence, merge: Callable[[list], Any]) -> Any:
    """Return a task that merges the results of tasks in order, a few at a time."""
    merging, parts = delayed(merge), list(parts)
    while True:
        parts = [merging(parts[k : k + FAN_IN]) for k in range(0, len(parts), FAN_IN)]
        if len(parts) == 1:
            return parts[0]


def sum_results(parts: Sequence) -> Any:
    """Return the sum of results, in order."""
    return reduce(add, parts)


def sum_tuples(parts: Sequence[tuple]) -> tuple:
    """Return the sums of the entries of tuples."""
    return tuple(map(sum_results, zip(*parts, strict=True)))


def run(client: Any, leaves: Sequence, root: Any, progress: Progress | None = None) -> Any:
    """Run a graph whose root needs all leaves, and return the result of the root.

    Progress counts the leaves. If one fails, its error is raised and the rest is cancelled.
    """
    from dask.distributed import as_completed

    future, *waiting = client.compute([root, *leaves])
    total = len(waiting)
    try:
        finished = as_completed(waiting)
        del waiting  # so that a result is freed once it has been merged
        for done, leaf in enumerate(finished, start=1):
            if leaf.status == "error":
                leaf.result()
            leaf.release()
            if progress is not None:
                progress(done, total)
        return future.result()
    finally:
        future.cancel() if not future.done() else future.release()
