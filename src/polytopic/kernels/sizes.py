"""Label sets by size: the best ones, when a set's score is the sum of its labels' scores.

The score of label ``j`` in a set of size ``n`` is ``vectors[n] @ Z[:, j]``, where ``Z`` (rank,
n_labels) belongs to a document. So the best set of a size is the labels that score highest in it,
and the best set of all is that of the best size (Kazawa et al., Eqs. (11)-(13)).
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled


class Sizes(NamedTuple):
    """How label sets of each size are embedded.

    Sizes between two neighbouring ``ends`` need not be looked at one by one: ``vectors[n]`` is
    within ``slack`` of a mean of the two ends' vectors.
    """

    vectors: np.ndarray  # (max_size + 1, rank); the empty set's is zero
    width: np.ndarray  # (max_size + 1,): the number of leading components that are not zero
    ends: np.ndarray  # sizes, rising: 1, 2, ..., max_size
    slack: np.ndarray  # of the sizes between an end and the next
    empty: bool  # whether the empty set is a label set too, at the origin


@compiled
def size_scores(Z, sizes, size, out):
    """Set ``out`` to the scores of all labels in a set of this size.

    Equals ``out[:] = sizes.vectors[size] @ Z``.
    """
    first = sizes.vectors[size, 0]
    for j in range(out.size):
        out[j] = first * Z[0, j]
    for q in range(1, sizes.width[size]):
        factor = sizes.vectors[size, q]
        for j in range(out.size):
            out[j] += factor * Z[q, j]


@compiled
def column_norms(Z, out):
    """Set ``out`` to the length of each column: ``np.linalg.norm(Z, axis=0)``."""
    out[:] = 0.0
    for q in range(Z.shape[0]):
        for j in range(out.size):
            out[j] += Z[q, j] * Z[q, j]
    for j in range(out.size):
        out[j] = np.sqrt(out[j])


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


# What makes a label set the best one: its score, or how much it violates the margin of a
# document's own set by one of two measures.
SCORE, EXACT, RESCALED = 0, 1, 2


class Room(NamedTuple):
    """Room for one search."""

    values: np.ndarray  # (n_labels,) scores of the labels in a set of some size
    low: np.ndarray  # (n_labels,) those at the last end
    high: np.ndarray  # (n_labels,) those at the next
    norms: np.ndarray  # (n_labels,)
    own: np.ndarray  # (n_labels,) whether a label is in the document's own set
    inside: np.ndarray  # (n_labels,) own labels, highest score first
    outside: np.ndarray  # (n_labels,) other labels, highest score first
    best: np.ndarray  # (n_labels,) the best set found


class Best(NamedTuple):
    """The best set so far: its size, its merit, and a price that makes bounds tight."""

    size: int
    merit: float
    price: float


@compiled
def new_room(Z):
    """Return room for searches with scores like these."""
    n_labels = Z.shape[1]
    return Room(
        np.empty(n_labels, Z.dtype),
        np.empty(n_labels, Z.dtype),
        np.empty(n_labels, Z.dtype),
        np.empty(n_labels, Z.dtype),
        np.zeros(n_labels, np.bool_),
        np.empty(n_labels, np.int64),
        np.empty(n_labels, np.int64),
        np.empty(n_labels, np.int64),
    )


@compiled
def distance(sizes, a, b, common):
    """Return the squared distance between the embeddings of two label sets.

    They have ``a`` and ``b`` labels, of which some are common:
    ``a * |u_a|^2 + b * |u_b|^2 - 2 * common * u_a @ u_b``.
    """
    total = 0.0
    for q in range(sizes.vectors.shape[1]):
        u, v = sizes.vectors[a, q], sizes.vectors[b, q]
        total += a * u * u + b * v * v - 2.0 * common * u * v
    return total


@compiled
def required(goal, sizes, a, b, common):
    """Return the margin that is required between two label sets, and what divides the margin."""
    if goal == EXACT:
        return 1.0, np.sqrt(distance(sizes, a, b, common))
    return 1.0 - 2.0 * common / (a + b), 1.0


@compiled
def merit(goal, sizes, base, n_own, size, common, score):
    """Return how good a set is to find; ``base`` is the score of the document's own."""
    if goal == SCORE:
        return score
    margin, scale = required(goal, sizes, n_own, size, common)
    return margin - (base - score) / scale


@compiled
def merit_bound(goal, base, n_own, size, common, score):
    """Return what no set of up to this size with at most this score has more merit than.

    Two different sets are apart by at least ``1 / (size + 1)``, squared.
    """
    if goal == SCORE:
        return score
    if goal == RESCALED:
        return 1.0 - 2.0 * common / (n_own + size) - (base - score)
    if score <= base:
        return 1.0 - (base - score) / np.sqrt(2.0)
    return 1.0 + (score - base) * np.sqrt(max(n_own, size) + 1.0)


@compiled
def best_set(Z, labels, goal, sizes, room):
    """Find the label set of the highest merit that is not ``labels``, the document's own.

    Returns its size and its merit; its labels are in ``room.best``. Of equal sets the smaller is
    taken, then the one with the first labels. Without labels of its own, the goal must be
    ``SCORE``.
    """
    n_own, base = labels.size, 0.0
    for label in labels:
        room.own[label] = True
        for q in range(sizes.width[n_own]):
            base += sizes.vectors[n_own, q] * Z[q, label]
    best = Best(0, -np.inf, 0.0)
    if sizes.empty and n_own:
        best = Best(0, merit(goal, sizes, base, n_own, 0, 0, 0.0), 0.0)
    column_norms(Z, room.norms)
    for k in range(sizes.ends.size):
        end = sizes.ends[k]
        room.low[:] = room.high
        size_scores(Z, sizes, end, room.high)
        if k > 0 and end > sizes.ends[k - 1] + 1:
            for j in range(room.values.size):
                room.values[j] = max(room.low[j], room.high[j]) + sizes.slack[k - 1] * room.norms[j]
            least = sizes.ends[k - 1] + 1
            if _may_be_better(labels, goal, sizes, least, end - 1, base, room, best):
                for between in range(least, end):
                    size_scores(Z, sizes, between, room.values)
                    best = _best_of_size(labels, goal, sizes, between, base, room, best)
        room.values[:] = room.high
        best = _best_of_size(labels, goal, sizes, end, base, room, best)
    for label in labels:
        room.own[label] = False
    return best.size, best.merit


@compiled
def _may_be_better(labels, goal, sizes, least, most, base, room, best):
    """Whether a set of these sizes, with these values of labels at most, may beat the best.

    No sum of ``n`` values exceeds ``n * price`` and the sum of what they are above the price;
    this is exact if the price is the ``n``-th highest value. The price is not above zero.
    """
    n_own, price, values = labels.size, best.price, room.values
    even, odd = 0.0, 0.0  # two sums, which a processor adds at the same time
    for j in range(0, values.size - 1, 2):
        even += max(values[j] - price, 0.0)
        odd += max(values[j + 1] - price, 0.0)
    if values.size % 2:
        even += max(values[-1] - price, 0.0)
    above = even + odd
    for label in labels:
        above -= max(values[label] - price, 0.0)
    if n_own:
        order(values, labels, room.inside)
    inside = 0.0
    for common in range(min(n_own, most) + 1):
        if common:
            inside += values[room.inside[common - 1]]
        score = inside + max(least - common, 0) * price + above
        if least == most:
            if common == n_own == least:
                continue
            limit = merit(goal, sizes, base, n_own, least, common, score)
        else:
            limit = merit_bound(goal, base, n_own, most, common, score)
        if limit > best.merit:
            return True
    return False


@compiled
def _best_of_size(labels, goal, sizes, size, base, room, best):
    """Return the best set so far, now with those of a size, whose values are in the room."""
    if not _may_be_better(labels, goal, sizes, size, size, base, room, best):
        return best
    values, n_own, n_labels = room.values, labels.size, room.values.size
    n_outside = min(size, n_labels - n_own)
    highest(values, room.own, n_outside, room.outside)
    price = min(0.0, values[room.outside[n_outside - 1]]) if n_outside else best.price
    found, top = best.size, best.merit
    inside, outside = 0.0, 0.0
    for k in range(n_outside):
        outside += values[room.outside[k]]
    for common in range(min(n_own, size) + 1):
        if common:
            inside += values[room.inside[common - 1]]
        if common > size - n_outside:
            outside -= values[room.outside[size - common]]
        if common < size - n_outside or common == n_own == size:
            continue
        value = merit(goal, sizes, base, n_own, size, common, inside + outside)
        if value > top:
            found, top = size, value
            room.best[:common] = room.inside[:common]
            room.best[common:size] = room.outside[: size - common]
    return Best(found, top, price)


@compiled
def order(values, labels, out):
    """Put labels into ``out``, highest value first."""
    for k in range(labels.size):
        place = k
        while place > 0 and values[labels[k]] > values[out[place - 1]]:
            out[place] = out[place - 1]
            place -= 1
        out[place] = labels[k]
