"""Twins of the kernels of decision rules, in plain Python, for one document.

The twin of a kernel that sets cuts returns the columns that these accept.
"""

import math
from typing import NamedTuple

from polytopic.decision import (
    MeanPlusStd,
    Threshold,
    TNorm,
    TopK,
    TreeCohort,
    UnconstrainedCohort,
)

NEAR = 1e-9  # relative to the scores: where rounding may decide


class Accepted(NamedTuple):
    """Columns that a rule accepts, and those so near the cut that rounding may decide."""

    accepted: set
    doubtful: set


def decide(rule, scores, *, reference=0.0, siblings=None) -> Accepted:
    """Decide one document; ``siblings`` maps each column to those under the same parent."""
    scores = [float(score) for score in scores]
    known = [c for c, s in enumerate(scores) if s > -math.inf]
    if not known:
        return Accepted(set(), set())
    if isinstance(rule, TopK):
        return top_cuts(scores, known, rule.k, rule.reject)
    if isinstance(rule, Threshold):
        return threshold_cuts(scores, known, rule.value, rule.reject)
    if isinstance(rule, MeanPlusStd):
        return deviation_cuts(scores, known, rule.reject)
    if max(scores) == math.inf:
        return Accepted({c for c in known if scores[c] == math.inf}, set())
    if isinstance(rule, TNorm):
        return tnorm_cuts(scores, known, rule.ratio, rule.reject)
    if isinstance(rule, UnconstrainedCohort) and rule.cohort == "next":
        return next_cuts(scores, known, rule.size, rule.ratio, rule.reject)
    if isinstance(rule, UnconstrainedCohort):
        return cohort_cuts(scores, known, rule.size, rule.ratio, rule.reject)
    if isinstance(rule, TreeCohort):
        z = sibling_scores(scores, known, siblings)
        return _near_best(z, scores, rule.ratio, rule.reject, exact=False)
    return ratio_cuts(scores, known, reference, rule.ratio, rule.reject)


def top_cuts(scores, known, k, reject):
    """Accept the k best; of equal scores, the first."""
    if reject and max(scores) <= 0:
        return Accepted(set(), set())
    return Accepted(set(sorted(known, key=lambda c: (-scores[c], c))[:k]), set())


def threshold_cuts(scores, known, value, reject):
    """Accept what reaches a value."""
    return _at_least_one({c for c in known if scores[c] >= value}, set(), scores, known, reject)


def deviation_cuts(scores, known, reject):
    """Accept what is a standard deviation above the mean of finite scores."""
    finite = [scores[c] for c in known if scores[c] < math.inf]
    mean = _mean(finite) if finite else 0.0
    deviation = math.sqrt(_mean([(s - mean) ** 2 for s in finite])) if finite else 0.0
    limit = mean + deviation if len(set(finite)) > 1 else math.inf
    doubtful = {c for c in known if abs(scores[c] - limit) <= NEAR * (1 + abs(mean))}
    accepted = {c for c in known if scores[c] >= limit} | doubtful
    return _at_least_one(accepted, doubtful, scores, known, reject)


def ratio_cuts(scores, known, reference, ratio, reject):
    """Accept what is near the best above the reference."""
    return _near_best({c: scores[c] - reference for c in known}, scores, ratio, reject)


def cohort_cuts(scores, known, size, ratio, reject):
    """Accept what is near the best above the mean of the best other labels."""
    best = {c: sorted((scores[o] for o in known if o != c), reverse=True) for c in known}
    z = {c: _less_mean(scores[c], best[c][:size]) for c in known}
    return _near_best(z, scores, ratio, reject)


def next_cuts(scores, known, size, ratio, reject):
    """Accept what is near the label that scores best, above the mean of the next lower scores."""
    z = next_scores(scores, known, size)
    top = z[max(known, key=scores.__getitem__)]
    return _near_best({c: min(z[c], top) for c in known}, scores, ratio, reject, exact=False)


def next_scores(scores, known, size):
    """Return each score less the mean of the next lower ones, 0 if there are none."""
    lower = {c: sorted(scores[o] for o in known if scores[o] < scores[c]) for c in known}
    return {c: _less_mean(scores[c], lower[c][::-1][:size]) for c in known}


def tnorm_cuts(scores, known, ratio, reject):
    """Accept what is near the best of standardized scores."""
    mean = _mean([scores[c] for c in known])
    deviation = math.sqrt(_mean([(scores[c] - mean) ** 2 for c in known]))
    equal = len({scores[c] for c in known}) == 1
    z = {c: 0.0 if equal else (scores[c] - mean) / deviation for c in known}
    return _near_best(z, scores, ratio, reject)


def sibling_scores(scores, known, siblings):
    """Return each score less the mean of the siblings, or of all others if there are none."""
    cohort = {c: [o for o in siblings[c] if o in known] for c in known}
    others = {c: cohort[c] or [o for o in known if o != c] for c in known}
    return {c: _less_mean(scores[c], [scores[o] for o in others[c]]) for c in known}


def accept(scores, cut, ties):
    """Return the columns above a cut and the first ones exactly at it."""
    at_cut = [c for c, score in enumerate(scores) if score == cut][: max(ties, 0)]
    return sorted([c for c, score in enumerate(scores) if score > cut] + at_cut)


def count_accepted(scores, cuts, ties, true):
    """Return how many columns each cut accepts, and how many of them are true."""
    answers = [accept(scores, *pair) for pair in zip(cuts, ties, strict=True)]
    return [len(columns) for columns in answers], [len(true.intersection(c)) for c in answers]


def _at_least_one(accepted, doubtful, scores, known, reject):
    if not accepted and not reject:
        accepted = {max(known, key=lambda c: (scores[c], -c))}
    return Accepted(accepted, doubtful)


def _near_best(z, scores, ratio, reject, *, exact=True):
    """Accept what is near the best z; with ``exact``, equal scores have exactly equal z."""
    best = max(z.values())
    scale = NEAR * (1 + max(abs(scores[c]) for c in z))
    if reject and best <= scale:
        doubtful = set(z) if best > -scale else set()
        return Accepted(set(), doubtful if best > 0 else set())
    limit = best - (1 - ratio) * abs(best)
    doubtful = {c for c in z if not (exact and z[c] == best) and abs(z[c] - limit) <= scale}
    return Accepted({c for c in z if z[c] >= limit or z[c] == best}, doubtful)


def _mean(values):
    return math.fsum(values) / len(values)


def _less_mean(score, others):
    return score - _mean(others) if others else 0.0
