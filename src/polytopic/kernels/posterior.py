"""The posterior over label sets, document by document.

What is maximised is a set's *value*, ``score / temperature + log prior``. The candidates of a
document are

- the label sets seen in training,
- the *home*: the set reached from the best of these by adding or removing one label as long as
  the value rises,
- every set one label away from the home.

A candidate's number is its row among the seen sets, ``n_seen + label`` for the home with that label
flipped, and ``n_seen + n_labels`` for a home that was not seen.
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled
from polytopic.kernels.sets import (
    REPEATED,
    Family,
    gather,
    guess_weights,
    longest,
    score,
    set_bound,
    slopes,
    spread,
    steepness_bound,
    steepnesses,
    total_of,
)

NEVER = -np.inf
ROUNDING = 1e-12
NEGLIGIBLE = 9.0  # in nats below the best set: about a ten thousandth of its probability
LITTLE = 16.0  # in nats: sets below it change the fourth digit of a probability at most
NOTHING = 25.0  # in nats: sets below it change the ninth digit of a probability at most
NEAR = 1e-9  # expected F that is this near to the best is compared exactly
ANSWERS = 0.01  # sets this likely beside the likeliest are compared by their expected F


class Prior(NamedTuple):
    """Log priors of label sets.

    The seen sets ``sets, indptr`` have ``log_seen``; any other has
    ``base + log_odds[labels].sum()``. A seen set is found by the exclusive-or of its labels' random
    ``label_keys``: ``keys`` are sorted, ``rows`` say whose they are.
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
    """All but the documents. If a label is ``required``, not -1, all seen sets have it."""

    theta: np.ndarray
    family: Family
    labels: np.ndarray  # that may be in a set
    prior: Prior
    temperature: float
    required: int


class Room(NamedTuple):
    """Arrays to work in, for one document after the other."""

    values: np.ndarray  # of candidates
    bounds: np.ndarray  # of seen sets
    slope: np.ndarray  # of labels
    home: np.ndarray  # its sorted labels, then -1
    buffer: np.ndarray  # labels of a set
    phi: np.ndarray  # of words
    rows: np.ndarray  # label by word
    guess: np.ndarray  # Dirichlet parameters of the home
    x: np.ndarray  # of words, as often as they are gone through
    words: np.ndarray


@compiled
def seen_set(prior, row):
    """Return the labels of a seen set."""
    return prior.sets[prior.indptr[row] : prior.indptr[row + 1]]


@compiled
def find_seen(prior, labels, key):
    """Return the row of a set of sorted labels among the seen ones, -1 if it is not there."""
    first, last = 0, prior.keys.size
    while first < last:
        middle = (first + last) // 2
        if prior.keys[middle] < key:
            first = middle + 1
        else:
            last = middle
    while first < prior.keys.size and prior.keys[first] == key:
        seen = seen_set(prior, prior.rows[first])
        same = seen.size == labels.size
        for j in range(labels.size):
            same = same and seen[j] == labels[j]
        if same:
            return prior.rows[first]
        first += 1
    return -1


@compiled
def members(code, prior, home, buffer):
    """Write the labels of a candidate into ``buffer``; return them.

    ``home`` holds the sorted labels of the home, then -1.
    """
    n_seen = prior.log_seen.size
    size = 0
    if code < n_seen:
        for label in seen_set(prior, code):
            buffer[size] = label
            size += 1
        return buffer[:size]
    flip = code - n_seen
    to_add = flip < home.size - 1
    for label in home:
        if to_add and (label < 0 or label > flip):
            buffer[size] = flip
            size += 1
            to_add = False
        if label < 0:
            break
        if label == flip:
            to_add = False
        else:
            buffer[size] = label
            size += 1
    return buffer[:size]


@compiled
def home_number(room):
    """Return the candidate's number that stands for a home that was not seen."""
    return room.values.size - 1


@compiled
def flip_home(label, home):
    """Add a label to the home, or remove it; return 1 or -1."""
    place = 0
    while -1 < home[place] < label:
        place += 1
    if home[place] == label:
        while home[place] >= 0:
            home[place] = home[place + 1]
            place += 1
        return -1
    moved = label
    while moved >= 0:
        home[place], moved = moved, home[place]
        place += 1
    home[place] = -1
    return 1


@compiled
def fill(array, value):
    """Set all of an array to a value."""
    for j in range(array.size):
        array[j] = value


@compiled
def first_slopes(x, words, problem, room):
    """Write slopes where weights are one EM step from equal ones; return ``x @ log(phi)`` there.

    That is far enough to tell labels apart, and not so far that labels left behind have steep
    slopes. A document's ``rows`` are written too.
    """
    theta, labels = problem.theta, problem.labels
    gather(words, theta, labels, room.rows)
    weights = room.guess
    fill(weights, 1.0 / labels.size)
    f = 0.0
    for _step in range(2):
        fill(room.phi[: x.size], 0.0)
        for label in labels:
            for k in range(x.size):
                room.phi[k] += weights[label] * room.rows[label, k]
        f = slopes(x, words, theta, room.phi[: x.size], room.slope)
        for label in labels:
            weights[label] *= room.slope[label]
    fill(room.guess, 0.0)
    return f


@compiled
def make_room(n_seen, n_labels, longest):
    """Return the arrays to work in."""
    longest *= REPEATED
    return Room(
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


@compiled
def document(data, indices, indptr, d, family, room):
    """Return the counts and words of a document, as they are gone through fastest."""
    x, words = data[indptr[d] : indptr[d + 1]], indices[indptr[d] : indptr[d + 1]]
    # variational Bayes goes through the words many times, so there they are not repeated
    repeated = REPEATED if family.mixing is None else 1
    return spread(x, words, repeated, room.x, room.words)


@compiled
def survey(x, words, problem, cutoff, full, n_best, room):
    """Find the values of a document's candidates; return the number of the best.

    Values are left ``-inf`` for what is no candidate, or is certainly more than ``cutoff`` below
    the best and none of the ``n_best``. With ``full``, the best candidates with and without each
    label have their values.
    """
    family, prior, temperature = problem.family, problem.prior, problem.temperature
    values, bounds, slope = room.values, room.bounds, room.slope
    log_seen = prior.log_seen
    f = first_slopes(x, words, problem, room)
    n_words = total_of(x)
    fill(values, NEVER)
    steepnesses(n_words, slope, prior.sets, prior.indptr, family, bounds)
    start = -1
    for row in range(log_seen.size):
        bounds[row] = steepness_bound(f, n_words, bounds[row]) / temperature + log_seen[row]
        if start < 0 or bounds[row] > bounds[start]:
            start = row
    best, top = -1, NEVER
    for place in range(-1, log_seen.size):
        row = start if place < 0 else place
        if row >= 0 and values[row] == NEVER and bounds[row] >= top - cutoff:
            value = _value_seen(x, problem, row, top - cutoff, room)
            if value > top or (value == top and row < best):
                best, top = row, value
    best = _climb(x, words, problem, best, cutoff, full, room)
    if full:
        _complete(x, problem, np.ones(slope.size, dtype=np.bool_), room)
        least = nth_largest(values, n_best)
        for row in range(log_seen.size):
            if values[row] == NEVER and bounds[row] >= least:
                _value_seen(x, problem, row, NEVER, room)
        best = place_of_largest(values)
    return best


@compiled
def place_of_largest(values):
    """Return the place of the largest value, the first of several."""
    best = 0
    for place in range(1, values.size):
        if values[place] > values[best]:
            best = place
    return best


@compiled
def nth_largest(values, n):
    """Return the ``n``-th largest value, or ``-inf`` if there are fewer."""
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


@compiled
def _value_seen(x, problem, row, needed, room):
    """Find the value of a seen set, ``-inf`` if it is below what is needed."""
    log_prior = problem.prior.log_seen[row]
    labels = seen_set(problem.prior, row)
    needed = (needed - log_prior) * problem.temperature
    value = score(x, room.rows, labels, problem.family, room.phi, needed, room.guess)
    room.values[row] = value / problem.temperature + log_prior
    return room.values[row]


@compiled
def _climb(x, words, problem, best, cutoff, full, room):
    """Flip one label after the other while the value rises, from a seen set or from nothing.

    Returns the number of the home; the values of the sets around it are found too.
    """
    family, prior, temperature = problem.family, problem.prior, problem.temperature
    values, slope, home, buffer = room.values, room.slope, room.home, room.buffer
    phi, rows, guess, required = room.phi, room.rows, room.guess, problem.required
    log_seen, log_odds, label_keys = prior.log_seen, prior.log_odds, prior.label_keys
    n_seen, itself = log_seen.size, home_number(room)
    n_words = total_of(x)
    fill(home, -1)
    key, log_prior, top = np.uint64(0), prior.base, NEVER
    if best >= 0:
        top = values[best]
        for label in members(best, prior, home, buffer):
            flip_home(label, home)
    elif required >= 0:
        flip_home(required, home)
    for label in members(itself, prior, home, buffer):
        key ^= label_keys[label]
        log_prior += log_odds[label]
    if best < 0 and required >= 0:
        labels = members(itself, prior, home, buffer)
        top = score(x, rows, labels, family, phi, NEVER, guess) / temperature + log_prior
    while True:
        fill(values[n_seen:], NEVER)
        if best < 0:
            best = itself
            values[best] = top
        size, f = members(itself, prior, home, buffer).size, NEVER
        if size > 0 and not full:
            f = home_slopes(x, words, problem, room)
        flip, highest = -1, top + ROUNDING * (1.0 + abs(top)) if top > NEVER else NEVER
        for label in problem.labels:
            labels = members(n_seen + label, prior, home, buffer)
            if labels.size == 0 or label == required:
                continue
            row = find_seen(prior, labels, key ^ label_keys[label])
            if row >= 0 and values[row] > NEVER:
                value = values[row]
            else:
                sign = labels.size - size
                log_flipped = log_seen[row] if row >= 0 else log_prior + sign * log_odds[label]
                least = (highest - cutoff - log_flipped) * temperature if f > NEVER else NEVER
                value = NEVER
                if least == NEVER or set_bound(f, n_words, slope, labels, family) >= least:
                    value = score(x, rows, labels, family, phi, least, guess)
                    value = value / temperature + log_flipped
                values[row if row >= 0 else n_seen + label] = value
            if value > highest:
                flip, highest = label, value
        if flip < 0:
            return best
        log_prior += flip_home(flip, home) * log_odds[flip]
        key ^= label_keys[flip]
        best = find_seen(prior, members(itself, prior, home, buffer), key)
        top = highest


@compiled
def home_slopes(x, words, problem, room):
    """Write slopes at the home's own mixture, and guess weights there; return ``x @ log(phi)``."""
    labels = members(home_number(room), problem.prior, room.home, room.buffer)
    guess_weights(x, room.rows, labels, problem.family.mixing, room.guess)
    score(x, room.rows, labels, problem.family, room.phi, NEVER, room.guess)
    return slopes(x, words, problem.theta, room.phi[: x.size], room.slope)


@compiled
def _value_flips(x, words, problem, wanted, room):
    """Find the values of the home with one label flipped that may matter to a wanted label.

    It does if the set may be the best with the label, or without it.
    """
    prior, home, buffer = problem.prior, room.home, room.buffer
    key, log_prior = np.uint64(0), prior.base
    size = members(home_number(room), prior, home, buffer).size
    f = home_slopes(x, words, problem, room) if size > 0 else NEVER
    inside, outside = best_with_and_without(prior, room)
    for label in members(home_number(room), prior, home, buffer):
        key ^= prior.label_keys[label]
        log_prior += prior.log_odds[label]
    for flip in problem.labels:
        code = prior.log_seen.size + flip
        if wanted[flip] and room.values[code] == NEVER and flip != problem.required:
            labels = members(code, prior, home, buffer)
            if labels.size == 0 or find_seen(prior, labels, key ^ prior.label_keys[flip]) >= 0:
                continue
            log_flipped = log_prior + (labels.size - size) * prior.log_odds[flip]
            rival = inside[flip] if labels.size > size else outside[flip]
            least = (rival - log_flipped) * problem.temperature
            bound = set_bound(f, total_of(x), room.slope, labels, problem.family)
            if f == NEVER or rival == NEVER or bound >= least:
                value = score(x, room.rows, labels, problem.family, room.phi, least, room.guess)
                room.values[code] = value / problem.temperature + log_flipped


@compiled
def _complete(x, problem, wanted, room):
    """Find the values of seen sets that may be the best with, or without, a wanted label.

    The best set without a label that the very best does not have is the very best.
    """
    prior = problem.prior
    values, bounds = room.values, room.bounds
    inside, outside = best_with_and_without(prior, room)
    top, best = values[place_of_largest(values)], best_labels(prior, room)
    n_wanted = wanted.sum()
    for row in range(bounds.size):
        if values[row] == NEVER:
            labels = seen_set(prior, row)
            least, n_met = bounds[row], 0
            for label in labels:
                if wanted[label]:
                    least, n_met = min(least, inside[label]), n_met + 1
            for label in best:
                if wanted[label] and not _holds(labels, label):
                    least, n_met = min(least, outside[label]), n_met + 1
            if n_met < n_wanted:
                least = min(least, top)
            if least < bounds[row]:
                value = _value_seen(x, problem, row, least, room)
                top = max(top, value)
                for label in labels:
                    inside[label] = max(inside[label], value)
                for label in best:
                    if not _holds(labels, label):
                        outside[label] = max(outside[label], value)


@compiled
def _holds(labels, label):
    """Tell whether a label is among some."""
    for other in labels:  # noqa: SIM110  (kernels know no generators)
        if other == label:
            return True
    return False


@compiled
def best_labels(prior, room):
    """Return the labels of the candidate with the largest value."""
    return members(place_of_largest(room.values), prior, room.home, room.buffer).copy()


@compiled
def best_with_and_without(prior, room):
    """Return the value of the best candidate with each label, and of the best without it."""
    values, home, buffer = room.values, room.home, room.buffer
    inside, outside = np.empty(buffer.size), np.empty(buffer.size)
    fill(inside, NEVER)
    fill(outside, values[place_of_largest(values)])
    best = best_labels(prior, room)
    for label in best:
        outside[label] = NEVER  # where it is missing is still to be found
    for code in range(values.size):
        if values[code] > NEVER:
            labels = members(code, prior, home, buffer)
            for label in labels:
                inside[label] = max(inside[label], values[code])
            for label in best:
                if values[code] > outside[label] and not _holds(labels, label):
                    outside[label] = values[code]
    return inside, outside


# Answers


@compiled
def judge(data, indices, indptr, problem, by_f, asked, chosen, margins, marginals):
    """Choose each document's most probable label set or, ``by_f``, that of the best expected F.

    Documents without words get none. If there is room for them, each label's margin is written,
    the best value of a set with the label less the best of one without it, and its marginal
    probability in the posterior over the candidates. Where some labels are ``asked`` for, margins
    are those of the chosen ones and of those asked for, and ``LITTLE`` is missing of
    probabilities.
    """
    written, full = margins.size > 0, margins.size > 0 and asked.size == 0
    cutoff = NOTHING if full else LITTLE if written else NEGLIGIBLE if by_f else 0.0
    prior = problem.prior
    room = make_room(prior.log_seen.size, problem.theta.shape[1], longest(indptr))
    for d in range(indptr.size - 1):
        x, words = document(data, indices, indptr, d, problem.family, room)
        if x.size == 0 and not written:
            continue
        best = survey(x, words, problem, cutoff, full, 1, room)
        if x.size > 0 and by_f:
            best_expected_f(prior, room, NEGLIGIBLE, chosen[d])
        elif x.size > 0:
            for label in members(best, prior, room.home, room.buffer):
                chosen[d, label] = True
        if written:
            if not full:
                _value_flips(x, words, problem, asked | chosen[d], room)
                _complete(x, problem, asked | chosen[d], room)
            _write_margins(prior, room, margins[d], marginals[d])


@compiled
def _write_margins(prior, room, margins, marginals):
    values = room.values
    inside, outside = best_with_and_without(prior, room)
    top, total = values[place_of_largest(values)], 0.0
    for code in range(values.size):
        if values[code] >= top - NOTHING:
            weight = np.exp(values[code] - top)
            total += weight
            for label in members(code, prior, room.home, room.buffer):
                marginals[label] += weight
    for label in range(inside.size):
        marginals[label] = min(marginals[label] / total, 1.0)
        margins[label] = inside[label] - outside[label]


@compiled
def best_expected_f(prior, room, cutoff, chosen):
    """Choose the candidate with the best expected F under the posterior.

    Compared are the candidates at least ``ANSWERS`` times as likely as the likeliest.
    """
    values, home, buffer = room.values, room.home, room.buffer
    top = values[place_of_largest(values)]
    n_active = 0
    for value in values:
        n_active += value >= top - cutoff
    active, sizes = np.empty(n_active, dtype=np.int64), np.empty(n_active, dtype=np.int64)
    weight = np.empty(n_active)
    place = 0
    for code in range(values.size):
        if values[code] >= top - cutoff:
            active[place], weight[place] = code, np.exp(values[code] - top)
            sizes[place] = members(code, prior, home, buffer).size
            place += 1
    rough = _rough_expected_f(active, weight, sizes, prior, home, buffer)
    least = rough[place_of_largest(rough)] * (1.0 - NEAR)
    answer = np.zeros(chosen.size, dtype=np.bool_)
    best = NEVER
    for j in range(n_active):
        if rough[j] >= least:
            fill(answer, False)
            for label in members(active[j], prior, home, buffer):
                answer[label] = True
            expected = _expected_f(answer, sizes[j], active, weight, sizes, prior, home, buffer)
            if expected > best:
                best = expected
                for label in range(chosen.size):
                    chosen[label] = answer[label]


@compiled
def _rough_expected_f(active, weight, sizes, prior, home, buffer):
    """Return the expected F of each active candidate that may be chosen, up to rounding.

    Weights are first added up for each label and each size of sets, so that candidates need not be
    compared with each other.
    """
    by_size = np.zeros((sizes.max() + 1, buffer.size))
    for j in range(active.size):
        for label in members(active[j], prior, home, buffer):
            by_size[sizes[j], label] += weight[j]
    out = np.full(active.size, NEVER)
    for j in range(active.size):
        if weight[j] >= ANSWERS:
            out[j] = 0.0
            labels = members(active[j], prior, home, buffer)
            for size in range(by_size.shape[0]):
                common = 0.0
                for label in labels:
                    common += by_size[size, label]
                out[j] += 2.0 * common / (labels.size + size)
    return out


@compiled
def _expected_f(answer, size, active, weight, sizes, prior, home, buffer):
    """Return ``sum(weight * 2 |answer & y| / (|answer| + |y|))`` over the active candidates."""
    expected = 0.0
    for j in range(active.size):
        common = 0
        if active[j] < prior.log_seen.size:
            for k in range(prior.indptr[active[j]], prior.indptr[active[j] + 1]):
                common += answer[prior.sets[k]]
        else:
            for label in members(active[j], prior, home, buffer):
                common += answer[label]
        expected += weight[j] * 2.0 * common / (size + sizes[j])
    return expected


@compiled
def greedy(data, indices, indptr, problem, chosen):
    """Add the label that raises a document's value most, again and again, while it rises.

    Labels are visited by falling upper bound of the extended set, until it is below the best.
    """
    prior, n_labels = problem.prior, problem.theta.shape[1]
    room = make_room(prior.log_seen.size, n_labels, longest(indptr))
    bounds, log_priors = np.empty(n_labels), np.empty(n_labels)
    for d in range(indptr.size - 1):
        x, words = document(data, indices, indptr, d, problem.family, room)
        if x.size == 0:
            continue
        f = first_slopes(x, words, problem, room)
        fill(room.home, -1)
        key, log_prior, top = np.uint64(0), prior.base, NEVER
        while True:
            _bound_extensions(f, total_of(x), problem, key, log_prior, room, bounds, log_priors)
            label, top = _best_extension(x, problem, top, room, bounds, log_priors)
            if label < 0:
                break
            flip_home(label, room.home)
            chosen[d, label] = True
            key ^= prior.label_keys[label]
            log_prior += prior.log_odds[label]
            f = home_slopes(x, words, problem, room)


@compiled
def _bound_extensions(f, n_words, problem, key, log_prior, room, bounds, log_priors):
    """Write the log prior, and an upper bound of the value, of the home with each label added."""
    family, prior, temperature = problem.family, problem.prior, problem.temperature
    slope, home, buffer = room.slope, room.home, room.buffer
    n_seen = prior.log_seen.size
    size = members(home_number(room), prior, home, buffer).size
    fill(bounds, NEVER)
    for label in problem.labels:
        labels = members(n_seen + label, prior, home, buffer)
        if labels.size > size:
            row = find_seen(prior, labels, key ^ prior.label_keys[label])
            log_priors[label] = (
                prior.log_seen[row] if row >= 0 else log_prior + prior.log_odds[label]
            )
            bounds[label] = set_bound(f, n_words, slope, labels, family) / temperature
            bounds[label] += log_priors[label]


@compiled
def _best_extension(x, problem, top, room, bounds, log_priors):
    """Return the label whose addition has the best value above ``top``, and that value."""
    family, prior, temperature = problem.family, problem.prior, problem.temperature
    home, buffer, phi, rows, guess = room.home, room.buffer, room.phi, room.rows, room.guess
    best = -1
    while True:
        label = place_of_largest(bounds)
        if bounds[label] == NEVER or bounds[label] < top:
            return best, top
        bounds[label] = NEVER
        labels = members(prior.log_seen.size + label, prior, home, buffer)
        needed = (top - log_priors[label]) * temperature
        value = score(x, rows, labels, family, phi, needed, guess) / temperature + log_priors[label]
        if value > top or (value == top and -1 < label < best):
            best, top = label, value
