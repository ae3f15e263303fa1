"""Decisions: from which score on the labels of each document are accepted.

A rule gives each document a cut for each value of one of its parameters (a ratio, a number of
labels): ``cut[d, r]``, in the precision of the scores, along which label sets shrink. A label is
accepted if its score is above the cut, and at the very cut if it is one of the first
``ties[d, r]`` there. Infinite scores enter no statistic; those of ``-inf`` are never accepted, and
nothing is near a best score of ``inf``. NaN is found by what reads the cuts.

Statistics are of distances from the best score, so that equal scores are at a distance of zero,
however sums are rounded. Loops over indices, not over values, are those that compilers turn into
vector instructions.
"""

import numpy as np

from polytopic.kernels import compiled

ALL = 2**31 - 1  # ties that are accepted, where all are
FEW = 2  # scores too many that are taken out one by one
HALVINGS = 24
IN_VAIN = 10  # of them in a row


@compiled
def top_cuts(scores, ks, reject, cut, ties):
    """Cut after the ``ks`` best labels, falling; of equal scores, the first are taken.

    With ``reject``, a document whose best score is not above zero has no label.
    """
    room = np.empty(scores.shape[1], scores.dtype)
    for d in range(scores.shape[0]):
        n, least, best = _extent(scores[d])
        if best < np.inf and _is_settled(best, reject and not best > 0, d, cut, ties):
            continue
        for r in range(ks.size):
            k = min(ks[r], n)
            cut[d, r], ties[d, r] = best, 1
            if best == np.inf:
                room[:] = scores[d]
                room.sort()
                cut[d, r] = room[-k]
                ties[d, r] = k - room.size + np.searchsorted(room, room[-k], side="right")
            elif k > 1:
                top = _top(scores[d], k, n, least, best, room)
                cut[d, r], ties[d, r] = top[1:]


@compiled
def threshold_cuts(scores, values, reject, cut, ties):
    """Cut at values; a document whose labels are all below has its best, or none."""
    for d in range(scores.shape[0]):
        best = _best(scores[d])
        if best < np.inf and _is_settled(best, False, d, cut, ties):
            continue
        for r in range(values.size):
            _cut_at(best, values[r], reject, d, r, cut, ties)


@compiled
def deviation_cuts(scores, reject, cut, ties):
    """Cut at the mean plus one standard deviation: ``scores.mean() + scores.std()``.

    The best score is at most ``sqrt(n)`` deviations from the mean, so that little is lost where
    squared distances from it are subtracted. Where all scores are equal, none stands out.
    """
    for d in range(scores.shape[0]):
        best = _best(scores[d])
        finite = best if best < np.inf else _best_finite(scores[d])
        if not finite > -np.inf and _is_settled(best, False, d, cut, ties):
            continue
        gap, square = _distances(scores[d], finite)
        deviation = np.sqrt(max(square - gap * gap, 0.0))
        deviation *= 1.0 - 1e-9  # a score at the very cut is in, however sums are rounded
        value = finite - (gap - deviation) if gap > 0 else np.inf
        _cut_at(best, value, reject, d, 0, cut, ties)


@compiled
def ratio_cuts(scores, reference, ratios, reject, cut, ties):
    """Cut where the score above the reference is as near to the best as a ratio says.

    Accepted is, with ``z = scores[d] - reference[d]`` (Skorkovská et al., Eqs. (4), (5))::

        z >= z.max() - (1 - ratio) * abs(z.max())

    With ``reject``, a document whose best ``z`` is not above zero has no label.
    """
    for d in range(scores.shape[0]):
        best = _best(scores[d])
        z = best - reference[d]
        if _is_settled(best, reject and not z > 0, d, cut, ties):
            continue
        for r in range(ratios.size):
            _put(best, reference[d] + (z - (1.0 - ratios[r]) * abs(z)), d, r, cut, ties)


@compiled
def cohort_cuts(scores, size, ratios, reject, cut, ties):
    """Cut as :func:`ratio_cuts`, where ``z`` is a score less the mean of the ``size`` best others.

    (Skorkovská et al., Eq. (6).) Let ``k = size + 1``, ``total`` be the sum of the distances of
    the ``k`` best scores from the best, and ``far`` the last of them. A score at a distance ``e``
    has ``z = (total - k * e) / size``, or ``(total - far) / size - e`` if ``e > far``.
    """
    room = np.empty(scores.shape[1], scores.dtype)
    for d in range(scores.shape[0]):
        n, least, best = _extent(scores[d])
        if _is_settled(best, False, d, cut, ties):
            continue
        k = min(size + 1, n)
        total, last, _ = _top(scores[d], k, n, least, best, room)
        if _is_settled(best, reject and not total > 0, d, cut, ties):
            continue
        far = np.float64(best) - last
        for r in range(ratios.size):
            slack = (1.0 - ratios[r]) * total
            distance = slack / k
            if distance > far:
                distance = max(far, (slack - far) / (k - 1))
            _put(best, best - distance, d, r, cut, ties)


@compiled
def tnorm_cuts(scores, ratios, reject, cut, ties):
    """Cut as :func:`ratio_cuts`, where ``z = (scores - scores.mean()) / scores.std()``.

    (Skorkovská et al., Eq. (7).) The best ``z`` is not below zero, so the deviation cancels.
    Where all scores are equal, all are the best.
    """
    for d in range(scores.shape[0]):
        best = _best(scores[d])
        if _is_settled(best, False, d, cut, ties):
            continue
        gap, _ = _distances(scores[d], best)
        if _is_settled(best, reject and not gap > 0, d, cut, ties):
            continue
        for r in range(ratios.size):
            _put(best, best - (1.0 - ratios[r]) * gap, d, r, cut, ties)


@compiled
def sibling_scores(scores, group, members, out):
    """Set ``out`` to each score less the mean of the others of its group (Eq. (6)).

    Group ``g`` has ``members[g]`` labels. A label that is alone in its group is compared with all
    others; where there is none, with itself. Infinite scores stay as they are.
    """
    totals, more = np.empty(members.size), np.empty(members.size)
    all_shares = _shares(members, group.size)
    for d in range(scores.shape[0]):
        row, z = scores[d], out[d]
        best = np.float64(_best(row))
        if not abs(best) < np.inf:
            z[:] = row
            continue
        totals[:] = 0.0
        more[:] = 0.0  # a second sum, added at the same time
        for j in range(0, row.size - 1, 2):
            totals[group[j]] += best - row[j]
            more[group[j + 1]] += best - row[j + 1]
        if row.size % 2:
            totals[group[-1]] += best - row[-1]
        totals += more
        known, shares, total = members, all_shares, totals.sum()
        if not total < np.inf:
            known = _finite_totals(row, group, best, totals)
            shares, total = _shares(known, known.sum()), totals.sum()
        for g in range(members.size):
            totals[g] = shares[g] * (totals[g] if known[g] > 1 else total)
        for j in range(row.size):
            g = group[j]
            z[j] = totals[g] - (best - row[j]) * (1.0 + shares[g])


@compiled
def accept(scores, cut, ties, indices, ends):
    """Write the accepted labels of each document, at the first of its cuts, into ``indices``.

    Those of document ``d`` end at ``ends[d]``. Returns whether no score is NaN.
    """
    n = 0
    for d in range(scores.shape[0]):
        row, start, lowest, left = scores[d], n, cut[d, 0], ties[d, 0]
        for j in range(row.size):  # a label that is not accepted is overwritten: no branch
            indices[n] = j
            n += not row[j] < lowest
        equal, unknown = 0, 0
        for k in range(start, n):
            equal += row[indices[k]] == lowest
            unknown += row[indices[k]] != row[indices[k]]
        if unknown:
            return False
        if equal > left:
            n = _without_ties(row, lowest, left, indices, start, n)
        ends[d] = n
    return True


@compiled
def _without_ties(row, lowest, left, indices, start, stop):
    """Leave out labels at the very cut, but for the first; return where the others end."""
    n = start
    for k in range(start, stop):
        label = indices[k]
        if row[label] > lowest or left > 0:
            indices[n] = label
            n += 1
        left -= row[label] == lowest
    return n


@compiled
def count_accepted(scores, cut, ties, Y_indices, Y_indptr, taken, right):
    """Count the accepted labels of each document at each cut, and those of them that are true.

    Uses up ``ties``. Returns whether no score is NaN.
    """
    true = np.zeros(scores.shape[1], np.bool_)
    taken[:] = 0
    right[:] = 0
    for d in range(scores.shape[0]):
        row, own = scores[d], Y_indices[Y_indptr[d] : Y_indptr[d + 1]]
        true[own] = True
        for j in range(row.size):
            if not row[j] < cut[d, 0]:
                passed = _cuts_passed(row[j], cut[d], ties[d])
                if passed:
                    taken[d, passed - 1] += 1
                    right[d, passed - 1] += true[j]
                elif row[j] != row[j]:
                    return False
        true[own] = False
        for r in range(cut.shape[1] - 1, 0, -1):
            taken[d, r - 1] += taken[d, r]
            right[d, r - 1] += right[d, r]
    return True


@compiled
def _cuts_passed(score, cut, ties):
    """Return at how many cuts a score is accepted."""
    r = 0
    while r < cut.size and (score > cut[r] or (score == cut[r] and ties[r] > 0)):
        ties[r] -= score == cut[r]
        r += 1
    return r


@compiled
def _best(row):
    """Return the highest score, ``-inf`` if there is none."""
    best = row.dtype.type(-np.inf)
    for j in range(row.size):
        best = row[j] if row[j] > best else best
    return best


@compiled
def _best_finite(row):
    """Return the highest finite score, ``-inf`` if there is none."""
    best = row.dtype.type(-np.inf)
    for j in range(row.size):
        best = row[j] if best < row[j] < np.inf else best
    return best


@compiled
def _extent(row):
    """Return how many scores there are but for ``-inf``, the lowest of them, and the highest."""
    least, best = row.dtype.type(np.inf), row.dtype.type(-np.inf)
    for j in range(row.size):
        least = row[j] if row[j] < least else least
        best = row[j] if row[j] > best else best
    n = row.size
    if least == -np.inf:
        lowest = np.nextafter(least, best)
        n, least = _count(row, lowest), _lowest(row, lowest)[0]
    return n, least, best


@compiled
def _distances(row, best):
    """Return the mean of ``best - row``, and that of its square; of finite scores."""
    n, best = row.size, np.float64(best)
    total, square = 0.0, 0.0
    more, more_square = 0.0, 0.0  # second sums, added at the same time
    for j in range(0, n - 1, 2):
        total += best - row[j]
        square += (best - row[j]) ** 2
        more += best - row[j + 1]
        more_square += (best - row[j + 1]) ** 2
    if n % 2:
        total += best - row[-1]
        square += (best - row[-1]) ** 2
    total, square = total + more, square + more_square
    if not abs(total) < np.inf:
        n, total, square = 0, 0.0, 0.0
        for j in range(row.size):
            if abs(row[j]) < np.inf:
                n += 1
                total += best - row[j]
                square += (best - row[j]) ** 2
    return total / n, square / n


@compiled
def _top(row, k, n, least, best, room):
    """Return how far the ``k`` best scores are from the best in all, the last, and its ties.

    There are ``n`` finite scores, from ``least`` to ``best``. Those from ``low`` on hold the
    ``k`` best; ``low`` is raised half way to the best, or to what has turned out too high.
    """
    low, high, vain = least, best, 0
    for _ in range(HALVINGS):
        middle = row.dtype.type(0.5 * low + 0.5 * high)
        if n <= k + FEW or vain == IN_VAIN or not low < middle < high:
            break
        n_middle = _count(row, middle)
        if n_middle >= k:
            low, n, vain = middle, n_middle, 0
        else:
            high, vain = middle, vain + 1
    held = 0
    for j in range(row.size):
        room[held] = row[j]
        held += row[j] >= low
    last, equal = _lowest(room[:held], low)
    if held - equal > k + FEW:  # halving has not told them apart: most lie far below the best
        last = _select(room[:held], held - k)
        total, above = 0.0, 0
        for j in range(held - k, held):
            total += np.float64(best) - room[j]
            above += room[j] > last
        return total, last, k - above
    while held - equal >= k:
        held -= equal
        last, equal = _lowest(room[:n], np.nextafter(last, best))
    total = 0.0
    for j in range(n):
        total += np.float64(best) - max(room[j], last)
    total -= (n - k) * (np.float64(best) - last)
    return total, last, k - held + equal


@compiled
def _select(values, place):
    """Put the value that sorting would put there into a place, and higher ones after it."""
    start, stop = 0, values.size - 1
    while start < stop:
        pivot = values[(start + stop) // 2]
        i, j = start, stop
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if place <= j:
            stop = j
        elif place >= i:
            start = i
        else:
            break
    return values[place]


@compiled
def _count(values, low):
    """Return how many values are not below ``low``."""
    n = 0
    for j in range(values.size):
        if values[j] >= low:
            n += 1
    return n


@compiled
def _lowest(values, low):
    """Return the lowest value from ``low`` on, and how many values equal it."""
    lowest = values.dtype.type(np.inf)
    for j in range(values.size):
        lowest = values[j] if low <= values[j] < lowest else lowest
    n = 0
    for j in range(values.size):
        if values[j] == lowest:
            n += 1
    return lowest, n


@compiled
def _finite_totals(row, group, best, totals):
    """Set ``totals`` to the distances of each group's finite scores; return how many these are."""
    known = np.zeros(totals.size, np.int64)
    totals[:] = 0.0
    for j in range(row.size):
        if row[j] > -np.inf:
            totals[group[j]] += best - row[j]
            known[group[j]] += 1
    return known


@compiled
def _shares(members, n):
    """Return the weight of each of the others that a label of each group is compared with."""
    shares = np.zeros(members.size)
    for g in range(members.size):
        others = members[g] - 1 if members[g] > 1 else n - 1
        if others > 0:
            shares[g] = 1.0 / others
    return shares


@compiled
def _is_settled(best, rejected, d, cut, ties):
    """Cut where a document has no score or is rejected, or where labels score ``inf``."""
    if -np.inf < best < np.inf and not rejected:
        return False
    cut[d] = np.inf
    ties[d] = ALL if best == np.inf else 0
    return True


@compiled
def _cut_at(best, value, reject, d, r, cut, ties):
    """Cut at a value, or where all is below it at the first best label, or above all."""
    if best >= value:
        _put(best, value, d, r, cut, ties)
    else:
        cut[d, r] = np.inf if reject else best
        ties[d, r] = 0 if reject else 1


@compiled
def _put(best, value, d, r, cut, ties):
    """Cut at a value, rounded up to the precision of scores, but not above the best."""
    cut[d, r] = min(np.float64(best), value)
    if cut[d, r] < value or cut[d, r] == -np.inf:
        cut[d, r] = min(best, np.nextafter(cut[d, r], best))
    ties[d, r] = ALL
