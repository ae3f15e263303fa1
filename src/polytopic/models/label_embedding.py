"""The embedding of label sets behind a similarity, as a vector for each size."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from polytopic.kernels.sizes import Sizes

NEGLIGIBLE = 1e-13  # of a squared length that no vector so far accounts for
DENSE = 4  # sizes up to this are looked at one by one, larger ones where they can matter
GROWTH = 1.5  # from one end of sizes to the next
LARGE, LARGE_GROWTH = 60, 3.0
AT_ONCE = 1024  # words whose weights are turned


def embed_sizes(similarity, n_labels, used, rank) -> Sizes:
    r"""Return a vector :math:`u_n` for each size of label sets.

    With :math:`\phi(\lambda) = \sum_{j \in \lambda} e_j \otimes u_{|\lambda|}` the similarity of
    two label sets is the inner product of their embeddings: :math:`\langle u_a, u_b \rangle =
    2 / (a + b)` for Dice, :math:`u_a = 1 / \sqrt a` for cosine.

    Parameters
    ----------
    similarity : {"dice", "cosine"}
        Of label sets.
    n_labels : int
        The largest size of a label set.
    used : ndarray of shape (n_sizes,)
        How many documents have label sets of each size. What they need most is embedded
        exactly, and first of all along the first axis: sets with one label more, which are
        compared for all labels.
    rank : int or None
        Dimensions at most; None is exact.
    """
    size = np.arange(1, n_labels + 1)
    if similarity == "cosine":
        columns = [1 / np.sqrt(size)]
    else:
        columns = _cholesky(2.0 / (size[:, None] + size), _usage(used, n_labels), rank)
    vectors = np.vstack([np.zeros(len(columns)), np.transpose(columns)])
    return by_vectors(vectors, empty=similarity == "cosine")


def by_vectors(vectors, *, empty) -> Sizes:
    """Return what kernels need to know of sizes, whose first vector is that of no label."""
    width = np.where(vectors != 0, np.arange(1, vectors.shape[1] + 1), 0).max(axis=1)
    ends = _ends(len(vectors) - 1)
    exact, share, slack = vectors.astype(np.float64), np.ones(len(vectors)), np.zeros(ends.size)
    for k, (low, high) in enumerate(pairwise(ends.tolist()), start=1):
        between = slice(low + 1, high)
        share[between], slack[k] = _means(exact, low, high)
    return Sizes(vectors, width, ends, share, slack, empty)


def rotated(vectors, weights):
    """Turn sizes and weights (n_words, rank, n_labels) to the principal axes of the sizes.

    Axes that no size needs are dropped. The weights are turned where they are, some words at a
    time: they are most of what a model takes.
    """
    _, lengths, axes = np.linalg.svd(vectors, full_matrices=False)
    axes = axes[lengths > lengths[0] * np.finfo(weights.dtype).eps]
    turned = weights[:, : len(axes)]
    for begin in range(0, len(weights), AT_ONCE):
        block = weights[begin : begin + AT_ONCE].copy()
        for k, axis in enumerate(axes.astype(weights.dtype)):
            own = np.zeros_like(block[:, 0])
            for q, factor in enumerate(axis):  # no product of matrices, whose threads change bits
                own += factor * block[:, q]
            turned[begin : begin + AT_ONCE, k] = own
    return vectors @ axes.T, np.ascontiguousarray(turned)


def _usage(used, n_labels):
    """Return how much sets of each size from 1 on are needed, by documents' sizes."""
    need = np.zeros(max(n_labels, used.size) + 2)
    need[: used.size] += 0.9 * used
    need[1 : used.size + 1] += used
    need[: used.size - 1] += 0.3 * used[1:]
    return need[1 : n_labels + 1]


def _cholesky(gram, usage, rank):
    """Return the components of vectors with these inner products, by pivots.

    Each pivot is the vector of which most is left and used; the first one is used most.
    """
    left = np.diag(gram).copy()
    columns: list[np.ndarray] = []
    pivot = int(np.argmax(usage))
    while left[pivot] > NEGLIGIBLE and (rank is None or len(columns) < rank):
        before = np.array(columns).reshape(-1, left.size)
        column = (gram[pivot] - before[:, pivot] @ before) / np.sqrt(left[pivot])
        column[left <= NEGLIGIBLE] = 0.0  # these are in the span of the pivots so far
        columns.append(column)
        left = np.maximum(left - column**2, 0.0)
        wanted = left * usage
        pivot = int(np.argmax(wanted if wanted.max() > NEGLIGIBLE else left))
    return columns


def _ends(max_size):
    ends = list(range(1, min(DENSE, max_size) + 1))
    while ends[-1] < max_size:
        growth = GROWTH if ends[-1] < LARGE else LARGE_GROWTH
        ends.append(min(max_size, int(ends[-1] * growth)))
    return np.array(ends)


def _means(vectors, low, high):
    """Return the means of two sizes' vectors that are nearest to those between, and how near.

    A mean is told by the share of the larger size in it.
    """
    step, between = vectors[high] - vectors[low], vectors[low + 1 : high]
    share = np.clip((between - vectors[low]) @ step / max(step @ step, 1e-300), 0.0, 1.0)
    apart = between - vectors[low] - share[:, None] * step
    return share, float(np.linalg.norm(apart, axis=1).max(initial=0.0)) * (1 + 1e-6)
