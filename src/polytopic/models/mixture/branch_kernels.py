"""Branch and bound over all label sets of a document, with a proof.

The search tree splits all label sets by their number of labels, then by whether they have a label.
A *node* is the collection of all sets of one size that have some labels and lack others. The log
likelihood is concave in the weights of the labels, so at any weights ``h``, where it is ``f`` and
its gradient ``N * D``, a set with weights ``g`` has at most ``f + N log(g @ D)``. The bound of a
node is the largest such number over its sets, plus log prior; a few EM steps find weights ``h``
that make it small. Nodes whose bound is below the best sets so far are dropped.

Seen sets have priors of their own, and :func:`candidate_kernels.find_candidates` has already
evaluated all of them, so the search is for the others only.

===================  =============================================================================
``status``           of each label in a node: FREE, IN or OUT
``size``             number of labels of a node's sets, or the least number if ``open_ended``
``h``                weights of all labels, where the bound of a node is taken
``f, slope``         log likelihood at ``h``, and ``D``
``low, high``        least and largest weight that a label has in any set of a node
``selected``         mask of the set that attains the bound, or nearly so
``ranking``          the best sets so far, best first
===================  =============================================================================
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled, helper
from polytopic.models.mixture.candidate_kernels import (
    NEVER,
    PRECISE,
    argmax,
    fill,
    find_candidates,
    find_seen,
    members,
    new_workspace,
    read_document,
    set_key,
    unseen_log_prior,
    value_of,
)
from polytopic.models.mixture.likelihood_kernels import (
    BIASED,
    EQUAL,
    SLACK,
    longest,
    slopes,
    total_of,
)

FREE, IN, OUT = 0, 1, 2
EM_STEPS = 12  # for the weights of a node
TANGENTS = 3  # of the logarithm, tried for the bound at some weights
HALVINGS = 60  # of the interval that contains the Lagrange multiplier
INITIAL_NODES = 16  # splits that fit before the arrays of nodes grow


class Nodes(NamedTuple):
    """Nodes that are not settled yet; a negative size ``-k`` means ``k`` labels or more."""

    status: np.ndarray
    weights: np.ndarray  # ``h``
    sizes: np.ndarray
    bounds: np.ndarray
    branches: np.ndarray  # the label to split on


class Ranking(NamedTuple):
    """The best sets so far, and the log of the total mass of all sets that were evaluated."""

    sets: np.ndarray
    values: np.ndarray
    total: np.ndarray


@compiled
def best_sets(data, indices, indptr, problem, n_best, max_nodes, sets, values, bounds, totals):
    """Find the best label sets of each document, best first, and a bound on all others.

    Equivalent, with unlimited ``max_nodes``, to::

        ranked = sorted(all_label_sets, key=value, reverse=True)
        sets[d], values[d] = ranked[:n_best], [value(y) for y in ranked[:n_best]]

    ``sets`` is an indicator (documents, n_best, labels), and ``values`` is ``-inf`` where there are
    fewer sets. No other set has a value above ``bounds``. ``totals`` gets the log of the total mass
    of the sets that were evaluated. At most ``max_nodes`` nodes of a document are split by label.
    """
    prior, n_labels = problem.prior, problem.theta.shape[1]
    work = new_workspace(prior.log_seen.size, n_labels, longest(indptr))
    nodes = _new_nodes(2 * min(max_nodes, INITIAL_NODES) + 4, n_labels)
    for d in range(indptr.size - 1):
        x, words = read_document(data, indices, indptr, d, problem.family, work)
        find_candidates(x, words, problem, PRECISE, True, n_best, work)
        best = _take_candidates(prior, work, sets[d], values[d])
        mass = 0.0
        for value in work.values:
            mass += np.exp(value - best)
        totals[d] = best + np.log(mass)
        ranking = Ranking(sets[d], values[d], totals[d : d + 1])
        bounds[d] = _search(x, words, problem, max_nodes, nodes, work, ranking)


@helper
def _take_candidates(prior, work, sets, values):
    """List the best candidates; return the value of the best."""
    fill(values, NEVER)
    remaining = work.values.copy()
    for place in range(values.size):
        code = argmax(remaining)
        if remaining[code] == NEVER:
            break
        values[place] = remaining[code]
        remaining[code] = NEVER
        for label in members(code, prior, work.center, work.buffer):
            sets[place, label] = True
    return values[0]


@helper
def _try_set(x, problem, selected, work, ranking):
    """Evaluate a set unless it is a seen set, and list it if it is good enough."""
    prior, size = problem.prior, 0
    for label in range(selected.size):
        if selected[label]:
            work.buffer[size] = label
            size += 1
    labels = work.buffer[:size]
    if find_seen(prior, labels, set_key(prior, labels)) < 0:
        log_prior = unseen_log_prior(prior, labels)
        value = value_of(x, problem, labels, log_prior, ranking.values[-1], work)
        _insert(value, selected, ranking)


@helper
def _insert(value, selected, ranking):
    """List a set, if it is better than the last listed one and not yet there."""
    sets, values, total = ranking
    if not value > values[-1]:
        return
    for place in range(values.size):
        same = values[place] > NEVER
        for label in range(selected.size):
            same = same and sets[place, label] == selected[label]
        if same:
            return
    top = max(total[0], value)
    total[0] = top + np.log(np.exp(total[0] - top) + np.exp(value - top))
    place = values.size - 1
    while place > 0 and values[place - 1] < value:
        values[place] = values[place - 1]
        for label in range(selected.size):
            sets[place, label] = sets[place - 1, label]
        place -= 1
    values[place] = value
    for label in range(selected.size):
        sets[place, label] = selected[label]


# The search


@helper
def _new_nodes(capacity, n_labels):
    return Nodes(
        np.empty((capacity, n_labels), dtype=np.int8),
        np.empty((capacity, n_labels)),
        np.empty(capacity, dtype=np.int64),
        np.empty(capacity),
        np.empty(capacity, dtype=np.int64),
    )


@helper
def _grow(nodes):
    """Return the nodes in arrays of twice the capacity."""
    capacity, n_labels = nodes.status.shape
    larger = _new_nodes(2 * capacity, n_labels)
    larger.status[:capacity] = nodes.status
    larger.weights[:capacity] = nodes.weights
    larger.sizes[:capacity] = nodes.sizes
    larger.bounds[:capacity] = nodes.bounds
    larger.branches[:capacity] = nodes.branches
    return larger


@helper
def _search(x, words, problem, max_nodes, nodes, work, ranking):
    """Split the node with the largest bound until no set can be better than those found.

    Returns a bound on the value of every set that is not listed. Splitting an open-ended node by
    size is not counted in ``max_nodes``.
    """
    values, greedy = ranking.values, max_nodes > 0
    fill(nodes.status[0], OUT)
    for label in problem.labels:
        nodes.status[0, label] = FREE
        nodes.weights[0, label] = 1.0 / problem.labels.size
    if problem.required >= 0:
        nodes.status[0, problem.required] = IN
    n_nodes, n_split = 0, 0
    if problem.labels.size > 1:
        nodes.sizes[0] = -2  # each label alone is a seen set
        n_nodes = _bound_node(x, words, problem, nodes, 0, work, ranking, greedy)
    while n_nodes > 0:
        top = argmax(nodes.bounds[:n_nodes])
        if nodes.bounds[top] <= values[-1]:
            break
        size, branch = nodes.sizes[top], nodes.branches[top]
        if size > 0 and n_split >= max_nodes:
            return max(nodes.bounds[top], values[-1])
        if n_nodes + 1 >= nodes.sizes.size:
            nodes = _grow(nodes)
        status, weights = nodes.status[top].copy(), nodes.weights[top].copy()
        n_nodes -= 1
        _move_node(nodes, n_nodes, top)
        n_split += size > 0
        for child in range(2):
            for j in range(status.size):
                nodes.status[n_nodes, j], nodes.weights[n_nodes, j] = status[j], weights[j]
            if size > 0:  # with the label, and without it
                nodes.status[n_nodes, branch] = IN if child == 0 else OUT
                nodes.sizes[n_nodes] = size
            else:  # of exactly this size, and of any larger one
                nodes.sizes[n_nodes] = -size if child == 0 else size - 1
            n_nodes += _bound_node(x, words, problem, nodes, n_nodes, work, ranking, greedy)
    return values[-1]


@helper
def _move_node(nodes, source, place):
    """Copy a node over another."""
    for j in range(nodes.status.shape[1]):
        nodes.status[place, j] = nodes.status[source, j]
        nodes.weights[place, j] = nodes.weights[source, j]
    nodes.sizes[place] = nodes.sizes[source]
    nodes.bounds[place] = nodes.bounds[source]
    nodes.branches[place] = nodes.branches[source]


@helper
def _bound_node(x, words, problem, nodes, node, work, ranking, greedy):
    """Bound a new node; return 1 if it has to be split, 0 if it is settled.

    A node is settled if it has no set, or only one, which is evaluated at once, or if none of its
    sets can be better than those found. If ``greedy``, the set that attains the bound is evaluated
    too: it is often a good one.
    """
    status, h = nodes.status[node], nodes.weights[node]
    size, open_ended = abs(nodes.sizes[node]), nodes.sizes[node] < 0
    n_in, n_free = _count(status, IN), _count(status, FREE)
    if n_in + n_free < size or (n_in > size and not open_ended):
        return 0
    selected = np.empty(status.size, dtype=np.bool_)
    if not open_ended and (n_in == size or n_in + n_free == size):
        for j in range(status.size):
            selected[j] = status[j] == IN or (n_in < size and status[j] == FREE)
        _try_set(x, problem, selected, work, ranking)
        return 0

    low, high = _weight_limits(problem.family.kind, status, size, open_ended)
    least = ranking.values[-1]
    nodes.bounds[node] = _smallest_bound(
        x, words, problem, status, size, open_ended, low, high, least, h, selected, work
    )
    if nodes.bounds[node] <= least:
        return 0
    nodes.branches[node] = -1
    if not open_ended:
        nodes.branches[node] = _most_doubtful(status, h, high, selected)
        if greedy:
            _try_set(x, problem, selected, work, ranking)
    return 1


@helper
def _count(status, kind):
    n = 0
    for one in status:
        n += one == kind
    return n


@helper
def _weight_limits(kind, status, size, open_ended):
    """Return the least and the largest weight of each label in the sets of a node.

    With ``k`` labels, PMM1 gives each ``1 / k``; PMM2 gives between ``1 / k**2`` and
    ``(2 k - 1) / k**2``, as biases are between 0 and 1; PDMM any weight.
    """
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


@helper
def _most_doubtful(status, h, high, selected):
    """Return the free label whose weight is farthest from both of its limits.

    Among equals, one of the selected set.
    """
    branch, most = -1, -1.0
    for j in range(status.size):
        if status[j] == FREE:
            doubt = min(h[j], high[j] - h[j]) + (1e-9 if selected[j] else 0.0)
            if doubt > most:
                branch, most = j, doubt
    return branch


# Bounds of nodes


@helper
def _smallest_bound(
    x, words, problem, status, size, open_ended, low, high, least, h, selected, work
):
    """Return the smallest bound on the values of a node's sets that a few EM steps find.

    Any weights give a bound. EM maximizes the likelihood within the limits, plus the log prior for
    PMM1, and the better the weights, the smaller the bound usually is. It ends when that is no
    longer so, or when the bound is at most ``least``. ``h`` is updated in place.
    """
    temperature, n_words = problem.temperature, total_of(x)
    price, mass = np.zeros(h.size), np.empty(h.size)
    for j in range(h.size):
        mass[j] = h[j]
        if problem.family.kind == EQUAL and n_words > 0.0 and status[j] != OUT:
            price[j] = temperature * size / n_words * problem.prior.log_odds[j]
    _maximize(mass, price, low, high, status, h)
    smallest = np.inf
    for step in range(EM_STEPS):
        f = _slopes_at(x, words, problem.theta, h, work)
        if open_ended:
            bound = _open_bound(f, n_words, work.slope, high, status, size, problem)
        else:
            bound = _size_bound(f, n_words, work.slope, status, size, problem, selected)
        bound += SLACK * (1.0 + abs(f)) / temperature
        if step > 2 and bound >= smallest:
            break
        smallest = min(smallest, bound)
        if smallest <= least:
            break
        if step + 1 < EM_STEPS:
            for j in range(h.size):
                mass[j] = h[j] * work.slope[j]
            _maximize(mass, price, low, high, status, h)
    return smallest


@helper
def _slopes_at(x, words, theta, h, work):
    """Write the slopes at the weights ``h`` of all labels; return ``f`` there."""
    phi = work.phi
    for k in range(x.size):
        phi[k] = 0.0
        for j in range(h.size):
            phi[k] += h[j] * theta[words[k], j]
    return slopes(x, words, theta, phi[: x.size], work.slope)


@helper
def _maximize(mass, price, low, high, status, h):
    """Write the weights that maximize ``mass @ log(h) + price @ h`` within the limits, sum 1.

    They are ``clip(mass / (mu - price), low, high)``; the Lagrange multiplier ``mu`` is found by
    halving an interval.
    """
    least, total = 0.0, 0.0
    for j in range(h.size):
        if status[j] != OUT:
            least = max(least, price[j])
            total += mass[j]
    smallest = total * 1e-9 / h.size
    first, last = least, least + 1.0
    while _weights_at(mass, price, low, high, status, last, smallest, h) > 1.0 and last < 1e30:
        last = least + 2.0 * (last - least)
    for _halving in range(HALVINGS):
        middle = 0.5 * (first + last)
        if _weights_at(mass, price, low, high, status, middle, smallest, h) > 1.0:
            first = middle
        else:
            last = middle
    _weights_at(mass, price, low, high, status, last, smallest, h)


@helper
def _weights_at(mass, price, low, high, status, mu, smallest, h):
    """Write the weights of a multiplier ``mu``; return their sum."""
    total = 0.0
    for j in range(h.size):
        h[j] = 0.0
        if status[j] != OUT:
            gap = max(mu - price[j], 1e-300)
            h[j] = min(max(max(mass[j], smallest) / gap, low[j]), high[j])
            total += h[j]
    return total


@helper
def _open_bound(f, n_words, slope, high, status, size, problem):
    """Bound the value of all sets of ``size`` labels or more.

    The largest ``g @ slope`` and the largest log prior, each by itself.
    """
    log_odds = problem.prior.log_odds
    log_prior, n_needed = problem.prior.base, size
    open_odds = np.empty(status.size)
    for j in range(status.size):
        open_odds[j] = NEVER
        if status[j] == IN:
            log_prior += log_odds[j]
            n_needed -= 1
        elif status[j] == FREE:
            open_odds[j] = log_odds[j]
    while True:  # the most likely labels, as many as needed, and all that raise the prior
        j = argmax(open_odds)
        if open_odds[j] == NEVER or (n_needed <= 0 and open_odds[j] <= 0.0):
            break
        log_prior += open_odds[j]
        open_odds[j] = NEVER
        n_needed -= 1
    steepest = _knapsack(slope, status, 1.0, high[argmax(high)])
    return (f + n_words * np.log(steepest)) / problem.temperature + log_prior


@helper
def _knapsack(slope, status, mass, cap):
    """Return the largest ``g @ slope`` with ``g.sum() == mass`` and ``0 <= g <= cap``."""
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


@helper
def _size_bound(f, n_words, slope, status, size, problem, selected):
    """Bound the value of all sets of ``size`` labels; ``selected`` gets the one that attains it.

    A set's weights ``g`` have ``g @ slope <= worth[set].sum() + rest``. The logarithm of that is
    below any of its tangents, ``log(z) <= log(t) + z / t - 1``, which makes the bound a sum over
    the labels of the set: the best ``size`` labels attain it. The best tangent touches at the ``z``
    of that set, which a few rounds approach.
    """
    prior, temperature = problem.prior, problem.temperature
    kind, _, mixing = problem.family
    worth, gains = np.empty(slope.size), np.empty(slope.size)
    rest = _worths(n_words, slope, status, size, kind, mixing, worth)
    tangent, smallest = 1.0, np.inf
    for _round in range(TANGENTS):
        bound = (f + n_words * (np.log(tangent) + rest / tangent - 1.0)) / temperature + prior.base
        n_selected = 0
        for j in range(slope.size):
            gains[j] = n_words / (temperature * tangent) * worth[j] + prior.log_odds[j]
            selected[j] = status[j] == IN
            if selected[j]:
                bound += gains[j]
                n_selected += 1
            if status[j] != FREE:
                gains[j] = NEVER
        for _label in range(size - n_selected):
            j = argmax(gains)
            bound += gains[j]
            gains[j] = NEVER
            selected[j] = True
        smallest = min(smallest, bound)
        tangent = rest
        for j in range(slope.size):
            if selected[j]:
                tangent += worth[j]
        if not tangent > 0.0:
            break
    return smallest


@helper
def _worths(n_words, slope, status, size, kind, mixing, worth):
    """Write what each label of a set adds to ``g @ slope`` at most; return the ``rest``.

    With ``k`` labels: PMM1 ``slope / k``. PMM2 ``slope / k**2``, its least weight, and the rest of
    the mass goes where it is steepest. PDMM the steepest slope of all, less the least weights of
    the labels, ``mixing / (N + mixing[set].sum())``, times what their slopes lack.
    """
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
        j = argmax(largest)
        total += largest[j]
        largest[j] = NEVER
    for j in range(slope.size):
        worth[j] = mixing[j] / total * (slope[j] - steepest)
    return steepest
