"""Training of maximal margin labeling: dual coordinate ascent, one document at a time.

======================  =====================================================================
``corpus``              documents x of unit length: words and their weights
``own``                 the own labels L of a document
``W``                   weights, flat: (n_words, rank * n_labels)
``work.Z``              (rank, n_labels) scores of a document, ``x @ W``
``vectors``             embedding phi of label sets by their sizes, see the kernels for search
``value``, ``alpha``    dual variables alpha, by the label set that L is separated from
``C``                   limit of a dual variable, or of the sum of a document's
======================  =====================================================================

A dual variable adds ``alpha * x ⊗ (phi(L) - phi(other)) / scale`` to the weights (Kazawa et al.,
Eq. (7)). Its slope, the derivative of the dual objective, is the violation of the margin:
``need - (score(L) - score(other)) / scale``. Documents have unit length, so all that the visit to a
document does to its scores happens in the space of labels and sizes, as ``steps``; the weights are
changed once, at the end.
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled, helper
from polytopic.models.mml.search_kernels import (
    best_set,
    distance,
    project_row,
    required_margin,
    size_scores,
    sort_labels,
)

PASSES = 12  # over the working set of a document in one visit, at most
ENOUGH = 0.1  # part of the tolerance below which a slope is not worth a step

# What a pass over documents measures while the weights are moving, by its place in an array: the
# largest violation by a set outside all working sets; these documents' part of the gap between the
# primal and the dual objective; and their part of the dual objective's linear term.
MISSED, GAP, LINEAR = range(3)


class Corpus(NamedTuple):
    """Documents of unit length, all with words and labels, as in CSR matrices."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    labels: np.ndarray
    label_indptr: np.ndarray


class Workspace(NamedTuple):
    """Workspace of a visit to a document."""

    Z: np.ndarray  # (rank, n_labels) scores at the beginning
    flat: np.ndarray  # (rank * n_labels,) the same memory
    steps: np.ndarray  # (rank, n_labels) what the visit adds to them
    is_own: np.ndarray  # (n_labels,)
    touched: np.ndarray  # (n_labels,) labels whose scores may change
    is_touched: np.ndarray  # (n_labels,)
    places: np.ndarray  # (rank * n_labels,) columns of W that change
    changes: np.ndarray  # (rank * n_labels,) by how much


def new_workspace(rank, n_labels, dtype, step_dtype):
    """Return a workspace."""
    flat = np.zeros(rank * n_labels, dtype)
    return Workspace(
        flat.reshape(rank, n_labels),
        flat,
        np.zeros((rank, n_labels), step_dtype),
        np.zeros(n_labels, np.bool_),
        np.empty(n_labels, np.int64),
        np.zeros(n_labels, np.bool_),
        np.empty(rank * n_labels, np.int64),
        np.empty(rank * n_labels, step_dtype),
    )


@helper
def _add_some(corpus, d, W, first, width, labels, n, work):
    """Add ``x ⊗ steps[first:width, labels[:n]]`` to the weights."""
    places, changes, steps = work.places, work.changes, work.steps
    data, indices = corpus.data, corpus.indices
    n_labels, n_changes = steps.shape[1], 0
    for q in range(first, width):
        for k in range(n):
            places[n_changes] = q * n_labels + labels[k]
            changes[n_changes] = steps[q, labels[k]]
            n_changes += 1
    for k in range(corpus.indptr[d], corpus.indptr[d + 1]):
        x, word = data[k], indices[k]
        for m in range(n_changes):
            W[word, places[m]] += x * changes[m]


# All label sets, by a working set for each document


class Task(NamedTuple):
    """What is required of the margins."""

    goal: int  # EXACT or RESCALED, see the kernels for search
    C: float
    shared: bool  # whether the dual variables of a document share one limit C
    tol: float


class WorkingSets(NamedTuple):
    """Label sets that documents are separated from, with their dual variables."""

    start: np.ndarray  # (n_docs + 1,) of each document's sets
    value: np.ndarray  # (n_sets,) dual variables, above zero
    first: np.ndarray  # (n_sets + 1,) of each set's labels
    label: np.ndarray  # labels of each set, ascending


class Duals(NamedTuple):
    """Workspace for the dual problem of one document, over the sets of its working set."""

    need: np.ndarray  # (n_sets,) margins that are required
    scale: np.ndarray  # (n_sets,) what they are divided by
    slope: np.ndarray  # (n_sets,) violations
    before: np.ndarray  # (n_sets,) dual variables before the visit
    gram: np.ndarray  # (n_sets, n_sets) inner products of (phi(L) - phi(set)) / scale


def new_duals(n_sets):
    """Return a workspace for at most ``n_sets`` sets."""
    return Duals(*(np.empty(n_sets) for _ in range(4)), np.empty((n_sets, n_sets)))


@compiled
def ascend_sets(corpus, order, sizes, task, W, old, new, work, duals, search, measured):
    """Visit documents in this order, and raise the dual objective.

    A visit adds the set that violates the margin most to the working set of the document, unless
    it is there, and makes a few passes over the dual variables. ``old`` has the working sets, and
    ``new`` receives those with a positive dual variable. What is measured is added to ``measured``.
    A visit is equivalent, with ``delta(s) = (phi(L) - phi(s)) / scale(s)`` and
    ``slope(s) = need(s) - (x @ W) @ delta(s)``, to::

        sets = [*old[d], max(all_sets, key=slope)]
        for s in sets (a few passes):
            step = np.clip(alpha[s] + slope(s) / (delta(s) @ delta(s)), 0, limit) - alpha[s]
            alpha[s] += step
            W += step * np.outer(x, delta(s))
        new[d] = [s for s in sets if alpha[s] > 0]

    The limit is ``C``, or what the other dual variables of the document leave of it.
    """
    vectors, Z, is_own = sizes.vectors, work.Z, work.is_own
    data, indices, indptr = corpus.data, corpus.indices, corpus.indptr
    need, scale, slope, before = duals.need, duals.scale, duals.slope, duals.before
    n_sets = np.int64(0)
    missed, gap, linear = measured[MISSED], measured[GAP], measured[LINEAR]
    new.first[0] = 0
    for place in range(order.size):
        d = order[place]
        own = corpus.labels[corpus.label_indptr[d] : corpus.label_indptr[d + 1]]
        begin = n_sets
        new.start[place] = begin
        n_sets = _copy_sets(old, old.start[place], old.start[place + 1], new, n_sets)
        project_row(data, indices, indptr[d], indptr[d + 1], W, work.flat)
        for label in own:
            is_own[label] = True
        base, known = _score(own, vectors, Z), 0.0
        for s in range(n_sets - begin):
            _measure(own, base, new, begin, s, vectors, task.goal, work, duals)
            known = max(known, slope[s])
        # only a set with a higher violation is of interest, which rules out most sizes
        size, violation = best_set(Z, own, task.goal, sizes, known, search)
        is_worth_it = size >= 0 and violation > ENOUGH * task.tol
        if is_worth_it and _append(new, begin, n_sets, search.best, size):
            _measure(own, base, new, begin, n_sets - begin, vectors, task.goal, work, duals)
            n_sets += 1
            missed = max(missed, violation)
        n_touched = _touch(own, new, begin, n_sets, work)
        if n_sets > begin:
            value = new.value[begin:n_sets]
            part = _ascend(value, task, duals)
            gap += part + (task.C * violation if task.shared else 0.0)
            needed = 0.0
            for s in range(value.size):
                needed += value[s] * need[s]
                if value[s] != before[s]:
                    step = (value[s] - before[s]) / scale[s]
                    _move(own, new, begin + s, vectors, step, work)
            linear += needed
            _add_some(corpus, d, W, np.int64(0), Z.shape[0], work.touched, n_touched, work)
            n_sets = _drop_zeros(new, begin, n_sets)
        _reset_workspace(n_touched, work)
    new.start[order.size] = n_sets
    measured[MISSED], measured[GAP], measured[LINEAR] = missed, gap, linear


@helper
def _copy_sets(old, start, stop, new, n_sets):
    """Append sets to those in ``new``; return how many there are now."""
    label, first, value = new.label, new.first, new.value
    old_label, old_first, old_value = old.label, old.first, old.value
    for s in range(start, stop):
        end = first[n_sets]
        for k in range(old_first[s], old_first[s + 1]):
            label[end] = old_label[k]
            end += 1
        value[n_sets] = old_value[s]
        n_sets += 1
        first[n_sets] = end
    return n_sets


@helper
def _append(sets, begin, n_sets, labels, size):
    """Append a set with a dual variable of zero, unless it is there; return whether it is new."""
    label, first = sets.label, sets.first
    sort_labels(labels, size)
    for s in range(begin, n_sets):
        if first[s + 1] - first[s] == size:
            n_equal = 0
            while n_equal < size and label[first[s] + n_equal] == labels[n_equal]:
                n_equal += 1
            if n_equal == size:
                return False
    end = first[n_sets]
    for k in range(size):
        label[end + k] = labels[k]
    sets.value[n_sets] = 0.0
    first[n_sets + 1] = end + size
    return True


@helper
def _score(labels, vectors, Z):
    """Return the score of a label set: ``vectors[n] @ Z[:, labels].sum(axis=1)``."""
    score = 0.0
    for q in range(Z.shape[0]):
        part = 0.0
        for label in labels:
            part += Z[q, label]
        score += vectors[labels.size, q] * part
    return score


@helper
def _measure(own, base, sets, begin, s, vectors, goal, work, duals):
    """Set what `Duals` has for one set of a document, those before it being known.

    Inner products follow from distances:
    ``2 * (L - s) @ (L - t) = |L - s|² + |L - t|² - |s - t|²``.
    """
    labels, first, is_own = sets.label, sets.first, work.is_own
    need, scale, gram = duals.need, duals.scale, duals.gram
    other = labels[first[begin + s] : first[begin + s + 1]]
    n_common = np.int64(0)
    for label in other:
        n_common += is_own[label]
    need[s], scale[s] = required_margin(goal, vectors, own.size, other.size, n_common)
    duals.slope[s] = need[s] - (base - _score(other, vectors, work.Z)) / scale[s]
    gram[s, s] = distance(vectors, own.size, other.size, n_common)
    for t in range(s):
        third = labels[first[begin + t] : first[begin + t + 1]]
        n_common, k = np.int64(0), 0
        for label in other:  # labels ascend in both sets
            while k < third.size and third[k] < label:
                k += 1
            n_common += k < third.size and third[k] == label
        apart = distance(vectors, other.size, third.size, n_common)
        product = gram[s, s] + gram[t, t] * (scale[t] * scale[t]) - apart
        gram[s, t] = gram[t, s] = product / (2.0 * scale[s] * scale[t])
    gram[s, s] /= scale[s] * scale[s]


@helper
def _ascend(value, task, duals):
    """Make a few passes over the dual variables of a document, in place.

    Each is set to where its slope is zero, within its limit. Where the limit is shared and used
    up, a set takes from another one instead. Returns the document's part of the gap before the
    visit; where the limit is shared, without its loss.
    """
    slope, before, gram = duals.slope, duals.before, duals.gram
    C, shared, enough = task.C, task.shared, ENOUGH * task.tol
    n, gap, total = value.size, 0.0, 0.0
    for s in range(n):
        before[s] = value[s]
        total += value[s]
        gap -= value[s] * slope[s]
        if not shared:
            gap += C * max(slope[s], 0.0)
    for _ in range(PASSES):
        worst = 0.0
        for s in range(n):
            limit = C - (total - value[s]) if shared else C
            after = min(max(value[s] + slope[s] / gram[s, s], 0.0), limit)
            step = after - value[s]
            if step != 0.0:
                worst = max(worst, abs(slope[s]))
                total += step
                value[s] = after
                for t in range(n):
                    slope[t] -= step * gram[s, t]
            elif shared and slope[s] > 0.0:
                worst = max(worst, _exchange(s, value, slope, gram))
        if worst <= enough:
            break
    return gap


@helper
def _exchange(s, value, slope, gram):
    """Move weight to a set from the one that violates least; return their difference in slope."""
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


@helper
def _move(own, sets, s, vectors, step, work):
    """Add ``step * (phi(L) - phi(s))`` to the steps of a visit."""
    steps, other = work.steps, sets.label[sets.first[s] : sets.first[s + 1]]
    for q in range(steps.shape[0]):
        for label in own:
            steps[q, label] += step * vectors[own.size, q]
        for label in other:
            steps[q, label] -= step * vectors[other.size, q]


@helper
def _touch(own, sets, begin, n_sets, work):
    """List the labels of the document and of its sets in ``work.touched``; return how many."""
    is_own, touched, is_touched = work.is_own, work.touched, work.is_touched
    labels, n_touched = sets.label, 0
    for label in own:
        is_own[label] = is_touched[label] = True
        touched[n_touched] = label
        n_touched += 1
    for k in range(sets.first[begin], sets.first[n_sets]):
        label = labels[k]
        if not is_touched[label]:
            is_touched[label] = True
            touched[n_touched] = label
            n_touched += 1
    return n_touched


@helper
def _reset_workspace(n_touched, work):
    """Prepare the workspace for the next visit."""
    is_own, touched, is_touched = work.is_own, work.touched, work.is_touched
    steps = work.steps
    for k in range(n_touched):
        label = touched[k]
        is_own[label] = is_touched[label] = False
        for q in range(steps.shape[0]):
            steps[q, label] = 0.0


@helper
def _drop_zeros(sets, begin, n_sets):
    """Drop the sets of a document whose dual variable is zero; return how many sets there are."""
    label, first, value = sets.label, sets.first, sets.value
    n_kept, end = begin, first[begin]
    for s in range(begin, n_sets):
        start, stop = first[s], first[s + 1]
        if value[s] > 0.0:
            for k in range(start, stop):
                label[end] = label[k]
                end += 1
            value[n_kept] = value[s]
            n_kept += 1
            first[n_kept] = end
    return n_kept


@compiled
def start_weights(corpus, order, sizes, task, W, sets, work):
    """Add to the weights what the dual variables of documents contribute.

    Equivalent, for each document and each set ``s`` of its working set, to
    ``W += alpha[s] * np.outer(x, phi(L) - phi(s)) / scale(s)``.
    """
    vectors, rank = sizes.vectors, work.Z.shape[0]
    for place in range(order.size):
        d = order[place]
        own = corpus.labels[corpus.label_indptr[d] : corpus.label_indptr[d + 1]]
        begin, end = sets.start[place], sets.start[place + 1]
        n_touched = _touch(own, sets, begin, end, work)
        for s in range(begin, end):
            other = sets.label[sets.first[s] : sets.first[s + 1]]
            n_common = np.int64(0)
            for label in other:
                n_common += work.is_own[label]
            scale = required_margin(task.goal, vectors, own.size, other.size, n_common)[1]
            _move(own, sets, s, vectors, sets.value[s] / scale, work)
        _add_some(corpus, d, W, np.int64(0), rank, work.touched, n_touched, work)
        _reset_workspace(n_touched, work)


# The paper's neighbours: label sets with one label more or less


class Neighbours(NamedTuple):
    """Dual variables of documents' neighbours, by the label that is added or removed.

    Those that are not stored are zero.
    """

    start: np.ndarray  # (n_docs + 1,)
    label: np.ndarray
    value: np.ndarray


@compiled
def ascend_neighbours(corpus, order, sizes, C, W, old, new, work, scores, alpha, measured):
    """Visit documents in this order, and raise the dual objective by one neighbour at a time.

    ``old`` has the documents' dual variables, and ``new`` receives them. ``scores`` (n_labels,) and
    ``alpha`` (n_labels,) are workspaces, the latter of zeros. What is measured is added to
    ``measured``. A visit is equivalent, with ``delta(s)`` as in :func:`ascend_sets`, to::

        for s in (L ^ {label} for label in labels):  # first those with one label more
            slope = 1 - (x @ W) @ delta(s)
            step = np.clip(alpha[s] + slope, 0, C) - alpha[s]
            alpha[s] += step
            W += step * np.outer(x, delta(s))
    """
    n_labels, n_kept = work.Z.shape[1], 0
    gap, linear = measured[GAP], measured[LINEAR]
    for place in range(order.size):
        d = order[place]
        own = corpus.labels[corpus.label_indptr[d] : corpus.label_indptr[d + 1]]
        n = own.size
        for label in own:
            work.is_own[label] = True
        for k in range(old.start[place], old.start[place + 1]):
            alpha[old.label[k]] = old.value[k]
        width = sizes.width[n + 1] if n < n_labels else 0
        own_width = max(sizes.width[n - 1], sizes.width[n], width)
        start, stop = corpus.indptr[d], corpus.indptr[d + 1]
        project_row(corpus.data, corpus.indices, start, stop, W, work.flat[: width * n_labels])
        _project_own(corpus, d, W, width, own_width, own, work.Z)
        n_changed = np.int64(0)
        if n < n_labels:
            n_changed, part = _add_labels(own, sizes, C, work, scores, alpha)
            gap += part
        if n > 1 or sizes.has_empty:
            gap += _remove_labels(own, sizes, C, own_width, work, alpha)
        if n_changed * 8 > n_labels:
            _add_all(corpus, d, W, width, work)
            _add_some(corpus, d, W, width, own_width, own, n, work)
        else:
            _add_some(corpus, d, W, np.int64(0), width, work.touched, n_changed, work)
            _add_some(corpus, d, W, np.int64(0), own_width, own, n, work)
        _reset_workspace(n_changed, work)
        for label in own:
            work.is_own[label] = False
            for q in range(own_width):
                work.steps[q, label] = 0.0
        new.start[place] = n_kept
        for j in range(n_labels):
            if alpha[j] > 0.0:
                new.label[n_kept], new.value[n_kept] = j, alpha[j]
                linear += alpha[j]
                alpha[j] = 0.0
                n_kept += 1
    new.start[order.size] = n_kept
    measured[GAP], measured[LINEAR] = gap, linear


@helper
def _project_own(corpus, d, W, first, width, own, Z):
    """Set the scores of a document's own labels in some rows of ``Z``."""
    n_labels = Z.shape[1]
    for q in range(first, width):
        for label in own:
            Z[q, label] = 0
    for k in range(corpus.indptr[d], corpus.indptr[d + 1]):
        x, word = corpus.data[k], corpus.indices[k]
        for q in range(first, width):
            for label in own:
                Z[q, label] += x * W[word, q * n_labels + label]


@helper
def _add_all(corpus, d, W, width, work):
    """Add ``x ⊗ steps[:width]`` to the weights of all labels."""
    n_labels = work.Z.shape[1]
    for k in range(corpus.indptr[d], corpus.indptr[d + 1]):
        x, word = corpus.data[k], corpus.indices[k]
        for q in range(width):
            for j in range(n_labels):
                W[word, q * n_labels + j] += x * work.steps[q, j]


@helper
def _add_labels(own, sizes, C, work, scores, alpha):
    """Separate a document from its labels with one more.

    Returns how many other labels have changed scores, listed in ``work.touched``, and the gap.
    """
    vectors, n = sizes.vectors, own.size
    n_changed, gap = np.int64(0), 0.0
    width, own_width = sizes.width[n + 1], max(sizes.width[n], sizes.width[n + 1])
    size_scores(work.Z, vectors, n + 1, scores)
    scale = np.sqrt(distance(vectors, n, n + 1, n))
    lead, spread, total = 0.0, 0.0, 0.0  # of the own labels in the smaller set, by a unit step
    for q in range(own_width):
        difference = vectors[n, q] - vectors[n + 1, q]
        spread += n * difference * difference
        for label in own:
            lead += difference * work.Z[q, label]
    for j in range(scores.size):
        slope = 1.0 - (lead - scores[j]) / scale
        if (slope <= 0.0 and alpha[j] == 0.0) or work.is_own[j]:
            continue
        gap += C * max(slope, 0.0) - alpha[j] * slope
        after = min(max(alpha[j] + slope, 0.0), C)
        if after != alpha[j]:
            step = (after - alpha[j]) / scale
            alpha[j] = after
            lead += step * spread
            total += step
            for q in range(width):
                work.steps[q, j] = -step * vectors[n + 1, q]
            work.touched[n_changed] = j
            n_changed += 1
    for label in own:
        for q in range(own_width):
            work.steps[q, label] = total * (vectors[n, q] - vectors[n + 1, q])
    return n_changed, gap


@helper
def _remove_labels(own, sizes, C, width, work, alpha):
    """Separate a document from its labels without one of them; return the gap."""
    vectors, n, gap = sizes.vectors, own.size, 0.0
    scale = np.sqrt(distance(vectors, n, n - 1, n - 1))
    for removed in own:
        margin = 0.0
        for label in own:
            for q in range(width):
                u = vectors[n, q] - (0.0 if label == removed else vectors[n - 1, q])
                margin += u * (work.Z[q, label] + work.steps[q, label])
        slope = 1.0 - margin / scale
        gap += C * max(slope, 0.0) - alpha[removed] * slope
        after = min(max(alpha[removed] + slope, 0.0), C)
        if after != alpha[removed]:
            step = (after - alpha[removed]) / scale
            alpha[removed] = after
            for label in own:
                for q in range(width):
                    u = vectors[n, q] - (0.0 if label == removed else vectors[n - 1, q])
                    work.steps[q, label] += step * u
    return gap
