"""Likelihoods of mixtures: EM on the table, scores of label sets, and upper bounds on them.

Equation numbers are those of Ueda & Saito (2002) for PMM and of Sato & Nakagawa (2007) for PDMM.

===================  =============================================================================
``theta``            (n_words, n_labels): probability of a word under a label, word-major
``x, words``         a document: counts of its words, and their rows of ``theta``
``n_words``, ``N``   length of the document, ``x.sum()``
``labels``           a label set ``y``: an array of columns, in ascending order
``rows``             (n_labels, distinct words): ``theta`` of one document, label-major
``weights``, ``h``   weights of the labels of a set; they sum to 1
``phi``              probability of each word under the weighted labels, Eq. (1): ``h @ rows[y]``
``bias``             alpha of PMM2, Eq. (5): ``bias[l, m] + bias[m, l] == 1``
``mixing``           alpha of PDMM: parameters of the Dirichlet prior of the weights
``gamma``            parameters of the Dirichlet posterior of the weights
``f, slope``         log likelihood at some weights, and ``D``, its gradient divided by ``N``
``entry``            a stored count of the table: a label set with several labels, and a word
``slot``             a word and one of the labels that may have produced it
===================  =============================================================================
"""

import math
from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled, helper, inlined
from polytopic.kernels.special import digamma

EQUAL, BIASED, BOUND, PAPER = range(4)
SMALL, LARGE = 1e-150, 1e150  # the product of two is still a finite float
SLACK = 1e-9  # allowance for rounding in a bound, relative to the log likelihood
CACHE_LINE = 8  # float64 numbers
MAX_REPEATS = 3  # words with a count up to this are listed once per occurrence
VB_STEPS = 2000
TIGHT = 1e-11  # variational Bayes ends when gamma changes by less, relative to its sum
LOOSE = 1e-9  # enough for the bound, which changes with the square of gamma's change
NEW_SHARE = 0.1  # initial share of a label that joins labels with known weights


class Family(NamedTuple):
    """How the labels of a set are mixed.

    ======  =================================================================================
    EQUAL   all labels have the same weight (PMM1)
    BIASED  weights follow from pairwise biases, ``bias`` (PMM2)
    BOUND   weights have a Dirichlet prior, ``mixing``; score is the evidence lower bound (PDMM)
    PAPER   the same prior; score is the likelihood at the mean weights, Eq. (35)
    ======  =================================================================================

    ``bias`` and ``mixing`` are None where they do not apply, so that numba drops their branches.
    """

    kind: int
    bias: np.ndarray | None = None
    mixing: np.ndarray | None = None


# EM on the table


@compiled
def count_slots(words_indptr, rows, sets, sets_indptr, n_labels, slots_indptr):
    """Count the distinct labels of each word, as an ``indptr``.

    Words are the columns of a CSC matrix ``rows, words_indptr``, whose rows are label sets. With
    ``Y`` the indicator of the sets, equivalent to::

        np.diff(slots_indptr) == [Y[rows_of_word].any(axis=0).sum() for each word]
    """
    slots_indptr[0] = 0
    last_word = np.full(n_labels, -1)
    for word in range(words_indptr.size - 1):
        n_slots = 0
        for k in range(words_indptr[word], words_indptr[word + 1]):
            for j in range(sets_indptr[rows[k]], sets_indptr[rows[k] + 1]):
                if last_word[sets[j]] != word:
                    last_word[sets[j]] = word
                    n_slots += 1
        slots_indptr[word + 1] = slots_indptr[word] + n_slots


@compiled
def fill_slots(words_indptr, rows, sets, sets_indptr, slots_indptr, slot_label, entry_slot):
    """Assign numbers to the slots, word by word, in order of appearance.

    ``slot_label`` gets the label of each slot, and ``entry_slot`` the slots of each entry, one per
    label of its set. Equivalent to::

        pairs = [(word, label) for each word for each of its sets y for label in y]
        slots = list(dict.fromkeys(pairs))
        slot_label[:] = [label for _, label in slots]
        entry_slot[:] = [slots.index(pair) for pair in pairs]
    """
    n_labels = 0
    for j in range(sets.size):
        n_labels = max(n_labels, sets[j] + 1)
    slot = np.zeros(n_labels, dtype=np.int64)
    last_word = np.full(n_labels, -1)
    place = 0
    for word in range(words_indptr.size - 1):
        free = slots_indptr[word]
        for k in range(words_indptr[word], words_indptr[word + 1]):
            for j in range(sets_indptr[rows[k]], sets_indptr[rows[k] + 1]):
                label = sets[j]
                if last_word[label] != word:
                    last_word[label] = word
                    slot[label] = free
                    slot_label[free] = label
                    free += 1
                entry_slot[place] = slot[label]
                place += 1


@compiled
def expected_counts(counts, entry_slot, entry_indptr, theta, out):
    """Distribute each entry's count over its slots; return the entries' log likelihood.

    Equivalent, for each entry with count ``x`` and slots ``s`` (Eq. (18), (21)), to::

        out[s] += x * theta[s] / theta[s].sum()

    Returns the sum of ``x * log(theta[s].sum())``.
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
    counts, entry_slot, entry_indptr, entry_set, sets_indptr, weights, theta, out, label_words
):
    """Distribute each entry's count over its slots, with weighted labels.

    Equivalent, for each entry with count ``x``, slots ``s`` and weights ``c`` of its set
    (Eq. (16)), to::

        g = c * theta[s] / (c @ theta[s])
        out[s] += x * g
        label_words[set] += x * g

    Returns the sum of ``x * log(c @ theta[s])``.
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
            label_words[first + j] += part
        total += counts[entry] * np.log(mass)
    return total


@compiled
def bias_weights(sets, sets_indptr, bias, out):
    """Write the weight of each label of each set.

    Equivalent, for a set ``y`` of ``k`` labels (Eq. (4), (5) with ``h = 1 / k``), to
    ``out[y] = 2 / k**2 * bias[np.ix_(y, y)].sum(axis=1)``.
    """
    for row in range(sets_indptr.size - 1):
        size = sets_indptr[row + 1] - sets_indptr[row]
        for i in range(sets_indptr[row], sets_indptr[row + 1]):
            total = 0.0
            for j in range(sets_indptr[row], sets_indptr[row + 1]):
                total += bias[sets[i], sets[j]]
            out[i] = 2.0 * total / size**2


@compiled
def bias_counts(sets, sets_indptr, bias, weights, label_words, out):
    """Add the expected words of each label next to each other label: the sums of Eq. (17).

    Equivalent, for each set of ``k`` labels with weights ``c`` that produced ``R`` words, to
    ``out[l, m] += bias[l, m] * R[l] / (k**2 * c[l])``.
    """
    for row in range(sets_indptr.size - 1):
        size = sets_indptr[row + 1] - sets_indptr[row]
        for i in range(sets_indptr[row], sets_indptr[row + 1]):
            part = label_words[i] / (size**2 * weights[i])
            for j in range(sets_indptr[row], sets_indptr[row + 1]):
                out[sets[i], sets[j]] += bias[sets[i], sets[j]] * part


# Words of one document


@helper
def longest(indptr):
    """Return the largest number of distinct words of a document: ``np.diff(indptr).max()``."""
    largest = 0
    for d in range(indptr.size - 1):
        largest = max(largest, indptr[d + 1] - indptr[d])
    return largest


@helper
def total_of(values):
    """Return ``values.sum()``, added up in order."""
    total = 0.0
    for value in values:
        total += value
    return total


@inlined
def log_product(x, values):
    """Return ``x @ np.log(values)``.

    Factors are multiplied as long as the product is a normal float, so that few logarithms are
    taken; words with count 1 go eight at a time, which is why :func:`repeat_words` puts them first.
    """
    total, product, k = 0.0, 1.0, 0
    while k + 8 <= x.size and _are_ones(x, k):
        one, two = values[k] * values[k + 1], values[k + 2] * values[k + 3]
        three, four = values[k + 4] * values[k + 5], values[k + 6] * values[k + 7]
        factor = (one * two) * (three * four)
        if not SMALL < factor < LARGE:
            break
        product *= factor
        if not SMALL < product < LARGE:
            total += np.log(product)
            product = 1.0
        k += 8
    while k < x.size:
        factor = _power(values[k], x[k])
        if SMALL < factor < LARGE:
            product *= factor
        else:
            total += x[k] * np.log(values[k])
        if not SMALL < product < LARGE:
            total += np.log(product)
            product = 1.0
        k += 1
    return total + np.log(product)


@inlined
def _are_ones(x, k):
    """Return whether eight counts from ``k`` on are 1: ``np.all(x[k : k + 8] == 1)``."""
    ones = True
    for j in range(k, k + 8):
        ones &= x[j] == 1.0  # branch-free: numba counts references to x at every branch
    return ones


@inlined
def _power(value, count):
    """Return ``value**count`` for counts up to 5, and 0 for any other."""
    square = value * value
    if count == 1.0:
        return value
    if count == 2.0:
        return square
    if count == 3.0:
        return square * value
    if count == 4.0:
        return square * square
    if count == 5.0:
        return square * square * value
    return 0.0


@helper
def repeat_words(x, words, repeats, wide_x, wide_words):
    """Return a document whose rare words are listed once per occurrence, with count 1, and first.

    Words with whole counts up to ``repeats`` are repeated, the others keep their counts.
    ``wide_x`` and ``wide_words`` are buffers of ``repeats`` times as many words. Equivalent to::

        rare = (x <= repeats) & (x == x.astype(int))
        wide_words = np.concatenate([np.repeat(words[rare], x[rare].astype(int)), words[~rare]])
        wide_x = np.concatenate([np.ones(int(x[rare].sum())), x[~rare]])
    """
    size = 0
    for k in range(x.size):
        if x[k] <= repeats and x[k] == int(x[k]):
            for _ in range(int(x[k])):
                wide_x[size], wide_words[size] = 1.0, words[k]
                size += 1
    for k in range(x.size):
        if not (x[k] <= repeats and x[k] == int(x[k])):
            wide_x[size], wide_words[size] = x[k], words[k]
            size += 1
    return wide_x[:size], wide_words[:size]


@helper
def gather(words, theta, labels, rows):
    """Copy a document's word probabilities: ``rows[labels, :n] = theta[words][:, labels].T``.

    One cache line of words at a time.
    """
    whole = words.size - words.size % CACHE_LINE
    for first in range(0, whole, CACHE_LINE):
        for label in labels:
            for k in range(first, first + CACHE_LINE):
                rows[label, k] = theta[words[k], label]
    for k in range(whole, words.size):
        for label in labels:
            rows[label, k] = theta[words[k], label]


@helper
def _mix(rows, labels, weights, phi, n):
    """Write the probabilities of ``n`` words: ``phi[:n] = weights @ rows[labels, :n]``."""
    for k in range(n):
        mass = 0.0
        for j in range(labels.size):
            mass += weights[j] * rows[labels[j], k]
        phi[k] = mass


# Scores of label sets


@helper
def _set_weights(labels, bias, weights):
    """Write the weight of each label of a set (PMM1: Eq. (3); PMM2: Eq. (4), (5)).

    ``1 / k`` for each of ``k`` labels or, with biases,
    ``2 / k**2 * bias[np.ix_(labels, labels)].sum(axis=1)``.
    """
    for j in range(labels.size):
        if bias is None:
            weights[j] = 1.0 / labels.size
        else:
            total = 0.0
            for label in labels:
                total += bias[labels[j], label]
            weights[j] = 2.0 * total / labels.size**2


@inlined
def log_likelihood(x, rows, labels, family, phi, needed, guess):
    """Return the log likelihood of a document under a label set, or PDMM's lower bound of it.

    Equivalent to ``x @ np.log(weights @ rows[labels])`` with the weights of the family. ``phi`` is
    a buffer; it is left with the probabilities of the words, up to a factor. If the result turns
    out to be below ``needed``, it may be ``-inf`` instead. ``guess`` holds Dirichlet parameters of
    labels to start variational Bayes from, 0 where there are none.
    """
    kind, bias, mixing = family
    return _log_likelihood(x, rows, labels, kind, bias, mixing, phi, needed, guess)


@inlined
def _log_likelihood(x, rows, labels, kind, bias, mixing, phi, needed, guess):
    if bias is None:
        if mixing is None:
            return _equal_log_likelihood(x, rows, labels, phi)
        if labels.size == 1 or x.size == 0:
            return _equal_log_likelihood(x, rows, labels, phi)
        return _dirichlet_score(x, rows, labels, kind, mixing, phi, needed, guess)
    weights = np.empty(labels.size)
    _set_weights(labels, bias, weights)
    _mix(rows, labels, weights, phi, x.size)
    return log_product(x, phi)


@helper
def _dirichlet_score(x, rows, labels, kind, mixing, phi, needed, guess):
    """Return the evidence lower bound, or Eq. (35), the likelihood at the mean weights."""
    gamma = np.empty(labels.size)
    for j in range(labels.size):
        gamma[j] = guess[labels[j]]
    tolerance = LOOSE if kind == BOUND else TIGHT
    bound = variational_bayes(x, rows, labels, mixing, gamma, phi, needed, tolerance)
    if kind == BOUND or bound == -np.inf:
        return bound
    total = total_of(gamma)
    for j in range(gamma.size):
        gamma[j] /= total
    _mix(rows, labels, gamma, phi, x.size)
    return log_product(x, phi)


@inlined
def _equal_log_likelihood(x, rows, labels, phi):
    """Return ``x @ np.log(rows[labels].mean(axis=0))``."""
    inverse, first = 1.0 / labels.size, labels[0]  # indexing is faster than views of rows
    for k in range(x.size):
        phi[k] = rows[first, k]
    for j in range(1, labels.size):
        label = labels[j]
        for k in range(x.size):
            phi[k] += rows[label, k]
    for k in range(x.size):
        phi[k] *= inverse
    return log_product(x, phi)


@compiled
def log_likelihoods(data, indices, indptr, sets, sets_indptr, theta, family, out):
    """Write the :func:`log_likelihood` of each document under its label set, ``-inf`` if empty.

    Equivalent, for each document ``d`` with words ``w``, label set ``y`` and the weights ``h`` of
    the family, to ``out[d] = x @ np.log(theta[w][:, y] @ h)``; of the kind BOUND, to the evidence
    lower bound of :func:`variational_bayes`.
    """
    phi = np.empty(longest(indptr))
    rows = np.empty((theta.shape[1], phi.size))
    guess = np.zeros(theta.shape[1])
    for d in range(indptr.size - 1):
        x, words = data[indptr[d] : indptr[d + 1]], indices[indptr[d] : indptr[d + 1]]
        labels = sets[sets_indptr[d] : sets_indptr[d + 1]]
        out[d] = -np.inf
        if labels.size > 0:
            gather(words, theta, labels, rows)
            out[d] = log_likelihood(x, rows, labels, family, phi, -np.inf, guess)


@compiled
def label_weights(data, indices, indptr, sets, sets_indptr, theta, bias, mixing, out):
    """Write the weights ``c`` of each document's labels that :func:`word_shares` needs.

    Equivalent to ``1 / k`` for each of ``k`` labels; with biases to
    ``2 / k**2 * bias[np.ix_(labels, labels)].sum(axis=1)`` (Ueda & Saito, Eq. (4), (5)); and with a
    Dirichlet prior to ``np.exp(digamma(gamma) - digamma(gamma.sum()))``, the exponents of Sato &
    Nakagawa, Eq. (30).
    """
    t = np.empty(longest(indptr))
    rows = np.empty((theta.shape[1], t.size))
    for d in range(indptr.size - 1):
        labels = sets[sets_indptr[d] : sets_indptr[d + 1]]
        weights = out[sets_indptr[d] : sets_indptr[d + 1]]
        _set_weights(labels, bias, weights)
        if mixing is not None:
            x, words = data[indptr[d] : indptr[d + 1]], indices[indptr[d] : indptr[d + 1]]
            if labels.size > 1 and x.size > 0:
                gamma = np.zeros(labels.size)
                gather(words, theta, labels, rows)
                variational_bayes(x, rows, labels, mixing, gamma, t, -np.inf, TIGHT)
                center = digamma(total_of(gamma))
                for j in range(labels.size):
                    weights[j] = np.exp(digamma(gamma[j]) - center)


# Variational Bayes (Sato & Nakagawa 2007, section 4.3)


@helper
def variational_step(x, theta, prior, gamma, exponents, t, out):
    """Take a step of Eq. (29), (30) from ``gamma`` to ``out``; return two bounds at ``gamma``.

    ``theta`` holds the document's words by the labels of the set. Equivalent to::

        exponents = np.exp(digamma(gamma) - digamma(gamma.sum()))
        t = theta @ exponents
        out = prior + exponents * (theta.T @ (x / t))

    The first result is the evidence lower bound, Eq. (21)–(25) with the misprint in (24) corrected,
    for this ``gamma`` and the best ``phi``. The second is an upper bound on the log likelihood at
    any weights of the labels.
    """
    n_labels, n_words = gamma.size, 0.0
    total, prior_total, bound = 0.0, 0.0, 0.0
    for j in range(n_labels):
        total += gamma[j]
        prior_total += prior[j]
    center = digamma(total)
    mass = 0.0
    for j in range(n_labels):
        logarithm = digamma(gamma[j]) - center
        exponents[j] = np.exp(logarithm)
        mass += exponents[j]
        bound += (prior[j] - gamma[j]) * logarithm
        bound += math.lgamma(gamma[j]) - math.lgamma(prior[j])
        out[j] = 0.0
    bound += math.lgamma(prior_total) - math.lgamma(total)
    for k in range(x.size):
        value = 0.0
        for j in range(n_labels):
            value += theta[k, j] * exponents[j]
        t[k] = value
        factor = x[k] / value
        n_words += x[k]
        for j in range(n_labels):
            out[j] += factor * theta[k, j]
    largest = 0.0
    for j in range(n_labels):
        largest = max(largest, out[j])
        out[j] = prior[j] + exponents[j] * out[j]
    likelihood = log_product(x, t)
    return bound + likelihood, likelihood + n_words * np.log(largest / n_words)


@helper
def variational_bayes(x, rows, labels, mixing, gamma, t, needed, tolerance):
    """Find the Dirichlet posterior ``gamma`` of a set's weights; return the evidence lower bound.

    Iterates :func:`variational_step` to its fixed point, with SQUAREM jumps along two steps that
    may not lower the bound (Varadhan & Roland 2008). ``gamma`` holds the start, zeros for equal
    weights; iteration ends when a step changes ``gamma`` by at most ``tolerance`` of its sum. It is
    abandoned, and ``-inf`` returned, as soon as no weights of these labels can reach the log
    likelihood ``needed``. ``t`` is left with the words' part of the bound, ``x @ np.log(t)``.
    """
    n_labels = labels.size
    theta = np.empty((x.size, n_labels))
    for k in range(x.size):
        for j in range(n_labels):
            theta[k, j] = rows[labels[j], k]
    prior = np.empty(n_labels)
    n_words = total_of(x)
    for j in range(n_labels):
        prior[j] = mixing[labels[j]]
    _complete_start(gamma, prior, n_words)
    exponents, once, twice = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    jump = np.empty(n_labels)
    total = n_words + total_of(prior)
    for _cycle in range(VB_STEPS):
        bound, reachable = variational_step(x, theta, prior, gamma, exponents, t, once)
        if _distance(gamma, once) <= tolerance * total:
            return bound
        if reachable + SLACK * (1.0 + abs(reachable)) < needed:
            return -np.inf
        bound, _ = variational_step(x, theta, prior, once, exponents, t, twice)
        change, bend = 0.0, 0.0
        for j in range(n_labels):
            change += (once[j] - gamma[j]) ** 2
            bend += (twice[j] - 2.0 * once[j] + gamma[j]) ** 2
        length = max(1.0, np.sqrt(change / bend)) if bend > 0.0 else 1.0
        for j in range(n_labels):
            step = once[j] - gamma[j]
            curve = twice[j] - once[j] - step
            jump[j] = max(gamma[j] + 2.0 * length * step + length**2 * curve, prior[j])
        factor = total / total_of(jump)
        for j in range(n_labels):
            jump[j] *= factor
        reached, _ = variational_step(x, theta, prior, jump, exponents, t, gamma)
        if not reached >= bound:
            for j in range(n_labels):
                gamma[j] = twice[j]
    return variational_step(x, theta, prior, gamma, exponents, t, once)[0]


@helper
def _complete_start(gamma, prior, n_words):
    """Scale a start to the document's length; labels without a guess get a small share.

    Without any guess, all labels get the same share.
    """
    guessed = 0.0
    for j in range(gamma.size):
        guessed += max(gamma[j] - prior[j], 0.0)
    total = 0.0
    for j in range(gamma.size):
        if guessed == 0.0:
            gamma[j] = 1.0
        elif gamma[j] == 0.0:
            gamma[j] = NEW_SHARE * n_words
        else:
            gamma[j] = max(gamma[j] - prior[j], 0.0)
        total += gamma[j]
    for j in range(gamma.size):
        gamma[j] = prior[j] + gamma[j] * n_words / total


@helper
def guess_weights(x, rows, labels, mixing, guess):
    """Write the Dirichlet posterior of a set into ``guess``, zeros elsewhere.

    Only zeros if a parameter is below 1: the bound may then have several maxima, and every set must
    start from equal weights to reach the same one each time.
    """
    for label in range(guess.size):
        guess[label] = 0.0
    if mixing is not None and labels.size > 1 and x.size > 0 and _smallest(mixing) >= 1.0:
        gamma, t = np.zeros(labels.size), np.empty(x.size)
        variational_bayes(x, rows, labels, mixing, gamma, t, -np.inf, LOOSE)
        for j in range(labels.size):
            guess[labels[j]] = gamma[j]


@helper
def _smallest(values):
    smallest = values[0]
    for value in values:
        smallest = min(smallest, value)
    return smallest


@helper
def _distance(one, other):
    """Return ``np.abs(one - other).max()``."""
    largest = 0.0
    for j in range(one.size):
        largest = max(largest, abs(one[j] - other[j]))
    return largest


# Upper bounds
#
# The log likelihood is concave in the weights of the labels. With f its value at some weights, and
# N * D its gradient there, every weighting h has at most f + N * log(h @ D).


@helper
def slopes(x, words, theta, phi, out):
    """Write ``D`` of all labels where the words have probabilities ``phi``; return ``f``.

    Equivalent to ``out[:] = theta[words].T @ (x / phi) / x.sum()`` (ones for an empty document),
    and returns ``x @ np.log(phi)``.
    """
    for label in range(out.size):
        out[label] = 0.0
    n_words = total_of(x)
    for k in range(x.size):
        factor = x[k] / phi[k] / n_words
        for label in range(out.size):
            out[label] += factor * theta[words[k], label]
    if n_words == 0.0:
        for label in range(out.size):
            out[label] = 1.0
    return log_product(x, phi)


@inlined
def set_bound(f, n_words, slope, labels, family):
    """Return an upper bound on the :func:`log_likelihood` of a set, from :func:`slopes`.

    Equivalent to ``f + N * np.log(h @ slope[labels])`` with the set's weights ``h``, plus slack.
    """
    return bound_at(f, n_words, steepness(n_words, slope, labels, family))


@inlined
def bound_at(f, n_words, steep):
    """Return the upper bound of a set with :func:`steepness` ``steep``: ``f + N log(steep)``."""
    return f + n_words * np.log(steep) + SLACK * (1.0 + abs(f))


@inlined
def steepness(n_words, slope, labels, family):
    """Return ``h @ slope[labels]`` with the weights ``h`` of a set, or an upper bound on it.

    The mean of a Dirichlet posterior gives each label at least ``mixing / (N + mixing.sum())``, so
    at best the rest goes to the steepest label. The evidence also pays for every label that is less
    steep than the steepest, see :func:`_log_evidence_bound`.
    """
    kind, bias, mixing = family
    return _steepness(n_words, slope, labels, kind, bias, mixing)


@helper
def set_steepness(n_words, slope, sets, indptr, family, out):
    """Write the :func:`steepness` of many sets, rows of a CSR indicator."""
    kind, bias, mixing = family
    _set_steepness(n_words, slope, sets, indptr, kind, bias, mixing, out)


@helper
def _set_steepness(n_words, slope, sets, indptr, kind, bias, mixing, out):
    for row in range(indptr.size - 1):
        first, last = indptr[row], indptr[row + 1]
        if bias is None:  # noqa: SIM102  (numba drops a branch on None only if it stands alone)
            if mixing is None:  # as _steepness, without the cost of an array per set
                value = 0.0
                for j in range(first, last):
                    value += slope[sets[j]]
                out[row] = value / (last - first)
                continue
        out[row] = _steepness(n_words, slope, sets[first:last], kind, bias, mixing)


@inlined
def _steepness(n_words, slope, labels, kind, bias, mixing):
    value = 0.0
    if bias is not None:
        for label in labels:
            total = 0.0
            for other in labels:
                total += bias[label, other]
            value += 2.0 * total / labels.size**2 * slope[label]
        return value
    if mixing is None:
        for label in labels:
            value += slope[label]
        return value / labels.size
    total, steepest = 0.0, 0.0
    for label in labels:
        total += mixing[label]
        steepest = max(steepest, slope[label])
    value = steepest
    for label in labels:
        value -= mixing[label] / (n_words + total) * (steepest - slope[label])
    if kind == BOUND and n_words > 0.0:
        log_mean = _log_evidence_bound(n_words, slope, labels, mixing, total, steepest)
        value = min(value, steepest * np.exp(log_mean / n_words))
    return value


@helper
def _log_evidence_bound(n_words, slope, labels, mixing, total, steepest):
    """Return an upper bound on ``log E (h @ slope / steepest)**N`` under the Dirichlet prior.

    With ``u = 1 - slope / steepest`` it is at most the sum of ``log E exp(-N u h)`` over the
    labels, since Dirichlet weights are negatively associated (Joag-Dev and Proschan 1983). The
    weight of a label is Beta(a, b), and as ``(1 - h)**(b - 1) <= exp(-(b - 1) h)`` for ``b >= 1``,
    each term is at most ``log(gamma(a + b) / gamma(b)) - a * log(N u + b - 1)``.
    """
    bound = 0.0
    for label in labels:
        rest = total - mixing[label]
        rate = n_words * (1.0 - slope[label] / steepest) + rest - 1.0
        if rest >= 1.0 and rate > 0.0:
            term = math.lgamma(total) - math.lgamma(rest) - mixing[label] * np.log(rate)
            bound += min(term, 0.0)
    return bound
