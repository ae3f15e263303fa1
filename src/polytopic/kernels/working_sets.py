"""Dual coordinate ascent over all label sets, through a small working set for each document.

A visit adds the label set that violates the margin most, and makes a few passes over the set.
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled
from polytopic.kernels.margins import Course, add_some, project
from polytopic.kernels.sizes import best_set, distance, new_room, required

PASSES = 3
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
def ascend_sets(corpus, order, sizes, task, W, old, new):
    """Visit documents in this order; ``old`` has their working sets and ``new`` takes them."""
    _, rank, n_labels = W.shape
    visit = new_visit(rank, n_labels, W.dtype)
    room = new_room(visit.Z)
    n_sets, violation, missed, gap, linear = 0, 0.0, 0.0, 0.0, 0.0
    new.first[0] = 0
    for place in range(order.size):
        d = order[place]
        labels = corpus.labels[corpus.ends[d] : corpus.ends[d + 1]]
        begin = n_sets
        new.start[place] = begin
        n_sets = _copy_sets(old, old.start[place], old.start[place + 1], new, n_sets)
        project(corpus, d, W, rank, visit.Z)
        size, merit = best_set(visit.Z, labels, task.goal, sizes, room)
        if merit > ENOUGH * task.tol and _append(new, begin, n_sets, room.best[:size]):
            n_sets += 1
            missed = max(missed, merit)
        if n_sets == begin:
            continue
        touched = visit.touched[: _enter(labels, new, begin, n_sets, visit)]
        worst, part = _ascend(labels, new, begin, n_sets, sizes, task, visit)
        violation = max(violation, worst)
        gap += part + (task.C * max(merit, 0.0) if task.shared else 0.0)
        linear += _needed(labels, new, begin, n_sets, sizes, task.goal, visit)
        add_some(corpus, d, W, 0, rank, touched, visit.steps)
        _leave(touched, visit)
        n_sets = _drop_zeros(new, begin, n_sets)
    new.start[order.size] = n_sets
    return Course(violation, missed, gap, linear)


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
    """Make a few passes over a document's sets.

    Returns the largest violation of the first pass and the document's part of the gap: where the
    limit is shared, without its loss and as it was at the beginning, or else set by set.
    """
    violation, gap, total = 0.0, 0.0, 0.0
    for s in range(begin, n_sets):
        total += sets.value[s]
        if task.shared and sets.value[s] > 0.0:
            gap -= sets.value[s] * _slope(labels, sets, s, sizes, task.goal, visit)[0]
    for turn in range(PASSES):
        worst = 0.0
        for s in range(begin, n_sets):
            value = sets.value[s]
            slope, scale, curvature = _slope(labels, sets, s, sizes, task.goal, visit)
            if turn == 0 and not task.shared:
                gap += task.C * max(slope, 0.0) - value * slope
            limit = task.C - (total - value) if task.shared else task.C
            after = min(max(value + slope / curvature, 0.0), limit)
            if after != value:
                worst = max(worst, abs(slope))
                total += after - value
                sets.value[s] = after
                _move(labels, sets, s, sizes, (after - value) / scale, visit)
            elif task.shared and slope > 0.0:
                worst = max(worst, _exchange(labels, sets, s, begin, n_sets, sizes, task, visit))
        if turn == 0:
            violation = worst
        if worst <= ENOUGH * task.tol:
            break
    return violation, gap


@compiled
def _needed(labels, sets, begin, n_sets, sizes, goal, visit):
    """Return the sum of a document's dual variables, each times the margin that is required."""
    total = 0.0
    for s in range(begin, n_sets):
        other = sets.label[sets.first[s] : sets.first[s + 1]]
        common = 0
        for label in other:
            common += visit.own[label]
        total += sets.value[s] * required(goal, sizes.vectors, labels.size, other.size, common)[0]
    return total


@compiled
def _slope(labels, sets, s, sizes, goal, visit):
    """Return the slope of the objective in a dual variable, its scale and its curvature."""
    other = sets.label[sets.first[s] : sets.first[s + 1]]
    n, size, common = labels.size, other.size, 0
    margin = 0.0
    for label in other:
        common += visit.own[label]
    for q in range(visit.Z.shape[0]):
        inside, outside = 0.0, 0.0
        for label in labels:
            inside += visit.Z[q, label] + visit.steps[q, label]
        for label in other:
            outside += visit.Z[q, label] + visit.steps[q, label]
        margin += sizes.vectors[n, q] * inside - sizes.vectors[size, q] * outside
    need, scale = required(goal, sizes.vectors, n, size, common)
    return need - margin / scale, scale, distance(sizes.vectors, n, size, common) / scale**2


@compiled
def _move(labels, sets, s, sizes, step, visit):
    """Move the scores as the dual variable of a set is changed, by ``step`` times its scale."""
    other = sets.label[sets.first[s] : sets.first[s + 1]]
    for q in range(visit.Z.shape[0]):
        for label in labels:
            visit.steps[q, label] += step * sizes.vectors[labels.size, q]
        for label in other:
            visit.steps[q, label] -= step * sizes.vectors[other.size, q]


@compiled
def _exchange(labels, sets, s, begin, n_sets, sizes, task, visit):
    """Give a set of what the least violating one has; return by how much their slopes differed."""
    slope, scale, _ = _slope(labels, sets, s, sizes, task.goal, visit)
    least, low, low_scale = -1, slope, 1.0
    for t in range(begin, n_sets):
        if t != s and sets.value[t] > 0.0:
            other, other_scale, _ = _slope(labels, sets, t, sizes, task.goal, visit)
            if other < low:
                least, low, low_scale = t, other, other_scale
    if least < 0:
        return 0.0
    curvature = _curvature_between(labels, sets, s, least, sizes, scale, low_scale, visit)
    if curvature <= 0.0:
        return 0.0
    step = min((slope - low) / curvature, sets.value[least])
    sets.value[s] += step
    sets.value[least] -= step
    _move(labels, sets, s, sizes, step / scale, visit)
    _move(labels, sets, least, sizes, -step / low_scale, visit)
    return slope - low


@compiled
def _curvature_between(labels, sets, s, t, sizes, scale, other_scale, visit):
    """Return ``|d_s - d_t|^2``, where ``d_s = (phi(L) - phi(s)) / scale``."""
    first = sets.label[sets.first[s] : sets.first[s + 1]]
    second = sets.label[sets.first[t] : sets.first[t + 1]]
    n, a, b = labels.size, first.size, second.size
    with_first, with_second, common = 0, 0, 0
    for label in first:
        with_first += visit.own[label]
        for other in second:
            common += label == other
    for label in second:
        with_second += visit.own[label]
    one = distance(sizes.vectors, n, a, with_first) / scale**2
    two = distance(sizes.vectors, n, b, with_second) / other_scale**2
    # (L - s) @ (L - t) = (|L - s|^2 + |L - t|^2 - |s - t|^2) / 2
    product = one * scale**2 + two * other_scale**2 - distance(sizes.vectors, a, b, common)
    return one + two - product / (scale * other_scale)


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
            _, scale, _ = _slope(labels, sets, s, sizes, task.goal, visit)
            _move(labels, sets, s, sizes, sets.value[s] / scale, visit)
        add_some(corpus, d, W, 0, rank, touched, visit.steps)
        _leave(touched, visit)
