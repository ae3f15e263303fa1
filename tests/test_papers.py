"""The transcriptions of the papers satisfy what the papers claim."""

from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import digamma

from . import papers

SEEDS = range(6)
SET_DOCS = {(0,): 5, (1,): 2, (0, 1): 3, (1, 2): 1, (0, 1, 3): 1}


def all_sets(n_labels):
    """Return all non-empty sets of labels, by the bits of a number."""
    return [
        tuple(label for label in range(n_labels) if number >> label & 1)
        for number in range(1, 2**n_labels)
    ]


def random_model(seed, n_labels=4, n_words=5):
    """Return word distributions and biases."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.ones(n_words), n_labels)
    above = np.triu(rng.uniform(0.1, 0.9, (n_labels, n_labels)), 1)
    alpha = above + np.tril(1 - above.T, -1) + 0.5 * np.eye(n_labels)
    return theta, alpha


def random_corpus(seed, n_docs=8, n_labels=4, n_words=5):
    """Return word counts and an indicator; the last document has no label."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (n_docs, n_words))
    Y = rng.integers(0, 2, (n_docs, n_labels))
    Y[np.arange(n_docs), rng.integers(0, n_labels, n_docs)] = 1
    Y[-1] = 0
    return X, Y


def random_document(seed, max_tokens=8, n_labels=4, n_words=5):
    """Return counts, word distributions and Dirichlet parameters on both sides of one."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.ones(n_words), n_labels)
    mixing = rng.uniform(0.3, 3, n_labels)
    n_tokens = rng.integers(3, max_tokens + 1)
    x = rng.multinomial(n_tokens, np.full(n_words, 1 / n_words))
    return x, theta, mixing


# PMM2


@pytest.mark.parametrize("labels", all_sets(4))
def test_even_biases_are_pmm1(labels):
    """With all biases one half, PMM2 is the mean of its labels' distributions."""
    theta, _ = random_model(0)

    phi = papers.pmm2_phi(theta, np.full((4, 4), 0.5), labels)

    np.testing.assert_allclose(phi, theta[list(labels)].mean(axis=0), rtol=1e-13)


@pytest.mark.parametrize("labels", all_sets(4))
def test_phi_is_a_distribution(labels):
    """The words of any label set have probabilities that add up to one."""
    theta, alpha = random_model(1)

    phi = papers.pmm2_phi(theta, alpha, labels)

    assert phi.sum() == pytest.approx(1, rel=1e-13)
    assert (phi > 0).all()


def test_worked_example():
    """Section 2.3 writes out the sets (1, 1, 0) and (1, 1, 1) of three labels."""
    t, a = random_model(2, n_labels=3)

    two = papers.pmm2_phi(t, a, (0, 1))
    three = papers.pmm2_phi(t, a, (0, 1, 2))

    expected_two = ((1 + 2 * a[0, 1]) * t[0] + (1 + 2 * a[1, 0]) * t[1]) / 4
    expected_three = (
        (1 + 2 * (a[0, 1] + a[0, 2])) * t[0]
        + (1 + 2 * (a[1, 0] + a[1, 2])) * t[1]
        + (1 + 2 * (a[2, 0] + a[2, 1])) * t[2]
    ) / 9
    np.testing.assert_allclose(two, expected_two, rtol=1e-13)
    np.testing.assert_allclose(three, expected_three, rtol=1e-13)


def test_log_likelihood_ignores_impossible_words_that_are_absent():
    """A word of probability zero matters only to a document that contains it."""
    theta = np.array([[0.25, 0.75, 0.0], [0.5, 0.5, 0.0]])
    alpha = np.full((2, 2), 0.5)

    without = papers.pmm2_log_likelihood(np.array([2, 1, 0]), theta, alpha, (0, 1))
    with_it = papers.pmm2_log_likelihood(np.array([2, 1, 1]), theta, alpha, (0, 1))

    assert without == pytest.approx(2 * np.log(0.375) + np.log(0.625))
    assert with_it == -np.inf


def test_objective_adds_both_priors_to_the_likelihoods():
    """J is a sum that can be computed by hand for one document, Eq. (6)."""
    theta = np.array([[0.2, 0.8], [0.6, 0.4]])
    alpha = np.array([[0.5, 0.7], [0.3, 0.5]])

    value = papers.pmm2_objective([[3, 1]], [[1, 1]], theta, alpha, 0.5, 2.0)

    phi = (2.4 * theta[0] + 1.6 * theta[1]) / 4
    likelihood = 3 * np.log(phi[0]) + np.log(phi[1])
    prior = 0.5 * np.log(0.2 * 0.8 * 0.6 * 0.4) + 2 * np.log(0.7 * 0.3 * 0.5 * 0.5)
    assert value == pytest.approx(likelihood + prior, rel=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("smoothing", "bias_smoothing"), [(1, 1), (0.1, 3), (0.5, 0)])
def test_em_never_lowers_the_objective(seed, smoothing, bias_smoothing):
    """Eq. (16) and (17) raise J, and distributions stay distributions."""
    X, Y = random_corpus(seed)
    theta, alpha = random_model(seed + 100)
    values = [papers.pmm2_objective(X, Y, theta, alpha, smoothing, bias_smoothing)]

    for _ in range(25):
        theta, alpha = papers.pmm2_em_step(X, Y, theta, alpha, smoothing, bias_smoothing)
        values.append(papers.pmm2_objective(X, Y, theta, alpha, smoothing, bias_smoothing))

    assert (np.diff(values) >= -1e-10).all()
    assert values[1] > values[0] + 1e-3
    np.testing.assert_allclose(theta.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(alpha + alpha.T, 1, rtol=1e-12)
    assert (np.diag(alpha) == 0.5).all()


def test_bound_plus_remainder_is_tight_at_the_old_parameters():
    """U has the gradient of the likelihood where both are equal, Eq. (13) to (15)."""
    X, Y = random_corpus(3)
    theta, alpha = random_model(3)
    other_theta, other_alpha = random_model(4)
    step = 1e-5
    ahead = (theta + step * (other_theta - theta), alpha + step * (other_alpha - alpha))
    back = (theta - step * (other_theta - theta), alpha - step * (other_alpha - alpha))

    bound = [papers.pmm2_bound(X, Y, *at, theta, alpha) for at in (ahead, back)]
    likelihood = [papers.pmm2_objective(X, Y, *at, 0, 0) for at in (ahead, back)]

    assert bound[0] - bound[1] == pytest.approx(likelihood[0] - likelihood[1], rel=1e-6)


@pytest.mark.parametrize(("weight", "is_m_step"), [(0.5, False), (1, True), (2, False)])
def test_m_step_needs_the_prior_of_the_biases_as_printed(weight, is_m_step):
    """Eq. (17) maximizes U plus (zeta - 1) log alpha over ordered pairs, not half, not twice."""
    X, Y = random_corpus(5)
    theta, alpha = random_model(5)
    new_theta, new_alpha = papers.pmm2_em_step(X, Y, theta, alpha, 1, 1)

    def loss(bias):
        trial = new_alpha.copy()
        trial[0, 1], trial[1, 0] = bias, 1 - bias
        prior = papers.pmm2_log_prior(new_theta, trial, 1, weight)
        return -papers.pmm2_bound(X, Y, new_theta, trial, theta, alpha) - prior

    best = minimize_scalar(loss, bounds=(0.001, 0.999), method="bounded", options={"xatol": 1e-9}).x

    assert (abs(best - new_alpha[0, 1]) < 1e-6) == is_m_step


@pytest.mark.parametrize("seed", SEEDS)
def test_m_step_is_the_best_word_distribution(seed):
    """Eq. (16) maximizes U plus the prior: any other distribution is worse."""
    X, Y = random_corpus(seed)
    theta, alpha = random_model(seed)
    new_theta, new_alpha = papers.pmm2_em_step(X, Y, theta, alpha, 0.5, 1)
    other, _ = random_model(seed + 50)

    def value(at):
        prior = papers.pmm2_log_prior(at, new_alpha, 0.5, 1)
        return papers.pmm2_bound(X, Y, at, new_alpha, theta, alpha) + prior

    best = value(new_theta)

    for step in (1e-3, -1e-3):
        assert value(new_theta + step * (other - new_theta)) < best


def test_em_ends_where_the_objective_is_flat():
    """At the fixed point, J has no slope along a bias or between two words."""
    X, Y = random_corpus(6)
    theta, alpha = random_model(6)
    for _ in range(500):
        theta, alpha = papers.pmm2_em_step(X, Y, theta, alpha, 1, 1)

    def slope(label, step=1e-6):
        values = []
        for sign in (step, -step):
            moved_theta, moved_alpha = theta.copy(), alpha.copy()
            if label is None:
                moved_alpha[1, 2] += sign
                moved_alpha[2, 1] -= sign
            else:
                moved_theta[label, 0] += sign
                moved_theta[label, 1] -= sign
            values.append(papers.pmm2_objective(X, Y, moved_theta, moved_alpha, 1, 1))
        return (values[0] - values[1]) / (2 * step)

    slopes = [slope(label) for label in (None, 0, 1, 2, 3)]

    np.testing.assert_allclose(slopes, 0, atol=1e-5)


def test_word_shares_are_sums_over_pairs():
    """A label's share of a word is two times its g lambda, summed over the partners, Eq. (16)."""
    theta, alpha = random_model(7)
    x = np.array([2, 0, 1, 0, 3])
    labels = (0, 2, 3)

    shares = papers.pmm2_word_shares(x, theta, alpha, labels)

    phi = papers.pmm2_phi(theta, alpha, labels)
    expected = dict.fromkeys(shares, 0.0)
    for one, other in product(labels, repeat=2):
        both = papers.pmm2_theta_pair(theta, alpha, one, other)
        for word in (0, 2, 4):
            g = both[word] / (9 * phi[word])
            share = alpha[one, other] * theta[one, word] / both[word]
            expected[word, one] += 2 * g * share
    assert set(shares) == {(word, label) for word in (0, 2, 4) for label in labels}
    assert shares == pytest.approx(expected, rel=1e-12)
    assert sum(shares.values()) == pytest.approx(3, rel=1e-12)


# PDMM


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("labels", [(1,), (0, 2), (0, 1, 3)])
def test_gamma_shares_out_prior_and_words(seed, labels):
    """Every token adds one to gamma in each round, so gamma sums to the prior plus N."""
    x, theta, mixing = random_document(seed)

    for n_iter in (1, 2, 10_000):
        gamma, phi = papers.vb(x, theta, labels, mixing, n_iter)

        assert gamma.sum() == pytest.approx(mixing[list(labels)].sum() + x.sum(), rel=1e-13)
        np.testing.assert_allclose(phi.sum(axis=1), 1, rtol=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_vb_starts_from_equal_shares(seed):
    """The first gamma is the prior and an equal part of the document, Eq. (29)."""
    x, theta, mixing = random_document(seed)
    labels = (0, 1, 3)

    gamma, _ = papers.vb(x, theta, labels, mixing, 1)

    np.testing.assert_allclose(gamma, mixing[list(labels)] + x.sum() / 3, rtol=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_vb_ends_where_both_equations_hold(seed):
    """At the end of the loop, Eq. (26) and (28) hold together."""
    x, theta, mixing = random_document(seed, max_tokens=30)
    labels = (0, 1, 3)

    gamma, phi = papers.vb(x, theta, labels, mixing)

    tokens = np.repeat(np.arange(len(x)), x)
    unscaled = theta[list(labels)][:, tokens].T * np.exp(digamma(gamma))
    np.testing.assert_allclose(gamma, mixing[list(labels)] + phi.sum(axis=0), rtol=1e-11)
    np.testing.assert_allclose(phi, unscaled / unscaled.sum(axis=1, keepdims=True), rtol=1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_elbo_never_falls(seed):
    """Each round of Eq. (29) and (30) raises the bound."""
    x, theta, mixing = random_document(seed, max_tokens=30)
    labels = (0, 1, 2)

    values = [
        papers.elbo(x, theta, labels, mixing, *papers.vb(x, theta, labels, mixing, n_iter))
        for n_iter in range(1, 25)
    ]

    assert (np.diff(values) >= -1e-11).all()
    assert values[-1] > values[0] + 1e-6


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("labels", [(0, 2), (0, 1, 3)])
def test_fixed_point_is_a_maximum_of_the_elbo(seed, labels):
    """Any small change of gamma or phi lowers the bound, to second order only."""
    x, theta, mixing = random_document(seed)
    rng = np.random.default_rng(seed)
    gamma, phi = papers.vb(x, theta, labels, mixing)
    best = papers.elbo(x, theta, labels, mixing, gamma, phi)

    for _ in range(5):
        gamma_way = rng.normal(size=gamma.shape)
        phi_way = phi * rng.normal(size=phi.shape)
        phi_way -= phi * phi_way.sum(axis=1, keepdims=True)
        for step in (1e-3, -1e-3):
            moved = (gamma + step * gamma_way, phi + step * phi_way)
            loss = best - papers.elbo(x, theta, labels, mixing, *moved)

            assert 0 < loss < 1e-4


@pytest.mark.parametrize("seed", SEEDS)
def test_elbo_is_what_it_is_defined_as(seed):
    """For two labels, and any gamma and phi, the lines (21)-(25) are the integrals (16)-(20)."""
    x, theta, mixing = random_document(seed)
    labels = (1, 3)
    rng = np.random.default_rng(seed)
    gamma = rng.uniform(1.5, 4, 2)
    phi = rng.dirichlet([1, 1], x.sum())

    value = papers.elbo(x, theta, labels, mixing, gamma, phi)

    q = stats.beta(*gamma)
    p = stats.beta(mixing[1], mixing[3])
    tokens = np.repeat(np.arange(len(x)), x)

    def integrand(share):
        words = phi.sum(axis=0) @ np.log([share, 1 - share])
        return q.pdf(share) * (p.logpdf(share) + words - q.logpdf(share))

    expected = quad(integrand, 0, 1, epsabs=1e-11, epsrel=1e-11)[0]
    expected += (phi * np.log(theta[list(labels)][:, tokens].T / phi)).sum()
    assert value == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("labels", [(0, 2), (1, 3)])
def test_quadrature_is_the_sum_over_assignments(seed, labels):
    """Eq. (4) by quadrature and Eq. (8) by its sum over all z are one number."""
    x, theta, mixing = random_document(seed)

    integral = papers.pdmm_evidence_two_labels(x, theta, labels, mixing)

    assert integral == pytest.approx(
        papers.pdmm_evidence_by_sum(x, theta, labels, mixing), abs=1e-9
    )


@pytest.mark.parametrize("seed", range(20))
def test_elbo_is_below_the_evidence_and_near(seed):
    """The bound of two labels is a bound, within a nat for a short document."""
    x, theta, mixing = random_document(seed)
    labels = (0, 2)

    bound = papers.elbo(x, theta, labels, mixing, *papers.vb(x, theta, labels, mixing))

    evidence = papers.pdmm_evidence_two_labels(x, theta, labels, mixing)
    assert evidence - 1 < bound < evidence


@pytest.mark.parametrize("seed", SEEDS)
def test_elbo_is_below_the_evidence_of_three_labels(seed):
    """The bound is a bound for more labels too."""
    x, theta, mixing = random_document(seed, max_tokens=6)
    labels = (0, 1, 3)

    bound = papers.elbo(x, theta, labels, mixing, *papers.vb(x, theta, labels, mixing))

    evidence = papers.pdmm_evidence_by_sum(x, theta, labels, mixing)
    assert evidence - 1 < bound < evidence


@pytest.mark.parametrize("seed", SEEDS)
def test_a_single_label(seed):
    """With one label, bound, Eq. (35) and evidence are the likelihood of naive Bayes."""
    x, theta, mixing = random_document(seed)
    likelihood = x @ np.log(theta[2])

    gamma, phi = papers.vb(x, theta, (2,), mixing)

    assert papers.elbo(x, theta, (2,), mixing, gamma, phi) == pytest.approx(likelihood, rel=1e-12)
    assert papers.pdmm_paper_score(x, theta, (2,), gamma) == pytest.approx(likelihood, rel=1e-12)
    evidence = papers.pdmm_evidence_by_sum(x, theta, (2,), mixing)
    assert evidence == pytest.approx(likelihood, rel=1e-12)


def test_paper_score_mixes_by_gamma():
    """Eq. (35) takes gamma's shares as the mixture, and exceeds the evidence."""
    x, theta, mixing = random_document(1)
    gamma, _ = papers.vb(x, theta, (0, 2), mixing)

    score = papers.pdmm_paper_score(x, theta, (0, 2), gamma)

    mean = (gamma[0] * theta[0] + gamma[1] * theta[2]) / (gamma[0] + gamma[1])
    assert score == pytest.approx(x @ np.log(mean), rel=1e-13)
    assert score > papers.pdmm_evidence_two_labels(x, theta, (0, 2), mixing)


def test_entropy_is_positive_and_highest_for_equal_shares():
    """A word of one label has entropy 0, a word of two equal labels log 2."""
    assert papers.entropy([1.0, 0.0]) == 0
    assert papers.entropy([0.5, 0.5]) == pytest.approx(np.log(2))
    assert 0 < papers.entropy([0.9, 0.1]) < np.log(2)


# Search


@pytest.mark.parametrize("seed", SEEDS)
def test_exhaustive_contains_greedy(seed):
    """Greedy search ends at one of the sets, which no single label improves."""
    x, theta, _ = random_document(seed, max_tokens=30)
    allowed = [True, True, False, True]

    def score(labels):
        return papers.pmm2_log_likelihood(x, theta, np.full((4, 4), 0.5), labels)

    greedy_set = papers.greedy(score, 4, allowed)
    ranked = papers.exhaustive(score, 4, allowed)

    assert (score(greedy_set), greedy_set) in ranked
    assert {labels for _, labels in ranked} == {s for s in all_sets(4) if 2 not in s}
    assert len(ranked) == 7
    assert [s for s, _ in ranked] == sorted((s for s, _ in ranked), reverse=True)
    for label in {0, 1, 3} - set(greedy_set):
        assert score(tuple(sorted((*greedy_set, label)))) <= score(greedy_set)


def test_greedy_may_miss_the_best_set():
    """Greedy search never drops its first label; it stops at a tie, and when no label is left."""
    table = {(0,): 3, (1,): 2, (2,): 1, (0, 1): 3, (0, 2): 2, (1, 2): 9, (0, 1, 2): 0}

    assert papers.greedy(table.get, 3, [True] * 3) == (0,)
    assert papers.exhaustive(table.get, 3, [True] * 3)[:3] == [(9, (1, 2)), (3, (0,)), (3, (0, 1))]
    assert papers.greedy(len, 3, [True, False, True]) == (0, 2)
    assert papers.greedy(len, 3, [False] * 3) == ()


# Posterior over label sets


@pytest.mark.parametrize("kind", ["labelset", "labels"])
@pytest.mark.parametrize("set_docs", [SET_DOCS, {(0,): 4, (0, 3): 1}, {(): 3, **SET_DOCS}])
def test_prior_sums_to_one(kind, set_docs):
    """The prior sums to one over all non-empty sets, also if a label always or never occurs."""
    total = sum(np.exp(papers.log_prior(kind, s, set_docs, 4)) for s in all_sets(4))

    assert total == pytest.approx(1, abs=1e-9)


def test_prior_by_hand():
    """For two labels and four documents, the formulas are computed by hand."""
    set_docs = {(0,): 3, (0, 1): 1}
    p0, p1 = 1 - 1e-12, 0.25
    p_none = (1 - p0) * (1 - p1)

    p_labels = {
        (0,): p0 * (1 - p1) / (1 - p_none),
        (1,): (1 - p0) * p1 / (1 - p_none),
        (0, 1): p0 * p1 / (1 - p_none),
    }
    seen = {(0,): 2.25 / 4, (1,): 0, (0, 1): 0.25 / 4}

    for labels, proba in p_labels.items():
        mixed = np.log(seen[labels] + 0.75 * 2 / 4 * proba)
        assert papers.log_prior("labels", labels, set_docs, 2) == pytest.approx(np.log(proba))
        assert papers.log_prior("labelset", labels, set_docs, 2) == pytest.approx(mixed)
        assert papers.log_prior("uniform", labels, set_docs, 2) == 0
    with pytest.raises(ValueError, match="kind == 'flat'"):
        papers.log_prior("flat", (0,), set_docs, 2)


def test_prior_of_a_label_never_seen():
    """A set with a label that no document has is impossible."""
    assert papers.log_prior("labels", (0, 2), {(0,): 1, (1,): 1}, 3) == -np.inf
    assert papers.log_prior("labelset", (0, 2), {(0,): 1, (1,): 1}, 3) == -np.inf


def test_best_expected_f_need_not_be_the_most_probable_set():
    """A set between the likely sets can have a better expected F."""
    posterior = {(0,): 0.4, (0, 1): 0.3, (1,): 0.3}

    one = papers.expected_f(posterior, (0,))
    best = papers.best_expected_f(posterior, list(posterior))

    assert one == pytest.approx(0.4 + 0.3 * 2 / 3)
    assert best == (pytest.approx(0.3 + 0.7 * 2 / 3), (0, 1))
