"""The label set with the highest expected F1, if labels are independent.

==================  ==========================================================================
``p``               (n_labels,) the probabilities of a document's labels
``order``           the labels in descending order of probability
``n_hit``           the number of right labels among the first k, 0 to k
``n_missed``        the number of right labels after them
==================  ==========================================================================

For independent labels and any size k, the best set of k labels has the k most probable ones. So
the best set is a prefix of the ranking. It is found by the distributions of ``n_hit`` and
``n_missed``, which are Poisson binomial.
"""

import numpy as np

from polytopic.kernels import compiled
from polytopic.kernels.ranking import highest

MAX_RANKED = 14  # labels whose distribution is computed; of the others, only the expected number


@compiled
def choose_sets(P, chosen):
    """Set ``chosen`` to the set with the highest expected F1 of each document.

    Equivalent, for each document with up to ``MAX_RANKED`` labels, to the set s that maximizes::

        sum(chance(t) * 2 * len(s & t) / (len(s) + len(t)) for t in all_sets)

    Labels beyond the ``MAX_RANKED`` most probable ones count by their expected number, and are not
    chosen.
    """
    n_labels = P.shape[1]
    n_ranked = min(MAX_RANKED, n_labels)
    order, none = np.empty(n_labels, np.int64), np.zeros(n_labels, np.bool_)
    n_hit, n_missed = np.empty(MAX_RANKED + 1), np.empty((MAX_RANKED + 1, MAX_RANKED + 1))
    for d in range(P.shape[0]):
        p = P[d]
        highest(p, none, n_ranked, order)
        beyond = 0.0
        for j in range(n_labels):
            beyond += p[j]
        for k in range(n_ranked):
            beyond -= p[order[k]]
        beyond = max(beyond, 0.0)
        # n_missed[k, b]: the probability that b of the labels from rank k on are right
        n_missed[n_ranked, 0] = 1.0
        for k in range(n_ranked - 1, -1, -1):
            right = p[order[k]]
            n = n_ranked - k
            n_missed[k, n] = n_missed[k + 1, n - 1] * right
            for b in range(n - 1, 0, -1):
                n_missed[k, b] = n_missed[k + 1, b] * (1 - right) + n_missed[k + 1, b - 1] * right
            n_missed[k, 0] = n_missed[k + 1, 0] * (1 - right)
        n_hit[0] = 1.0
        best, best_size = -1.0, 1
        for k in range(1, n_ranked + 1):
            right = p[order[k - 1]]
            n_hit[k] = n_hit[k - 1] * right
            for a in range(k - 1, 0, -1):
                n_hit[a] = n_hit[a] * (1 - right) + n_hit[a - 1] * right
            n_hit[0] *= 1 - right
            expected = 0.0
            for a in range(1, k + 1):
                for b in range(n_ranked - k + 1):
                    expected += n_hit[a] * n_missed[k, b] * 2 * a / (k + a + b + beyond)
            if expected > best:
                best, best_size = expected, k
        for k in range(best_size):
            chosen[d, order[k]] = True
