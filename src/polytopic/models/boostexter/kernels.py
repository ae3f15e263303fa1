"""Compiled loops of real AdaBoost.MH with one-word rules that abstain if the word is absent.

==========  ==========================================================================
``D``       weight of each document and label, (n_docs, n_labels)
``total``   ``D.sum()``
``plus``    weight of a word's documents that have a label
``minus``   weight of a word's documents that do not have a label
``mass``    weight of a word's documents, over all labels
``gain``    of a word: ``((np.sqrt(plus) - np.sqrt(minus)) ** 2).sum()`` over labels
``Z``       of Schapire and Singer: ``1 - gain / total``
==========  ==========================================================================

The best rule is that of the word with the largest gain. If none of a word's documents has a label,
``plus`` is 0 and the label adds ``minus`` to the gain; so sums are kept only for the *pairs* of a
word and a label that occur together, and ``gain = mass - 2 * np.sqrt(plus * minus).sum()``. A round
changes the weights of the best word's documents, and with them the sums of their other words.
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled, helper

SLACK, LEAST_SLACK = 1e-6, 1e-9  # of a word's mass and of the total: exceed the error of a gain
TIE = 1e-12  # of the total: gains that differ by less are equal
TINY = 1e-250  # smallest weight: subnormal numbers are slow
SHRUNK = 1e-3  # of the initial total, below which updated sums are too inexact


class Documents(NamedTuple):
    """Words and labels of documents, and documents of words, as CSR and CSC indices."""

    words: np.ndarray
    word_ends: np.ndarray
    labels: np.ndarray
    label_ends: np.ndarray
    docs: np.ndarray
    doc_ends: np.ndarray


class Pairs(NamedTuple):
    """Pairs of a word and a label that occur together, sorted by word."""

    label: np.ndarray
    ends: np.ndarray  # pairs of word w: ends[w] to ends[w + 1]; if n_labels many, all labels
    position: np.ndarray  # the pairs in each document, by its words and then by its labels
    starts: np.ndarray  # where the positions of each document begin


class Sums(NamedTuple):
    """Sums of weights."""

    plus: np.ndarray  # of each pair
    minus: np.ndarray  # of each pair
    mass: np.ndarray  # of each word
    gain: np.ndarray  # of each word


@compiled
def locate_pairs(documents, label, ends, starts, position):
    """Set ``position`` to the pairs of each document, by its words and then by its labels.

    Equivalent, for the ``k``-th word ``w`` and the ``j``-th of ``M`` labels ``l`` of document
    ``d``, to::

        position[starts[d] + k * M + j] = ends[w] + list(label[ends[w] : ends[w + 1]]).index(l)
    """
    for d in range(documents.word_ends.size - 1):
        at = starts[d]
        for k in range(documents.word_ends[d], documents.word_ends[d + 1]):
            first, last = ends[documents.words[k]], ends[documents.words[k] + 1]
            for j in range(documents.label_ends[d], documents.label_ends[d + 1]):
                position[at] = first + np.searchsorted(label[first:last], documents.labels[j])
                at += 1


@compiled
def sum_weights(documents, pairs, D, sums):
    """Normalize the weights, and set the sums from them.

    Equivalent, with ``X`` and ``Y`` the boolean words and labels of documents, to::

        D /= D.sum()
        plus, minus = X.T @ (D * Y), X.T @ (D * ~Y)  # restricted to pairs
        mass = X.T @ D.sum(axis=1)
        gain = mass - 2 * np.sqrt(plus * minus).sum(axis=1)
    """
    D /= D.sum()
    sums.plus[:] = 0.0
    sums.minus[:] = 0.0
    sums.mass[:] = 0.0
    for d in range(D.shape[0]):
        _add_change(documents, pairs, sums, d, D[d].copy())
    for word in range(sums.gain.size):
        _set_gain(pairs, sums, word)


@helper
def _add_change(documents, pairs, sums, d, change):
    """Add a change of a document's weights to the sums of its words; return its total."""
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
            sums.plus[pairs.position[at]] += own[j]
            at += 1
        sums.mass[word] += whole
    return whole


@helper
def _set_gain(pairs, sums, word):
    """Set the gain of a word from its sums, which may be slightly negative."""
    shared = 0.0
    for p in range(pairs.ends[word], pairs.ends[word + 1]):
        product = sums.plus[p] * sums.minus[p]
        if product > 0.0:
            shared += np.sqrt(product)
    sums.gain[word] = sums.mass[word] - 2.0 * shared


@compiled
def add_rules(documents, pairs, D, sums, smoothing, total_weight, words, outputs, z):
    """Boost one rule per round into ``words``, ``outputs`` and ``z``; return how many.

    ``D``, ``sums`` and ``total_weight[0]`` are updated. A round is equivalent to::

        word = gain.argmax()
        epsilon = smoothing * total
        output = 0.5 * np.log((plus[word] + epsilon) / (minus[word] + epsilon))
        D[X[:, word]] *= np.exp(np.where(Y[X[:, word]], -output, output))
        z = D.sum() / total

    Rounds end early if no rule has a gain, or if the weights have shrunk so much that
    :func:`sum_weights` should be called again.
    """
    total, n_labels, n_words = total_weight[0], D.shape[1], sums.gain.size
    plus, minus, change = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    touched, seen = np.empty(n_words, np.int64), np.full(n_words, -1)
    for step in range(words.size):
        word = _best_word(documents, D, sums, total, plus, minus)
        if word < 0 or total < SHRUNK:
            return step
        _exact_gain(documents, D, word, plus, minus)
        epsilon, before, n_touched = smoothing * total, total, 0
        outputs[step] = 0.5 * np.log((plus + epsilon) / (minus + epsilon))
        up = np.exp(outputs[step])
        for k in range(documents.doc_ends[word], documents.doc_ends[word + 1]):
            d = documents.docs[k]
            _reweigh(documents, D, d, up, change)
            total += _add_change(documents, pairs, sums, d, change)
            for j in range(documents.word_ends[d], documents.word_ends[d + 1]):
                other = documents.words[j]
                if seen[other] != step:
                    seen[other], touched[n_touched] = step, other
                    n_touched += 1
        for j in range(n_touched):
            _set_gain(pairs, sums, touched[j])
        words[step], z[step], total_weight[0] = word, total / before, total
    return words.size


@helper
def _best_word(documents, D, sums, total, plus, minus):
    """Return the first word with the largest gain, or -1 if there is no gain.

    The gains of all words that may have the largest one are computed from their documents.
    """
    least, best = 0.0, TIE * total
    for word in range(sums.gain.size):
        slack = SLACK * sums.mass[word] + LEAST_SLACK * total
        least = max(least, sums.gain[word] - slack)
    for word in range(sums.gain.size):
        slack = SLACK * sums.mass[word] + LEAST_SLACK * total
        if sums.gain[word] + slack >= least:
            sums.gain[word] = _exact_gain(documents, D, word, plus, minus)
            best = max(best, sums.gain[word])
    for word in range(sums.gain.size):
        if sums.gain[word] >= best - TIE * total and sums.gain[word] > TIE * total:
            return word
    return -1


@helper
def _exact_gain(documents, D, word, plus, minus):
    """Set ``plus`` and ``minus`` of one word for all labels, by its documents; return its gain."""
    plus[:] = 0.0
    minus[:] = 0.0
    for k in range(documents.doc_ends[word], documents.doc_ends[word + 1]):
        d = documents.docs[k]
        labels = documents.labels[documents.label_ends[d] : documents.label_ends[d + 1]]
        weights, own = D[d], D[d][labels]
        weights[labels] = 0.0  # subtracting them afterwards would leave a rounding error
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


@helper
def _reweigh(documents, D, d, up, change):
    """Multiply the weights of a document by ``up``, or divide them for its own labels.

    ``change`` gets the difference.
    """
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
