"""The highest of many values.

===========  ================================================================================
``values``   (n_values,) one value per place
``skip``     (n_values,) places that are left out
``top``      receives places, highest value first; of equal values, the first place comes first
``scores``   (n_docs, n_labels) one row of values per document
``order``    (n_docs, n_labels) receives the labels of each document in order
===========  ================================================================================
"""

import numpy as np

from polytopic.kernels import compiled, helper


@helper
def highest(values, skip, n, top):
    """Put the places of the ``n`` highest values into ``top``; return how many there are.

    Equivalent to::

        places = np.flatnonzero(~skip)
        top[:n] = places[np.argsort(-values[places], kind="stable")[:n]]
    """
    n_held, least = 0, -np.inf
    for j in range(values.size if n else 0):
        value = values[j]
        if n_held == n and not value > least:
            continue
        if skip[j]:
            continue
        k = n_held if n_held < n else n - 1
        while k > 0 and value > values[top[k - 1]]:
            top[k] = top[k - 1]
            k -= 1
        top[k] = j
        n_held = min(n_held + 1, n)
        least = values[top[n_held - 1]]
    return n_held


@compiled
def rank_labels(scores, chosen, k, order):
    """Set each row of ``order`` to a document's labels: those chosen, then the best others.

    Both are in descending order of score; of equal scores, the first label comes first. A document
    gets ``k`` labels, or those chosen if they are more; the places after them keep their values.
    Equivalent, for each document ``d``, to::

        ranked = np.lexsort((-scores[d], ~chosen[d]))
        n = max(k, chosen[d].sum())
        order[d, :n] = ranked[:n]
    """
    n_labels = scores.shape[1]
    top, others = np.empty(n_labels, np.int64), np.empty(n_labels, np.bool_)
    for d in range(scores.shape[0]):
        n_chosen = np.int64(0)
        for j in range(n_labels):
            others[j] = not chosen[d, j]
            n_chosen += chosen[d, j]
        highest(scores[d], others, n_chosen, top)
        for rank in range(n_chosen):
            order[d, rank] = top[rank]
        n_others = min(k, n_labels) - n_chosen
        if n_others > 0:
            highest(scores[d], chosen[d], n_others, top)
            for rank in range(n_others):
                order[d, n_chosen + rank] = top[rank]
