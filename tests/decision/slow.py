"""The rules as they are told, in plain Python, for one document: slow twins of the kernels."""

import math
from typing import NamedTuple

from polytopic.decision import MeanPlusStd, Threshold, TNorm, TopK, TreeCohort, UnconstrainedCohort

NEAR = 1e-9  # of the scores: where rounding may decide


class Answer(NamedTuple):
    """Columns that a rule accepts, and those at the very border, which rounding may decide."""

    accepted: set
    doubtful: set


def decide(rule, scores, *, reference=0.0, siblings=None) -> Answer:
    """Decide one document; ``siblings`` maps each column to those under the same parent."""
    scores = [float(score) for score in scores]
    known = [c for c, s in enumerate(scores) if s > -math.inf]
    if not known:
        return Answer(set(), set())
    if isinstance(rule, TopK):
        return Answer(_top(rule, scores, known), set())
    if isinstance(rule, Threshold | MeanPlusStd):
        return _above(rule, scores, known)
    if max(scores) == math.inf:
        return Answer({c for c in known if scores[c] == math.inf}, set())
    return _near_best(rule, _normalised(rule, scores, known, reference, siblings), scores)


def _top(rule, scores, known):
    if rule.reject and max(scores) <= 0:
        return set()
    return set(sorted(known, key=lambda c: (-scores[c], c))[: rule.k])


def _above(rule, scores, known):
    if isinstance(rule, Threshold):
        accepted, doubtful = {c for c in known if scores[c] >= rule.value}, set()
    else:
        finite = [scores[c] for c in known if scores[c] < math.inf]
        mean = _mean(finite) if finite else 0.0
        deviation = math.sqrt(_mean([(s - mean) ** 2 for s in finite])) if finite else 0.0
        limit = mean + deviation if len(set(finite)) > 1 else math.inf
        scale = NEAR * (1 + abs(mean))
        doubtful = {c for c in known if abs(scores[c] - limit) <= scale}
        accepted = {c for c in known if scores[c] >= limit} | doubtful
    if not accepted and not rule.reject:
        accepted = {max(known, key=lambda c: (scores[c], -c))}
    return Answer(accepted, doubtful)


def _normalised(rule, scores, known, reference, siblings):
    """Return the normalised scores of the known columns."""
    if isinstance(rule, TNorm):
        mean = _mean([scores[c] for c in known])
        deviation = math.sqrt(_mean([(scores[c] - mean) ** 2 for c in known]))
        equal = len({scores[c] for c in known}) == 1
        return {c: 0.0 if equal else (scores[c] - mean) / deviation for c in known}
    if isinstance(rule, UnconstrainedCohort):
        best = {c: sorted((scores[o] for o in known if o != c), reverse=True) for c in known}
        return {c: _less_mean(scores[c], best[c][: rule.size]) for c in known}
    if isinstance(rule, TreeCohort):
        cohort = {c: [o for o in siblings[c] if o in known] for c in known}
        others = {c: cohort[c] or [o for o in known if o != c] for c in known}
        return {c: _less_mean(scores[c], [scores[o] for o in others[c]]) for c in known}
    return {c: scores[c] - reference for c in known}


def _near_best(rule, z, scores):
    best = max(z.values())
    scale = NEAR * (1 + max(abs(scores[c]) for c in z))
    if rule.reject and best <= scale:
        doubtful = set(z) if best > -scale else set()
        return Answer(set(), doubtful if best > 0 else set())
    limit = best - (1 - rule.ratio) * abs(best)
    exact = not isinstance(rule, TreeCohort)  # elsewhere equal scores are equally good, exactly
    doubtful = {c for c in z if not (exact and z[c] == best) and abs(z[c] - limit) <= scale}
    return Answer({c for c in z if z[c] >= limit or z[c] == best}, doubtful)


def _mean(values):
    return math.fsum(values) / len(values)


def _less_mean(score, others):
    return score - _mean(others) if others else 0.0
