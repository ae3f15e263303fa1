"""Label sets by size: the best ones, when a set's score is the sum of its labels' scores.

The score of label ``j`` in a set of size ``n`` is ``vectors[n] @ Z[:, j]``, where ``Z`` (rank,
n_labels) belongs to a document. So the best set of a size is the labels that score highest in it,
and the best set of all is that of the best size (Kazawa et al., Eqs. (11)-(13)).
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled, inlined


class Sizes(NamedTuple):
    """How label sets of each size are embedded.

    Sizes after an end, up to the next, are looked at together: their ``vectors`` are within
    ``slack`` of a mean of the two ends' vectors, and their directions within ``turn`` of a mean of
    the two ends' directions.
    """

    vectors: np.ndarray  # (max_size + 1, rank); the empty set's is zero
    width: np.ndarray  # (max_size + 1,): the number of leading components that are not zero
    ends: np.ndarray  # sizes, rising: 1, 2, ..., max_size
    slack: np.ndarray  # of the sizes after the end before, up to an end
    turn: np.ndarray  # of their directions
    shrink: np.ndarray  # what makes an end's vector a direction: 1 / length
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


@inlined
def scores_between(low, high, slack, norms, upper):
    """Set ``upper`` to what no score after an end, up to the next, exceeds."""
    for j in range(upper.size):
        upper[j] = max(low[j], high[j]) + slack * norms[j]


@inlined
def directions_between(low, before, high, here, turn, norms, lower, upper):
    """Set what scores after an end, up to the next, are not outside of, in units of vectors."""
    for j in range(upper.size):
        first, second = low[j] * before, high[j] * here
        lower[j] = min(first, second) - turn * norms[j]
        upper[j] = max(first, second) + turn * norms[j]


@inlined
def sum_above(values, price):
    """Return the sum of what values are above a price, which is not above zero.

    No sum of ``n`` values exceeds this and ``n * price``, nor does one of more values; it is
    exact if the price is the ``n``-th highest value.
    """
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0  # added at the same time
    even = values.size - values.size % 4
    for j in range(0, even, 4):
        first += max(values[j] - price, 0.0)
        second += max(values[j + 1] - price, 0.0)
        third += max(values[j + 2] - price, 0.0)
        fourth += max(values[j + 3] - price, 0.0)
    for j in range(even, values.size):
        first += max(values[j] - price, 0.0)
    return first + second + third + fourth


@compiled
def highest(values, skip, n, top):
    """Put the places of the ``n`` highest values into ``top``, highest first.

    Places where ``skip`` is true are left out; of equal values the first comes first.
    """
    held = 0
    for j in range(values.size if n else 0):
        if skip[j] or (held == n and not values[j] > values[top[n - 1]]):
            continue
        k = held if held < n else n - 1
        while k > 0 and values[j] > values[top[k - 1]]:
            top[k] = top[k - 1]
            k -= 1
        top[k] = j
        held = min(held + 1, n)
    return held


@inlined
def may_be_highest(lower, upper, n, top, found):
    """Find the places that may have one of the ``n`` highest values; return how many they are.

    The values are not outside these limits.
    """
    if n == 0:
        return 0
    for k in range(n):
        top[k] = -np.inf
    least = top[n - 1]
    for j in range(lower.size):
        if lower[j] > least:
            k = n - 1
            while k > 0 and lower[j] > top[k - 1]:
                top[k] = top[k - 1]
                k -= 1
            top[k] = lower[j]
            least = top[n - 1]
    n_found = 0
    for j in range(upper.size):
        if upper[j] >= least and upper[j] > -np.inf:
            found[n_found] = j
            n_found += 1
    return n_found


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
def merit_bound(goal, vectors, base, n_own, least, most, common, score):
    """Return what no set of these sizes with at most this score has more merit than."""
    if goal == SCORE:
        return score
    if goal == RESCALED:
        return 1.0 - 2.0 * common / (n_own + most) - (base - score)
    if score <= base:  # and no two sets are further apart than this
        return 1.0 - (base - score) / np.sqrt(2.0)
    limit = -np.inf
    for size in range(max(least, common), most + 1):
        if not common == n_own == size:
            limit = max(limit, merit(goal, vectors, base, n_own, size, common, score))
    return limit


class Room(NamedTuple):
    """Room for one search."""

    low: np.ndarray  # (n_labels,) scores of the labels at the end before
    high: np.ndarray  # (n_labels,) those at an end
    norms: np.ndarray  # (n_labels,)
    lower: np.ndarray  # (n_labels,) what no score between is below
    upper: np.ndarray  # (n_labels,) nor above
    top: np.ndarray  # (n_labels,) the highest of the lower limits
    own: np.ndarray  # (n_labels,) places of own labels, highest score first
    outside: np.ndarray  # (n_labels,) other labels that may be among the highest
    places: np.ndarray  # (n_labels,) their places, highest score first
    Z: np.ndarray  # (2 * rank * n_labels,) what scores of own labels and of those are made of
    scores: np.ndarray  # (2 * n_labels,) their scores in a set of some size
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
        np.empty(n_labels, Z.dtype),
        np.empty(n_labels, np.int64),
        np.empty(n_labels, np.int64),
        np.empty(n_labels, np.int64),
        np.empty(2 * Z.size, Z.dtype),
        np.empty(2 * n_labels, Z.dtype),
        np.empty(n_labels, np.int64),
    )


@compiled
def best_set(Z, labels, goal, sizes, floor, room):
    """Find the label set of the highest merit that is not ``labels``, the document's own.

    Returns its size and its merit; its labels are in ``room.best``. Of equal sets the smaller is
    taken, then the one with the first labels. Where none has more merit than ``floor``, the size
    is -1 and the merit ``floor``. Without labels of its own, the goal must be ``SCORE``.

    Sizes between two ends are passed over together if none can be better than the best so far.
    Otherwise only the labels that may be among the highest are looked at, size by size.
    """
    vectors, low, high, norms = sizes.vectors, room.low, room.high, room.norms
    lower, upper, best = room.lower, room.upper, room.best
    rank, n_labels, n_own = Z.shape[0], Z.shape[1], labels.size
    inside = room.Z[: rank * n_own].reshape((rank, n_own))
    own, own_scores = room.own[:n_own], room.scores[:n_own]
    take_columns(Z, labels, inside)
    size_scores(inside, vectors, n_own, own_scores)
    base = own_scores.sum()
    best_size, best_merit, price = -1, floor, 0.0
    if sizes.empty and n_own:
        value = merit(goal, vectors, base, n_own, 0, 0, 0.0)
        if value > best_merit:
            best_size, best_merit = 0, value
    column_norms(Z, norms)
    for k in range(sizes.ends.size):
        least, most = 1 if k == 0 else sizes.ends[k - 1] + 1, sizes.ends[k]
        size_scores(Z, vectors, most, high)
        scores_between(high if least == most else low, high, sizes.slack[k], norms, upper)
        for j in range(n_own):
            own_scores[j], own[j] = upper[labels[j]], j
        sort_places(own_scores, own)
        above = sum_above(upper, price) - sum_above(own_scores, price)
        score, may_be_better = 0.0, False
        for common in range(min(n_own, most) + 1):
            if common:
                score += own_scores[own[common - 1]]
            limit = score + max(least - common, 0) * price + above
            limit = merit_bound(goal, vectors, base, n_own, least, most, common, limit)
            may_be_better = may_be_better or limit > best_merit
        if may_be_better:
            if least == most:
                lower[:] = high
                upper[:] = high
            else:
                before, here = sizes.shrink[k - 1], sizes.shrink[k]
                directions_between(low, before, high, here, sizes.turn[k], norms, lower, upper)
            for label in labels:
                lower[label] = upper[label] = -np.inf
            wanted = min(most, n_labels - n_own)
            n_outside = may_be_highest(lower, upper, wanted, room.top, room.outside)
            found = room.outside[:n_outside]
            outside = room.Z[rank * n_own : rank * (n_own + n_outside)].reshape((rank, n_outside))
            scores, places = room.scores[n_own : n_own + n_outside], room.places[:n_outside]
            take_columns(Z, found, outside)
            for j in range(n_outside):
                places[j] = j
            for size in range(least, most + 1):
                size_scores(inside, vectors, size, own_scores)
                sort_places(own_scores, own)
                size_scores(outside, vectors, size, scores)
                sort_places(scores, places)
                n_others = min(size, n_labels - n_own)
                score = 0.0
                for j in range(n_others):
                    score += scores[places[j]]
                for common in range(min(n_own, size) + 1):
                    if common:
                        score += own_scores[own[common - 1]]
                    if common > size - n_others:
                        score -= scores[places[size - common]]
                    if common < size - n_others or common == n_own == size:
                        continue
                    value = merit(goal, vectors, base, n_own, size, common, score)
                    if value > best_merit:
                        best_size, best_merit = size, value
                        for j in range(common):
                            best[j] = labels[own[j]]
                        for j in range(size - common):
                            best[common + j] = found[places[j]]
                if n_others:
                    price = min(0.0, scores[places[n_others - 1]])
        low[:] = high
    return best_size, best_merit


@inlined
def take_columns(Z, columns, out):
    """Set ``out`` to some columns."""
    for q in range(Z.shape[0]):
        for k in range(columns.size):
            out[q, k] = Z[q, columns[k]]
