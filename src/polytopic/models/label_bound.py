r"""The paper's own way to learn which labels go together: variational EM.

The posterior of a label set's :math:`\eta` is :math:`N(\lambda, \mathrm{diag}\,\nu)`, and with
:math:`M` labels of indicator :math:`\bar c`, :math:`\epsilon = \sum_i e^{\lambda_i + \nu_i/2}`,
its part of the bound is (Wang, Huang and Zhu, Eq. (7), (8), (10), (11))

.. math:: -\tfrac12\log|\Sigma| - \tfrac12(\lambda-\mu)^\top\Sigma^{-1}(\lambda-\mu)
          - \tfrac12\sum_i(\Sigma^{-1})_{ii}\nu_i + \bar c^\top\lambda - M\log\epsilon
          + \tfrac12\sum_i\log\nu_i + \tfrac C2

Where most documents have one label it finds hardly any correlation; see "mcem".
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, softmax

RIDGE = 0.01  # added to a covariance; here by a prior, exp(-RIDGE / 2 trace(inverse(Sigma)))
HALVINGS = 30
SWEEPS, SOLVER_STEPS = 3, 20


class SetPosteriors:
    """The posteriors of distinct label sets, rows of ``mean`` and ``variance``."""

    def __init__(self, sets, mean, covariance):
        self.sets, self.sizes = sets.toarray(), np.diff(sets.indptr)[:, None]
        self.mean = np.tile(mean, (sets.shape[0], 1))
        self.variance = np.ones(self.mean.shape)
        self.set_prior(mean, covariance)

    def set_prior(self, mean, covariance):
        """Take the parameters that the posteriors are to suit."""
        self.prior_mean, self.precision = mean, np.linalg.inv(covariance)
        self.log_det = np.linalg.slogdet(covariance)[1]

    def bound(self, mean=None, variance=None):
        """Return each set's part of the bound."""
        mean = self.mean if mean is None else mean
        variance = self.variance if variance is None else variance
        off = mean - self.prior_mean
        value = -0.5 * self.log_det - 0.5 * ((off @ self.precision) * off).sum(axis=1)
        value += -0.5 * variance @ np.diag(self.precision) + (self.sets * mean).sum(axis=1)
        value -= self.sizes[:, 0] * logsumexp(mean + variance / 2, axis=1)
        return value + 0.5 * np.log(variance).sum(axis=1) + mean.shape[1] / 2

    def shares(self):
        """Return the labels' expected shares, in parts of their sum."""
        return softmax(self.mean + self.variance / 2, axis=1)

    def gradient(self):
        """Return the derivatives of the bound by means (Eq. (7)) and variances (Eq. (8))."""
        expected = self.sizes * self.shares()
        by_mean = -(self.mean - self.prior_mean) @ self.precision + self.sets - expected
        by_variance = 0.5 * (1 / self.variance - np.diag(self.precision) - expected)
        return by_mean, by_variance

    def improve(self):
        """Climb the bound, by means and by variances in turn."""
        for _ in range(SWEEPS):
            step = self._newton_step()
            self.mean = self._halved(step, lambda moved: self.bound(mean=moved), self.mean)
            wanted = 1 / (np.diag(self.precision) + self.sizes * self.shares())
            step = wanted - self.variance
            self.variance = self._halved(
                step, lambda moved: self.bound(variance=moved), self.variance
            )

    def _newton_step(self):
        """Return the steps of the means, by conjugate gradients on all rows at once."""
        p, M = self.shares(), self.sizes

        def times(v):
            return v @ self.precision + M * p * (v - (p * v).sum(axis=1, keepdims=True))

        step, left = np.zeros_like(p), self.gradient()[0]
        way, norm = left.copy(), (left * left).sum(axis=1, keepdims=True)
        for _ in range(SOLVER_STEPS):
            image = times(way)
            curve = (way * image).sum(axis=1, keepdims=True)
            length = np.divide(norm, curve, out=np.zeros_like(norm), where=curve > 0)
            step, left = step + length * way, left - length * image
            before, norm = norm, (left * left).sum(axis=1, keepdims=True)
            way = left + way * np.divide(norm, before, out=np.zeros_like(norm), where=before > 0)
        return step

    def _halved(self, step, bound, here):
        """Return rows moved by a step that is halved until the bound does not fall."""
        before, moved = self.bound(), here.copy()
        left = np.ones(len(here), dtype=bool)
        for _ in range(HALVINGS):
            tried = np.where(left[:, None], here + step, moved)
            better = left & (bound(tried) >= before)
            moved[better] = tried[better]
            left &= ~better
            if not left.any():
                break
            step = step / 2
        return moved


def start(sets, docs):
    """Return the parameters of independent labels with their shares of documents."""
    share = (sets.T @ docs) / docs.sum()
    return np.log(share) - np.log(share).mean(), np.eye(share.size)


def climb_by_bound(sets, docs, max_iter, tol):
    """Climb the bound; the course has its mean over documents, with the prior of Sigma."""
    mean, covariance = start(sets, docs)
    posteriors, share = SetPosteriors(sets, mean, covariance), docs / docs.sum()
    course: list[float] = []
    while len(course) <= max_iter:
        posteriors.improve()
        penalty = 0.5 * RIDGE * np.trace(posteriors.precision)
        course.append(float(share @ posteriors.bound() - penalty))
        if len(course) > 1 and course[-1] - course[-2] < tol:
            break
        mean = share @ posteriors.mean
        off = posteriors.mean - mean
        covariance = (off.T * share) @ off + np.diag(share @ posteriors.variance + RIDGE)
        posteriors.set_prior(mean, covariance)
    return posteriors.prior_mean, np.linalg.inv(posteriors.precision), course
