"""Learning which labels go together, from distinct label sets and their documents."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, starmap

import numpy as np
from scipy import sparse
from scipy.special import softmax
from threadpoolctl import threadpool_limits

from polytopic.kernels.blocks import block_borders
from polytopic.kernels.label_points import weigh_points
from polytopic.labels import indicator
from polytopic.models.label_bound import RIDGE, climb_by_bound, start
from polytopic.models.label_prior import LabelPrior, centred, normal_points, points_of

GROWTH = 1.5  # of steps that pay
AT_ONCE = 1 << 24  # shares of labels at points in one call, which cannot be interrupted
HALF = 0.5  # a document more for each size, up to one label more than was seen


def distinct_sets(Y):
    """Return the label sets that occur, as rows of an indicator, and how often each does."""
    Y = sparse.csr_matrix(Y).sorted_indices()
    found = Counter(tuple(row.tolist()) for row in np.split(Y.indices, Y.indptr[1:-1]) if row.size)
    sets = sorted(found)
    ends = np.cumsum([0, *map(len, sets)])
    labels = np.array([label for labels in sets for label in labels], dtype=np.int64)
    return indicator(labels, ends, Y.shape[1]), np.array([found[labels] for labels in sets], float)


def fit_labels(Y, how, *, max_iter=100, tol=1e-3):
    """Return the prior that suits label sets best, and the course of its objective.

    ``how`` is "mcem" or "variational"; every label has documents.
    """
    return fit_sets(distinct_sets(Y), how, max_iter=max_iter, tol=tol)


def fit_sets(found, how, *, max_iter=100, tol=1e-3):
    """Return what :func:`fit_labels` does, from distinct label sets and how often each occurs."""
    sets, docs = found
    sizes = np.bincount(np.diff(sets.indptr), weights=docs).astype(np.float64)
    sizes = np.append(sizes, np.zeros(int(sizes.size <= sets.shape[1])))
    sizes[1:] += HALF
    climb = {"mcem": climb_by_points, "variational": climb_by_bound}[how]
    with threadpool_limits(1, "blas"):  # whose threads change the last bits
        mean, covariance, course = climb(sets, docs, max_iter, tol)
        mean, covariance = centred(mean, covariance)
        return LabelPrior(mean, covariance, sizes / sizes.sum()), course


def climb_by_points(sets, docs, max_iter, tol):
    """Climb the likelihood by Monte-Carlo EM, in ever longer steps as long as they pay.

    The points are the same normal ones in each step. The course has the mean log likelihood of
    documents; a step that would lower it is not taken.
    """
    normals = normal_points(sets.shape[1])
    here = start(sets, docs)
    value, there = _match_points(sets, docs, here, normals)
    course, factor = [value], 1.0
    while len(course) <= max_iter:
        tried = tuple(a + factor * (b - a) for a, b in zip(here, there, strict=True))
        try:
            value, moments = _match_points(sets, docs, tried, normals)
        except np.linalg.LinAlgError:  # a step so long that it leaves no covariance
            value = -np.inf
        if value > course[-1]:
            here, there = tried, moments
            course.append(value)
            if course[-1] - course[-2] < tol:
                break
            factor *= GROWTH
        elif factor > 1.0:
            factor = 1.0
        else:
            break
    return *here, course


def _match_points(sets, docs, parameters, normals):
    """Return the mean log likelihood, and the posterior's moments, which EM goes to."""
    mean, covariance = parameters
    points = points_of(mean, covariance, normals)
    shares = np.ascontiguousarray(softmax(points, axis=1).T)
    weights = np.zeros(points.shape[0])
    indices, ends, value = sets.indices.astype(np.int64), sets.indptr.astype(np.int64), 0.0
    for some in starmap(slice, pairwise(block_borders(ends, AT_ONCE // weights.size).tolist())):
        some_ends = ends[some.start : some.stop + 1]
        value = weigh_points(indices, some_ends, docs[some], shares, weights, value)
    value /= docs.sum()
    weights /= docs.sum()
    mean = weights @ points
    points -= mean
    return value, (mean, (points.T * weights) @ points + RIDGE * np.eye(mean.size))
