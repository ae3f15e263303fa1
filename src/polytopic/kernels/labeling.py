"""Answers of maximal margin labeling: the best label sets of documents, over all label sets.

Weights are word-major here, (n_words, rank, n_labels).
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled, inlined, reordered
from polytopic.kernels.heaps import Heap, new_heap, pop, push
from polytopic.kernels.sizes import (
    SCORE,
    best_set,
    column_norms,
    exceeds,
    highest,
    new_room,
    size_scores,
    sum_above,
)


@compiled
def best_sets(Z, sizes, found, n_found):
    """Put the best label set of each document, of all that are not empty, into ``found``.

    The sets stand one after the other, labels rising, and ``n_found`` has their sizes. Returns
    how many labels there are in all.
    """
    room, none, n = new_room(Z[0]), np.empty(0, np.int64), 0
    for d in range(Z.shape[0]):
        size, _ = best_set(Z[d], none, SCORE, sizes, -np.inf, room)
        n_found[d] = max(size, 0)  # none where no score is a number
        begin = n
        for label in room.best[: n_found[d]]:
            place = n
            while place > begin and found[place - 1] > label:
                found[place] = found[place - 1]
                place -= 1
            found[place] = label
            n += 1
    return n


@compiled
def rank_labels(scores, chosen, k, order):
    """Set each row of ``order`` to a document's labels: those chosen, then the best others.

    Both by falling score, of equal ones the first; there are ``k`` in all, or those chosen if they
    are more. Places after them keep what they have.
    """
    n_labels = scores.shape[1]
    top, others = np.empty(n_labels, np.int64), np.empty(n_labels, np.bool_)
    for d in range(scores.shape[0]):
        n_chosen = 0
        for j in range(n_labels):
            others[j] = not chosen[d, j]
            n_chosen += chosen[d, j]
        highest(scores[d], others, n_chosen, top)
        order[d, :n_chosen] = top[:n_chosen]
        n_others = min(k, n_labels) - n_chosen
        if n_others > 0:
            highest(scores[d], chosen[d], n_others, top)
            order[d, n_chosen : n_chosen + n_others] = top[:n_others]


@compiled
def best_with(Z, sizes, wanted, chosen):
    """Mark the best label set of each document that holds a label."""
    n_labels = Z.shape[2]
    values, top = np.empty(n_labels), np.empty(n_labels, np.int64)
    skip = np.zeros(n_labels, np.bool_)
    skip[wanted] = True
    for d in range(Z.shape[0]):
        best = -np.inf
        for size in range(1, sizes.width.size):
            size_scores(Z[d], sizes.vectors, size, values)
            highest(values, skip, size - 1, top)
            score = values[wanted]
            for label in top[: size - 1]:
                score += values[label]
            if score > best:
                best = score
                chosen[d] = False
                chosen[d, wanted] = True
                for label in top[: size - 1]:
                    chosen[d, label] = True


@compiled
def margins(Z, sizes, out):
    """Set ``out`` to the score of the best set with each label less the best without it.

    A size is passed over if no set of it, with any label, can be better than those found.
    """
    n_labels, n_ends = Z.shape[2], sizes.ends.size
    low, high, values = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    norms, inside, outside = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    top, none = np.empty(n_labels, np.int64), np.zeros(n_labels, np.bool_)
    for d in range(Z.shape[0]):
        inside[:] = -np.inf
        outside[:] = -np.inf
        column_norms(Z[d], norms)
        price = 0.0
        for k in range(n_ends):
            least, most = 1 if k == 0 else sizes.ends[k - 1] + 1, sizes.ends[k]
            size_scores(Z[d], sizes.vectors, most, high)
            scores_between(high if least == most else low, high, sizes.slack[k], norms, values)
            if _may_improve(values, least, price, inside, outside):
                for size in range(least, most + 1):
                    size_scores(Z[d], sizes.vectors, size, values)
                    price = _improve(values, size, price, none, top, inside, outside)
            low[:] = high
        for j in range(n_labels):
            out[d, j] = inside[j] - outside[j]


@inlined
def scores_between(low, high, slack, norms, upper):
    """Set ``upper`` to what no score after an end, up to the next, exceeds."""
    for j in range(upper.size):
        upper[j] = max(low[j], high[j]) + slack * norms[j]


@reordered
def _may_improve(values, size, price, inside, outside):
    """Whether a set of this size or a larger one may be the best with, or without, some label."""
    limit, n_better = size * price + sum_above(values, price), np.int32(0)
    for j in range(values.size):
        above = values[j] - price
        better = (limit + min(above, 0.0) > inside[j]) | (limit - max(above, 0.0) > outside[j])
        n_better += np.int32(better)
    return n_better > 0


@compiled
def _improve(values, size, price, none, top, inside, outside):
    """Take the sets of a size into account; return a price that makes bounds tight."""
    if not _may_improve(values, size, price, inside, outside):
        return price
    held = highest(values, none, min(size + 1, values.size), top)
    total = 0.0
    for label in top[:size]:
        total += values[label]
    last = values[top[size - 1]]
    following = values[top[size]] if held > size else -np.inf
    for j in range(values.size):
        inside[j] = max(inside[j], total - last + min(values[j], last))
        outside[j] = max(outside[j], total - max(values[j] - following, 0.0))
    return min(0.0, last)


class Listing(NamedTuple):
    """Room to list the best label sets of a document."""

    waiting: Heap  # sets of a size that may come next, the best one first
    shifts: np.ndarray  # (2 * n_best + 1, n_labels) of those sets
    kept: Heap  # the best sets of all, the worst one first, of equal ones the last
    sets: np.ndarray  # (n_best, n_labels) marks the labels of those


@compiled
def n_best_sets(Z, sizes, n_best, found, scores):
    """Find the ``n_best`` label sets of each document, best first.

    ``found`` (n_docs, n_best, n_labels) marks them and ``scores`` has their scores, ``-inf``
    where there are fewer. Of each size the best sets are listed as long as they are among the
    best of all. Of equal sets those come first that were found first: the smaller ones.
    """
    n_labels = Z.shape[2]
    values, norms = np.empty(n_labels), np.empty(n_labels)
    top, none = np.empty(n_labels, np.int64), np.zeros(n_labels, np.bool_)
    room = 2 * n_best + 1
    shifts, sets = np.empty((room, n_labels), np.int64), np.empty((n_best, n_labels), np.bool_)
    listing = Listing(new_heap(room), shifts, new_heap(n_best), sets)
    for d in range(Z.shape[0]):
        n_kept = n_found = 0
        column_norms(Z[d], norms)
        before, spread = 0.0, np.float64(sum_above(norms, 0.0))
        for k in range(sizes.ends.size):
            least, most = 1 if k == 0 else sizes.ends[k - 1] + 1, sizes.ends[k]
            size_scores(Z[d], sizes.vectors, most, values)
            here = np.float64(sum_above(values, 0.0))
            limit = max(here, before) + sizes.slack[k] * spread
            before = here
            for size in range(least, most + 1):
                if n_kept == n_best and not exceeds(limit, listing.kept.key[0]):
                    break
                if least < most:
                    size_scores(Z[d], sizes.vectors, size, values)
                    here = np.float64(sum_above(values, 0.0))
                if n_kept < n_best or exceeds(here, listing.kept.key[0]):
                    held = highest(values, none, min(size + n_best, n_labels), top)
                    n_kept, n_found = _list_sets(values, top[:held], size, listing, n_kept, n_found)
        scores[d, n_kept:] = -np.inf
        while n_kept:
            scores[d, n_kept - 1] = listing.kept.key[0]
            found[d, n_kept - 1] = sets[listing.kept.item[0]]
            pop(listing.kept, n_kept)
            n_kept -= 1


@compiled
def _list_sets(values, top, size, listing, n_kept, n_found):
    """List the sets of a size, best first, into the best of all.

    A set takes the labels ``top[k + shift[k]]``, shifts rising. A set is followed by that with
    its first positive shift one larger, and by that with the shift before it one larger: so
    each set is reached once, and never before a better one. Returns how many sets are kept, and
    how many have been.
    """
    waiting, shifts = listing.waiting, listing.shifts
    n_best, free = len(listing.sets), top.size - size
    best = 0.0
    for label in top[:size]:
        best += values[label]
    shifts[0, :size] = 0
    push(waiting, 0, -best, 0, 0)
    n_waiting = n_shifts = 1
    for _ in range(n_best):  # so many sets of a size can be among the best
        if n_waiting == 0 or (n_kept == n_best and not -waiting.key[0] > listing.kept.key[0]):
            break
        score, shift = -waiting.key[0], shifts[waiting.item[0], :size]
        pop(waiting, n_waiting)
        n_waiting -= 1
        n_kept = _keep(top, shift, score, listing, n_kept, n_found)
        n_found += 1
        first = 0
        while first < size and shift[first] == 0:
            first += 1
        for k in (first, first - 1):
            if k < 0 or k == size:
                continue
            if shift[k] < (free if k == size - 1 else shift[k + 1]):
                here = k + shift[k]
                following = score - values[top[here]] + values[top[here + 1]]
                shifts[n_shifts, :size] = shift
                shifts[n_shifts, k] += 1
                push(waiting, n_waiting, -following, n_shifts, n_shifts)
                n_waiting, n_shifts = n_waiting + 1, n_shifts + 1
    return n_kept, n_found


@compiled
def _keep(top, shift, score, listing, n_kept, n_found):
    """Keep a set, instead of the worst one if there are enough; return how many are kept."""
    place = n_kept
    if n_kept == len(listing.sets):
        place = listing.kept.item[0]
        pop(listing.kept, n_kept)
        n_kept -= 1
    push(listing.kept, n_kept, score, -n_found, place)
    listing.sets[place] = False
    for k in range(shift.size):
        listing.sets[place, top[k + shift[k]]] = True
    return n_kept + 1
