"""PMM2, PDMM and the posterior over label sets, compared with transcriptions of the papers."""

import subprocess
import sys
from functools import cache
from inspect import signature
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import clone

from polytopic import PDMM, PMM1, PMM2, NaiveBayes
from polytopic.metrics import samples_f1
from polytopic.models.mixture import likelihood_kernels as kernels
from polytopic.models.mixture.em import BiasedSlots, fit_mixture
from polytopic.models.mixture.tuning import TEMPERATURES
from tests import papers
from tests.strategies import matrices
from tests.twins import mixture as twins

N_LABELS = 5
FAMILIES = [
    PMM1(),
    PMM2(),
    PDMM(),
    PDMM(mixing=[0.5, 1.0, 2.0, 0.3, 1.0]),
    PDMM(likelihood="paper"),
]
PRIORS = ["labelset", "labels", "uniform"]


def corpus(n_docs=60, n_words=12, n_labels=N_LABELS, seed=0):
    """Return documents that mix the words of their labels."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(n_words, 0.3), size=n_labels)
    Y = rng.random((n_docs, n_labels)) < 0.35
    Y[np.arange(n_docs), rng.integers(0, n_labels, n_docs)] = True
    lengths = rng.integers(1, 25, n_docs)
    X = [rng.multinomial(n, theta[y].mean(axis=0)) for n, y in zip(lengths, Y, strict=True)]
    return np.array(X), Y.astype(int)


def fitted(model, **parameters):
    """Return a model on the first documents, and others."""
    X, Y = corpus(seed=3)
    model = clone(model).set_params(**{"temperature": 2.5, "smoothing": 0.3} | parameters)
    return model.fit(X[:40], Y[:40]), X[40:], Y[40:]


def fitting_documents():
    """Return the documents that :func:`fitted` fits a model on."""
    X, Y = corpus(seed=3)
    return X[:40], Y[:40]


def value_of(model, x):
    """Return the function from label sets to log joints that the papers give."""
    _, Y = corpus(seed=3)
    set_docs = {}
    for y in Y[:40]:
        labels = tuple(np.flatnonzero(y).tolist())
        set_docs[labels] = set_docs.get(labels, 0) + 1

    @cache
    def value(labels):
        log_prior = papers.log_prior(model.prior, labels, set_docs, N_LABELS)
        return likelihood_of(model, x, labels) / model.temperature + log_prior

    return value


def likelihood_of(model, x, labels):
    """Return a set's log likelihood by the papers."""
    theta = model.word_proba_
    if isinstance(model, PMM1):
        return float(x @ np.log(theta[list(labels)].mean(axis=0)))
    if isinstance(model, PMM2):
        return papers.pmm2_log_likelihood(x, theta, model.bias_, labels)
    mixing = np.broadcast_to(model.mixing, N_LABELS)
    gamma, phi = papers.vb(x, theta, labels, mixing, 10_000)
    if model.likelihood == "paper":
        return papers.pdmm_paper_score(x, theta, labels, gamma)
    return papers.elbo(x, theta, labels, mixing, gamma, phi)


# PMM2


def test_pmm2_reaches_a_fixed_point_of_the_papers_em():
    """J is that of Eq. (6), and a literal step of Eq. (16), (17) changes nothing."""
    X, Y = corpus()

    model = PMM2(smoothing=0.5, max_iter=3000, tol=0, temperature=1.0).fit(X, Y)

    J = papers.pmm2_objective(X, Y, model.word_proba_, model.bias_, 0.5, 1.0)
    theta, bias = papers.pmm2_em_step(X, Y, model.word_proba_, model.bias_, 0.5, 1.0)
    assert model.objective_ == pytest.approx(J, rel=1e-9)
    np.testing.assert_allclose(model.word_proba_, theta, atol=1e-8)
    np.testing.assert_allclose(model.bias_, bias, atol=1e-8)


@given(matrices(min_docs=2, labelled=True), st.integers(0, 2**32 - 1))
def test_one_step_of_pmm2_is_the_papers(documents, seed):
    """One EM step on the table, from any parameters, is that of Eq. (16), (17)."""
    X, Y = documents
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.ones(X.shape[1]), size=Y.shape[1])
    upper = np.triu(rng.uniform(0.1, 0.9, (Y.shape[1], Y.shape[1])), 1)
    bias = upper + np.tril(1 - upper.T, -1) + np.eye(Y.shape[1]) / 2
    matrix, sets = sparse.csr_matrix(X, dtype=float), sparse.csr_matrix(Y, dtype=float)
    slots = BiasedSlots(matrix, sets, 0.5, 1.0)

    _, point = slots.distribute(theta.T[slots.word, slots.label], bias)

    counts = slots.label_counts(point).toarray() + 0.5
    theta_papers, bias_papers = papers.pmm2_em_step(X, Y, theta, bias, 0.5, 1.0)
    np.testing.assert_allclose(
        counts / counts.sum(axis=1, keepdims=True), theta_papers, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(slots.bias(point), bias_papers, rtol=1e-9)


@given(matrices(min_docs=2, max_docs=12, labelled=True))
def test_pmm2s_objective_never_falls(documents):
    """Neither a step nor an extrapolation lowers J, although it is not concave."""
    X, Y = documents
    trace = []

    fit_mixture(
        sparse.csr_matrix(X, dtype=float),
        sparse.csr_matrix(Y, dtype=float),
        smoothing=0.2,
        bias_smoothing=0.5,
        max_iter=60,
        tol=0,
        trace=trace,
    )

    assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(trace))


@given(matrices(min_docs=2, labelled=True))
def test_biases_are_shares(documents):
    """The biases of two labels sum to one, exactly; a label's own is one half."""
    X, Y = documents

    bias = PMM2(temperature=1.0).fit(X, Y).bias_

    assert ((bias + bias.T) == 1).all()
    assert (np.diag(bias) == 0.5).all()
    assert (bias > 0).all()


def test_pmm2_without_biases_is_pmm1():
    """With alpha fixed at one half, it has the parameters and predictions of PMM1."""
    X, Y = corpus()
    settings = {"temperature": 2.0}

    one, two = PMM1(**settings).fit(X, Y), PMM2(bias_smoothing=1e90, **settings).fit(X, Y)

    assert (two.bias_ == 0.5).all()
    np.testing.assert_allclose(two.word_proba_, one.word_proba_, rtol=1e-9)
    np.testing.assert_allclose(two.decision_function(X), one.decision_function(X), atol=1e-7)
    assert (two.predict(X) == one.predict(X)).all()


def test_pmm2_learns_biases():
    """A label that contributes nine of ten words next to another one has a large bias."""
    X = [[20, 0], [0, 20], [18, 2], [27, 3]]

    model = PMM2(smoothing=0.1, temperature=1.0).fit(X, [["a"], ["b"], ["a", "b"], ["a", "b"]])

    assert model.bias_[0, 1] > 0.85
    assert model.mixture([[18, 2]], [["a", "b"]])[0, 0] == pytest.approx(0.9, abs=0.02)


# PDMM


@pytest.mark.parametrize("mixing", [1.0, 0.3, [0.5, 1.0, 2.0, 0.3, 1.0]])
def test_variational_bayes_is_the_papers(mixing):
    """The fixed point, its bound and the words' labels equal those of the token-wise loop."""
    model, X, Y = fitted(PDMM(mixing=mixing))
    alpha = np.broadcast_to(mixing, N_LABELS)

    shares = model.mixture(X, Y)
    word_labels = model.word_labels(X, Y)
    bounds = model.log_likelihood(X, Y)

    for doc, (x, y) in enumerate(zip(X, Y, strict=True)):
        labels = tuple(np.flatnonzero(y).tolist())
        gamma, phi = papers.vb(x, model.word_proba_, labels, alpha, 10_000)
        assert gamma.sum() == pytest.approx(alpha[list(labels)].sum() + x.sum())
        np.testing.assert_allclose(shares[doc, list(labels)], gamma / gamma.sum(), atol=1e-9)
        elbo = papers.elbo(x, model.word_proba_, labels, alpha, gamma, phi)
        assert bounds[doc] == pytest.approx(elbo, abs=1e-9)
        first_token = np.concatenate([[0], np.cumsum(x)[:-1]])
        for word, label, share in zip(
            word_labels.word[word_labels.doc == doc],
            word_labels.label[word_labels.doc == doc],
            word_labels.share[word_labels.doc == doc],
            strict=True,
        ):
            assert share == pytest.approx(phi[first_token[word], labels.index(label)], abs=1e-8)


def test_the_papers_score_is_equation_35():
    """The paper's score is the log likelihood of the mean weights, and above the bound."""
    paper, X, Y = fitted(PDMM(likelihood="paper"))
    bound, _, _ = fitted(PDMM())

    scores = paper.log_likelihood(X, Y)

    for score, x, y in zip(scores, X, Y, strict=True):
        labels = tuple(np.flatnonzero(y).tolist())
        assert score == pytest.approx(likelihood_of(paper, x, labels), abs=1e-9)
    assert (scores >= bound.log_likelihood(X, Y) - 1e-9).all()


def test_the_bound_is_below_the_evidence():
    """For two labels, the bound is at most a nat and a half below the quadrature."""
    model, X, _ = fitted(PDMM(mixing=[0.5, 1.0, 2.0, 0.3, 1.0]))
    Y = np.zeros((len(X), N_LABELS), dtype=int)
    pairs = list(combinations(range(N_LABELS), 2))
    for row, y in enumerate(Y):
        y[list(pairs[row % len(pairs)])] = 1

    bounds = model.log_likelihood(X, Y)

    for bound, x, y in zip(bounds, X, Y, strict=True):
        labels = tuple(np.flatnonzero(y).tolist())
        evidence = papers.pdmm_evidence_two_labels(
            x, model.word_proba_, labels, np.array(model.mixing)
        )
        assert evidence - 1.5 < bound <= evidence + 1e-9


def test_the_bound_never_falls():
    """A step never lowers the bound, and SQUAREM ends no lower than many plain steps."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        k, n = rng.integers(2, 5), rng.integers(2, 30)
        theta = rng.dirichlet(np.full(40, 0.2), size=k).T[:n] + 1e-6
        x = rng.integers(1, 4, n).astype(float)
        prior = rng.uniform(0.2, 2.0, k)
        gamma, after = prior + x.sum() / k, np.empty(k)
        buffers = np.empty(k), np.empty(n)
        trace = []
        for _step in range(300):
            trace.append(kernels.variational_step(x, theta, prior, gamma, *buffers, after)[0])
            gamma = after.copy()

        weights = np.zeros(k)
        reached = kernels.variational_bayes(
            x,
            np.ascontiguousarray(theta.T),
            np.arange(k),
            prior,
            weights,
            np.empty(n),
            -np.inf,
            1e-11,
        )

        assert all(b >= a - 1e-10 * abs(a) for a, b in pairwise(trace))
        assert reached >= trace[-1] - 1e-9
        assert weights.sum() == pytest.approx(prior.sum() + x.sum())


# PDMM with a given mixture

ALPHAS = [1.0, 0.3, [0.5, 1.0, 2.0, 0.3, 1.0]]
LIKELIHOODS = ["bound", "paper"]


def other_mixture(Y, seed=0):
    """Return random shares of the labels of documents."""
    shares = np.random.default_rng(seed).uniform(0.05, 1.0, Y.shape) * Y
    return shares / shares.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("mixing", ALPHAS)
def test_words_under_a_given_mixture_are_equation_28(mixing):
    """The label shares of each word equal those of the token-wise loop, for any mixture."""
    model, X, Y = fitted(PDMM(mixing=mixing))
    alpha, given_shares = np.broadcast_to(mixing, N_LABELS), other_mixture(Y)

    word_labels = model.word_labels(X, Y, mixture=given_shares)

    for doc, (x, y) in enumerate(zip(X, Y, strict=True)):
        labels = np.flatnonzero(y)
        gamma = given_shares[doc, labels] * (x.sum() + alpha[labels].sum())
        phi = papers.phi_of(x, model.word_proba_, labels, gamma)
        tokens = np.repeat(np.arange(x.size), x)
        expected = [phi[tokens == word][0] for word in np.flatnonzero(x)]
        share = word_labels.share[word_labels.doc == doc]
        np.testing.assert_allclose(share, np.ravel(expected), rtol=1e-9, atol=1e-300)
        np.testing.assert_allclose(share.reshape(-1, labels.size).sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("mixing", ALPHAS)
def test_the_score_under_a_given_mixture(mixing, likelihood):
    """It is Eq. (35), or the bound at these parameters, which is at most the document's own."""
    model, X, Y = fitted(PDMM(mixing=mixing, likelihood=likelihood))
    alpha, given_shares = np.broadcast_to(mixing, N_LABELS), other_mixture(Y)
    bounds = clone(model).set_params(likelihood="bound").fit(*fitting_documents())

    for doc, (x, y) in enumerate(zip(X, Y, strict=True)):
        breakdown = model.explain_words(X[[doc]], Y[[doc]], mixture=given_shares[[doc]])

        labels, theta = np.flatnonzero(y), model.word_proba_
        gamma = given_shares[doc, labels] * (x.sum() + alpha[labels].sum())
        phi = papers.phi_of(x, theta, labels, gamma)
        expected = papers.elbo(x, theta, labels, alpha, gamma, phi)
        if likelihood == "bound":
            own = bounds.log_likelihood(X[[doc]], Y[[doc]])[0]
            assert expected <= own + 1e-9
        else:
            expected = papers.pdmm_paper_score(x, theta, labels, gamma)
            assert breakdown.mixing == 0
        assert breakdown.breakdown.log_likelihood == pytest.approx(expected, abs=1e-9)
        assert breakdown.log_prior == model.log_prior(Y[[doc]])[0]
        assert breakdown.temperature == model.temperature_


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("mixing", ALPHAS)
def test_the_documents_own_mixture_changes_nothing(mixing, likelihood):
    """Words and scores are the same as without a given mixture."""
    model, X, Y = fitted(PDMM(mixing=mixing, likelihood=likelihood))
    own = model.mixture(X, Y)

    mixed, plain = model.word_labels(X, Y, mixture=own), model.word_labels(X, Y)
    predicted = model.word_labels(X, mixture=model.mixture(X))

    np.testing.assert_allclose(mixed.share, plain.share, atol=1e-8)
    np.testing.assert_allclose(predicted.share, model.word_labels(X).share, atol=1e-8)
    for one, other in zip(mixed[:3], plain[:3], strict=True):
        np.testing.assert_array_equal(one, other)
    for doc in range(len(X)):
        one = model.explain_words(X[[doc]], Y[[doc]], mixture=own[[doc]])
        other = model.explain_words(X[[doc]], Y[[doc]])
        np.testing.assert_allclose(one.word_scores, other.word_scores, atol=1e-8)
        assert one.mixing == pytest.approx(other.mixing, abs=1e-7)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_a_label_without_a_share_has_no_words(likelihood):
    """Words and likelihood are those of the other labels; shares need not sum to one."""
    model, X, Y = fitted(PDMM(likelihood=likelihood))
    some = np.flatnonzero(Y.sum(axis=1) == 3)
    X, Y = X[some], Y[some]
    fewer = Y.copy()
    fewer[np.arange(len(Y)), Y.argmax(axis=1)] = 0
    shares = other_mixture(fewer)

    word_labels = model.word_labels(X, Y, mixture=7 * shares)

    mine = model.word_labels(X, fewer, mixture=shares)
    has_no_share = Y.argmax(axis=1)[word_labels.doc] == word_labels.label
    assert (word_labels.share[has_no_share] == 0).all()
    np.testing.assert_allclose(word_labels.share[~has_no_share], mine.share, rtol=1e-12)
    for doc in range(len(X)):
        all_three, two = (
            model.explain_words(X[[doc]], sets[[doc]], mixture=shares[[doc]]) for sets in (Y, fewer)
        )
        np.testing.assert_array_equal(all_three.word_scores, two.word_scores)
        assert all_three.mixing == two.mixing
        assert all_three.log_prior == model.log_prior(Y[[doc]])[0]


def test_a_larger_share_takes_words():
    """A label with a larger share of a document has a larger share of each word."""
    model, _, _ = fitted(PDMM())
    x, labels = [[2, 1, 3, 0, 0, 1, 1, 1, 0, 2, 0, 1]], [[1, 1, 0, 0, 0]]

    shares = [
        model.word_labels(x, labels, mixture=[[p, 1 - p, 0, 0, 0]]).share[::2]
        for p in (0.1, 0.5, 0.9, 1.0)
    ]

    assert all((after >= before).all() for before, after in pairwise(shares))
    assert (shares[-1] == 1).all()


@pytest.mark.parametrize(
    ("mixture", "reason"),
    [
        ([0.5, 0.5], r"mixture.shape == \(2,\), must be \(2, 2\)"),
        ([[0.5, 0.5]], r"mixture.shape == \(1, 2\), must be \(2, 2\)"),
        ([[1, 0, 0], [1, 0, 0]], r"mixture.shape == \(2, 3\), must be \(2, 2\)"),
        ([[1, 0], [1.5, -0.5]], "mixture holds -0.5, shares must be >= 0"),
        ([[1, 0], [0.5, 0.5]], "gives document 1 a share of 'b', which is not one of its labels"),
        ([[0, 0], [1, 0]], "gives document 0 no share of any label"),
        ([[1, 0], [np.nan, 0]], "mixture contains NaN"),
        ([[1, 0], [np.inf, 0]], "mixture contains infinity"),
        ([["a", 0], [1, 0]], "could not convert"),
    ],
)
def test_invalid_mixtures(mixture, reason):
    """The error says in one sentence what is wrong."""
    model = PDMM(temperature=1.0).fit([[3, 0], [0, 3], [2, 2]], [["a"], ["b"], ["a", "b"]])

    with pytest.raises(ValueError, match=reason):
        model.word_labels([[1, 1], [2, 0]], [["a", "b"], ["a"]], mixture=mixture)


def test_mixtures_of_documents_without_words_or_labels():
    """Their mixtures are ignored, and shares may be huge."""
    model = PDMM(mixing=[0.5, 2.0], temperature=1.0)
    model.fit([[3, 0], [0, 3], [2, 2]], [["a"], ["b"], ["a", "b"]])

    nothing = model.word_labels([[0, 0], [2, 1]], [["a"], []], mixture=[[1, 0], [0, 0]])
    score = model.explain_words([[0, 0]], [["a", "b"]], mixture=[[0.2, 0.8]]).breakdown
    huge, plain = (
        model.word_labels([[2, 1]], mixture=[shares]).share
        for shares in ([1.5e308, 1.5e308], [0.5, 0.5])
    )

    assert nothing.share.size == 0
    assert score.log_likelihood == 0
    np.testing.assert_array_equal(huge, plain)
    with pytest.raises(ValueError, match="document 1 no share of any label"):
        model.word_labels([[1, 1], [2, 1]], mixture=[[1, 0], [0, 0]])


# NBM


@given(matrices(min_docs=3, max_docs=10, labelled=True))
def test_nbm_is_the_papers(documents):
    """Its word distributions are those of section 5.2, its sets those of the greedy search."""
    X, Y = documents

    model = PMM1(estimate="nb", prior="uniform", decode="greedy").fit(X > 0, Y)

    theta = papers.nbm_theta(X, Y)
    np.testing.assert_allclose(model.word_proba_, theta, rtol=1e-12)
    for x, answer in zip(X, model.predict(X), strict=True):
        if x.any():
            expected = twins.greedy_sets_of_pmm1(x, theta, Y.any(axis=0))
            value = twins.log_likelihood(x, theta, np.flatnonzero(answer))
            assert value == pytest.approx(twins.log_likelihood(x, theta, expected), abs=1e-7)


def test_word_distributions_without_em_are_those_of_naive_bayes():
    """Each word counts for all labels of its document; predictions still mix labels."""
    X, Y = corpus()
    mixture = PMM1(estimate="nb", smoothing=0.3, temperature=1.0).fit(X, Y)

    np.testing.assert_array_equal(
        mixture.word_proba_, NaiveBayes(smoothing=0.3).fit(X, Y).word_proba_
    )
    assert mixture.n_iter_ == 1
    assert mixture.predict(X).sum(axis=1).max() > 1
    with pytest.raises(ValueError, match="estimate == 'naive', must be one of em, nb"):
        PMM1(estimate="naive").fit(X, Y)


def test_mixing_by_label():
    """A number, one for each label in order, or by name are the same."""
    X, Y = corpus()
    names = [[f"l{label}" for label in np.flatnonzero(y)] for y in Y]
    settings = {"temperature": 1.0, "decode": "map"}

    number = PDMM(mixing=0.5, **settings).fit(X, names)
    sequence = PDMM(mixing=[0.5] * N_LABELS, **settings).fit(X, names)
    mapping = PDMM(mixing={f"l{label}": 0.5 for label in range(N_LABELS)}, **settings)

    np.testing.assert_array_equal(number.mixture(X, names), sequence.mixture(X, names))
    np.testing.assert_array_equal(number.mixture(X, names), mapping.fit(X, names).mixture(X, names))


def test_a_small_mixing_prefers_one_label():
    """The smaller the prior's parameters are, the more one label dominates a mixture."""
    X = [[9, 0, 1], [0, 9, 1], [5, 5, 0]]
    even, uneven = (
        PDMM(mixing=mixing, temperature=1.0).fit(X, [["a"], ["b"], ["a", "b"]])
        for mixing in (100.0, 0.01)
    )

    shares = [m.mixture([[6, 2, 3]], [["a", "b"]])[0, 0] for m in (even, uneven)]

    assert 0.5 < shares[0] < 0.55 < 0.7 < shares[1]


def test_likelihood_is_a_parameter():
    """`likelihood` can be read, cloned and set; `score` is the F1, as in every model."""
    X, Y = corpus()
    model = PDMM(likelihood="paper", temperature=1.0, decode="map").fit(X, Y)

    assert model.get_params()["likelihood"] == "paper"
    assert clone(model).likelihood == "paper"
    assert model.score(X, Y) == pytest.approx(samples_f1(Y, model.predict(X)))
    assert model.set_params(likelihood="bound").likelihood == "bound"


# The posterior


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("model", FAMILIES)
def test_exact_search_is_exhaustive_search(model, prior):
    """The three best sets, their log posteriors and the bound are those of exhaustive search."""
    model, X, _ = fitted(model, prior=prior, search="exact", decode="map", max_nodes=5000)
    X = X[:8]

    ranked = model.predict_sets(X, n_best=3)
    answers = model.predict(X)

    assert ranked.optimal.all()
    assert (ranked.gap == 0).all()
    for doc, x in enumerate(X):
        value = value_of(model, x)
        expected = papers.exhaustive(value, N_LABELS, [True] * N_LABELS)
        offset = ranked.scores[doc, 0] - expected[0][0]
        for place in range(3):
            assert value(ranked.sets[doc][place]) == pytest.approx(expected[place][0], abs=1e-9)
            assert ranked.scores[doc, place] - offset == pytest.approx(expected[place][0], abs=1e-9)
        unlisted = max(v for v, labels in expected if labels not in ranked.sets[doc])
        assert ranked.bound[doc] - offset >= unlisted - 1e-9
        assert value(tuple(np.flatnonzero(answers[doc]))) == pytest.approx(expected[0][0])


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("model", FAMILIES)
def test_greedy_search_is_the_papers(model, prior):
    """Bounds exclude labels, but do not change the result."""
    model, X, _ = fitted(model, prior=prior, decode="greedy")

    answers = model.predict(X)

    for x, answer in zip(X, answers, strict=True):
        expected = papers.greedy(value_of(model, x), N_LABELS, [True] * N_LABELS)
        assert tuple(np.flatnonzero(answer)) == expected


def support_of(value, seen):
    """Return the values of the candidates that the docstring of PMM1 names."""
    seen = seen | {(label,) for label in range(N_LABELS)}
    values = {labels: value(labels) for labels in seen}
    home = max(values, key=values.get)
    while True:
        around = {frozenset(home) ^ {label} for label in range(N_LABELS)} - {frozenset()}
        around = {tuple(sorted(labels)) for labels in around}
        near = {labels: value(labels) for labels in around}
        best = max(near, key=near.get)
        if near[best] <= value(home):
            return values | near | {home: value(home)}
        home = best


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("model", FAMILIES)
def test_margins_and_marginals_by_enumeration(model, prior):
    """Scores and probabilities are those of the candidates that the docstring names."""
    model, X, _ = fitted(model, prior=prior)
    _, Y = corpus(seed=3)
    seen = {tuple(np.flatnonzero(y).tolist()) for y in Y[:40]}

    margins, proba = model.decision_function(X), model.predict_proba(X)

    for doc, x in enumerate(X[:6]):
        support = support_of(value_of(model, x), seen)
        total = logsumexp(list(support.values()))
        for label in range(N_LABELS):
            inside = [v for labels, v in support.items() if label in labels]
            outside = [v for labels, v in support.items() if label not in labels]
            assert margins[doc, label] == pytest.approx(max(inside) - max(outside), abs=1e-8)
            assert proba[doc, label] == pytest.approx(np.exp(logsumexp(inside) - total), abs=1e-9)


@pytest.mark.parametrize("model", FAMILIES)
def test_decoding_by_expected_f(model):
    """The predicted set has the best expected F of the likely candidates."""
    model, X, _ = fitted(model, decode="f")
    _, Y = corpus(seed=3)
    seen = {tuple(np.flatnonzero(y).tolist()) for y in Y[:40]}

    answers = model.predict(X)

    for answer, x in zip(answers[:6], X, strict=False):
        support = support_of(value_of(model, x), seen)
        top = max(support.values())
        posterior = {labels: np.exp(v - top) for labels, v in support.items() if v > top - 9}
        likely = [labels for labels, weight in posterior.items() if weight >= 0.01]
        best, _ = papers.best_expected_f(posterior, likely)
        expected = papers.expected_f(posterior, tuple(np.flatnonzero(answer).tolist()))
        assert expected == pytest.approx(best, rel=1e-3)


def random_case(seed, n_docs=200):
    """Return a random model of up to seven labels, documents, and the values of all sets."""
    rng = np.random.default_rng(seed)
    n_labels = int(rng.integers(2, 8))
    X, Y = corpus(30, int(rng.integers(3, 20)), n_labels, seed)
    model = [PMM1, PMM2, PDMM][seed % 3](
        smoothing=float(rng.choice([0.01, 0.1, 1.0])),
        prior=PRIORS[rng.integers(3)],
        temperature=float(rng.choice([0.5, 1.0, 4.0])),
        max_nodes=int(rng.choice([0, 2, 20])),
        search="exact",
    ).fit(X, Y)
    words = rng.dirichlet(np.full(X.shape[1], 0.3), n_docs)
    lengths = rng.integers(1, 60, n_docs)
    X = np.array([rng.multinomial(n, p) for n, p in zip(lengths, words, strict=True)])
    labels = np.flatnonzero(Y.any(axis=0))
    sets = [c for k in range(1, labels.size + 1) for c in combinations(labels.tolist(), k)]
    indicator = np.zeros((len(sets), n_labels), dtype=int)
    for row, labels in enumerate(sets):
        indicator[row, list(labels)] = 1
    values = np.column_stack(
        [model.log_joint(X, np.repeat(y[None], n_docs, axis=0)) for y in indicator]
    )
    return model, X, sets, values


@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(12, 51))]
)
@pytest.mark.compiled
def test_the_bound_is_never_wrong(seed):
    """In random cases (10,200 in the long test), no set that is not listed exceeds the bound."""
    model, X, sets, values = random_case(seed)

    ranked = model.predict_sets(X, n_best=2)

    place = {labels: column for column, labels in enumerate(sets)}
    for doc in range(len(X)):
        listed = [place[labels] for labels in ranked.sets[doc]]
        offset = ranked.scores[doc, 0] - values[doc, listed[0]]
        others = np.delete(values[doc], listed)
        assert (others + offset <= ranked.bound[doc] + 1e-9).all()
        if ranked.optimal[doc]:
            assert values[doc].max() <= values[doc, listed[0]] + 1e-9
        assert np.diff(ranked.scores[doc]).max(initial=0) <= 0


@pytest.mark.parametrize("kind", ["equal", "biased", "bound", "paper"])
def test_bounds_of_sets_hold(kind):
    """At any weights, the bound of a set is at least its score."""
    rng = np.random.default_rng(7)
    for _ in range(200):
        n_labels, n_words = int(rng.integers(2, 7)), int(rng.integers(1, 15))
        theta = rng.dirichlet(np.full(n_words, 0.4), size=n_labels).T + 1e-9
        x = rng.integers(1, 9, n_words).astype(float)
        mixing = rng.uniform(0.2, 3.0, n_labels)
        upper = np.triu(rng.random((n_labels, n_labels)), 1)
        bias = upper + np.tril(1 - upper.T, -1) + np.eye(n_labels) / 2
        family = {
            "equal": kernels.Family(kernels.EQUAL),
            "biased": kernels.Family(kernels.BIASED, bias=bias),
            "bound": kernels.Family(kernels.BOUND, mixing=mixing),
            "paper": kernels.Family(kernels.PAPER, mixing=mixing),
        }[kind]
        labels = np.sort(rng.choice(n_labels, rng.integers(1, n_labels + 1), replace=False))
        weights = rng.dirichlet(np.full(n_labels, 0.5))
        slope, phi = np.empty(n_labels), theta @ weights
        f = kernels.slopes(x, np.arange(n_words), theta, phi, slope)

        bound = kernels.set_bound(f, x.sum(), slope, labels, family)

        rows = np.ascontiguousarray(theta.T)
        score = kernels.log_likelihood(
            x, rows, labels, family, np.empty(n_words), -np.inf, np.zeros(n_labels)
        )
        assert score <= bound + 1e-9


def test_greedy_reports_its_gap():
    """Without branch and bound, a bound limits how much better another set may be."""
    model, X, _ = fitted(PMM1(prior="uniform"), search="greedy")
    exact, _, _ = fitted(PMM1(prior="uniform"), search="exact", max_nodes=5000)

    greedy, best = model.predict_sets(X, 1), exact.predict_sets(X, 1)

    assert (greedy.gap >= 0).all()
    better = exact.log_joint(X, to_indicator(best)) - model.log_joint(X, to_indicator(greedy))
    assert (better <= greedy.gap + 1e-9).all()
    unproven = int(np.argmax(~greedy.optimal))
    assert "no set is better by more than" in greedy.certificate(unproven)
    assert "optimal" in best.certificate(0)


def to_indicator(ranked):
    """Return the first sets as an indicator."""
    Y = np.zeros((len(ranked.sets), N_LABELS), dtype=int)
    for row, sets in enumerate(ranked.sets):
        Y[row, list(sets[0])] = 1
    return Y


@pytest.mark.parametrize("search", ["greedy", "exact"])
@pytest.mark.parametrize("model", FAMILIES[:3])
def test_the_best_set_with_a_label(model, search):
    """It contains the label, and exact search finds the best of all sets that do."""
    model, X, _ = fitted(model, search=search, max_nodes=5000)

    X = X[:5]
    values = [value_of(model, x) for x in X]
    for label in range(N_LABELS):
        best = model.best_with(X, label).toarray()

        assert (best[:, label] == 1).all()
        for y, value in zip(best, values, strict=True):
            expected = papers.exhaustive(value, N_LABELS, [True] * N_LABELS)
            top = max(v for v, labels in expected if label in labels)
            log_joint = value(tuple(np.flatnonzero(y).tolist()))
            assert log_joint == pytest.approx(top) if search == "exact" else log_joint <= top + 1e-9


def test_few_label_sets():
    """With one label there is one set, and no other one to bound."""
    model = PMM1(temperature=1.0).fit([[1, 2]], [["a"]])

    ranked = model.predict_sets([[1, 1], [0, 0]], n_best=3)

    assert ranked.sets == [[("a",)], [("a",)]]
    assert ranked.scores[0].tolist() == [0, -np.inf, -np.inf]
    assert (ranked.bound == -np.inf).all()
    assert ranked.optimal.all()


def test_documents_without_words_have_the_prior():
    """Without words, the posterior of label sets is their prior."""
    X, Y = corpus()
    model = PMM1(prior="labelset", temperature=1.0).fit(X, Y)

    ranked = model.predict_sets(np.zeros((1, X.shape[1])), n_best=1)

    sets, docs = model.counts_.label_sets, model.counts_.set_docs
    assert ranked.sets[0][0] == sets[int(np.argmax(docs))]
    assert (model.predict_proba(np.zeros((1, X.shape[1]))) > 0).all()


def test_the_prior_sums_to_one():
    """The prior sums to one over all label sets but the empty one."""
    X, Y = corpus()
    sets = np.array([[b >> k & 1 for k in range(N_LABELS)] for b in range(1, 2**N_LABELS)])

    for prior in ("labelset", "labels"):
        model = PMM1(prior=prior, temperature=1.0).fit(X, Y)
        assert np.exp(model.log_prior(sets)).sum() == pytest.approx(1.0, rel=1e-9)
    assert (PMM1(prior="uniform", temperature=1.0).fit(X, Y).log_prior(sets) == 0).all()


# Tuning on documents


def test_the_temperature_is_chosen_and_kept():
    """`fit` tunes it, `partial_fit` and `forget` keep it, and forgetting stays exact."""
    X, Y = corpus(200)
    model = PMM1(smoothing="auto").fit(X[:150], Y[:150])
    chosen = dict(model.tuned_)

    model.partial_fit(X[150:], Y[150:]).forget(X[150:], Y[150:])

    frozen = PMM1(**chosen).fit(X[:150], Y[:150])
    assert set(chosen) == {"smoothing", "temperature"}
    assert model.tuned_ == chosen
    assert model.word_proba_.tobytes() == frozen.word_proba_.tobytes()
    assert model.predict_proba(X).tobytes() == frozen.predict_proba(X).tobytes()


def test_the_choice_does_not_depend_on_order():
    """Documents to tune on are selected by their contents."""
    X, Y = corpus(1500, n_words=40)
    order = np.random.default_rng(1).permutation(len(X))

    assert PMM1().fit(X, Y).tuned_ == PMM1().fit(X[order], Y[order]).tuned_


def test_smoothing_follows_the_reading():
    """With the paper's likelihood, smoothing is the paper's; a number is used as it is."""
    X, Y = corpus()

    assert PMM1(prior="uniform", decode="greedy").fit(X, Y).smoothing_ == 1.0
    assert PMM1(temperature=1.0).fit(X, Y).smoothing_ == 0.1
    assert PMM1(smoothing=0.7, temperature=1.0).fit(X, Y).smoothing_ == 0.7


@settings(max_examples=25)
@given(a=matrices(min_docs=4, labelled=True), b=matrices())
def test_predictions_after_forgetting_are_the_same(a, b):
    """With fixed settings, predictions have the bits of a model that never saw the documents."""
    (X, Y), (X_more, Y_more) = a, b
    for model in (PMM1(temperature=2.0), PMM2(temperature=2.0), PDMM(temperature=2.0)):
        alone = clone(model).fit(X, Y)
        both = clone(model).fit(np.vstack([X, X_more]), np.vstack([Y, Y_more]))

        both.forget(X_more, Y_more)

        assert both.predict_proba(X).tobytes() == alone.predict_proba(X).tobytes()
        assert (both.predict(X) == alone.predict(X)).all()


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (PMM1(prior="flat"), "prior == 'flat', must be one of labelset, labels, uniform"),
        (PMM1(decode="best"), "decode == 'best', must be one of f, map, greedy"),
        (PMM1(search="full"), "search == 'full', must be one of greedy, exact"),
        (PMM1(temperature=0), "temperature == 0, must be > 0"),
        (PMM1(temperature=1e9), "must be between 1e-6 and 1e6"),
        (PMM1(prior=np.array(["labels"])), r"prior == array\(.*, must be one of labelset, labels"),
        (PMM1(prior=None), "prior == None, must be one of labelset, labels, uniform"),
        (PMM1(temperature="x"), "temperature == 'x', must be a number or 'auto'"),
        (PMM1(smoothing="Auto"), "smoothing == 'Auto', must be a number, 'auto' or None"),
        (PMM1(tol=np.nan), "tol == nan, must be finite"),
        (PMM1(max_nodes=-1), "max_nodes == -1, must be >= 0"),
        (PMM2(bias_smoothing=0), "bias_smoothing == 0, must be > 0"),
        (PDMM(likelihood="f"), "likelihood == 'f', must be one of bound, paper"),
        (PDMM(likelihood=3), "likelihood == 3, must be one of bound, paper"),
        (PDMM(likelihood=["bound"]), r"likelihood == \['bound'\], must be one of bound, paper"),
        (PDMM(mixing=None), "mixing == None, must be a number, a list of one number per label"),
        (PDMM(mixing="1"), "mixing == '1', must be a number, a list"),
        (PDMM(mixing=[[1.0]]), r"mixing == \[\[1.0\]\], must be a number, a list"),
        (PDMM(mixing=[[1.0], 2.0]), "must be a number, a list of one number per label"),
        (
            PDMM(mixing={"a": "x"}),
            "mixing == {'a': 'x'}, must be .* a mapping of labels to numbers",
        ),
        (PDMM(mixing={"a": np.nan}), "mixing == {'a': nan}, must be between"),
        (PDMM(mixing={"b": 1.0, 3: 2.0}), "mixing names 3, which is not a label"),
        (PDMM(mixing=0), "mixing == 0, must be between"),
        (PDMM(mixing=[1.0, 2.0]), "mixing has 2 numbers, but there are 1 labels"),
        (PDMM(mixing={"b": 1.0}), "mixing names 'b', which is not a label"),
    ],
)
def test_bad_parameters_are_rejected(model, sentence):
    """The error names the parameter, and says what is needed."""
    with pytest.raises(ValueError, match=sentence):
        model.fit([[1, 2]], [["a"]])


@pytest.mark.parametrize("name", ["smoothing", "temperature"])
def test_arrays_as_parameters(name):
    """An array is rejected, and the error says what is needed."""
    with pytest.raises(TypeError, match=rf"{name} == array\(\[1., 2.\]\), must be a number"):
        PMM1(**{name: np.array([1.0, 2.0])}).fit([[1, 2]], [["a"]])


def test_no_more_sets_than_can_be_listed():
    """A number of sets that does not fit into memory is rejected with a clear message."""
    model = PMM1(temperature=1.0).fit([[1, 2]], [["a"]])

    with pytest.raises(ValueError, match="n_best == 1000000000000, must be <= 65536"):
        model.predict_sets([[1, 2]], n_best=10**12)


@pytest.mark.parametrize("model", FAMILIES[:3])
def test_search_without_a_limit(model):
    """Memory for nodes is allocated as needed, whatever the limit is."""
    model, X, _ = fitted(model, search="exact", decode="map", max_nodes=10**30)

    ranked = model.predict_sets(X, n_best=20)

    assert ranked.optimal.all()
    assert (model.predict(X)[0] == model.set_params(max_nodes=5000).predict(X)[0]).all()


def test_memory_for_nodes_grows():
    """A search with more open nodes than were allocated at first misses no set."""
    X, Y = corpus(200, n_words=12, n_labels=12, seed=1)
    model = PMM1(temperature=1.0, prior="labels", search="exact", max_nodes=5000).fit(X, Y)
    sets = (np.arange(1, 2**12)[:, None] >> np.arange(12)) & 1

    scores = model.predict_sets(X[:1], n_best=300).scores[0]

    joint = np.sort(model.log_joint(np.repeat(X[:1], len(sets), axis=0), sets))[::-1][:300]
    np.testing.assert_allclose(scores - scores[0], joint - joint[0], atol=1e-6)


def test_a_label_alone_is_always_a_candidate():
    """If only some labels are allowed, each of them alone is a candidate."""
    X = [[3, 0]] * 3 + [[0, 3]] * 2
    model = PMM1(temperature=1.0).fit(X, [["a", "b"]] * 3 + [["c"]] * 2)

    allowed = model.restrict_to(np.array([True, False, True]))

    sets, margins, proba = allowed.assess([[2, 0], [0, 0]])
    assert sets.toarray().tolist() == [[1, 0, 0], [0, 0, 1]]
    assert margins[0, 0] > 0 > margins[0, 2] > -np.inf
    assert proba[0, 0] > proba[0, 2] > 0
    assert proba[0, 1] == 0


@pytest.mark.parametrize("likelihood", ["bound", "paper"])
def test_small_mixing_uses_one_maximum(likelihood):
    """With mixing below 1 the bound has several maxima; search and `log_joint` use the same one."""
    for seed in range(20):
        X, Y = corpus(30, 8, seed=seed)
        settings = {"prior": "uniform", "decode": "greedy", "smoothing": 0.1}
        model = PDMM(mixing=0.1, likelihood=likelihood, **settings).fit(X, Y)
        x = X[:1]

        def value(labels, model=model, x=x):
            y = np.zeros((1, N_LABELS), dtype=int)
            y[0, list(labels)] = 1
            return model.log_joint(x, y)[0]

        expected = papers.greedy(value, N_LABELS, Y.any(axis=0))
        assert tuple(np.flatnonzero(model.predict(x)[0])) == expected


def test_equally_good_temperatures():
    """If all temperatures are equally good, it is 1; if none can be evaluated, the default of 4."""
    easy = PMM1().fit([[9, 0], [0, 9]] * 20, [["a"], ["b"]] * 20)
    unjudged = PMM1().fit([[9, 0], [0, 9]], [["a"], ["b"]], sample_weight=[0.5, 0.5])

    assert easy.temperature_ == 1.0
    assert unjudged.temperature_ == 4.0


def test_a_rejected_forgetting_changes_nothing():
    """Parameters that do not fit the remaining labels raise an error before anything changes."""
    X = [[3, 0, 1], [0, 2, 1], [1, 1, 5]]
    model = PDMM(mixing=[1.0, 2.0, 1.0], temperature=1.0).fit(X, [["a"], ["b"], ["c"]])

    with pytest.raises(ValueError, match="mixing has 3 numbers, but there are 2 labels"):
        model.forget(X[2:], [["c"]])

    assert model.counts_.n_docs == 3
    assert model.predict(X).tolist() == np.eye(3).tolist()
    named = PDMM(mixing={"c": 2.0}, temperature=1.0).fit(X, [["a"], ["b"], ["c"]])
    assert named.forget(X[2:], [["c"]]).classes_.tolist() == ["a", "b"]


def test_listed_posteriors_sum_to_one_at_most():
    """Posteriors of listed sets sum to at most one, also if many sets tie."""
    model = PMM1(temperature=1.0, search="exact").fit([[1, 1]] * 4, [["a"], ["b"], ["c"], ["d"]])

    ranked = model.predict_sets([[1, 1]], n_best=15)

    assert len(ranked.sets[0]) == 15
    assert np.exp(ranked.scores).sum() == pytest.approx(1.0)


def test_one_label_per_document_has_no_sets():
    """A model fitted on single labels rejects searches for sets."""
    model = PMM1().fit([[3, 0], [0, 2]], ["a", "b"])

    with pytest.raises(ValueError, match="use predict_proba"):
        model.predict_sets([[1, 1]])


def test_best_with_needs_a_label():
    """A column that is not a label with documents is rejected."""
    model = PMM1(temperature=1.0).fit([[3, 0], [0, 2]], [[1, 0, 0], [0, 1, 0]])

    with pytest.raises(ValueError, match="label == 3, must be <= 2"):
        model.best_with([[1, 1]], 3)
    with pytest.raises(ValueError, match="label '2' has no documents"):
        model.best_with([[1, 1]], 2)


@pytest.mark.parametrize("decode", ["f", "map"])
@pytest.mark.parametrize("model", [PMM1, PMM2, PDMM])
def test_margins_of_some_labels_are_those_of_all(model, decode):
    """For some labels, a model computes the margins of these and of the predicted ones."""
    rng = np.random.default_rng(5)
    X, Y = rng.poisson(1.0, (60, 12)), rng.random((60, 7)) < 0.3
    Y[~Y.any(axis=1), 0] = True
    fitted = model(decode=decode, temperature=3.0).fit(X, Y.astype(int))
    new = rng.poisson(1.0, (20, 12))

    sets, margins, proba = fitted.assess(new)
    some_sets, some_margins, some_proba = fitted.assess(new, [2, 5])

    is_requested = sets.toarray() > 0
    is_requested[:, [2, 5]] = True
    assert (sets != some_sets).nnz == 0
    np.testing.assert_allclose(
        some_margins[is_requested], margins[is_requested], rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(some_proba, proba, atol=1e-3)


@pytest.mark.parametrize("family", [PMM2, PDMM])
def test_mixtures_share_their_defaults(family):
    """PMM2 and PDMM have the defaults that PMM1 documents."""
    own, first = (signature(kind).parameters for kind in (family, PMM1))
    shared = first.keys() - {"estimate"}  # only PMM1 has another way to estimate

    assert {name: own[name].default for name in shared} == {
        name: first[name].default for name in shared
    }


def test_temperatures_to_try():
    """From one half to 32, in steps of the root of two."""
    assert pytest.approx([0.5 * 2 ** (k / 2) for k in range(13)]) == TEMPERATURES
    assert TEMPERATURES[-1] == 32


def test_the_best_set_among_many_labels_takes_little_memory():
    """The search for it takes memory linear in the number of labels, not quadratic."""
    program = """
import resource

import numpy as np
from scipy import sparse

from polytopic import PMM1

n = 16_000
X = sparse.csr_matrix(np.random.default_rng(0).poisson(1.0, (n, 8)).astype(float))
model = PMM1(smoothing=1.0, temperature=1.0).fit(X, sparse.identity(n, format="csr"))
model.set_probability(X[:1])
resource.setrlimit(resource.RLIMIT_DATA, (2**31, 2**31))
print(model.set_probability(X[:2]).shape)
"""

    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stderr
    assert run.stdout == "(2,)\n"
