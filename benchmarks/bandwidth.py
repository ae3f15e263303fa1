"""How close the loops come to the memory bandwidth of the machine, on one thread.

Usage: bandwidth.py [CORPUS]

For each model: the bytes that it must read, once per pass, and the share of the machine's bandwidth
that it reaches with them. The bandwidth is measured here, by copying a large array and by summing
rows of weights at random places, which is the least that scoring documents takes.
"""

import os
import sys
import time

os.environ.setdefault("POLYTOPIC_NUM_THREADS", "1")

import numba
import numpy as np
from common import markdown, split_counts

from polytopic import PDMM, PMM1, CoL, NaiveBayes
from polytopic.models import MML
from polytopic.text import TermWeights

REPEATS = 5
COPIED = 1 << 28  # bytes
ENTRY = 8 + 4  # bytes of a count and of the number of its word


@numba.njit
def sum_rows_at(places, weights, out):
    """Add the rows at these places."""
    for place in places:
        row = weights[place]
        for j in range(row.size):
            out[j] += row[j]


def shortest_time(function):
    """Return the least CPU time of some calls, the first of which does not count."""
    function()
    times = []
    for _ in range(REPEATS):
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return min(times)


def copy_bandwidth():
    """Return the bytes a second of a copy, read and written."""
    source = np.ones(COPIED // 8)
    target = np.empty_like(source)
    return 2 * source.nbytes / shortest_time(lambda: np.copyto(target, source))


def row_bandwidth(X, width, dtype):
    """Return the bytes a second that rows of weights can be added at, in the order of documents."""
    weights = np.ones((X.shape[1], width), dtype)
    out = np.zeros(width, dtype)
    places = X.indices.astype(np.int64)
    return (
        places.size
        * width
        * weights.itemsize
        / shortest_time(lambda: sum_rows_at(places, weights, out))
    )


def main(corpus="reuters21578"):
    """Measure all and write the table."""
    X, Y, T, _ = split_counts(corpus)
    weighed = TermWeights("ltc").fit(X)
    Xw, Tw = weighed.transform(X), weighed.transform(T)
    n_words, n_labels = X.shape[1], Y.shape[1]
    copied = copy_bandwidth()
    print(f"{corpus}: {X.shape[0]:,} documents to learn with {X.nnz:,} entries, {T.shape[0]:,} to ")
    print(f"label with {T.nnz:,}; {n_words:,} words, {n_labels} labels. A copy moves ")
    print(f"{copied / 1e9:.1f} GB/s.\n")
    rows = []

    def add_row(name, task, seconds, n_bytes, width, dtype, entries):
        limit = row_bandwidth(entries, width, dtype)
        speed = n_bytes / seconds
        rows.append(
            [
                name,
                task,
                f"{1e3 * seconds:.1f}",
                f"{n_bytes / 1e6:,.0f}",
                f"{speed / 1e9:.2f}",
                f"{100 * speed / copied:.0f}",
                f"{limit / 1e9:.1f}",
                f"{100 * speed / limit:.0f}",
            ]
        )

    def table(model):
        return n_words * n_labels * 8 * 2  # theta and its logarithm, written once

    nb = NaiveBayes().fit(X, Y)
    counted = nb.counts_
    seconds = shortest_time(lambda: NaiveBayes().fit_counts(counted))
    add_row("nb", "learn", seconds, counted.matrix.nnz * ENTRY + table(nb), n_labels, np.float64, X)
    scored = T.nnz * (ENTRY + 8 * n_labels) + T.shape[0] * n_labels * 8
    add_row(
        "nb",
        "label",
        shortest_time(lambda: nb.predict_indicator(T)),
        scored,
        n_labels,
        np.float64,
        T,
    )

    pmm1 = PMM1(temperature=4.0).fit(X, Y)
    seconds = shortest_time(lambda: PMM1(temperature=4.0).fit_counts(counted))
    pairs = np.diff(counted.matrix.indptr) @ np.diff(counted.indicator.indptr)
    moved = pmm1.n_iter_ * pairs * (8 + 8 + 8) + table(pmm1)  # places, parameters, expected counts
    add_row("pmm1", "learn", seconds, moved, n_labels, np.float64, X)
    add_row(
        "pmm1",
        "label",
        shortest_time(lambda: pmm1.predict_indicator(T)),
        scored,
        n_labels,
        np.float64,
        T,
    )
    few = T[:300]
    pdmm = PDMM(temperature=4.0).fit(X, Y)
    seconds = shortest_time(lambda: PDMM(temperature=4.0).fit_counts(counted))
    add_row("pdmm", "learn", seconds, moved, n_labels, np.float64, X)
    scored_few = few.nnz * (ENTRY + 8 * n_labels) + few.shape[0] * n_labels * 8
    seconds = shortest_time(lambda: pdmm.predict_indicator(few))
    add_row("pdmm", "label, 300", seconds, scored_few, n_labels, np.float64, few)

    mml = MML().fit(Xw, Y)
    width = mml.to_arrays()["weights"][0].size
    seconds = shortest_time(lambda: MML().fit(Xw, Y))
    moved = mml.n_iter_ * Xw.nnz * (4 + 4 + 4 * width)
    add_row("mml", "learn", seconds, moved, width, np.float32, Xw)
    scored = Tw.nnz * (4 + 4 + 4 * width)
    add_row(
        "mml",
        "label",
        shortest_time(lambda: mml.predict_indicator(Tw)),
        scored,
        width,
        np.float32,
        Tw,
    )

    col = CoL(3 * n_labels).fit(X, Y)
    topics = 3 * n_labels
    seconds = shortest_time(lambda: CoL(topics).fit(X, Y))
    moved = col.n_iter_ * (X.nnz * ENTRY + n_words * topics * 4 * 2)
    add_row("col", "learn", seconds, moved, topics, np.float32, X)
    scored = T.nnz * (ENTRY + 4 * topics)
    add_row(
        "col",
        "label",
        shortest_time(lambda: col.predict_indicator(T)),
        scored,
        topics,
        np.float32,
        T,
    )
    markdown(
        [
            "model",
            "task",
            "CPU ms",
            "MB to move",
            "GB/s",
            "% of a copy",
            "rows at random, GB/s",
            "% of these",
        ],
        rows,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
