"""Scores of label sets, and bounds on them, for one document.

A document is its counts ``x`` and its ``words``, rows of the word-major ``theta``. Scores read
``rows``, label-major: ``rows[label, k]`` is the probability of the document's ``k``-th word. A
label set is an array of labels.
"""

import math
from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled

EQUAL, BIASED, BOUND, PAPER = range(4)
SMALL, LARGE = 1e-150, 1e150  # products of two are still floats
SLACK = 1e-9  # what rounding may take from a bound, relative to the log likelihood
TOGETHER = 8  # words whose probabilities are copied side by side, as many as fetched at once
REPEATED = 3  # occurrences of a word up to which it is gone through once for each
VB_STEPS = 2000
TIGHT = 1e-11  # change of a weight at which variational Bayes ends, beside the document's length
LOOSE = 1e-9  # the same where the bound alone counts: its own change is of the second order
NEW_SHARE = 0.1  # of a document, for a label that joins others whose weights are known


class Family(NamedTuple):
    """How the labels of a set are mixed.

    ======  =================================================================================
    EQUAL   all labels weigh the same (PMM1)
    BIASED  labels weigh by pairwise biases, ``bias[l, m] + bias[m, l] == 1`` (PMM2)
    BOUND   weights have a Dirichlet prior ``mixing``; the lower bound of the evidence (PDMM)
    PAPER   the same; the likelihood of the mean weights, Sato & Nakagawa, Eq. (35)
    ======  =================================================================================

    What a kind does not need is None: its code is then not compiled.
    """

    kind: int
    bias: np.ndarray | None = None
    mixing: np.ndarray | None = None


@compiled
def log_product(x, values):
    """Return ``x @ np.log(values)``.

    Factors are multiplied as long as they fit, so that few logarithms are taken; eight at once of
    words that occur once, which is why :func:`spread` puts them first.
    """
    total, product, k = 0.0, 1.0, 0
    while k + 8 <= x.size and _all_once(x, k):
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


@compiled
def _all_once(x, k):
    """Tell whether eight words occur once."""
    first = x[k] == x[k + 1] == x[k + 2] == x[k + 3] == 1.0
    return first and x[k + 4] == x[k + 5] == x[k + 6] == x[k + 7] == 1.0


@compiled
def _power(value, count):
    """Return ``value**count`` for counts up to 5, and 0 for others."""
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


@compiled
def spread(x, words, repeated, wide_x, wide_words):
    """Return a document with words of few occurrences as often as they occur, once each, first.

    ``wide_x`` and ``wide_words`` are room for ``repeated`` times as many words: those that occur
    more often, or not a whole number of times, stay as they are.
    """
    size = 0
    for k in range(x.size):
        if x[k] <= repeated and x[k] == int(x[k]):
            for _ in range(int(x[k])):
                wide_x[size], wide_words[size] = 1.0, words[k]
                size += 1
    for k in range(x.size):
        if not (x[k] <= repeated and x[k] == int(x[k])):
            wide_x[size], wide_words[size] = x[k], words[k]
            size += 1
    return wide_x[:size], wide_words[:size]


@compiled
def gather(words, theta, labels, rows):
    """Write the probabilities of a document's words under some labels: ``theta[words, label]``."""
    whole = words.size - words.size % TOGETHER
    for first in range(0, whole, TOGETHER):
        for label in labels:
            for k in range(first, first + TOGETHER):
                rows[label, k] = theta[words[k], label]
    for k in range(whole, words.size):
        for label in labels:
            rows[label, k] = theta[words[k], label]


@compiled
def mixed(rows, labels, weights, phi, n_words):
    """Write the probabilities of the first words under weighted labels."""
    for k in range(n_words):
        mass = 0.0
        for j in range(labels.size):
            mass += weights[j] * rows[labels[j], k]
        phi[k] = mass


@compiled
def set_weights(labels, bias, weights):
    """Write the weight of each label of a set (PMM1: Eq. (3); PMM2: Eq. (4) and (5)).

    With ``k`` labels and ``h = 1 / k``, a bias gives label ``l`` the weight
    ``2 h**2 * bias[l, labels].sum()``.
    """
    for j in range(labels.size):
        if bias is None:
            weights[j] = 1.0 / labels.size
        else:
            total = 0.0
            for label in labels:
                total += bias[labels[j], label]
            weights[j] = 2.0 * total / labels.size**2


@compiled
def score(x, rows, labels, family, phi, needed, guess):
    """Return the log likelihood (or its lower bound) of a document under a label set.

    ``phi`` is room for a number a word; it is left with the words' probabilities, up to a factor.
    If it turns out on the way that the score is below ``needed``, the answer may be ``-inf``.
    ``guess`` may hold Dirichlet parameters of labels, to start from; 0 stands for none.
    """
    kind, bias, mixing = family
    return _score(x, rows, labels, kind, bias, mixing, phi, needed, guess)


@compiled
def _score(x, rows, labels, kind, bias, mixing, phi, needed, guess):
    if bias is None:
        if mixing is None:
            return _equal_score(x, rows, labels, phi)
        if labels.size == 1 or x.size == 0:
            return _equal_score(x, rows, labels, phi)
        return _dirichlet_score(x, rows, labels, kind, mixing, phi, needed, guess)
    weights = np.empty(labels.size)
    set_weights(labels, bias, weights)
    mixed(rows, labels, weights, phi, x.size)
    return log_product(x, phi)


@compiled
def _dirichlet_score(x, rows, labels, kind, mixing, phi, needed, guess):
    gamma = np.empty(labels.size)
    for j in range(labels.size):
        gamma[j] = guess[labels[j]]
    close = LOOSE if kind == BOUND else TIGHT
    bound = variational(x, rows, labels, mixing, gamma, phi, needed, close)
    if kind == BOUND or bound == -np.inf:
        return bound
    total = total_of(gamma)
    for j in range(gamma.size):
        gamma[j] /= total
    mixed(rows, labels, gamma, phi, x.size)
    return log_product(x, phi)


@compiled
def total_of(values):
    """Return the sum of an array, in order."""
    total = 0.0
    for value in values:
        total += value
    return total


@compiled
def _equal_score(x, rows, labels, phi):
    """Return ``x @ np.log(rows[labels].mean(axis=0))``."""
    inverse, first = 1.0 / labels.size, labels[0]  # views of rows would take longer
    if labels.size == 1:
        for k in range(x.size):
            phi[k] = rows[first, k]
    elif labels.size == 2:
        second = labels[1]
        for k in range(x.size):
            phi[k] = (rows[first, k] + rows[second, k]) * inverse
    else:
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
def scores(data, indices, indptr, sets, sets_indptr, theta, family, out):
    """Write the score of each document under its label set; ``-inf`` without a label."""
    phi = np.empty(longest(indptr))
    rows = np.empty((theta.shape[1], phi.size))
    guess = np.zeros(theta.shape[1])
    for d in range(indptr.size - 1):
        x, words = data[indptr[d] : indptr[d + 1]], indices[indptr[d] : indptr[d + 1]]
        labels = sets[sets_indptr[d] : sets_indptr[d + 1]]
        out[d] = -np.inf
        if labels.size > 0:
            gather(words, theta, labels, rows)
            out[d] = score(x, rows, labels, family, phi, -np.inf, guess)


@compiled
def label_weights(data, indices, indptr, sets, sets_indptr, theta, bias, mixing, out):
    """Write what multiplies each label's words in each document, for all labels of its set.

    A word belongs to the labels by these weights times ``theta``. They are the mixture's own or,
    for a Dirichlet mixture, the exponents ``exp(E log weight)`` of Eq. (30).
    """
    t = np.empty(longest(indptr))
    rows = np.empty((theta.shape[1], t.size))
    for d in range(indptr.size - 1):
        labels = sets[sets_indptr[d] : sets_indptr[d + 1]]
        weights = out[sets_indptr[d] : sets_indptr[d + 1]]
        set_weights(labels, bias, weights)
        if mixing is not None:
            x, words = data[indptr[d] : indptr[d + 1]], indices[indptr[d] : indptr[d + 1]]
            if labels.size > 1 and x.size > 0:
                gamma = np.zeros(labels.size)
                gather(words, theta, labels, rows)
                variational(x, rows, labels, mixing, gamma, t, -np.inf, TIGHT)
                center = digamma(total_of(gamma))
                for j in range(labels.size):
                    weights[j] = np.exp(digamma(gamma[j]) - center)


@compiled
def longest(indptr):
    """Return the largest number of distinct words in a document."""
    largest = 0
    for d in range(indptr.size - 1):
        largest = max(largest, indptr[d + 1] - indptr[d])
    return largest


# Variational Bayes (Sato & Nakagawa 2007, section 4.3)


@compiled
def digamma(z):
    """Return the logarithmic derivative of the gamma function at ``z > 0``."""
    total = 0.0
    while z < 10.0:
        total -= 1.0 / z
        z += 1.0
    y = 1.0 / (z * z)
    series = 1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * (691.0 / 32760 - y / 12)))
    return total + np.log(z) - 0.5 / z - y * (1.0 / 12 - y * (1.0 / 120 - y * series))


@compiled
def variational_step(x, theta, prior, gamma, exponents, t, out):
    """Take a step of Eq. (29), (30); return the bound, and one on every weighting, at ``gamma``.

    ``theta`` holds the document's words by the labels of the set. Equivalent to::

        exponents = np.exp(digamma(gamma) - digamma(gamma.sum()))
        t = theta @ exponents
        out = prior + exponents * (theta.T @ (x / t))

    The first answer is Eq. (21)–(25), with the misprint in (24) put right, for this ``gamma`` and
    the best ``phi``; the second is no less than the log likelihood of any weights of the labels.
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


@compiled
def variational(x, rows, labels, mixing, gamma, t, needed, close):
    """Find the best Dirichlet posterior ``gamma`` of a set's weights; return the bound.

    SQUAREM jumps along two steps as long as the bound does not fall (Varadhan 2008). ``gamma``
    holds the start, zeros for the paper's own; it ends where a step changes it by no more than
    ``close``, in parts of the document. The search is given up, and ``-inf`` returned,
    as soon as no weights of these labels can reach the log likelihood ``needed``. ``t`` is left
    with what each word adds: the bound is ``x @ np.log(t)`` and terms without words.
    """
    n_labels = labels.size
    theta = np.empty((x.size, n_labels))
    for k in range(x.size):
        for j in range(n_labels):
            theta[k, j] = rows[labels[j], k]
    prior = np.empty(n_labels)
    n_words = 0.0
    for k in range(x.size):
        n_words += x[k]
    for j in range(n_labels):
        prior[j] = mixing[labels[j]]
    _start(gamma, prior, n_words)
    exponents, once, twice = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    jump = np.empty(n_labels)
    total = n_words + total_of(prior)
    for _cycle in range(VB_STEPS):
        bound, reachable = variational_step(x, theta, prior, gamma, exponents, t, once)
        if _distance(gamma, once) <= close * total:
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


@compiled
def _start(gamma, prior, n_words):
    """Complete a start: labels without a guess get a small share, or all the same."""
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


@compiled
def guess_weights(x, rows, labels, mixing, guess):
    """Write the Dirichlet parameters of a set into ``guess``, zeros elsewhere.

    With parameters below one the bound may have several maxima, and all sets start alike.
    """
    for label in range(guess.size):
        guess[label] = 0.0
    if mixing is not None and labels.size > 1 and x.size > 0 and _least(mixing) >= 1.0:
        gamma, t = np.zeros(labels.size), np.empty(x.size)
        variational(x, rows, labels, mixing, gamma, t, -np.inf, LOOSE)
        for j in range(labels.size):
            guess[labels[j]] = gamma[j]


@compiled
def _least(values):
    least = values[0]
    for value in values:
        least = min(least, value)
    return least


@compiled
def _distance(one, other):
    """Return the largest difference of two arrays."""
    largest = 0.0
    for j in range(one.size):
        largest = max(largest, abs(one[j] - other[j]))
    return largest


# Bounds


@compiled
def slopes(x, words, theta, phi, out):
    """Write ``D = theta[words].T @ (x / phi) / x.sum()`` for all labels.

    Log likelihoods are concave in the weights ``h`` of the labels, and ``N * D`` is the gradient
    where the words have the probabilities ``phi``. So with ``f = x @ log(phi)``, which is
    returned, every weighting has at most ``f + N * log(h @ D)``.
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


@compiled
def set_bound(f, n_words, slope, labels, family):
    """Return an upper bound of a set's score, from :func:`slopes` where the words have ``f``.

    With the set's weights ``h``, it is ``f + N * log(h @ slope)``. A Dirichlet posterior's mean
    gives each label at least ``mixing / (N + mixing.sum())``, and the rest to any; the evidence
    also pays for labels that are less steep than the steepest one.
    """
    return steepness_bound(f, n_words, steepness(n_words, slope, labels, family))


@compiled
def steepness_bound(f, n_words, value):
    """Return the upper bound of a set's score that has this steepness."""
    return f + n_words * np.log(value) + SLACK * (1.0 + abs(f))


@compiled
def steepness(n_words, slope, labels, family):
    """Return ``h @ slope`` with a set's weights ``h``, or what is no less."""
    kind, bias, mixing = family
    return _steepness(n_words, slope, labels, kind, bias, mixing)


@compiled
def steepnesses(n_words, slope, sets, indptr, family, out):
    """Write the steepness of each of many sets, rows of a CSR indicator."""
    kind, bias, mixing = family
    _steepnesses(n_words, slope, sets, indptr, kind, bias, mixing, out)


@compiled
def _steepnesses(n_words, slope, sets, indptr, kind, bias, mixing, out):
    for row in range(indptr.size - 1):
        first, last = indptr[row], indptr[row + 1]
        if bias is None:  # noqa: SIM102  (what is None is not compiled)
            if mixing is None:  # the same without an array for each set, which takes longer
                value = 0.0
                for j in range(first, last):
                    value += slope[sets[j]]
                out[row] = value / (last - first)
                continue
        out[row] = _steepness(n_words, slope, sets[first:last], kind, bias, mixing)


@compiled
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
        price = _evidence_price(n_words, slope, labels, mixing, total, steepest)
        value = min(value, steepest * np.exp(price / n_words))
    return value


@compiled
def _evidence_price(n_words, slope, labels, mixing, total, steepest):
    """Return a bound of ``log E (h @ slope / steepest)**N`` under the Dirichlet prior.

    With ``u = 1 - slope / steepest`` it is at most the sum of ``log E exp(-N u h)`` over the
    labels, since Dirichlet weights are negatively associated (Joag-Dev and Proschan 1983). The
    weight of a label is Beta(a, b), and as ``(1 - h)**(b - 1) <= exp(-(b - 1) h)`` for ``b >= 1``,
    each term is at most ``log(gamma(a + b) / gamma(b)) - a * log(N u + b - 1)``.
    """
    price = 0.0
    for label in labels:
        rest = total - mixing[label]
        rate = n_words * (1.0 - slope[label] / steepest) + rest - 1.0
        if rest >= 1.0 and rate > 0.0:
            term = math.lgamma(total) - math.lgamma(rest) - mixing[label] * np.log(rate)
            price += min(term, 0.0)
    return price
