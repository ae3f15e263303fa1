"""Laws of models with one score per label: LinearSVM, NearestNeighbours, RandomForest, Stack."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from polytopic import (
    CandidateStack,
    Labeler,
    LinearSVM,
    NearestNeighbours,
    RandomForest,
    ShortlistSVM,
    Stack,
    load,
)

MODELS = [
    LinearSVM(),
    LinearSVM(1.0, balanced=False),
    NearestNeighbours(5),
    RandomForest(8),
    ShortlistSVM(),
    CandidateStack(),
    CandidateStack(2.0, goal="exact"),
    CandidateStack(machines=False),
    Stack(),
    Stack(("svm", "knn"), goal="macro"),
    Stack(("forest",), goal="exact"),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)


CHECKED = [LinearSVM(), NearestNeighbours(5), RandomForest(8), Stack()]


@parametrize_with_checks([*CHECKED, ShortlistSVM(), CandidateStack()])
def test_scikit_learn_checks(estimator, check):
    """They pass scikit-learn's own checks."""
    check(estimator)


def topics(n_docs=150, n_labels=4, n_words=20, seed=0):
    """Return documents whose words depend on their labels; the last label has no documents."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(n_words, 0.15), size=n_labels)
    Y = (rng.random((n_docs, n_labels)) < 0.25).astype(int)
    Y[np.arange(n_docs), rng.integers(0, n_labels - 1, n_docs)] = 1
    Y[:, -1] = 0
    X = np.array([rng.multinomial(15, theta[y > 0].mean(axis=0)) for y in Y])
    return sparse.csr_matrix(X, dtype=float), Y


X, Y = topics()
NEW, _ = topics(seed=1)


@every_model
def test_words_and_base_add_up_to_the_score(model):
    """The score of a label is the base plus what each word adds."""
    model = clone(model).fit(X, Y)
    scores = model.decision_function(NEW[:10])

    for d in range(10):
        evidence = model.label_evidence(NEW[d], [0, 1, 2])

        np.testing.assert_allclose(
            evidence.base + evidence.weights @ evidence.by_word, scores[d, :3], rtol=1e-5, atol=1e-6
        )


@every_model
def test_explained_score_of_a_set(model):
    """The score of a set is the sum of its labels' scores, and so are the parts of both."""
    model = clone(model).fit(X, Y)

    breakdown = model.explain_words(NEW[:1], [[1, 0, 1, 0]])

    expected = model.decision_function(NEW[:1])[0, [0, 2]].sum()
    assert breakdown.breakdown.score == pytest.approx(expected, rel=1e-5, abs=1e-6)


@every_model
def test_arrays_round_trip(model):
    """A model restored from its arrays gives the same results, bit for bit."""
    model = clone(model).fit(X, Y)

    restored = clone(model).from_arrays(
        model.to_arrays(), labels=list(range(4)), n_words=X.shape[1], tuned=model.tuned_
    )

    scores, expected = restored.decision_function(NEW), model.decision_function(NEW)
    if model.finds_candidates:  # dense scores only after a fit on a dense Y
        docs, labels = scores.nonzero()
        scores, expected = scores[docs, labels], expected[docs, labels][None]
        assert labels.size > len(X.toarray())
    np.testing.assert_array_equal(scores, expected)
    assert (restored.predict_indicator(NEW) != model.predict_indicator(NEW)).nnz == 0


@every_model
def test_scaled_rows_are_the_same_documents(model):
    """Only the direction of a document counts."""
    scaled = sparse.diags_array(np.linspace(0.5, 3, X.shape[0])) @ X
    one, other = clone(model).fit(X, Y), clone(model).fit(scaled, Y)

    np.testing.assert_allclose(
        other.decision_function(NEW * 2.0), one.decision_function(NEW), atol=1e-4
    )


@every_model
def test_a_label_without_documents_is_never_predicted(model):
    """A label without documents has score -inf and probability 0."""
    model = clone(model).fit(X, Y)

    assert np.isneginf(model.decision_function(NEW)[:, 3]).all()
    assert not model.predict_proba(NEW)[:, 3].any()
    assert not model.predict(NEW)[:, 3].any()


@every_model
def test_every_document_gets_a_label(model):
    """Every document gets a label; one without words gets the most frequent label set."""
    model = clone(model).fit(X, Y)

    sets = model.predict(sparse.vstack([NEW, sparse.csr_matrix((1, X.shape[1]))]))

    assert sets.any(axis=1).all()
    np.testing.assert_array_equal(np.flatnonzero(sets[-1]), model.fallback)


@every_model
def test_only_allowed_labels(model):
    """A restricted model predicts no other label."""
    model = clone(model).fit(X, Y).restrict_to(np.array([False, True, True, True]))

    assert model.predict(NEW)[:, 1:].any(axis=1).all()
    assert not model.predict(NEW)[:, 0].any()
    with pytest.raises(ValueError, match="no allowed label has a document"):
        model.restrict_to(np.array([False, False, False, True]))


@every_model
def test_the_best_set_with_a_label(model):
    """The best set with a label contains it."""
    model = clone(model).fit(X, Y)

    assert model.best_with(NEW, 2).toarray()[:, 2].all()
    with pytest.raises(ValueError, match="has no documents"):
        model.best_with(NEW, 3)


@pytest.mark.parametrize("threads", ["1", "3"])
@every_model
def test_threads_do_not_change_a_bit(model, threads, monkeypatch):
    """Results do not depend on how many cores there are."""
    expected = clone(model).fit(X, Y).decision_function(NEW)
    monkeypatch.setenv("POLYTOPIC_NUM_THREADS", threads)

    np.testing.assert_array_equal(clone(model).fit(X, Y).decision_function(NEW), expected)


@every_model
def test_order_of_labels(model):
    """Columns in another order give the same scores in that order, but for random draws."""
    if "forest" in repr(model).lower() or isinstance(model, Stack):
        pytest.skip("the order of labels changes which documents and splits are drawn")
    order = [2, 0, 3, 1]

    one, other = clone(model).fit(X, Y), clone(model).fit(X, Y[:, order])

    np.testing.assert_allclose(
        other.decision_function(NEW), one.decision_function(NEW)[:, order], rtol=1e-5
    )


@pytest.mark.parametrize("name", ["svm", "knn", "forest", "stack"])
def test_no_informative_word(name, tmp_path):
    """A word in every document has no weight, so the most frequent labels are predicted."""
    labeler = Labeler(name).fit(["goal"], [["sport"]])
    labeler.save(tmp_path / "one.model")

    for model in (labeler, load(tmp_path / "one.model")):
        assert model.predict(["goal", "film"]) == [["sport"], ["sport"]]
        assert [reason.label for reason in model.explain("goal").labels] == ["sport"]


TEXTS = ["The striker scored a goal", "A rover landed on Mars", "A film about a striker"] * 20
LABELS = [["sport"], ["space"], ["film", "sport"]] * 20


@pytest.mark.parametrize("name", ["svm", "knn", "forest", "stack"])
def test_labeler(name, tmp_path):
    """The models label, explain, learn, forget and are saved like all others."""
    labeler = Labeler(name).fit(TEXTS, LABELS)
    expected = labeler.predict_proba(TEXTS[:3])

    labeler.learn(["Honey from bees"], [["food"]]).forget(["Honey from bees"], [["food"]])
    labeler.save(tmp_path / "one.model")
    loaded = load(tmp_path / "one.model")

    assert labeler.predict(TEXTS[:3]) == [["sport"], ["space"], ["film", "sport"]]
    np.testing.assert_array_equal(labeler.predict_proba(TEXTS[:3]), expected)
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS[:3]), expected)
    reasons = {reason.label: reason for reason in loaded.explain(TEXTS[2]).labels}
    assert reasons["film"].words[0].evidence > 0
