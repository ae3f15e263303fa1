"""CoL's kernels agree with their slow twins."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from polytopic.models.col import kernels
from polytopic.models.col.topics import Precision, Topics, WordIndex
from tests.twins import col as twins


def test_exp_digammas():
    """The series is as exact as SciPy's function."""
    x = np.array([[1e-6, 1e-3, 0.04, 0.5, 1.0], [3.7, 7.99, 8.0, 120.0, 1e6]])
    out = np.empty(x.shape)

    kernels.exp_digammas(x, out)

    assert out == pytest.approx(twins.exp_digammas(x), rel=1e-9)


@pytest.fixture
def corpus():
    """Return word counts, label sets and topics; every document has label 0."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.7, (30, 9)).astype(float)
    X[:, 0] += 1
    Y = (rng.random((30, 3)) < 0.5).astype(float)
    Y[:, 0] = 1.0
    topics = Topics(rng.uniform(0.2, 1, (3, 4)), rng.dirichlet(np.ones(9), 4).T.copy())
    return X, Y, topics


def infer(corpus, n_steps):
    """Return the posterior of all documents as one block, and its parts by document."""
    X, Y, topics = corpus
    inference = topics.infer(sparse.csr_matrix(X), sparse.csr_matrix(Y), Precision(n_steps, 0, 0))
    (posterior,) = inference.blocks.values()
    counts, e = [], np.zeros((len(X), topics.alpha.shape[1]))
    for d, y in enumerate(Y):
        own = posterior.topics[posterior.ends[d] : posterior.ends[d + 1]]
        e[d, own] = posterior.e[posterior.ends[d] : posterior.ends[d + 1]]
        rows = posterior.counts[posterior.starts[d] : posterior.starts[d + 1]]
        counts.append(np.zeros((int(y.sum()), e.shape[1])))
        counts[-1][:, own] = rows.reshape(-1, own.size)
    return inference, posterior, counts, e


@pytest.mark.parametrize("n_steps", [0, 1, 7])
def test_infer_topics(corpus, n_steps):
    """Expected counts and bounds are those of the twin after each number of steps."""
    X, Y, topics = corpus

    _, posterior, counts, _ = infer(corpus, n_steps)

    for d, y in enumerate(Y):
        alpha = topics.alpha[y > 0]
        expected, bound = twins.infer_topics(X[d], alpha, topics.beta.T, n_steps)
        np.testing.assert_allclose(counts[d], expected, rtol=1e-9)
        assert posterior.bounds[d] == pytest.approx(bound, abs=1e-9)


def test_infer_factored(corpus):
    """The paper's posteriors, bounds and expected word counts are those of the twin.

    The probabilities of a word's topics, phi, are not stored: they are the expected counts of a
    document taken alone, divided by those of its words.
    """
    X, Y, topics = corpus
    topics = replace(topics, family="factored")
    same = partial(np.testing.assert_allclose, rtol=1e-8, atol=1e-8)

    inference = topics.infer(sparse.csr_matrix(X), sparse.csr_matrix(Y), topics.scoring)
    word_counts = inference.word_counts(WordIndex(sparse.csr_matrix(X)))

    phis, row = [], 0
    for d, y in enumerate(Y):
        words = np.flatnonzero(X[d])
        alpha, beta = topics.alpha[y > 0], topics.beta[words].T
        gamma, sigma, phi, bound = twins.infer_factored(X[d, words], alpha, beta)
        own = inference.sigma[inference.sigma_ends[d] : inference.sigma_ends[d + 1]]
        same(inference.gamma[row : row + len(alpha)], gamma)
        same(own.reshape(sigma.shape), sigma)
        assert inference.bounds[d] == pytest.approx(bound, abs=1e-9)
        x, y = sparse.csr_matrix(X[[d]]), sparse.csr_matrix(Y[[d]])
        alone = topics.infer(x, y, topics.scoring).word_counts(WordIndex(x))
        same(alone[words] / X[d, words][:, None], phi)
        phis.append(phi)
        row += len(alpha)
    expected = twins.count_factored_words(X, phis, X.shape[1])
    same(word_counts, expected)


def test_factored_steps_never_lower_the_bound(corpus):
    """Each step of Eq. (4) to (6) raises the bound of every document, or keeps it."""
    X, Y, topics = corpus
    topics = replace(topics, family="factored")
    X, Y = sparse.csr_matrix(X), sparse.csr_matrix(Y)

    bounds = [topics.infer(X, Y, Precision(n_steps, 0)).bounds for n_steps in range(8)]

    assert (np.diff(bounds, axis=0) >= -1e-10).all()


def test_all_topics_are_considered():
    """A topic that a label hardly expects is used for words that no other topic explains."""
    alpha, beta = np.full((3, 4), 1e-4), np.full((9, 4), 1e-12)
    alpha[:, 0] = 1.0
    beta[:8, 0], beta[8, 1] = 1 / 8, 1.0
    topics = Topics(alpha, beta / beta.sum(axis=0))
    n = sparse.csr_matrix(np.eye(9)[[8]] * 50)

    bound = topics.bound(n, sparse.csr_matrix(np.eye(3)[[0]]))

    with_topic = np.array([[1e-4, 50.0 + 1e-4, 1e-4, 1e-4]]) + np.array([[1.0, 0, 0, 0]])
    known = twins.joint_bound(n.toarray()[0], topics.alpha[[0]], topics.beta.T, with_topic)
    assert bound[0] >= known - 1e-6


def test_sums_over_documents(corpus):
    """Expected log shares, topic shares and word counts are those of the twins."""
    X, Y, topics = corpus
    inference, posterior, counts, e = infer(corpus, 3)
    sets = [np.flatnonzero(y) for y in Y]
    labels, ends = np.concatenate(sets), np.cumsum([0, *map(len, sets)])
    log_sums, totals, share_sums = np.zeros((3, 4)), np.zeros(3), np.zeros((3, 4))
    R = sparse.csr_matrix(X)
    R.data = posterior.ratios

    kernels.add_log_shares(labels, ends, posterior, topics.prior, log_sums, totals)
    kernels.add_topic_shares(labels, ends, posterior, topics.prior, share_sums)
    word_counts = inference.word_counts(WordIndex(sparse.csr_matrix(X)))

    expected, expected_totals = twins.add_log_shares(sets, counts, topics.alpha)
    np.testing.assert_allclose(log_sums, expected, rtol=1e-9)
    np.testing.assert_allclose(totals, expected_totals, rtol=1e-9)
    np.testing.assert_allclose(share_sums, twins.add_topic_shares(sets, counts, topics.alpha))
    np.testing.assert_allclose(word_counts, twins.count_topic_words(R, e, topics.beta.T))


def test_weigh_points():
    """Products of up to 40 shares, with and without rescaling, are those of logarithms."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(40), 16).T.copy()
    sets = [np.arange(size) for size in range(1, 41)]
    docs, weights = rng.integers(1, 5, 40).astype(float), np.zeros(16)
    labels, ends = np.concatenate(sets), np.cumsum([0, *map(len, sets)])

    value = kernels.weigh_points(labels, ends, docs, shares, weights, 2.0)

    expected, total = twins.weigh_points(sets, docs, shares)
    assert value == pytest.approx(2.0 + total)
    np.testing.assert_allclose(weights, expected)


@pytest.fixture
def words_of_labels():
    """Return documents in CSR form, and the words of five labels."""
    rng = np.random.default_rng(1)
    X = sparse.csr_matrix(rng.poisson(0.8, (8, 12)).astype(float))
    return X, X.indices.astype(np.int32), X.indptr.astype(np.int64), rng.dirichlet(np.ones(12), 5)


@pytest.mark.parametrize("n_steps", [0, 1, 6])
def test_class_weights(words_of_labels, n_steps):
    """Weights are those of slow EM, and no label shares are likelier than the bound."""
    X, indices, indptr, theta = words_of_labels
    start, weights, bounds = np.full(5, 0.2), np.empty((8, 5)), np.empty(8)

    kernels.class_weights(X.data, indices, indptr, theta.T.copy(), start, n_steps, weights, bounds)

    for n, own, bound in zip(X.toarray(), weights, bounds, strict=True):
        np.testing.assert_allclose(own, twins.class_weights(n, theta, start, n_steps))
        assert bound == pytest.approx(twins.likelihood_bound(n, theta, own))
        best = twins.class_weights(n, theta, start, 500)
        assert n @ np.log(best @ theta) <= bound + 1e-9


@pytest.mark.parametrize("keep_first", [False, True])
def test_search_label_sets(words_of_labels, keep_first):
    """The search visits the sets of the twin, in its order, with its log posteriors."""
    X, indices, indptr, theta = words_of_labels
    rng = np.random.default_rng(2)
    shares = rng.dirichlet(np.ones(5), 32).T.copy()
    log_scales = np.log(rng.uniform(0.1, 1, (4, 32)))
    candidates = np.tile([3, 1, 4, 0], (8, 1))
    members, values = np.zeros((8, 10), np.int64), np.full((8, 10), -np.inf)

    kernels.search_label_sets(X.data, indices, indptr, theta.T.copy(), candidates, keep_first,
                              shares, log_scales, 1.5, members, values)  # fmt: skip

    for d, n in enumerate(X.toarray()):
        expected = twins.search_label_sets(
            n, theta, [3, 1, 4, 0], keep_first, shares, log_scales, 1.5
        )
        visited = members[d, : len(expected)]
        sets = [{c for i, c in enumerate([3, 1, 4, 0]) if m >> i & 1} for m in visited.tolist()]
        assert sets == [labels for labels, _ in expected]
        np.testing.assert_allclose(values[d, : len(expected)], [value for _, value in expected])
        assert np.isneginf(values[d, len(expected) :]).all()
