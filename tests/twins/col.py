"""Slow twins of CoL's kernels, and its equations (Wang, Huang and Zhu, ICDM 2008).

``n`` are the counts of one document, ``beta`` is (n_topics, n_words), and ``theta`` is (n_labels,
n_words).
"""

from itertools import combinations, product

import numpy as np
from scipy.optimize import minimize
from scipy.special import digamma, gammaln, logsumexp, roots_jacobi, softmax


def shares_of(gamma):
    """Return exp(E[log theta]) of each label's topics."""
    return np.exp(digamma(gamma) - digamma(gamma.sum(axis=1, keepdims=True)))


def next_gamma(n, alpha, beta, gamma):
    """Return one update of the joint family; beta is (topics, words)."""
    share = shares_of(gamma)
    t = share.sum(axis=0) @ beta
    return alpha + share * (beta @ (n / t))


def dirichlet_terms(alpha, gamma):
    """Return E[log p(theta | alpha)] - E[log q(theta | gamma)], summed over labels."""
    psi = digamma(gamma) - digamma(gamma.sum(axis=1, keepdims=True))
    norm = gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1)
    norm -= gammaln(gamma.sum(axis=1)) - gammaln(gamma).sum(axis=1)
    return float(norm.sum() + ((alpha - gamma) * psi).sum())


def joint_bound(n, alpha, beta, gamma):
    """Return the bound of the joint family at its best q(y, z) for this gamma."""
    t = shares_of(gamma).sum(axis=0) @ beta
    return float(n @ np.log(t / len(alpha))) + dirichlet_terms(alpha, gamma)


def infer_factored(n, alpha, beta, n_iter=20_000, tol=1e-12):
    """Return gamma, sigma, phi and the bound of the paper's factored family, Eq. (4) to (6).

    The bound has the -log M per word that the paper leaves out.
    """
    M, K = alpha.shape
    sigma, phi = np.full((n.size, M), 1 / M), np.full((n.size, K), 1 / K)
    gamma = alpha + np.einsum("w,wm,wk->mk", n, sigma, phi)
    for _ in range(n_iter):
        psi = digamma(gamma) - digamma(gamma.sum(axis=1, keepdims=True))
        phi = softmax(np.log(beta.T) + sigma @ psi, axis=1)
        sigma = softmax(phi @ psi.T, axis=1)
        before, gamma = gamma, alpha + np.einsum("w,wm,wk->mk", n, sigma, phi)
        if np.abs(gamma - before).sum() <= tol * n.sum():
            break
    psi = digamma(gamma) - digamma(gamma.sum(axis=1, keepdims=True))
    phi = softmax(np.log(beta.T) + sigma @ psi, axis=1)
    words = np.einsum("wm,wk,mk->w", sigma, phi, psi) + (phi * np.log(beta.T)).sum(axis=1)
    words -= (sigma * np.log(sigma)).sum(axis=1) + (phi * np.log(phi)).sum(axis=1)
    return gamma, sigma, phi, float(n @ (words - np.log(M))) + dirichlet_terms(alpha, gamma)


def count_factored_words(n_rows, phi_rows, n_words):
    """Return expected counts of words by topic, Eq. (14): sums of n * phi over documents."""
    out = np.zeros((n_words, phi_rows[0].shape[1]))
    for n, phi in zip(n_rows, phi_rows, strict=True):
        out[np.flatnonzero(n)] += n[n > 0][:, None] * phi
    return out


def factored_bound(n, alpha, beta):
    """Return the bound of :func:`infer_factored`."""
    return infer_factored(n, alpha, beta)[-1]


def log_posteriors(n, alpha, beta, mu, sigma):
    """Return the log posterior of each label alone, Eq. (9), with bounds as likelihoods."""
    values = [
        factored_bound(n, alpha[[c]], beta) + label_maximum(c, mu, sigma) for c in range(len(alpha))
    ]
    return np.array(values) - logsumexp(values)


def label_maximum(label, mu, sigma):
    """Return the largest :func:`label_bound` of one label, by a general optimizer."""
    C = mu.size

    def negative(parameters):
        return -label_bound([label], parameters[:C], np.exp(parameters[C:]), mu, sigma)

    start = np.concatenate([mu, np.zeros(C)])
    return -minimize(negative, start, method="BFGS", options={"gtol": 1e-9}).fun


def relevance(n_rows, sets, alpha, beta):
    """Return s(w | c) of Eq. (18): the mean of log p(w | c) over the documents of each label."""
    total, docs = np.zeros((len(alpha), beta.shape[1])), np.zeros(len(alpha))
    for n, labels in zip(n_rows, sets, strict=True):
        gamma = infer_factored(n, alpha[labels], beta)[0]
        total[labels] += np.log(gamma / gamma.sum(axis=1, keepdims=True) @ beta)
        docs[labels] += 1
    return total / docs[:, None]


def label_topics(n_rows, sets, alpha, beta):
    """Return r(c) of Eq. (17): the mean posterior topic shares of each label's documents."""
    total, docs = np.zeros(alpha.shape), np.zeros(len(alpha))
    for n, labels in zip(n_rows, sets, strict=True):
        gamma = infer_factored(n, alpha[labels], beta)[0]
        total[labels] += gamma / gamma.sum(axis=1, keepdims=True)
        docs[labels] += 1
    return total / docs[:, None]


def log_evidence(n, alpha, beta, n_nodes=40):
    """Return the log likelihood of a document with one or two labels and two topics.

    It is a polynomial in the topics' shares, so that Gauss's quadrature is exact.
    """
    nodes = [_beta_nodes(*row, n_nodes) for row in alpha]
    total = 0.0
    for places in product(range(n_nodes), repeat=len(alpha)):
        shares = [nodes[m][0][i] for m, i in enumerate(places)]
        weight = np.prod([nodes[m][1][i] for m, i in enumerate(places)])
        theta = np.mean([[p, 1 - p] for p in shares], axis=0)
        total += weight * np.exp(n @ np.log(theta @ beta))
    return float(np.log(total))


def _beta_nodes(first, second, n_nodes):
    """Return nodes and weights of the expectation under a beta distribution."""
    x, weights = roots_jacobi(n_nodes, second - 1, first - 1)
    return (1 + x) / 2, weights / weights.sum()


def exp_digammas(x):
    """Return exp(digamma(x))."""
    return np.exp(digamma(x))


def infer_topics(n, alpha, beta, n_steps):
    """Return expected counts by label and topic, and the bound, after some steps."""
    gamma = alpha * (1 + n.sum() / (len(alpha) * alpha.sum(axis=1, keepdims=True)))
    for _ in range(n_steps):
        gamma = next_gamma(n, alpha, beta, gamma)
    return next_gamma(n, alpha, beta, gamma) - alpha, joint_bound(n, alpha, beta, gamma)


def add_log_shares(label_sets, counts, alpha):
    """Return sums over documents of digamma(gamma) - digamma(alpha), and of digamma(totals)."""
    sums, totals = np.zeros(alpha.shape), np.zeros(len(alpha))
    for labels, own in zip(label_sets, counts, strict=True):
        gamma = alpha[labels] + own
        sums[labels] += digamma(gamma) - digamma(alpha[labels])
        totals[labels] += digamma(gamma.sum(axis=1))
    return sums, totals


def add_topic_shares(label_sets, counts, alpha):
    """Return the sums over documents of each label's expected topic shares, Eq. (17)."""
    sums = np.zeros(alpha.shape)
    for labels, own in zip(label_sets, counts, strict=True):
        gamma = alpha[labels] + own
        sums[labels] += gamma / gamma.sum(axis=1, keepdims=True)
    return sums


def count_topic_words(R, E, beta):
    """Return expected counts of words by topic; R holds n / t and E holds e of documents."""
    return beta.T * (R.T @ E)


def weigh_points(label_sets, docs, shares):
    """Return the posterior weight of each point, and the log likelihood of the label sets."""
    weights, total = np.zeros(shares.shape[1]), 0.0
    for labels, n_docs in zip(label_sets, docs, strict=True):
        logs = np.log(shares[labels]).sum(axis=0)
        weights += n_docs * softmax(logs)
        total += n_docs * (logsumexp(logs) - np.log(logs.size))
    return weights, total


def class_weights(n, theta, start, n_steps):
    """Return a document's label shares after some EM steps."""
    weights = start.copy()
    for _ in range(n_steps):
        weights = weights * (theta @ (n / (weights @ theta))) / n.sum()
    return weights


def likelihood_bound(n, theta, weights):
    """Return the bound of class_weights on the log likelihood of any label shares."""
    t = weights @ theta
    return n @ np.log(t) + n.sum() * np.log((theta @ (n / t)).max() / n.sum())


def search_label_sets(n, theta, candidates, keep_first, shares, log_scales, temperature):
    """Return the label sets that the greedy search visits, and their log posteriors."""

    def value(labels):
        words = n @ np.log(theta[labels].mean(axis=0)) / temperature
        return words + logsumexp(log_scales[len(labels)] + np.log(shares[labels]).sum(axis=0))

    visited, chosen, best = [], [], -np.inf
    while len(chosen) < min(len(candidates), len(log_scales) - 1):
        left = [label for label in candidates if label not in chosen]
        if keep_first and not chosen:
            left = candidates[:1]
        values = [value([*chosen, label]) for label in left]
        visited += [({*chosen, label}, v) for label, v in zip(left, values, strict=True)]
        if max(values) <= best:
            break
        best, chosen = max(values), [*chosen, left[int(np.argmax(values))]]
    return visited


def elementary(values, size):
    """Return the elementary symmetric polynomial of this degree."""
    return sum(np.prod(chosen) for chosen in combinations(values, size))


def log_set_prior(labels, shares, size_proba):
    """Return the log prior of a label set, shares being (points, labels)."""
    each = [np.prod(row[list(labels)]) / elementary(row, len(labels)) for row in shares]
    return float(np.log(size_proba[len(labels)] * np.mean(each)))


def label_bound(labels, mean, variance, mu, sigma):
    """Return a label set's part of the variational bound."""
    C, inverse = mu.size, np.linalg.inv(sigma)
    off, indicator = mean - mu, np.isin(np.arange(C), labels)
    value = -0.5 * np.linalg.slogdet(sigma)[1] - 0.5 * off @ inverse @ off
    value += -0.5 * np.diag(inverse) @ variance + indicator @ mean
    value += -len(labels) * logsumexp(mean + variance / 2) + 0.5 * np.log(variance).sum()
    return float(value + C / 2)
