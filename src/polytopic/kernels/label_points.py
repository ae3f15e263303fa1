"""Weights of the points at which a prior of label sets is looked at."""

import numpy as np

from polytopic.kernels import compiled

AT_ONCE = 8  # labels that are multiplied before a product could become 0


@compiled
def weigh_points(indices, indptr, docs, shares, weights, total):
    """Add the posterior weights of points to ``weights``, and the log likelihood to ``total``.

    ``shares`` are those of labels at each point, (n_labels, n_points). For each label set ``y``
    with ``n`` documents::

        p = shares[y].prod(axis=0)
        weights += n * p / p.sum()

    Returns the new total, to go on with when sets are weighed in parts.
    """
    n_points = shares.shape[1]
    p = np.empty(n_points)
    for k in range(indptr.size - 1):
        p[:] = shares[indices[indptr[k]]]
        log_scale = 0.0
        for place in range(indptr[k] + 1, indptr[k + 1]):
            label = indices[place]
            for i in range(n_points):
                p[i] *= shares[label, i]
            if (place - indptr[k]) % AT_ONCE == 0:
                top = p.max()
                p /= top
                log_scale += np.log(top)
        mass = p.sum()
        total += docs[k] * (np.log(mass / n_points) + log_scale)
        for i in range(n_points):
            weights[i] += docs[k] / mass * p[i]
    return total
