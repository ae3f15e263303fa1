"""Runs kernels over blocks of rows, and larger tasks, on all cores.

The borders of the blocks depend on the data alone, and results come in block order, so they do
not depend on the number of threads.

Ctrl+C interrupts the main thread only, and no running kernel. So blocks are short, those that have
not begun are cancelled, and tasks in other threads stop at their next `checkpoint`.
"""

import os
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

import numpy as np

BLOCK_ENTRIES = 1 << 14
_own = threading.local()  # its ``stop`` tells the task of this thread, if it has one, to end


def n_threads():
    """Return how many threads to use: ``POLYTOPIC_NUM_THREADS``, or one per core."""
    wanted = os.environ.get("POLYTOPIC_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted):
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def block_borders(indptr, entries=BLOCK_ENTRIES, row_cost=1):
    """Return the borders of blocks of rows that hold about this many stored entries.

    A row itself counts as ``row_cost`` entries.
    """
    work = indptr - indptr[0] + row_cost * np.arange(indptr.size)
    cuts = np.searchsorted(work, np.arange(entries, work[-1], entries))
    return np.unique(np.concatenate([[0], cuts, [indptr.size - 1]]))


def run_blocks(function, borders):
    """Call ``function(slice)`` for each block and return the results in block order."""
    blocks = [slice(*ends) for ends in pairwise(borders.tolist())]
    if len(blocks) == 1 or n_threads() == 1:
        return [function(block) for block in blocks]
    pool, futures = _pool(n_threads(), os.getpid()), []
    try:
        futures.extend(pool.submit(function, block) for block in blocks)
        return [_result(future) for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def _result(future):
    checkpoint()
    return future.result()


def run_tasks(function, tasks):
    """Call a function with each task, which may take long; return the results in task order.

    If one fails, or the calling thread is interrupted, the others end at their next `checkpoint`.
    """
    if n_threads() == 1:  # a separate thread would not return the memory that it frees
        return list(map(function, tasks))
    stop = threading.Event()

    def run(task):
        _own.stop = stop
        checkpoint()
        return function(task)

    with ThreadPoolExecutor(n_threads()) as pool:
        try:
            return list(pool.map(run, tasks))
        except BaseException:
            stop.set()
            raise


def checkpoint():
    """End the task that this thread runs if another one has failed or was interrupted."""
    stop = getattr(_own, "stop", None)
    if stop is not None and stop.is_set():
        raise CancelledError


@lru_cache(maxsize=1)
def _pool(threads, process):
    """Return this process's pool of threads, all of them started; a forked process gets its own.

    They are started by another thread, which Ctrl+C does not interrupt. A pool does not know of a
    thread whose start was interrupted, and the process would wait for it forever when it exits.
    """
    pool = ThreadPoolExecutor(threads, thread_name_prefix="polytopic")
    all_started = threading.Barrier(threads)

    def start():
        for _ in range(threads):
            pool.submit(all_started.wait)

    starter = threading.Thread(target=start)
    starter.start()
    starter.join()
    return pool


def map_rows(function, X, n_labels=0):
    """Call ``function(data, indices, indptr, rows)`` for each block of rows of a CSR matrix.

    ``indptr`` is that of the block, pointing into the whole ``data`` and ``indices``. Where there
    are many labels, blocks have fewer rows, so that an array of rows × labels stays small. Kernels
    always get the same integer types, so that they are compiled once.
    """
    indices, indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64)
    return run_blocks(
        lambda rows: function(X.data, indices, indptr[rows.start : rows.stop + 1], rows),
        block_borders(indptr, row_cost=1 + n_labels // 32),
    )


def map_sets(function, X, sets):
    """Call ``function(data, indices, indptr, labels, ends, rows)`` for each block of documents.

    ``labels, ends`` are the documents' label sets, rows of a CSR indicator: ``ends`` is the
    ``indptr`` of the block.
    """
    labels, ends = sets.indices.astype(np.int64), sets.indptr.astype(np.int64)
    return map_rows(
        lambda data, indices, indptr, rows: function(
            data, indices, indptr, labels, ends[rows.start : rows.stop + 1], rows
        ),
        X,
    )
