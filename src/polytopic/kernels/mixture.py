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
def _log_ratio(data, indices, first, last, theta, label, phi):
    """Return ``sum(x * log((phi + theta[:, label]) / phi))`` over a document's words.

    Factors are multiplied as long as they fit, so that few logarithms are taken.
    """
    total = 0.0
    product = 1.0
    for k in range(first, last):
        ratio = 1.0 + theta[indices[k], label] / phi[k - first]
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
def _best_extension(data, indices, first, last, theta, allowed, chosen, size, phi, gain_bound):
    """Return the label that raises the likelihood most, and by how much.

    A label's gain is at most ``N log(1 + d/N) - N log((k + 1)/k)`` by Jensen's inequality, with
    ``d = sum(x * theta / phi)``; labels are visited by falling bound until it is below the best.
    """
    n_words = 0.0
    gain_bound[:] = 0.0
    for k in range(first, last):
        n_words += data[k]
        factor = data[k] / phi[k - first]
        for label in range(gain_bound.size):
            gain_bound[label] += factor * theta[indices[k], label]
    growth = n_words * np.log((size + 1.0) / size)
    floor = n_words / size * (1.0 - 1e-9)  # a smaller d cannot gain, rounding allowed for
    for label in range(gain_bound.size):
        d = gain_bound[label]
        if chosen[label] or not allowed[label] or d < floor:
            gain_bound[label] = -np.inf
        else:
            gain_bound[label] = n_words * np.log1p(d / n_words) - growth

    best, best_gain = -1, -np.inf
    while True:
        label = np.argmax(gain_bound)
        bound = gain_bound[label]
        if bound == -np.inf or bound < best_gain - 1e-9 * (1.0 + abs(best_gain)):
            return best, best_gain
        gain_bound[label] = -np.inf
        gain = _log_ratio(data, indices, first, last, theta, label, phi) - growth
        if gain > best_gain or (gain == best_gain and label < best):
            best, best_gain = label, gain


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
    gain_bound = np.empty(theta.shape[1])
    phi = np.empty(_longest(indptr))
    for d in range(indptr.size - 1):
        first, last = indptr[d], indptr[d + 1]
        best = -1
        for label in range(theta.shape[1]):
            if allowed[label] and (best < 0 or scores[d, label] > scores[d, best]):
                best = label
        chosen[d, best] = True
        out[d] = scores[d, best]
        for k in range(first, last):
            phi[k - first] = theta[indices[k], best]
        size = 1
        while first < last:
            label, gain = _best_extension(
                data, indices, first, last, theta, allowed, chosen[d], size, phi, gain_bound
            )
            if not gain > 0.0:
                break
            chosen[d, label] = True
            out[d] += gain
            size += 1
            for k in range(first, last):
                phi[k - first] += theta[indices[k], label]


@njit(cache=True, nogil=True)
def neighbour_sets(data, indices, indptr, theta, allowed, chosen, base, out):
    """Write the log likelihood of each set that differs from the chosen one by a single label.

    Equivalent, for a document ``x`` with chosen labels ``L`` and each label ``c``, to
    ``out[d, c] = loglik(x, L ^ {c})``; ``-inf`` where that set is empty or not allowed.
    """
    phi = np.empty(_longest(indptr))
    for d in range(indptr.size - 1):
        first, last = indptr[d], indptr[d + 1]
        n_words = 0.0
        for k in range(first, last):
            n_words += data[k]
        labels = np.flatnonzero(chosen[d])
        _mass(indices, first, last, theta, labels, -1, phi)
        growth = n_words * np.log((labels.size + 1.0) / labels.size)
        for label in range(theta.shape[1]):
            out[d, label] = -np.inf
            if allowed[label] and not chosen[d, label]:
                ratio = _log_ratio(data, indices, first, last, theta, label, phi)
                out[d, label] = base[d] + ratio - growth
        if labels.size > 1:
            shrinkage = n_words * np.log((labels.size - 1.0) / labels.size)
            for label in labels:
                _mass(indices, first, last, theta, labels, label, phi)
                ratio = _log_ratio(data, indices, first, last, theta, label, phi)
                out[d, label] = base[d] - ratio - shrinkage


@njit(cache=True, nogil=True)
def _mass(indices, first, last, theta, labels, left_out, phi):
    """Write each word's ``theta[word, labels].sum()`` without the label that is left out."""
    for k in range(first, last):
        mass = 0.0
        for label in labels:
            if label != left_out:
                mass += theta[indices[k], label]
        phi[k - first] = mass


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
