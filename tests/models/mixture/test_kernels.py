"""Kernels of the mixtures, compared with their slow twins."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from polytopic.kernels import words as word_kernels
from polytopic.kernels.blocks import block_borders
from polytopic.models import PMM1, SetPrior
from polytopic.models.mixture import branch_kernels, candidate_kernels, likelihood_kernels
from polytopic.models.mixture.em import count_mixture, fit_mixture
from polytopic.models.mixture.likelihood_kernels import BIASED, BOUND, EQUAL, PAPER, Family
from tests.strategies import matrices
from tests.twins import mixture as slow


@pytest.fixture
def model():
    """Return a PMM1 of a few hundred random documents, and other documents."""
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

    expected = slow.add_scores(X, log_theta.T, np.ones((20, 6)))
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_greedy_sets_are_the_plain_search(model):
    """The bound excludes labels, but changes neither predictions nor likelihoods."""
    model, X, _ = model
    theta, seen = model.word_proba_, np.ones(7, dtype=bool)

    answers = model.predict(X)

    for x, answer in zip(X, answers, strict=True):
        if x.any():
            expected = slow.greedy_sets_of_pmm1(x, theta, seen)
            assert set(np.flatnonzero(answer)) == set(expected)
    np.testing.assert_allclose(
        model.log_likelihood(X, answers),
        [slow.log_likelihood(x, theta, np.flatnonzero(y)) for x, y in zip(X, answers, strict=True)],
        rtol=1e-10,
    )


@given(matrices(min_docs=3, max_docs=10, labelled=True))
def test_greedy_search_on_odd_corpora(corpus):
    """The same on tiny corpora, which have many ties: the sets found are equally likely."""
    X, Y = corpus
    model = PMM1(smoothing=0.01, prior="uniform", decode="greedy").fit(X, Y)
    theta, seen = model.word_proba_, Y.any(axis=0)

    answers = model.predict(X)

    for x, answer in zip(X, answers, strict=True):
        if x.any():
            expected = slow.greedy_sets_of_pmm1(x, theta, seen)
            value = slow.log_likelihood(x, theta, np.flatnonzero(answer))
            assert value == pytest.approx(slow.log_likelihood(x, theta, expected), abs=1e-7)


def test_word_labels_are_responsibilities(model):
    """Shares are those of Eq. (18), and the shares of a word sum to one."""
    model, X, Y = model

    word_labels = model.word_labels(X, Y.astype(int))

    expected = [
        slow.word_shares(x, model.word_proba_, np.flatnonzero(y)) for x, y in zip(X, Y, strict=True)
    ]
    assert word_labels.share.size == sum(map(len, expected))
    for doc, word, label, share in zip(*word_labels, strict=True):
        assert share == pytest.approx(expected[doc][word, label], rel=1e-12)


@given(matrices(min_docs=2, labelled=True))
def test_em_on_the_table_is_em_on_the_documents(corpus):
    """A fit on the table reaches a fixed point of the paper's EM over documents."""
    X, Y = corpus
    sets, matrix = sparse.csr_matrix(Y, dtype=float), sparse.csr_matrix(X, dtype=float)

    fit = fit_mixture(matrix, sets, smoothing=0.5, max_iter=5000, tol=0)

    theta = fit.label_counts.toarray() + 0.5
    theta /= theta.sum(axis=1, keepdims=True)
    assert fit.objective == pytest.approx(slow.em_objective(X, Y, theta, 0.5), rel=1e-9)
    np.testing.assert_allclose(theta, slow.em_step(X, Y, theta, 0.5), atol=2e-5)


@given(matrices(min_docs=2, labelled=True))
def test_the_objective_of_counts_without_em(corpus):
    """If each word counts for all labels, J is that of Eq. (6), and EM raises it."""
    X, Y = corpus
    sets, matrix = sparse.csr_matrix(Y, dtype=float), sparse.csr_matrix(X, dtype=float)

    counted = count_mixture(matrix, sets, smoothing=0.5)
    learned = fit_mixture(matrix, sets, smoothing=0.5, max_iter=5000, tol=0)

    np.testing.assert_array_equal(counted.label_counts.toarray(), Y.T @ X)
    theta = Y.T @ X + 0.5
    theta /= theta.sum(axis=1, keepdims=True)
    expected = slow.em_objective(X, Y, theta, 0.5)
    assert counted.objective == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert counted.objective <= learned.objective + 1e-6 * abs(learned.objective)


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
    """The objective is concave, so EM reaches the same distributions from any start."""
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
    """Blocks cover all rows in order, each with about the requested number of entries."""
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
    """Products are split before they underflow or overflow."""
    x, values = np.array(words).reshape(-1, 2).T.copy()

    product = likelihood_kernels.log_product(x, values)

    np.testing.assert_allclose(product, slow.log_product(x, values), rtol=1e-12, atol=1e-9)


@given(WORDS, st.integers(1, 3))
def test_repeated_words_are_the_same_document(words, repeated):
    """Words occur as often as before; those that occur once come first."""
    x, numbers = np.array([count for count, _ in words]), np.arange(len(words))
    buffers = np.empty(3 * x.size), np.empty(3 * x.size, dtype=np.int64)

    wide_x, wide_words = likelihood_kernels.repeat_words(x, numbers, repeated, *buffers)

    expected_x, expected_words = slow.repeat_words(x, numbers, repeated)
    np.testing.assert_array_equal(wide_x, expected_x)
    np.testing.assert_array_equal(wide_words, expected_words)
    np.testing.assert_array_equal(np.bincount(wide_words, wide_x, minlength=x.size), x)
    assert (wide_x[: int(x[np.isin(x, range(1, repeated + 1))].sum())] == 1).all()


def test_extrapolation_saves_steps():
    """Twenty steps with extrapolation reach what takes the paper's EM more than a hundred."""
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


def test_the_tolerance_is_per_word():
    """A corpus and a prior with a thousand times the counts take the same number of steps."""
    rng = np.random.default_rng(3)
    Y = sparse.csr_matrix((rng.random((50, 5)) < 0.8).astype(float))
    X = sparse.csr_matrix(rng.poisson(3.0, (50, 8)).astype(float))

    light = fit_mixture(X, Y, smoothing=0.05, max_iter=500, tol=1e-5)
    heavy = fit_mixture(1000 * X, Y, smoothing=50.0, max_iter=500, tol=1e-5)

    assert heavy.n_iter == light.n_iter < 60


# Kernels on single documents

N_LABELS, N_WORDS = 4, 9
FAMILIES = ["equal", "biased", "bound", "paper"]
PRIORS = ["labelset", "labels", "uniform"]


def family_of(kind, rng):
    """Return a family with random biases or Dirichlet parameters."""
    upper = np.triu(rng.uniform(0.1, 0.9, (N_LABELS, N_LABELS)), 1)
    bias = upper + np.tril(1 - upper.T, -1) + np.eye(N_LABELS) / 2
    mixing = rng.uniform(1.0, 2.0, N_LABELS)
    return {
        "equal": Family(EQUAL),
        "biased": Family(BIASED, bias=bias),
        "bound": Family(BOUND, mixing=mixing),
        "paper": Family(PAPER, mixing=mixing),
    }[kind]


def documents(rng, n_docs=6):
    """Return word distributions (labels × words), documents and label sets, none of them empty."""
    theta = rng.dirichlet(np.full(N_WORDS, 0.4), size=N_LABELS) + 1e-6
    X = rng.poisson(1.5, (n_docs, N_WORDS)).astype(float)
    X[:, 0] += 1
    Y = rng.random((n_docs, N_LABELS)) < 0.5
    Y[np.arange(n_docs), rng.integers(0, N_LABELS, n_docs)] = True
    return theta, X, Y


def rows_of(X):
    """Return the parts of a CSR matrix, with the integers that the kernels are compiled for."""
    X = sparse.csr_matrix(X)
    return X.data, X.indices.astype(np.int32), X.indptr.astype(np.int64)


def sets_of(Y):
    """Return the parts of a CSR indicator."""
    Y = sparse.csr_matrix(Y)
    return Y.indices.astype(np.int64), Y.indptr.astype(np.int64)


def prior_of(kind):
    """Return a prior with few seen sets."""
    seen = sparse.csr_matrix([[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1.0]])
    return SetPrior(kind, seen, np.array([3.0, 1.0, 2.0])).arrays()


def problem_of(kind, prior, theta, rng, temperature=1.5):
    """Return a problem with a random family of a kind."""
    return candidate_kernels.Problem(
        np.ascontiguousarray(theta.T),
        family_of(kind, rng),
        np.arange(N_LABELS),
        prior_of(prior),
        temperature,
        -1,
    )


def test_slots_are_numbered_word_by_word():
    """Each pair of a word and a label in an entry has a slot, to which the entry points."""
    rng = np.random.default_rng(0)
    table = sparse.csc_matrix(rng.poisson(0.7, (5, N_WORDS)).astype(float))
    Y = sparse.csr_matrix(rng.random((5, N_LABELS)) < 0.7)
    args = table.indptr, table.indices, Y.indices, Y.indptr
    ends = np.empty(N_WORDS + 1, dtype=np.int64)
    entry_slot = np.empty(np.diff(Y.indptr)[table.indices].sum(), dtype=np.int64)

    likelihood_kernels.count_slots(*args, N_LABELS, ends)
    labels = np.empty(ends[-1], dtype=np.int64)
    likelihood_kernels.fill_slots(*args, ends, labels, entry_slot)

    dense = table.toarray(), Y.toarray()
    expected_labels, expected_entries = slow.fill_slots(*dense)
    assert np.diff(ends).tolist() == slow.count_slots(*dense).tolist()
    assert labels.tolist() == expected_labels
    assert entry_slot.tolist() == [slot for entry in expected_entries for slot in entry]


def test_counts_are_distributed_over_slots():
    """Counts are divided with equal weights, and with those of each label set."""
    rng = np.random.default_rng(1)
    theta, counts = rng.random(7), rng.poisson(3.0, 4) + 1.0
    entries = [[0, 1], [2, 3, 4], [0, 4], [5, 6, 1]]
    slots, ends = np.concatenate(entries), np.cumsum([0, *map(len, entries)])
    weights = [rng.random(len(entry)) for entry in entries]
    equal, biased, label_words = np.zeros(7), np.zeros(7), np.zeros(slots.size)

    log_equal = likelihood_kernels.expected_counts(counts, slots, ends, theta, equal)
    log_biased = likelihood_kernels.biased_counts(
        counts, slots, ends, np.arange(4), ends, np.concatenate(weights), theta, biased, label_words
    )

    for out, total, expected in (
        (equal, log_equal, slow.expected_counts(counts, entries, theta)),
        (biased, log_biased, slow.biased_counts(counts, entries, weights, theta)),
    ):
        np.testing.assert_allclose(out, expected[0], rtol=1e-12)
        assert total == pytest.approx(expected[1], rel=1e-12)
    np.testing.assert_allclose(np.bincount(slots, label_words), biased, rtol=1e-12)


def test_biases_give_weights_and_counts():
    """Weights are those of Eq. (4) and (5), counts of pairs the sums of Eq. (17)."""
    rng = np.random.default_rng(2)
    bias, (_, _, Y) = family_of("biased", rng).bias, documents(rng)
    sets, ends = sets_of(Y)
    weights, label_words, pairs = np.empty(sets.size), rng.random(sets.size), np.zeros(bias.shape)

    likelihood_kernels.bias_weights(sets, ends, bias, weights)
    likelihood_kernels.bias_counts(sets, ends, bias, weights, label_words, pairs)

    labels = np.split(sets, ends[1:-1])
    expected = [slow.bias_weights(own, bias) for own in labels]
    np.testing.assert_allclose(weights, np.concatenate(expected), rtol=1e-12)
    words = np.split(label_words, ends[1:-1])
    np.testing.assert_allclose(pairs, slow.bias_counts(labels, bias, words), rtol=1e-12)


@pytest.mark.parametrize("kind", FAMILIES)
def test_likelihoods_and_weights_of_label_sets(kind):
    """They are those of each family's formula, and for PDMM of many plain steps."""
    rng = np.random.default_rng(3)
    theta, X, Y = documents(rng)
    family, by_word = family_of(kind, rng), np.ascontiguousarray(theta.T)
    sets, ends = sets_of(Y)
    likelihoods, weights = np.empty(len(X)), np.empty(sets.size)

    likelihood_kernels.log_likelihoods(*rows_of(X), sets, ends, by_word, family, likelihoods)
    parts = family.bias, family.mixing
    likelihood_kernels.label_weights(*rows_of(X), sets, ends, by_word, *parts, weights)

    label_sets = [np.flatnonzero(y) for y in Y]
    expected = slow.log_likelihoods(X, theta, label_sets, family)
    assert likelihoods.tolist() == pytest.approx(expected, rel=1e-9)
    for doc, (x, labels) in enumerate(zip(X, label_sets, strict=True)):
        own = weights[ends[doc] : ends[doc + 1]]
        np.testing.assert_allclose(own, slow.label_weights(x, theta, labels, family), rtol=1e-8)


def test_a_step_of_variational_bayes():
    """The parameters and the evidence lower bound are those of the formulas."""
    rng = np.random.default_rng(4)
    theta, x = rng.random((N_WORDS, 3)), rng.poisson(2.0, N_WORDS) + 1.0
    prior, gamma, out = rng.uniform(0.3, 2.0, 3), rng.uniform(1.0, 9.0, 3), np.empty(3)

    bound, most = likelihood_kernels.variational_step(
        x, theta, prior, gamma, np.empty(3), np.empty(N_WORDS), out
    )

    expected, expected_bound = slow.variational_step(x, theta, prior, gamma)
    np.testing.assert_allclose(out, expected, rtol=1e-10)
    assert bound == pytest.approx(expected_bound, rel=1e-10)
    weights = rng.dirichlet(np.ones(3), size=200)
    assert (x @ np.log(theta @ weights.T)).max() <= most


def test_slopes_are_the_gradient():
    """Slopes are the gradient of the value that is returned with them."""
    rng = np.random.default_rng(5)
    theta, X, _ = documents(rng, n_docs=1)
    words = np.flatnonzero(X[0])
    x, theta, weights = X[0, words], theta[:, words], rng.dirichlet(np.ones(N_LABELS))
    phi, out = weights @ theta, np.empty(N_LABELS)

    f = likelihood_kernels.slopes(x, np.arange(x.size), np.ascontiguousarray(theta.T), phi, out)

    assert f == pytest.approx(slow.log_product(x, phi), rel=1e-12)
    np.testing.assert_allclose(out, slow.slopes(x, theta, phi), rtol=1e-12)


def test_a_seen_set_is_found_by_its_key():
    """The key of a seen set gives its row, and no other set has one."""
    prior = prior_of("labelset")
    sets = [np.flatnonzero([code >> k & 1 for k in range(N_LABELS)]) for code in range(1, 16)]

    keys = [np.uint64(candidate_kernels.set_key(prior, labels)) for labels in sets]
    rows = [
        candidate_kernels.find_seen(prior, labels, key)
        for labels, key in zip(sets, keys, strict=True)
    ]

    seen = [labels.tolist() for labels in np.split(prior.sets, prior.indptr[1:-1])]
    expected = [seen.index(labels.tolist()) if labels.tolist() in seen else -1 for labels in sets]
    assert rows == expected
    assert max(rows) == len(seen) - 1


@given(st.lists(st.integers(0, 5), max_size=12), st.integers(0, 6))
def test_the_centre_is_a_sorted_set(flips, neighbour):
    """Flipping adds or removes a label, and the labels of the centre stay sorted."""
    prior = prior_of("uniform")
    center, expected = np.full(7, -1), set()
    for label in flips:
        sign = candidate_kernels.flip_center(label, center)
        expected ^= {label}
        assert sign == (1 if label in expected else -1)

    code = prior.log_seen.size + neighbour
    labels = candidate_kernels.members(code, prior, center, np.empty(6, dtype=np.int64))

    assert labels.tolist() == sorted(expected ^ ({neighbour} if neighbour < 6 else set()))


@pytest.mark.parametrize("by_f", [False, True])
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", FAMILIES)
def test_answers_are_those_of_the_candidates(kind, prior, by_f):
    """Label sets, margins and marginals equal those of the enumerated candidates."""
    rng = np.random.default_rng(6)
    theta, X, _ = documents(rng)
    problem = problem_of(kind, prior, theta, rng)
    chosen = np.zeros((len(X), N_LABELS), dtype=bool)
    margins, marginals = np.empty(chosen.shape), np.zeros(chosen.shape)

    candidate_kernels.assess(
        *rows_of(X), problem, by_f, np.zeros(0, dtype=bool), chosen, margins, marginals
    )

    for doc, x in enumerate(X):
        labels, expected_margins, expected_marginals = slow.assess(x, problem, by_f)
        assert tuple(np.flatnonzero(chosen[doc])) == labels
        np.testing.assert_allclose(margins[doc], expected_margins, atol=1e-7)
        np.testing.assert_allclose(marginals[doc], expected_marginals, atol=1e-8)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", FAMILIES)
def test_greedy_search_with_bounds_is_the_plain_one(kind, prior):
    """Bounds exclude labels, but do not change predictions."""
    rng = np.random.default_rng(7)
    theta, X, _ = documents(rng)
    problem = problem_of(kind, prior, theta, rng)
    chosen = np.zeros((len(X), N_LABELS), dtype=bool)

    candidate_kernels.greedy_sets(*rows_of(X), problem, chosen)

    for x, answer in zip(X, chosen, strict=True):
        assert tuple(np.flatnonzero(answer)) == slow.greedy_sets(x, problem)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_greedy_searches_agree(dtype):
    """PMM1's own search with a uniform prior finds what the general one finds."""
    rng = np.random.default_rng(8)
    theta, X, _ = documents(rng, n_docs=40)
    problem = problem_of("equal", "uniform", theta, rng, temperature=1.0)
    log_theta = np.log(problem.theta)
    rough = np.stack([log_theta, problem.theta], axis=1).astype(dtype)
    general, special = np.zeros((2, len(X), N_LABELS), dtype=bool)

    candidate_kernels.greedy_sets(*rows_of(X), problem, general)
    candidate_kernels.greedy_sets_of_pmm1(
        *rows_of(X), problem.theta, log_theta, rough, np.ones(N_LABELS, dtype=bool), special
    )

    assert (general == special).all()
    assert len({*general.sum(axis=1).tolist()}) > 1


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", FAMILIES)
def test_branch_and_bound_is_enumeration(kind, prior):
    """The best sets of all, their values, and a bound on the others."""
    rng = np.random.default_rng(9)
    theta, X, _ = documents(rng, n_docs=4)
    problem = problem_of(kind, prior, theta, rng)
    sets = np.zeros((len(X), 3, N_LABELS), dtype=bool)
    values, bounds, totals = np.empty((len(X), 3)), np.empty(len(X)), np.empty(len(X))

    branch_kernels.best_sets(*rows_of(X), problem, 3, 5000, sets, values, bounds, totals)

    for doc, x in enumerate(X):
        expected = slow.best_sets(x, problem, 4)
        np.testing.assert_allclose(values[doc], [v for _, v in expected[:3]], atol=1e-8)
        assert [tuple(np.flatnonzero(y)) for y in sets[doc]] == [y for y, _ in expected[:3]]
        assert expected[3][1] - 1e-8 <= bounds[doc] <= values[doc, -1]
        assert totals[doc] >= np.logaddexp.reduce(values[doc]) - 1e-9


def test_words_without_the_document():
    """Probabilities of a document's words are computed without its own counts."""
    rng = np.random.default_rng(10)
    _, X, Y = documents(rng)
    counts = rng.poisson(4.0, (N_LABELS, N_WORDS)).astype(float)
    own = [rng.random((np.count_nonzero(x), y.sum())) for x, y in zip(X, Y, strict=True)]
    out = np.empty(sum(part.size for part in own))
    stored = sparse.csr_matrix(counts)
    stored = stored.data, stored.indices.astype(np.int32), stored.indptr.astype(np.int64)

    word_kernels.loo_theta(
        *rows_of(X)[1:],
        *sets_of(Y),
        np.concatenate([part.ravel() for part in own]),
        stored,
        counts.sum(axis=1),
        0.3,
        N_WORDS,
        out,
    )

    expected = [
        slow.loo_theta(x, np.flatnonzero(y), part, counts, 0.3).ravel()
        for x, y, part in zip(X, Y, own, strict=True)
    ]
    np.testing.assert_allclose(out, np.concatenate(expected), rtol=1e-12)


def test_the_nth_largest():
    """Equal values are counted separately; the result is ``-inf`` if there are too few."""
    values = np.array([3.0, 1.0, 3.0, 2.0])

    largest = [candidate_kernels.nth_largest(values, n) for n in range(1, 6)]

    assert largest == [3.0, 3.0, 2.0, 1.0, -np.inf]
