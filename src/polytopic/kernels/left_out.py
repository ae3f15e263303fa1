"""Documents that are left out of what was learned, each with all temperatures at once.

A document's own labels have other words without it, and all label sets another prior; everything
else is shared by all documents.
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled
from polytopic.kernels.posterior import (
    ANSWERS,
    NEGLIGIBLE,
    NEVER,
    Problem,
    document,
    fill,
    first_slopes,
    make_room,
    nth_largest,
    place_of_largest,
    seen_set,
)
from polytopic.kernels.sets import SLACK, longest, score, steepness_bound, steepnesses, total_of

STEP, STEPS = 0.25, 200  # in nats: how finely heights of bounds are told apart, and how far down

PARTS = 1024  # of the steepest slope
LOGARITHMS = np.log(np.arange(1, PARTS + 2) / PARTS)  # of a part's upper end


class LeftOutPrior(NamedTuple):
    """Log priors of the seen sets, each without one document.

    A set has ``log(exp(log_kept) + exp(base + log_odds[labels].sum()))``, where a document's own
    set has ``own_log_kept``, and its own labels ``own_log_odds``. If its set is then ``empty``,
    it is a candidate only as a single label.
    """

    rows: np.ndarray  # the seen set of each document
    labels: np.ndarray  # of all documents, one after the other
    ends: np.ndarray  # where those of a document end, from 0 on
    base: np.ndarray
    own_log_odds: np.ndarray
    own_log_kept: np.ndarray
    empty: np.ndarray
    log_odds: np.ndarray
    log_kept: np.ndarray


@compiled
def own_theta(indices, indptr, labels, ends, own, counts, totals, smoothing, n_words, out):
    """Write the probabilities of each document's words under its labels without its own counts.

    Equivalent, for a document with words ``w`` and labels ``L`` that were learned to have said
    ``own`` of them, to writing::

        left = np.maximum(totals[L] - own.sum(axis=0), 0) + smoothing * n_words
        (np.maximum(counts[L][:, w].T - own, 0) + smoothing) / left

    where ``counts`` are the parts of a CSR matrix with sorted indices.
    """
    data, columns, rows = counts
    place = 0
    for d in range(indptr.size - 1):
        size, n_own = ends[d + 1] - ends[d], indptr[d + 1] - indptr[d]
        for j in range(size):
            label = labels[ends[d] + j]
            said = 0.0
            for k in range(n_own):
                said += own[place + k * size + j]
            left = max(totals[label] - said, 0.0) + smoothing * n_words
            row = slice(rows[label], rows[label + 1])
            for k in range(n_own):
                count = _count(data[row], columns[row], indices[indptr[d] + k])
                entry = place + k * size + j
                out[entry] = (max(count - own[entry], 0.0) + smoothing) / left
        place += size * n_own


@compiled
def _count(data, columns, column):
    """Return the count in a column of a sparse row, 0 if there is none."""
    first, last = 0, columns.size
    while first < last:
        middle = (first + last) // 2
        if columns[middle] < column:
            first = middle + 1
        else:
            last = middle
    if first < columns.size and columns[first] == column:
        return data[first]
    return 0.0


@compiled
def answers_by_temperature(
    data, indices, indptr, problem, prior, docs, theta, starts, temperatures, n_sets, kind, out
):
    """Write how good the answer to each document is at each temperature.

    Documents are those of ``prior`` at ``docs``, those with the same labels side by side; their own
    words have the probabilities ``theta`` from ``starts`` on, as :func:`own_theta` gives them. The
    answer is that of the best expected F or, with the ``kind`` 1 and 2, the most probable set; good
    is its F or, with the ``kind`` 2, whether it is right. Candidates are the ``n_sets`` seen sets
    with the highest bounds at the problem's temperature.
    """
    n_seen, n_labels = prior.log_kept.size, problem.theta.shape[1]
    room = make_room(n_seen, n_labels, longest(indptr))
    rows = np.empty((longest(indptr), n_labels))
    most, log_seen = _highest_log_priors(problem.prior, prior), np.empty(n_seen)
    odds, codes = prior.log_odds.copy(), np.empty(n_seen, np.int64)
    steep = np.empty(n_seen)
    for d in docs:
        own = prior.labels[prior.ends[d] : prior.ends[d + 1]]
        own_odds = prior.own_log_odds[prior.ends[d] : prior.ends[d + 1]]
        _own_rows(indices[indptr[d] : indptr[d + 1]], problem.theta, own, theta[starts[d] :], rows)
        allowed = _still_there(problem.labels, own, own_odds)
        alone = Problem(rows, problem.family, allowed, problem.prior, problem.temperature, -1)
        words = np.arange(indptr[d + 1] - indptr[d]).astype(np.int32)
        ends = np.array([0, words.size])
        x, words = document(data[indptr[d] :], words, ends, 0, problem.family, room)
        for j in range(own.size):
            odds[own[j]] = own_odds[j]
        n_codes = _candidates(
            x, words, alone, prior, d, odds, most, steep, n_sets, log_seen, codes, room
        )
        for label in own:
            odds[label] = prior.log_odds[label]
        scores = np.empty(n_codes)
        for j in range(n_codes):
            labels = seen_set(problem.prior, codes[j])
            scores[j] = score(x, room.rows, labels, problem.family, room.phi, NEVER, room.guess)
        best = _answers(
            codes[:n_codes], scores, log_seen, problem.prior, temperatures, kind, n_labels
        )
        for t in range(temperatures.size):
            out[d, t] = _goodness(seen_set(problem.prior, best[t]), own, kind)


@compiled
def _highest_log_priors(seen, prior):
    """Return the log priors of the seen sets that they have at most, whatever is left out."""
    out, base = np.empty(prior.log_kept.size), NEVER
    for value in prior.base:
        base = max(base, value)
    for row in range(out.size):
        total = 0.0
        for label in seen_set(seen, row):
            total += prior.log_odds[label]
        out[row] = np.logaddexp(prior.log_kept[row], base + total)
    return out


@compiled
def _log_prior(seen, prior, d, odds, row):
    """Return the log prior of a seen set without a document; ``-inf`` if it is none then."""
    labels, total, kept = seen_set(seen, row), 0.0, prior.log_kept[row]
    for label in labels:
        total += odds[label]
    if row == prior.rows[d]:
        kept = prior.own_log_kept[d]
        if prior.empty[d] and labels.size > 1:
            return NEVER
    return np.logaddexp(kept, prior.base[d] + total)


@compiled
def _own_rows(words, theta, own, values, out):
    """Write the probabilities of a document's words, those of its own labels without it."""
    place = 0
    for k in range(words.size):
        for label in range(theta.shape[1]):
            out[k, label] = theta[words[k], label]
        for label in own:
            out[k, label] = values[place]
            place += 1


@compiled
def _still_there(labels, own, own_log_odds):
    """Return the labels that still have documents."""
    kept = np.ones(labels.size, dtype=np.bool_)
    for j in range(own.size):
        if own_log_odds[j] == NEVER:
            for place in range(labels.size):
                kept[place] = kept[place] and labels[place] != own[j]
    return labels[kept]


@compiled
def _candidates(x, words, problem, prior, d, odds, most, steep, n_sets, log_seen, codes, room):
    """Write the seen sets with the highest bounds, and their log priors; return how many they are.

    Sets that are too low by a simpler bound are left out before logarithms are taken.
    """
    roofs, bounds, n_seen = room.bounds, room.values, most.size
    f, n_words = first_slopes(x, words, problem, room), total_of(x)
    sets, indptr = problem.prior.sets, problem.prior.indptr
    steepnesses(n_words, room.slope, sets, indptr, problem.family, steep)
    _roofs(f, n_words, problem, room.slope, steep, most, roofs)
    fill(bounds, NEVER)
    least, left = _height_of(roofs, n_sets), np.inf
    while left > least:  # at first those that are likely, then those that may be as high
        for row in range(n_seen):
            if least <= roofs[row] < left:
                log_seen[row] = _log_prior(problem.prior, prior, d, odds, row)
                bound = steepness_bound(f, n_words, steep[row]) / problem.temperature
                bounds[row] = bound + log_seen[row]
        left, least = least, nth_largest(bounds, n_sets)
    n_codes = 0
    for row in range(n_seen):
        if bounds[row] >= least and bounds[row] > NEVER:
            codes[n_codes] = row
            n_codes += 1
    return n_codes


@compiled
def _roofs(f, n_words, problem, slope, steep, most, out):
    """Write what bounds of seen sets cannot be above.

    Logarithms are read from a table, rounded up. (Sets that are steeper than the steepest label
    have one that is not there without the document.)
    """
    steepest = 0.0
    for label in problem.labels:
        steepest = max(steepest, slope[label])
    highest = steepness_bound(f, n_words, steepest) + SLACK * (1.0 + abs(f))
    for row in range(most.size):
        logarithm = LOGARITHMS[min(int(steep[row] / steepest * PARTS), PARTS)]
        out[row] = (highest + n_words * logarithm) / problem.temperature + most[row] + SLACK


@compiled
def _height_of(values, n):
    """Return a number that at least ``n`` of some values reach, and not many more if it can be."""
    top, numbers = values[place_of_largest(values)], np.zeros(STEPS, np.int64)
    for value in values:
        step = (top - value) / STEP
        if step < STEPS:
            numbers[int(step)] += 1
    total = 0
    for step in range(STEPS):
        total += numbers[step]
        if total >= n:
            return top - (step + 1) * STEP
    return NEVER


@compiled
def _answers(codes, scores, log_seen, prior, temperatures, kind, n_labels):
    """Return the seen set that is the answer at each temperature."""
    n_temperatures = temperatures.size
    weights = np.zeros((codes.size, n_temperatures))
    best = np.zeros(n_temperatures, dtype=np.int64)
    for t in range(n_temperatures):
        top = NEVER
        for j in range(codes.size):
            weights[j, t] = scores[j] / temperatures[t] + log_seen[codes[j]]
            if weights[j, t] > top:
                best[t], top = codes[j], weights[j, t]
        for j in range(codes.size):
            below = weights[j, t] - top
            weights[j, t] = np.exp(below) if weights[j, t] >= top - NEGLIGIBLE else 0.0
    if kind > 0:
        return best
    return _best_expected_f(codes, weights, prior, n_labels)


@compiled
def _best_expected_f(codes, weights, prior, n_labels):
    """Return the set of the best expected F for each column of weights.

    The same as :func:`~polytopic.kernels.posterior.best_expected_f` for each, but what sets have
    in common is counted once.
    """
    n_columns = weights.shape[1]
    best, highest = np.zeros(n_columns, dtype=np.int64), np.full(n_columns, NEVER)
    answer, expected = np.zeros(n_labels, dtype=np.bool_), np.empty(n_columns)
    for i in range(codes.size):
        if weights[i].max() < ANSWERS:
            continue
        labels = seen_set(prior, codes[i])
        for label in labels:
            answer[label] = True
        fill(expected, 0.0)
        for j in range(codes.size):
            other, common = seen_set(prior, codes[j]), 0
            for label in other:
                common += answer[label]
            if common > 0:
                size = labels.size + other.size
                for t in range(n_columns):
                    expected[t] += weights[j, t] * 2.0 * common / size
        for label in labels:
            answer[label] = False
        for t in range(n_columns):
            if weights[i, t] >= ANSWERS and expected[t] > highest[t]:
                best[t], highest[t] = codes[i], expected[t]
    return best


@compiled
def _goodness(answer, own, kind):
    """Return the F of an answer or, with the ``kind`` 2, whether it is right."""
    common = 0
    for label in own:
        for other in answer:
            common += label == other
    if kind == 2:
        return 1.0 if common == own.size and common == answer.size else 0.0
    return 2.0 * common / (own.size + answer.size)
