"""BoosTexter: a slow twin, invariances, predictions, unusual input."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import hamming_loss
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from polytopic import BoosTexter, Labeler, load
from polytopic.models import WordRule
from polytopic.models.boostexter import estimator, kernels
from tests.strategies import LABELS, matrices
from tests.twins import boostexter as twins

TIE = 1e-12
NEGATIVE = {"check_decision_proba_consistency": "its documents have negative counts"}


@parametrize_with_checks(
    [BoosTexter(20), BoosTexter(5, best_if_none=False)],
    expected_failed_checks=lambda estimator: NEGATIVE,
)
def test_scikit_learn_checks(estimator, check):
    """It passes scikit-learn's own checks."""
    check(estimator)


def topics(n_docs=120, n_labels=4, seed=0, n_words=20):
    """Return documents whose words depend on their labels."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(n_words, 0.15), size=n_labels)
    Y = (rng.random((n_docs, n_labels)) < 0.25).astype(int)
    Y[np.arange(n_docs), rng.integers(0, n_labels, n_docs)] = 1
    X = np.array([rng.multinomial(15, theta[y > 0].mean(axis=0)) for y in Y])
    return X, Y


def usable(X, Y):
    """Return whether every document has words and labels, and every label documents."""
    return X.any(axis=1).all() and Y.any(axis=1).all() and Y.any(axis=0).all()


# Kernels


@pytest.fixture
def arrays():
    """Return dense words and labels, and the arguments of the kernels."""
    rng = np.random.default_rng(0)
    X, Y = rng.poisson(np.linspace(0.02, 0.5, 25), (40, 25)), np.eye(30, dtype=int)
    Y = Y[rng.integers(0, 30, 40)] | Y[rng.integers(0, 30, 40)]
    sparse_X, sparse_Y = sparse.csr_matrix(1.0 * (X > 0)), sparse.csr_matrix(1.0 * Y)
    documents = estimator._index_documents(sparse_X, sparse_Y)
    return X, Y, documents, estimator._index_pairs(sparse_X, sparse_Y, documents)


def test_locate_pairs(arrays):
    """The pairs of each document's words and labels are those of the twin."""
    X, Y, _, pairs = arrays

    assert pairs.position.tolist() == twins.locate_pairs(X, Y, pairs.label, pairs.ends)
    assert 5 < (np.diff(pairs.ends) == 30).sum() < 20  # words with all labels, and others


def test_sum_weights(arrays):
    """Sums of all pairs and words are those of the twin."""
    X, Y, documents, pairs = arrays
    D = np.random.default_rng(0).uniform(0.1, 1, Y.shape)
    plus, minus, mass, gain = twins.sum_weights(X, Y, D)
    n_pairs, n_words = pairs.label.size, X.shape[1]
    sums = kernels.Sums(*map(np.empty, (n_pairs, n_pairs, n_words, n_words)))

    kernels.sum_weights(documents, pairs, D, sums)

    assert D.sum() == pytest.approx(1)
    word = np.repeat(np.arange(n_words), np.diff(pairs.ends))
    np.testing.assert_allclose(sums.plus, plus[word, pairs.label], atol=1e-12)
    np.testing.assert_allclose(sums.minus, minus[word, pairs.label], atol=1e-12)
    np.testing.assert_allclose(sums.mass, mass)
    np.testing.assert_allclose(sums.gain, gain, atol=1e-12)


def test_add_rules(arrays):
    """Words, outputs and Z of several rounds in one call are those of the twin."""
    X, Y, documents, pairs = arrays
    D, n_pairs, n_words = np.ones(Y.shape), pairs.label.size, X.shape[1]
    sums = kernels.Sums(*map(np.empty, (n_pairs, n_pairs, n_words, n_words)))
    words, outputs, z = np.zeros(6, np.int64), np.zeros((6, 30)), np.zeros(6)
    expected = twins.add_rules(X, Y, D / D.size, 6, 0.01)

    kernels.sum_weights(documents, pairs, D, sums)
    n_rules = kernels.add_rules(documents, pairs, D, sums, 0.01, np.ones(1), words, outputs, z)

    assert n_rules == 6
    assert words.tolist() == expected[0]
    np.testing.assert_allclose(outputs, expected[1], atol=1e-9)
    np.testing.assert_allclose(z, expected[2], rtol=1e-10)


# Rules


def check_rules(model, X, Y, n_rounds, smoothing):
    """Check each round against the twin; of tied words, the first is taken."""
    D = np.full(Y.shape, 1 / Y.size)
    for rule in model.rules_:
        z = twins.all_z(X, Y, D)
        assert z[rule.word] <= z.min() + 2 * TIE
        assert z[rule.word] < 1
        assert (z[: rule.word] > z.min() + TIE / 2).all()
        outputs, D = twins.add_rule(X, Y, D, rule.word, smoothing)
        np.testing.assert_allclose(rule.outputs, outputs, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(rule.z, D.sum(), rtol=1e-10)
        D /= D.sum()
    if model.n_iter_ < n_rounds:
        assert twins.all_z(X, Y, D).min() >= 1 - 2 * TIE


@given(matrices(labelled=True), st.integers(1, 12))
def test_rules_are_those_of_the_twin(corpus, n_rounds):
    """Words, outputs and Z of each round, on small corpora with many ties."""
    X, Y = corpus
    assume(usable(X, Y))

    model = BoosTexter(n_rounds).fit(X, Y)

    check_rules(model, X, Y, n_rounds, 1 / Y.size)


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n_labels", "n_words"), [(3, 60), (24, 40)])
def test_rules_of_many_rounds_are_those_of_the_twin(seed, n_labels, n_words):
    """The same after sums are computed again, with words of few labels and of all labels."""
    X, Y = topics(150, n_labels, seed, n_words)
    model = BoosTexter(450).fit(X[Y.any(axis=1)], Y)

    check_rules(model, X, Y, 450, 1 / Y.size)


@pytest.mark.parametrize("smoothing", [1e-6, 0.01, 2.0])
def test_rules_by_other_smoothing(smoothing):
    """Smoothing is relative to the sum of all weights."""
    X, Y = topics(60)

    model = BoosTexter(25, smoothing=smoothing).fit(X, Y)

    check_rules(model, X, Y, 25, smoothing)


@given(matrices(labelled=True))
def test_the_bound_holds(corpus):
    """No Z exceeds one; their product is the mean loss, which is at least the Hamming loss."""
    X, Y = corpus
    assume(usable(X, Y))
    model = BoosTexter(20, best_if_none=False).fit(X, Y)

    scores = model.decision_function(X)

    assert (model.z_ <= 1 + 1e-12).all()
    product = np.prod(model.z_)
    np.testing.assert_allclose(np.exp(-(2 * Y - 1) * scores).mean(), product, rtol=1e-8)
    assert product >= np.mean((scores > 0) != Y) - 1e-12


@pytest.mark.compiled
def test_the_bound_falls_to_the_training_loss():
    """Each round lowers the bound, which the training loss never exceeds."""
    X, Y = topics(400, 6, n_words=200)
    model = BoosTexter(600, best_if_none=False).fit(X, Y)

    bound = np.cumprod(model.z_)

    assert (np.diff(bound) < 0).all()
    assert bound[-1] < 0.1
    assert hamming_loss(Y, model.predict(X)) <= bound[-1]


def test_rules_can_be_read():
    """A rule has a word, an output for each label, and Z; scores are sums of outputs."""
    X, Y = topics(60)
    model = BoosTexter(30).fit(X, Y)

    scores = sum((X[:, [rule.word]] > 0) * rule.outputs for rule in model.rules_)

    assert all(isinstance(rule, WordRule) for rule in model.rules_)
    assert len(model.rules_) == model.n_iter_ == 30
    assert len({rule.word for rule in model.rules_}) < 30
    assert [rule.z for rule in model.rules_] == model.z_.tolist()
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-12)


def test_fewer_rounds_are_the_first_ones():
    """The rules of a shorter run are the first ones of a longer run."""
    X, Y = topics(60)

    few, many = BoosTexter(5).fit(X, Y), BoosTexter(9).fit(X, Y)

    assert [rule.word for rule in few.rules_] == [rule.word for rule in many.rules_[:5]]
    assert few.z_.tobytes() == many.z_[:5].tobytes()


# Invariances


@pytest.mark.parametrize("seed", range(3))
def test_labels_in_another_order(seed):
    """Rules and predictions are the same, in the new order."""
    X, Y = topics(60, seed=seed)
    order = np.random.default_rng(seed).permutation(4)
    model = BoosTexter(40).fit(X, Y)

    other = BoosTexter(40).fit(X, Y[:, order])

    assert [rule.word for rule in other.rules_] == [rule.word for rule in model.rules_]
    for rule, same in zip(model.rules_, other.rules_, strict=True):
        np.testing.assert_allclose(same.outputs, rule.outputs[order], atol=1e-9)
    np.testing.assert_array_equal(other.predict(X), model.predict(X)[:, order])


@pytest.mark.parametrize("seed", range(3))
def test_documents_in_another_order(seed):
    """Nothing changes."""
    X, Y = topics(60, seed=seed)
    order = np.random.default_rng(seed).permutation(60)
    model = BoosTexter(40).fit(X, Y)

    other = BoosTexter(40).fit(X[order], Y[order])

    assert [rule.word for rule in other.rules_] == [rule.word for rule in model.rules_]
    np.testing.assert_allclose(other.decision_function(X), model.decision_function(X), atol=1e-9)


@given(matrices(labelled=True))
def test_all_documents_twice(corpus):
    """The rules are the same if the smoothing is fixed."""
    X, Y = corpus
    assume(usable(X, Y))
    model = BoosTexter(8, smoothing=0.01).fit(X, Y)

    twice = BoosTexter(8, smoothing=0.01).fit(np.vstack([X, X]), np.vstack([Y, Y]))

    assert [rule.word for rule in twice.rules_] == [rule.word for rule in model.rules_]
    np.testing.assert_allclose(twice.z_, model.z_, rtol=1e-9)


def test_counts_of_words_do_not_matter():
    """Only the presence of a word matters."""
    X, Y = topics(60)

    counted, present = BoosTexter(20).fit(X, Y), BoosTexter(20).fit(X > 0, Y)

    assert counted.z_.tobytes() == present.z_.tobytes()
    assert counted.decision_function(X).tobytes() == present.decision_function(X * 0.5).tobytes()


def test_documents_without_labels_or_words_change_no_rule():
    """They change no rule, but their labels count for the fallback."""
    X, Y = topics(40)
    plain = BoosTexter(20).fit(X, Y)

    more = BoosTexter(20).fit(
        np.vstack([X[:3], X, 0 * X[:2]]), np.vstack([0 * Y[:3], Y, [[1, 1, 1, 1]] * 2])
    )

    assert more.z_.tobytes() == plain.z_.tobytes()
    assert more.label_docs_.tolist() == (Y.sum(axis=0) + 2).tolist()


# Prediction


def test_labels_above_zero_are_predicted():
    """Without one, the best label is predicted, unless that is turned off."""
    Y = np.eye(3, dtype=int)[[0, 1, 2, 0, 0, 1, 1, 2, 2, 2]]
    X = np.hstack([np.ones((10, 1)), np.eye(10)[:, :3]])  # the last seven have one word
    model = BoosTexter(200).fit(X, Y)
    scores = model.decision_function(X)

    answers, strict = model.predict(X), model.set_params(best_if_none=False).predict(X)

    assert (strict == (scores > 0)).all()
    assert (answers[:3] == Y[:3]).all()
    assert (strict[:3] == Y[:3]).all()
    assert (scores[3:] < 0).all()
    assert answers[3:].tolist() == [[0, 0, 1]] * 7


def test_documents_without_a_word_of_a_rule():
    """They get the most frequent label set, and label frequencies as probabilities."""
    X, Y = topics(40)
    X, Y = np.hstack([X, np.zeros((40, 1), int)]), Y.copy()
    Y[:8] = [0, 1, 0, 1]
    unknown = np.zeros((2, X.shape[1]))
    unknown[1, -1] = 3

    for best in (True, False):
        model = BoosTexter(10, best_if_none=best).fit(X, Y)

        assert model.predict(unknown).tolist() == [[0, 1, 0, 1]] * 2
        assert (model.decision_function(unknown) == 0).all()
        np.testing.assert_allclose(model.predict_proba(unknown), [Y.mean(axis=0)] * 2)


def test_probabilities_are_logistic():
    """Probabilities are the logistic function of twice the score; they are not calibrated."""
    X, Y = topics(80)
    model = BoosTexter(30).fit(X, Y)

    proba = model.predict_proba(X)

    np.testing.assert_allclose(proba, 1 / (1 + np.exp(-2 * model.decision_function(X))))


def test_assess():
    """`assess` gives the sets, scores and probabilities of the single methods."""
    X, Y = topics(60)
    model = BoosTexter(20).fit(X, Y)

    sets, scores, proba = model.assess(X)

    np.testing.assert_array_equal(sets.toarray(), model.predict(X))
    np.testing.assert_array_equal(scores, model.decision_function(X))
    np.testing.assert_array_equal(proba, model.predict_proba(X))


def test_fewer_labels():
    """Predictions are the best of the allowed labels."""
    X, Y = topics(60)
    X_new = np.vstack([X, np.zeros((1, X.shape[1]))])
    model = BoosTexter(20).fit(X, Y)
    allowed = np.array([True, False, True, True])

    few = model.restrict_to(allowed)

    answers, scores = few.predict(X_new), model.decision_function(X_new)
    assert not answers[:, 1].any()
    assert answers.any(axis=1).all()
    given = (scores > 0) & allowed
    some, known = given.any(axis=1), scores.any(axis=1)
    best = np.where(allowed, scores, -np.inf).argmax(axis=1)
    assert (answers[some] == given[some]).all()
    assert answers[known & ~some, best[known & ~some]].all()
    assert np.isneginf(few.decision_function(X_new)[:, 1]).all()
    assert (few.predict_proba(X_new)[:, 1] == 0).all()
    assert (model.restrict_to(np.ones(4, bool)).predict(X_new) == model.predict(X_new)).all()
    with pytest.raises(ValueError, match="no allowed label"):
        model.restrict_to(np.zeros(4, bool))


def test_the_best_set_with_a_label():
    """The best set has all labels above zero, and this one."""
    X, Y = topics(40)
    wide = np.hstack([Y, np.zeros((40, 1), dtype=int)])
    model = BoosTexter(20).fit(X, wide)

    best = model.best_with(X, 2).toarray()

    expected = model.decision_function(X) > 0
    expected[:, 2] = True
    np.testing.assert_array_equal(best, expected)
    with pytest.raises(ValueError, match="label '4' has no documents"):
        model.best_with(X, 4)


def test_contributions_add_up_to_the_score():
    """Contributions add up for any set, by words and by labels, and ignore counts."""
    X, Y = topics(40)
    model = BoosTexter(30).fit(X, Y)
    scores = model.decision_function(X)

    for doc, y in [(0, [1, 0, 1, 0]), (1, [0, 1, 0, 0]), (2, [1, 1, 1, 1])]:
        x = sparse.csr_matrix(X[[doc]])
        breakdown = model.explain_words(x, np.array([y]))

        assert breakdown.by_label.shape == (x.nnz, sum(y))
        assert x.data @ breakdown.word_scores == pytest.approx(scores[doc] @ y)
        np.testing.assert_allclose(x.data @ breakdown.by_label, scores[doc][np.flatnonzero(y)])


def test_word_labels_share_each_word():
    """The shares of a word are at least 0, and sum to one over the labels of its document."""
    X, Y = topics(30)
    model = BoosTexter(10).fit(X, Y)

    word_labels = model.word_labels(X)

    predicted = model.predict(X)
    assert predicted[word_labels.doc, word_labels.label].all()
    assert word_labels.share.min() >= 0
    total = np.zeros(X.shape)
    np.add.at(total, (word_labels.doc, word_labels.word), word_labels.share)
    np.testing.assert_allclose(total, X > 0, atol=1e-9)


def test_top_words_of_a_label():
    """The top words of a label come with the sum of the outputs of their rules."""
    X, Y = topics(60)
    model = BoosTexter(40).fit(X, Y)
    sums = model.decision_function(np.eye(X.shape[1]))[:, 1]

    words, weights = model.top_words(1, 3)

    assert words.tolist() == np.argsort(-sums, kind="stable")[:3].tolist()
    np.testing.assert_allclose(weights, sums[words])


# Forms of labels


def test_forms_of_targets_agree():
    """Names, dense and sparse indicators give the same predictions, each in its own form."""
    X, Y = topics(40)
    names = [[LABELS[label] for label in np.flatnonzero(y)] for y in Y]

    by_name = BoosTexter(20).fit(X, names)
    dense = BoosTexter(20).fit(sparse.csr_matrix(X), Y.astype(np.int32))
    by_csr = BoosTexter(20).fit(X.tolist(), sparse.csr_matrix(Y))

    assert by_name.classes_.tolist() == LABELS
    assert dense.predict(X).dtype == np.int32
    assert sparse.issparse(by_csr.predict(X))
    np.testing.assert_array_equal(by_name.predict(X), dense.predict(X))
    np.testing.assert_array_equal(by_csr.predict(X).toarray(), dense.predict(X))
    assert by_name.decision_function(X).tobytes() == by_csr.decision_function(X).tobytes()
    assert by_name.score(X, names) == dense.score(X, Y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_label_per_document(n_classes):
    """With a 1-D y, predictions are 1-D, as in scikit-learn."""
    X, Y = topics(60)
    y = np.array(["a", "b", "c"])[Y.argmax(axis=1) % n_classes]

    model = BoosTexter(40).fit(X, y)

    decision, proba = model.decision_function(X), model.predict_proba(X)
    assert model.classes_.tolist() == ["a", "b", "c"][:n_classes]
    assert decision.shape == ((60,) if n_classes == 2 else (60, n_classes))
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert model.predict(X).tolist() == model.classes_[proba.argmax(axis=1)].tolist()
    assert model.score(X, y) > 0.6
    assert model.best_with(X, 1).getnnz() == 60
    if n_classes == 2:  # their scores are opposite numbers
        np.testing.assert_allclose(proba[:, 1], 1 / (1 + np.exp(-decision)))


@pytest.mark.compiled
def test_a_grid_search():
    """Parameters can be searched with scikit-learn."""
    X, Y = topics(60)

    search = GridSearchCV(BoosTexter(), {"n_rounds": [5, 20]}, cv=2).fit(X, Y)

    assert search.best_score_ > 0.2
    assert clone(BoosTexter(7)).get_params() == BoosTexter(7).get_params()


# Unusual corpora


@pytest.mark.parametrize("kind", ["one label", "all labels", "no words", "one document"])
def test_unusual_corpora(kind):
    """If there is little to learn, many rounds neither fail nor warn."""
    X, Y = topics(20)
    if kind == "one label":
        Y = np.ones((20, 1), dtype=int)
    if kind == "all labels":
        Y = np.ones_like(Y)
    if kind == "no words":
        X = np.zeros_like(X)
    if kind == "one document":
        X, Y = X[:1], Y[:1]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BoosTexter(700).fit(X, Y)
        answers, proba = model.predict(X), model.predict_proba(X)

    assert answers.any(axis=1).all()
    assert ((proba >= 0) & (proba <= 1)).all()
    assert np.isfinite(model.decision_function(X)[:, Y.any(axis=0)]).all()
    assert ((model.z_ > 0) & (model.z_ <= 1 + 1e-12)).all()
    if kind == "no words":
        assert model.rules_ == []
        assert (answers == answers[0]).all()
    else:
        assert model.n_iter_ == 700
        assert (answers == Y).all()


def test_words_in_every_document():
    """Their rules reflect label frequencies, and are useless for a label of half the documents."""
    X = np.ones((4, 2))

    model = BoosTexter(10).fit(X, [[1, 1, 0], [1, 1, 0], [1, 0, 1], [0, 0, 1]])
    useless = BoosTexter(10).fit(X, [[1, 0], [1, 0], [0, 1], [0, 1]])

    assert model.rules_[0].word == 0
    assert model.rules_[0].outputs[0] == pytest.approx(np.log(4 / 2) / 2)  # in twelfths
    np.testing.assert_allclose(model.rules_[0].outputs[1:], 0, atol=1e-12)
    assert model.predict(X[:1])[0, 0] == 1
    assert useless.rules_ == []
    assert useless.predict(X[:1]).tolist() == [[1, 0]]


def test_labels_without_documents_are_never_predicted():
    """They have score -inf, and are never predicted."""
    X, Y = topics(40)
    wide = np.zeros((len(Y), 6), dtype=int)
    wide[:, [0, 2, 3, 5]] = Y
    plain = BoosTexter(20).fit(X, Y)

    model = BoosTexter(20).fit(X, wide)

    assert (model.predict(X)[:, [0, 2, 3, 5]] == plain.predict(X)).all()
    assert not model.predict(X)[:, [1, 4]].any()
    assert np.isneginf(model.decision_function(X)[:, [1, 4]]).all()
    assert (model.predict_proba(X)[:, [1, 4]] == 0).all()
    assert (model.rules_[0].outputs[[1, 4]] == 0).all()
    assert model.z_.tobytes() == plain.z_.tobytes()
    assert model.top_words(4, 3)[0].size == 0


def test_stored_zeros_are_not_words():
    """A document with nothing but stored zeros has no words."""
    X, Y = topics(40)
    stored = sparse.csr_matrix(np.vstack([X, X[:2]]).astype(float))
    stored.data[stored.indptr[-3] :] = 0.0
    Y = np.vstack([Y, Y[:2]])

    model = BoosTexter(20).fit(stored, Y)

    plain = BoosTexter(20).fit(stored.toarray(), Y)
    assert model.z_.tobytes() == plain.z_.tobytes()
    assert model.predict(stored[-1]).tolist() == plain.predict(stored[-1].toarray()).tolist()


def test_input_is_not_changed():
    """The input may be read-only."""
    X, Y = topics(40)
    matrix = sparse.csr_matrix(X.astype(float))
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.setflags(write=False)

    model = BoosTexter(20).fit(matrix, sparse.csr_matrix(Y))

    assert (model.predict(matrix) != model.predict(X)).nnz == 0
    assert (matrix.toarray() == X).all()


@pytest.mark.parametrize(
    ("wrong", "error", "sentence"),
    [
        ({"n_rounds": 0}, ValueError, "n_rounds == 0, must be >= 1"),
        ({"n_rounds": 1.5}, TypeError, "n_rounds must be an instance of int"),
        ({"best_if_none": "x"}, TypeError, "best_if_none must be an instance of bool"),
        ({"smoothing": 0}, ValueError, "smoothing == 0, must be > 0"),
        ({"smoothing": 5e-324}, ValueError, "smoothing == 5e-324, must be >= 1e-300"),
        ({"smoothing": "x"}, ValueError, "smoothing == 'x', must be a number or None"),
        ({"smoothing": np.inf}, ValueError, "smoothing == inf, must be finite"),
    ],
)
def test_wrong_parameters(wrong, error, sentence):
    """Each is rejected with a clear message."""
    with pytest.raises(error, match=sentence):
        BoosTexter(**wrong).fit([[1, 2], [2, 1]], [[1, 0], [0, 1]])


def test_wrong_documents():
    """Unlabelled documents, and matrices of other shapes, are rejected."""
    X, Y = topics(20)

    with pytest.raises(ValueError, match="Y has no labelled document"):
        BoosTexter().fit(X, np.zeros_like(Y))
    with pytest.raises(ValueError, match="X has 5 documents and Y has 20"):
        BoosTexter().fit(X[:5], Y)
    with pytest.raises(ValueError, match="Negative values"):
        BoosTexter().fit(-X, Y)
    with pytest.raises(NotFittedError):
        BoosTexter().predict(X)
    with pytest.raises(NotFittedError):
        _ = BoosTexter().rules_
    with pytest.raises(ValueError, match="X has 3 features, but BoosTexter is expecting 20"):
        BoosTexter(5).fit(X, Y).predict(X[:, :3])


# Arrays, copies and files


def test_arrays_round_trip():
    """A model from arrays has the same rules, and gives the same bits."""
    X, Y = topics(60)
    wide = np.hstack([Y, np.zeros((60, 1), dtype=int)])
    model = BoosTexter(30).fit(X, wide)
    arrays = {name: array.copy() for name, array in model.to_arrays().items()}

    again = BoosTexter(30).from_arrays(
        arrays, labels=model.classes_.tolist(), n_words=X.shape[1], tuned=model.tuned_
    )

    np.testing.assert_array_equal(
        again.predict_indicator(X).toarray(), model.predict_indicator(X).toarray()
    )
    for method in ("decision_function", "predict_proba"):
        assert getattr(again, method)(X).tobytes() == getattr(model, method)(X).tobytes()
    assert again.rules_[7].outputs.tobytes() == model.rules_[7].outputs.tobytes()
    assert again.fallback.tolist() == model.fallback.tolist()


@pytest.mark.parametrize(
    "broken",
    [
        {"words": np.full(9, 20)},
        {"words": np.full(9, -1)},
        {"outputs": np.zeros((9, 3))},
        {"outputs": np.full((9, 4), np.nan)},
        {"z": np.zeros(3)},
        {"fallback": np.array([9])},
        {"label_docs": np.zeros(3, int)},
    ],
)
def test_broken_arrays_are_rejected(broken):
    """They are rejected before they are used."""
    X, Y = topics(20)
    arrays = BoosTexter(9).fit(X, Y).to_arrays()

    with pytest.raises(ValueError, match="must"):
        BoosTexter(9).from_arrays({**arrays, **broken}, labels=list("abcd"), n_words=20)


def test_pickle():
    """An unpickled model gives the same probabilities."""
    X, Y = topics(40)
    model = BoosTexter(20).fit(X, Y)

    again = pickle.loads(pickle.dumps(model))  # noqa: S301

    assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()


TEXTS = [
    "The striker scored a goal in the final match.",
    "The rover landed on Mars after a long flight.",
    "A goal on Mars: the rover found water.",
    "The match ended without a goal.",
]
TOPICS = [["sport"], ["space"], ["space"], ["sport"]]


def test_a_labeler_by_name(tmp_path):
    """It learns, predicts and explains, also after saving and loading."""
    labeler = Labeler("boostexter").fit(TEXTS, TOPICS)
    labeler.save(tmp_path / "model")

    again = load(tmp_path / "model")

    assert labeler.predict(["A goal in the match"]) == again.predict(["A goal in the match"])
    assert labeler.predict(["A rover on Mars"]) == [["space"]]
    assert again.suggest(TEXTS) == labeler.suggest(TEXTS)
    assert len(again.model_.rules_) == labeler.model_.n_iter_
    reason = again.explain("Another rover, and a rover").labels[0]
    assert reason.label == "space"
    assert [word.term for word in reason.words] == ["rover"]
    assert reason.words[0].evidence == pytest.approx(reason.score)
    again.learn(["A film of a rover on a mission."], [["film"]])
    assert again.forget(TEXTS[:1], TOPICS[:1]).classes_.tolist() == ["film", "space", "sport"]
