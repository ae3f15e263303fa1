"""The embedding of label sets behind a similarity, as one vector per size."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from polytopic.models.mml.search_kernels import SizeEmbedding

NEGLIGIBLE = 1e-13  # squared length that the vectors so far do not account for
DENSE = 4  # sizes up to this are knots, larger ones are further and further apart
GROWTH = 1.5  # from one knot to the next
LARGE, LARGE_GROWTH = 60, 3.0
BLOCK = 1024  # words whose weights are rotated at a time


def embed_sizes(similarity, n_labels, used, rank, *, has_empty) -> SizeEmbedding:
    r"""Return a vector :math:`u_n` for each size of label sets.

    With :math:`\phi(\lambda) = \sum_{j \in \lambda} e_j \otimes u_{|\lambda|}` the similarity of
    two label sets is the inner product of their embeddings: :math:`\langle u_a, u_b \rangle =
    2 / (a + b)` for Dice, :math:`u_a = 1 / \sqrt a` for cosine.

    Parameters
    ----------
    similarity : {"dice", "cosine"}
        Similarity of label sets.
    n_labels : int
        The largest size of a label set.
    used : ndarray of shape (n_sizes,)
        How many documents have label sets of each size. The sizes that are needed most are
        embedded exactly; the first axis is that of sets with one label more, which are compared
        for all labels.
    rank : int or None
        Maximum number of dimensions; None is exact.
    has_empty : bool
        Whether the empty set is a label set as well.
    """
    size = np.arange(1, n_labels + 1)
    if similarity == "cosine":
        columns = [1 / np.sqrt(size)]
    else:
        columns = _cholesky(2.0 / (size[:, None] + size), _usage(used, n_labels), rank)
    vectors = np.vstack([np.zeros(len(columns)), np.transpose(columns)])
    return with_knots(vectors, has_empty=has_empty)


def with_knots(vectors, *, has_empty) -> SizeEmbedding:
    """Return what kernels need to know about sizes; the first vector is that of the empty set."""
    width = np.where(vectors != 0, np.arange(1, vectors.shape[1] + 1), 0).max(axis=1)
    knots = _knots(len(vectors) - 1)
    exact, blend, slack = vectors.astype(np.float64), np.ones(len(vectors)), np.zeros(knots.size)
    for k, (below, here) in enumerate(pairwise(knots.tolist()), start=1):
        blend[below + 1 : here], slack[k] = _nearest_means(exact, below, here)
    return SizeEmbedding(vectors, width, knots, blend, slack, has_empty)


def rotate(vectors, weights):
    """Return sizes and weights (n_words, rank, n_labels) along the principal axes of the sizes.

    Axes that no size needs are dropped. The weights are rotated in place, block by block, as they
    are most of a model's memory.
    """
    _, lengths, axes = np.linalg.svd(vectors, full_matrices=False)
    axes = axes[lengths > lengths[0] * np.finfo(weights.dtype).eps]
    rotated = weights[:, : len(axes)]
    for begin in range(0, len(weights), BLOCK):
        block = weights[begin : begin + BLOCK].copy()
        for k, axis in enumerate(axes.astype(weights.dtype)):
            component = np.zeros_like(block[:, 0])
            for q, factor in enumerate(axis):  # a matrix product's bits depend on its threads
                component += factor * block[:, q]
            rotated[begin : begin + BLOCK, k] = component
    return vectors @ axes.T, np.ascontiguousarray(rotated)


def _usage(used, n_labels):
    """Return how much sets of each size from 1 on are needed, given the documents' sizes."""
    need = np.zeros(max(n_labels, used.size) + 2)
    need[: used.size] += 0.9 * used
    need[1 : used.size + 1] += used
    need[: used.size - 1] += 0.3 * used[1:]
    return need[1 : n_labels + 1]


def _cholesky(gram, usage, rank):
    """Return the components of vectors with these inner products, by pivoted decomposition.

    Each pivot is the vector with the largest remainder that is used; the first is used most.
    """
    remainder = np.diag(gram).copy()
    columns: list[np.ndarray] = []
    pivot = int(np.argmax(usage))
    while remainder[pivot] > NEGLIGIBLE and (rank is None or len(columns) < rank):
        before = np.array(columns).reshape(-1, remainder.size)
        column = (gram[pivot] - before[:, pivot] @ before) / np.sqrt(remainder[pivot])
        column[remainder <= NEGLIGIBLE] = 0.0  # these are in the span of the pivots so far
        columns.append(column)
        remainder = np.maximum(remainder - column**2, 0.0)
        need = remainder * usage
        pivot = int(np.argmax(need if need.max() > NEGLIGIBLE else remainder))
    return columns


def _knots(max_size):
    knots = list(range(1, min(DENSE, max_size) + 1))
    while knots[-1] < max_size:
        growth = GROWTH if knots[-1] < LARGE else LARGE_GROWTH
        knots.append(min(max_size, int(knots[-1] * growth)))
    return np.array(knots)


def _nearest_means(vectors, below, here):
    """Return the means of two knots' vectors nearest to those between them, and how near they are.

    A mean is given by the share of the knot above.
    """
    step, between = vectors[here] - vectors[below], vectors[below + 1 : here]
    share = np.clip((between - vectors[below]) @ step / max(step @ step, 1e-300), 0.0, 1.0)
    apart = between - vectors[below] - share[:, None] * step
    return share, float(np.linalg.norm(apart, axis=1).max(initial=0.0)) * (1 + 1e-6)
