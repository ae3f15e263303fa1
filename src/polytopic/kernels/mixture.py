"""Loops of the models that mix the word distributions of a document's labels.

Everywhere: documents are rows of a CSR matrix given as ``data, indices, indptr``; label sets are
rows of a CSR indicator given as ``sets, sets_indptr``; ``theta`` is word-major, (n_words,
n_labels), so that one word's labels lie side by side.
"""

import numpy as np
from numba import njit

LARGE = 1e100  # its cube is still a float


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def log_likelihoods(data, indices, indptr, sets, sets_indptr, theta, out):
    """Write the log likelihood of each document under its label set's equal mixture.

    Equivalent, for a document ``x`` with labels ``L`` (Ueda & Saito, Eq. (3)), to::

        out[d] = x @ np.log(theta[:, L].mean(axis=1))
    """
    for d in range(indptr.size - 1):
        labels = sets[sets_indptr[d] : sets_indptr[d + 1]]
        total = 0.0
        for k in range(indptr[d], indptr[d + 1]):
            mass = 0.0
            for label in labels:
                mass += theta[indices[k], label]
            total += data[k] * np.log(mass / labels.size)
        out[d] = total


@njit(cache=True, nogil=True)
def word_shares(indices, indptr, sets, sets_indptr, theta, out):
    """Write how much of each word each label of the document's set says, document by document.

    Equivalent, for a document with words ``w`` and labels ``L`` (Eq. (18)), to writing::

        theta[w][:, L] / theta[w][:, L].sum(axis=1, keepdims=True)
    """
    place = 0
    for d in range(indptr.size - 1):
        labels = sets[sets_indptr[d] : sets_indptr[d + 1]]
        for k in range(indptr[d], indptr[d + 1]):
            mass = 0.0
            for label in labels:
                mass += theta[indices[k], label]
            for label in labels:
                out[place] = theta[indices[k], label] / mass
                place += 1


# Greedy search


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _best_extension(data, indices, first, last, theta, allowed, size, phi, work):
    """Return the label that raises the likelihood most, and by how much; -1 if none does.

    With ``r = theta / phi``, a label gains ``sum(x * log(1 + r)) - N log((k + 1) / k)``. By
    Jensen's inequality the sum is at most ``n log(1 + sum(x * r) / n)``, for all words together
    and for any two groups of them: here those that the labels so far make rarer or more common
    than the document's mean. Labels whose bound is above zero are visited by falling bound, until
    it is below the best gain.
    """
    inverse, ratios, candidates, bounds = work
    n_words = 0.0
    mass = 0.0
    for k in range(first, last):
        inverse[k - first] = 1.0 / phi[k - first]
        n_words += data[k]
        mass += data[k] * phi[k - first]
    n_rare = 0.0
    ratios[:] = 0.0
    for k in range(first, last):
        word = indices[k]
        group = 0
        if phi[k - first] * n_words < mass:
            group = 1
            n_rare += data[k]
        factor = data[k] * inverse[k - first]
        for label in range(allowed.size):
            ratios[group, label] += factor * theta[word, label]

    growth = n_words * np.log((size + 1.0) / size)
    n_common = max(n_words - n_rare, 1e-300)
    n_rare = max(n_rare, 1e-300)
    n_candidates = 0
    for label in range(allowed.size):
        common, rare = ratios[0, label], ratios[1, label]
        if common + rare > n_words / size and allowed[label]:
            bound = n_common * np.log(1.0 + common / n_common)
            bound += n_rare * np.log(1.0 + rare / n_rare)
            if bound > growth:
                candidates[n_candidates] = label
                bounds[n_candidates] = bound - growth
                n_candidates += 1

    best, best_gain = -1, 0.0
    while n_candidates > 0:
        place = 0
        for j in range(1, n_candidates):
            if bounds[j] > bounds[place]:
                place = j
        if bounds[place] < best_gain * (1.0 - 1e-9):
            break
        label = candidates[place]
        n_candidates -= 1
        candidates[place] = candidates[n_candidates]
        bounds[place] = bounds[n_candidates]
        gain = _log_ratio(data, indices, first, last, theta, label, inverse) - growth
        if gain > best_gain or (gain == best_gain and -1 < label < best):
            best, best_gain = label, gain
    return best, best_gain


@njit(cache=True, nogil=True)
def greedy_sets(data, indices, indptr, theta, log_theta, allowed, scores, chosen, out):
    """Find each document's label set by greedy search (Ueda & Saito, section 3.3).

    Equivalent, for a document ``x``, to::

        L = []
        while True:
            gains = [loglik(x, L + [c]) for c in allowed labels outside L]
            stop unless max(gains) > loglik(x, L)
            L.append(argmax(gains))

    ``scores`` (zeros at first) get the log likelihoods of the single labels, ``chosen`` the label
    sets as an indicator, ``out`` their log likelihoods. The best single label is always chosen.
    """
    add_scores(data, indices, indptr, log_theta, scores)
    n_labels = theta.shape[1]
    longest = _longest(indptr)
    phi, inverse = np.empty(longest), np.empty(longest)
    candidates = np.empty(n_labels, dtype=np.int64)
    work = inverse, np.empty((2, n_labels)), candidates, np.empty(n_labels)
    free = allowed.copy()
    for d in range(indptr.size - 1):
        first, last = indptr[d], indptr[d + 1]
        label = -1
        for other in range(n_labels):
            if allowed[other] and (label < 0 or scores[d, other] > scores[d, label]):
                label = other
        out[d] = scores[d, label]
        phi[: last - first] = 0.0
        size = 0
        while label >= 0:
            chosen[d, label] = True
            free[label] = False
            size += 1
            for k in range(first, last):
                phi[k - first] += theta[indices[k], label]
            label = -1
            if first < last:
                label, gain = _best_extension(
                    data, indices, first, last, theta, free, size, phi, work
                )
                out[d] += gain
        free[:] = allowed


@njit(cache=True, nogil=True)
def neighbour_sets(data, indices, indptr, theta, allowed, chosen, base, out):
    """Write the log likelihood of each set that differs from the chosen one by a single label.

    Equivalent, for a document ``x`` with chosen labels ``L`` and each label ``c``, to
    ``out[d, c] = loglik(x, L ^ {c})``; ``-inf`` where that set is empty or not allowed.
    """
    inverse = np.empty(_longest(indptr))
    for d in range(indptr.size - 1):
        first, last = indptr[d], indptr[d + 1]
        n_words = 0.0
        for k in range(first, last):
            n_words += data[k]
        labels = np.flatnonzero(chosen[d])
        _inverse_mass(indices, first, last, theta, labels, -1, inverse)
        growth = n_words * np.log((labels.size + 1.0) / labels.size)
        for label in range(theta.shape[1]):
            out[d, label] = -np.inf
            if allowed[label] and not chosen[d, label]:
                ratio = _log_ratio(data, indices, first, last, theta, label, inverse)
                out[d, label] = base[d] + ratio - growth
        if labels.size > 1:
            shrinkage = n_words * np.log((labels.size - 1.0) / labels.size)
            for label in labels:
                _inverse_mass(indices, first, last, theta, labels, label, inverse)
                ratio = _log_ratio(data, indices, first, last, theta, label, inverse)
                out[d, label] = base[d] - ratio - shrinkage


@njit(cache=True, nogil=True)
def _inverse_mass(indices, first, last, theta, labels, left_out, out):
    """Write each word's ``1 / theta[word, labels].sum()`` without the label that is left out."""
    for k in range(first, last):
        mass = 0.0
        for label in labels:
            if label != left_out:
                mass += theta[indices[k], label]
        out[k - first] = 1.0 / mass


@njit(cache=True, nogil=True)
def _longest(indptr):
    """Return the largest number of distinct words in a document."""
    longest = 0
    for d in range(indptr.size - 1):
        longest = max(longest, indptr[d + 1] - indptr[d])
    return longest


# EM on the table


@njit(cache=True)
def count_slots(words_indptr, rows, sets, sets_indptr, n_labels):
    """Return how many distinct labels each word has among its label sets, as an ``indptr``.

    Words are columns of a CSC matrix given as ``rows, words_indptr``, its rows label sets.
    """
    slots_indptr = np.zeros(words_indptr.size, dtype=np.int64)
    seen = np.full(n_labels, -1)
    for word in range(words_indptr.size - 1):
        n_slots = 0
        for k in range(words_indptr[word], words_indptr[word + 1]):
            for j in range(sets_indptr[rows[k]], sets_indptr[rows[k] + 1]):
                if seen[sets[j]] != word:
                    seen[sets[j]] = word
                    n_slots += 1
        slots_indptr[word + 1] = slots_indptr[word] + n_slots
    return slots_indptr


@njit(cache=True)
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


@njit(cache=True, nogil=True)
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
