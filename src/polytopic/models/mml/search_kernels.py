"""Search for the label sets of a document that score best.

====================  =======================================================================
``Z``                 (rank, n_labels) scores of a document, ``Z[q] = x @ W[:, q]``
``vectors[n]``        u_n, the embedding of sets with n labels: the embedding phi of a set is
                      the sum of e_j ⊗ u_n over its labels j
``scores[j]``         s_n(j), the score of label j in a set of n labels, ``u_n @ Z[:, j]``
                      (Kazawa et al., Eq. (13))
``own``               the document's own labels L, while it is learned
``n_common``          how many of its own labels a set contains
====================  =======================================================================

A set of n labels scores the sum of their s_n(j). The best set of a size thus holds the n
labels with the highest scores, and the best set of all is that of the best size (Eqs. (11), (12)).
Most sizes are ruled out by an upper bound, which follows from two facts:

1. *A price bounds a sum.* For any price p, no n values sum to more than
   ``n * p + np.maximum(values - p, 0).sum()``. The bound is exact if p is the n-th highest value.
2. *Scores are nearly linear between two sizes.* Let a and b be consecutive knots, and a < n <= b.
   Then u_n is within ``slack`` of a mean ``(1 - t) * u_a + t * u_b``, so no s_n(j) exceeds
   the mean of s_a(j) and s_b(j) by more than ``slack * |Z[:, j]|``. Bounds at two
   knots, interpolated, are bounds at all sizes between them.
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled, helper, inlined, reordered
from polytopic.kernels.heaps import Heap, new_heap, pop, push
from polytopic.kernels.ranking import highest

# The merit by which a set is the best: its score or, while a document is learned, its violation of
# the margin from the document's own set. See `required_margin`.
SCORE, EXACT, RESCALED = 0, 1, 2

FEW = 8  # a large set has at least this many other labels; their norms are bounded tightly
ROUNDING = 1e-5  # relative error that a bound may have


class SizeEmbedding(NamedTuple):
    """The vectors u_n, and the knots between which they are nearly linear."""

    vectors: np.ndarray  # (max_size + 1, rank); that of the empty set is zero
    width: np.ndarray  # (max_size + 1,) the number of components up to the last that is not zero
    knots: np.ndarray  # sizes, ascending: 1, 2, ..., max_size
    blend: np.ndarray  # (max_size + 1,) share of the knot above in the nearest mean of two knots
    slack: np.ndarray  # (n_knots,) distance of sizes below a knot from their means, at most
    has_empty: bool  # whether the empty set is a label set, too; it is at the origin, and scores 0


# Scores


@helper
def project_row(data, indices, start, stop, W, scores):
    """Set ``scores`` to those of one document: ``data[start:stop] @ W[indices[start:stop]]``.

    Rows are far from each other in memory, so four are fetched at the same time; they are added
    one after another, in the order of the words.
    """
    for j in range(scores.size):
        scores[j] = 0
    k = start
    while k + 4 <= stop:
        a, b, c, d = indices[k], indices[k + 1], indices[k + 2], indices[k + 3]
        x_a, x_b, x_c, x_d = data[k], data[k + 1], data[k + 2], data[k + 3]
        for j in range(scores.size):
            first_two = scores[j] + x_a * W[a, j] + x_b * W[b, j]
            scores[j] = first_two + x_c * W[c, j] + x_d * W[d, j]
        k += 4
    while k < stop:
        a, x_a = indices[k], data[k]
        for j in range(scores.size):
            scores[j] += x_a * W[a, j]
        k += 1


@compiled
def project_rows(data, indices, indptr, W, Z):
    """Set ``Z`` to the scores of documents: ``Z = X @ W``.

    ``W`` (n_words, rank * n_labels) and ``Z`` (n_docs, rank * n_labels) are flat.
    """
    for d in range(indptr.size - 1):
        project_row(data, indices, indptr[d], indptr[d + 1], W, Z[d])


@inlined
def size_scores(Z, vectors, size, out):
    """Set ``out`` to the scores of all labels in a set of this size: ``vectors[size] @ Z``."""
    factor = vectors[size, 0]
    for j in range(out.size):
        out[j] = factor * Z[0, j]
    for q in range(1, Z.shape[0]):
        factor = vectors[size, q]
        for j in range(out.size):
            out[j] += factor * Z[q, j]


@inlined
def _column_norms(Z, out):
    """Set ``out`` to the length of each column: ``np.linalg.norm(Z, axis=0)``."""
    for j in range(out.size):
        out[j] = 0
    for q in range(Z.shape[0]):
        for j in range(out.size):
            out[j] += Z[q, j] * Z[q, j]
    for j in range(out.size):
        out[j] = np.sqrt(out[j])


@reordered
def _row_means(Z, out):
    """Set ``out`` to the mean of each row: ``Z.mean(axis=1)``."""
    for q in range(Z.shape[0]):
        total = Z.dtype.type(0)
        for j in range(Z.shape[1]):
            total += Z[q, j]
        out[q] = total / Z.shape[1]


# Bounds on sums


@reordered
def _sum_above(values, price):
    """Return ``np.maximum(values - price, 0).sum()``."""
    zero, price = values.dtype.type(0), values.dtype.type(price)
    total = zero
    for j in range(values.size):
        total += max(values[j] - price, zero)
    return total


@reordered
def _n_above_zero(values):
    """Return ``(values > 0).sum()``."""
    count = np.int32(0)
    for j in range(values.size):
        count += np.int32(values[j] > 0)
    return count


class SumBound(NamedTuple):
    """A bound on the sum of any n values: ``n * price + excess``."""

    price: float
    excess: float


@helper
def bound_sum(values, n, mean, above_zero, logs):
    """Return a bound on sums of values that is nearly exact for the ``n`` highest.

    Any price gives a bound. This one is the n-th highest value under the assumption that values
    thin out exponentially: above zero with the mean that they have, else from ``mean``, at the
    median, up to zero. The bound at price zero, ``above_zero``, is taken if it is lower.
    """
    count = _n_above_zero(values)
    if count >= n:
        price = above_zero / count * (logs[count] - logs[n])
    else:
        count, half = max(count, 1), max(values.size // 2, n + 1)
        price = min(mean, 0.0) * (logs[n] - logs[count]) / (logs[half] - logs[count])
    price = np.float64(values.dtype.type(price))
    excess = np.float64(_sum_above(values, price))
    if n * price + excess < above_zero:
        return SumBound(price, excess)
    return SumBound(0.0, above_zero)


# The merit of a set


@inlined
def distance(vectors, a, b, n_common):
    """Return the squared distance between the embeddings of two sets with a and b labels.

    ``a * u_a @ u_a + b * u_b @ u_b - 2 * n_common * u_a @ u_b``
    """
    total = 0.0
    for q in range(vectors.shape[1]):
        u, v = vectors[a, q], vectors[b, q]
        total += a * u * u + b * v * v - 2.0 * n_common * u * v
    return total


@inlined
def required_margin(goal, vectors, a, b, n_common):
    """Return the margin that two sets must have, and the scale by which it is divided.

    EXACT: a margin of 1 in units of the distance between the sets (Eq. (6)). RESCALED: a margin
    of 1 - Dice.
    """
    if goal == EXACT:
        return 1.0, np.sqrt(distance(vectors, a, b, n_common))
    return 1.0 - 2.0 * n_common / (a + b), 1.0


@inlined
def _merit(goal, vectors, base, n_own, size, n_common, score):
    """Return the score of a set, or by how much it violates the margin.

    ``base`` is the score of the document's own set. The violation is
    ``margin - (base - score) / scale``.
    """
    if goal == SCORE:
        return score
    margin, scale = required_margin(goal, vectors, n_own, size, n_common)
    return margin - (base - score) / scale


# The best set


class Search(NamedTuple):
    """Workspace of `best_set`."""

    scores: np.ndarray  # (n_labels,) scores of other labels, -inf for own ones
    norms: np.ndarray  # (n_labels,) lengths of the columns of Z, zero for own labels
    own_scores: np.ndarray  # (n_labels,)
    own_norms: np.ndarray  # (n_labels,)
    own_below: np.ndarray  # (n_labels,) own scores at the knot below
    sums_below: np.ndarray  # (n_labels + 1,) bounds on sums of own scores there, by n_common
    sums_here: np.ndarray  # (n_labels + 1,) and at this knot
    means: np.ndarray  # (rank,) of the rows of Z
    logs: np.ndarray  # (n_labels + 2,) logarithms of whole numbers; that of 0 is 0
    order: np.ndarray  # (n_labels,) places of own labels, highest score first
    top: np.ndarray  # (n_labels,) other labels, highest score first
    is_own: np.ndarray  # (n_labels,)
    best: np.ndarray  # (n_labels,) labels of the best set


def new_search(rank, n_labels, dtype):
    """Return a workspace."""
    return Search(
        *(np.empty(n_labels, dtype) for _ in range(5)),
        np.empty(n_labels + 1),
        np.empty(n_labels + 1),
        np.empty(rank, dtype),
        np.log(np.maximum(np.arange(n_labels + 2), 1)),
        np.empty(n_labels, np.int64),
        np.empty(n_labels, np.int64),
        np.zeros(n_labels, np.bool_),
        np.empty(n_labels, np.int64),
    )


class KnotBounds(NamedTuple):
    """Bounds on sums of the scores of other labels, for the sizes from one knot to the next."""

    below: SumBound  # at the knot below
    here: SumBound  # at the knot
    norms: SumBound  # of lengths
    slack: float  # what each length adds


@helper
def best_set(Z, own, goal, sizes, floor, work):
    """Find the set of the highest merit other than ``own``; return its size and its merit.

    Its labels are in ``work.best``. Of equal sets the smaller one is taken, then that with the
    first labels. If no set has a merit above ``floor``, the size is -1 and the merit ``floor``.
    Without own labels, the goal must be SCORE. Equivalent to::

        sets = [s for s in all_sets if s != own and merit(s) > floor]
        max(sets, key=merit, default=None)

    The sizes between two knots are tried only if a bound on the merit of all of them exceeds the
    best merit so far, and each of them only if its own bound does.
    """
    vectors, knots, slacks = sizes.vectors, sizes.knots, sizes.slack
    scores, norms, means = work.scores, work.norms, work.means
    own_scores, own_norms, own_below = work.own_scores, work.own_norms, work.own_below
    sums_below, sums_here = work.sums_below, work.sums_here
    is_own, logs = work.is_own, work.logs
    n_own = own.size
    best_size, best_merit, base = np.int64(-1), floor, 0.0
    if n_own:
        size_scores(Z, vectors, n_own, scores)
        _take_out(scores, own, 0.0, own_scores)
        total = Z.dtype.type(0)
        for k in range(n_own):
            total += own_scores[k]
        base = np.float64(total)
        if sizes.has_empty:
            value = _merit(goal, vectors, base, n_own, np.int64(0), np.int64(0), 0.0)
            if value > best_merit:
                best_size, best_merit = np.int64(0), value
    for label in own:
        is_own[label] = True
    _row_means(Z, means)
    _column_norms(Z, norms)
    _take_out(norms, own, 0.0, own_norms)
    norm_bound = bound_sum(
        norms, min(FEW, norms.size), 0.0, np.float64(_sum_above(norms, 0.0)), logs
    )
    below, first = SumBound(0.0, 0.0), np.int64(1)
    for k in range(knots.size):
        last, slack = knots[k], slacks[k]  # the sizes are first, ..., last
        size_scores(Z, vectors, last, scores)
        _take_out(scores, own, -np.inf, own_scores)
        here = SumBound(0.0, np.float64(_sum_above(scores, 0.0)))
        if first == last:  # the knot is not compared with the one below
            below = here
            for i in range(n_own):
                own_below[i] = own_scores[i]
        _bound_own_sums(own_below, slack, own_norms, n_own, sums_below)
        _bound_own_sums(own_scores, slack, own_norms, n_own, sums_here)
        for i in range(n_own):
            own_below[i] = own_scores[i]
        bounds = KnotBounds(below, here, norm_bound, slack)
        limit = _limit_between(goal, base, n_own, first, last, bounds, sums_below, sums_here)
        if _may_exceed(limit, best_merit):  # a better price is worth its time
            mean = 0.0
            for q in range(Z.shape[0]):
                mean += vectors[last, q] * means[q]
            here = bound_sum(scores, last, mean, here.excess, logs)
            bounds = KnotBounds(here if first == last else below, here, norm_bound, slack)
            limit = _limit_between(goal, base, n_own, first, last, bounds, sums_below, sums_here)
        if _may_exceed(limit, best_merit):
            for size in range(first, last + 1):
                limit = _limit_at(
                    goal, sizes, base, n_own, size, norms.size, bounds, sums_below, sums_here
                )
                if _may_exceed(limit, best_merit):
                    if first < last:
                        size_scores(Z, vectors, size, scores)
                        _take_out(scores, own, -np.inf, own_scores)
                    value = _improve(own, goal, vectors, base, size, best_merit, work)
                    if value > best_merit:
                        best_size, best_merit = size, value
        below, first = here, last + 1
    for label in own:
        is_own[label] = False
    return best_size, best_merit


@inlined
def _may_exceed(limit, value):
    """Return whether a bound is above a value, or would be without rounding."""
    return limit + ROUNDING * (1.0 + abs(limit)) > value


@inlined
def _take_out(values, own, replacement, own_values):
    """Move the values of own labels to ``own_values``, and put another value there."""
    for k in range(own.size):
        own_values[k] = values[own[k]]
        values[own[k]] = replacement


@inlined
def _bound_own_sums(scores, slack, norms, n, out):
    """Set ``out[c]`` to a bound on the sum of c own scores, at sizes below a knot.

    Equivalent to ``np.cumsum([0, *np.sort(scores[:n] + slack * norms[:n])[::-1]])``.
    """
    for k in range(n):
        value, place = scores[k] + slack * norms[k], k + 1
        while place > 1 and out[place - 1] < value:
            out[place] = out[place - 1]
            place -= 1
        out[place] = value
    out[0] = 0.0
    for k in range(n):
        out[k + 1] += out[k]


@inlined
def _limit_between(goal, base, n_own, first, last, bounds, sums_below, sums_here):
    """Return a bound on the merit of all sets from one knot to the next.

    It is loose: a sum is linear in the size between the knots, so it is bounded by the higher of
    both ends.
    """
    below, here, norms = bounds.below, bounds.here, bounds.norms
    highest_limit = -np.inf
    for n_common in range(min(n_own, last) + 1):
        few, many = max(first - n_common, 0), last - n_common  # other labels
        at_below = sums_below[n_common] + below.excess + max(few * below.price, many * below.price)
        at_here = sums_here[n_common] + here.excess + max(few * here.price, many * here.price)
        limit = max(at_below, at_here) + bounds.slack * (many * norms.price + norms.excess)
        if goal == RESCALED:
            limit = 1.0 - 2.0 * n_common / (n_own + last) - (base - limit)
        elif goal == EXACT:  # no two sets are further apart than sqrt(2)
            limit = 1.0 - (base - limit) / np.sqrt(2.0) if limit <= base else np.inf
        highest_limit = max(highest_limit, limit)
    return highest_limit


@helper
def _limit_at(goal, sizes, base, n_own, size, n_labels, bounds, sums_below, sums_here):
    """Return a bound on the merit of all sets of one size, by interpolation between the knots."""
    below, here, norms = bounds.below, bounds.here, bounds.norms
    highest_limit = -np.inf
    for n_common in range(max(size - (n_labels - n_own), 0), min(n_own, size) + 1):
        if n_common == n_own == size:
            continue
        n_others = size - n_common
        at_below = sums_below[n_common] + n_others * below.price + below.excess
        at_here = sums_here[n_common] + n_others * here.price + here.excess
        limit = at_below + sizes.blend[size] * (at_here - at_below)
        limit += bounds.slack * (n_others * norms.price + norms.excess)
        limit = _merit(goal, sizes.vectors, base, n_own, size, n_common, limit)
        highest_limit = max(highest_limit, limit)
    return highest_limit


@helper
def _improve(own, goal, vectors, base, size, best_merit, work):
    """Return the highest merit of the sets of one size, if it is above ``best_merit``.

    For each number of own labels, a set has those that score highest, and the highest others.
    """
    scores, own_scores, best = work.scores, work.own_scores, work.best
    order, top = work.order, work.top
    n_own = own.size
    for k in range(n_own):  # insertion sort; of equal scores the first label comes first
        place = k
        while place > 0 and not own_scores[order[place - 1]] >= own_scores[k]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k
    n_others = min(size, scores.size - n_own)
    highest(scores, work.is_own, n_others, top)
    score = 0.0
    for k in range(n_others):
        score += scores[top[k]]
    for n_common in range(min(n_own, size) + 1):
        if n_common:
            score += own_scores[order[n_common - 1]]
        if n_common > size - n_others:
            score -= scores[top[size - n_common]]
        if n_common < size - n_others or n_common == n_own == size:
            continue
        value = _merit(goal, vectors, base, n_own, size, n_common, score)
        if value > best_merit:
            best_merit = value
            for k in range(n_common):
                best[k] = own[order[k]]
            for k in range(size - n_common):
                best[n_common + k] = top[k]
    return best_merit


@compiled
def best_sets(Z, sizes, work, set_labels, set_sizes):
    """Find the best set of each document.

    ``set_labels`` receives the labels of all sets one after another, ascending within a set, and
    ``set_sizes`` their sizes. A document whose scores are not numbers has none. Returns the total
    number of labels. Equivalent, with ``score`` the sum of s_n(j) over the labels of a set, to::

        best = [max(all_sets, key=lambda labels: score(Z[d], labels)) for d in range(len(Z))]
        set_sizes[:], set_labels[:n] = [len(labels) for labels in best], np.concatenate(best)
    """
    no_labels, best, n = np.empty(0, np.int64), work.best, 0
    floor = 0.0 if sizes.has_empty else -np.inf  # which the empty set scores
    for d in range(Z.shape[0]):
        size, _ = best_set(Z[d], no_labels, np.int64(SCORE), sizes, floor, work)
        set_sizes[d] = max(size, 0)
        sort_labels(best, set_sizes[d])
        for k in range(set_sizes[d]):
            set_labels[n] = best[k]
            n += 1
    return n


@helper
def sort_labels(labels, n):
    """Sort the first ``n`` labels in place, by insertion: most sets are small."""
    for k in range(1, n):
        label, place = labels[k], k
        while place > 0 and labels[place - 1] > label:
            labels[place] = labels[place - 1]
            place -= 1
        labels[place] = label


@compiled
def best_with(Z, sizes, label, chosen):
    """Mark the best set of each document that contains a label.

    For each size, it has the label and the others that score highest. Equivalent to::

        sets = [labels for labels in all_sets if label in labels]
        chosen[d] = np.isin(np.arange(n_labels), max(sets, key=lambda labels: score(Z[d], labels)))
    """
    n_labels = Z.shape[2]
    scores, top = np.empty(n_labels), np.empty(n_labels, np.int64)
    skip = np.zeros(n_labels, np.bool_)
    skip[label] = True
    for d in range(Z.shape[0]):
        best = -np.inf
        for size in range(1, sizes.width.size):
            size_scores(Z[d], sizes.vectors, size, scores)
            highest(scores, skip, size - 1, top)
            score = scores[label]
            for k in range(size - 1):
                score += scores[top[k]]
            if score > best:
                best = score
                for j in range(n_labels):
                    chosen[d, j] = j == label
                for k in range(size - 1):
                    chosen[d, top[k]] = True


# Margins of labels


@compiled
def margins(Z, sizes, out):
    """Set ``out`` to the score of the best set with each label minus the best without it.

    Equivalent, for each document and label ``j``, to::

        max(score(s) for s in sets if j in s) - max(score(s) for s in sets if j not in s)

    Sizes are skipped if a bound shows that none of their sets is the best with or without any
    label.
    """
    n_labels = Z.shape[2]
    below, here, scores = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    norms, inside, outside = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    top, none = np.empty(n_labels, np.int64), np.zeros(n_labels, np.bool_)
    floor = 0.0 if sizes.has_empty else -np.inf  # which the empty set scores
    for d in range(Z.shape[0]):
        for j in range(n_labels):  # scores of the best sets with a label, and without
            inside[j], outside[j] = -np.inf, floor
        _column_norms(Z[d], norms)
        price, first = 0.0, np.int64(1)
        for k in range(sizes.knots.size):
            last, slack = sizes.knots[k], sizes.slack[k]
            size_scores(Z[d], sizes.vectors, last, here)
            for j in range(n_labels):  # bounds on the scores from one knot to the next
                scores[j] = max(here[j] if first == last else below[j], here[j]) + slack * norms[j]
            if _may_improve(scores, first, price, inside, outside):
                for size in range(first, last + 1):
                    size_scores(Z[d], sizes.vectors, size, scores)
                    if _may_improve(scores, size, price, inside, outside):
                        price = _improve_all(scores, size, none, top, inside, outside)
            for j in range(n_labels):
                below[j] = here[j]
            first = last + 1
        for j in range(n_labels):
            out[d, j] = inside[j] - outside[j]


@reordered
def _may_improve(scores, size, price, inside, outside):
    """Return whether a set of this size, or larger, may be the best with or without some label."""
    limit, n_better = size * price + _sum_above(scores, price), np.int32(0)
    for j in range(scores.size):
        above = scores[j] - price
        better = (limit + min(above, 0.0) > inside[j]) | (limit - max(above, 0.0) > outside[j])
        n_better += np.int32(better)
    return n_better > 0


@helper
def _improve_all(scores, size, none, top, inside, outside):
    """Take the sets of a size into account; return a price that makes bounds tight.

    The best set with label j replaces the last of the highest labels by j, unless j is among
    them; the best without it replaces j by the label that follows.
    """
    n_held = highest(scores, none, min(size + 1, scores.size), top)
    total = 0.0
    for k in range(size):
        total += scores[top[k]]
    last = scores[top[size - 1]]
    following = scores[top[size]] if n_held > size else -np.inf
    for j in range(scores.size):
        inside[j] = max(inside[j], total - last + min(scores[j], last))
        outside[j] = max(outside[j], total - max(scores[j] - following, 0.0))
    return min(0.0, last)


# The lead of the best set, and several best sets


@compiled
def leads(Z, sizes, out):
    """Set ``out`` to the score of each document's best set minus that of the second best.

    It is ``inf`` where there is only one set. Equivalent to ``-np.diff(n_best_scores)`` for the
    scores of two sets that `n_best_sets` finds. The second best set of a size replaces the last of
    the highest labels by the one that follows.
    """
    n_labels = Z.shape[2]
    values, norms = np.empty(n_labels), np.empty(n_labels)
    top, none = np.empty(n_labels, np.int64), np.zeros(n_labels, np.bool_)
    for d in range(Z.shape[0]):
        _column_norms(Z[d], norms)
        below, spread, first = 0.0, np.float64(_sum_above(norms, 0.0)), np.int64(1)
        best = 0.0 if sizes.has_empty else -np.inf  # which the empty set scores
        second = -np.inf
        for k in range(sizes.knots.size):
            last = sizes.knots[k]
            size_scores(Z[d], sizes.vectors, last, values)
            here = np.float64(_sum_above(values, 0.0))
            limit = max(here, below) + sizes.slack[k] * spread
            below = here
            for size in range(first, last + 1):
                if not _may_exceed(limit, second):
                    break
                if first < last:
                    size_scores(Z[d], sizes.vectors, size, values)
                    here = np.float64(_sum_above(values, 0.0))
                if _may_exceed(here, second):
                    n_held = highest(values, none, min(size + 1, n_labels), top)
                    score = 0.0
                    for i in range(size):
                        score += values[top[i]]
                    second = max(second, min(score, best))
                    best = max(score, best)
                    if n_held > size:
                        score = score - values[top[size - 1]] + values[top[size]]
                        second = max(second, min(score, best))
                        best = max(score, best)
            first = last + 1
        out[d] = best - second


class Listing(NamedTuple):
    """The best sets of a document so far."""

    waiting: Heap  # sets of a size that may come next, the best one first
    shifts: np.ndarray  # (2 * n_best + 1, n_labels) of those sets, see `_list_size`
    ranked: Heap  # the best sets, the worst one first; of equal ones, the latest
    sets: np.ndarray  # (n_best, n_labels) marks their labels


def new_listing(n_best, n_labels):
    """Return a workspace of `n_best_sets`."""
    n_shifts = 2 * n_best + 1
    shifts, sets = np.empty((n_shifts, n_labels), np.int64), np.empty((n_best, n_labels), np.bool_)
    return Listing(new_heap(n_shifts), shifts, new_heap(n_best), sets)


@compiled
def n_best_sets(Z, sizes, listing, chosen, scores):
    """Find the best sets of each document, best first.

    ``chosen`` (n_docs, n_best, n_labels) marks their labels, and ``scores`` (n_docs, n_best) has
    their scores, ``-inf`` where there are fewer sets. Of equal sets the smaller one comes first.
    Equivalent to::

        best = sorted(all_sets, key=lambda labels: -score(Z[d], labels))[:n_best]
        chosen[d] = [np.isin(np.arange(n_labels), labels) for labels in best]
        scores[d] = [score(Z[d], labels) for labels in best]
    """
    n_best, n_labels, n_knots = chosen.shape[1], Z.shape[2], sizes.knots.size
    ranked, sets = listing.ranked, listing.sets
    values, norms = np.empty(n_labels), np.empty(n_labels)
    top, none = np.empty(n_labels, np.int64), np.zeros(n_labels, np.bool_)
    counts = np.zeros(2, np.int64)  # sets in ``ranked`` now, and all that were ever added
    for d in range(Z.shape[0]):
        counts[0] = counts[1] = 0
        if sizes.has_empty:
            push(ranked, np.int64(0), 0.0, np.int64(0), np.int64(0))
            counts[0] = counts[1] = 1
            for j in range(n_labels):
                sets[0, j] = False
        _column_norms(Z[d], norms)
        below, spread, first = 0.0, np.float64(_sum_above(norms, 0.0)), np.int64(1)
        for k in range(n_knots):
            last = sizes.knots[k]
            size_scores(Z[d], sizes.vectors, last, values)
            here = np.float64(_sum_above(values, 0.0))
            limit = max(here, below) + sizes.slack[k] * spread
            below = here
            for size in range(first, last + 1):
                if counts[0] == n_best and not _may_exceed(limit, ranked.key[0]):
                    break
                if first < last:
                    size_scores(Z[d], sizes.vectors, size, values)
                    here = np.float64(_sum_above(values, 0.0))
                if counts[0] < n_best or _may_exceed(here, ranked.key[0]):
                    n_held = highest(values, none, min(size + n_best, n_labels), top)
                    _list_size(values, top, n_held, size, listing, counts)
            first = last + 1
        for k in range(counts[0], n_best):
            scores[d, k] = -np.inf
        for k in range(counts[0] - 1, -1, -1):
            scores[d, k] = ranked.key[0]
            for j in range(n_labels):
                chosen[d, k, j] = sets[ranked.item[0], j]
            pop(ranked, k + 1)


@helper
def _list_size(values, top, n_held, size, listing, counts):
    """List the sets of one size, best first, as long as they are among the best of all sizes.

    A set has the labels ``top[k + shift[k]]`` for k < size, with ascending shifts. The best one has
    no shift. A set leads to two others: that with its first positive shift one larger, and that
    with the shift before it one larger. So each set is reached once, and after all better ones.
    """
    waiting, shifts, ranked, sets = listing.waiting, listing.shifts, listing.ranked, listing.sets
    n_best, free, zero = sets.shape[0], n_held - size, np.int64(0)
    best = 0.0
    for k in range(size):
        best += values[top[k]]
        shifts[0, k] = 0
    push(waiting, zero, -best, zero, zero)
    n_waiting = n_shifts = np.int64(1)
    for _ in range(n_best):  # no more sets of a size can be among the best
        if n_waiting == 0 or (counts[0] == n_best and not -waiting.key[0] > ranked.key[0]):
            break
        score, current = -waiting.key[0], waiting.item[0]
        pop(waiting, n_waiting)
        n_waiting -= 1
        place = counts[0]
        if place == n_best:  # the worst set makes way
            place = ranked.item[0]
            pop(ranked, n_best)
            counts[0] -= 1
        push(ranked, counts[0], score, -counts[1], place)
        counts[0], counts[1] = counts[0] + 1, counts[1] + 1
        for j in range(sets.shape[1]):
            sets[place, j] = False
        for k in range(size):
            sets[place, top[k + shifts[current, k]]] = True
        shifted = 0
        while shifted < size and shifts[current, shifted] == 0:
            shifted += 1
        for k in (shifted, shifted - 1):
            if k < 0 or k == size:
                continue
            if shifts[current, k] < (free if k == size - 1 else shifts[current, k + 1]):
                here = k + shifts[current, k]
                following = score - values[top[here]] + values[top[here + 1]]
                for i in range(size):
                    shifts[n_shifts, i] = shifts[current, i]
                shifts[n_shifts, k] += 1
                push(waiting, n_waiting, -following, n_shifts, n_shifts)
                n_waiting, n_shifts = n_waiting + 1, n_shifts + 1
