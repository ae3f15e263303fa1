"""Sums of rows of weights, as many as a document has words."""

from polytopic.kernels import compiled


@compiled
def project_row(data, indices, start, stop, W, scores):
    """Set ``scores`` to a document's: ``data[start:stop] @ W[indices[start:stop]]``.

    Rows are far from each other in memory, so four are fetched at the same time; they are added
    one after the other, as if there was one at a time.
    """
    scores[:] = 0
    k = start
    while k + 4 <= stop:
        a, b, c, d = indices[k], indices[k + 1], indices[k + 2], indices[k + 3]
        first, second, third, fourth = data[k], data[k + 1], data[k + 2], data[k + 3]
        for j in range(scores.size):
            so_far = scores[j] + first * W[a, j] + second * W[b, j]
            scores[j] = so_far + third * W[c, j] + fourth * W[d, j]
        k += 4
    while k < stop:
        a, first = indices[k], data[k]
        for j in range(scores.size):
            scores[j] += first * W[a, j]
        k += 1


@compiled
def project_rows(data, indices, indptr, W, Z):
    """Set ``Z`` (n_docs, rank, n_labels) to the scores: ``Z[d] = x_d @ W``."""
    flat = W.reshape((W.shape[0], W.shape[1] * W.shape[2]))
    for d in range(indptr.size - 1):
        project_row(data, indices, indptr[d], indptr[d + 1], flat, Z[d].ravel())
