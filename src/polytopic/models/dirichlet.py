"""Fitting Dirichlet distributions, several at once."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln, polygamma

SMALLEST, LARGEST = 1e-6, 1e6
LONGEST_STEP = 3.0  # of a logarithm
HALVINGS = 20


def fit_dirichlets(alpha, docs, log_means, n_steps=5):
    r"""Return parameters that suit the documents of each label better.

    They climb :math:`D \left[\log\Gamma(\sum_j \alpha_j) - \sum_j \log\Gamma(\alpha_j)
    + \sum_j \alpha_j \overline{\log\theta_j}\right]` (Wang, Huang and Zhu, Eq. (12) and (13)) by
    Newton's steps on :math:`\log\alpha`, halved until the objective does not fall. The Hessian is
    a diagonal and a matrix of rank one, so a step takes linear time.

    Parameters
    ----------
    alpha : ndarray of shape (n_labels, n_topics)
        Where to start.
    docs : ndarray of shape (n_labels,)
        Documents of each label; parameters of a label without any stay.
    log_means : ndarray of shape (n_labels, n_topics)
        Mean expected logarithm of topics' shares.
    n_steps : int, default=5
        Steps to take.
    """
    alpha, rows = alpha.copy(), np.flatnonzero(docs > 0)
    if alpha.shape[1] == 1:  # all words are this topic's, whatever it is
        return alpha
    for _ in range(n_steps):
        if not rows.size:
            break
        moved = _climb(alpha[rows], log_means[rows])
        change = np.abs(np.log(moved / alpha[rows])).max(axis=1)
        alpha[rows] = moved
        rows = rows[change > 1e-6]
    return alpha


def objective(alpha, log_means):
    """Return what is climbed, for each label and one document."""
    value = gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1)
    return value + (alpha * log_means).sum(axis=1)


def _climb(alpha, log_means):
    """Return the parameters after one step."""
    step = np.clip(_newton(alpha, log_means), -LONGEST_STEP, LONGEST_STEP)
    before, after, left = objective(alpha, log_means), alpha.copy(), np.arange(alpha.shape[0])
    for _ in range(HALVINGS):
        tried = np.clip(alpha[left] * np.exp(step[left]), SMALLEST, LARGEST)
        better = objective(tried, log_means[left]) >= before[left]
        after[left[better]] = tried[better]
        left = left[~better]
        if not left.size:
            break
        step[left] /= 2
    return after


def _newton(alpha, log_means):
    """Return the step of the logarithms: ``-inverse(H) @ g``, ``H = diag(h) + z * outer(v, v)``."""
    total = alpha.sum(axis=1, keepdims=True)
    g = alpha * (digamma(total) - digamma(alpha) + log_means)
    h = np.minimum(g, 0.0) - alpha**2 * polygamma(1, alpha)
    z, v = polygamma(1, total), alpha
    correction = (v * g / h).sum(axis=1, keepdims=True)
    correction /= 1 / z + (v * v / h).sum(axis=1, keepdims=True)
    return -(g - v * correction) / h
