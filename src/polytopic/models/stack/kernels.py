"""The log odds of labels by the scores of members, and the label set with the best expected F1.

==================  ==========================================================================
``scores``          the scores of a member, one per document and label
``x``, ``y``        (n_knots,) its curve: scores in ascending order, and their probabilities
``knot_odds``       (n_knots,) the log odds of ``y``
``begins``          (n_bins,) a knot from which to look for scores in each of many equal bins
                    between the first and the last knot
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

MIN_RANKED = 14  # labels whose distribution is computed; of the others, only the expected number
MAX_RANKED = 60
RANKED = 3  # times the expected number of labels


@compiled
def add_log_odds(scores, x, y, knot_odds, begins, sure, weight, total):
    """Add the weighted log odds that scores stand for to ``total``.

    Most scores lie on a step of the curve, whose log odds are known. Equivalent to::

        p = np.clip(np.interp(scores, x, y), sure, 1 - sure)
        total += weight * np.log(p / (1 - p))
    """
    last = x.size - 1
    low, high = x[0], x[last]
    scale = begins.size / (high - low) if high > low else 0.0
    for k in range(scores.size):
        score = scores[k]
        if score < low:
            total[k] += weight * knot_odds[0]
        elif score < high:
            place = begins[min(int((score - low) * scale), begins.size - 1)]
            while x[place] > score:  # the bin was rounded
                place -= 1
            while x[place + 1] <= score:
                place += 1
            if y[place] == y[place + 1]:
                total[k] += weight * knot_odds[place]
            else:
                rise = (y[place + 1] - y[place]) / (x[place + 1] - x[place])
                p = min(max(y[place] + rise * (score - x[place]), sure), 1 - sure)
                total[k] += weight * np.log(p / (1 - p))
        else:
            total[k] += weight * knot_odds[last]


@compiled
def choose_sets(P, chosen):
    """Set ``chosen`` to the set with the highest expected F1 of each document.

    Equivalent, for each document with up to ``MIN_RANKED`` labels, to the set s that maximizes::

        sum(chance(t) * 2 * len(s & t) / (len(s) + len(t)) for t in all_sets)

    Of more labels, the ``MIN_RANKED`` most probable ones, or ``RANKED`` times the expected number
    of labels, up to ``MAX_RANKED``, may be chosen. The others count by their expected number.
    """
    n_labels = P.shape[1]
    order, none = np.empty(n_labels, np.int64), np.zeros(n_labels, np.bool_)
    n_hit, n_missed = np.empty(MAX_RANKED + 1), np.empty((MAX_RANKED + 1, MAX_RANKED + 1))
    for d in range(P.shape[0]):
        p = P[d]
        beyond = 0.0
        for j in range(n_labels):
            beyond += p[j]
        n_ranked = min(max(int(RANKED * beyond), MIN_RANKED), MAX_RANKED, n_labels)
        highest(p, none, n_ranked, order)
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
