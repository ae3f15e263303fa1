"""Candidate labels of documents, and what three sources say of each.

===================  =========================================================================
``x``                a document of unit length, a row of ``data, indices, indptr``
``w_*``              the weights of words: word i has ``w_data`` for the labels ``w_labels`` from
                     ``w_starts[i]`` to ``w_starts[i + 1]``; machines score ``w @ x - 1``
``c_*``              the same for centroids, the unit vectors of the documents of each label
``d_*``              the weight of each word in learned documents, and these documents
``row_labels``       the labels of each learned document, from ``row_ends[d]``
``log_n``            (n_labels,) logarithm of how many documents each label has
``allowed``          (n_labels,) whether a label may be a candidate
``extra``            labels that are candidates in any case
``machine``          (n_labels,) the scores of one document, by source: linear machines,
``centroid``         cosine with the centroids,
``nearest``          and the sum of cos**3 over the nearest documents that have the label
===================  =========================================================================
"""

import numpy as np

from polytopic.kernels import compiled, helper
from polytopic.kernels.ranking import highest

N_FEATURES = 20
DEPTH = 50  # labels of each source that become candidates
MAX_CANDIDATES = 100
N_NEAREST, N_CLOSE = 100, 20  # neighbours
FLOOR = 1e-3  # cosines and shares of votes below it count as this


@helper
def _add_scores(data, indices, begin, end, values, items, starts, out):
    """Add ``sum(x[i] * values[i])`` to the scores ``out`` of all items."""
    for m in range(begin, end):
        x, word = data[m], indices[m]
        for p in range(starts[word], starts[word + 1]):
            out[items[p]] += x * values[p]


@helper
def _nearest_documents(cosine, similarity, nearest):
    """Find the documents with the largest cosines, in descending order; return how many."""
    n, least = 0, np.float32(0)
    for c in range(cosine.size):
        if cosine[c] > least:
            n = min(n + 1, nearest.size)
            place = n - 1
            while place > 0 and similarity[place - 1] < cosine[c]:
                similarity[place], nearest[place] = similarity[place - 1], nearest[place - 1]
                place -= 1
            similarity[place], nearest[place] = cosine[c], c
            if n == nearest.size:
                least = similarity[n - 1]
    return n


@helper
def _rank(scores, blocked, floor, n, top, rank):
    """Put the labels with the ``n`` highest scores above a floor into ``top``, and their ranks."""
    n_top = highest(scores, blocked, n, top)
    while n_top > 0 and not scores[top[n_top - 1]] > floor:
        n_top -= 1
    for k in range(n_top):
        rank[top[k]] = k
    return n_top


@compiled
def rank_machine(data, indices, indptr, w_data, w_labels, w_starts, allowed, extra, labels, scores):
    """Put the best labels of each document by machines, and their scores ``x @ w - 1``, into a row.

    Places without a label have -1. Labels that share no word with a document are no candidates.
    """
    n_labels = allowed.size
    machine, blocked = np.zeros(n_labels, np.float32), ~allowed
    is_chosen, top = np.zeros(n_labels, np.bool_), np.empty(n_labels, np.int64)
    for d in range(indptr.size - 1):
        _add_scores(data, indices, indptr[d], indptr[d + 1], w_data, w_labels, w_starts, machine)
        n_top = highest(machine, blocked, min(MAX_CANDIDATES, n_labels), top)
        n = 0
        for k in range(n_top):
            label = top[k]
            if machine[label] != 0:
                labels[d, n], scores[d, n] = label, machine[label] - 1.0
                is_chosen[label] = True
                n += 1
        for label in extra:
            if not is_chosen[label]:
                labels[d, n], scores[d, n] = label, machine[label] - 1.0
                n += 1
        for k in range(n):
            is_chosen[labels[d, k]] = False
        machine[:] = 0


@compiled
def rank_candidates(
    data,
    indices,
    indptr,
    w_data,
    w_labels,
    w_starts,
    c_data,
    c_labels,
    c_starts,
    d_data,
    d_rows,
    d_starts,
    row_labels,
    row_ends,
    log_n,
    allowed,
    extra,
    labels,
    features,
):
    """Put the candidates of each document into a row of ``labels``, and what is known of them.

    Candidates are the best labels of each source, in turn. ``features`` (n_docs, n_places,
    ``N_FEATURES``) are, for each candidate: the score of the machine; the logarithms of the cosine
    with the centroid and of the shares of votes among many (cos**3) and few neighbours (cos**2);
    the largest cosine of a neighbour with the label, and the logarithm of how many there are;
    ``log_n`` and its square; the first four times ``log_n``; the logarithm of the rank, and the gap
    to the best label, of each source; the cosine of the nearest document, and the gap to it.
    """
    n_labels, n_docs = allowed.size, row_ends.size - 1
    machine, centroid = np.zeros(n_labels, np.float32), np.zeros(n_labels, np.float32)
    nearest, close = np.zeros(n_labels, np.float32), np.zeros(n_labels, np.float32)
    largest, votes = np.zeros(n_labels, np.float32), np.zeros(n_labels, np.float32)
    cosine, blocked = np.zeros(n_docs, np.float32), ~allowed
    similarity = np.empty(min(N_NEAREST, n_docs), np.float32)
    neighbours = np.empty(min(N_NEAREST, n_docs), np.int64)
    depth = min(DEPTH, n_labels)
    ranks, tops = np.full((3, n_labels), DEPTH, np.int64), np.empty((3, n_labels), np.int64)
    sizes, best = np.empty(3, np.int64), np.empty(3, np.float32)
    is_chosen = np.zeros(n_labels, np.bool_)
    for d in range(indptr.size - 1):
        begin, end = indptr[d], indptr[d + 1]
        _add_scores(data, indices, begin, end, w_data, w_labels, w_starts, machine)
        _add_scores(data, indices, begin, end, c_data, c_labels, c_starts, centroid)
        _add_scores(data, indices, begin, end, d_data, d_rows, d_starts, cosine)
        n_near = _nearest_documents(cosine, similarity, neighbours)
        many, few = np.float32(0), np.float32(0)
        for k in range(n_near):
            s = similarity[k]
            many += s * s * s
            if k < N_CLOSE:
                few += s * s
            for m in range(row_ends[neighbours[k]], row_ends[neighbours[k] + 1]):
                label = row_labels[m]
                nearest[label] += s * s * s
                if k < N_CLOSE:
                    close[label] += s * s
                largest[label] = max(largest[label], s)
                votes[label] += 1
        sizes[0] = _rank(machine, blocked, np.float32(0), depth, tops[0], ranks[0])
        sizes[1] = _rank(centroid, blocked, np.float32(0), depth, tops[1], ranks[1])
        sizes[2] = _rank(nearest, blocked, np.float32(0), depth, tops[2], ranks[2])
        n = 0
        for k in range(depth):
            for source in range(3):
                if k < sizes[source] and n < MAX_CANDIDATES:
                    label = tops[source, k]
                    if not is_chosen[label]:
                        labels[d, n] = label
                        is_chosen[label] = True
                        n += 1
        for label in extra:
            if not is_chosen[label]:
                labels[d, n] = label
                is_chosen[label] = True
                n += 1
        many, few = max(many, np.float32(FLOOR)), max(few, np.float32(FLOOR))
        best[0] = machine[tops[0, 0]] if sizes[0] else np.float32(0)
        best[1] = np.log(max(centroid[tops[1, 0]] if sizes[1] else 0.0, FLOOR))
        best[2] = np.log(max(nearest[tops[2, 0]] / many if sizes[2] else 0.0, FLOOR))
        first = similarity[0] if n_near else np.float32(0)
        for k in range(n):
            label, f = labels[d, k], features[d, k]
            is_chosen[label] = False
            f[0] = machine[label] - 1
            f[1] = np.log(max(centroid[label], np.float32(FLOOR)))
            f[2] = np.log(max(nearest[label] / many, np.float32(FLOOR)))
            f[3] = np.log(max(close[label] / few, np.float32(FLOOR)))
            f[4] = largest[label]
            f[5] = np.log(1 + votes[label])
            f[6] = log_n[label]
            f[7] = log_n[label] * log_n[label]
            for j in range(4):
                f[8 + j] = f[j] * log_n[label]
            for source in range(3):
                f[12 + source] = np.log(np.float32(1 + ranks[source, label]))
            f[15] = best[0] - machine[label]
            f[16] = best[1] - f[1]
            f[17] = best[2] - f[2]
            f[18] = first
            f[19] = first - largest[label]
        for source in range(3):
            for k in range(sizes[source]):
                ranks[source, tops[source, k]] = DEPTH
        for k in range(n_near):
            for m in range(row_ends[neighbours[k]], row_ends[neighbours[k] + 1]):
                label = row_labels[m]
                nearest[label], close[label], largest[label], votes[label] = 0, 0, 0, 0
        machine[:] = 0
        centroid[:] = 0
        cosine[:] = 0
