"""Predictions for training documents at many temperatures, by models that never saw them.

Without a document, its own labels have other word probabilities and all label sets another prior;
everything else is shared by all documents. Candidates are seen sets alone.

====================  ============================================================================
``own``               labels of the document that is left out
``own_odds``          their log odds in the prior without the document
``theta``             word probabilities under these labels without the document, see
                      :func:`polytopic.kernels.words.loo_theta`
``log_seen``          log prior of each seen set without the document
``steep``             steepness of each seen set, see :func:`likelihood_kernels.steepness`
``ceilings``          cheap upper bounds on the bounds of seen sets
``kind``              of prediction and quality: F_SCORE, GREEDY or MAP
====================  ============================================================================
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled, helper
from polytopic.models.mixture.candidate_kernels import (
    LIKELY,
    NEGLIGIBLE,
    NEVER,
    Problem,
    argmax,
    fill,
    first_slopes,
    new_workspace,
    nth_largest,
    read_document,
    seen_set,
)
from polytopic.models.mixture.likelihood_kernels import (
    SLACK,
    bound_at,
    log_likelihood,
    longest,
    set_steepness,
    total_of,
)

F_SCORE, GREEDY, MAP = range(3)  # best set by expected F; most probable set, by F; by exact match
BIN, BINS = 0.25, 200  # width in nats, and number, of the histogram of ceilings
PARTS = 1024  # of the steepest slope
LOGARITHMS = np.log(np.arange(1, PARTS + 2) / PARTS)  # of the upper end of each part


class LeaveOneOutPrior(NamedTuple):
    """Log priors of the seen sets without one document, for each of many documents.

    Without document ``d`` a set has the log prior ``logaddexp(log_discounted, base[d] +
    log_odds[labels].sum())``, except that the document's own set has ``own_log_discounted[d]``, and
    its own labels ``own_log_odds``. If no other document has its set (``empty``), the set is a
    candidate only if it is a single label.
    """

    rows: np.ndarray  # the seen set of each document
    labels: np.ndarray  # of all documents
    ends: np.ndarray  # document d has labels[ends[d] : ends[d + 1]]
    base: np.ndarray
    own_log_odds: np.ndarray
    own_log_discounted: np.ndarray
    empty: np.ndarray
    log_odds: np.ndarray
    log_discounted: np.ndarray


@compiled
def quality_by_temperature(
    data, indices, indptr, problem, prior, docs, theta, starts, temperatures, n_sets, kind, out
):
    """Write the quality of the answer to each document at each temperature.

    ``docs`` are rows of the documents, those with the same labels next to each other; ``theta`` of
    document ``d`` begins at ``starts[d]``. Candidates are the ``n_sets`` seen sets with the highest
    bounds at the problem's own temperature. Equivalent, for each document ``d``, to::

        values = log_likelihoods / temperature + log_seen
        answer = best_expected_f(values) if kind == F_SCORE else seen[np.argmax(values)]
        out[d, t] = answer == own if kind == MAP else f_score(answer, own)
    """
    n_seen, n_labels = prior.log_discounted.size, problem.theta.shape[1]
    work = new_workspace(n_seen, n_labels, longest(indptr))
    rows = np.empty((longest(indptr), n_labels))
    most, log_seen = _largest_log_priors(problem.prior, prior), np.empty(n_seen)
    odds, codes = prior.log_odds.copy(), np.empty(n_seen, np.int64)
    steep = np.empty(n_seen)
    for d in docs:
        own = prior.labels[prior.ends[d] : prior.ends[d + 1]]
        own_odds = prior.own_log_odds[prior.ends[d] : prior.ends[d + 1]]
        _copy_theta(
            indices[indptr[d] : indptr[d + 1]], problem.theta, own, theta[starts[d] :], rows
        )
        allowed = _remaining_labels(problem.labels, own, own_odds)
        without = Problem(rows, problem.family, allowed, problem.prior, problem.temperature, -1)
        words = np.arange(indptr[d + 1] - indptr[d]).astype(np.int32)
        ends = np.array([0, words.size])
        x, words = read_document(data[indptr[d] :], words, ends, 0, problem.family, work)
        for j in range(own.size):
            odds[own[j]] = own_odds[j]
        n_codes = _find_candidates(
            x, words, without, prior, d, odds, most, steep, n_sets, log_seen, codes, work
        )
        for label in own:
            odds[label] = prior.log_odds[label]
        scores = np.empty(n_codes)
        for j in range(n_codes):
            labels = seen_set(problem.prior, codes[j])
            scores[j] = log_likelihood(
                x, work.rows, labels, problem.family, work.phi, NEVER, work.guess
            )
        answers = _answers(
            codes[:n_codes], scores, log_seen, problem.prior, temperatures, kind, n_labels
        )
        for t in range(temperatures.size):
            out[d, t] = _quality(seen_set(problem.prior, answers[t]), own, kind)


@helper
def _largest_log_priors(seen, prior):
    """Return the largest log prior of each seen set, whichever document is left out."""
    out, base = np.empty(prior.log_discounted.size), NEVER
    for value in prior.base:
        base = max(base, value)
    for row in range(out.size):
        total = 0.0
        for label in seen_set(seen, row):
            total += prior.log_odds[label]
        out[row] = np.logaddexp(prior.log_discounted[row], base + total)
    return out


@helper
def _log_prior(seen, prior, d, odds, row):
    """Return the log prior of a seen set without a document; ``-inf`` if it is no candidate."""
    labels, total, log_discounted = seen_set(seen, row), 0.0, prior.log_discounted[row]
    for label in labels:
        total += odds[label]
    if row == prior.rows[d]:
        log_discounted = prior.own_log_discounted[d]
        if prior.empty[d] and labels.size > 1:
            return NEVER
    return np.logaddexp(log_discounted, prior.base[d] + total)


@helper
def _copy_theta(words, theta, own, values, out):
    """Copy the probabilities of a document's words, with ``values`` for its own labels."""
    place = 0
    for k in range(words.size):
        for label in range(theta.shape[1]):
            out[k, label] = theta[words[k], label]
        for label in own:
            out[k, label] = values[place]
            place += 1


@helper
def _remaining_labels(labels, own, own_odds):
    """Return the labels that other documents have."""
    remain = np.ones(labels.size, dtype=np.bool_)
    for j in range(own.size):
        if own_odds[j] == NEVER:
            for place in range(labels.size):
                remain[place] = remain[place] and labels[place] != own[j]
    return labels[remain]


@helper
def _find_candidates(x, words, problem, prior, d, odds, most, steep, n_sets, log_seen, codes, work):
    """Write the seen sets with the highest bounds, and their log priors; return their number.

    Bounds take two logarithms each, so only sets with high ceilings get one: first those that are
    likely to be among the ``n_sets`` best, then all whose ceilings reach the last of these.
    """
    ceilings, bounds, n_seen = work.bounds, work.values, most.size
    f, n_words = first_slopes(x, words, problem, work), total_of(x)
    sets, indptr = problem.prior.sets, problem.prior.indptr
    set_steepness(n_words, work.slope, sets, indptr, problem.family, steep)
    _write_ceilings(f, n_words, problem, work.slope, steep, most, ceilings)
    fill(bounds, NEVER)
    least, done = _rough_nth_largest(ceilings, n_sets), np.inf
    while done > least:
        for row in range(n_seen):
            if least <= ceilings[row] < done:
                log_seen[row] = _log_prior(problem.prior, prior, d, odds, row)
                bound = bound_at(f, n_words, steep[row]) / problem.temperature
                bounds[row] = bound + log_seen[row]
        done, least = least, nth_largest(bounds, n_sets)
    n_codes = 0
    for row in range(n_seen):
        if bounds[row] >= least and bounds[row] > NEVER:
            codes[n_codes] = row
            n_codes += 1
    return n_codes


@helper
def _write_ceilings(f, n_words, problem, slope, steep, most, out):
    """Write numbers that the bounds of seen sets do not exceed.

    Logarithms are looked up in a table, rounded up. A set that is steeper than the steepest
    remaining label has a label that does not remain; it is no candidate.
    """
    steepest = 0.0
    for label in problem.labels:
        steepest = max(steepest, slope[label])
    highest = bound_at(f, n_words, steepest) + SLACK * (1.0 + abs(f))
    for row in range(most.size):
        logarithm = LOGARITHMS[min(int(steep[row] / steepest * PARTS), PARTS)]
        out[row] = (highest + n_words * logarithm) / problem.temperature + most[row] + SLACK


@helper
def _rough_nth_largest(values, n):
    """Return a number that at least ``n`` values reach, and few more, by a histogram."""
    top, numbers = values[argmax(values)], np.zeros(BINS, np.int64)
    for value in values:
        place = (top - value) / BIN
        if place < BINS:
            numbers[int(place)] += 1
    total = 0
    for place in range(BINS):
        total += numbers[place]
        if total >= n:
            return top - (place + 1) * BIN
    return NEVER


@helper
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
    if kind != F_SCORE:
        return best
    return _best_expected_f(codes, weights, prior, n_labels)


@helper
def _best_expected_f(codes, weights, prior, n_labels):
    """Return the set of the best expected F for each column of weights.

    Equivalent to :func:`candidate_kernels.best_expected_f` column by column; what two sets have in
    common is counted once for all columns.
    """
    n_columns = weights.shape[1]
    best, highest = np.zeros(n_columns, dtype=np.int64), np.full(n_columns, NEVER)
    answer, expected = np.zeros(n_labels, dtype=np.bool_), np.empty(n_columns)
    for i in range(codes.size):
        if weights[i].max() < LIKELY:
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
            if weights[i, t] >= LIKELY and expected[t] > highest[t]:
                best[t], highest[t] = codes[i], expected[t]
    return best


@helper
def _quality(answer, own, kind):
    """Return the F of an answer or, for ``MAP``, whether it is exactly right."""
    common = 0
    for label in own:
        for other in answer:
            common += label == other
    if kind == MAP:
        return 1.0 if common == own.size and common == answer.size else 0.0
    return 2.0 * common / (own.size + answer.size)
