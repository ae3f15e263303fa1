"""Runs kernels over blocks of rows, and larger tasks, on all cores.

The borders of the blocks depend on the data alone, and results come in block order, so they do
not depend on the number of threads.

Ctrl+C interrupts no running kernel. So blocks are short, those that have not begun are cancelled,
and tasks in other threads stop at their next `checkpoint`.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

import numpy as np

from polytopic.interrupts import checkpoint, hold_interrupts, stop_events, stop_on

BLOCK_ENTRIES = 1 << 14
STOP_POLL = 0.1  # seconds between looks at Ctrl+C while waiting for a result


def n_threads():
    """Return how many threads to use: ``POLYTOPIC_NUM_THREADS``, or one per core."""
    setting = os.environ.get("POLYTOPIC_NUM_THREADS", "")
    if setting.isdigit() and int(setting):
        return int(setting)
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
    with hold_interrupts():
        return _results(_pool(n_threads(), os.getpid()), function, blocks)


def run_tasks(function, tasks):
    """Call a function with each task, which may take long; return the results in task order.

    If one fails, or the calling thread is interrupted, the others end at their next `checkpoint`.
    """
    if n_threads() == 1:  # a separate thread would not return the memory that it frees
        return list(map(function, tasks))
    stop = threading.Event()
    stops = (*stop_events(), stop)  # a task within a task ends with the outer one

    def run(task):
        with stop_on(*stops):
            checkpoint()
            return function(task)

    with hold_interrupts():
        return _run_in_new_pool(run, tasks, stop)


def _run_in_new_pool(function, tasks, stop):
    """Return the results of tasks in threads of their own, which end when this function does.

    The pool is deleted here, while interrupts are held: Python drops those that come in finalizers.
    """
    with ThreadPoolExecutor(n_threads()) as pool:
        try:
            return _results(pool, function, tasks)
        except BaseException:
            stop.set()
            raise


def _results(pool, function, tasks):
    """Return the results of a pool in the order of its tasks, or cancel those not yet begun.

    Call it with interrupts held: an interrupt inside a pool may leave a lock taken, and whoever
    needs it next would wait forever.
    """
    futures = [pool.submit(function, task) for task in tasks]
    try:
        return [_wait_for(future) for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def _wait_for(future):
    """Return the result of a future, unless this thread should stop before it is there."""
    while True:
        checkpoint()
        try:
            return future.result(STOP_POLL)
        except TimeoutError:
            if future.done():  # it has just ended, perhaps with a TimeoutError of its own
                return future.result()


@lru_cache(maxsize=1)
def _pool(threads, process):
    """Return this process's pool of threads; a forked process gets its own."""
    return ThreadPoolExecutor(threads, thread_name_prefix="polytopic")


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
