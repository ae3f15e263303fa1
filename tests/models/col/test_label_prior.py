"""The prior of label sets, and both ways of learning it."""

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime
from scipy.special import logsumexp, softmax
from threadpoolctl import threadpool_limits

from polytopic.models.col.label_prior import (
    LabelPrior,
    SetPosteriors,
    centre,
    distinct_sets,
    fit_label_prior,
    log_elementary,
    normal_points,
    standard_points,
)
from tests.twins import col as twins


@pytest.fixture
def prior():
    """Return a prior of five labels."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    parameters = centre(rng.normal(size=5), root @ root.T)
    return LabelPrior(*parameters, np.array([0.0, 0.4, 0.3, 0.2, 0.05, 0.05]))


def all_sets(n_labels):
    """Return all label sets but the empty one, as tuples and as an indicator."""
    sets = [s for size in range(1, n_labels + 1) for s in combinations(range(n_labels), size)]
    Y = np.array([np.isin(np.arange(n_labels), s) for s in sets], dtype=float)
    return sets, sparse.csr_matrix(Y)


def test_it_is_a_distribution_of_label_sets(prior):
    """Probabilities of all sets sum to one, and those of one size to the share of that size."""
    sets, Y = all_sets(5)

    proba = np.exp(prior.log_prior(Y))

    assert proba.sum() == pytest.approx(1)
    for size in range(1, 6):
        of_size = sum(p for p, s in zip(proba, sets, strict=True) if len(s) == size)
        assert of_size == pytest.approx(prior.size_proba[size])


def test_it_is_the_mean_over_points(prior):
    """Probabilities are slow means of products divided by symmetric polynomials."""
    sets, Y = all_sets(5)
    shares = np.exp(prior.log_shares[:64])
    few = LabelPrior(prior.mean, prior.covariance, prior.size_proba)
    few.__dict__["log_shares"] = prior.log_shares[:64]

    log_prior = few.log_prior(Y)

    expected = [twins.log_set_prior(labels, shares, prior.size_proba) for labels in sets]
    np.testing.assert_allclose(log_prior, expected, rtol=1e-9)


def test_sets_of_no_known_size_are_impossible():
    """Sets of sizes that were not seen, and the empty set, have probability 0."""
    prior = LabelPrior(np.zeros(3), np.zeros((3, 3)), np.array([0.0, 1.0]))

    log_prior = prior.log_prior(sparse.csr_matrix([[0, 0, 0], [1, 0, 0], [1, 1, 0]]))

    assert log_prior[0] == log_prior[2] == -np.inf
    assert log_prior[1] == pytest.approx(np.log(1 / 3))


def test_symmetric_polynomials():
    """Symmetric polynomials are sums of all products."""
    shares = np.random.default_rng(0).dirichlet(np.ones(7), 3)

    sums = np.exp(log_elementary(np.log(shares), 8))

    for size in range(8):
        expected = [twins.elementary(row, size) for row in shares]
        np.testing.assert_allclose(sums[size], expected, rtol=1e-9)
    assert (sums[8] == 0).all()


def test_symmetric_polynomials_beyond_numbers():
    """Polynomials that overflow or underflow have finite logarithms."""
    log_shares = np.log(np.random.default_rng(0).dirichlet(np.ones(1200), 2))
    log_shares[1, ::2] -= 5.0

    logs = log_elementary(log_shares, 1200)

    np.testing.assert_allclose(logs[-1], log_shares.sum(axis=1))  # the product of all
    np.testing.assert_allclose(logs[1], logsumexp(log_shares, axis=1), atol=1e-9)
    assert np.isfinite(logs).all()


@pytest.mark.parametrize("n_labels", [20, 300])
def test_a_document_with_all_labels(n_labels):
    """A document with many labels, whose product of shares underflows, can be learned."""
    Y = sparse.csr_matrix(np.vstack([np.ones((1, n_labels)), np.eye(n_labels).repeat(3, axis=0)]))

    prior, trace = fit_label_prior(*distinct_sets(Y), "mcem", max_iter=3)

    assert np.isfinite(trace).all()
    assert (prior.log_prior(Y) <= 0).all()
    assert np.isfinite(prior.log_prior(Y)).all()


@pytest.mark.parametrize("n_labels", [150])
def test_points_do_not_depend_on_threads(n_labels):
    """Points have the same bits on any number of threads, also those of a prior."""
    root = np.random.default_rng(0).normal(size=(n_labels, n_labels))
    outputs = []
    for threads in (1, 2):
        standard_points.cache_clear()
        prior = LabelPrior(root[0], np.eye(n_labels) + np.outer(root[1], root[1]), np.ones(2) / 2)
        with threadpool_limits(threads, "blas"):
            outputs.append((standard_points(n_labels), prior.log_shares))

    for one, other in zip(*outputs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_points_have_the_moments_exactly():
    """The points have exactly the requested mean and covariance."""
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])

    points = normal_points(np.array([1.0, -1.0]), covariance, standard_points(2))

    np.testing.assert_allclose(points.mean(axis=0), [1, -1], atol=1e-9)
    np.testing.assert_allclose(np.cov(points.T, bias=True), covariance, atol=1e-8)


def test_a_common_shift_does_not_matter(prior):
    """Sigma and Sigma + tau are the same prior of label sets, up to the points."""
    _, Y = all_sets(5)
    shifted = LabelPrior(prior.mean + 3.0, prior.covariance + 1.0, prior.size_proba)

    np.testing.assert_allclose(prior.log_prior(Y), shifted.log_prior(Y), atol=0.02)
    mean, covariance = centre(shifted.mean, shifted.covariance)
    np.testing.assert_allclose(mean, prior.mean, atol=1e-9)
    np.testing.assert_allclose(covariance, prior.covariance, atol=1e-9)


def random_sets(n_docs=400, n_labels=5, seed=0):
    """Return an indicator whose first two labels often occur together."""
    rng = np.random.default_rng(seed)
    Y = rng.random((n_docs, n_labels)) < 0.2
    Y[:, 1] |= Y[:, 0] & (rng.random(n_docs) < 0.8)
    Y[~Y.any(axis=1), 2] = True
    return sparse.csr_matrix(Y.astype(float))


def test_distinct_sets():
    """Each set is listed once, with its number of documents; empty sets are not."""
    Y = sparse.csr_matrix([[0, 1, 1], [1, 0, 0], [0, 0, 0], [0, 1, 1]])

    sets, docs = distinct_sets(Y)

    assert sets.toarray().tolist() == [[1, 0, 0], [0, 1, 1]]
    assert docs.tolist() == [1, 2]


@pytest.mark.parametrize("how", ["mcem", "variational"])
def test_the_objective_never_falls(how):
    """Each step raises the objective."""
    _, trace = fit_label_prior(*distinct_sets(random_sets()), how, tol=1e-6)

    assert len(trace) > 3
    assert (np.diff(trace) >= -1e-12).all()


def test_a_climb_without_end_is_stopped():
    """By default, the objective is raised at most 100 times."""
    sets, docs = distinct_sets(random_sets())

    assert len(fit_label_prior(sets, docs, "variational", tol=-1.0)[1]) == 1 + 100
    assert len(fit_label_prior(sets, docs, "variational", tol=-1.0, max_iter=7)[1]) == 1 + 7


def test_learning_by_points_beats_independent_labels():
    """Held-out label sets are more likely, and the planted pair is found."""
    prior, _ = fit_label_prior(*distinct_sets(random_sets()), "mcem")
    held_out = random_sets(seed=1)

    shares = np.asarray(random_sets().sum(axis=0))[0]
    alone = LabelPrior(np.log(shares), np.zeros((5, 5)), prior.size_proba)

    assert prior.log_prior(held_out).mean() > alone.log_prior(held_out).mean() + 0.05
    correlations = prior.correlations()
    assert correlations[0, 1] == np.max(correlations - 2 * np.eye(5))
    np.testing.assert_allclose(np.diag(correlations), 1)


def test_a_planted_block_is_found():
    """Three labels that occur together are more correlated than any other pair."""
    rng, n_labels = np.random.default_rng(0), 10
    sigma = 2.0 * np.eye(n_labels)
    sigma[:3, :3] += 1.7 * (1 - np.eye(3))
    shares = softmax(rng.multivariate_normal(np.zeros(n_labels), sigma, 3000), axis=1)
    Y = np.zeros((3000, n_labels))
    for own, p in zip(Y, shares, strict=True):
        own[rng.choice(n_labels, size=rng.integers(1, 4), replace=False, p=p)] = 1

    correlations = fit_label_prior(*distinct_sets(sparse.csr_matrix(Y)), "mcem")[0].correlations()

    inside = np.zeros((n_labels, n_labels), dtype=bool)
    inside[:3, :3] = True
    pairs = np.triu_indices(n_labels, 1)
    values, block = correlations[pairs], inside[pairs]
    assert values[block].min() > values[~block].max() + 0.1


@pytest.fixture
def posteriors():
    """Return posteriors of label sets that have moved a little."""
    sets, _ = distinct_sets(random_sets(60))
    rng = np.random.default_rng(1)
    root = rng.normal(size=(5, 5))
    set_posteriors = SetPosteriors(sets, rng.normal(size=5), root @ root.T + np.eye(5))
    set_posteriors.mean, set_posteriors.variance = (
        rng.normal(size=sets.shape),
        rng.uniform(0.2, 2, sets.shape),
    )
    return set_posteriors


def test_the_bound_of_label_sets(posteriors):
    """The bound is that of the slow twin, and below the log likelihood of the labels."""
    covariance = np.linalg.inv(posteriors.precision)

    bound = posteriors.bound()

    points = normal_points(posteriors.prior_mean, covariance, standard_points(5, 1 << 15))
    log_shares = points - logsumexp(points, axis=1, keepdims=True)
    for k, row in enumerate(posteriors.sets):
        labels = np.flatnonzero(row)
        expected = twins.label_bound(
            labels, posteriors.mean[k], posteriors.variance[k], posteriors.prior_mean, covariance
        )
        assert bound[k] == pytest.approx(expected)
        exact = logsumexp(log_shares[:, labels].sum(axis=1)) - np.log(len(points))
        assert bound[k] <= exact + 0.01


def test_its_gradients(posteriors):
    """The gradients are those of finite differences."""
    by_mean, by_variance = posteriors.gradient()

    for k in range(3):

        def at(values, name, k=k):
            moved = getattr(posteriors, name).copy()
            moved[k] = values
            return posteriors.bound(**{name: moved})[k]

        numeric = approx_fprime(posteriors.mean[k], at, 1e-6, "mean")
        np.testing.assert_allclose(by_mean[k], numeric, atol=1e-4)
        numeric = approx_fprime(posteriors.variance[k], at, 1e-6, "variance")
        np.testing.assert_allclose(by_variance[k], numeric, atol=1e-4)


def test_improving_never_lowers_the_bound(posteriors):
    """No sweep lowers the bound of any set, and sweeps end where the gradient is zero."""
    values = [posteriors.bound()]
    for _ in range(60):
        posteriors.improve()
        values.append(posteriors.bound())

    assert (np.diff(values, axis=0) >= -1e-10).all()
    np.testing.assert_allclose(posteriors.gradient()[0], 0, atol=1e-3)


def test_points_are_at_least_twice_as_many_as_labels():
    """Fewer could not have the covariance of a standard normal distribution."""
    points = standard_points(20, 4)

    assert points.shape[0] >= 40
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(points.T @ points / len(points), np.eye(20), atol=1e-9)
