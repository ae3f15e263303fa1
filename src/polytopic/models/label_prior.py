"""Which labels go together: a logistic normal prior of label sets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy import sparse
from scipy.special import log_softmax, logsumexp, ndtri
from threadpoolctl import threadpool_limits

BLOCK = 1 << 21  # numbers in an array of label sets × points
N_POINTS = 4096
JITTER = 1e-9
SMALLEST, LARGEST = 1e-200, 1e200  # numbers whose products are numbers, too


@dataclass(frozen=True)
class LabelPrior:
    r"""How likely a label set is, where labels are drawn from logistic normal shares.

    With :math:`\eta \sim N(\mu, \Sigma)` and :math:`l = \mathrm{softmax}(\eta)`, the labels of a
    set of given size are drawn by :math:`l` without order or repetition:

    .. math:: P(y) = p(|y|)\; E\left[\prod_{c \in y} l_c \,/\, e_{|y|}(l)\right]

    with :math:`e_m` the elementary symmetric polynomials; the expectation is the mean over 4096
    points of a Sobol sequence. :math:`\Sigma` and :math:`\Sigma + \tau 1 1^\top` are the same
    prior; the parameters are those without a common shift.

    Attributes
    ----------
    mean : ndarray of shape (n_labels,)
        :math:`P\mu`, with :math:`P = I - 1 1^\top / C`.
    covariance : ndarray of shape (n_labels, n_labels)
        :math:`P \Sigma P`.
    size_proba : ndarray of shape (largest + 1,)
        Share of documents with each number of labels, with half a document for what was not seen.
    """

    mean: np.ndarray
    covariance: np.ndarray
    size_proba: np.ndarray

    @cached_property
    def log_shares(self) -> np.ndarray:
        """Logarithms of the labels' shares at each point, (n_points, n_labels)."""
        with threadpool_limits(1, "blas"):  # whose threads change the last bits
            return log_shares(self.mean, self.covariance, normal_points(self.mean.size))

    @cached_property
    def log_scales(self) -> np.ndarray:
        """What products of shares are multiplied by, (largest + 1, n_points), as logarithms."""
        with np.errstate(divide="ignore"):
            log_sizes = np.log(self.size_proba)[:, None] - np.log(self.log_shares.shape[0])
        return log_sizes - log_elementary(self.log_shares, self.size_proba.size - 1)

    def log_prior(self, sets) -> np.ndarray:
        """Return the log prior of each row of an indicator; ``-inf`` of sizes not seen."""
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

    def correlations(self) -> np.ndarray:
        """Return the correlations of labels, of what of the covariance is identified."""
        scale = np.sqrt(np.maximum(np.diag(self.covariance), np.finfo(float).tiny))
        return self.covariance / np.outer(scale, scale)


def centred(mean, covariance):
    """Return the parameters without a common shift of all labels."""
    covariance = covariance - covariance.mean(axis=0)
    covariance -= covariance.mean(axis=1, keepdims=True)
    return mean - mean.mean(), (covariance + covariance.T) / 2


@lru_cache(maxsize=4)
def normal_points(n_labels, n_points=N_POINTS) -> np.ndarray:
    """Return points of a standard normal distribution, of mean 0 and covariance 1 exactly."""
    from scipy.stats import qmc  # which is slow to load

    n_points = max(n_points, 1 << (2 * n_labels).bit_length())
    points = qmc.Sobol(n_labels, rng=np.random.default_rng(0)).random(n_points)
    normal = ndtri(np.clip(points, 1e-12, 1 - 1e-12))
    normal -= normal.mean(axis=0)
    with threadpool_limits(1, "blas"):  # whose threads change the last bits
        return np.linalg.solve(np.linalg.cholesky(normal.T @ normal / n_points), normal.T).T


def log_shares(mean, covariance, normals) -> np.ndarray:
    """Return the logarithms of the labels' shares at each point."""
    return log_softmax(points_of(mean, covariance, normals), axis=1)


def points_of(mean, covariance, normals) -> np.ndarray:
    """Return points of a normal distribution; refuse a covariance that is not one."""
    return mean + normals @ root_of(covariance).T


def root_of(covariance) -> np.ndarray:
    """Return the Cholesky factor of a covariance, which may be singular."""
    return np.linalg.cholesky(covariance + JITTER * np.eye(len(covariance)))


def log_elementary(log_shares, largest) -> np.ndarray:
    """Return the logarithms of the elementary symmetric polynomials, (largest + 1, n_points)."""
    n_points, n_labels = log_shares.shape
    shares = np.exp(log_shares.T + np.log(n_labels))  # in units of the mean share
    out = np.zeros((largest + 1, n_points))
    out[0] = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        for share in shares:
            out[1:] += share * out[:-1]
    with np.errstate(divide="ignore"):  # more labels than there are
        logs = np.log(out) - np.log(n_labels) * np.arange(largest + 1)[:, None]
    possible = out[: n_labels + 1]
    far = ~((possible > SMALLEST) & (possible < LARGEST)).all(axis=0)
    if far.any():
        logs[:, far] = _slow_log_elementary(log_shares[far], largest)
    return logs


def _slow_log_elementary(log_shares, largest):
    """Return the same of numbers that are too large or too small, adding up by logarithms."""
    out = np.full((largest + 1, log_shares.shape[0]), -np.inf)
    out[0] = 0.0
    for log_share in log_shares.T:
        out[1:] = np.logaddexp(out[1:], log_share + out[:-1])
    return out
