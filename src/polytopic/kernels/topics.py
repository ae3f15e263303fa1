r"""Topics of documents whose labels are known: inference in the correlated labeling model.

A word comes from one of the ``M`` labels of its document, evenly, and then from one of the topics
of that label. ``gamma[m]`` are the parameters of the posterior of label ``m``'s topics; that of a
word's label and topic together is left free. With ``n`` the counts of the document's words, whose
rows of ``beta`` are word-major, and ::

    share[m, j] = exp(digamma(gamma[m, j]) - digamma(gamma[m].sum()))
    e = share.sum(axis=0)
    t = beta @ e

the words that topics say are ``counts[m, j] = share[m, j] * (n / t @ beta)[j]``, and the next
``gamma[m]`` is ``alpha[m] + counts[m]``. Topics that say less than ``least`` of a document are
left out of it, by which the bound stays a bound, over fewer posteriors.
"""

import math
from collections import namedtuple

import numpy as np

from polytopic.kernels import compiled

SERIES_FROM = 8.0
TOO_SMALL = 1e-100  # of e: what words are divided by is then no number

# What is known of some documents' topics. Document d has the topics
# topics[ends[d] : ends[d + 1]], of weights e; its counts, the next gamma less alpha, begin at
# starts[d], a row of topics for each of its labels. ratios has n / t of each word, and bounds the
# log likelihood at least.
Posterior = namedtuple("Posterior", "ends, topics, e, starts, counts, ratios, bounds")

# The prior of each label's topics: alpha, its sums, exp(digamma(alpha)), and the topics of each
# label where that is not 0, or its largest, topics[ends[label] : ends[label + 1]].
TopicPrior = namedtuple("TopicPrior", "alpha, totals, exp_digammas, ends, topics")

# Room to work on one document: its topics that count and each topic's place among them, or -1;
# in these topics its words' rows of beta, and each label's gamma and share.
Space = namedtuple("Space", "active, place, beta, gamma, share, totals, e, said")


@compiled
def digamma_parts(x):
    """Return ``a, b`` such that ``a * exp(-b) == exp(digamma(x))``, for positive ``x``."""
    b = 0.0
    while x < SERIES_FROM:
        b += 1.0 / x
        x += 1.0
    x -= 0.5
    y = 1.0 / (x * x)
    series = 1 / 24 + y * (-37 / 5760 + y * (10313 / 2903040 - y * (5509121 / 1393459200)))
    return x * (1.0 + y * series), b


@compiled
def exp_digamma(x):
    """Return ``exp(digamma(x))``, without a logarithm."""
    a, b = digamma_parts(x)
    return a * math.exp(-b)


@compiled
def digamma(x):
    """Return the logarithmic derivative of the gamma function, for positive ``x``."""
    a, b = digamma_parts(x)
    return math.log(a) - b


@compiled
def exp_digammas(x, out):
    """Set ``out`` to ``exp(digamma(x))`` of a matrix."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = exp_digamma(x[i, j])


@compiled
def infer(data, indices, indptr, labels, ends, known, prior, beta, max_iter, tol, least, out):
    """Find the :class:`Posterior` of documents; ``known`` has an earlier one to start from.

    A document of which nothing is known starts with its words told by topics as ``prior`` has
    them. Steps end when they change ``gamma`` by less than ``tol`` a word. ``out`` has place
    for all topics that the documents may have: those of their labels, and those they are known to
    have.
    """
    n_docs, n_topics = indptr.size - 1, beta.shape[1]
    space = _room(indptr, ends, n_topics)
    for d in range(n_docs):
        own = labels[ends[d] : ends[d + 1]]
        counts = data[indptr[d] : indptr[d + 1]]
        ratios = out.ratios[indptr[d] - indptr[0] : indptr[d + 1] - indptr[0]]
        length = counts.sum()
        n_active = start(d, own, length, known, prior, space)
        for k in range(counts.size):
            word = indices[indptr[d] + k]
            for i in range(n_active):
                space.beta[k, i] = beta[word, space.active[i]]
        for _ in range(max_iter):
            expect(own, prior, n_active, space)
            weigh(counts, n_active, space, ratios)
            n_active, change = advance(own, prior, n_active, least * length, counts.size, space)
            if change <= tol * length:
                break
        log_scale = expect(own, prior, n_active, space)
        log_words = weigh(counts, n_active, space, ratios)
        out.bounds[d] = log_words + length * (log_scale - math.log(own.size))
        conclude(d, own, prior, n_active, space, out)


@compiled
def _room(indptr, ends, n_topics):
    """Return room for the largest of some documents."""
    n_words = n_labels = 1
    for d in range(indptr.size - 1):
        n_words = max(n_words, indptr[d + 1] - indptr[d])
        n_labels = max(n_labels, ends[d + 1] - ends[d])
    return Space(
        np.empty(n_topics, dtype=np.int64),
        np.full(n_topics, -1),
        np.empty((n_words, n_topics)),
        np.empty((n_labels, n_topics)),
        np.empty((n_labels, n_topics)),
        np.empty(n_labels),
        np.empty(n_topics),
        np.empty(n_topics),
    )


@compiled
def start(d, own, length, known, prior, space):
    """Set ``gamma`` to what is known of a document's topics, or to what is to be expected.

    Return how many topics it may have: those of its labels, and those it is known to have.
    """
    topics = known.topics[known.ends[d] : known.ends[d + 1]]
    n_active = 0
    for label in own:
        n_active = join(prior.topics[prior.ends[label] : prior.ends[label + 1]], n_active, space)
    n_active = join(topics, n_active, space)
    for m in range(own.size):
        alpha = prior.alpha[own[m]]
        growth = 0.0 if topics.size else length / (own.size * prior.totals[own[m]])
        for i in range(n_active):
            space.gamma[m, i] = alpha[space.active[i]] * (1.0 + growth)
        first = known.starts[d] + m * topics.size
        for i in range(topics.size):
            space.gamma[m, space.place[topics[i]]] += known.counts[first + i]
    for i in range(n_active):
        space.place[space.active[i]] = -1
    return n_active


@compiled
def join(topics, n_active, space):
    """Add topics to those that are active already; return how many there are."""
    for j in topics:
        if space.place[j] < 0:
            space.place[j] = n_active
            space.active[n_active] = j
            n_active += 1
    return n_active


@compiled
def expect(own, prior, n_active, space):
    """Set the totals of ``gamma``, ``share`` and ``e`` from ``gamma``, in the active topics.

    Where all of ``e`` is all but 0, ``share`` and ``e`` are in units of the largest share; return
    its logarithm, or 0.
    """
    space.e[:n_active] = 0.0
    for m in range(own.size):
        alpha, exp_alpha = prior.alpha[own[m]], prior.exp_digammas[own[m]]
        total = prior.totals[own[m]]
        for i in range(n_active):
            total += space.gamma[m, i] - alpha[space.active[i]]
        space.totals[m] = total
        scale = exp_digamma(total)
        scale = 1.0 / scale if scale > TOO_SMALL else 0.0
        for i in range(n_active):
            j, gamma = space.active[i], space.gamma[m, i]
            share = scale * (exp_alpha[j] if gamma == alpha[j] else exp_digamma(gamma))
            space.share[m, i] = share
            space.e[i] += share
    if space.e[:n_active].max() > TOO_SMALL:
        return 0.0
    largest = -np.inf
    for m in range(own.size):
        psi_total = digamma(space.totals[m])
        for i in range(n_active):
            space.share[m, i] = digamma(space.gamma[m, i]) - psi_total
            largest = max(largest, space.share[m, i])
    space.e[:n_active] = 0.0
    for m in range(own.size):
        for i in range(n_active):
            space.share[m, i] = math.exp(space.share[m, i] - largest)
            space.e[i] += space.share[m, i]
    return largest


@compiled
def weigh(counts, n_active, space, ratios):
    """Set ``ratios`` to ``n / t`` and ``said`` to ``n / t @ beta``; return ``n @ log(t)``."""
    e, said = space.e, space.said
    said[:n_active] = 0.0
    fours = n_active - n_active % 4
    log_words = 0.0
    for k in range(counts.size):
        row = space.beta[k]
        t0 = t1 = t2 = t3 = 0.0  # four sums, which a processor adds up at once
        for j in range(0, fours, 4):
            t0 += e[j] * row[j]
            t1 += e[j + 1] * row[j + 1]
            t2 += e[j + 2] * row[j + 2]
            t3 += e[j + 3] * row[j + 3]
        for j in range(fours, n_active):
            t0 += e[j] * row[j]
        t = (t0 + t1) + (t2 + t3)
        log_words += counts[k] * math.log(t)
        ratio = counts[k] / t
        ratios[k] = ratio
        for j in range(n_active):
            said[j] += ratio * row[j]
    return log_words


@compiled
def advance(own, prior, n_active, least, n_words, space):
    """Set ``gamma`` from what topics say, less those that say too little; one always stays.

    Return how many stay, and how much of ``gamma`` has changed.
    """
    least = min(least, (space.e[:n_active] * space.said[:n_active]).max())
    kept, change = 0, 0.0
    for i in range(n_active):
        j, said = space.active[i], space.said[i]
        stays = space.e[i] * said >= least
        for m in range(own.size):
            alpha = prior.alpha[own[m], j]
            gamma = alpha + space.share[m, i] * said if stays else alpha
            change += abs(gamma - space.gamma[m, i])
            if stays:
                space.gamma[m, kept] = gamma
        if stays:
            space.active[kept] = j
            if kept < i:
                for k in range(n_words):
                    space.beta[k, kept] = space.beta[k, i]
            kept += 1
    return kept, change


@compiled
def conclude(d, own, prior, n_active, space, out):
    """Write down the posterior of a document, and add its part of the bound."""
    place, begin = out.starts[d], out.ends[d]
    for i in range(n_active):
        out.topics[begin + i], out.e[begin + i] = space.active[i], space.e[i]
    bound = 0.0
    for m in range(own.size):
        psi_total = digamma(space.totals[m])
        bound += math.lgamma(prior.totals[own[m]]) - math.lgamma(space.totals[m])
        for i in range(n_active):
            alpha, gamma = prior.alpha[own[m], space.active[i]], space.gamma[m, i]
            slope = digamma(gamma) - psi_total
            bound += math.lgamma(gamma) - math.lgamma(alpha) + (alpha - gamma) * slope
            out.counts[place] = space.share[m, i] * space.said[i]
            place += 1
    out.bounds[d] += bound
    out.ends[d + 1], out.starts[d + 1] = begin + n_active, place


@compiled
def add_psi(labels, ends, posterior, prior, sums, totals):
    """Add the digammas of documents' ``gamma`` to their labels' sums, those of its sum to totals.

    ``sums`` are of what they are more than the digammas of ``alpha``.
    """
    for d in range(ends.size - 1):
        topics = posterior.topics[posterior.ends[d] : posterior.ends[d + 1]]
        place = posterior.starts[d]
        for label in labels[ends[d] : ends[d + 1]]:
            counts = posterior.counts[place : place + topics.size]
            totals[label] += digamma(prior.totals[label] + counts.sum())
            for i in range(topics.size):
                alpha = prior.alpha[label, topics[i]]
                sums[label, topics[i]] += digamma(alpha + counts[i]) - digamma(alpha)
            place += topics.size


@compiled
def add_shares(labels, ends, posterior, prior, sums):
    """Add the expected topic shares of documents, ``gamma / gamma.sum()``, to their labels' sums.

    ``gamma`` is ``alpha`` and the words that topics say.
    """
    for d in range(ends.size - 1):
        topics = posterior.topics[posterior.ends[d] : posterior.ends[d + 1]]
        place = posterior.starts[d]
        for label in labels[ends[d] : ends[d + 1]]:
            counts = posterior.counts[place : place + topics.size]
            total = prior.totals[label] + counts.sum()
            sums[label] += prior.alpha[label] / total
            for i in range(topics.size):
                sums[label, topics[i]] += counts[i] / total
            place += topics.size


@compiled
def count_words(word_ends, docs, ratios, ends, topics, e, beta, out):
    """Set ``out`` to the counts of words (rows) that topics are expected to say.

    Word ``w`` is in the documents ``docs[word_ends[w] : word_ends[w + 1]]``, with these ratios::

        out[w] = beta[w] * (ratios[:, None] * E[docs]).sum(axis=0)
    """
    out[:] = 0.0
    for w in range(word_ends.size - 1):
        said = out[w]
        for k in range(word_ends[w], word_ends[w + 1]):
            d = docs[k]
            for i in range(ends[d], ends[d + 1]):
                said[topics[i]] += ratios[k] * e[i]
        for j in range(said.size):
            said[j] *= beta[w, j]
