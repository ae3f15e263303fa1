"""Compiled loops of the correlated labeling model (Wang, Huang and Zhu, ICDM 2008).

=============  =========================================================================
``n``          counts of a document's words, entries of a row of ``X``
``M``          number of labels of a document
``alpha``      Dirichlet parameters of each label's topics, (n_labels, n_topics)
``beta``       word distribution of each topic, word-major: (n_words, n_topics)
``gamma``      Dirichlet parameters of the posterior of a document's topics, (M, n_topics)
``psi``        ``digamma(gamma) - digamma(gamma.sum(axis=1, keepdims=True))``
``share``      ``exp(psi)``
``e``          ``share.sum(axis=0)``
``t``          ``beta @ e``, one number per word of the document
``slope``      ``(n / t) @ beta``, the derivative of ``n @ log(t)`` by ``e``, one number per topic
``counts``     ``share * slope``: the expected number of words of each label and topic
``sigma``      probability that each label produced a word, one row per word, (n_words, M)
``phi``        probability that each topic produced a word, one row per word, (n_words, n_topics)
``theta``      word distribution of each label, word-major: (n_words, n_labels)
``shares``     label shares at the points of the label prior, (n_labels, n_points)
=============  =========================================================================

Documents are CSR rows ``data, indices, indptr``; their label sets are CSR rows ``labels, ends``.
"""

import math
from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled, helper
from polytopic.kernels.special import digamma, exp_digamma, log_exp_digamma

TOO_SMALL = 1e-100  # an ``e`` below this is computed in logarithms
LABELS_PER_RESCALE = 8  # products of shares are rescaled this often, before they underflow


class TopicPrior(NamedTuple):
    """What the topics of each label are expected to be."""

    alpha: np.ndarray
    totals: np.ndarray  # alpha.sum(axis=1)
    exp_digammas: np.ndarray  # exp(digamma(alpha))
    ends: np.ndarray  # label l uses topics[ends[l] : ends[l + 1]]: those whose exp_digammas
    topics: np.ndarray  # are not zero, and always the one with the largest alpha


class Posterior(NamedTuple):
    """Topics of a block of documents, of which only the active ones are stored."""

    ends: np.ndarray  # document d has the topics topics[ends[d] : ends[d + 1]]
    topics: np.ndarray
    e: np.ndarray  # parallel to topics
    starts: np.ndarray  # counts of document d begin at starts[d], one row per label
    counts: np.ndarray
    ratios: np.ndarray  # n / t, parallel to the entries of X
    bounds: np.ndarray  # lower bound of each document's log likelihood


class Workspace(NamedTuple):
    """Memory for one document; topics are numbered by their position in ``active``."""

    active: np.ndarray  # topics of the document
    position: np.ndarray  # position of each topic in ``active``, or -1
    beta: np.ndarray  # rows of the document's words
    gamma: np.ndarray
    share: np.ndarray
    totals: np.ndarray  # gamma.sum(axis=1), over all topics
    e: np.ndarray
    slope: np.ndarray


@compiled
def exp_digammas(x, out):
    """Set ``out`` to ``exp(digamma(x))``, for a matrix ``x``."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = exp_digamma(x[i, j])


# Topics of documents whose labels are known


@compiled
def infer_topics(
    data, indices, indptr, labels, ends, known, uniform, prior, beta, max_iter, tol, least, out
):
    """Fill ``out``, a :class:`Posterior`, by coordinate ascent on the bound of each document.

    A word comes from one of the ``M`` labels of its document with equal probability, and then
    from a topic of that label. The posterior of a word's label and topic is joint, which gives a
    tighter bound than the factors of Eq. (4) to (6). A step is ::

        gamma = alpha[labels] + share * ((n / t) @ beta)

    and steps end once ``gamma`` changes by at most ``tol`` per word. Topics with less than
    ``least`` of a document's words are dropped from it; the bound remains a bound.

    ``known`` is an earlier posterior to start from. A document without one starts with all topics:
    its words are divided among them equally if ``uniform``, and in proportion to ``alpha`` if not.
    ``out`` has space for the topics that documents start with.
    """
    n_docs, n_topics = indptr.size - 1, beta.shape[1]
    work = _workspace(indptr, ends, n_topics)
    for d in range(n_docs):
        own = labels[ends[d] : ends[d + 1]]
        n = data[indptr[d] : indptr[d + 1]]
        ratios = out.ratios[indptr[d] - indptr[0] : indptr[d + 1] - indptr[0]]
        length = n.sum()
        n_active = _start(d, own, length, known, uniform, prior, work)
        for k in range(n.size):
            word = indices[indptr[d] + k]
            for i in range(n_active):
                work.beta[k, i] = beta[word, work.active[i]]
        for _ in range(max_iter):
            _expect_shares(own, prior, n_active, work)
            _assign_words(n, n_active, work, ratios)
            n_active, change = _update_gamma(own, prior, n_active, least * length, n.size, work)
            if change <= tol * length:
                break
        log_scale = _expect_shares(own, prior, n_active, work)
        log_words = _assign_words(n, n_active, work, ratios)
        out.bounds[d] = log_words + length * (log_scale - math.log(own.size))
        _store(d, own, prior, n_active, work, out)


@helper
def _workspace(indptr, ends, n_topics):
    """Return a workspace for the largest document of a block."""
    n_words = n_labels = 1
    for d in range(indptr.size - 1):
        n_words = max(n_words, indptr[d + 1] - indptr[d])
        n_labels = max(n_labels, ends[d + 1] - ends[d])
    return Workspace(
        np.empty(n_topics, dtype=np.int64),
        np.full(n_topics, -1),
        np.empty((n_words, n_topics)),
        np.empty((n_labels, n_topics)),
        np.empty((n_labels, n_topics)),
        np.empty(n_labels),
        np.empty(n_topics),
        np.empty(n_topics),
    )


@helper
def _start(d, own, length, known, uniform, prior, work):
    """Set ``gamma`` from the known posterior or from the prior; return the number of topics."""
    if known.ends[d] == known.ends[d + 1]:
        return _start_with_all(own, length, uniform, prior, work)
    topics = known.topics[known.ends[d] : known.ends[d + 1]]
    n_active = 0
    for label in own:
        n_active = _activate(
            prior.topics[prior.ends[label] : prior.ends[label + 1]], n_active, work
        )
    n_active = _activate(topics, n_active, work)
    for m in range(own.size):
        for i in range(n_active):
            work.gamma[m, i] = prior.alpha[own[m], work.active[i]]
        first = known.starts[d] + m * topics.size
        for i in range(topics.size):
            work.gamma[m, work.position[topics[i]]] += known.counts[first + i]
    for i in range(n_active):
        work.position[work.active[i]] = -1
    return n_active


@helper
def _start_with_all(own, length, uniform, prior, work):
    """Divide the words of a document among all topics; return the number of topics."""
    n_topics = prior.alpha.shape[1]
    for m in range(own.size):
        words = length / own.size
        for j in range(n_topics):
            alpha = prior.alpha[own[m], j]
            share = 1.0 / n_topics if uniform else alpha / prior.totals[own[m]]
            work.active[j] = j
            work.gamma[m, j] = alpha + words * share
    return n_topics


@helper
def _activate(topics, n_active, work):
    """Add topics to the active ones, each once; return the number of active topics."""
    for j in topics:
        if work.position[j] < 0:
            work.position[j] = n_active
            work.active[n_active] = j
            n_active += 1
    return n_active


@helper
def _expect_shares(own, prior, n_active, work):
    """Set ``totals``, ``share`` and ``e`` from ``gamma``.

    If all of ``e`` nearly vanishes, ``share`` and ``e`` are divided by the largest share. Return
    the logarithm of that divisor, or 0.
    """
    work.e[:n_active] = 0.0
    for m in range(own.size):
        alpha, exp_alpha = prior.alpha[own[m]], prior.exp_digammas[own[m]]
        total = prior.totals[own[m]]
        for i in range(n_active):
            total += work.gamma[m, i] - alpha[work.active[i]]
        work.totals[m] = total
        scale = exp_digamma(total)
        scale = 1.0 / scale if scale > TOO_SMALL else 0.0
        for i in range(n_active):
            j, gamma = work.active[i], work.gamma[m, i]
            share = scale * (exp_alpha[j] if gamma == alpha[j] else exp_digamma(gamma))
            work.share[m, i] = share
            work.e[i] += share
    if work.e[:n_active].max() > TOO_SMALL:
        return 0.0
    largest = -np.inf
    for m in range(own.size):
        psi_total = log_exp_digamma(work.totals[m])
        for i in range(n_active):
            work.share[m, i] = log_exp_digamma(work.gamma[m, i]) - psi_total
            largest = max(largest, work.share[m, i])
    work.e[:n_active] = 0.0
    for m in range(own.size):
        for i in range(n_active):
            work.share[m, i] = math.exp(work.share[m, i] - largest)
            work.e[i] += work.share[m, i]
    return largest


@helper
def _assign_words(n, n_active, work, ratios):
    """Set ``ratios = n / t`` and ``slope = ratios @ beta``; return ``n @ log(t)``."""
    e, slope = work.e, work.slope
    slope[:n_active] = 0.0
    fours = n_active - n_active % 4
    log_words = 0.0
    for k in range(n.size):
        row = work.beta[k]
        t0 = t1 = t2 = t3 = 0.0  # four independent sums, which the processor adds in parallel
        for j in range(0, fours, 4):
            t0 += e[j] * row[j]
            t1 += e[j + 1] * row[j + 1]
            t2 += e[j + 2] * row[j + 2]
            t3 += e[j + 3] * row[j + 3]
        for j in range(fours, n_active):
            t0 += e[j] * row[j]
        t = (t0 + t1) + (t2 + t3)
        log_words += n[k] * math.log(t)
        ratio = n[k] / t
        ratios[k] = ratio
        for j in range(n_active):
            slope[j] += ratio * row[j]
    return log_words


@helper
def _update_gamma(own, prior, n_active, least, n_words, work):
    """Set ``gamma = alpha + share * slope``, and drop topics with fewer than ``least`` words.

    At least one topic remains. Return the number of topics and the total change of ``gamma``.
    """
    least = min(least, (work.e[:n_active] * work.slope[:n_active]).max())
    n_kept, change = 0, 0.0
    for i in range(n_active):
        j, slope = work.active[i], work.slope[i]
        keep = work.e[i] * slope >= least
        for m in range(own.size):
            alpha = prior.alpha[own[m], j]
            gamma = alpha + work.share[m, i] * slope if keep else alpha
            change += abs(gamma - work.gamma[m, i])
            if keep:
                work.gamma[m, n_kept] = gamma
        if keep:
            work.active[n_kept] = j
            if n_kept < i:
                for k in range(n_words):
                    work.beta[k, n_kept] = work.beta[k, i]
            n_kept += 1
    return n_kept, change


@helper
def _store(d, own, prior, n_active, work, out):
    """Store the posterior of a document, and add the Dirichlet terms to its bound.

    These are ``E[log p(topics | alpha)] - E[log q(topics | gamma)]``.
    """
    position, begin = out.starts[d], out.ends[d]
    for i in range(n_active):
        out.topics[begin + i], out.e[begin + i] = work.active[i], work.e[i]
    bound = 0.0
    for m in range(own.size):
        psi_total = log_exp_digamma(work.totals[m])
        bound += math.lgamma(prior.totals[own[m]]) - math.lgamma(work.totals[m])
        for i in range(n_active):
            alpha, gamma = prior.alpha[own[m], work.active[i]], work.gamma[m, i]
            psi = log_exp_digamma(gamma) - psi_total
            bound += math.lgamma(gamma) - math.lgamma(alpha) + (alpha - gamma) * psi
            out.counts[position] = work.share[m, i] * work.slope[i]
            position += 1
    out.bounds[d] += bound
    out.ends[d + 1], out.starts[d + 1] = begin + n_active, position


# The paper's family: the label and the topic of a word are independent in the posterior


@compiled
def infer_factored(data, indices, indptr, labels, ends, prior, beta, max_iter, tol, gamma,
                   sigma_ends, sigma, bounds):  # fmt: skip
    """Raise the bound of each document by coordinate ascent over all topics, Eq. (4) to (6).

    ``gamma`` has one row per label of each document. ``sigma`` has ``M`` numbers for each entry of
    ``X``; those of document ``d`` begin at ``sigma_ends[d]``. Both hold the start, and are
    overwritten. With ``W`` the words of a document, a step is ::

        phi = softmax(log(beta[W]) + sigma @ psi)       # Eq. (5)
        sigma = softmax(phi @ psi.T)                    # Eq. (6)
        gamma = alpha[labels] + (n * sigma.T) @ phi     # Eq. (4)

    and steps end once ``gamma`` changes by at most ``tol`` per word. ``bounds`` gets the bound at
    these ``gamma`` and ``sigma``, and the ``phi`` that follows from them. It has the ``-log(M)``
    per word that the paper leaves out, without which label sets of different sizes cannot be
    compared.
    """
    n_topics, most_labels = beta.shape[1], np.diff(ends).max()
    psi, following = np.empty((most_labels, n_topics)), np.empty((most_labels, n_topics))
    share, phi = np.empty(n_topics), np.empty(n_topics)
    work, ratios = _workspace(indptr, ends, n_topics), np.empty(np.diff(indptr).max())
    for d in range(indptr.size - 1):
        own = labels[ends[d] : ends[d + 1]]
        own_gamma = gamma[ends[d] - ends[0] : ends[d + 1] - ends[0]]
        if own.size == 1:
            n, words = data[indptr[d] : indptr[d + 1]], indices[indptr[d] : indptr[d + 1]]
            bounds[d] = _infer_one_label(
                n, words, own, prior, beta, max_iter, tol, own_gamma, psi, work, ratios
            )
            continue
        length = data[indptr[d] : indptr[d + 1]].sum()
        for _ in range(max_iter):
            top = _expect_logs(own_gamma, psi, share)
            for m in range(own.size):
                following[m] = prior.alpha[own[m]]
            for k in range(indptr[d], indptr[d + 1]):
                place = sigma_ends[d] + (k - indptr[d]) * own.size
                own_sigma = sigma[place : place + own.size]
                _assign_topics(beta[indices[k]], own_sigma, psi, share, top, phi)
                _assign_labels(phi, psi, own_sigma)
                for m in range(own.size):
                    for j in range(n_topics):
                        following[m, j] += data[k] * own_sigma[m] * phi[j]
            change = 0.0
            for m in range(own.size):
                for j in range(n_topics):
                    change += abs(following[m, j] - own_gamma[m, j])
                    own_gamma[m, j] = following[m, j]
            if change <= tol * length:
                break
        top = _expect_logs(own_gamma, psi, share)
        bounds[d] = _dirichlet_terms(own, prior, own_gamma, psi)
        for k in range(indptr[d], indptr[d + 1]):
            place = sigma_ends[d] + (k - indptr[d]) * own.size
            own_sigma = sigma[place : place + own.size]
            log_mass = _assign_topics(beta[indices[k]], own_sigma, psi, share, top, phi)
            bounds[d] += data[k] * (log_mass + _entropy(own_sigma) - math.log(own.size))


@helper
def _infer_one_label(n, words, own, prior, beta, max_iter, tol, gamma, psi, work, ratios):
    """Do the same for one document with one label; return the bound.

    All its words have the same ``share``, and ``sigma`` is 1, so a step is
    ``gamma = alpha + share * ((n / t) @ beta[words])`` with ``t = beta[words] @ share``.
    """
    n_topics, length, alpha = beta.shape[1], n.sum(), prior.alpha[own[0]]
    for k in range(words.size):
        for j in range(n_topics):
            work.beta[k, j] = beta[words[k], j]
    for _ in range(max_iter):
        _expect_logs(gamma, psi, work.e)
        _assign_words(n, n_topics, work, ratios)
        change = 0.0
        for j in range(n_topics):
            following = alpha[j] + work.e[j] * work.slope[j]
            change += abs(following - gamma[0, j])
            gamma[0, j] = following
        if change <= tol * length:
            break
    top = _expect_logs(gamma, psi, work.e)
    log_words = _assign_words(n, n_topics, work, ratios) + length * top
    return log_words + _dirichlet_terms(own, prior, gamma, psi)


@compiled
def count_factored_words(
    word_ends, docs, entries, n, indptr, ends, psi, share, sigma_ends, sigma, beta, out
):
    """Set ``out`` to the expected counts of words (rows) by topic, Eq. (14).

    Word ``w`` has the entries ``entries[word_ends[w] : word_ends[w + 1]]`` of ``X``, in the
    documents ``docs``. Equivalent to ``out[w] = n @ phi`` over these entries, with ``phi`` as in
    :func:`infer_factored`. ``psi`` and ``share = exp(psi - psi.max(axis=1))`` have one row per
    label of each document.
    """
    out[:] = 0.0
    phi = np.empty(beta.shape[1])
    for w in range(word_ends.size - 1):
        for k in range(word_ends[w], word_ends[w + 1]):
            d, entry, first = docs[k], entries[k], ends[docs[k]]
            size = ends[d + 1] - first
            place = sigma_ends[d] + (entry - indptr[d]) * size
            own_sigma, own_psi = sigma[place : place + size], psi[first : first + size]
            _assign_topics(beta[w], own_sigma, own_psi, share[first], 0.0, phi)
            for j in range(phi.size):
                out[w, j] += n[entry] * phi[j]


@helper
def _expect_logs(gamma, psi, share):
    """Set ``psi`` of one document; with one label, also ``share = exp(psi[0] - psi[0].max())``.

    Return that maximum.
    """
    for m in range(gamma.shape[0]):
        psi_total = digamma(gamma[m].sum())
        for j in range(gamma.shape[1]):
            psi[m, j] = digamma(gamma[m, j]) - psi_total
    top = psi[0].max()
    if gamma.shape[0] == 1:
        for j in range(gamma.shape[1]):
            share[j] = math.exp(psi[0, j] - top)
    return top


@helper
def _assign_topics(beta, sigma, psi, share, top, phi):
    """Set ``phi`` of one word, Eq. (5); return the logarithm of what it is divided by.

    Equivalent to ``logits = log(beta) + sigma @ psi``, ``phi = softmax(logits)`` and
    ``logsumexp(logits)``. With one label all words have the same exponents, ``share``.
    """
    if sigma.size == 1:
        for j in range(phi.size):
            phi[j] = beta[j] * share[j]
    else:
        for j in range(phi.size):
            phi[j] = 0.0
            for m in range(sigma.size):
                phi[j] += sigma[m] * psi[m, j]
        top = phi.max()
        for j in range(phi.size):
            phi[j] = beta[j] * math.exp(phi[j] - top)
    mass = phi.sum()
    for j in range(phi.size):
        phi[j] /= mass
    return math.log(mass) + top


@helper
def _assign_labels(phi, psi, sigma):
    """Set ``sigma`` of one word: ``softmax(psi @ phi)``, Eq. (6)."""
    top = -np.inf
    for m in range(sigma.size):
        sigma[m] = 0.0
        for j in range(phi.size):
            sigma[m] += phi[j] * psi[m, j]
        top = max(top, sigma[m])
    mass = 0.0
    for m in range(sigma.size):
        sigma[m] = math.exp(sigma[m] - top)
        mass += sigma[m]
    for m in range(sigma.size):
        sigma[m] /= mass


@helper
def _entropy(sigma):
    """Return ``-(sigma * log(sigma)).sum()``."""
    total = 0.0
    for share in sigma:
        if share > 0.0:
            total -= share * math.log(share)
    return total


@helper
def _dirichlet_terms(own, prior, gamma, psi):
    """Return ``E[log p(topics | alpha)] - E[log q(topics | gamma)]`` of one document."""
    total = 0.0
    for m in range(own.size):
        total += math.lgamma(prior.totals[own[m]]) - math.lgamma(gamma[m].sum())
        for j in range(gamma.shape[1]):
            alpha = prior.alpha[own[m], j]
            total += math.lgamma(gamma[m, j]) - math.lgamma(alpha)
            total += (alpha - gamma[m, j]) * psi[m, j]
    return total


# Sums over documents: the expectations that the M step needs


@compiled
def add_log_shares(labels, ends, posterior, prior, sums, totals):
    """Add each document's expected log topic shares to the sums of its labels.

    Equivalent, for each document with labels ``L`` and ``gamma = alpha[L] + counts``, to::

        sums[L] += digamma(gamma) - digamma(alpha[L])
        totals[L] += digamma(gamma.sum(axis=1))
    """
    for d in range(ends.size - 1):
        topics = posterior.topics[posterior.ends[d] : posterior.ends[d + 1]]
        position = posterior.starts[d]
        for label in labels[ends[d] : ends[d + 1]]:
            counts = posterior.counts[position : position + topics.size]
            totals[label] += log_exp_digamma(prior.totals[label] + counts.sum())
            for i in range(topics.size):
                alpha = prior.alpha[label, topics[i]]
                before, after = log_exp_digamma(alpha), log_exp_digamma(alpha + counts[i])
                sums[label, topics[i]] += after - before
            position += topics.size


@compiled
def add_topic_shares(labels, ends, posterior, prior, sums):
    """Add each document's expected topic shares to the sums of its labels (Eq. (17)).

    Equivalent, for each document with labels ``L`` and ``gamma = alpha[L] + counts``, to::

        sums[L] += gamma / gamma.sum(axis=1, keepdims=True)
    """
    for d in range(ends.size - 1):
        topics = posterior.topics[posterior.ends[d] : posterior.ends[d + 1]]
        position = posterior.starts[d]
        for label in labels[ends[d] : ends[d + 1]]:
            counts = posterior.counts[position : position + topics.size]
            total = prior.totals[label] + counts.sum()
            sums[label] += prior.alpha[label] / total
            for i in range(topics.size):
                sums[label, topics[i]] += counts[i] / total
            position += topics.size


@compiled
def count_topic_words(word_ends, docs, ratios, ends, topics, e, beta, out):
    """Set ``out`` to the expected counts of words (rows) by topic.

    Word ``w`` occurs in the documents ``D = docs[word_ends[w] : word_ends[w + 1]]``, with the
    ``ratios`` of these entries. With ``E`` the dense (n_docs, n_topics) form of ``e``::

        out[w] = beta[w] * (ratios @ E[D])
    """
    out[:] = 0.0
    for w in range(word_ends.size - 1):
        row = out[w]
        for k in range(word_ends[w], word_ends[w + 1]):
            d = docs[k]
            for i in range(ends[d], ends[d + 1]):
                row[topics[i]] += ratios[k] * e[i]
        for j in range(row.size):
            row[j] *= beta[w, j]


# The prior of label sets


@compiled
def weigh_points(indices, indptr, docs, shares, weights, total):
    """Add the posterior weight of each point to ``weights``; return ``total`` + log likelihood.

    Equivalent, for each label set ``y`` (a row of ``indices, indptr``) of ``docs[y]`` documents,
    to::

        p = shares[y].prod(axis=0)
        weights += docs[y] * p / p.sum()
        total += docs[y] * np.log(p.mean())
    """
    n_points = shares.shape[1]
    p = np.empty(n_points)
    for k in range(indptr.size - 1):
        p[:] = shares[indices[indptr[k]]]
        log_scale = 0.0
        for place in range(indptr[k] + 1, indptr[k + 1]):
            label = indices[place]
            for i in range(n_points):
                p[i] *= shares[label, i]
            if (place - indptr[k]) % LABELS_PER_RESCALE == 0:
                top = p.max()
                p /= top
                log_scale += np.log(top)
        mass = p.sum()
        total += docs[k] * (np.log(mass / n_points) + log_scale)
        for i in range(n_points):
            weights[i] += docs[k] / mass * p[i]
    return total


# Labels of new documents


@compiled
def class_weights(data, indices, indptr, theta, start, n_steps, weights, bounds):
    """Fill ``weights`` with each document's label shares after ``n_steps`` EM steps.

    With ``W`` the words of a document and ``N = n.sum()``, a step from ``weights = start`` is ::

        weights *= (n / (theta[W] @ weights)) @ theta[W] / N

    ``bounds`` gets an upper bound of the log likelihood under any label shares, by Jensen's
    inequality: with ``t = theta[W] @ weights`` ::

        n @ log(t) + N * log(((n / t) @ theta[W]).max() / N)
    """
    slope = np.empty(theta.shape[1])
    for d in range(indptr.size - 1):
        own = weights[d]
        own[:] = start
        length = data[indptr[d] : indptr[d + 1]].sum()
        if indptr[d] == indptr[d + 1]:
            bounds[d] = 0.0
            continue
        for step in range(n_steps + 1):
            log_words = 0.0
            slope[:] = 0.0
            for k in range(indptr[d], indptr[d + 1]):
                row = theta[indices[k]]
                t = 0.0
                for c in range(own.size):
                    t += own[c] * row[c]
                ratio = data[k] / t
                log_words += data[k] * math.log(t)
                for c in range(own.size):
                    slope[c] += ratio * row[c]
            if step == n_steps:
                bounds[d] = log_words + length * math.log(slope.max() / length)
            else:
                for c in range(own.size):
                    own[c] *= slope[c] / length


@compiled
def search_label_sets(data, indices, indptr, theta, candidates, keep_first, shares, log_scales,
                      temperature, members, values):  # fmt: skip
    """Score the label sets that a greedy search visits, for each document.

    The search adds the candidate that raises the log posterior most, until none does;
    ``candidates`` of a document are label columns, or -1. With ``keep_first`` every set contains
    the first candidate. A set ``y`` of ``m`` labels scores ::

        n @ log(theta[W][:, y].mean(axis=1)) / temperature
        + log((exp(log_scales[m]) * shares[y].prod(axis=0)).sum())

    Visited set ``k`` of document ``d`` has the score ``values[d, k]``, and bit ``i`` of
    ``members[d, k]`` says whether it contains candidate ``i``.
    """
    n_points, n_candidates = shares.shape[1], candidates.shape[1]
    scales = np.exp(log_scales)
    product = np.empty(n_points)
    for d in range(indptr.size - 1):
        n_words = indptr[d + 1] - indptr[d]
        mass = np.zeros(n_words)  # theta[W][:, chosen].sum(axis=1)
        product[:] = 1.0  # shares[chosen].prod(axis=0)
        chosen, best, n_visited = 0, -np.inf, 0
        for size in range(1, min(n_candidates, log_scales.shape[0] - 1) + 1):
            top, pick = -np.inf, -1
            for i in range(n_candidates):
                c = candidates[d, i]
                if c < 0 or chosen >> i & 1 or (keep_first and size == 1 and i > 0):
                    continue
                prior = 0.0
                for p in range(n_points):
                    prior += product[p] * shares[c, p] * scales[size, p]
                value = math.log(prior) if prior > 0.0 else -np.inf
                for k in range(n_words):
                    phi = (mass[k] + theta[indices[indptr[d] + k], c]) / size
                    value += data[indptr[d] + k] * math.log(phi) / temperature
                members[d, n_visited], values[d, n_visited] = chosen | 1 << i, value
                n_visited += 1
                if value > top:
                    top, pick = value, i
            if pick < 0 or (top <= best and size > 1):
                break
            best, chosen = top, chosen | 1 << pick
            c = candidates[d, pick]
            for k in range(n_words):
                mass[k] += theta[indices[indptr[d] + k], c]
            for p in range(n_points):
                product[p] *= shares[c, p]
