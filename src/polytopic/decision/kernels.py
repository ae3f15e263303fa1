r"""Where each document's accepted labels begin: cuts through its scores.

A rule gives each document one cut for each value of its swept parameter (a ratio, a number of
labels), along which label sets shrink. A label is accepted if its score is above the cut; of the
labels exactly at the cut, the first ``ties`` are accepted.

================  =================================================================================
``scores[d, j]``  score of label j for document d, :math:`s_l` in Skorkovská et al.; -inf is never
                  accepted, infinite scores enter no statistic, nothing is near a best score of inf
``reference[d]``  score of document d under the general model, :math:`\log p(A \mid G)`
``ratios[r]``     how near to the best a label must be, :math:`k`
``z``             normalized score, :math:`z_l`
``cut[d, r]``     lowest score that is accepted, in the precision of the scores
``ties[d, r]``    how many labels exactly at the cut are accepted
``best``          highest score of a document; distances are measured downwards from it
``ranked[i, d]``  score at place i of document d, in descending order
``gap``           mean distance of the scores from the best
================  =================================================================================

Statistics are computed from distances to the best score, so that equal scores have a distance of
exactly zero, however sums are rounded. NaN is detected by the kernels that read the cuts. Loops run
over indices, not over values, so that compilers vectorize them.
"""

import numpy as np

from polytopic.kernels import compiled, helper

ALL = 2**31 - 1  # value of ``ties`` that accepts all of them
FEW = 2  # surplus scores that are removed one by one
MAX_HALVINGS = 24
MAX_FAILED = 10  # halvings in a row that went too far
SORTED_LABELS = 256  # at most, for which sorting all scores is faster than counting them
ABREAST = 72  # documents that are sorted at the same time
MARKED_PLACES = 64  # at most, whose labels are found one place after the other
BUCKETS = 64  # of equal width, from a document's lowest score to its best
CROWDED = 32  # scores in a bucket that are too many to be inserted one by one
SLACK = 0.01  # of a bucket, more than the rounding of a score's place


@compiled
def top_cuts(scores, ks, reject, cut, ties):
    """Cut after the ``ks[r]`` best labels; ``ks`` descends; of equal scores, the first are taken.

    Equivalent to ``cut[d, r] = np.sort(scores[d])[-ks[r]]``. With ``reject``, a document whose best
    score is not above zero gets no label.
    """
    scratch = np.empty(scores.shape[1], scores.dtype)
    for d in range(scores.shape[0]):
        n, least, best = _extent(scores[d])
        if best < np.inf and _cut_special_case(best, reject and not best > 0, d, cut, ties):
            continue
        for r in range(ks.size):
            k = min(ks[r], n)
            cut[d, r], ties[d, r] = best, 1
            if best == np.inf:
                scratch[:] = scores[d]
                scratch.sort()
                cut[d, r] = scratch[-k]
                ties[d, r] = k - scratch.size + np.searchsorted(scratch, scratch[-k], side="right")
            elif k > 1:
                top = _top(scores[d], k, n, least, best, scratch)
                cut[d, r], ties[d, r] = top[1:]


@compiled
def threshold_cuts(scores, values, reject, cut, ties):
    """Cut at ``values``; a document without a label above gets its best or, with ``reject``, none.

    Equivalent to ``cut[d, r] = values[r]`` where ``scores[d].max() >= values[r]``.
    """
    for d in range(scores.shape[0]):
        best = _best(scores[d])
        if best < np.inf and _cut_special_case(best, False, d, cut, ties):
            continue
        for r in range(values.size):
            _cut_at(best, values[r], reject, d, r, cut, ties)


@compiled
def deviation_cuts(scores, reject, cut, ties):
    """Cut at the mean plus one standard deviation.

    Equivalent to ``cut[d, 0] = scores[d].mean() + scores[d].std()``. The best score is at most
    ``sqrt(n)`` deviations from the mean, so little precision is lost when squared distances from it
    are subtracted. Where all scores are equal, none stands out.
    """
    for d in range(scores.shape[0]):
        best = _best(scores[d])
        finite = best if best < np.inf else _best_finite(scores[d])
        if not finite > -np.inf and _cut_special_case(best, False, d, cut, ties):
            continue
        gap, square = _distances(scores[d], finite)
        deviation = np.sqrt(max(square - gap * gap, 0.0))
        deviation *= 1.0 - 1e-9  # a score exactly at the cut is accepted, however sums are rounded
        value = finite - (gap - deviation) if gap > 0 else np.inf
        _cut_at(best, value, reject, d, 0, cut, ties)


@compiled
def ratio_cuts(scores, reference, ratios, reject, cut, ties):
    """Cut where the score above the reference is near enough to the best.

    With ``z = scores[d] - reference[d]`` (Skorkovská et al., Eqs. (4), (5)), equivalent to::

        cut[d, r] = reference[d] + z.max() - (1 - ratios[r]) * abs(z.max())

    With ``reject``, a document whose best ``z`` is not above zero gets no label.
    """
    for d in range(scores.shape[0]):
        best = _best(scores[d])
        z = best - reference[d]
        if _cut_special_case(best, reject and not z > 0, d, cut, ties):
            continue
        for r in range(ratios.size):
            _set_cut(best, reference[d] + (z - (1.0 - ratios[r]) * abs(z)), d, r, cut, ties)


@compiled
def cohort_cuts(scores, size, ratios, reject, cut, ties):
    """Cut as :func:`ratio_cuts` does, with ``z`` relative to the ``size`` best other labels.

    Equivalent, with the other scores of each label sorted in descending order, to
    ``z[j] = scores[d, j] - others[:size].mean()`` (Skorkovská et al., Eq. (6)). Let
    ``k = size + 1``, ``total`` be the summed distance of the ``k`` best scores from the best, and
    ``far`` the distance of the last of them. A score at a distance ``e`` has
    ``z = (total - k * e) / size``, or ``(total - far) / size - e`` if ``e > far``.
    """
    scratch = np.empty(scores.shape[1], scores.dtype)
    for d in range(scores.shape[0]):
        n, least, best = _extent(scores[d])
        if _cut_special_case(best, False, d, cut, ties):
            continue
        k = min(size + 1, n)
        total, last, _ = _top(scores[d], k, n, least, best, scratch)
        if _cut_special_case(best, reject and not total > 0, d, cut, ties):
            continue
        far = np.float64(best) - last
        for r in range(ratios.size):
            slack = (1.0 - ratios[r]) * total
            distance = slack / k
            if distance > far:
                distance = max(far, (slack - far) / (k - 1))
            _set_cut(best, best - distance, d, r, cut, ties)


@compiled
def tnorm_cuts(scores, ratios, reject, cut, ties):
    """Cut as :func:`ratio_cuts` does, with ``z = (scores - scores.mean()) / scores.std()``.

    (Skorkovská et al., Eq. (7).) The best ``z`` is not below zero, so the deviation cancels. Where
    all scores are equal, all are accepted.
    """
    for d in range(scores.shape[0]):
        best = _best(scores[d])
        if _cut_special_case(best, False, d, cut, ties):
            continue
        gap, _ = _distances(scores[d], best)
        if _cut_special_case(best, reject and not gap > 0, d, cut, ties):
            continue
        for r in range(ratios.size):
            _set_cut(best, best - (1.0 - ratios[r]) * gap, d, r, cut, ties)


@compiled
def next_cuts(scores, bits, size, ratios, reject, out, cut, ties):
    """Set ``out`` to each score less the mean of the ``size`` next ones; cut near the best label's.

    Equivalent, with the finite scores below that of label ``j`` sorted in descending order, to
    ``out[d, j] = scores[d, j] - lower[:size].mean()`` (Skorkovská et al., Eq. (6)), 0 where nothing
    is lower, and ``cut[d, r] = ratios[r] * out[d, scores[d].argmax()]``. ``out`` may be -inf for a
    label below the lowest cut. Infinite scores stay as they are. ``bits`` are the scores read as
    integers. Equal scores have exactly equal means.
    """
    if scores.shape[1] <= SORTED_LABELS:
        _next_by_sorting(scores, size, ratios, reject, out, cut, ties)
    else:
        _next_by_counting(scores, bits, size, ratios, reject, out, cut, ties)


@compiled
def sibling_scores(scores, group, members, out):
    """Set ``out`` to each score less the mean of the others in its group.

    Equivalent, for the labels ``others`` that share the group of label ``j``, to
    ``out[d, j] = scores[d, j] - scores[d, others].mean()`` (Skorkovská et al., Eq. (6)). Group
    ``g`` has ``members[g]`` labels. A label that is alone in its group is compared with all others;
    a single label has 0. Infinite scores stay as they are.
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
        more[:] = 0.0  # a second sum that the processor can add at the same time
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
    """Write the labels that each document's first cut accepts into ``indices``.

    Without ties, equivalent to ``np.flatnonzero(scores[d] >= cut[d, 0])``; those of document ``d``
    end at ``ends[d]``. Return whether no score is NaN.
    """
    n = 0
    for d in range(scores.shape[0]):
        row, start, lowest, left = scores[d], n, cut[d, 0], ties[d, 0]
        for j in range(row.size):  # branch-free: a label that is not accepted is overwritten
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


@helper
def _without_ties(row, lowest, left, indices, start, stop):
    """Remove all labels exactly at the cut but the first ones; return where the rest ends."""
    n = start
    for k in range(start, stop):
        label = indices[k]
        if row[label] > lowest or left > 0:
            indices[n] = label
            n += 1
        left -= row[label] == lowest
    return n


@compiled
def count_accepted(scores, cut, ties, Y_indices, Y_indptr, accepted, right):
    """Count the labels that each cut accepts, and those of them that are true.

    Without ties, equivalent to ``accepted[d, r] = (scores[d] >= cut[d, r]).sum()``. Overwrites
    ``ties``. Return whether no score is NaN.
    """
    true = np.zeros(scores.shape[1], np.bool_)
    accepted[:] = 0
    right[:] = 0
    for d in range(scores.shape[0]):
        row, own = scores[d], Y_indices[Y_indptr[d] : Y_indptr[d + 1]]
        true[own] = True
        for j in range(row.size):
            if not row[j] < cut[d, 0]:
                passed = _cuts_passed(row[j], cut[d], ties[d])
                if passed:
                    accepted[d, passed - 1] += 1
                    right[d, passed - 1] += true[j]
                elif row[j] != row[j]:
                    return False
        true[own] = False
        for r in range(cut.shape[1] - 1, 0, -1):
            accepted[d, r - 1] += accepted[d, r]
            right[d, r - 1] += right[d, r]
    return True


@helper
def _cuts_passed(score, cut, ties):
    """Return how many cuts accept a score."""
    r = 0
    while r < cut.size and (score > cut[r] or (score == cut[r] and ties[r] > 0)):
        ties[r] -= score == cut[r]
        r += 1
    return r


@helper
def _next_by_sorting(scores, size, ratios, reject, out, cut, ties):
    """Do what :func:`next_cuts` does, for several documents at a time.

    The processor compares their scores together. Row ``i`` of ``ranked`` has the score at place
    ``i`` of each of them, and row ``i`` of ``z`` its normalized score.
    """
    n_docs, n_labels = scores.shape
    width = min(n_docs, ABREAST)
    ranked, z = np.empty((n_labels, width), scores.dtype), np.empty((n_labels, width))
    totals, n_finite, running = np.empty((n_labels + 1, width)), np.empty(width), np.empty(width)
    limit, n_marked = np.empty(width), np.empty(width, np.int64)
    marked = np.empty((width, MARKED_PLACES), np.int64)
    ranked[:] = -np.inf
    for start in range(0, n_docs, width):
        n = min(width, n_docs - start)
        for d in range(n):
            for j in range(n_labels):
                ranked[j, d] = scores[start + d, j]
        _sort_columns(ranked)
        _add_distances(ranked, totals, n_finite, running)
        _subtract_next(ranked, size, totals, n_finite, running, z)
        limit[:] = np.nan  # nothing reaches it
        n_marked[:] = -1  # of a document that is cut already
        for d in range(n):
            top, doc = z[0, d], start + d
            if _cut_special_case(ranked[0, d], reject and not top > 0, doc, cut, ties):
                out[doc] = scores[doc]
                continue
            for r in range(ratios.size):
                _set_cut(top, top - (1.0 - ratios[r]) * top, doc, r, cut, ties)
            limit[d], n_marked[d] = cut[doc, 0], 0
        for i in range(1, n_labels):
            n_accepted = 0
            for d in range(width):
                n_accepted += z[i, d] >= limit[d]
            if n_accepted == 0:
                continue
            for d in range(n):
                if z[i, d] >= limit[d] and ranked[i, d] < ranked[i - 1, d]:
                    marked[d, min(n_marked[d], MARKED_PLACES - 1)] = i
                    n_marked[d] += 1
        for d in range(n):
            if n_marked[d] < 0:
                continue
            doc, best, top = start + d, ranked[0, d], z[0, d]
            for j in range(n_labels):
                rest = -np.inf if scores[doc, j] == scores[doc, j] else np.nan
                out[doc, j] = top if scores[doc, j] == best else rest
            if n_marked[d] > MARKED_PLACES:
                _set_all(ranked, z, d, scores[doc], out[doc])
                continue
            for k in range(n_marked[d]):
                score, value = ranked[marked[d, k], d], z[marked[d, k], d]
                for j in range(n_labels):
                    out[doc, j] = value if scores[doc, j] == score else out[doc, j]


@helper
def _sort_columns(values):
    """Sort each column in descending order, by merge exchange (Knuth, section 5.2.2, Algorithm M).

    Which rows are compared does not depend on the values, so all columns are sorted together,
    without a branch.
    """
    n, width = values.shape
    half = 1
    while 2 * half < n:
        half *= 2
    step = half
    while step > 0:
        first, distance, last = 0, step, half
        while distance > 0:
            for begin in range(first, n - distance, 2 * step):
                for i in range(begin, min(begin + step, n - distance)):
                    for d in range(width):
                        a, b = values[i, d], values[i + distance, d]
                        values[i, d] = a if a > b else b
                        values[i + distance, d] = a if a < b else b
            first, distance = step, last - step
            last //= 2
        step //= 2


@helper
def _add_distances(ranked, totals, n_finite, running):
    """Set ``totals[i]`` to the summed distance of the first ``i`` finite scores from the best.

    ``n_finite`` is set to the number of finite scores. ``running`` is the row of sums that was set
    last: a loop that read that row itself would not be vectorized.
    """
    n, width = ranked.shape
    totals[0] = 0.0
    n_finite[:] = 0.0
    running[:] = 0.0
    for i in range(n):
        for d in range(width):
            gap = np.float64(ranked[0, d]) - np.float64(ranked[i, d])
            finite = ranked[i, d] > -np.inf
            running[d] += gap if finite else 0.0
            n_finite[d] += 1.0 if finite else 0.0
            totals[i + 1, d] = running[d]


@helper
def _subtract_next(ranked, size, totals, n_finite, running, z):
    """Set ``z`` to each score less the mean of the next lower ones in its column, 0 without any.

    It is -inf where the score is. Scores descend. ``running`` is the row of ``z`` set last.
    """
    n, width = ranked.shape
    for d in range(width):
        running[d] = 0.0 if n_finite[d] == n else -np.inf
    z[n - 1] = running
    for i in range(n - 2, -1, -1):
        stop = min(i + 1 + size, n)
        for d in range(width):
            count = min(np.float64(stop), n_finite[d]) - (i + 1)
            gap = np.float64(ranked[0, d]) - ranked[i, d]
            mean = (totals[stop, d] - totals[i + 1, d] - count * gap) / max(count, 1.0)
            mean = mean if count > 0.0 and mean > 0.0 else 0.0
            mean = mean if count >= 0.0 else -np.inf
            running[d] = running[d] if ranked[i, d] == ranked[i + 1, d] else mean
            z[i, d] = running[d]


@helper
def _set_all(ranked, z, d, row, out):
    """Set ``out`` to ``z`` of each score of a row, whose places are those of column ``d``."""
    for j in range(row.size):
        place, n = 0, ranked.shape[0]
        while n > 1:  # branch-free: the comparison is unpredictable
            half = n // 2
            place += half * (ranked[place + half - 1, d] > row[j])
            n -= half
        out[j] = z[place, d] if row[j] == ranked[place, d] else out[j]


@helper
def _next_by_counting(scores, bits, size, ratios, reject, out, cut, ties):
    """Do what :func:`next_cuts` does, one document at a time.

    Scores are counted in buckets of equal width. The counts exclude most labels, and a mean needs
    the order of scores in two buckets only, its first and its last. Its sum is taken in the same
    order whichever labels are excluded.
    """
    n_labels, n_buckets = scores.shape[1], BUCKETS + 2
    column, place = np.empty(n_labels, np.int64), np.empty(n_labels, np.uint8)
    ranked, sums = np.empty(n_labels, scores.dtype), np.empty(n_buckets)
    counts, ends = np.empty(n_buckets, np.int32), np.empty(n_buckets, np.int32)
    most, part = np.empty(n_buckets), np.empty(n_buckets, np.uint8)
    in_order, extent = np.empty(n_buckets, np.bool_), np.empty(2, scores.dtype)
    extent_bits = extent.view(bits.dtype)
    for d in range(scores.shape[0]):
        row, z = scores[d], out[d]
        _find_range(bits[d], extent_bits)
        least, best = extent[0], extent[1]
        if least == -np.inf:
            least = _extent(row)[1]
        if _cut_special_case(best, least != least or best != best, d, cut, ties):
            z[:] = row
            continue
        scale = _put_into_buckets(row, least, best, place, counts)
        _find_contenders(counts, size, ratios[0], most, part, ends)
        n = 0
        for j in range(n_labels):  # branch-free
            column[n] = j
            n += part[place[j]] > 0
        sums[:] = 0.0
        for k in range(n):
            j, b = column[k], place[column[k]]
            ranked[ends[b]] = row[j]
            ends[b] += 1
            sums[b] += np.float64(best) - row[j]
        z[:] = -np.inf
        in_order[:] = False
        b = _top_bucket(counts)
        top = _less_next(best, best, b, size, ranked, sums, counts, ends, in_order)
        if _cut_special_case(best, reject and not top > 0, d, cut, ties):
            continue
        for r in range(ratios.size):
            _set_cut(top, top - (1.0 - ratios[r]) * top, d, r, cut, ties)
        limit = cut[d, 0] * scale - SLACK
        for k in range(n):
            j, b = column[k], place[column[k]]
            above = (row[j] - least) * scale - b  # relative to the upper border of the bucket
            if part[b] > 1 and not most[b] + above < limit:
                z[j] = _less_next(row[j], best, b, size, ranked, sums, counts, ends, in_order)


@helper
def _find_range(bits, out):
    """Set ``out`` to the lowest and the highest score; one of them is NaN if any score is.

    Both are numbers read as integers. These have the order of the numbers if all bits of a negative
    one but its sign are inverted; and unlike numbers, several are compared at a time.
    """
    kind = bits.dtype.type
    largest, sign = kind(np.iinfo(kind).max), kind(8 * bits.itemsize - 1)
    low, high = largest, kind(-largest)
    for j in range(bits.size):
        ordered = kind(bits[j] ^ ((bits[j] >> sign) & largest))
        low = ordered if ordered < low else low
        high = ordered if ordered > high else high
    out[0] = low ^ ((low >> sign) & largest)
    out[1] = high ^ ((high >> sign) & largest)


@helper
def _put_into_buckets(row, least, best, place, counts):
    """Set the bucket of each score, from 1 up, 0 for -inf, and count the scores in each.

    A higher score has no lower bucket. Where the range of scores is too small or too large to be
    divided, and where all are equal, there is one bucket. Return the buckets per score, then 0.
    """
    kind = row.dtype.type
    scale = kind(BUCKETS / (np.float64(best) - np.float64(least)))
    top = (best - least) * scale
    if not 0.5 * BUCKETS < top < BUCKETS + 0.5:
        scale = kind(0.0)
        for j in range(row.size):
            place[j] = row[j] > -np.inf
    else:
        low, one = kind(-1.0), kind(1.0)
        for j in range(row.size):
            u = (row[j] - least) * scale
            place[j] = np.uint8((u if u > low else low) + one)
    counts[:] = 0
    for j in range(row.size):
        counts[place[j]] += 1
    return scale


@helper
def _find_contenders(counts, size, ratio, most, part, ends):
    """Set ``part`` to 2 for buckets with contenders, 1 for those that follow them, 0 for others.

    A contender may be ``ratio`` times as good as the best score. In widths of a bucket, ``z`` of a
    score in bucket ``b`` is at most ``most[b] = b + 1 - mean``, where the mean is that of the
    ``size`` highest buckets of lower scores. ``ends[b]`` is set to the number of scores in higher
    buckets of these two kinds.
    """
    part[:] = 0
    b = _top_bucket(counts)
    limit = ratio * (_least_top(counts, b, size) - SLACK) - SLACK
    low, inside, total = b, counts[b], b * counts[b]  # the scores in buckets from low to b
    needed, n = counts.size, 0
    while b > 0 and (b >= limit or b >= needed):
        inside -= counts[b]
        total -= b * counts[b]
        while inside < size and low > 1:
            low -= 1
            inside += counts[low]
            total += low * counts[low]
        if counts[b] > 0:
            n_cohort = min(inside, size)
            above = (b + 1) * n_cohort - total + (inside - n_cohort) * low
            if above >= limit * n_cohort and (n_cohort > 0 or limit <= 1.0):
                part[b] = 2
                most[b] = above / n_cohort if n_cohort > 0 else 1.0
                needed = low
            elif b >= needed:
                part[b] = 1
            ends[b] = n
            n += counts[b] if part[b] > 0 else 0
        b -= 1


@helper
def _top_bucket(counts):
    """Return the highest bucket with a score."""
    b = counts.size - 1
    while counts[b] == 0:
        b -= 1
    return b


@helper
def _least_top(counts, b, size):
    """Return a lower bound of ``z`` of the best score, in bucket ``b``, in widths of a bucket."""
    low, n, total = b, min(counts[b] - 1, size), 0
    while low > 1 and n < size:
        low -= 1
        more = min(counts[low], size - n)
        n += more
        total += more * (b - 1 - low)
    return total / n if n > 0 else 0.0


@helper
def _less_next(score, best, b, size, ranked, sums, counts, ends, in_order):
    """Return a score in bucket ``b`` less the mean of the next ones, 0 without any.

    The scores of a bucket stand before ``ends[b]`` in ``ranked``; ``sums`` are their summed
    distances from the best. Buckets are sorted in descending order when this is first needed.
    """
    _order(ranked, b, counts, ends, in_order)
    low, high = ends[b] - counts[b], ends[b]
    while low < high:  # the first lower score
        middle = (low + high) // 2
        if ranked[middle] < score:
            high = middle
        else:
            low = middle + 1
    best = np.float64(best)
    n, total = min(size, ends[b] - low), 0.0
    for k in range(low, low + n):
        total += best - ranked[k]
    b -= 1
    while b > 0 and n + counts[b] <= size:
        total += sums[b]
        n += counts[b]
        b -= 1
    if b > 0 and n < size:
        _order(ranked, b, counts, ends, in_order)
        low = ends[b] - counts[b]
        for k in range(low, low + size - n):
            total += best - ranked[k]
        n = size
    return max(total - n * (best - score), 0.0) / n if n > 0 else 0.0


@helper
def _order(ranked, b, counts, ends, in_order):
    """Sort the scores of a bucket in descending order."""
    start, stop = ends[b] - counts[b], ends[b]
    if stop - start > CROWDED and not in_order[b]:
        ranked[start:stop] = np.sort(ranked[start:stop])[::-1]
    elif not in_order[b]:
        for k in range(start + 1, stop):
            score, i = ranked[k], k
            while i > start and ranked[i - 1] < score:
                ranked[i] = ranked[i - 1]
                i -= 1
            ranked[i] = score
    in_order[b] = True


@helper
def _best(row):
    """Return the highest score, -inf if there is none."""
    best = row.dtype.type(-np.inf)
    for j in range(row.size):
        best = row[j] if row[j] > best else best
    return best


@helper
def _best_finite(row):
    """Return the highest finite score, -inf if there is none."""
    best = row.dtype.type(-np.inf)
    for j in range(row.size):
        best = row[j] if best < row[j] < np.inf else best
    return best


@helper
def _extent(row):
    """Return the number of scores above -inf, the lowest of them, and the highest."""
    least, best = row.dtype.type(np.inf), row.dtype.type(-np.inf)
    for j in range(row.size):
        least = row[j] if row[j] < least else least
        best = row[j] if row[j] > best else best
    n = row.size
    if least == -np.inf:
        lowest = np.nextafter(least, best)
        n, least = _count(row, lowest), _lowest(row, lowest)[0]
    return n, least, best


@helper
def _distances(row, best):
    """Return the mean of ``best - row`` and the mean of its square, over finite scores."""
    n, best = row.size, np.float64(best)
    total, square = 0.0, 0.0
    more, more_square = 0.0, 0.0  # second sums that the processor can add at the same time
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


@helper
def _top(row, k, n, least, best, scratch):
    """Return the summed distance of the ``k`` best scores from the best, the last one, its ties.

    There are ``n`` finite scores, from ``least`` to ``best``. At least ``k`` of them are not below
    ``low``, which is raised half way to the best, or to a value that proved too high.
    """
    low, high, failed = least, best, 0
    for _ in range(MAX_HALVINGS):
        middle = row.dtype.type(0.5 * low + 0.5 * high)
        if n <= k + FEW or failed == MAX_FAILED or not low < middle < high:
            break
        n_middle = _count(row, middle)
        if n_middle >= k:
            low, n, failed = middle, n_middle, 0
        else:
            high, failed = middle, failed + 1
    held = 0
    for j in range(row.size):
        scratch[held] = row[j]
        held += row[j] >= low
    last, equal = _lowest(scratch[:held], low)
    if held - equal > k + FEW:  # halving did not separate them: most lie far below the best
        last = _select(scratch[:held], held - k)
        total, above = 0.0, 0
        for j in range(held - k, held):
            total += np.float64(best) - scratch[j]
            above += scratch[j] > last
        return total, last, k - above
    while held - equal >= k:
        held -= equal
        last, equal = _lowest(scratch[:n], np.nextafter(last, best))
    total = 0.0
    for j in range(n):
        total += np.float64(best) - max(scratch[j], last)
    total -= (n - k) * (np.float64(best) - last)
    return total, last, k - held + equal


@helper
def _select(values, place):
    """Move the value that belongs at ``place`` in sorted order there, higher ones after it."""
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


@helper
def _count(values, low):
    """Return the number of values that are not below ``low``."""
    n = 0
    for j in range(values.size):
        if values[j] >= low:
            n += 1
    return n


@helper
def _lowest(values, low):
    """Return the lowest value that is not below ``low``, and how many values equal it."""
    lowest = values.dtype.type(np.inf)
    for j in range(values.size):
        lowest = values[j] if low <= values[j] < lowest else lowest
    n = 0
    for j in range(values.size):
        if values[j] == lowest:
            n += 1
    return lowest, n


@helper
def _finite_totals(row, group, best, totals):
    """Set ``totals`` to the summed distance of each group's finite scores; return their number."""
    known = np.zeros(totals.size, np.int64)
    totals[:] = 0.0
    for j in range(row.size):
        if row[j] > -np.inf:
            totals[group[j]] += best - row[j]
            known[group[j]] += 1
    return known


@helper
def _shares(members, n):
    """Return, for each group, the weight of each label that its labels are compared with."""
    shares = np.zeros(members.size)
    for g in range(members.size):
        others = members[g] - 1 if members[g] > 1 else n - 1
        if others > 0:
            shares[g] = 1.0 / others
    return shares


@helper
def _cut_special_case(best, rejected, d, cut, ties):
    """Cut a document without a score, a rejected one, or one whose best score is inf.

    Return whether the document is one of these; otherwise, nothing is set.
    """
    if -np.inf < best < np.inf and not rejected:
        return False
    cut[d] = np.inf
    ties[d] = ALL if best == np.inf else 0
    return True


@helper
def _cut_at(best, value, reject, d, r, cut, ties):
    """Cut at a value or, if no score reaches it, at the first best label or above all."""
    if best >= value:
        _set_cut(best, value, d, r, cut, ties)
    else:
        cut[d, r] = np.inf if reject else best
        ties[d, r] = 0 if reject else 1


@helper
def _set_cut(best, value, d, r, cut, ties):
    """Cut at a value, rounded up to the precision of the scores, but not above the best."""
    cut[d, r] = min(np.float64(best), value)
    if cut[d, r] < value or cut[d, r] == -np.inf:
        cut[d, r] = min(best, np.nextafter(cut[d, r], best))
    ties[d, r] = ALL
