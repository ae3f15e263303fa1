"""Which classes a document has, by the word distribution of each class."""

import math

import numpy as np

from polytopic.kernels import compiled


@compiled
def class_weights(data, indices, indptr, theta, start, n_steps, weights, best):
    """Fill ``weights`` with each document's shares of classes, by EM from ``start``.

    A step is, with ``theta`` word-major and ``n`` the counts of the document's words ``W``::

        weights *= (n / (theta[W] @ weights)) @ theta[W] / n.sum()

    ``best`` gets a bound of the document's log likelihood under any shares of classes:
    ``n @ log(t) + N * log(max(n / t @ theta[W]) / N)``, by Jensen's inequality.
    """
    said = np.empty(theta.shape[1])
    for d in range(indptr.size - 1):
        own = weights[d]
        own[:] = start
        length = data[indptr[d] : indptr[d + 1]].sum()
        if indptr[d] == indptr[d + 1]:
            best[d] = 0.0
            continue
        for step in range(n_steps + 1):
            log_words = 0.0
            said[:] = 0.0
            for k in range(indptr[d], indptr[d + 1]):
                row = theta[indices[k]]
                t = 0.0
                for c in range(own.size):
                    t += own[c] * row[c]
                ratio = data[k] / t
                log_words += data[k] * math.log(t)
                for c in range(own.size):
                    said[c] += ratio * row[c]
            if step == n_steps:
                best[d] = log_words + length * math.log(said.max() / length)
            else:
                for c in range(own.size):
                    own[c] *= said[c] / length


@compiled
def grow_sets(data, indices, indptr, theta, candidates, first, shares, log_scales, temperature,
              members, values):  # fmt: skip
    """Judge the label sets that a greedy search meets, for each document.

    It adds one of the document's ``candidates`` at a time, the one that raises the log posterior
    most, as long as one does; ``first`` tells whether the first candidate is there from the
    start. A set of ``m`` classes with words ``phi = theta[:, y].mean(axis=1)`` has ::

        n @ log(phi) / temperature + log(sum(exp(log_scales[m]) * shares[y].prod(axis=0)))

    ``shares`` are the classes' shares at the points of their prior, (n_classes, n_points).
    ``members`` gets a bit for each candidate in the set, and ``values`` its log posterior.
    """
    n_points, n_candidates = shares.shape[1], candidates.shape[1]
    scales = np.exp(log_scales)
    product = np.empty(n_points)
    for d in range(indptr.size - 1):
        words = indptr[d + 1] - indptr[d]
        mass = np.zeros(words)
        product[:] = 1.0
        chosen, best, n_met = 0, -np.inf, 0
        for size in range(1, min(n_candidates, log_scales.shape[0] - 1) + 1):
            top, pick = -np.inf, -1
            for i in range(n_candidates):
                c = candidates[d, i]
                if c < 0 or chosen >> i & 1 or (first and size == 1 and i > 0):
                    continue
                prior = 0.0
                for p in range(n_points):
                    prior += product[p] * shares[c, p] * scales[size, p]
                value = math.log(prior) if prior > 0.0 else -np.inf
                for k in range(words):
                    phi = (mass[k] + theta[indices[indptr[d] + k], c]) / size
                    value += data[indptr[d] + k] * math.log(phi) / temperature
                members[d, n_met], values[d, n_met] = chosen | 1 << i, value
                n_met += 1
                if value > top:
                    top, pick = value, i
            if pick < 0 or (top <= best and size > 1):
                break
            best, chosen = top, chosen | 1 << pick
            c = candidates[d, pick]
            for k in range(words):
                mass[k] += theta[indices[indptr[d] + k], c]
            for p in range(n_points):
                product[p] *= shares[c, p]
