"""Runs kernels over blocks of rows on all cores.

The borders of the blocks depend on the data alone, and results come in block order, so they do
not depend on the number of threads.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

import numpy as np

BLOCK_ENTRIES = 1 << 14


def n_threads():
    """Return how many threads to use: ``POLYTOPIC_NUM_THREADS``, or one a core."""
    wanted = os.environ.get("POLYTOPIC_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted):
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def block_borders(indptr, entries=BLOCK_ENTRIES, row_cost=1):
    """Return borders of rows, so that a block holds about this many stored entries.

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
    return list(_pool(n_threads(), os.getpid()).map(function, blocks))


@lru_cache(maxsize=1)
def _pool(threads, process):
    """Return this process's pool of threads; a forked process needs its own."""
    return ThreadPoolExecutor(threads, thread_name_prefix="polytopic")


def map_rows(function, X, n_labels=0):
    """Call ``function(data, indices, indptr, rows)`` for each block of rows of a CSR matrix.

    ``indptr`` is that of the block, pointing into the whole ``data`` and ``indices``. Where there
    are many labels, blocks have fewer rows, so that an array of rows × labels stays small. Kernels
    always see the same types of integers, so that they are compiled once.
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
