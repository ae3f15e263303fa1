r"""Which labels occur together: a logistic normal prior of label sets, and two ways to learn it.

``fit_label_prior`` learns it from distinct label sets and their numbers of documents: by Monte
Carlo EM (``climb_likelihood``), or by the variational EM of Wang, Huang and Zhu
(``climb_bound``), which finds little correlation if most documents have one label.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, starmap

import numpy as np
from scipy import sparse
from scipy.special import log_softmax, logsumexp, ndtri, softmax
from threadpoolctl import threadpool_limits

from polytopic.kernels.blocks import block_borders
from polytopic.labels import indicator
from polytopic.models.col.kernels import weigh_points

N_POINTS = 4096
BLOCK = 1 << 21  # entries of an array of label sets × points
BLOCK_SHARES = 1 << 24  # label shares × points per kernel call, which cannot be interrupted
JITTER = 1e-9  # makes a singular covariance positive definite
SMALLEST, LARGEST = 1e-200, 1e200  # beyond these, polynomials are computed in logarithms
RIDGE = 0.01  # added to a learned covariance
GROWTH = 1.5  # factor by which successful EM steps grow
UNSEEN_SIZE = 0.5  # documents added to each size, up to one label more than was seen
SWEEPS, CG_STEPS, MAX_HALVINGS = 3, 20, 30  # of variational EM
MAX_SWEEPS, CONVERGED = 1000, 1e-14  # until a bound is at its maximum


@dataclass(frozen=True)
class LabelPrior:
    r"""Prior probability of label sets whose labels are drawn from logistic normal shares.

    With :math:`\eta \sim N(\mu, \Sigma)` and :math:`l = \mathrm{softmax}(\eta)`, the labels of a
    set of given size are drawn by :math:`l` without order or repetition:

    .. math:: P(y) = p(|y|)\; E\left[\prod_{c \in y} l_c \,/\, e_{|y|}(l)\right]

    with :math:`e_m` the elementary symmetric polynomials. The expectation is the mean over 4096
    points of a Sobol sequence. :math:`\Sigma` and :math:`\Sigma + \tau 1 1^\top` give the same
    prior; the parameters are those without a common shift.

    Attributes
    ----------
    mean : ndarray of shape (n_labels,)
        :math:`P\mu`, with :math:`P = I - 1 1^\top / C`.
    covariance : ndarray of shape (n_labels, n_labels)
        :math:`P \Sigma P`.
    size_proba : ndarray of shape (largest + 1,)
        Share of documents with each number of labels, smoothed by half a document per size.
    """

    mean: np.ndarray
    covariance: np.ndarray
    size_proba: np.ndarray

    @cached_property
    def log_shares(self) -> np.ndarray:
        """Log label shares at each point, (n_points, n_labels)."""
        with threadpool_limits(1, "blas"):  # the number of threads would change the last bits
            points = normal_points(self.mean, self.covariance, standard_points(self.mean.size))
            return log_softmax(points, axis=1)

    @cached_property
    def log_scales(self) -> np.ndarray:
        """Logarithms of the factors of products of shares, (largest + 1, n_points)."""
        with np.errstate(divide="ignore"):
            log_sizes = np.log(self.size_proba)[:, None] - np.log(self.log_shares.shape[0])
        return log_sizes - log_elementary(self.log_shares, self.size_proba.size - 1)

    def log_prior(self, sets) -> np.ndarray:
        """Return the log prior of each row of an indicator; ``-inf`` for an impossible size."""
        sets = sparse.csr_matrix(sets)
        sizes, largest = np.diff(sets.indptr), self.size_proba.size - 1
        out = np.full(sets.shape[0], -np.inf)
        possible = np.flatnonzero((sizes > 0) & (sizes <= largest))
        possible = possible[self.size_proba[sizes[possible]] > 0]
        step = max(1, BLOCK // self.log_shares.shape[0])
        for start in range(0, possible.size, step):
            rows = possible[start : start + step]
            values = sets[rows] @ self.log_shares.T + self.log_scales[sizes[rows]]
            out[rows] = logsumexp(values, axis=1)
        return out

    def log_labels(self) -> np.ndarray:
        """Return the log probability of each label as the only one drawn: of the mean share."""
        return logsumexp(self.log_shares, axis=0) - np.log(self.log_shares.shape[0])

    def log_label_bounds(self) -> np.ndarray:
        """Return the paper's lower bound of :meth:`log_labels`, at the maximum of Eq. (7), (8)."""
        with threadpool_limits(1, "blas"):  # the number of threads would change the last bits
            alone = sparse.identity(self.mean.size, format="csr")
            posteriors = SetPosteriors(alone, self.mean, self.covariance)
            return posteriors.maximum()

    def correlations(self) -> np.ndarray:
        """Return the correlations of labels, by the centred covariance."""
        _, covariance = centre(self.mean, self.covariance)
        scale = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
        return covariance / np.outer(scale, scale)


@lru_cache(maxsize=4)
def standard_points(n_labels, n_points=N_POINTS) -> np.ndarray:
    """Return standard normal points, whose mean is exactly 0 and covariance exactly 1."""
    from scipy.stats import qmc  # slow to import

    n_points = max(n_points, 1 << (2 * n_labels).bit_length())
    points = qmc.Sobol(n_labels, rng=np.random.default_rng(0)).random(n_points)
    normal = ndtri(np.clip(points, 1e-12, 1 - 1e-12))
    normal -= normal.mean(axis=0)
    with threadpool_limits(1, "blas"):  # the number of threads would change the last bits
        return np.linalg.solve(np.linalg.cholesky(normal.T @ normal / n_points), normal.T).T


def normal_points(mean, covariance, standard) -> np.ndarray:
    """Return points of ``N(mean, covariance)``, from standard normal ones."""
    return mean + standard @ cholesky(covariance).T


def cholesky(covariance) -> np.ndarray:
    """Return the Cholesky factor of a covariance, which may be singular."""
    return np.linalg.cholesky(covariance + JITTER * np.eye(len(covariance)))


def log_elementary(log_shares, largest) -> np.ndarray:
    """Return the logarithms of the elementary symmetric polynomials, (largest + 1, n_points)."""
    n_points, n_labels = log_shares.shape
    shares = np.exp(log_shares.T + np.log(n_labels))  # relative to the mean share
    out = np.zeros((largest + 1, n_points))
    out[0] = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        for share in shares:
            out[1:] += share * out[:-1]
    with np.errstate(divide="ignore"):  # there is no product of more labels than there are
        logs = np.log(out) - np.log(n_labels) * np.arange(largest + 1)[:, None]
    possible = out[: n_labels + 1]
    extreme = ~((possible > SMALLEST) & (possible < LARGEST)).all(axis=0)
    if extreme.any():
        logs[:, extreme] = _slow_log_elementary(log_shares[extreme], largest)
    return logs


def _slow_log_elementary(log_shares, largest):
    """Return the same as :func:`log_elementary`, by sums of logarithms."""
    out = np.full((largest + 1, log_shares.shape[0]), -np.inf)
    out[0] = 0.0
    for log_share in log_shares.T:
        out[1:] = np.logaddexp(out[1:], log_share + out[:-1])
    return out


# Learning


def distinct_sets(Y) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return the distinct label sets as rows of an indicator, and how often each occurs."""
    Y = sparse.csr_matrix(Y).sorted_indices()
    docs = Counter(tuple(row.tolist()) for row in np.split(Y.indices, Y.indptr[1:-1]) if row.size)
    sets = sorted(docs)
    ends = np.cumsum([0, *map(len, sets)])
    labels = np.array([label for labels in sets for label in labels], dtype=np.int64)
    return indicator(labels, ends, Y.shape[1]), np.array([docs[labels] for labels in sets], float)


def fit_label_prior(sets, docs, method, *, as_published=False, max_iter=100, tol=1e-3):
    """Return the prior that fits label sets best, and the objective after each step.

    Parameters
    ----------
    sets : csr_matrix of shape (n_sets, n_labels)
        Distinct label sets; every label occurs.
    docs : ndarray of shape (n_sets,)
        Number of documents of each.
    method : {"mcem", "variational"}
        How to learn mean and covariance.
    as_published : bool, default=False
        Whether the variational updates are Eq. (10) and (11) without a ridge, and the parameters
        are those that the updates end with, not centred.
    max_iter : int, default=100
        Largest number of steps.
    tol : float, default=1e-3
        Learning ends once a step raises the objective, a mean over documents, by less.
    """
    sizes = np.bincount(np.diff(sets.indptr), weights=docs).astype(np.float64)
    sizes = np.append(sizes, np.zeros(int(sizes.size <= sets.shape[1])))
    sizes[1:] += UNSEEN_SIZE
    with threadpool_limits(1, "blas"):  # the number of threads would change the last bits
        if method == "mcem":
            mean, covariance, objective = climb_likelihood(sets, docs, max_iter, tol)
        else:
            ridge = 0.0 if as_published else RIDGE
            mean, covariance, objective = climb_bound(sets, docs, max_iter, tol, ridge)
        if as_published:
            covariance = (covariance + covariance.T) / 2  # an inverse is symmetric up to rounding
        else:
            mean, covariance = centre(mean, covariance)
        return LabelPrior(mean, covariance, sizes / sizes.sum()), objective


def centre(mean, covariance):
    """Return the parameters without a common shift of all labels."""
    covariance = covariance - covariance.mean(axis=0)
    covariance -= covariance.mean(axis=1, keepdims=True)
    return mean - mean.mean(), (covariance + covariance.T) / 2


def _independent_labels(sets, docs):
    """Return the mean and covariance of independent labels, to start from."""
    share = (sets.T @ docs) / docs.sum()
    return np.log(share) - np.log(share).mean(), np.eye(share.size)


def climb_likelihood(sets, docs, max_iter, tol):
    """Raise the mean log likelihood of label sets by Monte Carlo EM.

    All steps use the same standard normal points. Steps get longer while they succeed; a step
    that would lower the likelihood is not taken.
    """
    standard = standard_points(sets.shape[1])
    current = _independent_labels(sets, docs)
    value, target = _em_step(sets, docs, current, standard)
    objective, factor = [value], 1.0
    while len(objective) <= max_iter:
        candidate = tuple(a + factor * (b - a) for a, b in zip(current, target, strict=True))
        try:
            value, moments = _em_step(sets, docs, candidate, standard)
        except np.linalg.LinAlgError:  # the step was too long: not a covariance any more
            value = -np.inf
        if value > objective[-1]:
            current, target = candidate, moments
            objective.append(value)
            if objective[-1] - objective[-2] < tol:
                break
            factor *= GROWTH
        elif factor > 1.0:
            factor = 1.0
        else:
            break
    return *current, objective


def _em_step(sets, docs, parameters, standard):
    """Return the mean log likelihood, and the mean and covariance that EM moves to."""
    mean, covariance = parameters
    points = normal_points(mean, covariance, standard)
    shares = np.ascontiguousarray(softmax(points, axis=1).T)
    weights = np.zeros(points.shape[0])
    indices, ends, value = sets.indices.astype(np.int64), sets.indptr.astype(np.int64), 0.0
    borders = block_borders(ends, BLOCK_SHARES // weights.size).tolist()
    for rows in starmap(slice, pairwise(borders)):
        block_ends = ends[rows.start : rows.stop + 1]
        value = weigh_points(indices, block_ends, docs[rows], shares, weights, value)
    value /= docs.sum()
    weights /= docs.sum()
    mean = weights @ points
    points -= mean
    return value, (mean, (points.T * weights) @ points + RIDGE * np.eye(mean.size))


def climb_bound(sets, docs, max_iter, tol, ridge=RIDGE):
    """Raise the variational bound of label sets, a mean over documents, by EM.

    The ridge of the covariance comes from a prior, ``exp(-ridge / 2 * trace(inv(Sigma)))``.
    """
    mean, covariance = _independent_labels(sets, docs)
    posteriors, share = SetPosteriors(sets, mean, covariance), docs / docs.sum()
    objective: list[float] = []
    while len(objective) <= max_iter:
        posteriors.improve()
        penalty = 0.5 * ridge * np.trace(posteriors.precision)
        objective.append(float(share @ posteriors.bound() - penalty))
        if len(objective) > 1 and objective[-1] - objective[-2] < tol:
            break
        mean = share @ posteriors.mean
        centred_means = posteriors.mean - mean
        covariance = (centred_means.T * share) @ centred_means
        covariance += np.diag(share @ posteriors.variance + ridge)
        posteriors.set_prior(mean, covariance)
    return posteriors.prior_mean, np.linalg.inv(posteriors.precision), objective


class SetPosteriors:
    r"""Normal posteriors of distinct label sets, rows of ``mean`` and ``variance``.

    The posterior of a set's :math:`\eta` is :math:`N(\lambda, \mathrm{diag}\,\nu)`. With
    :math:`M` labels, their indicator :math:`\bar c`, and :math:`\epsilon = \sum_i e^{\lambda_i +
    \nu_i/2}`, its part of the bound is (Wang, Huang and Zhu, Eq. (7), (8), (10), (11))

    .. math:: -\tfrac12\log|\Sigma| - \tfrac12(\lambda-\mu)^\top\Sigma^{-1}(\lambda-\mu)
              - \tfrac12\sum_i(\Sigma^{-1})_{ii}\nu_i + \bar c^\top\lambda - M\log\epsilon
              + \tfrac12\sum_i\log\nu_i + \tfrac C2
    """

    def __init__(self, sets, mean, covariance):
        self.sets, self.sizes = sets.toarray(), np.diff(sets.indptr)[:, None]
        self.mean = np.tile(mean, (sets.shape[0], 1))
        self.variance = np.ones(self.mean.shape)
        self.set_prior(mean, covariance)

    def set_prior(self, mean, covariance):
        """Set the parameters of the prior."""
        self.prior_mean, self.precision = mean, np.linalg.inv(covariance)
        self.log_det = np.linalg.slogdet(covariance)[1]

    def bound(self, mean=None, variance=None):
        """Return each set's part of the bound, at other means or variances if given."""
        mean = self.mean if mean is None else mean
        variance = self.variance if variance is None else variance
        off = mean - self.prior_mean
        value = -0.5 * self.log_det - 0.5 * ((off @ self.precision) * off).sum(axis=1)
        value += -0.5 * variance @ np.diag(self.precision) + (self.sets * mean).sum(axis=1)
        value -= self.sizes[:, 0] * logsumexp(mean + variance / 2, axis=1)
        return value + 0.5 * np.log(variance).sum(axis=1) + mean.shape[1] / 2

    def shares(self):
        """Return the expected label shares, normalized."""
        return softmax(self.mean + self.variance / 2, axis=1)

    def gradient(self):
        """Return the derivatives of the bound by means (Eq. (7)) and by variances (Eq. (8))."""
        expected = self.sizes * self.shares()
        by_mean = -(self.mean - self.prior_mean) @ self.precision + self.sets - expected
        by_variance = 0.5 * (1 / self.variance - np.diag(self.precision) - expected)
        return by_mean, by_variance

    def maximum(self):
        """Raise the bound of each set to its maximum; return it."""
        value, before = self.bound(), np.full(len(self.mean), -np.inf)
        for _ in range(MAX_SWEEPS):
            if (value - before <= CONVERGED * (1 + np.abs(value))).all():
                break
            self.improve()
            value, before = self.bound(), value
        return value

    def improve(self):
        """Raise the bound, by the means and by the variances in turn."""
        for _ in range(SWEEPS):
            step = self._newton_step()
            self.mean = self._line_search(step, lambda moved: self.bound(mean=moved), self.mean)
            maximum = 1 / (np.diag(self.precision) + self.sizes * self.shares())
            step = maximum - self.variance
            self.variance = self._line_search(
                step, lambda moved: self.bound(variance=moved), self.variance
            )

    def _newton_step(self):
        """Return Newton steps of the means, by conjugate gradients on all rows at once."""
        p, M = self.shares(), self.sizes

        def hessian_times(v):
            return v @ self.precision + M * p * (v - (p * v).sum(axis=1, keepdims=True))

        step, residual = np.zeros_like(p), self.gradient()[0]
        direction, norm = residual.copy(), (residual * residual).sum(axis=1, keepdims=True)
        for _ in range(CG_STEPS):
            image = hessian_times(direction)
            curvature = (direction * image).sum(axis=1, keepdims=True)
            length = np.divide(norm, curvature, out=np.zeros_like(norm), where=curvature > 0)
            step, residual = step + length * direction, residual - length * image
            before, norm = norm, (residual * residual).sum(axis=1, keepdims=True)
            growth = np.divide(norm, before, out=np.zeros_like(norm), where=before > 0)
            direction = residual + direction * growth
        return step

    def _line_search(self, step, bound, start):
        """Return rows moved by steps, each halved until the bound of its row does not fall."""
        before, moved = self.bound(), start.copy()
        remaining = np.ones(len(start), dtype=bool)
        for _ in range(MAX_HALVINGS):
            candidate = np.where(remaining[:, None], start + step, moved)
            better = remaining & (bound(candidate) >= before)
            moved[better] = candidate[better]
            remaining &= ~better
            if not remaining.any():
                break
            step = step / 2
        return moved
