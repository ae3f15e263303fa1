"""Dual coordinate ascent over all label sets, through a small working set for each document.

A visit adds the label set that violates the margin most, and makes a few passes over the set.
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled, inlined
from polytopic.kernels.margins import GAP, LINEAR, MISSED, add_some, project
from polytopic.kernels.sizes import best_set, distance, merit, new_room, required

PASSES = 12
ENOUGH = 0.1  # of the tolerance: smaller slopes end the passes of a visit


class Task(NamedTuple):
    """What is asked of the margins."""

    goal: int  # EXACT or RESCALED, see the kernels by size
    C: float
    shared: bool  # whether a document's dual variables share one limit C
    tol: float


class WorkingSets(NamedTuple):
    """Label sets that documents are kept apart from, with their dual variables."""

    start: np.ndarray  # (n_docs + 1,) of each document's sets
    value: np.ndarray  # (n_sets,) dual variables, above zero
    first: np.ndarray  # (n_sets + 1,) of each set's labels
    label: np.ndarray  # labels of each set, rising


class Visit(NamedTuple):
    """Room for a visit to a document."""

    Z: np.ndarray  # (rank, n_labels) scores at the beginning
    steps: np.ndarray  # (rank, n_labels) what the visit adds to them
    own: np.ndarray  # (n_labels,) whether a label is the document's own
    touched: np.ndarray  # (n_labels,) labels of all sets of the document
    met: np.ndarray  # (n_labels,) whether a label is among them


@compiled
def new_visit(rank, n_labels, dtype):
    """Return room for visits."""
    return Visit(
        np.zeros((rank, n_labels), dtype),
        np.zeros((rank, n_labels)),
        np.zeros(n_labels, np.bool_),
        np.empty(n_labels, np.int64),
        np.zeros(n_labels, np.bool_),
    )


@compiled
def ascend_sets(corpus, order, sizes, task, W, old, new, measured):
    """Visit documents in this order; ``old`` has their working sets and ``new`` takes them.

    What the visits measure is added to ``measured``, see the kernels for margins.
    """
    _, rank, n_labels = W.shape
    visit = new_visit(rank, n_labels, W.dtype)
    room = new_room(visit.Z)
    n_sets, missed, gap, linear = 0, measured[MISSED], measured[GAP], measured[LINEAR]
    new.first[0] = 0
    for place in range(order.size):
        d = order[place]
        labels = corpus.labels[corpus.ends[d] : corpus.ends[d + 1]]
        begin = n_sets
        new.start[place] = begin
        n_sets = _copy_sets(old, old.start[place], old.start[place + 1], new, n_sets)
        project(corpus, d, W, rank, visit.Z)
        _mark(labels, visit.own)
        known = _highest_merit(labels, new, begin, n_sets, sizes, task.goal, visit)
        size, highest = best_set(visit.Z, labels, task.goal, sizes, known, room)
        worth = size >= 0 and highest > ENOUGH * task.tol
        if worth and _append(new, begin, n_sets, room.best[:size]):
            n_sets += 1
            missed = max(missed, highest)
        if n_sets == begin:
            _leave(labels, visit)
            continue
        touched = visit.touched[: _enter(labels, new, begin, n_sets, visit)]
        part, needed = _ascend(labels, new, begin, n_sets, sizes, task, visit)
        gap += part + (task.C * highest if task.shared else 0.0)
        linear += needed
        add_some(corpus, d, W, 0, rank, touched, visit.steps)
        _leave(touched, visit)
        n_sets = _drop_zeros(new, begin, n_sets)
    new.start[order.size] = n_sets
    measured[MISSED], measured[GAP], measured[LINEAR] = missed, gap, linear


@compiled
def _copy_sets(old, start, stop, new, n_sets):
    """Append sets to those in ``new``; return how many there are then."""
    for s in range(start, stop):
        end = new.first[n_sets]
        for k in range(old.first[s], old.first[s + 1]):
            new.label[end] = old.label[k]
            end += 1
        new.value[n_sets] = old.value[s]
        n_sets += 1
        new.first[n_sets] = end
    return n_sets


@compiled
def _append(sets, begin, n_sets, labels):
    """Append a set with the dual variable zero, unless it is there; return whether it was not."""
    found = np.sort(labels)
    for s in range(begin, n_sets):
        known = sets.label[sets.first[s] : sets.first[s + 1]]
        if known.size == found.size and (known == found).all():
            return False
    end = sets.first[n_sets]
    sets.label[end : end + found.size] = found
    sets.value[n_sets] = 0.0
    sets.first[n_sets + 1] = end + found.size
    return True


@inlined
def _mark(labels, marks):
    """Mark labels."""
    for label in labels:
        marks[label] = True


@compiled
def _highest_merit(labels, sets, begin, n_sets, sizes, goal, visit):
    """Return the highest merit of a document's sets, zero if none has more.

    Only a set with more is worth finding: a search that knows it passes over most sizes.
    """
    vectors, highest = sizes.vectors, 0.0
    base = _score(labels, vectors, visit.Z)
    for s in range(begin, n_sets):
        other = sets.label[sets.first[s] : sets.first[s + 1]]
        common = _n_marked(other, visit.own)
        score = _score(other, vectors, visit.Z)
        value = merit(goal, vectors, base, labels.size, other.size, common, score)
        highest = max(highest, value)
    return highest


@inlined
def _n_marked(labels, marks):
    """Return how many labels are marked."""
    n_marked = 0
    for label in labels:
        n_marked += marks[label]
    return n_marked


@compiled
def _enter(labels, sets, begin, n_sets, visit):
    """Note which labels a visit touches; return how many."""
    n_touched = 0
    for label in labels:
        visit.own[label] = visit.met[label] = True
        visit.touched[n_touched] = label
        n_touched += 1
    for k in range(sets.first[begin], sets.first[n_sets]):
        label = sets.label[k]
        if not visit.met[label]:
            visit.met[label] = True
            visit.touched[n_touched] = label
            n_touched += 1
    return n_touched


@compiled
def _leave(touched, visit):
    """Make the room ready for the next visit."""
    for label in touched:
        visit.own[label] = visit.met[label] = False
        visit.steps[:, label] = 0.0


@compiled
def _ascend(labels, sets, begin, n_sets, sizes, task, visit):
    """Make a few passes over a document's sets, in terms of their dual variables alone.

    Returns the document's part of the gap as it was at the beginning, where the limit is shared
    without its loss, and the sum of its dual variables, each times the margin that is required.
    """
    value = sets.value[begin:n_sets]
    n = value.size
    need, scale, slope, before = np.empty(n), np.empty(n), np.empty(n), value.copy()
    gram = np.empty((n, n))
    _measure(labels, sets, begin, sizes, task.goal, visit, need, scale, slope, gram)
    gap, total = 0.0, value.sum()
    for s in range(n):
        gap -= value[s] * slope[s]
        if not task.shared:
            gap += task.C * max(slope[s], 0.0)
    for _ in range(PASSES):
        worst = 0.0
        for s in range(n):
            limit = task.C - (total - value[s]) if task.shared else task.C
            after = min(max(value[s] + slope[s] / gram[s, s], 0.0), limit)
            step = after - value[s]
            if step != 0.0:
                worst = max(worst, abs(slope[s]))
                total += step
                value[s] = after
                for t in range(n):
                    slope[t] -= step * gram[s, t]
            elif task.shared and slope[s] > 0.0:
                worst = max(worst, _exchange(s, value, slope, gram))
        if worst <= ENOUGH * task.tol:
            break
    for s in range(n):
        if value[s] != before[s]:
            _move(labels, sets, begin + s, sizes, (value[s] - before[s]) / scale[s], visit)
    return gap, np.sum(value * need)


@compiled
def _measure(labels, sets, begin, sizes, goal, visit, need, scale, slope, gram):
    """Set the margins that are required, what divides them, slopes, and inner products.

    Those of ``(phi(L) - phi(s)) / scale``, which a dual variable adds to the weights.
    """
    vectors, n_own = sizes.vectors, labels.size
    base = _score(labels, vectors, visit.Z)
    for s in range(need.size):
        other = sets.label[sets.first[begin + s] : sets.first[begin + s + 1]]
        common = _n_marked(other, visit.own)
        need[s], scale[s] = required(goal, vectors, n_own, other.size, common)
        slope[s] = need[s] - (base - _score(other, vectors, visit.Z)) / scale[s]
        gram[s, s] = distance(vectors, n_own, other.size, common)
        for t in range(s):
            third = sets.label[sets.first[begin + t] : sets.first[begin + t + 1]]
            apart = distance(vectors, other.size, third.size, _n_common(other, third))
            # (L - s) @ (L - t) = (|L - s|^2 + |L - t|^2 - |s - t|^2) / 2
            product = gram[s, s] + gram[t, t] * scale[t] ** 2 - apart
            gram[s, t] = gram[t, s] = product / (2.0 * scale[s] * scale[t])
        gram[s, s] /= scale[s] ** 2


@inlined
def _score(labels, vectors, Z):
    """Return the score of a label set."""
    score = 0.0
    for q in range(Z.shape[0]):
        part = 0.0
        for label in labels:
            part += Z[q, label]
        score += vectors[labels.size, q] * part
    return score


@inlined
def _n_common(first, second):
    """Return how many labels two sets share; labels rise."""
    common, k = 0, 0
    for label in first:
        while k < second.size and second[k] < label:
            k += 1
        common += k < second.size and second[k] == label
    return common


@inlined
def _exchange(s, value, slope, gram):
    """Give a set of what the least violating one has; return by how much their slopes differed."""
    least = -1
    for t in range(value.size):
        if t != s and value[t] > 0.0 and slope[t] < slope[s if least < 0 else least]:
            least = t
    if least < 0:
        return 0.0
    curvature = gram[s, s] + gram[least, least] - 2.0 * gram[s, least]
    if curvature <= 0.0:
        return 0.0
    difference = slope[s] - slope[least]
    step = min(difference / curvature, value[least])
    value[s] += step
    value[least] -= step
    for t in range(value.size):
        slope[t] -= step * (gram[s, t] - gram[least, t])
    return difference


@compiled
def _move(labels, sets, s, sizes, step, visit):
    """Add to the scores what the change of a set's dual variable, over its scale, does to them."""
    other = sets.label[sets.first[s] : sets.first[s + 1]]
    for q in range(visit.Z.shape[0]):
        for label in labels:
            visit.steps[q, label] += step * sizes.vectors[labels.size, q]
        for label in other:
            visit.steps[q, label] -= step * sizes.vectors[other.size, q]


@compiled
def _drop_zeros(sets, begin, n_sets):
    """Drop a document's sets whose dual variable is zero; return how many sets there are then."""
    kept, end = begin, sets.first[begin]
    for s in range(begin, n_sets):
        start, stop, value = sets.first[s], sets.first[s + 1], sets.value[s]
        if value > 0.0:
            for k in range(start, stop):
                sets.label[end] = sets.label[k]
                end += 1
            sets.value[kept] = value
            kept += 1
            sets.first[kept] = end
    return kept


@compiled
def start_weights(corpus, order, sizes, task, W, sets):
    """Add to the weights what the dual variables of documents make of them."""
    _, rank, n_labels = W.shape
    visit = new_visit(rank, n_labels, W.dtype)
    for place in range(order.size):
        d = order[place]
        labels = corpus.labels[corpus.ends[d] : corpus.ends[d + 1]]
        begin, end = sets.start[place], sets.start[place + 1]
        touched = visit.touched[: _enter(labels, sets, begin, end, visit)]
        for s in range(begin, end):
            other = sets.label[sets.first[s] : sets.first[s + 1]]
            common = _n_marked(other, visit.own)
            scale = required(task.goal, sizes.vectors, labels.size, other.size, common)[1]
            _move(labels, sets, s, sizes, sets.value[s] / scale, visit)
        add_some(corpus, d, W, 0, rank, touched, visit.steps)
        _leave(touched, visit)
