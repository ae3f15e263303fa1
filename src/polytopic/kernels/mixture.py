"""Loops of the models that mix the word distributions of a document's labels.

Everywhere: documents are rows of a CSR matrix given as ``data, indices, indptr``; label sets are
rows of a CSR indicator given as ``sets, sets_indptr``; ``theta`` is word-major, (n_words,
n_labels), so that one word's labels lie side by side.
"""

import numpy as np

from polytopic.kernels import compiled

LARGE = 1e100  # its cube is still a float
ROUNDING = 2.0**-23  # of float32, twice over
LOG, PLAIN = 0, 1


@compiled
def add_scores(data, indices, indptr, log_theta, out):
    """Add each label's log likelihood to ``out``.

    Equivalent to ``out += X @ log_theta``.
    """
    for d in range(indptr.size - 1):
        for k in range(indptr[d], indptr[d + 1]):
            word = indices[k]
            x = data[k]
            for label in range(log_theta.shape[1]):
                out[d, label] += x * log_theta[word, label]


@compiled
def word_shares(indices, indptr, sets, sets_indptr, weights, theta, out):
    """Write how much of each word each label of the document's set says, document by document.

    Equivalent, for a document with words ``w``, labels ``L`` and their weights ``c`` (Eq. (18)),
    to writing::

        c * theta[w][:, L] / (theta[w][:, L] @ c)[:, None]
    """
    place = 0
    for d in range(indptr.size - 1):
        for k in range(indptr[d], indptr[d + 1]):
            mass = 0.0
            for j in range(sets_indptr[d], sets_indptr[d + 1]):
                mass += weights[j] * theta[indices[k], sets[j]]
            for j in range(sets_indptr[d], sets_indptr[d + 1]):
                out[place] = weights[j] * theta[indices[k], sets[j]] / mass
                place += 1


# Greedy search


@compiled
def _log_ratio(data, indices, first, last, theta, label, inverse):
    """Return ``sum(x * log(1 + theta[:, label] * inverse))`` over a document's words.

    Factors are multiplied as long as they fit, so that few logarithms are taken.
    """
    total = 0.0
    product = 1.0
    for k in range(first, last):
        ratio = 1.0 + theta[indices[k], label] * inverse[k - first]
        x = data[k]
        if x == 1.0 and ratio < LARGE:
            product *= ratio
        elif x == 2.0 and ratio < LARGE:
            product *= ratio * ratio
        else:
            total += x * np.log(ratio)
        if product > LARGE:
            total += np.log(product)
            product = 1.0
    return total + np.log(product)


@compiled
def _best_single(data, indices, first, last, log_theta, rough, allowed, scores):
    """Return the label with the best score.

    Rough scores come first; if rounding leaves several labels, these are scored exactly.
    """
    scores[:] = 0.0
    for k in range(first, last):
        word, x = indices[k], rough.dtype.type(data[k])
        for label in range(scores.size):
            scores[label] += x * rough[word, LOG, label]
    top = -np.inf
    for label in range(scores.size):
        if allowed[label] and scores[label] > top:
            top = scores[label]
    least = top - 2.0 * (last - first + 4) * ROUNDING * abs(top)
    best, n_contenders = -1, 0
    for label in range(scores.size):
        if allowed[label] and scores[label] >= least:
            best = label
            n_contenders += 1
    if n_contenders == 1:
        return best
    best_score = -np.inf
    for label in range(scores.size):  # without contenders, float32 was too small for the counts
        if allowed[label] and (scores[label] >= least or n_contenders == 0):
            score = _score(data, indices, first, last, log_theta, label)
            if score > best_score:
                best, best_score = label, score
    return best


@compiled
def _score(data, indices, first, last, log_theta, label):
    """Return the log likelihood of a document under one label."""
    score = 0.0
    for k in range(first, last):
        score += data[k] * log_theta[indices[k], label]
    return score


@compiled
def _best_extension(data, indices, first, last, theta, rough, allowed, size, phi, work):
    """Return the label that raises the likelihood most, -1 if none does.

    With ``r = theta / phi``, a label gains ``sum(x * log(1 + r)) - N log((k + 1) / k)``. As
    ``log(1 + r) = 2 log(sqrt(1 + r))``, by Jensen's inequality the sum is at most
    ``2 N log(sum(x * sqrt(1 + r)) / N)``, a much tighter bound than without the root. Labels
    whose bound is above zero are visited by falling bound, until it is below the best gain; those
    that rounding may have kept from being the best are then compared exactly.
    """
    inverse, roots, candidates, bounds = work
    plain = rough[:, PLAIN]
    one = rough.dtype.type(1.0)
    n_words = 0.0
    roots[:] = 0.0
    for k in range(first, last):
        word = indices[k]
        n_words += data[k]
        inverse[k - first] = 1.0 / phi[k - first]
        x, factor = rough.dtype.type(data[k]), rough.dtype.type(inverse[k - first])
        for label in range(roots.size):
            roots[label] += x * np.sqrt(one + factor * rough[word, PLAIN, label])

    growth = n_words * np.log((size + 1.0) / size)
    rounding = 1.0 + (last - first + 4) * ROUNDING
    least = n_words * np.sqrt((size + 1.0) / size) / rounding
    n_candidates = 0
    for label in range(roots.size):
        if roots[label] > least and allowed[label]:
            candidates[n_candidates] = label
            bounds[n_candidates] = 2 * n_words * np.log(roots[label] * rounding / n_words) - growth
            n_candidates += 1

    # rough gains take the places of the bounds, from the end on
    n_open, top, slack = n_candidates, 0.0, n_words * ROUNDING
    while n_open > 0:
        place = 0
        for j in range(1, n_open):
            if bounds[j] > bounds[place]:
                place = j
        if bounds[place] < top - slack:
            break
        n_open -= 1
        label = candidates[place]
        gain = _log_ratio(data, indices, first, last, plain, label, inverse) - growth
        candidates[place], bounds[place] = candidates[n_open], bounds[n_open]
        candidates[n_open], bounds[n_open] = label, gain
        top = max(top, gain)

    best, best_gain = -1, 0.0
    for j in range(n_open, n_candidates):
        if bounds[j] >= top - 2.0 * slack:
            gain = _log_ratio(data, indices, first, last, theta, candidates[j], inverse) - growth
            if gain > best_gain or (gain == best_gain and -1 < candidates[j] < best):
                best, best_gain = candidates[j], gain
    return best


@compiled
def greedy_sets(data, indices, indptr, theta, log_theta, rough, allowed, chosen):
    """Find each document's label set by greedy search (Ueda & Saito, section 3.3).

    Equivalent, for a document ``x``, to::

        L = []
        while True:
            gains = [loglik(x, L + [c]) for c in allowed labels outside L]
            stop unless max(gains) > loglik(x, L)
            L.append(argmax(gains))

    ``chosen`` gets the label sets as an indicator. The best single label is always chosen.
    ``rough[:, LOG]`` and ``rough[:, PLAIN]`` are the same tables side by
    side, in any precision from float32 on: read to leave labels out, never to decide.
    """
    n_labels = theta.shape[1]
    longest = _longest(indptr)
    phi, inverse = np.empty(longest), np.empty(longest)
    scores, roots = np.empty(n_labels, dtype=rough.dtype), np.empty(n_labels, dtype=rough.dtype)
    work = inverse, roots, np.empty(n_labels, dtype=np.int64), np.empty(n_labels)
    free = allowed.copy()
    for d in range(indptr.size - 1):
        first, last = indptr[d], indptr[d + 1]
        label = _best_single(data, indices, first, last, log_theta, rough, allowed, scores)
        phi[: last - first] = 0.0
        size = 0
        while label >= 0:
            chosen[d, label] = True
            free[label] = False
            size += 1
            for k in range(first, last):
                phi[k - first] += theta[indices[k], label]
            label = _best_extension(data, indices, first, last, theta, rough, free, size, phi, work)
        free[:] = allowed


@compiled
def _longest(indptr):
    """Return the largest number of distinct words in a document."""
    longest = 0
    for d in range(indptr.size - 1):
        longest = max(longest, indptr[d + 1] - indptr[d])
    return longest


# EM on the table


@compiled
def count_slots(words_indptr, rows, sets, sets_indptr, n_labels, slots_indptr):
    """Count the distinct labels that each word has among its label sets, as an ``indptr``.

    Words are columns of a CSC matrix given as ``rows, words_indptr``, its rows label sets.
    """
    slots_indptr[0] = 0
    seen = np.full(n_labels, -1)
    for word in range(words_indptr.size - 1):
        n_slots = 0
        for k in range(words_indptr[word], words_indptr[word + 1]):
            for j in range(sets_indptr[rows[k]], sets_indptr[rows[k] + 1]):
                if seen[sets[j]] != word:
                    seen[sets[j]] = word
                    n_slots += 1
        slots_indptr[word + 1] = slots_indptr[word] + n_slots


@compiled
def fill_slots(words_indptr, rows, sets, sets_indptr, slots_indptr, slot_label, entry_slot):
    """Give each pair of a word and a label its slot, and each entry the slots of its labels."""
    n_labels = 0
    for j in range(sets.size):
        n_labels = max(n_labels, sets[j] + 1)
    slot = np.zeros(n_labels, dtype=np.int64)
    seen = np.full(n_labels, -1)
    place = 0
    for word in range(words_indptr.size - 1):
        free = slots_indptr[word]
        for k in range(words_indptr[word], words_indptr[word + 1]):
            for j in range(sets_indptr[rows[k]], sets_indptr[rows[k] + 1]):
                label = sets[j]
                if seen[label] != word:
                    seen[label] = word
                    slot[label] = free
                    slot_label[free] = label
                    free += 1
                entry_slot[place] = slot[label]
                place += 1


@compiled
def expected_counts(counts, entry_slot, entry_indptr, theta, out):
    """Share each entry's count among its slots, and return the entries' log likelihood.

    Equivalent, for each entry with count ``x`` and slots ``s`` (Eq. (18), (21)), to::

        out[s] += x * theta[s] / theta[s].sum()

    and the sum of ``x * log(theta[s].sum())`` is returned.
    """
    total = 0.0
    for entry in range(entry_indptr.size - 1):
        mass = 0.0
        for j in range(entry_indptr[entry], entry_indptr[entry + 1]):
            mass += theta[entry_slot[j]]
        factor = counts[entry] / mass
        for j in range(entry_indptr[entry], entry_indptr[entry + 1]):
            out[entry_slot[j]] += factor * theta[entry_slot[j]]
        total += counts[entry] * np.log(mass)
    return total


@compiled
def biased_counts(
    counts, entry_slot, entry_indptr, entry_set, sets_indptr, weights, theta, out, said
):
    """Share each entry's count among its slots, by weights of the labels in each label set.

    Equivalent, for each entry with count ``x``, slots ``s`` and set weights ``c``, to::

        g = c * theta[s] / (c @ theta[s])
        out[s] += x * g
        said[set] += x * g

    and the sum of ``x * log(c @ theta[s])`` is returned.
    """
    total = 0.0
    for entry in range(entry_indptr.size - 1):
        first = sets_indptr[entry_set[entry]] - entry_indptr[entry]
        mass = 0.0
        for j in range(entry_indptr[entry], entry_indptr[entry + 1]):
            mass += weights[first + j] * theta[entry_slot[j]]
        factor = counts[entry] / mass
        for j in range(entry_indptr[entry], entry_indptr[entry + 1]):
            part = factor * weights[first + j] * theta[entry_slot[j]]
            out[entry_slot[j]] += part
            said[first + j] += part
        total += counts[entry] * np.log(mass)
    return total


@compiled
def bias_weights(sets, sets_indptr, bias, out):
    """Write the weight of each label of each set: ``2 / k**2 * bias[l, labels].sum()``."""
    for row in range(sets_indptr.size - 1):
        size = sets_indptr[row + 1] - sets_indptr[row]
        for i in range(sets_indptr[row], sets_indptr[row + 1]):
            total = 0.0
            for j in range(sets_indptr[row], sets_indptr[row + 1]):
                total += bias[sets[i], sets[j]]
            out[i] = 2.0 * total / size**2


@compiled
def bias_counts(sets, sets_indptr, bias, weights, said, out):
    """Add how many words each label says beside each other one, the sums of Eq. (17).

    Equivalent, for each set of ``k`` labels with weights ``c`` that said ``R`` words, to
    ``out[l, m] += bias[l, m] * R[l] / (k**2 * c[l])``.
    """
    for row in range(sets_indptr.size - 1):
        size = sets_indptr[row + 1] - sets_indptr[row]
        for i in range(sets_indptr[row], sets_indptr[row + 1]):
            part = said[i] / (size**2 * weights[i])
            for j in range(sets_indptr[row], sets_indptr[row + 1]):
                out[sets[i], sets[j]] += bias[sets[i], sets[j]] * part
