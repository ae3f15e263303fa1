"""The equations of two papers as they are printed: slow, obvious, and independent of the library.

[1] Ueda and Saito, "Parametric Mixture Models for Multi-Labeled Text", NIPS 15, 2002.
[2] Sato and Nakagawa, "Bayesian Document Generative Model with Explicit Multiple Topics",
EMNLP-CoNLL 2007.

``theta`` is (n_labels, n_words), ``x`` one document's counts, ``labels`` a sorted tuple of label
indices, ``alpha`` the (n_labels, n_labels) biases of PMM2, ``mixing`` the (n_labels,) Dirichlet
parameters of PDMM. Words that a document does not contain never count, whatever their probability.
"""

# ruff: noqa: E741, l and m are the labels of a pair in the paper

from itertools import combinations, product
from math import log, log1p

import numpy as np
from scipy.integrate import quad
from scipy.special import betaln, digamma, entr, gammaln, xlogy

# PMM2 [1] ---------------------------------------------------------------------------------------


def pmm2_theta_pair(theta, alpha, l, m):
    """Return the word distribution of a pair of labels, Eq. (4)."""
    return alpha[l, m] * theta[l] + alpha[m, l] * theta[m]


def pmm2_phi(theta, alpha, labels):
    """Return the word distribution of a label set by the double sum of Eq. (4) and (5)."""
    h = 1 / len(labels)
    phi = np.zeros(theta.shape[1])
    for l, m in product(labels, repeat=2):
        phi += h * h * pmm2_theta_pair(theta, alpha, l, m)
    return phi


def pmm2_log_likelihood(x, theta, alpha, labels):
    """Return the logarithm of Eq. (5), without the multinomial coefficient."""
    return float(xlogy(x, pmm2_phi(theta, alpha, labels)).sum())


def pmm2_log_prior(theta, alpha, smoothing, bias_smoothing):
    r"""Return the second and third term of Eq. (6).

    Equation (6) is right as printed. Its last sum is over *ordered* pairs, so a pair {l, m} brings
    (zeta - 1) (log alpha_lm + log alpha_ml). The bound (14) is over ordered pairs too, and with
    g_lm = g_ml it holds every pair twice: with B_lm = sum x g_lm lambda_lm the M step maximizes

        2 B_lm log alpha_lm + 2 B_ml log alpha_ml + w (log alpha_lm + log alpha_ml),

    so alpha_lm = (B_lm + w / 2) / (B_lm + B_ml + w), which is Eq. (17) for w = zeta - 1: the "/ 2"
    comes from the two of the bound, not from a halved prior. The diagonal, alpha_ll = 1/2, adds
    the constant n_labels (zeta - 1) log(1/2).
    """
    return float(xlogy(smoothing, theta).sum() + xlogy(bias_smoothing, alpha).sum())


def pmm2_objective(X, Y, theta, alpha, smoothing, bias_smoothing):
    """Return J, Eq. (6) and (8); documents without labels do not count."""
    total = pmm2_log_prior(theta, alpha, smoothing, bias_smoothing)
    for x, y in zip(X, Y, strict=True):
        if np.any(y):
            total += pmm2_log_likelihood(x, theta, alpha, _labels(y))
    return float(total)


def pmm2_bound(X, Y, theta, alpha, old_theta, old_alpha):
    """Return U, Eq. (14), whose maximum with the prior is the next step."""
    total = 0.0
    for l, m, i, count, g, lam_lm, lam_ml, h in _pmm2_terms(X, Y, old_theta, old_alpha):
        total += count * g * xlogy(lam_lm, h * h * alpha[l, m] * theta[l, i])
        total += count * g * xlogy(lam_ml, h * h * alpha[m, l] * theta[m, i])
    return float(total)


def pmm2_em_step(X, Y, theta, alpha, smoothing, bias_smoothing):
    """Return the next theta and alpha by Eq. (16) and (17), q being g; alpha_ll stays 1/2.

    A pair that never occurs keeps its bias when there is no prior (0 / 0 in Eq. (17)).
    """
    n_labels, n_words = theta.shape
    words = np.zeros((n_labels, n_words))  # sum over n and m of x g lambda, for each l and i
    own = np.zeros((n_labels, n_labels))  # sum over n and i of x g lambda
    pair = np.zeros((n_labels, n_labels))  # sum over n and i of x g
    for l, m, i, count, g, lam_lm, _, _ in _pmm2_terms(X, Y, theta, alpha):
        words[l, i] += count * g * lam_lm
        own[l, m] += count * g * lam_lm
        pair[l, m] += count * g

    new_theta = np.zeros_like(words)
    for l, i in product(range(n_labels), range(n_words)):
        above = 2 * words[l, i] + smoothing
        new_theta[l, i] = above / (2 * words[l].sum() + n_words * smoothing)

    new_alpha = np.array(alpha, dtype=float)
    for l, m in product(range(n_labels), repeat=2):
        below = pair[l, m] + bias_smoothing
        if l != m and below > 0:
            new_alpha[l, m] = (own[l, m] + bias_smoothing / 2) / below
    return new_theta, new_alpha


def pmm2_word_shares(x, theta, alpha, labels):
    """Return {(word, label): share} of a document, c_l theta_li / phi_i."""
    h = 1 / len(labels)
    phi = pmm2_phi(theta, alpha, labels)
    shares = {}
    for i in np.flatnonzero(x):
        for l in labels:
            weight = 2 * h * sum(h * alpha[l, m] for m in labels)
            shares[int(i), l] = float(weight * theta[l, i] / phi[i])
    return shares


def _pmm2_terms(X, Y, theta, alpha):
    """Yield l, m, i, x_ni, g_lmi of Eq. (9), lambda_lmi and lambda_mli of Eq. (10), and h."""
    for x, y in zip(X, Y, strict=True):
        labels = _labels(y)
        if not labels:
            continue
        h = 1 / len(labels)
        phi = pmm2_phi(theta, alpha, labels)
        for l, m in product(labels, repeat=2):
            both = pmm2_theta_pair(theta, alpha, l, m)
            for i in np.flatnonzero(x):
                if both[i] > 0:
                    g = h * h * both[i] / phi[i]
                    lam_lm = alpha[l, m] * theta[l, i] / both[i]
                    lam_ml = alpha[m, l] * theta[m, i] / both[i]
                    yield l, m, i, x[i], g, lam_lm, lam_ml, h


def _labels(y):
    return tuple(int(l) for l in np.flatnonzero(y))


# PDMM [2] ---------------------------------------------------------------------------------------


def vb(x, theta, labels, mixing, n_iter=10_000):
    """Return gamma (n of labels,) and phi (tokens, n of labels) by Eq. (29) and (30).

    phi starts from equal shares. The loop ends when neither moves by 1e-12, or after ``n_iter``
    rounds (at least one). A word that no label can say keeps equal shares.
    """
    tokens = _tokens(x)
    phi = np.full((len(tokens), len(labels)), 1 / len(labels))
    gamma = np.zeros(len(labels))
    for _ in range(n_iter):
        old_gamma, old_phi = gamma, phi
        gamma = np.array([mixing[i] + old_phi[:, k].sum() for k, i in enumerate(labels)])
        phi = old_phi.copy()
        for n, word in enumerate(tokens):
            unscaled = theta[list(labels), word] * np.exp(digamma(gamma) - digamma(gamma.sum()))
            if unscaled.sum() > 0:
                phi[n] = unscaled / unscaled.sum()
        still = np.linalg.norm(gamma - old_gamma) < 1e-12
        if still and np.linalg.norm(phi - old_phi) < 1e-12:
            break
    return gamma, phi


def elbo(x, theta, labels, mixing, gamma, phi):
    """Return F[Q], the lines (21) to (25), with the sum of log Gamma(gamma_i) in (24)."""
    prior = np.array([mixing[i] for i in labels])
    expected_log = digamma(gamma) - digamma(gamma.sum())

    line_21 = gammaln(prior.sum()) - gammaln(prior).sum() + ((prior - 1) * expected_log).sum()
    line_22 = line_23 = line_25 = 0.0
    for n, word in enumerate(_tokens(x)):
        for k, i in enumerate(labels):
            line_22 += phi[n, k] * expected_log[k]
            line_23 += xlogy(phi[n, k], theta[i, word])
            line_25 -= xlogy(phi[n, k], phi[n, k])
    line_24 = -gammaln(gamma.sum()) + gammaln(gamma).sum() - ((gamma - 1) * expected_log).sum()
    return float(line_21 + line_22 + line_23 + line_24 + line_25)


def phi_of(x, theta, labels, gamma):
    """Return phi (tokens, n of labels) by Eq. (28): the best for these Dirichlet parameters."""
    phi = []
    for word in _tokens(x):
        unscaled = [
            theta[i, word] * np.exp(digamma(gamma[k]) - digamma(gamma.sum()))
            for k, i in enumerate(labels)
        ]
        phi.append([value / sum(unscaled) for value in unscaled])
    return np.array(phi).reshape(-1, len(labels))


def nbm_theta(X, Y):
    """Return theta of NBM, section 5.2: one plus the documents of a topic that have a word."""
    theta = np.ones((Y.shape[1], X.shape[1]))
    for x, y in zip(X, Y, strict=True):
        for i in np.flatnonzero(y):
            for v in np.flatnonzero(x):
                theta[i, v] += 1
    return theta / theta.sum(axis=1, keepdims=True)


def pdmm_paper_score(x, theta, labels, gamma):
    """Return the logarithm of Eq. (35), with the posterior mean of the shares in Eq. (34)."""
    mean = gamma / gamma.sum()
    return float(xlogy(x, mean @ theta[list(labels)]).sum())


def pdmm_evidence_two_labels(x, theta, labels, mixing):
    """Return the logarithm of the integral (4) for two labels, by quadrature.

    The Beta density is the quadrature's own weight, so parameters below one are safe; the
    likelihood is scaled by its peak.
    """
    first, second = labels

    def log_likelihood(share):
        return xlogy(x, share * theta[first] + (1 - share) * theta[second]).sum()

    peak = max(log_likelihood(share) for share in np.linspace(0, 1, 1001))
    if peak == -np.inf:
        return -np.inf
    integral, _ = quad(
        lambda share: np.exp(log_likelihood(share) - peak),
        0,
        1,
        weight="alg",
        wvar=(mixing[first] - 1, mixing[second] - 1),
        epsabs=0,
        epsrel=1e-11,
        limit=500,
    )
    return float(peak + log(integral) - betaln(mixing[first], mixing[second]))


def pdmm_evidence_by_sum(x, theta, labels, mixing):
    """Return the logarithm of Eq. (8) by the sum over all z, for any labels and few tokens."""
    tokens = _tokens(x)
    prior = np.array([mixing[i] for i in labels])
    terms = []
    for z in product(range(len(labels)), repeat=len(tokens)):
        counts = prior + np.bincount(z, minlength=len(labels))[: len(labels)]
        term = gammaln(prior.sum()) - gammaln(prior).sum()
        term += gammaln(counts).sum() - gammaln(counts.sum())
        for word, k in zip(tokens, z, strict=True):
            term += xlogy(1, theta[labels[k], word])
        terms.append(term)
    return float(np.logaddexp.reduce(terms))


def entropy(shares):
    """Return the entropy of one word's shares (Section 5.3), with its minus sign."""
    return float(sum(entr(share) for share in shares))


def _tokens(x):
    return [word for word, count in enumerate(x) for _ in range(int(count))]


# Search -----------------------------------------------------------------------------------------


def greedy(score, n_labels, allowed):
    """Return the set that the greedy search of both papers finds, [2] Section 4.5.

    ``allowed[label]`` is true for labels that may be given. Equal scores take the first label, and
    a label must really improve the score; the search also ends when no label is left.
    """
    left = [label for label in range(n_labels) if allowed[label]]
    chosen, best = (), -np.inf
    while left:
        scores = [score(tuple(sorted((*chosen, label)))) for label in left]
        at = int(np.argmax(scores))
        if not scores[at] > best:
            break
        best = scores[at]
        chosen = tuple(sorted((*chosen, left.pop(at))))
    return chosen


def exhaustive(score, n_labels, allowed):
    """Return (score, labels) of all non-empty sets of allowed labels, best first.

    Of equal scores the smaller set comes first, then the first in order.
    """
    sets = _non_empty_sets([label for label in range(n_labels) if allowed[label]])
    return sorted(((score(s), s) for s in sets), key=lambda pair: (-pair[0], len(pair[1]), pair[1]))


def _non_empty_sets(labels):
    return [s for size in range(1, len(labels) + 1) for s in combinations(labels, size)]


# Posterior over label sets ----------------------------------------------------------------------


def log_prior(kind, labels, set_docs, n_labels):
    """Return the log prior of a label set, from {label set: documents}.

    "labelset": P(y) = max(n_y - d, 0) / n + (d S / n) P_0(y), d = .75 and S the sets seen;
    "labels": P_0(y), every label apart, over non-empty sets; "uniform": 0. Documents without
    labels do not count.
    """
    if kind == "uniform":
        return 0.0
    seen = {s: docs for s, docs in set_docs.items() if s and docs > 0}
    n_docs = sum(seen.values())
    log_p0 = 0.0
    log_none = 0.0
    for label in range(n_labels):
        share = sum(docs for s, docs in seen.items() if label in s) / n_docs
        share = min(share, 1 - 1e-12)
        log_p0 += float(xlogy(1, share)) if label in labels else log1p(-share)
        log_none += log1p(-share)
    log_p0 -= log(-np.expm1(log_none))
    if kind == "labels":
        return log_p0
    if kind != "labelset":
        raise ValueError(f"kind == {kind!r}, must be 'labelset', 'labels' or 'uniform'.")
    discount = 0.75
    own = max(seen.get(tuple(labels), 0) - discount, 0) / n_docs
    return float(xlogy(1, own + discount * len(seen) / n_docs * np.exp(log_p0)))


def expected_f(posterior, answer):
    """Return the expectation of F between the true set, drawn from the posterior, and an answer."""
    return sum(proba * _f(labels, answer) for labels, proba in posterior.items())


def best_expected_f(posterior, answers):
    """Return (expected F, answer) of the best answer, the first of equal ones."""
    return max(((expected_f(posterior, a), a) for a in answers), key=lambda pair: pair[0])


def _f(truth, answer):
    if not truth and not answer:
        return 1.0
    return 2 * len(set(truth) & set(answer)) / (len(truth) + len(answer))
