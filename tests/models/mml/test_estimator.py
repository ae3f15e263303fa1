"""Maximal margin labeling as an estimator: checks, predictions, unusual input."""

import json
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from polytopic import MML
from polytopic.metrics import samples_f1, subset_accuracy
from polytopic.models.mml import training
from polytopic.models.mml.training import COSTS, MIN_DOCS
from tests.twins import mml as twins
from tests.twins.mml import label_sets, own_sets, stored_problem

KINDS = [
    {},
    {"goal": "exact"},
    {"labels": "neighbours"},
    {"similarity": "cosine"},
    {"labels": "neighbours", "similarity": "cosine"},
]
EXACT = {"rank": None, "tol": 0.01, "max_iter": 1000}


@parametrize_with_checks([MML(), MML(labels="neighbours"), MML(similarity="cosine", goal="exact")])
def test_scikit_learn_checks(estimator, check):
    """It passes scikit-learn's own checks."""
    check(estimator)


def topics(n_docs=120, n_labels=4, seed=0):
    """Return documents whose words mostly depend on their labels."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(5 * n_labels, 0.15), size=n_labels)
    Y = (rng.random((n_docs, n_labels)) < 0.25).astype(int)
    Y[np.arange(n_docs), rng.integers(0, n_labels, n_docs)] = 1
    X = np.array([rng.multinomial(15, theta[y > 0].mean(axis=0)) for y in Y])
    return X.astype(float), Y


def all_scores(model, X, Y, X_new):
    """Return all label sets with documents, and their scores by the dual variables."""
    problem, alpha = stored_problem(model, X, Y)
    sets = label_sets(Y.shape[1])
    return sets, problem.scores(alpha, X_new, sets)


# Predictions


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_sets_are_those_of_brute_force(kind):
    """Best first, and the bound is the score of the next one."""
    X, Y, X_new = twins.corpus(seed=1)
    model = MML(**EXACT, **kind).fit(X, Y)
    sets, scores = all_scores(model, X, Y, X_new)

    ranked = model.predict_sets(X_new, n_best=4)

    ranking = np.argsort(-scores, axis=1, kind="stable")
    expected = np.take_along_axis(scores, ranking, axis=1)
    np.testing.assert_allclose(ranked.scores, expected[:, :4], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(ranked.bound, expected[:, 4], rtol=1e-9, atol=1e-10)
    assert ranked.optimal.all()
    for doc, listed in enumerate(ranked.sets):
        assert [frozenset(labels) for labels in listed] == [sets[k] for k in ranking[doc, :4]]
    assert own_sets(model.predict(X_new)) == [frozenset(listed[0]) for listed in ranked.sets]
    np.testing.assert_allclose(model.lead(X_new), expected[:, 0] - expected[:, 1], atol=1e-9)


def test_more_sets_than_there_are():
    """If all sets are listed, the bound is -inf."""
    X, Y, X_new = twins.corpus(n_labels=2)
    model = MML().fit(X, Y)

    ranked = model.predict_sets(X_new, n_best=5)

    assert [len(listed) for listed in ranked.sets] == [3] * len(X_new)
    assert np.isneginf(ranked.scores[:, 3:]).all()
    assert np.isneginf(ranked.bound).all()


@pytest.mark.parametrize("n_best", [1, 2, 4, 9, 15, 20])
def test_sets_of_documents_without_words(n_best):
    """The most frequent set comes first; all sets score 0, and small ones precede large ones."""
    X, Y, _ = twins.corpus(n_docs=12)
    Y[:4] = [0, 1, 0, 1]
    model = MML().fit(X, Y)
    nothing = np.zeros((1, X.shape[1]))

    ranked = model.predict_sets(nothing, n_best)

    others = [labels for labels in ranked.sets[0] if labels != (1, 3)]
    assert ranked.sets[0] == [(1, 3), *others]
    assert len({*others}) == len(others) == min(n_best, 15) - 1
    assert [len(labels) for labels in others] == sorted(map(len, others))
    assert model.predict(nothing).tolist() == [[0, 1, 0, 1]]
    assert (ranked.scores[0, : len(others) + 1] == 0).all()
    assert ranked.bound[0] == (0 if n_best < 15 else -np.inf)
    few = model.restrict_to(np.array([True, False, True, True]))
    assert few.predict_sets(nothing, n_best).sets[0][0] == tuple(few.fallback.tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_the_decision_function_is_best_with_less_best_without(kind):
    """Margins are those of brute force; the predicted set has the labels above zero."""
    X, Y, X_new = twins.corpus(seed=2)
    model = MML(**EXACT, **kind).fit(X, Y)
    sets, scores = all_scores(model, X, Y, X_new)

    margin = model.decision_function(X_new)

    for label in range(Y.shape[1]):
        has = np.array([label in labels for labels in sets])
        best = scores[:, has].max(axis=1) - scores[:, ~has].max(axis=1)
        np.testing.assert_allclose(margin[:, label], best, rtol=1e-9, atol=1e-10)
        best_with = own_sets(model.best_with(X_new, label).toarray())
        assert best_with == [sets[k] for k in np.where(has, scores, -np.inf).argmax(axis=1)]
    assert ((margin > 0) == model.predict(X_new)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_contributions_add_up_to_the_score(kind):
    """Contributions add up for any set, by words and by labels."""
    X, Y, X_new = twins.corpus(seed=3)
    model = MML(**EXACT, **kind).fit(X, Y)
    sets, scores = all_scores(model, X, Y, X_new)

    for doc, k in [(0, 0), (1, 5), (2, len(sets) - 1), (3, int(scores[3].argmax()))]:
        y = np.array([[label in sets[k] for label in range(Y.shape[1])]]).astype(int)
        x = sparse.csr_matrix(X_new[[doc]])
        breakdown = model.explain_words(x, y)
        parts = x.data[:, None] * breakdown.by_label

        assert parts.shape == (x.nnz, len(sets[k]))
        assert x.data @ breakdown.word_scores + breakdown.mixing == pytest.approx(
            scores[doc, k], rel=1e-9
        )
        assert parts.sum() == pytest.approx(scores[doc, k], rel=1e-9)
        np.testing.assert_allclose(parts.sum(axis=1), x.data * breakdown.word_scores, atol=1e-12)


def test_word_labels_share_each_word():
    """The shares of a word are at least 0, and sum to one over the labels of its document."""
    X, Y = topics(30)
    model = MML().fit(X, Y)

    word_labels = model.word_labels(X)

    predicted = model.predict(X)
    assert predicted[word_labels.doc, word_labels.label].all()
    assert word_labels.share.min() >= 0
    total = np.zeros(X.shape)
    np.add.at(total, (word_labels.doc, word_labels.word), word_labels.share)
    np.testing.assert_allclose(total, X > 0, atol=1e-9)


def test_top_words_of_a_label():
    """The top words of a label come with its scores."""
    X, Y, _ = twins.corpus()
    model = MML(**EXACT).fit(X, Y)
    sets, scores = all_scores(model, X, Y, np.eye(X.shape[1]))

    words, weights = model.top_words(1, 3)

    alone = scores[:, sets.index(frozenset([1]))]
    assert words.tolist() == np.argsort(-alone)[:3].tolist()
    np.testing.assert_allclose(weights, alone[words], rtol=1e-9)


# The empty set


@pytest.mark.parametrize("kind", KINDS)
def test_the_empty_set_by_default(kind):
    """By default, the empty set is a neighbour with cosine, and is not used with Dice."""
    X, Y, X_new = twins.corpus(seed=5)
    empty = "neighbour" if kind.get("similarity") == "cosine" else "out"

    plain, named = MML(**kind).fit(X, Y), MML(empty=empty, **kind).fit(X, Y)

    assert plain._weights.tobytes() == named._weights.tobytes()
    np.testing.assert_array_equal(plain.predict(X_new), named.predict(X_new))


@pytest.mark.parametrize("empty", ["neighbour", "answer", "both", "out"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_empty_set(kind, empty):
    """As a neighbour it is learned from, and as an answer it is predicted, as by brute force."""
    X, Y, _ = twins.corpus(n_docs=8, n_words=6, seed=6)
    X_new = np.random.default_rng(0).normal(size=(200, 6))
    model = MML(0.1, empty=empty, **EXACT, **kind).fit(X, Y)
    problem, alpha = stored_problem(model, X, Y)
    sets = label_sets(Y.shape[1], empty=empty in ("answer", "both"))
    scores = problem.scores(alpha, X_new, sets)
    ranking = np.argsort(-scores, axis=1, kind="stable")

    ranked = model.predict_sets(X_new, n_best=16)

    if "labels" in kind:  # a working set may lack it
        assert any(not other for _, other in problem.pairs) == (empty in ("neighbour", "both"))
    for doc, listed in enumerate(ranked.sets):
        assert [frozenset(labels) for labels in listed] == [sets[k] for k in ranking[doc]]
    np.testing.assert_allclose(
        ranked.scores[:, : len(sets)], np.take_along_axis(scores, ranking, axis=1), atol=1e-9
    )
    assert own_sets(model.predict(X_new)) == [sets[k] for k in ranking[:, 0]]
    margin = model.decision_function(X_new)
    for label in range(Y.shape[1]):
        has = np.array([label in labels for labels in sets])
        best = scores[:, has].max(axis=1) - scores[:, ~has].max(axis=1)
        np.testing.assert_allclose(margin[:, label], best, atol=1e-9)
    if empty == "answer":  # if it is learned from, it is rarely the best
        assert not model.predict(X_new).any(axis=1).all()
    assert model.predict(np.zeros((1, 6))).any()


def test_the_empty_set_with_one_label_per_document():
    """With a 1-D y, it is never predicted."""
    X, Y, _ = twins.corpus()

    model = MML(empty="answer").fit(X, Y.argmax(axis=1))

    assert set(model.predict(-X)) <= {0, 1, 2, 3}


def test_the_empty_set_from_arrays():
    """A model from arrays predicts it as before; one from an older file has no such parameter."""
    X, Y, _ = twins.corpus(n_docs=8, seed=6)
    X_new = np.random.default_rng(0).normal(size=(200, 6))
    model = MML(0.1, empty="answer", **EXACT).fit(X, Y)

    again = MML(0.1, empty="answer", **EXACT).from_arrays(
        model.to_arrays(), labels=model.classes_.tolist(), n_words=X.shape[1]
    )

    assert (model.predict(X_new).sum(axis=1) == 0).any()
    np.testing.assert_array_equal(again.predict(X_new), model.predict(X_new))
    assert again.predict_sets(X_new).sets == model.predict_sets(X_new).sets


# Forms of labels


@pytest.mark.parametrize("kind", KINDS)
def test_forms_of_targets_agree(kind):
    """Names, dense and sparse indicators give the same predictions, each in its own form."""
    X, Y = topics(40)
    classes = ["art", "film", "science", "sport"]
    names = [[classes[label] for label in np.flatnonzero(y)] for y in Y]

    by_name = MML(**kind).fit(X, names)
    dense = MML(**kind).fit(sparse.csr_matrix(X), Y.astype(np.int32))
    by_csr = MML(**kind).fit(X.tolist(), sparse.csr_matrix(Y))

    assert by_name.classes_.tolist() == classes
    assert dense.predict(X).dtype == np.int32
    assert sparse.issparse(by_csr.predict(X))
    np.testing.assert_array_equal(by_name.predict(X), dense.predict(X))
    np.testing.assert_array_equal(by_csr.predict(X).toarray(), dense.predict(X))
    assert by_name.decision_function(X).tobytes() == by_csr.decision_function(X).tobytes()
    assert by_name.predict_sets(X[:1], n_best=1).sets[0][0] <= tuple(classes)
    assert by_name.score(X, names) == dense.score(X, Y)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_label_per_document(kind, n_classes):
    """With a 1-D y, predictions are 1-D, as in scikit-learn."""
    X, Y = topics(60)
    y = np.array(["a", "b", "c"])[Y.argmax(axis=1) % n_classes]

    model = MML(**kind).fit(X, y)

    decision, proba = model.decision_function(X), model.predict_proba(X)
    assert model.classes_.tolist() == ["a", "b", "c"][:n_classes]
    assert decision.shape == ((60,) if n_classes == 2 else (60, n_classes))
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert model.predict(X).tolist() == model.classes_[proba.argmax(axis=1)].tolist()
    assert model.score(X, y) > 0.6
    with pytest.raises(ValueError, match="y was 1-D"):
        model.predict_sets(X)


@pytest.mark.compiled
def test_a_grid_search():
    """Parameters can be searched with scikit-learn."""
    X, Y = topics(60)

    search = GridSearchCV(MML(), {"C": [0.1, 1.0], "goal": ["f", "exact"]}, cv=2).fit(X, Y)

    assert search.best_score_ > 0.2
    assert clone(MML(0.3, rank=2)).get_params() == MML(0.3, rank=2).get_params()


# Unusual corpora


@pytest.mark.parametrize("kind", KINDS)
def test_no_prediction_is_empty(kind):
    """Even unusual documents get labels; those without words get the most frequent set."""
    X, Y, _ = twins.corpus()
    Y = np.vstack([Y, Y[:1], Y[:1], [[1, 0, 0, 1]] * 4])
    X = np.vstack([X, X[:2], np.zeros((4, X.shape[1]))])
    model = MML(**kind).fit(X, Y)
    strange = np.vstack([-X, np.eye(X.shape[1]), np.zeros((1, X.shape[1]))])

    answers = model.predict(strange)

    assert answers.any(axis=1).all()
    assert answers[-1].tolist() == [1, 0, 0, 1]
    assert model.fallback.tolist() == [0, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_documents_without_labels_or_words_change_no_weight(kind):
    """They change no bit of the weights, but their labels count for the fallback."""
    X, Y, X_new = twins.corpus()
    none = np.zeros((3, Y.shape[1]), dtype=int)
    plain = MML(**kind).fit(X, Y)

    more = MML(**kind).fit(np.vstack([X_new[:3], X, 0 * X_new[:2]]), np.vstack([none, Y, Y[:2]]))

    assert more._weights.tobytes() == plain._weights.tobytes()
    assert more.label_docs_.tolist() == (Y.sum(axis=0) + Y[:2].sum(axis=0)).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_documents_with_all_labels(kind):
    """No label set has more labels, so such documents have fewer neighbours."""
    X, Y, _ = twins.corpus()
    Y[:4] = 1

    model = MML(3.0, **kind).fit(X, Y)
    whole = MML(**kind).fit(X, np.ones_like(Y))

    assert np.isfinite(model._weights).all()
    assert np.isfinite(whole._weights).all()
    assert model.predict(X[:4]).sum(axis=1).min() >= 1
    assert whole.predict(X).any(axis=1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_single_label(kind):
    """With a single label, there is only one prediction."""
    X, _, X_new = twins.corpus()

    model = MML(calibrate=True, **kind).fit(X, np.ones((len(X), 1), dtype=int))

    assert (model.predict(X_new) == 1).all()
    assert np.isposinf(model.decision_function(X_new)).all()
    assert model.predict_sets(X_new).sets[0] == [(0,)]
    assert np.isposinf(model.lead(X_new)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_with_one_document(kind):
    """A label with one document is predicted for that document's unique word."""
    X, Y, _ = twins.corpus(n_docs=12)
    X = np.hstack([X, np.zeros((12, 1))])
    X[5, -1] = 5.0
    Y = np.hstack([Y, np.zeros((12, 1), dtype=int)])
    Y[5] = [0, 0, 0, 0, 1]

    model = MML(3.0, **EXACT, **kind).fit(X, Y)

    assert model.predict(X[[5]]).tolist() == [[0, 0, 0, 0, 1]]


@pytest.mark.parametrize("rank", [4, None])
@pytest.mark.parametrize("kind", KINDS)
def test_label_sets_of_size_twenty(kind, rank):
    """Large sets, of 25 labels, are learned and predicted."""
    rng = np.random.default_rng(0)
    Y = np.zeros((4, 25), dtype=int)
    for doc in range(4):
        Y[doc, rng.choice(25, 20 if doc % 2 else 1, replace=False)] = 1
    X = np.hstack([Y * 0.3, np.eye(4)])

    model = MML(1.0, rank=rank, **kind).fit(X, Y)

    answers = model.predict(X)
    f = [twins.dice(a, b) for a, b in zip(own_sets(Y), own_sets(answers), strict=True)]
    assert np.isfinite(model._weights).all()
    assert np.mean(f) > 0.9
    assert answers[1].sum() >= 15


@pytest.mark.parametrize("kind", KINDS)
def test_labels_without_documents_are_never_predicted(kind):
    """They have score -inf, and are never predicted."""
    X, Y, X_new = twins.corpus()
    wide = np.zeros((len(Y), 6), dtype=int)
    wide[:, [0, 2, 3, 5]] = Y
    plain = MML(**kind).fit(X, Y)

    model = MML(**kind).fit(X, wide)

    assert (model.predict(X_new)[:, [0, 2, 3, 5]] == plain.predict(X_new)).all()
    assert not model.predict(X_new)[:, [1, 4]].any()
    assert np.isneginf(model.decision_function(X_new)[:, [1, 4]]).all()
    assert (model.predict_proba(X_new)[:, [1, 4]] == 0).all()
    listed = model.predict_sets(X_new, 20).sets[0]
    assert {label for labels in listed for label in labels} == {0, 2, 3, 5}
    with pytest.raises(ValueError, match="label '4' has no documents"):
        model.best_with(X_new, 4)


def test_documents_without_any_word():
    """Without any word, the most frequent label set is predicted."""
    model = MML(calibrate=True).fit(np.zeros((3, 2)), [[1, 0], [0, 1], [0, 1]])

    assert model.predict([[0, 0], [0, 0]]).tolist() == [[0, 1], [0, 1]]
    assert model.predict([[1, 2]]).sum() == 1
    assert model.objective_ == 0.0


def test_stored_zeros_are_not_words():
    """A document with nothing but stored zeros has no words."""
    X, Y, _ = twins.corpus()
    stored = sparse.csr_matrix(np.vstack([X, X[:2]]))
    stored.data[stored.indptr[-3] :] = 0.0
    Y = np.vstack([Y, Y[:2]])

    model = MML().fit(stored, Y)

    plain = MML().fit(stored.toarray(), Y)
    assert model.objectives_ == plain.objectives_
    assert model.predict(stored[-1]).tolist() == plain.predict(stored[-1].toarray()).tolist()


def test_input_is_not_changed():
    """Words may be in any order, duplicated, and in read-only arrays."""
    X, Y, _ = twins.corpus()
    coo = sparse.coo_array(np.hstack([X, X[:, ::-1]]))
    order = np.lexsort((np.random.default_rng(0).random(coo.nnz), coo.row))
    indices = (coo.col[order] % X.shape[1]).astype(np.int32)
    matrix = sparse.csr_matrix((coo.data[order], indices, coo.tocsr().indptr), shape=X.shape)
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.setflags(write=False)

    model = MML().fit(matrix, sparse.csr_matrix(Y))

    assert (model.predict(matrix) != model.predict(matrix.toarray())).nnz == 0
    assert matrix.indices.tolist() == indices.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_negative_weights_of_words(kind):
    """Words may have negative weights, as after centring."""
    X, Y, X_new = twins.corpus()

    model = MML(**kind).fit(X - X.mean(axis=0), Y)

    assert np.isfinite(model.decision_function(X_new - X.mean(axis=0))).all()


@pytest.mark.parametrize(
    ("wrong", "error", "sentence"),
    [
        ({"C": 0}, ValueError, "C == 0, must be > 0"),
        ({"C": -1.0}, ValueError, r"C == -1.0, must be > 0"),
        ({"C": "x"}, ValueError, "C == 'x', must be a number or 'auto'"),
        ({"C": None}, TypeError, "C == None, must be a number or 'auto'"),
        ({"C": np.nan}, ValueError, "C == nan, must be"),
        ({"C": np.inf}, ValueError, "C == inf, must be finite"),
        (
            {"similarity": "jaccard"},
            ValueError,
            "similarity == 'jaccard', must be one of dice, cos",
        ),
        ({"labels": "some"}, ValueError, "labels == 'some', must be one of all, neighbours"),
        ({"goal": "g"}, ValueError, "goal == 'g', must be one of f, exact"),
        ({"goal": None}, ValueError, "goal == None, must be one of f, exact"),
        ({"rank": 0}, ValueError, "rank == 0, must be >= 1"),
        ({"rank": 1.5}, TypeError, "rank must be an instance of int"),
        ({"tol": 0}, ValueError, "tol == 0, must be > 0"),
        ({"tol": np.nan}, ValueError, "tol == nan, must be"),
        ({"max_iter": 0}, ValueError, "max_iter == 0, must be >= 1"),
        ({"random_state": "x"}, ValueError, "'x' cannot be used to seed"),
    ],
)
def test_wrong_parameters(wrong, error, sentence):
    """Each is rejected with a clear message."""
    with pytest.raises(error, match=sentence):
        MML(**wrong).fit([[1, 2], [2, 1]], [[1, 0], [0, 1]])


def test_wrong_documents():
    """Invalid documents, and those with other words, are rejected."""
    X, Y, _ = twins.corpus()

    with pytest.raises(ValueError, match="Y has no labelled document"):
        MML().fit(X, np.zeros_like(Y))
    with pytest.raises(ValueError, match="X has 5 documents and Y has 6"):
        MML().fit(X[:5], Y)
    with pytest.raises(ValueError, match="NaN"):
        MML().fit(np.full_like(X, np.nan), Y)
    with pytest.raises(NotFittedError):
        MML().predict(X)
    with pytest.raises(ValueError, match="X has 3 features, but MML is expecting 6"):
        MML().fit(X, Y).predict(X[:, :3])
    with pytest.raises(ValueError, match="n_best == 0, must be >= 1"):
        MML().fit(X, Y).predict_sets(X, n_best=0)
    with pytest.raises(ValueError, match="n_best == 65537, must be <= 65536"):
        MML().fit(X, Y).predict_sets(X, n_best=65_537)


def test_huge_and_tiny_weights_of_words():
    """Lengths of documents neither overflow nor underflow."""
    X, Y, X_new = twins.corpus()
    plain = MML(rank=None, tol=1e-6, max_iter=5000).fit(X, Y)

    for factor in (1e150, 1e-150):
        model = MML(rank=None, tol=1e-6, max_iter=5000).fit(X * factor, Y)

        np.testing.assert_allclose(
            model.decision_function(X_new * factor), plain.decision_function(X_new), atol=0.01
        )


# Probabilities and tuned values


@pytest.fixture(scope="module")
def calibrated():
    """Return a calibrated model, and more documents, the last without words."""
    X, Y = topics(240)
    X_new = np.vstack([X[180:], np.zeros((1, X.shape[1]))])
    return MML(calibrate=True).fit(X[:180], Y[:180]), X_new


def test_probabilities_rise_with_margins(calibrated):
    """Probabilities of sets rise with the lead and those of labels with the margin, from 0 to 1."""
    model, X = calibrated
    known = X.any(axis=1)

    sets, labels = model.set_probability(X), model.predict_proba(X)

    for values, keys in [
        (sets[known], model.lead(X[known])),
        (labels[known].ravel(), model.decision_function(X[known]).ravel()),
    ]:
        assert values.min() >= 0
        assert values.max() <= 1
        assert (np.diff(values[np.argsort(keys)]) >= -1e-12).all()
        assert np.ptp(values) > 0.2


def test_probabilities_without_words_are_shares_of_documents(calibrated):
    """Without words, probabilities are the frequencies of labels and sets."""
    model, X = calibrated

    sets, labels = model.set_probability(X[-1:]), model.predict_proba(X[-1:])

    np.testing.assert_allclose(labels[0], model.label_docs_ / 180)
    assert 0 < sets[0] < 0.5


def test_assess(calibrated):
    """`assess` gives the sets, margins and probabilities of the single methods."""
    model, X = calibrated

    sets, margin, proba = model.assess(X)

    np.testing.assert_array_equal(sets.toarray(), model.predict(X))
    np.testing.assert_array_equal(margin, model.decision_function(X))
    np.testing.assert_array_equal(proba, model.predict_proba(X))


@pytest.mark.compiled
def test_calibrated_probabilities_are_about_right():
    """On similar documents, the mean probability is the share of right predictions."""
    X, Y = topics(1200, seed=1)
    model = MML(calibrate=True).fit(X[:400], Y[:400])

    right = (model.predict(X[400:]) == Y[400:]).all(axis=1)

    assert model.set_probability(X[400:]).mean() == pytest.approx(right.mean(), abs=0.08)
    np.testing.assert_allclose(
        model.predict_proba(X[400:]).mean(axis=0), Y[400:].mean(axis=0), atol=0.1
    )


@pytest.mark.compiled
@pytest.mark.parametrize("goal", ["f", "exact"])
def test_tuned_values_are_reused(goal):
    """Tuned values are plain JSON; with them, nothing is tuned again, and results are the same."""
    X, Y = topics(60)
    model = MML("auto", goal=goal, calibrate=True).fit(X, Y)
    assert model.needs_documents
    tuned = json.loads(json.dumps(model.tuned_))

    again = MML("auto", goal=goal, calibrate=True).fit(X, Y, tuned=tuned)

    assert tuned["C"] in COSTS
    assert set(tuned) == {"C", "set_curve", "label_curve"}
    assert again.tuned_ == model.tuned_
    assert again._weights.tobytes() == model._weights.tobytes()
    assert again.set_probability(X).tobytes() == model.set_probability(X).tobytes()
    cost = MML(tuned["C"], goal=goal).fit(X, Y)
    assert cost._weights.tobytes() == model._weights.tobytes()
    assert not cost.needs_documents


@pytest.mark.compiled
def test_missing_tuned_values():
    """If C must be tuned, and an earlier fit has no value, it is tuned now."""
    X, Y = topics(60)

    model = MML("auto", calibrate=True).fit(X, Y, tuned={})

    assert model.tuned_ == MML("auto", calibrate=True).fit(X, Y).tuned_
    assert MML(calibrate=True).fit(X, Y, tuned={}).tuned_ == {}


def test_too_few_documents_to_tune_on():
    """C is the default, and there are no curves; `set_probability` says how to get them."""
    X, Y = topics(MIN_DOCS - 1)

    model = MML("auto", calibrate=True).fit(X, Y)

    assert model.tuned_ == {"C": 1.0}
    assert 0 <= model.predict_proba(X).min() <= model.predict_proba(X).max() <= 1
    with pytest.raises(ValueError, match="has no probabilities of label sets"):
        model.set_probability(X)


def test_the_only_set_is_certain(calibrated):
    """With one allowed label there is one label set, with words and without."""
    model, X = calibrated
    only = model.restrict_to(np.array([False, True, False, False]))

    assert np.isposinf(only.lead(X)).all()
    assert (only.set_probability(X) == max(model.tuned_["set_curve"][1])).all()


def test_no_probability_of_sets_without_calibration():
    """The error says how to get one."""
    X, Y, _ = twins.corpus()

    with pytest.raises(ValueError, match="fit it with calibrate=True"):
        MML().fit(X, Y).set_probability(X)


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["one label", "one document", "one fold", "always right"])
def test_calibration_of_unusual_corpora(kind):
    """Even if held-out documents teach nothing, there are valid probabilities."""
    X, Y = np.eye(40) + 0.5, np.zeros((40, 3), dtype=int)
    Y[:, 0] = 1
    if kind == "one label":
        Y = Y[:, :1]
    if kind == "one document":
        Y[7, 1:] = 1
    if kind == "one fold":
        Y[::3, 1] = 1
    if kind == "always right":
        Y[20:] = [0, 1, 0]
        X = np.hstack([Y, np.ones((40, 1))])

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = MML("auto", calibrate=True).fit(X, Y)
        sets, labels = model.set_probability(X), model.predict_proba(X)

    assert ((sets >= 0) & (sets <= 1)).all()
    assert ((labels >= 0) & (labels <= 1)).all()


# Arrays, copies and fewer labels


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_round_trip(kind):
    """A model from arrays gives the same results, bit for bit."""
    X, Y = topics(60)
    wide = np.hstack([Y, np.zeros((60, 1), dtype=int)])
    model = MML(calibrate=True, **kind).fit(X, wide)
    arrays = {name: array.copy() for name, array in model.to_arrays().items()}

    again = MML(calibrate=True, **kind).from_arrays(
        arrays, labels=model.classes_.tolist(), n_words=X.shape[1], tuned=model.tuned_
    )

    np.testing.assert_array_equal(
        again.predict_indicator(X).toarray(), model.predict_indicator(X).toarray()
    )
    for method in ("decision_function", "predict_proba", "set_probability", "lead"):
        assert getattr(again, method)(X).tobytes() == getattr(model, method)(X).tobytes()
    assert again.predict_sets(X).sets == model.predict_sets(X).sets
    assert again.fallback.tolist() == model.fallback.tolist()


@pytest.mark.parametrize(
    "broken",
    [
        {"weights": np.zeros((6, 4, 3), np.float32)},
        {"fallback": np.array([9])},
        {"fallback": np.array([], dtype=int)},
        {"columns": np.array([0, 1, 2, -1])},
        {"label_docs": np.zeros(3, int)},
        {"docs": np.zeros(3, int)},
        {"vectors": np.full((5, 4), np.nan)},
    ],
)
def test_broken_arrays_are_rejected(broken):
    """They are rejected before they are used."""
    X, Y, _ = twins.corpus()
    arrays = MML().fit(X, Y).to_arrays()

    with pytest.raises(ValueError, match="must"):
        MML().from_arrays({**arrays, **broken}, labels=list("abcd"), n_words=6)


def test_pickle():
    """An unpickled model gives the same probabilities."""
    X, Y = topics(40)
    model = MML(calibrate=True).fit(X, Y)

    again = pickle.loads(pickle.dumps(model))  # noqa: S301

    assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_fewer_labels(kind):
    """Predictions are the best of the allowed label sets, as by brute force."""
    X, Y, X_new = twins.corpus(seed=4)
    X_new = np.vstack([X_new, np.zeros((1, X.shape[1]))])
    model = MML(**EXACT, **kind).fit(X, Y)
    sets, scores = all_scores(model, X, Y, X_new)
    allowed = np.array([True, False, True, True])
    inside = np.array([1 not in labels for labels in sets])
    best = np.where(inside, scores, -np.inf)

    few = model.restrict_to(allowed)

    answers = few.predict(X_new)
    assert not answers[:, 1].any()
    assert answers.any(axis=1).all()
    assert own_sets(answers[:-1]) == [sets[k] for k in best[:-1].argmax(axis=1)]
    ranked = few.predict_sets(X_new[:-1], n_best=3)
    np.testing.assert_allclose(ranked.scores, -np.sort(-best[:-1])[:, :3], atol=1e-9)
    assert all(1 not in labels for listed in ranked.sets for labels in listed)
    assert np.isneginf(few.decision_function(X_new)[:, 1]).all()
    assert (few.predict_proba(X_new)[:, 1] == 0).all()
    has = np.array([2 in labels for labels in sets])
    margin = best[:, has].max(axis=1) - best[:, ~has].max(axis=1)
    np.testing.assert_allclose(few.decision_function(X_new)[:, 2], margin, atol=1e-9)
    assert (model.restrict_to(np.ones(4, bool)).predict(X_new) == model.predict(X_new)).all()
    with pytest.raises(ValueError, match="no allowed label has a document"):
        model.restrict_to(np.zeros(4, bool))


def test_fewer_labels_of_a_calibrated_model(calibrated):
    """A label that is not allowed has probability 0, also without words."""
    model, X = calibrated

    proba = model.restrict_to(np.array([True, False, True, True])).predict_proba(X)

    assert (proba[:, 1] == 0).all()
    assert proba[:, [0, 2, 3]].min() >= 0


@pytest.mark.compiled
@pytest.mark.parametrize("kind", KINDS)
def test_threads_do_not_matter(kind, monkeypatch):
    """One thread or two, small blocks: the same bits."""
    monkeypatch.setattr("polytopic.kernels.blocks.block_borders.__defaults__", (64, 1))
    X, Y = topics(60)
    answers = []

    for threads in ("1", "2"):
        monkeypatch.setenv("POLYTOPIC_NUM_THREADS", threads)
        model = MML(calibrate=True, **kind).fit(X, Y)
        answers.append(
            [
                model._weights,
                model.predict(X),
                model.decision_function(X),
                model.predict_proba(X),
                model.predict_sets(X).scores,
                model.best_with(X, 1).toarray(),
            ]
        )

    for one, two in zip(*answers, strict=True):
        assert one.tobytes() == two.tobytes()


@pytest.mark.compiled
@pytest.mark.parametrize("kind", KINDS)
def test_a_low_rank_is_nearly_exact(kind):
    """Four dimensions and single precision change few predictions."""
    X, Y = topics(200, n_labels=6, seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        exact = MML(rank=None, tol=0.01, **kind).fit(X, Y)
        model = MML(tol=0.01, **kind).fit(X, Y)

    assert model.objective_ == pytest.approx(exact.objective_, rel=0.02)
    assert (model.predict(X) == exact.predict(X)).all(axis=1).mean() > 0.95


@pytest.mark.parametrize("many", [60, 10**6])
@pytest.mark.parametrize("goal", ["f", "exact"])
def test_c_is_the_best_on_held_out_documents(monkeypatch, goal, many):
    """There is one fold with many documents, and three with few; the fits also calibrate."""
    X, Y = topics(150, seed=3)
    monkeypatch.setattr(training, "MANY_DOCS", many)
    model = MML(C="auto", goal=goal, calibrate=True).fit(X, Y)

    order, values = np.random.RandomState(0).permutation(len(X)), {}
    measure = subset_accuracy if goal == "exact" else samples_f1
    leads = {}
    for C in COSTS:
        folds = []
        for fold in range(1 if many == 60 else 3):
            out = order[np.arange(order.size) % 3 == fold]
            rest = order[np.arange(order.size) % 3 != fold]
            fitted = MML(C=C, goal=goal).fit(X[rest], Y[rest])
            folds.append(measure(Y[out], fitted.predict(X[out])))
            leads.setdefault(C, []).append(fitted.lead(X[out]))
        values[C] = np.mean(folds)
    best = max(sorted(values), key=values.__getitem__)

    assert model.tuned_["C"] == best
    assert model.tuned_["set_curve"][0][-1] == pytest.approx(np.concatenate(leads[best]).max())
