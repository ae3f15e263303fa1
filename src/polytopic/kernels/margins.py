"""Dual coordinate ascent for maximal margin labeling, a document at a time.

The weights ``W`` (n_words, rank, n_labels) are explicit, and a document's scores ``Z`` (rank,
n_labels) are ``Z[q] = x @ W[:, q]``. A dual variable keeps the document's own label set ``L`` apart
from another one: it adds ``x ⊗ (phi(L) - phi(other)) / scale`` to the weights. Documents have unit
length, so all that a visit does to ``Z`` is in the space of labels and sizes; the weights are
changed once, in the end.
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled
from polytopic.kernels.projection import project_row
from polytopic.kernels.sizes import distance, size_scores


class Corpus(NamedTuple):
    """Documents of unit length, none without a word or a label."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    labels: np.ndarray
    ends: np.ndarray  # of each document's labels


# What a pass over documents measures while the weights are moving, by its place in an array: the
# largest violation by a label set that was in no working set; these documents' part of the gap
# between primal and dual objective; and their part of the dual objective's linear term.
MISSED, GAP, LINEAR = range(3)


@compiled
def project(corpus, d, W, width, Z):
    """Set the first rows of ``Z`` to a document's scores: ``Z[q] = x @ W[:, q]``."""
    flat = W.reshape((W.shape[0], W.shape[1] * W.shape[2]))
    scores = Z[:width].ravel()
    project_row(corpus.data, corpus.indices, corpus.indptr[d], corpus.indptr[d + 1], flat, scores)


@compiled
def project_some(corpus, d, W, first, width, labels, Z):
    """Set some rows of ``Z`` for some labels only."""
    for q in range(first, width):
        for label in labels:
            Z[q, label] = 0
    for k in range(corpus.indptr[d], corpus.indptr[d + 1]):
        x, rows = corpus.data[k], W[corpus.indices[k]]
        for q in range(first, width):
            for label in labels:
                Z[q, label] += x * rows[q, label]


@compiled
def add_some(corpus, d, W, first, width, labels, steps):
    """Add ``x ⊗ steps`` to the weights of some labels."""
    n_words, rank, n_labels = W.shape
    flat, n = W.reshape((n_words, rank * n_labels)), (width - first) * labels.size
    places, values = np.empty(n, np.int64), np.empty(n, steps.dtype)
    n = 0
    for q in range(first, width):
        for label in labels:
            places[n], values[n] = q * n_labels + label, steps[q, label]
            n += 1
    for k in range(corpus.indptr[d], corpus.indptr[d + 1]):
        x, word = corpus.data[k], corpus.indices[k]
        for m in range(n):
            flat[word, places[m]] += x * values[m]


@compiled
def add_all(corpus, d, W, width, steps):
    """Add ``x ⊗ steps`` to the weights of all labels."""
    flat = steps[:width].ravel()
    for k in range(corpus.indptr[d], corpus.indptr[d + 1]):
        x, row = corpus.data[k], W[corpus.indices[k]].ravel()
        for j in range(flat.size):
            row[j] += x * flat[j]


# The paper's neighbours: label sets with one label more or less


class Neighbours(NamedTuple):
    """Dual variables of documents' neighbours, by the label that is added or taken away.

    Those that are not stored are zero.
    """

    start: np.ndarray  # (n_docs + 1,)
    label: np.ndarray
    value: np.ndarray


class Visit(NamedTuple):
    """Room for a visit to a document."""

    Z: np.ndarray  # (rank, n_labels) scores at the beginning
    steps: np.ndarray  # (rank, n_labels) what the visit adds to them
    values: np.ndarray  # (n_labels,) scores in a set with one label more
    alpha: np.ndarray  # (n_labels,) dual variables
    own: np.ndarray  # (n_labels,) whether a label is the document's own
    changed: np.ndarray  # (n_labels,) other labels whose scores have changed


@compiled
def ascend_neighbours(corpus, order, sizes, C, W, old, new, measured):
    """Visit documents in this order, raising the dual objective with one neighbour at a time.

    ``old`` has the documents' dual variables and ``new`` takes them, in this order. What the visits
    measure is added to ``measured``.
    """
    _, rank, n_labels = W.shape
    visit = Visit(
        np.zeros((rank, n_labels), W.dtype),
        np.zeros((rank, n_labels), W.dtype),
        np.empty(n_labels, W.dtype),
        np.zeros(n_labels),
        np.zeros(n_labels, np.bool_),
        np.empty(n_labels, np.int64),
    )
    kept, gap, linear = 0, measured[GAP], measured[LINEAR]
    for place in range(order.size):
        d = order[place]
        labels = corpus.labels[corpus.ends[d] : corpus.ends[d + 1]]
        n = labels.size
        for label in labels:
            visit.own[label] = True
        for k in range(old.start[place], old.start[place + 1]):
            visit.alpha[old.label[k]] = old.value[k]
        width = sizes.width[n + 1] if n < n_labels else 0
        own_width = max(sizes.width[n - 1], sizes.width[n], width)
        project(corpus, d, W, width, visit.Z)
        project_some(corpus, d, W, width, own_width, labels, visit.Z)
        n_changed = 0
        if n < n_labels:
            n_changed, part = _add_labels(labels, sizes, C, visit)
            gap += part
        if n > 1 or sizes.empty:
            gap += _take_labels(labels, sizes, C, own_width, visit)
        changed = visit.changed[:n_changed]
        if n_changed * 8 > n_labels:
            add_all(corpus, d, W, width, visit.steps)
            add_some(corpus, d, W, width, own_width, labels, visit.steps)
        else:
            add_some(corpus, d, W, 0, width, changed, visit.steps)
            add_some(corpus, d, W, 0, own_width, labels, visit.steps)
        visit.steps[:, changed] = 0.0
        for label in labels:
            visit.own[label] = False
            visit.steps[:, label] = 0.0
        new.start[place] = kept
        for j in range(n_labels):
            if visit.alpha[j] > 0.0:
                new.label[kept], new.value[kept] = j, visit.alpha[j]
                linear += visit.alpha[j]
                visit.alpha[j] = 0.0
                kept += 1
    new.start[order.size] = kept
    measured[GAP], measured[LINEAR] = gap, linear


@compiled
def _add_labels(labels, sizes, C, visit):
    """Keep the document apart from its labels and one more.

    Returns how many other labels' scores have changed, and the gap.
    """
    vectors, alpha, values = sizes.vectors, visit.alpha, visit.values
    n, n_changed, gap = labels.size, 0, 0.0
    width, own_width = sizes.width[n + 1], max(sizes.width[n], sizes.width[n + 1])
    size_scores(visit.Z, vectors, n + 1, values)
    scale = np.sqrt(distance(vectors, n, n + 1, n))
    lead, spread, total = 0.0, 0.0, 0.0  # of the own labels in the smaller set, by a unit step
    for q in range(own_width):
        difference = vectors[n, q] - vectors[n + 1, q]
        spread += n * difference * difference
        for label in labels:
            lead += difference * visit.Z[q, label]
    for j in range(values.size):
        slope = 1.0 - (lead - values[j]) / scale
        if (slope <= 0.0 and alpha[j] == 0.0) or visit.own[j]:
            continue
        gap += C * max(slope, 0.0) - alpha[j] * slope
        after = min(max(alpha[j] + slope, 0.0), C)
        if after != alpha[j]:
            step = (after - alpha[j]) / scale
            alpha[j] = after
            lead += step * spread
            total += step
            for q in range(width):
                visit.steps[q, j] = -step * vectors[n + 1, q]
            visit.changed[n_changed] = j
            n_changed += 1
    for label in labels:
        for q in range(own_width):
            visit.steps[q, label] = total * (vectors[n, q] - vectors[n + 1, q])
    return n_changed, gap


@compiled
def _take_labels(labels, sizes, C, width, visit):
    """Keep the document apart from its labels without one; return the gap."""
    vectors, alpha, n = sizes.vectors, visit.alpha, labels.size
    gap = 0.0
    scale = np.sqrt(distance(vectors, n, n - 1, n - 1))
    for taken in labels:
        margin = 0.0
        for label in labels:
            for q in range(width):
                u = vectors[n, q] - (0.0 if label == taken else vectors[n - 1, q])
                margin += u * (visit.Z[q, label] + visit.steps[q, label])
        slope = 1.0 - margin / scale
        gap += C * max(slope, 0.0) - alpha[taken] * slope
        after = min(max(alpha[taken] + slope, 0.0), C)
        if after != alpha[taken]:
            step = (after - alpha[taken]) / scale
            alpha[taken] = after
            for label in labels:
                for q in range(width):
                    u = vectors[n, q] - (0.0 if label == taken else vectors[n - 1, q])
                    visit.steps[q, label] += step * u
    return gap
