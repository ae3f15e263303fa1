"""Choosing the temperature by documents that are left out: the same as one document at a time."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from polytopic import PDMM, PMM1, PMM2
from polytopic.models import leave_one_out, mixture_tuning
from tests.models.test_leave_one_out import worded

TEMPERATURES = np.array([0.5, 2.0, 8.0])


def slow_quality(model, X, Y, temperatures):
    """Return the mean goodness of answers, one document and one label set at a time."""
    total = np.zeros(temperatures.size)
    for part in leave_one_out.left_out(model, X, Y):
        for x, own in zip(part.X, part.sets.toarray(), strict=True):
            sets = part.prior.sets
            scores = [model._score(x, one, part.theta)[0] for one in sets]
            for t, temperature in enumerate(temperatures):
                values = np.array(scores) / temperature + part.prior.log_seen
                total[t] += goodness(answer(values, sets.toarray(), model.decode), own, model)
    return total / X.shape[0]


def answer(values, sets, decode):
    """Return the set with the best expected F, or the most probable one."""
    weights = np.exp(values - values.max())
    if decode != "f":
        return sets[np.argmax(weights)]
    weights[values < values.max() - 9.0] = 0.0
    f = 2 * sets @ sets.T / np.add.outer(sets.sum(axis=1), sets.sum(axis=1))
    return sets[np.argmax(np.where(weights >= 0.01, f @ weights, -np.inf))]


def goodness(found, own, model):
    """Return whether an answer is right or, unless that is what is wanted, its F."""
    if model.decode == "map":
        return float((found == own).all())
    return 2 * found @ own / (found.sum() + own.sum())


def with_a_rare_label(seed):
    """Return documents, one of which has a label of its own, and a set that is seen once."""
    X, Y = worded(60, seed)
    Y = np.hstack([Y, np.zeros((len(Y), 2), dtype=int)])
    Y[3], Y[4], Y[5] = [1, 0, 0, 1, 0], [0, 0, 0, 0, 1], [0, 1, 0, 0, 1]
    return sparse.csr_matrix(X, dtype=float), sparse.csr_matrix(Y, dtype=float)


@pytest.mark.parametrize("decode", ["f", "map", "greedy"])
@pytest.mark.parametrize("prior", ["labelset", "labels", "uniform"])
@pytest.mark.parametrize("model", [PMM1(), PMM2(), PDMM()])
def test_all_temperatures_at_once_are_the_plain_search(model, prior, decode):
    """Every document is answered as by the model that never saw it, at each temperature."""
    X, Y = with_a_rare_label(seed=2)
    model = clone(model).set_params(prior=prior, decode=decode, temperature=2.0).fit(X, Y)

    quality = mixture_tuning._quality(model, X, Y, TEMPERATURES)

    expected = slow_quality(model, X, Y, TEMPERATURES)
    np.testing.assert_allclose(quality, expected, rtol=1e-12)
    assert 0 < quality.min() < 1


def test_only_sets_with_high_bounds_are_candidates(monkeypatch):
    """Where there are more seen sets than may be compared, the answers can be others."""
    X, Y = with_a_rare_label(seed=2)
    model = PMM1(temperature=2.0).fit(X, Y)
    among_all = mixture_tuning._quality(model, X, Y, TEMPERATURES)

    monkeypatch.setattr(mixture_tuning, "TUNING_SETS", 1)
    among_one = mixture_tuning._quality(model, X, Y, TEMPERATURES)

    assert len(set(among_one)) == 1  # a single candidate is the answer at any temperature
    assert len(set(among_all)) > 1


def test_nothing_to_choose_by():
    """Of a single document nothing is left, so that all temperatures are equally good."""
    X, Y = sparse.csr_matrix([[1.0, 2.0]]), sparse.csr_matrix([[1.0]])
    model = PMM1(temperature=1.0).fit(X, Y)

    quality = mixture_tuning._quality(model, X, Y, TEMPERATURES)

    assert quality.tolist() == [0.0, 0.0, 0.0]
