"""Tuning the temperature by leaving documents out, compared with one document at a time."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from polytopic import PDMM, PMM1, PMM2
from polytopic.models import leave_one_out
from polytopic.models.mixture import candidate_kernels as kernels
from polytopic.models.mixture.likelihood_kernels import set_bound
from polytopic.models.mixture.tuning import loo_quality
from tests.models.test_leave_one_out import prior_of, worded
from tests.twins import mixture as twins

TEMPERATURES = np.array([0.5, 2.0, 8.0])


def slow_quality(model, X, Y, temperatures, n_sets=100):
    """Return the mean quality of predictions, computed one document and label set at a time."""
    total = np.zeros(temperatures.size)
    for group in leave_one_out.groups(model, X, Y):
        prior = prior_of(model).without(group.table_row)
        for x, own in zip(group.X, group.sets.toarray(), strict=True):
            rows = highest(model, x, group, n_sets)
            sets, log_prior = prior.sets[rows], prior.log_seen[rows]
            scores = [model._log_likelihood(x, one, group.theta)[0] for one in sets]
            total += twins.quality_by_temperature(
                sets.toarray(), scores, log_prior, own, temperatures, model.decode
            )
    return total / X.shape[0]


def highest(model, x, group, n_sets):
    """Return the rows of the seen sets with the highest bounds."""
    problem = model._posterior_without(group).problem
    prior, n_labels = problem.prior, model.classes_.size
    work = kernels.new_workspace(prior.log_seen.size, n_labels, x.nnz)
    indptr = x.indptr.astype(np.int64)
    counts, words = kernels.read_document(x.data, x.indices, indptr, 0, problem.family, work)
    f = kernels.first_slopes(counts, words, problem, work)
    bounds = [
        set_bound(f, counts.sum(), work.slope, kernels.seen_set(prior, row), problem.family)
        for row in range(prior.log_seen.size)
    ]
    values = np.array(bounds) / problem.temperature + prior.log_seen
    return np.flatnonzero(values >= np.sort(values)[-min(n_sets, values.size)])


def with_a_rare_label(seed):
    """Return documents, one of which has a label that no other has, and so a unique set."""
    X, Y = worded(60, seed)
    Y = np.hstack([Y, np.zeros((len(Y), 2), dtype=int)])
    Y[3], Y[4], Y[5] = [1, 0, 0, 1, 0], [0, 0, 0, 0, 1], [0, 1, 0, 0, 1]
    return sparse.csr_matrix(X, dtype=float), sparse.csr_matrix(Y, dtype=float)


@pytest.mark.parametrize("decode", ["f", "map", "greedy"])
@pytest.mark.parametrize("prior", ["labelset", "labels", "uniform"])
@pytest.mark.parametrize("model", [PMM1(), PMM2(), PDMM()])
def test_all_temperatures_at_once_are_the_plain_search(model, prior, decode):
    """At each temperature, a document gets the labels that a model without it predicts."""
    X, Y = with_a_rare_label(seed=2)
    model = clone(model).set_params(prior=prior, decode=decode, temperature=2.0).fit(X, Y)

    quality = loo_quality(model, X, Y, TEMPERATURES)

    expected = slow_quality(model, X, Y, TEMPERATURES)
    np.testing.assert_allclose(quality, expected, rtol=1e-12)
    assert 0 < quality.min() < 1


@pytest.mark.parametrize("n_sets", [1, 3])
@pytest.mark.parametrize("model", [PMM1(), PMM2(), PDMM()])
def test_only_sets_with_the_highest_bounds_are_candidates(model, n_sets):
    """If there are too many seen sets, only those with the highest bounds are compared."""
    X, Y = with_a_rare_label(seed=2)
    model = clone(model).set_params(temperature=2.0).fit(X, Y)

    quality = loo_quality(model, X, Y, TEMPERATURES, n_sets)

    np.testing.assert_allclose(quality, slow_quality(model, X, Y, TEMPERATURES, n_sets), rtol=1e-12)
    assert n_sets == 1 or not np.allclose(quality, slow_quality(model, X, Y, TEMPERATURES))


def test_a_single_document():
    """Without a single document nothing is left, so all temperatures are equally good."""
    X, Y = sparse.csr_matrix([[1.0, 2.0]]), sparse.csr_matrix([[1.0]])
    model = PMM1(temperature=1.0).fit(X, Y)

    quality = loo_quality(model, X, Y, TEMPERATURES)

    assert quality.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("seed", range(4))
def test_the_best_temperature_is_chosen(seed):
    """Of 0.5 to 32, in steps of the root of two, the best is chosen, or the one nearest to 1."""
    X, Y = with_a_rare_label(seed)
    grid = 2.0 ** (np.arange(-2, 11) / 2)
    model = PMM1(temperature=2.0).fit(X, Y)

    chosen = PMM1().fit(X, Y).tuned_["temperature"]

    quality = slow_quality(model, X, Y, grid)
    best = grid[quality >= quality.max() - 1e-9]
    assert chosen == best[np.argmin(np.abs(np.log(best)))]
