"""Slow, obvious twins of the kernels that several families share."""

import heapq

import numpy as np
from scipy import special
from scipy.optimize import isotonic_regression


def highest(values, skip, n):
    """Return the places of the ``n`` highest values that are not skipped."""
    places = np.flatnonzero(~skip)
    return places[np.argsort(-values[places], kind="stable")[:n]]


def rank_labels(scores, chosen, k):
    """Return each document's labels in order: those chosen, then the best others."""
    rows = []
    for row, own in zip(scores, chosen, strict=True):
        order = sorted(range(row.size), key=lambda j: (not own[j], -row[j]))
        rows.append(order[: max(k, own.sum())])
    return rows


def pool_adjacent(values, weights):
    """Return where the steps of isotonic regression begin, and their heights."""
    fit = isotonic_regression(values, weights=weights)
    return fit.blocks, fit.x[fit.blocks[:-1]]


def push(items, key, rank, item):
    """Add an item to a heap, which is a list."""
    heapq.heappush(items, (key, rank, item))


def pop(items):
    """Remove and return the smallest item of a heap."""
    return heapq.heappop(items)


def digamma(z):
    """Return the logarithmic derivative of the gamma function."""
    return special.digamma(z)


def exp_digamma(x):
    """Return its exponential."""
    return np.exp(special.digamma(x))


def log_exp_digamma(x):
    """Return the logarithm of that."""
    return special.digamma(x)
