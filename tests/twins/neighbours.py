"""Slow twins of the kernels of nearest neighbours; X and learned documents are dense."""

import numpy as np


def find_nearest(X, learned, k):
    """Return the numbers and cosines of the nearest documents that share a word."""
    cosine = X @ learned.T
    nearest = np.argsort(-cosine, axis=1, kind="stable")[:, :k]
    similarity = np.take_along_axis(cosine, nearest, axis=1)
    return np.where(similarity > 0, nearest, -1), np.maximum(similarity, 0)


def votes(X, learned, Y, k):
    """Return the part of the votes that each label gets."""
    nearest, similarity = find_nearest(X, learned, k)
    scores = np.zeros((len(X), Y.shape[1]))
    for d in range(len(X)):
        for n, weight in zip(nearest[d], similarity[d], strict=True):
            if n >= 0:
                scores[d] += weight * Y[n]
        scores[d] /= similarity[d].sum() or 1.0
    return scores
