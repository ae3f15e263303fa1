"""Dual coordinate descent for many linear support vector machines at once, one per label.

==================  ==========================================================================
``x``               one document of unit length, a row of ``data, indices, indptr``
``y``               (n_labels,) 1 for the labels of the document, -1 for the others
``W``, ``bias``     (n_words, n_labels) weights and (n_labels,) constants: the scores of a
                    document are ``z = x @ W + bias``
``alpha``           (n_docs, n_labels) dual variables, not negative: ``W = X.T @ (y * alpha)``
``slack``           (2, n_labels) ``1 / (2 * C)`` for documents without and with a label
==================  ==========================================================================

The machines share nothing but the documents. So labels can be learned in blocks, with the same
result, and a pass over the documents reads each of them once for a whole block.
"""

import numpy as np

from polytopic.kernels import compiled

SPARSE = 6  # a step that moves at most 1 / SPARSE of the labels writes those alone


@compiled
def descend(data, indices, indptr, labels, ends, order, slack, alpha, W, bias):
    """Visit documents in an order, and minimize the dual over the variables of each in turn.

    The dual of the squared hinge loss, for each label, is ``(w @ w + bias**2 + slack @ alpha**2) /
    2 - alpha.sum()``. Equivalent, for each document ``d`` and with ``q = x @ x + 1``, to::

        z = x @ W + bias
        new = np.maximum(0, alpha[d] - (y * z - 1 + slack * alpha[d]) / (q + slack))
        step = y * (new - alpha[d])
        W += np.outer(x, step)
        bias += step
        alpha[d] = new
    """
    n_labels = bias.size
    one = bias.dtype.type(1)
    zero = bias.dtype.type(0)
    z = np.empty(n_labels, bias.dtype)
    has = np.zeros(n_labels, np.uint8)
    moved = np.empty(n_labels, np.int32)
    for d in order:
        start, stop = indptr[d], indptr[d + 1]
        square = one
        for j in range(n_labels):
            z[j] = bias[j]
        for k in range(start, stop):
            x, i = data[k], indices[k]
            square += x * x
            for j in range(n_labels):
                z[j] += x * W[i, j]
        for k in range(ends[d], ends[d + 1]):
            has[labels[k]] = 1
        n_moved = 0
        for j in range(n_labels):
            before, own = alpha[d, j], has[j]
            y, s = (one, slack[1, j]) if own else (-one, slack[0, j])
            after = max(before - (y * z[j] - one + s * before) / (square + s), zero)
            step = y * (after - before)
            z[j] = step
            if step != zero:
                alpha[d, j] = after
                bias[j] += step
                moved[n_moved] = j
                n_moved += 1
        for k in range(ends[d], ends[d + 1]):
            has[labels[k]] = 0
        if n_moved * SPARSE <= n_labels:
            for k in range(start, stop):
                x, i = data[k], indices[k]
                for m in range(n_moved):
                    j = moved[m]
                    W[i, j] += x * z[j]
        else:
            for k in range(start, stop):
                x, i = data[k], indices[k]
                for j in range(n_labels):
                    W[i, j] += x * z[j]


@compiled
def score_rows(data, indices, indptr, W, bias, scores):
    """Set ``scores`` to those of documents: ``scores = X @ W + bias``."""
    for d in range(indptr.size - 1):
        for j in range(bias.size):
            scores[d, j] = bias[j]
        for k in range(indptr[d], indptr[d + 1]):
            x, i = data[k], indices[k]
            for j in range(bias.size):
                scores[d, j] += x * W[i, j]
