"""The posterior over label sets, document by document, on a small number of candidates.

The *value* of a label set is its log posterior up to a constant, ``log_likelihood / temperature +
log_prior``. The candidates of a document are

- the *seen* sets, those of the training documents and each label alone;
- the *centre*: the set that hill climbing reaches from the best seen set by adding or removing one
  label at a time;
- the *neighbours* of the centre: all sets that differ from it in one label.

=================  ===============================================================================
``code``           a candidate: row of a seen set; ``n_seen + label`` for the neighbour of the
                   centre that differs in ``label``; ``n_seen + n_labels`` for the centre itself
``values``         value of each candidate by code; ``-inf`` if unknown or certainly irrelevant
``bounds``         upper bound on the value of each seen set
``center``         sorted labels of the centre, then -1
``key``            exclusive-or of the labels' random keys, which identifies a set
``cutoff``         candidates whose values are this far below the best need not be exact
``x, words``       a document, with ``n_words`` words in all
``f, slope``       log likelihood at some weights and its gradient, see :mod:`likelihood_kernels`
=================  ===============================================================================
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled, helper, inlined
from polytopic.models.mixture.likelihood_kernels import (
    MAX_REPEATS,
    Family,
    bound_at,
    gather,
    guess_weights,
    log_likelihood,
    longest,
    repeat_words,
    set_bound,
    set_steepness,
    slopes,
    total_of,
)

NEVER = -np.inf
UNKNOWN = np.inf  # ``f`` where no slopes are known: the bound of every set is then infinite
ROUNDING = 1e-12  # a neighbour must be better by more, relative to the value
NEGLIGIBLE = 9.0  # nats below the best set: about a ten-thousandth of its probability
ROUGH = 16.0  # nats below the best set: all such sets change at most a probability's fourth digit
PRECISE = 25.0  # nats below the best set: all such sets change at most its ninth digit
NEAR = 1e-9  # expected F this close to the best is compared exactly
LIKELY = 0.01  # answers by expected F are at least this likely, relative to the likeliest set
LARGE = 1e100  # its cube is still a finite float
ROUNDING_32 = 2.0**-23  # twice the rounding error of float32
LOG, PLAIN = 0, 1  # the two tables of `rough`


class Prior(NamedTuple):
    """Log priors of label sets.

    Seen set ``i`` has the labels ``sets[indptr[i] : indptr[i + 1]]`` and the log prior
    ``log_seen[i]``; any other set has ``base + log_odds[labels].sum()``. ``keys`` are the keys of
    the seen sets in ascending order, and ``rows`` their rows.
    """

    sets: np.ndarray
    indptr: np.ndarray
    log_seen: np.ndarray
    base: float
    log_odds: np.ndarray
    label_keys: np.ndarray
    keys: np.ndarray
    rows: np.ndarray


class Problem(NamedTuple):
    """All but the documents. If ``required`` is a label, not -1, all seen sets have it."""

    theta: np.ndarray
    family: Family
    labels: np.ndarray  # that a set may have
    prior: Prior
    temperature: float
    required: int


class Workspace(NamedTuple):
    """Buffers that are reused from one document to the next."""

    values: np.ndarray  # of candidates
    bounds: np.ndarray  # of seen sets
    slope: np.ndarray  # of labels
    center: np.ndarray
    buffer: np.ndarray  # labels of a set
    phi: np.ndarray  # of words
    rows: np.ndarray  # theta of the document, labels × words
    guess: np.ndarray  # Dirichlet parameters of the centre
    x: np.ndarray  # of words, repeated
    words: np.ndarray


@helper
def new_workspace(n_seen, n_labels, longest):
    """Return buffers for documents of up to ``longest`` distinct words."""
    longest *= MAX_REPEATS
    return Workspace(
        np.empty(n_seen + n_labels + 1),
        np.empty(n_seen),
        np.empty(n_labels),
        np.empty(n_labels + 1, dtype=np.int64),
        np.empty(n_labels, dtype=np.int64),
        np.empty(longest),
        np.empty((n_labels, longest)),
        np.empty(n_labels),
        np.empty(longest),
        np.empty(longest, dtype=np.int64),
    )


@helper
def read_document(data, indices, indptr, d, family, work):
    """Return the counts and words of a document, arranged for speed."""
    x, words = data[indptr[d] : indptr[d + 1]], indices[indptr[d] : indptr[d + 1]]
    # variational Bayes visits the words many times, so there they are not repeated
    repeats = MAX_REPEATS if family.mixing is None else 1
    return repeat_words(x, words, repeats, work.x, work.words)


@helper
def fill(array, value):
    """Set all elements: ``array[:] = value``."""
    for j in range(array.size):
        array[j] = value


@helper
def argmax(values):
    """Return ``np.argmax(values)``."""
    best = 0
    for place in range(1, values.size):
        if values[place] > values[best]:
            best = place
    return best


@helper
def nth_largest(values, n):
    """Return ``np.sort(values)[-n]``, or ``-inf`` if there are fewer values."""
    largest = np.empty(n)
    fill(largest, NEVER)
    for value in values:
        place = n - 1
        if value > largest[place]:
            while place > 0 and largest[place - 1] < value:
                largest[place] = largest[place - 1]
                place -= 1
            largest[place] = value
    return largest[n - 1]


# Label sets


@inlined
def seen_set(prior, row):
    """Return the labels of a seen set."""
    return prior.sets[prior.indptr[row] : prior.indptr[row + 1]]


@helper
def set_key(prior, labels):
    """Return ``np.bitwise_xor.reduce(prior.label_keys[labels])``."""
    key = np.uint64(0)
    for label in labels:
        key ^= prior.label_keys[label]
    return key


@helper
def unseen_log_prior(prior, labels):
    """Return ``prior.base + prior.log_odds[labels].sum()``."""
    log_prior = prior.base
    for label in labels:
        log_prior += prior.log_odds[label]
    return log_prior


@helper
def find_seen(prior, labels, key):
    """Return the row of a set among the seen sets, -1 if it was not seen."""
    first, last = 0, prior.keys.size
    while first < last:
        middle = (first + last) // 2
        if prior.keys[middle] < key:
            first = middle + 1
        else:
            last = middle
    row = -1
    while row < 0 and first < prior.keys.size and prior.keys[first] == key:
        if _is_set(labels, prior.sets, prior.indptr, prior.rows[first]):
            row = prior.rows[first]
        first += 1
    return row


@inlined
def _is_set(labels, sets, indptr, row):
    """Return whether a row of a CSR indicator has these labels."""
    first, size = indptr[row], indptr[row + 1] - indptr[row]
    same = size == labels.size
    for j in range(min(size, labels.size)):
        same &= sets[first + j] == labels[j]
    return same


@helper
def members(code, prior, center, buffer):
    """Write the sorted labels of a candidate into ``buffer``; return them."""
    first, last, flip = 0, 0, code - prior.log_seen.size
    if flip < 0:
        first, last = prior.indptr[code], prior.indptr[code + 1]
    size = last - first
    for j in range(size):
        buffer[j] = prior.sets[first + j]
    return _flipped_center(flip, center, buffer) if flip >= 0 else buffer[:size]


@inlined
def _flipped_center(flip, center, buffer):
    """Write the centre with one label flipped into ``buffer``; return its labels.

    Equivalent to ``sorted(set(center) ^ {flip})``; a ``flip`` beyond the last label flips none.
    """
    size, place, to_add = 0, 0, flip < center.size - 1
    while center[place] >= 0:
        label = center[place]
        if to_add and label > flip:
            buffer[size] = flip
            size += 1
        to_add &= label < flip
        if label != flip:
            buffer[size] = label
            size += 1
        place += 1
    if to_add:
        buffer[size] = flip
        size += 1
    return buffer[:size]


@helper
def _center_code(work):
    """Return the code of the centre, for a centre that is not a seen set."""
    return work.values.size - 1


@helper
def flip_center(label, center):
    """Add a label to the centre, or remove it if it is there; return 1 or -1."""
    place = 0
    while -1 < center[place] < label:
        place += 1
    if center[place] == label:
        while center[place] >= 0:
            center[place] = center[place + 1]
            place += 1
        return -1
    moved = label
    while moved >= 0:
        center[place], moved = moved, center[place]
        place += 1
    center[place] = -1
    return 1


# Values and bounds


@inlined
def value_of(x, problem, labels, log_prior, least, work):
    """Return ``log_likelihood / temperature + log_prior`` of a set.

    If it turns out to be below ``least``, the result may be ``-inf`` instead.
    """
    needed = (least - log_prior) * problem.temperature
    likelihood = log_likelihood(x, work.rows, labels, problem.family, work.phi, needed, work.guess)
    return likelihood / problem.temperature + log_prior


@inlined
def _may_reach(least, f, n_words, problem, labels, log_prior, slope):
    """Return whether a set's value may be ``least`` or more, by its bound from ``slope``."""
    needed = (least - log_prior) * problem.temperature
    return set_bound(f, n_words, slope, labels, problem.family) >= needed


@helper
def _value_seen(x, problem, row, least, work):
    """Find the value of a seen set, ``-inf`` if it is below ``least``; store and return it."""
    labels, log_prior = seen_set(problem.prior, row), problem.prior.log_seen[row]
    work.values[row] = value_of(x, problem, labels, log_prior, least, work)
    return work.values[row]


@helper
def first_slopes(x, words, problem, work):
    """Write ``work.rows``, and slopes one EM step away from equal weights; return ``f`` there.

    One step is enough to tell labels apart, and more would make the slopes of labels with small
    weights steep and their bounds loose.
    """
    theta, labels = problem.theta, problem.labels
    gather(words, theta, labels, work.rows)
    weights = work.guess
    fill(weights, 1.0 / labels.size)
    f = 0.0
    for _step in range(2):
        fill(work.phi[: x.size], 0.0)
        for label in labels:
            for k in range(x.size):
                work.phi[k] += weights[label] * work.rows[label, k]
        f = slopes(x, words, theta, work.phi[: x.size], work.slope)
        for label in labels:
            weights[label] *= work.slope[label]
    fill(work.guess, 0.0)
    return f


@helper
def _center_slopes(x, words, problem, work):
    """Write slopes at the centre's own weights, and ``work.guess``; return ``f`` there."""
    labels = members(_center_code(work), problem.prior, work.center, work.buffer)
    guess_weights(x, work.rows, labels, problem.family.mixing, work.guess)
    log_likelihood(x, work.rows, labels, problem.family, work.phi, NEVER, work.guess)
    return slopes(x, words, problem.theta, work.phi[: x.size], work.slope)


# Finding the candidates


@helper
def find_candidates(x, words, problem, cutoff, full, n_best, work):
    """Write the values of a document's candidates; return the code of the best.

    Values stay ``-inf`` for candidates that are certainly more than ``cutoff`` below the best. With
    ``full``, the ``n_best`` candidates and the best ones with and without each label are always
    evaluated. Equivalent, up to these omissions, to::

        values[:n_seen] = [value(y) for y in seen]
        center = climb(seen[argmax(values)])
        values[n_seen:] = [value(center ^ {label}) for label in labels]
    """
    family, prior, temperature = problem.family, problem.prior, problem.temperature
    values, bounds, n_seen = work.values, work.bounds, problem.prior.log_seen.size
    f = first_slopes(x, words, problem, work)
    n_words = total_of(x)
    fill(values, NEVER)
    set_steepness(n_words, work.slope, prior.sets, prior.indptr, family, bounds)
    start = -1
    for row in range(n_seen):
        bounds[row] = bound_at(f, n_words, bounds[row]) / temperature + prior.log_seen[row]
        if start < 0 or bounds[row] > bounds[start]:
            start = row
    best, top = -1, NEVER
    for place in range(-1, n_seen):  # the most promising set first, it rules out most others
        row = start if place < 0 else place
        if row >= 0 and values[row] == NEVER and bounds[row] >= top - cutoff:
            value = _value_seen(x, problem, row, top - cutoff, work)
            if value > top or (value == top and row < best):
                best, top = row, value
    best = _climb(x, words, problem, best, cutoff, full, work)
    if full:
        _complete_seen(x, problem, np.ones(work.slope.size, dtype=np.bool_), work)
        least = nth_largest(values, n_best)
        for row in range(n_seen):
            if values[row] == NEVER and bounds[row] >= least:
                _value_seen(x, problem, row, NEVER, work)
        best = argmax(values)
    return best


@helper
def _climb(x, words, problem, best, cutoff, full, work):
    """Move the centre to its best neighbour as long as that is better; return its code.

    It starts from the seen set ``best`` or, if that is -1, from the required label or nothing. The
    values of the last centre and its neighbours are left in ``work.values``. Equivalent to::

        while True:
            neighbours = [center ^ {label} for label in problem.labels]
            if max(map(value, neighbours)) <= value(center):
                return center
            center = max(neighbours, key=value)
    """
    prior, values, center, buffer = problem.prior, work.values, work.center, work.buffer
    n_seen, itself = prior.log_seen.size, _center_code(work)
    fill(center, -1)
    if best >= 0:
        for label in seen_set(prior, best):
            flip_center(label, center)
    elif problem.required >= 0:
        flip_center(problem.required, center)
    labels = members(itself, prior, center, buffer)
    key, log_prior = set_key(prior, labels), unseen_log_prior(prior, labels)
    top = NEVER
    if best >= 0:
        top = values[best]
    elif labels.size > 0:
        top = value_of(x, problem, labels, log_prior, NEVER, work)
    while True:
        fill(values[n_seen:], NEVER)
        if best < 0:
            best = itself
            values[best] = top
        f = UNKNOWN
        if members(itself, prior, center, buffer).size > 0 and not full:
            f = _center_slopes(x, words, problem, work)
        flip = _best_flip(x, problem, key, log_prior, top, cutoff, f, work)
        if flip < 0:
            return best
        log_prior += flip_center(flip, center) * prior.log_odds[flip]
        key ^= prior.label_keys[flip]
        best = find_seen(prior, members(itself, prior, center, buffer), key)
        top = values[best if best >= 0 else n_seen + flip]


@helper
def _best_flip(x, problem, key, log_prior, top, cutoff, f, work):
    """Find the values of the centre's neighbours; return the label that leads to the best.

    Returns -1 if no neighbour is better than ``top``, the value of the centre. ``key`` and
    ``log_prior`` are those of the centre, the latter as if it had not been seen. Neighbours whose
    bound, taken at ``f``, is more than ``cutoff`` below the best are not evaluated.
    """
    prior, values, center, buffer = problem.prior, work.values, work.center, work.buffer
    n_seen, size = prior.log_seen.size, members(_center_code(work), prior, center, buffer).size
    n_words, flip, highest = total_of(x), -1, NEVER
    if top > NEVER:
        highest = top + ROUNDING * (1.0 + abs(top))
    for label in problem.labels:
        labels = _flipped_center(label, center, buffer)
        if labels.size > 0 and label != problem.required:
            code = n_seen + label
            log_flipped = log_prior + (labels.size - size) * prior.log_odds[label]
            row = find_seen(prior, labels, key ^ prior.label_keys[label])
            if row >= 0:
                code, log_flipped = row, prior.log_seen[row]
            least = highest - cutoff if f < UNKNOWN else NEVER
            if values[code] == NEVER and _may_reach(
                least, f, n_words, problem, labels, log_flipped, work.slope
            ):
                values[code] = value_of(x, problem, labels, log_flipped, least, work)
            if values[code] > highest:
                flip, highest = label, values[code]
    return flip


@helper
def _complete_neighbours(x, words, problem, exact_labels, work):
    """Evaluate the neighbours that may be the best set with, or without, one of some labels."""
    prior, center, buffer = problem.prior, work.center, work.buffer
    labels = members(_center_code(work), prior, center, buffer)
    size, key = labels.size, set_key(prior, labels)
    n_words, log_prior = total_of(x), unseen_log_prior(prior, labels)
    f = _center_slopes(x, words, problem, work) if size > 0 else UNKNOWN
    inside, outside = _best_with_and_without(prior, work)
    for flip in problem.labels:
        code = prior.log_seen.size + flip
        if exact_labels[flip] and work.values[code] == NEVER and flip != problem.required:
            labels = _flipped_center(flip, center, buffer)
            if labels.size == 0 or find_seen(prior, labels, key ^ prior.label_keys[flip]) >= 0:
                continue
            log_flipped = log_prior + (labels.size - size) * prior.log_odds[flip]
            least = NEVER
            if f < UNKNOWN:
                least = inside[flip] if labels.size > size else outside[flip]
            if _may_reach(least, f, n_words, problem, labels, log_flipped, work.slope):
                work.values[code] = value_of(x, problem, labels, log_flipped, least, work)


@helper
def _complete_seen(x, problem, exact_labels, work):
    """Evaluate the seen sets that may be the best with, or without, one of some labels.

    The best set without a label that the overall best set lacks is that best set.
    """
    prior = problem.prior
    values, bounds = work.values, work.bounds
    inside, outside = _best_with_and_without(prior, work)
    top, best = values[argmax(values)], _best_labels(prior, work)
    n_exact = exact_labels.sum()
    for row in range(bounds.size):
        if values[row] == NEVER:
            labels = seen_set(prior, row)
            least, n_covered = bounds[row], 0
            for label in labels:
                if exact_labels[label]:
                    least, n_covered = min(least, inside[label]), n_covered + 1
            for label in best:
                if exact_labels[label] and not _contains(labels, label):
                    least, n_covered = min(least, outside[label]), n_covered + 1
            if n_covered < n_exact:
                least = min(least, top)
            if least < bounds[row]:
                value = _value_seen(x, problem, row, least, work)
                top = max(top, value)
                for label in labels:
                    inside[label] = max(inside[label], value)
                for label in best:
                    if not _contains(labels, label):
                        outside[label] = max(outside[label], value)


@helper
def _contains(labels, label):
    for other in labels:  # noqa: SIM110  (numba compiles no generator expressions)
        if other == label:
            return True
    return False


@helper
def _best_labels(prior, work):
    """Return the labels of the candidate with the largest value."""
    return members(argmax(work.values), prior, work.center, work.buffer).copy()


@helper
def _best_with_and_without(prior, work):
    """Return the value of the best candidate with each label, and of the best without it.

    Equivalent, with ``Y`` the indicator of the candidates, to::

        inside = np.where(Y, values[:, None], -inf).max(axis=0)
        outside = np.where(Y, -inf, values[:, None]).max(axis=0)
    """
    values, center, buffer = work.values, work.center, work.buffer
    inside, outside = np.empty(buffer.size), np.empty(buffer.size)
    fill(inside, NEVER)
    fill(outside, values[argmax(values)])
    best = _best_labels(prior, work)
    for label in best:
        outside[label] = NEVER  # only these labels need a search
    for code in range(values.size):
        if values[code] > NEVER:
            labels = members(code, prior, center, buffer)
            for label in labels:
                inside[label] = max(inside[label], values[code])
            for label in best:
                if values[code] > outside[label] and not _contains(labels, label):
                    outside[label] = values[code]
    return inside, outside


# Answers from the candidates


@compiled
def assess(data, indices, indptr, problem, by_f, exact_labels, chosen, margins, marginals):
    """Choose each document's label set: the most probable or, ``by_f``, of the best expected F.

    ``chosen`` is an indicator; documents without words get no label. Unless ``margins`` is empty,
    it gets the value of the best set with each label minus that of the best without it, and
    ``marginals`` the probability of each label in the posterior over the candidates. Unless
    ``exact_labels`` (a mask) is empty, only the margins of these and of the chosen labels are
    exact, and probabilities only to about four digits. Equivalent, with ``Y`` the indicator of a
    document's candidates, ``values`` their values and ``w = np.exp(values - values.max())``, to::

        F = 2 * Y @ Y.T / np.add.outer(Y.sum(axis=1), Y.sum(axis=1))
        chosen[d] = Y[np.argmax(np.where(w >= LIKELY, F @ w, -inf) if by_f else values)]
        inside = np.where(Y, values[:, None], -inf).max(axis=0)
        margins[d] = inside - np.where(Y, -inf, values[:, None]).max(axis=0)
        marginals[d] = w @ Y / w.sum()
    """
    written, full = margins.size > 0, margins.size > 0 and exact_labels.size == 0
    cutoff = PRECISE if full else ROUGH if written else NEGLIGIBLE if by_f else 0.0
    prior = problem.prior
    work = new_workspace(prior.log_seen.size, problem.theta.shape[1], longest(indptr))
    for d in range(indptr.size - 1):
        x, words = read_document(data, indices, indptr, d, problem.family, work)
        if x.size == 0 and not written:
            continue
        best = find_candidates(x, words, problem, cutoff, full, 1, work)
        if x.size > 0 and by_f:
            best_expected_f(prior, work, NEGLIGIBLE, chosen[d])
        elif x.size > 0:
            for label in members(best, prior, work.center, work.buffer):
                chosen[d, label] = True
        if written:
            if not full:
                _complete_neighbours(x, words, problem, exact_labels | chosen[d], work)
                _complete_seen(x, problem, exact_labels | chosen[d], work)
            _write_margins(prior, work, margins[d], marginals[d])


@helper
def _write_margins(prior, work, margins, marginals):
    """Write the margins and the marginal probabilities of one document."""
    values = work.values
    inside, outside = _best_with_and_without(prior, work)
    top, total = values[argmax(values)], 0.0
    for code in range(values.size):
        if values[code] >= top - PRECISE:
            weight = np.exp(values[code] - top)
            total += weight
            for label in members(code, prior, work.center, work.buffer):
                marginals[label] += weight
    for label in range(inside.size):
        marginals[label] = min(marginals[label] / total, 1.0)
        margins[label] = inside[label] - outside[label]


@helper
def best_expected_f(prior, work, cutoff, chosen):
    """Choose the candidate with the best expected F under the posterior.

    Candidates more than ``cutoff`` below the best are ignored. Equivalent, with ``Y`` the indicator
    of the others and ``w = np.exp(values - values.max())``, to::

        F = 2 * Y @ Y.T / np.add.outer(Y.sum(axis=1), Y.sum(axis=1))
        chosen = Y[np.argmax(np.where(w >= LIKELY, F @ w, -inf))]
    """
    values, center, buffer = work.values, work.center, work.buffer
    top = values[argmax(values)]
    n_active = 0
    for value in values:
        n_active += value >= top - cutoff
    active, sizes = np.empty(n_active, dtype=np.int64), np.empty(n_active, dtype=np.int64)
    weight = np.empty(n_active)
    place = 0
    for code in range(values.size):
        if values[code] >= top - cutoff:
            active[place], weight[place] = code, np.exp(values[code] - top)
            sizes[place] = members(code, prior, center, buffer).size
            place += 1
    approximate = _approximate_expected_f(active, weight, sizes, prior, center, buffer)
    least = approximate[argmax(approximate)] * (1.0 - NEAR)
    answer = np.zeros(chosen.size, dtype=np.bool_)
    best = NEVER
    for j in range(n_active):
        if approximate[j] >= least:
            fill(answer, False)
            for label in members(active[j], prior, center, buffer):
                answer[label] = True
            expected = _expected_f(answer, sizes[j], active, weight, sizes, prior, center, buffer)
            if expected > best:
                best = expected
                for label in range(chosen.size):
                    chosen[label] = answer[label]


@helper
def _approximate_expected_f(active, weight, sizes, prior, center, buffer):
    """Return the expected F of each likely candidate up to rounding, ``-inf`` of the others.

    Weights are first summed by label and size of the sets, so that candidates need not be compared
    pair by pair.
    """
    by_size = np.zeros((sizes.max() + 1, buffer.size))
    for j in range(active.size):
        for label in members(active[j], prior, center, buffer):
            by_size[sizes[j], label] += weight[j]
    out = np.full(active.size, NEVER)
    for j in range(active.size):
        if weight[j] >= LIKELY:
            out[j] = 0.0
            labels = members(active[j], prior, center, buffer)
            for size in range(by_size.shape[0]):
                common = 0.0
                for label in labels:
                    common += by_size[size, label]
                out[j] += 2.0 * common / (labels.size + size)
    return out


@helper
def _expected_f(answer, size, active, weight, sizes, prior, center, buffer):
    """Return ``sum(weight * 2 |answer & y| / (|answer| + |y|))`` over the active candidates."""
    expected = 0.0
    for j in range(active.size):
        common = 0
        if active[j] < prior.log_seen.size:
            for k in range(prior.indptr[active[j]], prior.indptr[active[j] + 1]):
                common += answer[prior.sets[k]]
        else:
            for label in members(active[j], prior, center, buffer):
                common += answer[label]
        expected += weight[j] * 2.0 * common / (size + sizes[j])
    return expected


# Greedy search (Ueda & Saito, section 3.3)
#
# Both kernels run the same search. `greedy_sets` does so for every family and prior;
# `greedy_sets_of_pmm1` needs equal weights and a uniform prior and is an order of magnitude faster.


@compiled
def greedy_sets(data, indices, indptr, problem, chosen):
    """Find each document's label set by greedy search, without seen sets as candidates.

    ``chosen`` is an indicator. Equivalent, for each document with words, to::

        y = {}
        while True:
            best = max((y | {label} for label in labels - y), key=value)
            if y and value(best) <= value(y):
                break
            y = best

    Labels are visited in descending order of the bound of the extended set, down to the best value.
    """
    prior, n_labels = problem.prior, problem.theta.shape[1]
    work = new_workspace(prior.log_seen.size, n_labels, longest(indptr))
    bounds, log_priors = np.empty(n_labels), np.empty(n_labels)
    for d in range(indptr.size - 1):
        x, words = read_document(data, indices, indptr, d, problem.family, work)
        if x.size == 0:
            continue
        f = first_slopes(x, words, problem, work)
        fill(work.center, -1)
        key, log_prior, top = np.uint64(0), prior.base, NEVER
        while True:
            _bound_extensions(f, total_of(x), problem, key, log_prior, work, bounds, log_priors)
            label, top = _best_extension(x, problem, top, work, bounds, log_priors)
            if label < 0:
                break
            flip_center(label, work.center)
            chosen[d, label] = True
            key ^= prior.label_keys[label]
            log_prior += prior.log_odds[label]
            f = _center_slopes(x, words, problem, work)


@helper
def _bound_extensions(f, n_words, problem, key, log_prior, work, bounds, log_priors):
    """Write the log prior, and an upper bound on the value, of the centre with each label added."""
    family, prior, temperature = problem.family, problem.prior, problem.temperature
    slope, center, buffer = work.slope, work.center, work.buffer
    size = members(_center_code(work), prior, center, buffer).size
    fill(bounds, NEVER)
    for label in problem.labels:
        labels = _flipped_center(label, center, buffer)
        if labels.size > size:
            row = find_seen(prior, labels, key ^ prior.label_keys[label])
            log_priors[label] = (
                prior.log_seen[row] if row >= 0 else log_prior + prior.log_odds[label]
            )
            bounds[label] = set_bound(f, n_words, slope, labels, family) / temperature
            bounds[label] += log_priors[label]


@helper
def _best_extension(x, problem, top, work, bounds, log_priors):
    """Return the label whose addition has the best value above ``top``, and that value."""
    best = -1
    while True:
        label = argmax(bounds)
        if bounds[label] == NEVER or bounds[label] < top:
            return best, top
        bounds[label] = NEVER
        labels = _flipped_center(label, work.center, work.buffer)
        value = value_of(x, problem, labels, log_priors[label], top, work)
        if value > top or (value == top and -1 < label < best):
            best, top = label, value


@compiled
def greedy_sets_of_pmm1(data, indices, indptr, theta, log_theta, rough, allowed, chosen):
    """Find each document's label set by greedy search, for PMM1 with a uniform prior.

    Equivalent to :func:`greedy_sets` with ``value(y) = x @ log(theta[:, y].mean(axis=1))``.
    ``rough[:, LOG]`` and ``rough[:, PLAIN]`` hold ``log_theta`` and ``theta`` in float32 or
    float64; they serve to rule labels out, never to decide.
    """
    n_labels = theta.shape[1]
    n_words = longest(indptr)
    phi, inverse = np.empty(n_words), np.empty(n_words)
    scores, roots = np.empty(n_labels, dtype=rough.dtype), np.empty(n_labels, dtype=rough.dtype)
    buffers = inverse, roots, np.empty(n_labels, dtype=np.int64), np.empty(n_labels)
    free = allowed.copy()
    for d in range(indptr.size - 1):
        first, last = indptr[d], indptr[d + 1]
        label = _best_single(data, indices, first, last, log_theta, rough, allowed, scores)
        phi[: last - first] = 0.0
        size = 0
        while label >= 0:
            chosen[d, label] = True
            free[label] = False
            size += 1
            for k in range(first, last):
                phi[k - first] += theta[indices[k], label]
            label = _best_gain(data, indices, first, last, theta, rough, free, size, phi, buffers)
        free[:] = allowed


@helper
def _best_single(data, indices, first, last, log_theta, rough, allowed, scores):
    """Return the label with the largest log likelihood.

    Rough scores come first; labels that their rounding leaves in doubt are compared exactly.
    """
    scores[:] = 0.0
    for k in range(first, last):
        word, x = indices[k], rough.dtype.type(data[k])
        for label in range(scores.size):
            scores[label] += x * rough[word, LOG, label]
    top = -np.inf
    for label in range(scores.size):
        if allowed[label] and scores[label] > top:
            top = scores[label]
    least = top - 2.0 * (last - first + 4) * ROUNDING_32 * abs(top)
    best, n_contenders = -1, 0
    for label in range(scores.size):
        if allowed[label] and scores[label] >= least:
            best = label
            n_contenders += 1
    if n_contenders == 1:
        return best
    best_score = -np.inf
    for label in range(scores.size):  # no contenders at all: the counts overflowed float32
        if allowed[label] and (scores[label] >= least or n_contenders == 0):
            score = 0.0
            for k in range(first, last):
                score += data[k] * log_theta[indices[k], label]
            if score > best_score:
                best, best_score = label, score
    return best


@helper
def _best_gain(data, indices, first, last, theta, rough, allowed, size, phi, buffers):
    """Return the label that raises the likelihood of ``size`` labels most, -1 if none does.

    With ``r = theta / phi``, ``phi`` being the sum over the labels so far, a label gains
    ``sum(x * log(1 + r)) - N log((size + 1) / size)``. As ``log(1 + r) = 2 log(sqrt(1 + r))``, by
    Jensen's inequality the sum is at most ``2 N log(sum(x * sqrt(1 + r)) / N)``, a much tighter
    bound than without the root. Labels whose bound is above zero are visited in descending order,
    until it is below the best gain; those that rounding leaves in doubt are compared exactly.
    """
    inverse, roots, candidates, bounds = buffers
    plain = rough[:, PLAIN]
    one = rough.dtype.type(1.0)
    n_words = 0.0
    roots[:] = 0.0
    for k in range(first, last):
        word = indices[k]
        n_words += data[k]
        inverse[k - first] = 1.0 / phi[k - first]
        x, factor = rough.dtype.type(data[k]), rough.dtype.type(inverse[k - first])
        for label in range(roots.size):
            roots[label] += x * np.sqrt(one + factor * rough[word, PLAIN, label])

    growth = n_words * np.log((size + 1.0) / size)
    rounding = 1.0 + (last - first + 4) * ROUNDING_32
    least = n_words * np.sqrt((size + 1.0) / size) / rounding
    n_candidates = 0
    for label in range(roots.size):
        if roots[label] > least and allowed[label]:
            candidates[n_candidates] = label
            bounds[n_candidates] = 2 * n_words * np.log(roots[label] * rounding / n_words) - growth
            n_candidates += 1

    # visited candidates move to the end, where rough gains replace their bounds
    n_open, top, slack = n_candidates, 0.0, n_words * ROUNDING_32
    while n_open > 0:
        place = argmax(bounds[:n_open])
        if bounds[place] < top - slack:
            break
        n_open -= 1
        label = candidates[place]
        gain = _log_ratio(data, indices, first, last, plain, label, inverse) - growth
        candidates[place], bounds[place] = candidates[n_open], bounds[n_open]
        candidates[n_open], bounds[n_open] = label, gain
        top = max(top, gain)

    best, best_gain = -1, 0.0
    for j in range(n_open, n_candidates):
        if bounds[j] >= top - 2.0 * slack:
            gain = _log_ratio(data, indices, first, last, theta, candidates[j], inverse) - growth
            if gain > best_gain or (gain == best_gain and -1 < candidates[j] < best):
                best, best_gain = candidates[j], gain
    return best


@helper
def _log_ratio(data, indices, first, last, theta, label, inverse):
    """Return ``sum(x * log(1 + theta[:, label] * inverse))`` over a document's words.

    Factors are multiplied as long as they fit, so that few logarithms are taken.
    """
    total = 0.0
    product = 1.0
    for k in range(first, last):
        ratio = 1.0 + theta[indices[k], label] * inverse[k - first]
        x = data[k]
        if x == 1.0 and ratio < LARGE:
            product *= ratio
        elif x == 2.0 and ratio < LARGE:
            product *= ratio * ratio
        else:
            total += x * np.log(ratio)
        if product > LARGE:
            total += np.log(product)
            product = 1.0
    return total + np.log(product)
