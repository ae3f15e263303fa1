"""Label sets by size: the best ones, when a set's score is the sum of its labels' scores.

The score of label ``j`` in a set of size ``n`` is ``vectors[n] @ Z[:, j]``, where ``Z`` (rank,
n_labels) belongs to a document. So the best set of a size is the labels that score highest in it,
and the best set of all is that of the best size (Kazawa et al., Eqs. (11)-(13)).
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled, inlined, reordered


class Sizes(NamedTuple):
    """How label sets of each size are embedded.

    A size after an end, up to the next, has a vector within ``slack`` of a mean of the two ends'
    vectors: the share of the end above is ``share``, that of the end below the rest.
    """

    vectors: np.ndarray  # (max_size + 1, rank); the empty set's is zero
    width: np.ndarray  # (max_size + 1,): the number of leading components that are not zero
    ends: np.ndarray  # sizes, rising: 1, 2, ..., max_size
    share: np.ndarray  # (max_size + 1,)
    slack: np.ndarray  # of the sizes after the end before, up to an end
    empty: bool  # whether the empty set is a label set too, at the origin


@inlined
def size_scores(Z, vectors, size, out):
    """Set ``out`` to the scores of all labels in a set of this size: ``vectors[size] @ Z``."""
    first = vectors[size, 0]
    for j in range(out.size):
        out[j] = first * Z[0, j]
    for q in range(1, Z.shape[0]):
        factor = vectors[size, q]
        for j in range(out.size):
            out[j] += factor * Z[q, j]


@inlined
def column_norms(Z, out):
    """Set ``out`` to the length of each column: ``np.linalg.norm(Z, axis=0)``."""
    out[:] = 0
    for q in range(Z.shape[0]):
        for j in range(out.size):
            out[j] += Z[q, j] * Z[q, j]
    for j in range(out.size):
        out[j] = np.sqrt(out[j])


@reordered
def sum_above(values, price):
    """Return the sum of what values are above a price.

    No sum of ``n`` values exceeds this and ``n * price``; it is exact if the price is the
    ``n``-th highest value.
    """
    zero, price = values.dtype.type(0), values.dtype.type(price)
    total = zero
    for j in range(values.size):
        total += max(values[j] - price, zero)
    return total


@reordered
def n_above_zero(values):
    """Return how many values are above zero."""
    count = np.int32(0)
    for j in range(values.size):
        count += np.int32(values[j] > 0)
    return count


@reordered
def row_means(Z, out):
    """Set ``out`` to the mean of each row."""
    for q in range(Z.shape[0]):
        total = Z.dtype.type(0)
        for j in range(Z.shape[1]):
            total += Z[q, j]
        out[q] = total / Z.shape[1]


class Price(NamedTuple):
    """What bounds the sum of the ``n`` highest values: ``n * each + rest``."""

    each: float
    rest: float


@compiled
def price_of(values, n, mean, rest, logs):
    """Return a price at which the bound on the ``n`` highest of many values is nearly exact.

    Values are taken to thin out evenly, above zero or from their mean up to it. Any price gives a
    bound; of that one and zero, with the sum of ``rest`` above it, the better is taken.
    """
    count = n_above_zero(values)
    if count >= n:
        each = rest / count * (logs[count] - logs[n])
    else:
        count, many = max(count, 1), max(values.size // 2, n + 1)
        each = min(mean, 0.0) * (logs[n] - logs[count]) / (logs[many] - logs[count])
    each = np.float64(values.dtype.type(each))
    other = np.float64(sum_above(values, each))
    return Price(each, other) if n * each + other < rest else Price(0.0, rest)


@compiled
def highest(values, skip, n, top):
    """Put the places of the ``n`` highest values into ``top``, highest first.

    Places where ``skip`` is true are left out; of equal values the first comes first.
    """
    held, least = 0, -np.inf
    for j in range(values.size if n else 0):
        value = values[j]
        if held == n and not value > least:
            continue
        if skip[j]:
            continue
        k = held if held < n else n - 1
        while k > 0 and value > values[top[k - 1]]:
            top[k] = top[k - 1]
            k -= 1
        top[k] = j
        held = min(held + 1, n)
        least = values[top[held - 1]]
    return held


@inlined
def sort_places(values, places):
    """Sort places by their values, highest first; of equal ones the first place comes first."""
    for k in range(1, places.size):
        place, value, to = places[k], values[places[k]], k
        while to > 0:
            other = places[to - 1]
            if values[other] > value or (values[other] == value and other < place):
                break
            places[to] = other
            to -= 1
        places[to] = place


# What makes a label set the best one: its score, or how much it violates the margin of a
# document's own set by one of two measures.
SCORE, EXACT, RESCALED = 0, 1, 2

FAR = 8  # lengths that are bounded nearly exactly: so many others are in a large set
NEAR = 1e-5  # the part of a bound that it may be too low by, for it is rounded


@inlined
def exceeds(limit, value):
    """Return whether a bound is above a value, or may be but for rounding."""
    return limit + NEAR * (1.0 + abs(limit)) > value


@inlined
def distance(vectors, a, b, common):
    """Return the squared distance between the embeddings of two label sets.

    They have ``a`` and ``b`` labels, of which some are common:
    ``a * |u_a|^2 + b * |u_b|^2 - 2 * common * u_a @ u_b``.
    """
    total = 0.0
    for q in range(vectors.shape[1]):
        u, v = vectors[a, q], vectors[b, q]
        total += a * u * u + b * v * v - 2.0 * common * u * v
    return total


@inlined
def required(goal, vectors, a, b, common):
    """Return the margin that is required between two label sets, and what divides the margin."""
    if goal == EXACT:
        return 1.0, np.sqrt(distance(vectors, a, b, common))
    return 1.0 - 2.0 * common / (a + b), 1.0


@inlined
def merit(goal, vectors, base, n_own, size, common, score):
    """Return how good a set is to find; ``base`` is the score of the document's own."""
    if goal == SCORE:
        return score
    margin, scale = required(goal, vectors, n_own, size, common)
    return margin - (base - score) / scale


@inlined
def merit_limit(goal, base, n_own, most, common, score):
    """Return what no set of at most this size and score has more merit than."""
    if goal == SCORE:
        return score
    if goal == RESCALED:
        return 1.0 - 2.0 * common / (n_own + most) - (base - score)
    if score <= base:  # and no two sets are further apart than this
        return 1.0 - (base - score) / np.sqrt(2.0)
    return np.inf


class Room(NamedTuple):
    """Room for one search."""

    values: np.ndarray  # (n_labels,) scores of other labels, -inf for own ones
    norms: np.ndarray  # (n_labels,) of other labels, zero for own ones
    own: np.ndarray  # (n_labels,) scores of own labels
    own_norms: np.ndarray  # (n_labels,)
    low: np.ndarray  # (n_labels,) scores of own labels at the end before
    below: np.ndarray  # (n_labels + 1,) limits of the highest own scores' sums at the end before
    above: np.ndarray  # (n_labels + 1,) and at the end
    means: np.ndarray  # (rank,) of all labels
    logs: np.ndarray  # (n_labels + 2,) logarithms of whole numbers, that of 0 is 0
    places: np.ndarray  # (n_labels,) places of own labels, highest score first
    top: np.ndarray  # (n_labels,) other labels, highest score first
    is_own: np.ndarray  # (n_labels,)
    best: np.ndarray  # (n_labels,) the best set found


@compiled
def new_room(Z):
    """Return room for searches with scores like these."""
    n_labels = Z.shape[1]
    return Room(
        np.empty(n_labels, Z.dtype),
        np.empty(n_labels, Z.dtype),
        np.empty(n_labels, Z.dtype),
        np.empty(n_labels, Z.dtype),
        np.empty(n_labels, Z.dtype),
        np.empty(n_labels + 1),
        np.empty(n_labels + 1),
        np.empty(Z.shape[0], Z.dtype),
        np.log(np.maximum(np.arange(n_labels + 2), 1)),
        np.empty(n_labels, np.int64),
        np.empty(n_labels, np.int64),
        np.zeros(n_labels, np.bool_),
        np.empty(n_labels, np.int64),
    )


@compiled
def best_set(Z, labels, goal, sizes, floor, room):
    """Find the label set of the highest merit that is not ``labels``, the document's own.

    Returns its size and its merit; its labels are in ``room.best``. Of equal sets the smaller is
    taken, then the one with the first labels. Where none has more merit than ``floor``, the size
    is -1 and the merit ``floor``. Without labels of its own, the goal must be ``SCORE``.

    A score is nearly linear between two ends of sizes, and so is what bounds it: the highest own
    scores, and a price of all others. Only sizes whose bound is above the best so far are tried.
    """
    vectors, values, norms, logs = sizes.vectors, room.values, room.norms, room.logs
    below, above, ends, shares = room.below, room.above, sizes.ends, sizes.share
    n_own, n_others = labels.size, Z.shape[1] - labels.size
    own, low, own_norms = room.own[:n_own], room.low[:n_own], room.own_norms[:n_own]
    best_size, best_merit, base = -1, floor, 0.0
    if n_own:
        size_scores(Z, vectors, n_own, values)
        set_apart(values, labels, 0, own)
        base = own.sum()
        if sizes.empty:
            value = merit(goal, vectors, base, n_own, 0, 0, 0.0)
            if value > best_merit:
                best_size, best_merit = 0, value
    for label in labels:
        room.is_own[label] = True
    row_means(Z, room.means)
    column_norms(Z, norms)
    set_apart(norms, labels, 0, own_norms)
    span = price_of(norms, min(FAR, norms.size), 0.0, np.float64(sum_above(norms, 0.0)), logs)
    before = Price(0.0, 0.0)
    for k in range(ends.size):
        least, most, slack = 1 if k == 0 else ends[k - 1] + 1, ends[k], sizes.slack[k]
        size_scores(Z, vectors, most, values)
        set_apart(values, labels, -np.inf, own)
        here = Price(0.0, np.float64(sum_above(values, 0.0)))
        if least == most:
            before = here
            low[:] = own
        sum_highest(low, slack, own_norms, below)
        sum_highest(own, slack, own_norms, above)
        low[:] = own
        prices = Prices(before, here, span, slack)
        limit = limit_between(goal, base, n_own, least, most, prices, below, above)
        if exceeds(limit, best_merit):  # then a better price is worth its time
            mean = 0.0
            for q in range(Z.shape[0]):
                mean += vectors[most, q] * room.means[q]
            here = price_of(values, most, mean, here.rest, logs)
            prices = Prices(here if least == most else before, here, span, slack)
            limit = limit_between(goal, base, n_own, least, most, prices, below, above)
        if exceeds(limit, best_merit):
            for size in range(least, most + 1):
                limit = limit_at(
                    goal, vectors, base, n_own, n_others, size, shares[size], prices, below, above
                )
                if exceeds(limit, best_merit):
                    if least < most:
                        size_scores(Z, vectors, size, values)
                        set_apart(values, labels, -np.inf, own)
                    best_size, best_merit = try_size(
                        labels, goal, vectors, base, size, best_size, best_merit, room
                    )
        before = here
    for label in labels:
        room.is_own[label] = False
    return best_size, best_merit


class Prices(NamedTuple):
    """What bounds the scores of other labels in sets of some sizes."""

    before: Price  # at the end below
    here: Price  # at the end above
    span: Price  # of the labels' lengths
    slack: float  # what a length adds


@inlined
def limit_between(goal, base, n_own, least, most, prices, below, above):
    """Return what no set of these sizes has more merit than; loose, and found at once."""
    before, here, highest_limit = prices.before, prices.here, -np.inf
    for common in range(min(n_own, most) + 1):
        few, many = max(least - common, 0), most - common
        first = below[common] + before.rest + max(few * before.each, many * before.each)
        second = above[common] + here.rest + max(few * here.each, many * here.each)
        limit = max(first, second) + prices.slack * (many * prices.span.each + prices.span.rest)
        limit = merit_limit(goal, base, n_own, most, common, limit)
        highest_limit = max(highest_limit, limit)
    return highest_limit


@inlined
def limit_at(goal, vectors, base, n_own, n_others, size, share, prices, below, above):
    """Return what no set of this size has more merit than."""
    before, here, highest_limit = prices.before, prices.here, -np.inf
    for common in range(max(size - n_others, 0), min(n_own, size) + 1):
        if common == n_own == size:
            continue
        others = size - common
        first = below[common] + others * before.each + before.rest
        second = above[common] + others * here.each + here.rest
        limit = first + share * (second - first)
        limit += prices.slack * (others * prices.span.each + prices.span.rest)
        limit = merit(goal, vectors, base, n_own, size, common, limit)
        highest_limit = max(highest_limit, limit)
    return highest_limit


@inlined
def set_apart(values, labels, other, own):
    """Take the values of some labels, and put another one there."""
    for k in range(labels.size):
        own[k] = values[labels[k]]
        values[labels[k]] = other


@inlined
def sum_highest(scores, slack, norms, out):
    """Set ``out`` to the limits of sums of the highest scores: of none, one, ..., all."""
    for k in range(scores.size):
        value, to = scores[k] + slack * norms[k], k + 1
        while to > 1 and out[to - 1] < value:
            out[to] = out[to - 1]
            to -= 1
        out[to] = value
    out[0] = 0.0
    for k in range(scores.size):
        out[k + 1] += out[k]


@inlined
def try_size(labels, goal, vectors, base, size, best_size, best_merit, room):
    """Return the size and the merit of the best set, or of the best one of this size."""
    values, own, top = room.values, room.own[: labels.size], room.top
    n_own, places = labels.size, room.places[: labels.size]
    for k in range(n_own):
        places[k] = k
    sort_places(own, places)
    n_others = min(size, values.size - n_own)
    highest(values, room.is_own, n_others, top)
    score = 0.0
    for k in range(n_others):
        score += values[top[k]]
    for common in range(min(n_own, size) + 1):
        if common:
            score += own[places[common - 1]]
        if common > size - n_others:
            score -= values[top[size - common]]
        if common < size - n_others or common == n_own == size:
            continue
        value = merit(goal, vectors, base, n_own, size, common, score)
        if value > best_merit:
            best_size, best_merit = size, value
            for k in range(common):
                room.best[k] = labels[places[k]]
            for k in range(size - common):
                room.best[common + k] = top[k]
    return best_size, best_merit
