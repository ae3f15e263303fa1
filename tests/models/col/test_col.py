"""CoL compared with transcriptions of its paper."""

import os
import subprocess
import sys
import warnings
from functools import partial

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import optimize, sparse, special, stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from polytopic import CoL
from polytopic.metrics import samples_f1, subset_accuracy
from polytopic.models.col.label_prior import SetPosteriors
from polytopic.models.col.prediction import best_threshold, log_odds
from polytopic.models.col.topics import Precision, Topics, WordIndex
from polytopic.models.col.training import TopicDocuments, dirichlet_objective, fit_dirichlets
from tests.strategies import matrices
from tests.twins import col as twins

MODES = ["weights", "sets", "paper"]
NEGATIVE = {"check_decision_proba_consistency": "its documents have negative counts"}


@parametrize_with_checks([CoL(n_topics=5)], expected_failed_checks=lambda estimator: NEGATIVE)
def test_scikit_learn_checks(estimator, check):
    """The estimator passes scikit-learn's checks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def drawn(n_docs=600, n_labels=4, n_topics=8, n_words=60, seed=0, length=60):
    """Return documents drawn from the model, with two topics per label, and the labels' words."""
    rng = np.random.default_rng(seed)
    beta = rng.dirichlet(np.full(n_words, 0.1), n_topics)
    alpha = np.full((n_labels, n_topics), 0.01)
    for label in range(n_labels):
        alpha[label, 2 * label : 2 * label + 2] = 1.5
    eta = rng.multivariate_normal(np.zeros(n_labels), planted(n_labels), n_docs)
    X, Y = np.zeros((n_docs, n_words)), np.zeros((n_docs, n_labels), dtype=int)
    for doc in range(n_docs):
        shares, size = special.softmax(eta[doc]), rng.integers(1, 4)
        Y[doc, rng.choice(n_labels, size=min(size, 3), p=shares)] = 1
        own = np.flatnonzero(Y[doc])
        theta = np.mean([rng.dirichlet(alpha[label]) for label in own], axis=0)
        X[doc] = rng.multinomial(length, theta @ beta)
    return X, Y, (alpha / alpha.sum(axis=1, keepdims=True)) @ beta


def planted(n_labels):
    """Return a covariance in which the first two labels are correlated."""
    sigma = 2.0 * np.eye(n_labels)
    sigma[0, 1] = sigma[1, 0] = 1.8
    return sigma


@pytest.fixture(scope="module")
def corpus():
    """Return documents drawn from the model."""
    if numba.config.DISABLE_JIT:
        pytest.skip("takes minutes without compiled kernels")
    return drawn()


@pytest.fixture(scope="module")
def model(corpus):
    """Return the model of these documents."""
    X, Y, _ = corpus
    return CoL(n_topics=12).fit(X[:400], Y[:400])


# Topics


def small_case(seed, n_labels=2, n_topics=3, n_words=5):
    """Return topics and one document with all labels."""
    rng = np.random.default_rng(seed)
    alpha = rng.uniform(0.3, 2.0, (n_labels, n_topics))
    beta = rng.dirichlet(np.ones(n_words), n_topics)
    n = rng.integers(1, 6, n_words).astype(float)
    topics = Topics(alpha, np.ascontiguousarray(beta.T))
    return topics, n, sparse.csr_matrix(n), sparse.csr_matrix(np.ones((1, n_labels)))


@pytest.mark.parametrize("seed", range(5))
def test_inference_step_by_step(seed):
    """Each step equals that of the slow twin, and none lowers the bound."""
    topics, n, x, y = small_case(seed)
    alpha, beta = topics.alpha, topics.beta.T
    gamma = alpha * (1 + n.sum() / (2 * alpha.sum(axis=1, keepdims=True)))

    bounds = []
    for step in range(12):
        posteriors = topics.infer(x, y, Precision(step, 0.0, 0.0))
        (block,) = posteriors.blocks.values()
        bounds.append(float(posteriors.bounds[0]))
        order = np.argsort(block.topics)

        assert bounds[-1] == pytest.approx(twins.joint_bound(n, alpha, beta, gamma), abs=1e-9)
        gamma = twins.next_gamma(n, alpha, beta, gamma)
        np.testing.assert_allclose(
            block.counts.reshape(2, -1)[:, order], gamma - alpha, rtol=1e-9, atol=1e-9
        )
    assert (np.diff(bounds) >= -1e-10).all()


@pytest.mark.parametrize("seed", range(5))
def test_inference_continues(seed):
    """Two calls of five steps equal one call of ten steps."""
    topics, _, x, y = small_case(seed)

    half = topics.infer(x, y, Precision(5, 0.0, 0.0))
    twice = topics.infer(x, y, Precision(4, 0.0, 0.0), half)
    once = topics.infer(x, y, Precision(10, 0.0, 0.0))

    assert twice.bounds == pytest.approx(once.bounds, abs=1e-9)


@pytest.mark.parametrize("n_labels", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_the_bound_is_below_the_evidence(seed, n_labels):
    """It is above that of the paper's factored family, which is a special case of the joint one."""
    topics, n, x, y = small_case(seed, n_labels, n_topics=2, n_words=3)

    bound = topics.bound(x, y)[0]

    assert bound <= twins.log_evidence(n, topics.alpha, topics.beta.T) + 1e-7
    assert bound >= twins.factored_bound(n, topics.alpha, topics.beta.T) - 1e-7
    if n_labels == 2:
        assert bound > twins.factored_bound(n, topics.alpha, topics.beta.T)


def test_topics_left_out_still_give_a_bound():
    """With fewer topics the bound is lower, or the same."""
    topics, _, x, y = small_case(1, n_topics=8)

    values = [topics.infer(x, y, Precision(50, 0.0, least)).bounds[0] for least in (0, 0.1, 0.3)]

    assert values[0] >= values[1] >= values[2]
    assert values[0] > values[2]


@pytest.mark.parametrize("size", [1.0, 1e-4])
@pytest.mark.parametrize("length", [1e-3, 2.0, 500.0])
def test_inference_where_shares_are_no_numbers(size, length):
    """Shares that underflow are computed in logarithms, so the bound is that of the twin."""
    topics, n, x, y = small_case(0)
    topics = Topics(size * topics.alpha, topics.beta)
    n, x = n * length / n.sum(), x * length / n.sum()
    gamma = topics.alpha * (1 + length / (2 * topics.alpha.sum(axis=1, keepdims=True)))
    psi = special.digamma(gamma) - special.digamma(gamma.sum(axis=1, keepdims=True))
    log_t = special.logsumexp(psi[:, :, None] + np.log(topics.beta.T), axis=(0, 1))
    expected = n @ (log_t - np.log(2)) + twins.dirichlet_terms(topics.alpha, gamma)

    bound = topics.infer(x, y, Precision(0, 0.0, 0.0)).bounds[0]

    assert bound == pytest.approx(expected, rel=1e-9)
    bounds = [topics.infer(x, y, Precision(step, 0.0, 0.0)).bounds[0] for step in range(8)]
    assert (np.diff(bounds) >= -1e-9 * abs(bounds[0])).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_topics_that_hardly_any_document_has():
    """Bounds stay finite with documents of pure topics, and with far more topics than words."""
    X = np.kron(np.eye(2), np.full((20, 5), 1e5))
    Y = np.ones((40, 1), dtype=int)

    for parameters in ({"n_topics": 2, "max_iter": 300, "tol": 0}, {"n_topics": 4000}):
        fitted = CoL(max_iter=parameters.pop("max_iter", 2), **parameters).fit(X, Y)

        assert np.isfinite(fitted.bound(X, Y)).all()
        assert np.isfinite(fitted.elbo_).all()


def test_expected_counts():
    """Word counts by topic follow the posterior, and add up to the words."""
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix(rng.poisson(0.7, (30, 9)).astype(float))
    Y = (rng.random((30, 3)) < 0.5).astype(float)
    Y[:, 0] = 1.0
    topics = Topics(rng.uniform(0.2, 1, (3, 4)), rng.dirichlet(np.ones(9), 4).T.copy())

    inference = topics.infer(X, sparse.csr_matrix(Y), Precision(200, 0.0, 0.0))
    counts = inference.word_counts(WordIndex(X))

    expected = np.zeros((9, 4))
    for block in inference.blocks.values():
        for doc in range(30):
            own = slice(block.ends[doc], block.ends[doc + 1])
            ratios = block.ratios[X.indptr[doc] : X.indptr[doc + 1]]
            words = X[doc].indices
            part = np.outer(ratios, block.e[own]) * topics.beta[words][:, block.topics[own]]
            expected[np.ix_(words, block.topics[own])] += part
    np.testing.assert_allclose(counts, expected, atol=1e-9)
    np.testing.assert_allclose(counts.sum(axis=1), X.sum(axis=0).A1, atol=1e-9)
    np.testing.assert_allclose(inference.topic_shares().sum(axis=1), Y.sum(axis=0))

    logs, shares = np.zeros((3, 4)), np.zeros((3, 4))
    for doc in range(30):
        labels, n = np.flatnonzero(Y[doc]), X[doc].toarray()[0]
        alpha = gamma = topics.alpha[labels]
        for _ in range(200):
            gamma = twins.next_gamma(n, alpha, topics.beta.T, gamma)
        totals = gamma.sum(axis=1, keepdims=True)
        logs[labels] += special.digamma(gamma) - special.digamma(totals)
        shares[labels] += gamma / totals
    np.testing.assert_allclose(inference.log_shares(), logs, atol=1e-8)
    np.testing.assert_allclose(inference.topic_shares(), shares, atol=1e-8)


def test_dirichlets_reach_the_best_parameters():
    """Newton's steps never lower the objective, and end where its gradient is zero."""
    rng = np.random.default_rng(0)
    truth = np.array([[0.3, 2.0, 0.01], [5.0, 1.0, 0.5], [1.0, 1.0, 1.0]])
    samples = [rng.dirichlet(row, 500) for row in truth]
    means = np.array([np.log(np.maximum(s, 1e-300)).mean(axis=0) for s in samples])
    docs, alpha = np.array([500, 500, 0]), np.full((3, 3), 0.5)

    values = []
    for _ in range(40):
        values.append(dirichlet_objective(alpha, means))
        alpha = fit_dirichlets(alpha, docs, means, n_steps=1)

    assert (np.diff(values, axis=0) >= 0).all()
    assert (alpha[2] == 0.5).all()  # no document, nothing to learn
    gradient = special.digamma(alpha.sum(axis=1, keepdims=True)) - special.digamma(alpha) + means
    np.testing.assert_allclose(gradient[:2], 0, atol=1e-6)
    best = optimize.minimize(
        lambda u: -dirichlet_objective(np.exp(u)[None], means[:1])[0], np.zeros(3), tol=1e-10
    )
    np.testing.assert_allclose(alpha[0], np.exp(best.x), rtol=1e-3)


def test_one_topic_alone_has_nothing_to_learn():
    """A single topic has all words, whatever its parameter is; nothing is divided by 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alpha = fit_dirichlets(np.array([[0.3], [2.0]]), np.array([4, 4]), np.zeros((2, 1)))

    assert alpha.tolist() == [[0.3], [2.0]]


# Learning


def test_the_bound_never_falls(corpus):
    """Each step of EM raises the bound."""
    X, Y, _ = corpus

    fitted = CoL(n_topics=12, tol=1e-7, max_iter=40).fit(X, Y)

    assert fitted.n_iter_ == len(fitted.elbo_) - 1 > 5
    assert (np.diff(fitted.elbo_) >= -1e-9 * abs(fitted.elbo_[-1])).all()
    assert (np.diff(fitted.label_objective_) > 0).all()


def test_alpha_is_learned(corpus):
    """Learning moves most parameters of topics away from their first estimate."""
    X, Y, _ = corpus

    alpha = CoL(n_topics=12, max_iter=1, tol=0).fit(X, Y).topic_prior_
    learned = CoL(n_topics=12, max_iter=8, tol=0).fit(X, Y).topic_prior_

    used = alpha > 0.1
    assert used.sum(axis=1).min() >= 2
    assert (np.abs(np.log(learned / alpha))[used] > 0.05).mean() > 0.8


@pytest.mark.parametrize("parameters", [{}, {"batch_size": 100, "max_iter": 4}])
def test_words_of_labels_are_recovered(corpus, parameters):
    """Word distributions are those of the model that documents were drawn from."""
    X, Y, truth = corpus

    word_proba = CoL(n_topics=12, **parameters).fit(X, Y).word_proba_

    assert (0.5 * np.abs(word_proba - truth).sum(axis=1) < 0.2).all()


def test_a_planted_correlation_is_found(corpus):
    """Labels that are correlated in the documents are correlated in the model."""
    X, Y, _ = drawn(n_docs=3000, n_labels=6, n_topics=12, length=10)

    fitted = CoL(n_topics=12).fit(X, Y)

    correlations = fitted._predictor.prior.correlations()
    place = {column: k for k, column in enumerate(fitted._columns)}
    pair = correlations[place[0], place[1]]
    others = correlations[np.triu_indices(6, 1)]
    assert pair == others.max()
    assert pair > 0.1 + np.sort(others)[-2]
    covariance = fitted.label_covariance_
    np.testing.assert_allclose(covariance.sum(axis=0), 0, atol=1e-9)


@pytest.fixture(scope="module")
def paper_model():
    """Return the paper's model, fitted on a small corpus, and that corpus."""
    X, Y, _ = drawn(n_docs=40, n_labels=3, n_words=20, n_topics=6, length=25)
    model = CoL(
        5, inference="paper", init="random", covariance="variational", predict_mode="paper",
        smoothing=0.3, max_iter=40, tol=1e-4,
    )  # fmt: skip
    return model.fit(X, Y), X, Y


def paper_parameters(model):
    """Return alpha, beta, mu and Sigma of a model, in double precision."""
    beta = model.topic_word_proba_.astype(float)
    return model.topic_prior_, beta, model.label_mean_, model.label_covariance_


def test_the_papers_inference_is_that_of_its_equations(paper_model):
    """The bound and Eq. (15), (17) and (18) equal those of a transcription of the paper."""
    model, X, Y = paper_model
    alpha, beta, mu, sigma = paper_parameters(model)
    sets = [np.flatnonzero(y) for y in Y]

    bounds = [twins.factored_bound(n, alpha[y], beta) for n, y in zip(X, sets, strict=True)]
    posteriors = np.array([twins.log_posteriors(n, alpha, beta, mu, sigma) for n in X[:10]])

    same = partial(np.testing.assert_allclose, rtol=1e-8, atol=1e-8)
    same(model.bound(X, Y), bounds)
    same(model.label_topics_, twins.label_topics(X, sets, alpha, beta))
    same(model.relevance(X, Y), twins.relevance(X, sets, alpha, beta))
    same(model.decision_function(X[:10]), log_odds(posteriors))
    perplexity = np.exp(-posteriors[Y[:10] > 0].mean())
    assert model.class_perplexity(X[:10], Y[:10]) == pytest.approx(perplexity, rel=1e-8)


def test_the_papers_mean_and_covariance(paper_model):
    """One more step of Eq. (7), (8), (10) and (11) hardly changes the mean and the covariance.

    EM ends once the bound per document rises by less than 1e-3, so both still move a little.
    """
    model, _, Y = paper_model
    mu, sigma = model.label_mean_, model.label_covariance_
    posteriors = SetPosteriors(sparse.csr_matrix(Y, dtype=float), mu, sigma)

    posteriors.maximum()

    following = posteriors.mean.mean(axis=0)
    np.testing.assert_allclose(following, mu, atol=1e-3)
    off = posteriors.mean - following
    following = off.T @ off / len(Y) + np.diag(posteriors.variance.mean(axis=0))
    np.testing.assert_allclose(following, sigma, atol=3e-3)  # of .09 on the diagonal


def test_the_papers_bound_never_falls(corpus):
    """Each EM step raises the bound, or keeps it."""
    X, Y, _ = corpus

    model = CoL(8, inference="paper", init="random", max_iter=30, tol=0.0).fit(X[:200], Y[:200])

    assert (np.diff(model.elbo_) >= -1e-9 * np.abs(model.elbo_[:-1])).all()


def test_planted_shared_topics_are_found():
    """Labels that share a topic are close in topic space; others are not."""
    rng = np.random.default_rng(0)
    beta = rng.dirichlet(np.full(80, 0.05), 6)
    alpha = np.full((4, 6), 0.02)
    for label, topics in enumerate([(0, 1), (1, 2), (3, 4), (5,)]):
        alpha[label, list(topics)] = 2.0
    Y = (
        np.eye(4, dtype=int)[rng.integers(4, size=300)]
        | np.eye(4, dtype=int)[rng.integers(4, size=300)]
    )
    theta = [np.mean([rng.dirichlet(alpha[c]) for c in np.flatnonzero(y)], axis=0) for y in Y]
    X = np.array([rng.multinomial(60, shares @ beta) for shares in theta])

    model = CoL(6, inference="paper", init="random", max_iter=100, tol=1e-5).fit(X, Y)

    R = model.label_topics_ / np.linalg.norm(model.label_topics_, axis=1, keepdims=True)
    alike = R @ R.T
    assert alike[0, 1] > 0.3
    assert max(alike[0, 2], alike[1, 2], alike[0, 3], alike[2, 3]) < alike[0, 1] / 2


@pytest.mark.parametrize(("covariance", "least"), [("mcem", 0.1), ("variational", 0.001)])
def test_correlated_classes_with_shared_topics_are_found(covariance, least):
    """Of labels drawn from the model, the correlated pair is found, and so is its shared topic.

    The paper's own updates of the covariance find the pair, but hardly any correlation.
    """
    rng = np.random.default_rng(0)
    beta, alpha = rng.dirichlet(np.full(80, 0.05), 6), np.full((5, 6), 0.02)
    for label, topics in enumerate([(0, 1), (1, 2), (3,), (4,), (5,)]):
        alpha[label, list(topics)] = 2.0
    Y, words = np.zeros((1000, 5), dtype=int), []
    for y, eta in zip(Y, rng.multivariate_normal(np.zeros(5), planted(5), 1000), strict=True):
        y[rng.choice(5, size=rng.integers(1, 4), p=special.softmax(eta))] = 1
        theta = np.mean([rng.dirichlet(alpha[label]) for label in np.flatnonzero(y)], axis=0)
        words.append(rng.multinomial(40, theta @ beta))

    model = CoL(
        6, inference="paper", init="random", covariance=covariance, max_iter=60, tol=1e-4
    ).fit(np.array(words), Y)

    deviation = np.sqrt(np.diag(model.label_covariance_))
    correlation = model.label_covariance_ / np.outer(deviation, deviation)
    R = model.label_topics_ / np.linalg.norm(model.label_topics_, axis=1, keepdims=True)
    pairs = np.triu_indices(5, 1)  # the first is the pair
    for values, margin in ((correlation[pairs], least), ((R @ R.T)[pairs], 0.2)):
        assert values[0] > values[1:].max() + margin


def test_labels_in_another_order(corpus):
    """Permuting the labels permutes parameters and predictions."""
    X, Y, _ = corpus
    order = np.array([2, 0, 3, 1])

    one = CoL(n_topics=12).fit(X, Y)
    other = CoL(n_topics=12).fit(X, Y[:, order])

    np.testing.assert_allclose(other.topic_prior_, one.topic_prior_[order], rtol=1e-6)
    np.testing.assert_allclose(
        other.label_covariance_, one.label_covariance_[np.ix_(order, order)], atol=1e-9
    )
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X)[:, order], atol=1e-6)
    assert (other.predict(X) == one.predict(X)[:, order]).all()


def test_labels_alike_in_another_order():
    """Labels with the same numbers of documents and words are ordered by their documents."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    words = rng.dirichlet(np.full(40, 0.1), 3)
    X, Y = np.array([rng.multinomial(50, words[k]) for k in y]), np.eye(3, dtype=int)[y]
    order = [2, 0, 1]

    one, other = CoL(n_topics=9).fit(X, Y), CoL(n_topics=9).fit(X, Y[:, order])

    np.testing.assert_allclose(other.word_proba_, one.word_proba_[order], rtol=1e-9)


def test_held_out_bound(corpus, model):
    """The true labels of held-out documents have a higher bound than others."""
    X, Y, _ = corpus

    right = model.bound(X[400:], Y[400:]).mean()

    assert right > model.bound(X[400:], np.roll(Y[400:], 1, axis=1)).mean()


@pytest.mark.compiled
@pytest.mark.parametrize("batch_size", [None, 100])
def test_threads_do_not_matter(batch_size):
    """Parameters do not depend on the number of threads, ours or those of BLAS."""
    code = (
        "import hashlib, numpy as np\n"
        "from polytopic import CoL\n"
        "rng = np.random.default_rng(0)\n"
        "X, Y = rng.poisson(0.5, (900, 80)), (rng.random((900, 12)) < 0.2).astype(int)\n"
        "Y[:, 0] = 1\n"
        f"m = CoL(n_topics=20, max_iter=2, tol=1, batch_size={batch_size}).fit(X, Y)\n"
        "h = hashlib.sha256()\n"
        "for a in (m.topic_word_proba_, m.topic_prior_, m.label_covariance_):\n"
        "    h.update(np.ascontiguousarray(a).tobytes())\n"
        "print(h.hexdigest(), m.predict_proba(X).sum())"
    )

    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "OPENBLAS_NUM_THREADS": n, "POLYTOPIC_NUM_THREADS": n},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for n in ("1", "2")
    }

    assert len(answers) == 1


# Prediction


def test_weights_of_classes(corpus, model):
    """Weights are those of slow EM, and scores are their log odds."""
    X = corpus[0][400:420]
    start = model.label_docs_ / model.label_docs_.sum()

    expected = [twins.class_weights(n, model.word_proba_, start, 6) for n in X]

    np.testing.assert_allclose(model.decision_function(X), special.logit(expected), atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_answers(corpus, mode):
    """All modes find most labels, give each document at least one, and give probabilities."""
    X, Y, _ = corpus
    fitted = CoL(n_topics=12, predict_mode=mode).fit(X[:400], Y[:400])

    answers, proba = fitted.predict(X[400:]), fitted.predict_proba(X[400:])

    assert samples_f1(Y[400:], answers) > 0.8
    assert answers.sum(axis=1).min() == 1
    assert ((proba >= 0) & (proba <= 1)).all()
    assert proba[Y[400:] == 1].mean() > 0.3 + proba[Y[400:] == 0].mean()
    assert mode == "paper" or fitted.class_perplexity(X[400:], Y[400:]) < 4
    sets, scores, assessed = fitted.assess(X[400:])
    assert (sets.toarray() == answers).all()
    np.testing.assert_array_equal(assessed, proba)
    np.testing.assert_array_equal(scores, fitted.decision_function(X[400:]))


def test_paper_mode_is_the_posterior_of_single_labels(corpus):
    """Each label is scored alone, by its prior and the bound of the document's words."""
    X, Y, _ = corpus
    fitted = CoL(n_topics=12, predict_mode="paper").fit(X[:400], Y[:400])
    log_prior = fitted.log_prior(np.eye(4, dtype=int))

    scores = fitted.decision_function(X[400:410])

    alone = [fitted.bound(X[400:410], np.tile(row, (10, 1))) for row in np.eye(4, dtype=int)]
    expected = special.softmax(np.array(alone).T + log_prior, axis=1)
    np.testing.assert_allclose(special.expit(scores), expected, atol=1e-9)


def test_sets_are_judged_by_likelihood_and_prior(corpus):
    """Posteriors of listed sets are those of slow sums; all other sets are below the bound."""
    X, Y, _ = corpus
    fitted = CoL(n_topics=12, predict_mode="sets").fit(X[:400], Y[:400])
    x = X[400:406]

    ranked = fitted.predict_sets(x, n_best=4)

    for doc in range(6):
        values = {}
        for member in range(1, 16):
            labels = tuple(k for k in range(4) if member >> k & 1)
            y = np.isin(np.arange(4), labels).astype(int)[None]
            words = fitted.explain_words(x[doc : doc + 1], y).word_scores
            n = x[doc][x[doc] > 0]
            values[labels] = float(n @ words / fitted.temperature_ + fitted.log_prior(y)[0])
        listed = [values[labels] for labels in ranked.sets[doc]]
        differences = ranked.scores[doc] - ranked.scores[doc, 0]
        np.testing.assert_allclose(np.array(listed) - listed[0], differences, atol=1e-9)
        unlisted = [v for labels, v in values.items() if labels not in ranked.sets[doc]]
        assert max(unlisted) - listed[0] <= ranked.bound[doc] - ranked.scores[doc, 0] + 1e-9
        assert fitted.predict(x)[doc].nonzero()[0].tolist() == list(ranked.sets[doc][0])


def test_the_best_set_with_a_label(corpus, model):
    """It contains the label, and is the best of the sets visited by the search that do."""
    X = corpus[0][400:420]

    for label in range(4):
        best = model.best_with(X, label)

        assert (best.toarray()[:, label] == 1).all()
    with pytest.raises(ValueError, match="label == 4"):
        model.best_with(X, 4)


def test_shares_of_words(corpus, model):
    """A word is shared by its probability under each label."""
    X, Y, _ = corpus

    shared = model.word_labels(X[:5], Y[:5])

    for doc, word, label, share in zip(*shared, strict=True):
        mass = model.word_proba_[Y[doc] == 1][:, word].sum()
        assert share == pytest.approx(model.word_proba_[label, word] / mass)


def test_a_restricted_model(corpus, model):
    """Labels that are not allowed are never predicted, and have probability 0."""
    X = corpus[0][400:]
    allowed = np.array([True, False, True, False])

    restricted = model.restrict_to(allowed)

    sets, scores, proba = restricted.assess(X)
    assert not sets.toarray()[:, ~allowed].any()
    assert (scores[:, ~allowed] == -np.inf).all()
    assert (proba[:, ~allowed] == 0).all()
    assert sets.toarray().any(axis=1).all()
    with pytest.raises(ValueError, match="no allowed label"):
        model.restrict_to(np.zeros(4, dtype=bool))


def test_the_best_threshold():
    """No other threshold has a better samples-averaged F1."""
    rng = np.random.default_rng(0)
    scores, truth = rng.normal(size=(80, 3)), rng.random((80, 3)) < 0.4
    truth[:, 0] = True
    relative = scores - scores.max(axis=1, keepdims=True)

    threshold = best_threshold(relative, truth, truth.sum(axis=1))

    def measure(value):
        return samples_f1(truth.astype(int), (relative >= value).astype(int))

    assert measure(threshold) >= max(measure(v) for v in np.unique(relative)) - 0.01


def test_a_threshold_may_leave_the_best_label_alone():
    """One answer that is far off does not give all other documents more labels."""
    relative = np.tile([0.0, -19.0, -19.0], (100, 1))
    relative[0] = [-20.0, 0.0, -25.0]
    truth = np.tile([True, False, False], (100, 1))

    assert best_threshold(relative, truth, truth.sum(axis=1)) > -19


@pytest.mark.parametrize("mode", ["weights", "paper"])
def test_scores_of_long_documents_are_numbers(mode):
    """Scores stay finite and ordered, however certain the model is."""
    rng = np.random.default_rng(0)
    words, y = rng.dirichlet(np.full(100, 0.05), 3), np.arange(60) % 3
    X = np.array([rng.multinomial(20000, words[k]) for k in y])
    fitted = CoL(n_topics=6, predict_mode=mode).fit(X, np.eye(3, dtype=int)[y])

    scores = fitted.decision_function(X)

    assert np.isfinite(scores).all()
    assert (scores.argmax(axis=1) == y).all()
    assert log_odds(np.log([[0.2, 0.8]])) == pytest.approx(special.logit([[0.2, 0.8]]))
    assert log_odds(np.zeros((1, 1))) == np.inf


# Unusual input


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_topics": 0}, "n_topics == 0, must be >= 1"),
        ({"n_topics": "many"}, "n_topics must be an instance of"),
        ({"covariance": "full"}, "covariance == 'full', must be one of"),
        ({"predict_mode": "best"}, "predict_mode == 'best', must be one of"),
        ({"smoothing": 0}, "smoothing == 0, must be > 0"),
        ({"batch_size": 0}, "batch_size == 0, must be >= 1"),
        ({"max_iter": 0}, "max_iter == 0, must be >= 1"),
        ({"tol": -1}, "tol == -1, must be >= 0"),
    ],
)
def test_bad_parameters(parameters, message):
    """The error names the parameter."""
    with pytest.raises((ValueError, TypeError), match=message):
        CoL(**parameters).fit([[1, 2]], [["a"]])


@given(matrices(labelled=True))
@settings(max_examples=25)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_any_small_corpus(case):
    """More topics than words, empty documents, labels with one document or on all of them."""
    X, Y = case

    for parameters in ({"n_topics": 9}, {"n_topics": 2, "batch_size": 2}):
        fitted = CoL(**parameters).fit(X, Y)

        answers = fitted.predict(X)
        assert answers.shape == Y.shape
        assert answers.any(axis=1).all()
        assert not answers[:, Y.sum(axis=0) == 0].any()
        assert np.isfinite(fitted.predict_proba(X)).all()
        assert np.isfinite(fitted.elbo_).all()
        sets = fitted.predict_sets(X, 2)
        assert all(listed for listed in sets.sets)


def test_a_document_without_words_gets_the_commonest_set(corpus):
    """It gets the most frequent set in each mode; probabilities are the labels' frequencies."""
    X, Y, _ = corpus
    commonest = max({tuple(row) for row in Y.tolist()}, key=Y.tolist().count)

    for mode in MODES:
        fitted = CoL(n_topics=8, predict_mode=mode).fit(X, Y)
        nothing = np.zeros((2, X.shape[1]))

        assert fitted.predict(nothing)[0].tolist() == list(commonest) or Y.tolist().count(
            fitted.predict(nothing)[0].tolist()
        ) == Y.tolist().count(list(commonest))
        np.testing.assert_allclose(fitted.predict_proba(nothing)[1], Y.mean(axis=0))


def test_a_bound_needs_labels_that_are_known(model, corpus):
    """A document without labels, or with one that was never seen, has no bound."""
    X, Y, _ = corpus
    fitted = CoL(n_topics=5).fit(X, np.column_stack([Y, np.zeros(len(Y), dtype=int)]))

    with pytest.raises(ValueError, match="document without labels"):
        model.bound(X[:1], np.zeros((1, 4), dtype=int))
    with pytest.raises(ValueError, match="label without documents"):
        fitted.bound(X[:1], np.array([[1, 0, 0, 0, 1]]))
    assert fitted.predict(X)[:, 4].sum() == 0
    assert fitted.topic_prior_[4].sum() == 0


def test_fewer_topics_than_labels_are_shared():
    """A label then has the topic of the label with the most similar words."""
    rng = np.random.default_rng(0)
    words = np.repeat(rng.dirichlet(np.full(40, 0.1), 3), 2, axis=0)
    label = rng.integers(0, 6, 600)
    X = np.array([rng.multinomial(50, words[k]) for k in label])

    fitted = CoL(n_topics=3).fit(X, np.eye(6, dtype=int)[label])

    used = fitted.topic_prior_.argmax(axis=1)
    assert (used[::2] == used[1::2]).all()
    assert len(set(used)) == 3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("size", "smoothing"), [(1e60, 0.05), (10.0, 1e-50)])
def test_extreme_counts(size, smoothing):
    """Each word keeps a positive probability, however large or small the counts are."""
    fitted = CoL(n_topics=2, smoothing=smoothing).fit(size * np.eye(2), [["a"], ["b"]])

    assert np.isfinite(fitted.elbo_).all()
    assert (fitted.topic_word_proba_ > 0).all()
    assert fitted.predict([[3, 1]]).tolist() == [[1, 0]]


def test_too_few_steps_give_a_warning(corpus):
    """A warning names max_iter, in scikit-learn's manner."""
    X, Y, _ = corpus

    with pytest.warns(ConvergenceWarning, match="max_iter == 1 steps"):
        CoL(n_topics=12, max_iter=1).fit(X, Y)


def test_the_number_of_topics_is_tuned(corpus):
    """Few documents get one topic per label, varied ones get eight; a new fit keeps the number."""
    X, Y, _ = corpus
    rng = np.random.default_rng(0)
    kinds = np.repeat([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]], 5, axis=1) / 10
    kind = rng.integers(0, 4, 600)  # two of each label, with the same words taken together
    mixed = np.array([rng.multinomial(40, kinds[k]) for k in kind])
    labels = np.eye(2, dtype=int)[kind // 2]

    few = CoL().fit(X[:60], Y[:60])
    many = CoL(predict_mode="paper").fit(mixed, labels)
    again = CoL(predict_mode="paper").fit(mixed, labels, tuned=many.tuned_)

    assert few.tuned_["topics_per_label"] == 1
    assert few.topic_prior_.shape == (4, 4)
    assert many.tuned_["topics_per_label"] == 8
    assert many.topic_prior_.shape == (2, 16)
    assert many.score(mixed, labels) > 0.95
    np.testing.assert_array_equal(again.topic_word_proba_, many.topic_word_proba_)


def test_the_number_of_topics_where_little_is_tuned(corpus):
    """With one label per document it is tuned, too; with few documents each label has one topic."""
    X, Y, _ = corpus
    alone = Y.sum(axis=1) == 1
    X, y = X[alone], Y[alone].argmax(axis=1)

    fitted, few = CoL().fit(X, y), CoL().fit(X[:20], y[:20])

    per_label = fitted.tuned_["topics_per_label"]
    assert per_label in (1, 8)
    assert fitted.topic_prior_.shape == (4, 4 * per_label)
    assert few.tuned_["topics_per_label"] == 1
    assert few.topic_prior_.shape[1] == len(set(y[:20]))


def test_the_number_of_topics_of_older_files(corpus):
    """Older files have no tuned number; there are then three topics per label."""
    X, Y, _ = corpus

    fitted = CoL().fit(X, Y, tuned={"threshold": -0.7, "temperature": 1.0})

    assert fitted.topic_prior_.shape == (4, 12)


def test_there_are_not_too_many_topics():
    """Labels share topics if there are very many."""
    rng = np.random.default_rng(0)
    Y = np.eye(300, dtype=int)[np.arange(600) % 300]

    fitted = CoL(max_iter=2, tol=1.0).fit(rng.integers(0, 3, (600, 30)), Y, tuned={
        "threshold": -0.7, "topics_per_label": 8,
    })  # fmt: skip

    assert fitted.topic_prior_.shape == (300, 2000)


def test_one_label_a_document(corpus):
    """With a 1-D target, predictions are 1-D, and probabilities add up to one."""
    X, Y, _ = corpus
    alone = Y.sum(axis=1) == 1
    X, y = X[alone], np.array(["a", "b", "c", "d"])[Y[alone].argmax(axis=1)]

    fitted = CoL(n_topics=12).fit(X, y)

    assert (fitted.predict(X) == y).mean() > 0.9
    np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1)
    with pytest.raises(ValueError, match="1-D"):
        fitted.predict_sets(X)


def test_stepwise_learning(corpus):
    """Learning in batches predicts as well as learning from all, and is reproducible."""
    X, Y, _ = corpus

    whole = CoL(n_topics=12).fit(X[:400], Y[:400])
    steps = CoL(n_topics=12, batch_size=64).fit(X[:400], Y[:400])
    again = CoL(n_topics=12, batch_size=64).fit(X[:400], Y[:400])

    assert subset_accuracy(Y[400:], steps.predict(X[400:])) > 0.9 * subset_accuracy(
        Y[400:], whole.predict(X[400:])
    )
    assert (steps.topic_word_proba_ == again.topic_word_proba_).all()
    assert steps.n_iter_ == 2


def test_distributions(model):
    """Topics, labels and shares are distributions."""
    for proba in (model.topic_word_proba_, model.word_proba_):
        np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-5)
    assert stats.entropy(model.word_proba_.T).min() > 0


def test_a_loaded_model(model):
    """A loaded model has its training trace, and the positions of labels in topic space."""
    loaded = CoL(n_topics=12).from_arrays(
        model.to_arrays(), labels=range(4), n_words=60, tuned=model.tuned_
    )

    assert loaded.n_iter_ == model.n_iter_ > 1
    for name in ("elbo_", "label_objective_", "label_topics_", "topic_prior_"):
        assert (getattr(loaded, name) == getattr(model, name)).all()
    np.testing.assert_allclose(loaded.label_topics_.sum(axis=1), 1)
    words = loaded.label_topics_ @ loaded.topic_word_proba_
    assert (0.5 * np.abs(words - loaded.word_proba_).sum(axis=1) < 0.1).all()


def test_documents_with_words():
    """The rows of documents with words are returned."""
    X, Y = sparse.csr_matrix([[1, 0], [0, 0], [2, 1], [0, 0]]), sparse.csr_matrix(np.ones((4, 1)))

    assert TopicDocuments(X, Y).nonempty().tolist() == [0, 2]


def test_thresholds_are_scores_of_true_labels():
    """The best threshold is such a score, however many other labels score near it."""
    relative = np.full((2, 60), -9.0)
    relative[:, 0] = 0.0
    relative[0, 1], relative[1, 1] = -0.5, -0.3
    relative[:, 2:] = np.linspace(-5.0, -0.6, 58)
    truth = np.zeros((2, 60), dtype=bool)
    truth[:, 0] = truth[0, 1] = True

    assert best_threshold(relative, truth, truth.sum(axis=1)) == -0.5
