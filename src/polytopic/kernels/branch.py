"""Branch and bound over all label sets of a document, with a proof.

Log likelihoods are concave in the weights of the labels. So at any weights ``h``, where a document
has the log likelihood ``f`` and the slopes ``D`` (see :func:`polytopic.kernels.sets.slopes`), a set
with its own weights ``g`` scores at most ``f + N log(g @ D)``. A node is all label sets of a size
that hold some labels and do not hold others; its bound is the largest such value plus log prior, at
weights that make it small. Sets that were seen in training have priors of their own and are not
searched here: :func:`polytopic.kernels.posterior.survey` has looked at each.
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled
from polytopic.kernels.posterior import (
    NEVER,
    NOTHING,
    document,
    fill,
    find_seen,
    make_room,
    members,
    place_of_largest,
    survey,
)
from polytopic.kernels.sets import BIASED, EQUAL, SLACK, longest, score, slopes, total_of

FREE, IN, OUT = 0, 1, 2
EM_STEPS = 12  # for the weights of a node
TANGENTS = 3  # of the logarithm, for one choice of weights
HALVINGS = 60
NODES = 16  # that may be split before more room is made


class Nodes(NamedTuple):
    """Label sets still to be searched; a negative size stands for all sizes from there on."""

    status: np.ndarray  # of each label: FREE, IN or OUT
    weights: np.ndarray  # of each label, where the bound was taken
    sizes: np.ndarray
    bounds: np.ndarray
    branches: np.ndarray  # the label to decide on next


class Found(NamedTuple):
    """The best label sets so far, and the logarithm of the mass of all that were looked at."""

    sets: np.ndarray
    values: np.ndarray
    total: np.ndarray


@compiled
def best_sets(data, indices, indptr, problem, n_best, max_nodes, sets, values, bounds, totals):
    """Find the best label sets of each document, best first, and a bound on all others.

    ``sets`` is an indicator (documents, n_best, labels) and ``values`` their log joint
    probabilities, ``-inf`` where there are fewer sets. ``totals`` gets the logarithm of the mass
    of all sets that were looked at.
    """
    prior, n_labels = problem.prior, problem.theta.shape[1]
    room = make_room(prior.log_seen.size, n_labels, longest(indptr))
    nodes = _room_for_nodes(2 * (min(max_nodes, NODES) + problem.labels.size) + 4, n_labels)
    for d in range(indptr.size - 1):
        x, words = document(data, indices, indptr, d, problem.family, room)
        survey(x, words, problem, NOTHING, True, n_best, room)
        best = _take_best(prior, room, sets[d], values[d])
        mass = 0.0
        for value in room.values:
            mass += np.exp(value - best)
        totals[d] = best + np.log(mass)
        found = Found(sets[d], values[d], totals[d : d + 1])
        bounds[d] = _search(x, words, problem, max_nodes, nodes, room, found)


@compiled
def _room_for_nodes(capacity, n_labels):
    return Nodes(
        np.empty((capacity, n_labels), dtype=np.int8),
        np.empty((capacity, n_labels)),
        np.empty(capacity, dtype=np.int64),
        np.empty(capacity),
        np.empty(capacity, dtype=np.int64),
    )


@compiled
def _with_more_room(nodes):
    """Return the nodes in arrays that are twice as large."""
    capacity, n_labels = nodes.status.shape
    larger = _room_for_nodes(2 * capacity, n_labels)
    larger.status[:capacity] = nodes.status
    larger.weights[:capacity] = nodes.weights
    larger.sizes[:capacity] = nodes.sizes
    larger.bounds[:capacity] = nodes.bounds
    larger.branches[:capacity] = nodes.branches
    return larger


@compiled
def _take_best(prior, room, sets, values):
    """List the best candidates of a survey; return the value of the best."""
    fill(values, NEVER)
    found, home, buffer = room.values.copy(), room.home, room.buffer
    for place in range(values.size):
        code = place_of_largest(found)
        if found[code] == NEVER:
            break
        values[place] = found[code]
        found[code] = NEVER
        for label in members(code, prior, home, buffer):
            sets[place, label] = True
    return values[0]


@compiled
def _insert(value, inside, found):
    """Put a set among the listed ones, if it is good enough and not yet there."""
    sets, values, total = found
    if not value > values[-1]:
        return
    for place in range(values.size):
        same = values[place] > NEVER
        for label in range(inside.size):
            same = same and sets[place, label] == inside[label]
        if same:
            return
    top = max(total[0], value)
    total[0] = top + np.log(np.exp(total[0] - top) + np.exp(value - top))
    place = values.size - 1
    while place > 0 and values[place - 1] < value:
        values[place] = values[place - 1]
        for label in range(inside.size):
            sets[place, label] = sets[place - 1, label]
        place -= 1
    values[place] = value
    for label in range(inside.size):
        sets[place, label] = inside[label]


@compiled
def _try(x, problem, inside, room, found):
    """Find the value of a set that was not seen, and list it if it is good enough."""
    family, prior, temperature = problem.family, problem.prior, problem.temperature
    buffer, phi = room.buffer, room.phi
    key, size, log_prior = np.uint64(0), 0, prior.base
    for label in range(inside.size):
        if inside[label]:
            buffer[size] = label
            size += 1
            key ^= prior.label_keys[label]
            log_prior += prior.log_odds[label]
    if find_seen(prior, buffer[:size], key) < 0:
        needed = (found.values[-1] - log_prior) * temperature
        value = score(x, room.rows, buffer[:size], family, phi, needed, room.guess)
        _insert(value / temperature + log_prior, inside, found)


@compiled
def _search(x, words, problem, max_nodes, nodes, room, found):
    """Improve the listed sets until none can be better, or too many nodes were split.

    Returns a bound on the value of every set that is not listed.
    """
    status, weights, sizes, bounds, branches = nodes
    n_labels, values, trying = problem.theta.shape[1], found.values, max_nodes > 0
    fill(status[0], OUT)
    for label in problem.labels:
        status[0, label] = FREE
        weights[0, label] = 1.0 / problem.labels.size
    if problem.required >= 0:
        status[0, problem.required] = IN
    n_nodes, n_split = 0, 0
    if problem.labels.size > 1:
        sizes[0] = -2  # single labels have all been looked at
        n_nodes = _bound(x, words, problem, nodes, 0, room, found, trying)
    while n_nodes > 0:
        top = place_of_largest(bounds[:n_nodes])
        if bounds[top] <= values[-1]:
            break
        size, branch = sizes[top], branches[top]
        if size > 0 and n_split >= max_nodes:
            return max(bounds[top], values[-1])
        if n_nodes + 1 >= sizes.size:  # of its two children one takes its place
            nodes = _with_more_room(nodes)
            status, weights, sizes, bounds, branches = nodes
        n_nodes -= 1  # the last takes the place of the one that is split, which is kept behind it
        for j in range(n_labels):
            status[top, j], status[n_nodes, j] = status[n_nodes, j], status[top, j]
            weights[top, j], weights[n_nodes, j] = weights[n_nodes, j], weights[top, j]
        sizes[top], bounds[top], branches[top] = sizes[n_nodes], bounds[n_nodes], branches[n_nodes]
        mother = status[n_nodes].copy()
        guess = weights[n_nodes].copy()
        n_split += size > 0
        for child in range(2):
            for j in range(n_labels):
                status[n_nodes, j], weights[n_nodes, j] = mother[j], guess[j]
            if size > 0:
                status[n_nodes, branch] = IN if child == 0 else OUT
                sizes[n_nodes] = size
            else:
                sizes[n_nodes] = -size if child == 0 else size - 1
            n_nodes += _bound(x, words, problem, nodes, n_nodes, room, found, trying)
    return values[-1]


@compiled
def _bound(x, words, problem, nodes, node, room, found, trying):
    """Bound a new node; return 1 if it has to be kept, 0 if it is done with.

    A node with one set is done with at once: the set is tried. If ``trying``, the set that looks
    best at the weights of the bound is tried too.
    """
    theta, family, prior = problem.theta, problem.family, problem.prior
    temperature, slope, phi = problem.temperature, room.slope, room.phi
    status, weights, sizes, bounds, branches = nodes
    n_labels = theta.shape[1]
    size, open_ended = abs(sizes[node]), sizes[node] < 0
    n_in, n_free = 0, 0
    selected = np.zeros(n_labels, dtype=np.bool_)
    for j in range(n_labels):
        selected[j] = status[node, j] == IN
        n_in += status[node, j] == IN
        n_free += status[node, j] == FREE
    if (n_in > size and not open_ended) or n_in + n_free < size:
        return 0
    if not open_ended and (n_in == size or n_in + n_free == size):
        for j in range(n_labels):
            selected[j] = selected[j] or (n_in < size and status[node, j] == FREE)
        _try(x, problem, selected, room, found)
        return 0

    n_words = total_of(x)
    low, high = _limits(family.kind, status[node], size, open_ended)
    price, worth, mass = np.zeros(n_labels), np.empty(n_labels), np.empty(n_labels)
    h = weights[node]
    for j in range(n_labels):
        mass[j] = h[j]
        if family.kind == EQUAL and n_words > 0.0 and status[node, j] != OUT:
            price[j] = temperature * size / n_words * prior.log_odds[j]
    _project(mass, price, low, high, status[node], h)
    best = np.inf
    for step in range(EM_STEPS):
        for k in range(x.size):
            phi[k] = 0.0
            for j in range(n_labels):
                phi[k] += h[j] * theta[words[k], j]
        f = slopes(x, words, theta, phi[: x.size], slope)
        if open_ended:
            bound = _open_value(f, n_words, slope, high, status[node], size, problem)
        else:
            bound = _largest_value(
                f, n_words, slope, status[node], size, n_in, problem, worth, selected
            )
        bound += SLACK * (1.0 + abs(f)) / temperature
        if step > 2 and bound >= best:
            break
        best = min(best, bound)
        if best <= found.values[-1]:
            return 0
        if step + 1 < EM_STEPS:
            for j in range(n_labels):
                mass[j] = h[j] * slope[j]
            _project(mass, price, low, high, status[node], h)
    bounds[node] = best
    branches[node] = -1
    if not open_ended:
        branch, unsure = -1, -1.0
        for j in range(n_labels):
            if status[node, j] == FREE:
                doubt = min(h[j], high[j] - h[j]) + (1e-9 if selected[j] else 0.0)
                if doubt > unsure:
                    branch, unsure = j, doubt
        branches[node] = branch
        if trying:
            _try(x, problem, selected, room, found)
    return 1


@compiled
def _limits(kind, status, size, open_ended):
    """Return the least and the largest weight of each label in the sets of a node."""
    low, high = np.zeros(status.size), np.zeros(status.size)
    for j in range(status.size):
        if status[j] == OUT:
            continue
        if kind == EQUAL:
            high[j] = 1.0 / size
            if status[j] == IN and not open_ended:
                low[j] = 1.0 / size
        elif kind == BIASED:
            high[j] = (2.0 * size - 1.0) / size**2
            if status[j] == IN and not open_ended:
                low[j] = 1.0 / size**2
        else:
            high[j] = 1.0
    return low, high


@compiled
def _project(mass, price, low, high, status, h):
    """Write the weights that an EM step finds: ``clip(mass / (mu - price), low, high)``, sum 1.

    They maximise ``mass @ log(h) + price @ h``; ``mu`` is found by halving.
    """
    least, total = 0.0, 0.0
    for j in range(h.size):
        if status[j] != OUT:
            least = max(least, price[j])
            total += mass[j]
    smallest = total * 1e-9 / h.size
    first, last = least, least + 1.0
    while _weights_sum(mass, price, low, high, status, last, smallest, h) > 1.0 and last < 1e30:
        last = least + 2.0 * (last - least)
    for _halving in range(HALVINGS):
        middle = 0.5 * (first + last)
        if _weights_sum(mass, price, low, high, status, middle, smallest, h) > 1.0:
            first = middle
        else:
            last = middle
    _weights_sum(mass, price, low, high, status, last, smallest, h)


@compiled
def _weights_sum(mass, price, low, high, status, mu, smallest, h):
    total = 0.0
    for j in range(h.size):
        h[j] = 0.0
        if status[j] != OUT:
            gap = max(mu - price[j], 1e-300)
            h[j] = min(max(max(mass[j], smallest) / gap, low[j]), high[j])
            total += h[j]
    return total


@compiled
def _knapsack(slope, status, mass, cap):
    """Return the largest ``g @ slope`` with this mass and at most ``cap`` on each open label."""
    total = 0.0
    taken = np.zeros(slope.size, dtype=np.bool_)
    while mass > 1e-15:
        best = -1
        for j in range(slope.size):
            if status[j] != OUT and not taken[j] and (best < 0 or slope[j] > slope[best]):
                best = j
        if best < 0:
            break
        taken[best] = True
        part = min(mass, cap)
        total += part * slope[best]
        mass -= part
    return total


@compiled
def _open_value(f, n_words, slope, high, status, size, problem):
    """Bound the value of all sets from a size on."""
    prior, temperature = problem.prior, problem.temperature
    log_prior, n_needed = prior.base, size
    odds = np.empty(status.size)
    for j in range(status.size):
        odds[j] = NEVER
        if status[j] == IN:
            log_prior += prior.log_odds[j]
            n_needed -= 1
        elif status[j] == FREE:
            odds[j] = prior.log_odds[j]
    while True:
        j = place_of_largest(odds)
        if odds[j] == NEVER or (n_needed <= 0 and odds[j] <= 0.0):
            break
        log_prior += odds[j]
        odds[j] = NEVER
        n_needed -= 1
    value = _knapsack(slope, status, 1.0, high[place_of_largest(high)])
    return (f + n_words * np.log(value)) / temperature + log_prior


@compiled
def _largest_value(f, n_words, slope, status, size, n_in, problem, worth, selected):
    """Bound the value of all sets of a size; ``selected`` gets the one that looks best.

    A set's weights ``g`` have ``g @ slope`` at most the sum of ``worth`` over its labels, plus a
    ``rest``. A tangent of the logarithm makes the value a sum over labels too, so that the best
    ones can be picked.
    """
    prior, temperature = problem.prior, problem.temperature
    kind, _, mixing = problem.family
    rest = _worths(n_words, slope, status, size, kind, mixing, worth)
    tangent, best = 1.0, np.inf
    gains = np.empty(slope.size)
    for _step in range(TANGENTS):
        value = (f + n_words * (np.log(tangent) + rest / tangent - 1.0)) / temperature + prior.base
        for j in range(slope.size):
            gains[j] = n_words / (temperature * tangent) * worth[j] + prior.log_odds[j]
            selected[j] = status[j] == IN
            if selected[j]:
                value += gains[j]
            if status[j] != FREE:
                gains[j] = NEVER
        for _place in range(size - n_in):
            j = place_of_largest(gains)
            value += gains[j]
            gains[j] = NEVER
            selected[j] = True
        best = min(best, value)
        tangent = rest
        for j in range(slope.size):
            if selected[j]:
                tangent += worth[j]
        if not tangent > 0.0:
            break
    return best


@compiled
def _worths(n_words, slope, status, size, kind, mixing, worth):
    """Write what each label adds to ``g @ slope`` in sets of a size; return the ``rest``."""
    if mixing is None:
        power = 1 if kind == EQUAL else 2
        for j in range(slope.size):
            worth[j] = slope[j] / size**power
        if kind == EQUAL:
            return 0.0
        return _knapsack(slope, status, 1.0 - 1.0 / size, 2.0 * (size - 1.0) / size**2)
    steepest, total = 0.0, n_words
    largest = np.empty(slope.size)
    for j in range(slope.size):
        largest[j] = NEVER
        if status[j] != OUT:
            steepest = max(steepest, slope[j])
            largest[j] = mixing[j]
    for _label in range(size):
        j = place_of_largest(largest)
        total += largest[j]
        largest[j] = NEVER
    for j in range(slope.size):
        worth[j] = mixing[j] / total * (slope[j] - steepest)
    return steepest
