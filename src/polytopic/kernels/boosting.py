"""Boosting with rules of one word that abstain where the word is absent, a round at a time.

A document ``d`` and a label ``l`` have a weight ``D[d, l]``. A word has, for each label, the weight
of its documents with the label (``plus``) and without it (``minus``), and the best rule is that of
the word whose *gain* is largest::

    gain = ((np.sqrt(plus) - np.sqrt(minus)) ** 2).sum() = mass - 2 * np.sqrt(plus * minus).sum()

with ``mass`` the weight of its documents: Z of Schapire and Singer is ``1 - gain / total``. Where
no document of the word has a label, ``plus`` is 0, so only the other pairs of a word and a label
are kept. A round changes weights of the chosen word's documents alone, and with them the sums of
their other words.
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled

SLACK, LEAST_SLACK = 1e-6, 1e-9  # of a word's mass, of the total: more than a gain is wrong by
TIE = 1e-12  # of the total: gains that differ by less are the same
TINY = 1e-250  # no weight is less, as it takes long to compute with what is next to nothing
SHRUNK = 1e-3  # of the total at the start, below which sums of differences are too wrong


class Documents(NamedTuple):
    """Which words and labels documents have, and which documents words have."""

    words: np.ndarray
    word_ends: np.ndarray
    labels: np.ndarray
    label_ends: np.ndarray
    docs: np.ndarray  # of each word
    doc_ends: np.ndarray


class Pairs(NamedTuple):
    """Pairs of a word and a label that have a document, word by word."""

    label: np.ndarray
    ends: np.ndarray  # of each word's pairs; a word with as many as there are labels has all
    place: np.ndarray  # the pairs that each document holds, by its words and then its labels
    starts: np.ndarray  # of each document's places


class Sums(NamedTuple):
    """Sums of weights."""

    plus: np.ndarray  # of each pair, over documents with the label
    minus: np.ndarray  # without it
    mass: np.ndarray  # of each word, over its documents and all labels
    gain: np.ndarray  # of each word


@compiled
def find_places(documents, label, ends, starts, place):
    """Set ``place`` to where the pair of each word and label of a document is kept."""
    for d in range(documents.word_ends.size - 1):
        at = starts[d]
        for k in range(documents.word_ends[d], documents.word_ends[d + 1]):
            first, last = ends[documents.words[k]], ends[documents.words[k] + 1]
            for j in range(documents.label_ends[d], documents.label_ends[d + 1]):
                place[at] = first + np.searchsorted(label[first:last], documents.labels[j])
                at += 1


@compiled
def _add(documents, pairs, sums, d, change):
    """Add a change of a document's weights to the sums of its words; return its sum."""
    labels = documents.labels[documents.label_ends[d] : documents.label_ends[d + 1]]
    own, whole, at = change[labels], change.sum(), pairs.starts[d]
    change[labels] = 0.0
    for k in range(documents.word_ends[d], documents.word_ends[d + 1]):
        word = documents.words[k]
        first, last = pairs.ends[word], pairs.ends[word + 1]
        minus = sums.minus[first:last]
        if minus.size == change.size:
            for label in range(change.size):
                minus[label] += change[label]
        else:
            label_of = pairs.label[first:last]
            for p in range(minus.size):
                minus[p] += change[label_of[p]]
        for j in range(own.size):
            sums.plus[pairs.place[at]] += own[j]
            at += 1
        sums.mass[word] += whole
    return whole


@compiled
def _set_gain(pairs, sums, word):
    """Set the gain of a word by its sums, which may have fallen a little below zero."""
    shared = 0.0
    for p in range(pairs.ends[word], pairs.ends[word + 1]):
        product = sums.plus[p] * sums.minus[p]
        if product > 0.0:
            shared += np.sqrt(product)
    sums.gain[word] = sums.mass[word] - 2.0 * shared


@compiled
def add_up(documents, pairs, D, sums):
    """Bring the weights to a total of 1, and set the sums by them."""
    D /= D.sum()
    sums.plus[:] = 0.0
    sums.minus[:] = 0.0
    sums.mass[:] = 0.0
    for d in range(D.shape[0]):
        _add(documents, pairs, sums, d, D[d].copy())
    for word in range(sums.gain.size):
        _set_gain(pairs, sums, word)


@compiled
def _weigh(documents, D, word, plus, minus):
    """Set the sums of one word for all labels by its documents; return its gain."""
    plus[:] = 0.0
    minus[:] = 0.0
    for k in range(documents.doc_ends[word], documents.doc_ends[word + 1]):
        d = documents.docs[k]
        labels = documents.labels[documents.label_ends[d] : documents.label_ends[d + 1]]
        weights, own = D[d], D[d][labels]
        weights[labels] = 0.0  # taken away afterwards, they would leave an error
        for label in range(minus.size):
            minus[label] += weights[label]
        weights[labels] = own
        for j in range(own.size):
            plus[labels[j]] += own[j]
    gain = 0.0
    for label in range(minus.size):
        root = np.sqrt(plus[label]) - np.sqrt(minus[label])
        gain += root * root
    return gain


@compiled
def _best_word(documents, D, sums, total, plus, minus):
    """Return the word with the largest gain, by its documents; the first of equal ones, or -1."""
    least, best = 0.0, TIE * total
    for word in range(sums.gain.size):
        slack = SLACK * sums.mass[word] + LEAST_SLACK * total
        least = max(least, sums.gain[word] - slack)
    for word in range(sums.gain.size):
        slack = SLACK * sums.mass[word] + LEAST_SLACK * total
        if sums.gain[word] + slack >= least:
            sums.gain[word] = _weigh(documents, D, word, plus, minus)
            best = max(best, sums.gain[word])
    for word in range(sums.gain.size):
        if sums.gain[word] >= best - TIE * total and sums.gain[word] > TIE * total:
            return word
    return -1


@compiled
def _reweigh(documents, D, d, up, change):
    """Multiply a document's weights, by ``up`` without a label, and else by what undoes it."""
    labels = documents.labels[documents.label_ends[d] : documents.label_ends[d + 1]]
    weights = D[d]
    own = weights[labels]
    for label in range(up.size):
        after = max(weights[label] * up[label], TINY)
        change[label] = after - weights[label]
        weights[label] = after
    for j in range(own.size):
        after = max(own[j] / up[labels[j]], TINY)
        change[labels[j]] = after - own[j]
        weights[labels[j]] = after


@compiled
def boost(documents, pairs, D, sums, smoothing, total_weight, words, outputs, z):
    """Add a rule in each round, to ``words``, ``outputs`` and ``z``; return how many were added.

    ``total_weight`` has the total of the weights, and is brought up to date. Rules are fewer than
    there is room for where the weights have shrunk so much that sums should be added up again, or
    no further rule is of use.
    """
    total, n_labels, n_words = total_weight[0], D.shape[1], sums.gain.size
    plus, minus, change = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    touched, seen = np.empty(n_words, np.int64), np.full(n_words, -1)
    for step in range(words.size):
        word = _best_word(documents, D, sums, total, plus, minus)
        if word < 0 or total < SHRUNK:
            return step
        _weigh(documents, D, word, plus, minus)
        epsilon, before, n_touched = smoothing * total, total, 0
        outputs[step] = 0.5 * np.log((plus + epsilon) / (minus + epsilon))
        up = np.exp(outputs[step])
        for k in range(documents.doc_ends[word], documents.doc_ends[word + 1]):
            d = documents.docs[k]
            _reweigh(documents, D, d, up, change)
            total += _add(documents, pairs, sums, d, change)
            for j in range(documents.word_ends[d], documents.word_ends[d + 1]):
                other = documents.words[j]
                if seen[other] != step:
                    seen[other], touched[n_touched] = step, other
                    n_touched += 1
        for j in range(n_touched):
            _set_gain(pairs, sums, touched[j])
        words[step], z[step], total_weight[0] = word, total / before, total
    return words.size
