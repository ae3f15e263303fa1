"""Compiled loops equal their slow twins."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from polytopic.kernels import words as word_kernels
from polytopic.kernels.blocks import block_borders
from polytopic.models import PMM1
from polytopic.models.mixture import likelihood_kernels
from polytopic.models.mixture.em import fit_mixture
from tests.strategies import matrices
from tests.twins import mixture as slow


@pytest.fixture
def model():
    """Return PMM1 on a few hundred random documents, and more documents."""
    rng = np.random.default_rng(0)
    theta = rng.dirichlet(np.full(60, 0.2), size=7)
    Y = rng.random((300, 7)) < 0.3
    Y[np.arange(300), rng.integers(0, 7, 300)] = True
    X = np.array([rng.multinomial(rng.integers(0, 40), theta[y].mean(axis=0)) for y in Y])
    model = PMM1(smoothing=0.3, prior="uniform", decode="greedy")
    return model.fit(X[:200], Y[:200].astype(int)), X[200:], Y[200:]


def test_add_scores_is_a_matrix_product():
    """Scores of all labels are the sparse product with the log distributions."""
    rng = np.random.default_rng(1)
    X = sparse.random(20, 30, density=0.3, random_state=1, format="csr")
    log_theta = rng.normal(size=(30, 6))
    out = np.ones((20, 6))

    word_kernels.add_scores(X.data, X.indices, X.indptr, log_theta, out)

    np.testing.assert_allclose(out, 1 + X @ log_theta, rtol=1e-12)


def test_greedy_sets_are_the_plain_search(model):
    """The bound skips labels and changes no answer, nor its likelihood."""
    model, X, _ = model
    theta, seen = model.word_proba_, np.ones(7, dtype=bool)

    answers = model.predict(X)

    for x, answer in zip(X, answers, strict=True):
        if x.any():
            expected = slow.greedy_set(x, theta, seen)
            assert set(np.flatnonzero(answer)) == set(expected)
    np.testing.assert_allclose(
        model.log_likelihood(X, answers),
        [slow.log_likelihood(x, theta, np.flatnonzero(y)) for x, y in zip(X, answers, strict=True)],
        rtol=1e-10,
    )


@given(matrices(min_docs=3, max_docs=10, labelled=True))
def test_greedy_search_on_odd_corpora(corpus):
    """The same on tiny corpora, where ties and extremes are common: equally likely sets."""
    X, Y = corpus
    model = PMM1(smoothing=0.01, prior="uniform", decode="greedy").fit(X, Y)
    theta, seen = model.word_proba_, Y.any(axis=0)

    answers = model.predict(X)

    for x, answer in zip(X, answers, strict=True):
        if x.any():
            expected = slow.greedy_set(x, theta, seen)
            found = slow.log_likelihood(x, theta, np.flatnonzero(answer))
            assert found == pytest.approx(slow.log_likelihood(x, theta, expected), abs=1e-7)


def test_word_labels_are_responsibilities(model):
    """Shares are those of Eq. (18), and the shares of a word sum to one."""
    model, X, Y = model

    said = model.word_labels(X, Y.astype(int))

    expected = [
        slow.word_shares(x, model.word_proba_, np.flatnonzero(y)) for x, y in zip(X, Y, strict=True)
    ]
    assert said.share.size == sum(map(len, expected))
    for doc, word, label, share in zip(*said, strict=True):
        assert share == pytest.approx(expected[doc][word, label], rel=1e-12)


@given(matrices(min_docs=2, labelled=True))
def test_em_on_the_table_is_em_on_the_documents(corpus):
    """One fit on the table reaches a fixed point of the paper's EM over documents."""
    X, Y = corpus
    sets, matrix = sparse.csr_matrix(Y, dtype=float), sparse.csr_matrix(X, dtype=float)

    fit = fit_mixture(matrix, sets, smoothing=0.5, max_iter=5000, tol=0)

    theta = fit.label_counts.toarray() + 0.5
    theta /= theta.sum(axis=1, keepdims=True)
    assert fit.objective == pytest.approx(slow.em_objective(X, Y, theta, 0.5), rel=1e-9)
    np.testing.assert_allclose(theta, slow.em_step(X, Y, theta, 0.5), atol=2e-5)


@given(matrices(min_docs=2, max_docs=12, labelled=True))
def test_objective_never_falls(corpus):
    """Neither an EM step nor an extrapolation lowers the objective."""
    X, Y = corpus
    trace = []

    fit_mixture(
        sparse.csr_matrix(X, dtype=float),
        sparse.csr_matrix(Y, dtype=float),
        smoothing=0.2,
        max_iter=60,
        tol=0,
        trace=trace,
    )

    assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(trace))


def test_random_starts_meet():
    """The objective is concave, so any start ends in the same distributions."""
    rng = np.random.default_rng(3)
    Y = sparse.csr_matrix((rng.random((50, 5)) < 0.4).astype(float))
    X = sparse.csr_matrix(rng.poisson(1.0, (50, 30)).astype(float))
    X, Y = X[np.diff(Y.indptr) > 0], Y[np.diff(Y.indptr) > 0]

    fits = [
        fit_mixture(X, Y, smoothing=0.5, max_iter=20_000, tol=0, start=start)
        for start in (None, rng.random, lambda size: rng.random(size) ** 8 + 1e-9)
    ]

    for fit in fits[1:]:
        assert fit.objective == pytest.approx(fits[0].objective, rel=1e-10)
        np.testing.assert_allclose(
            fit.label_counts.toarray(), fits[0].label_counts.toarray(), atol=1e-3
        )


def test_block_borders_depend_on_entries_alone():
    """Blocks cover all rows in order, each with about the wanted number of entries."""
    indptr = np.cumsum([0, 5, 0, 100, 3, 3, 3, 90])

    borders = block_borders(indptr, entries=50)

    assert borders[0] == 0
    assert borders[-1] == 7
    assert (np.diff(borders) > 0).all()
    assert borders.tolist() == [0, 3, 7]


WORDS = st.lists(
    st.tuples(
        st.sampled_from([1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 9.0, 0.5]),
        st.one_of(st.floats(1e-9, 1.0), st.floats(1e-300, 1e-200), st.floats(1e200, 1e300)),
    ),
    max_size=40,
)


@given(WORDS)
def test_products_are_sums_of_logarithms(words):
    """Products of probabilities of any size are taken apart before they are no numbers."""
    x, values = np.array(words).reshape(-1, 2).T.copy()

    found = likelihood_kernels.log_product(x, values)

    np.testing.assert_allclose(found, x @ np.log(values), rtol=1e-12, atol=1e-9)


@given(WORDS, st.integers(1, 3))
def test_repeated_words_are_the_same_document(words, repeated):
    """Every word occurs as often as before; those that occur once come first."""
    x, numbers = np.array([count for count, _ in words]), np.arange(len(words))
    room = np.empty(3 * x.size), np.empty(3 * x.size, dtype=np.int64)

    wide_x, wide_words = likelihood_kernels.repeat_words(x, numbers, repeated, *room)

    np.testing.assert_array_equal(np.bincount(wide_words, wide_x, minlength=x.size), x)
    assert (wide_x[: int(x[np.isin(x, range(1, repeated + 1))].sum())] == 1).all()


def test_jumps_spare_steps():
    """Twenty steps with jumps reach what takes the paper's EM more than a hundred."""
    rng = np.random.default_rng(3)
    Y = (rng.random((50, 5)) < 0.8).astype(float)
    X = rng.poisson(3.0, (50, 8)).astype(float)
    theta = np.full((5, 8), 1 / 8)

    fit = fit_mixture(
        sparse.csr_matrix(X), sparse.csr_matrix(Y), smoothing=0.05, max_iter=20, tol=0
    )

    for _ in range(100):
        theta = slow.em_step(X, Y, theta, 0.05)
    assert fit.n_iter == 20
    assert fit.objective > slow.em_objective(X, Y, theta, 0.05)


def test_the_tolerance_is_by_word():
    """A corpus and a prior that are a thousand times as heavy take as many steps."""
    rng = np.random.default_rng(3)
    Y = sparse.csr_matrix((rng.random((50, 5)) < 0.8).astype(float))
    X = sparse.csr_matrix(rng.poisson(3.0, (50, 8)).astype(float))

    light = fit_mixture(X, Y, smoothing=0.05, max_iter=500, tol=1e-5)
    heavy = fit_mixture(1000 * X, Y, smoothing=50.0, max_iter=500, tol=1e-5)

    assert heavy.n_iter == light.n_iter < 60
