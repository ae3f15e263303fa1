"""Laws of all models."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from polytopic import MML, PDMM, PMM1, PMM2, BoosTexter, CoL, NaiveBayes
from polytopic.counts import LabelSetCounts
from polytopic.labels import read_targets
from polytopic.models.col.training import TopicDocuments
from tests.models.test_count_models import MODELS as COUNT_MODELS

MODELS = [
    *COUNT_MODELS,
    PDMM(temperature=1.0),
    MML(1.0),
    MML(1.0, labels="neighbours"),
    CoL(n_topics=4, tol=0.1),
    CoL(n_topics=4, tol=0.1, predict_mode="sets"),
    BoosTexter(20),
]
NAMES = ["film", "science", "sport", "unused"]
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)


def corpus(n_docs=40):
    """Return counts of six words, and an indicator of four labels, the last without documents."""
    rng = np.random.default_rng(0)
    theta = np.array([[8, 1, 1, 1, 1, 2], [1, 8, 1, 1, 1, 2], [1, 1, 4, 4, 1, 2]]) / 14
    Y = np.zeros((n_docs, 4), dtype=int)
    for row in Y:
        row[rng.choice(3, size=rng.integers(1, 3), replace=False)] = 1
    X = np.array([rng.multinomial(12, theta[y[:3] > 0].mean(axis=0)) for y in Y])
    return X, Y


def fitted(model):
    """Return the model, fitted on the corpus."""
    return clone(model).fit(X, Y)


X, Y = corpus()
CALLS = {
    **dict.fromkeys(
        ["predict", "predict_indicator", "decision_function", "predict_proba", "assess"], (X,)
    ),
    **dict.fromkeys(["predict_sets", "set_probability", "lead", "word_labels", "mixture"], (X,)),
    **dict.fromkeys(["class_perplexity", "log_likelihood", "log_joint", "forget"], (X, Y)),
    **dict.fromkeys(["loo_predict", "loo_log_likelihood", "bound", "score"], (X, Y)),
    "log_prior": (Y,),
    "explain_words": (X[:1], Y[:1]),
    "best_with": (X, 0),
    "top_words": (0, 3),
}


@pytest.mark.parametrize(
    ("model", "method"),
    [(model, method) for model in MODELS for method in CALLS if hasattr(model, method)],
    ids=str,
)
def test_a_model_that_was_not_fitted(model, method):
    """An unfitted model raises NotFittedError, not AttributeError."""
    with pytest.raises(NotFittedError):
        getattr(clone(model), method)(*CALLS[method])


@every_model
def test_a_model_knows_whether_it_is_fitted(model):
    """A model is fitted after `fit`; a new one and a clone are not."""
    trained = fitted(model)

    assert not clone(model).is_fitted
    assert trained.is_fitted
    assert not clone(trained).is_fitted


@pytest.mark.parametrize("name", ["label_mean_", "label_covariance_"])
def test_properties_of_an_unfitted_model(name):
    """Properties of an unfitted model raise NotFittedError, too."""
    with pytest.raises(NotFittedError):
        getattr(CoL(), name)


@every_model
def test_parameters_are_kept_as_they_are_given(model):
    """The constructor only stores parameters; `fit` is the first to check them."""
    parameters = {name: f"{name} as given" for name in model.get_params()}

    stored = type(model)(**parameters).get_params()

    assert stored == parameters


@every_model
def test_tags(model):
    """Models take sparse matrices and several labels; counts are not negative."""
    tags = get_tags(model)

    assert tags.input_tags.sparse
    assert tags.input_tags.positive_only == (not isinstance(model, MML))
    assert tags.classifier_tags.multi_label
    assert tags.target_tags.required


@pytest.mark.parametrize("model", [m for m in MODELS if hasattr(m, "top_words")], ids=repr)
def test_labels_without_documents_have_no_words(model):
    """A label without documents has no words."""
    words, weights = fitted(model).top_words(3, 3)

    assert words.size == weights.size == 0
    assert words.dtype.kind == "i"


@pytest.mark.parametrize("labels", ["all", "neighbours"])
def test_words_do_not_speak_for_labels_without_documents(labels):
    """In a set with such a label, that label's share of the score is zero."""
    model = fitted(MML(1.0, labels=labels))

    breakdown = model.explain_words(X[:1], [[1, 0, 0, 1]])

    assert breakdown.by_label[:, 0].any()
    assert not breakdown.by_label[:, 1].any()


MIXTURES = [
    PMM1(temperature=2.0),
    PMM2(temperature=2.0),
    PDMM(temperature=2.0),
    PDMM(temperature=2.0, likelihood="paper"),
]
every_mixture = pytest.mark.parametrize("model", MIXTURES, ids=repr)


@every_mixture
def test_words_account_for_the_log_likelihood(model):
    """The evidence of words and the remaining parts add up to the log likelihood."""
    model = fitted(model)

    for x, y in zip(sparse.csr_matrix(X[:8]), Y[:8], strict=True):
        breakdown = model.explain_words(x, [y])

        assert breakdown.word_scores.shape == (x.nnz,)
        assert (breakdown.word_scores < 0).all()
        total = x.data @ breakdown.word_scores + breakdown.mixing
        assert total == breakdown.breakdown.log_likelihood
        assert total == pytest.approx(model.log_likelihood(x, [y])[0])


def test_words_of_the_papers_score():
    """The score is the log likelihood of the mean weights, so it consists of words only."""
    model = fitted(PDMM(temperature=2.0, likelihood="paper"))
    x = sparse.csr_matrix(X[:1])

    breakdown = model.explain_words(x, [[1, 1, 0, 0]])

    weights = model.mixture(x, [[1, 1, 0, 0]])[0]
    expected = np.log(weights @ model.word_proba_[:, x.indices])
    np.testing.assert_allclose(breakdown.word_scores, expected, rtol=1e-6)


@every_mixture
def test_the_joint_is_the_likelihood_and_the_prior(model):
    """The log likelihood is divided by the temperature, the prior is not."""
    model = fitted(model)

    expected = model.log_likelihood(X, Y) / 2.0 + model.log_prior(Y)

    np.testing.assert_array_equal(model.log_joint(X, Y), expected)
    assert model.log_prior(Y).shape == (len(Y),)


@pytest.mark.parametrize("model", [NaiveBayes(), MML(), BoosTexter(20)], ids=repr)
def test_all_label_sets_are_equally_likely(model):
    """With a uniform prior, the prior adds nothing and the temperature is one."""
    breakdown = fitted(model).explain_words(X[:1], Y[:1])

    assert breakdown.temperature == 1.0
    assert breakdown.log_prior == 0.0


@pytest.mark.parametrize(
    ("model", "needed"),
    [
        (NaiveBayes(), False),
        (PMM1(), True),
        (PMM1(temperature=1.0), False),
        (PMM1(temperature=1.0, smoothing="auto"), True),
        (PMM2(smoothing=1.0), True),
        (MML(), False),
        (MML("auto"), True),
        (MML(calibrate=True), True),
    ],
    ids=repr,
)
def test_documents_are_needed_to_choose_by(model, needed):
    """A model needs documents exactly if a parameter must be tuned."""
    assert bool(model.needs_documents) == needed


@pytest.mark.parametrize("model", [NaiveBayes(), PMM1(), PMM2(smoothing="auto")], ids=repr)
def test_a_table_is_as_good_as_its_documents(model):
    """With documents to tune on, a fit on a table tunes the same; tuned values can be reused."""
    names = [[NAMES[k] for k in np.flatnonzero(y)] for y in Y]
    counts = sparse.csr_matrix(X, dtype=float)
    expected = clone(model).fit(counts, names)
    table = LabelSetCounts.from_matrix(counts, read_targets(names))

    from_table = clone(model).fit_counts(table, documents=(counts, names))
    reused = clone(model).fit_counts(table, tuned=expected.tuned_)

    assert from_table.tuned_ == reused.tuned_ == expected.tuned_
    assert from_table.classes_.tolist() == NAMES[:3]
    for other in (from_table, reused):
        assert other.predict_proba(X).tobytes() == expected.predict_proba(X).tobytes()


def test_topics_from_a_table_of_label_sets():
    """Fitted on documents and a table of their label sets, CoL gives the same result."""
    names = [[NAMES[k] for k in np.flatnonzero(y)] for y in Y]
    counts, targets = sparse.csr_matrix(X, dtype=float), read_targets(names)
    expected = CoL(n_topics=4, tol=0.1).fit(counts, names)
    table = LabelSetCounts.from_matrix(counts, targets)

    from_table = CoL(n_topics=4, tol=0.1).fit_documents(
        TopicDocuments(counts, targets.Y),
        labels=table.labels,
        sets=table.indicator,
        set_docs=table.set_docs,
        tuned=expected.tuned_,
    )

    arrays = expected.to_arrays()
    assert from_table.tuned_ == expected.tuned_
    assert from_table.classes_.tolist() == NAMES[:3]
    for name, array in from_table.to_arrays().items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)


def test_allowed_labels_without_a_set():
    """If no seen set is allowed as a whole, the most frequent allowed label is predicted."""
    pairs = [["a", "b"], ["a", "b"], ["b", "c"], ["b", "c"], ["b", "c"]]
    empty = np.zeros((1, 2))

    for model in (NaiveBayes(), PMM1(temperature=1.0)):
        model = model.fit(np.eye(2)[[0, 0, 1, 1, 1]] * 3, pairs)
        only = model.restrict_to(np.array([True, False, True]))

        assert model.predict(empty).tolist() == [[0, 1, 1]]
        assert only.predict(empty).tolist() == [[0, 0, 1]]


@every_model
def test_the_best_set_with_a_label_holds_it(model):
    """The best set with a label contains it, whatever the words are."""
    model = fitted(model)

    for label in range(3):
        best = model.best_with(X, label).toarray()

        assert best.shape == (len(X), 4)
        assert (best[:, label] == 1).all()
        assert not best[:, 3].any()


@every_model
@pytest.mark.parametrize("label", [-1, 4, 3])
def test_the_best_set_with_an_impossible_label(model, label):
    """A column that does not exist, and a label without documents, are rejected."""
    with pytest.raises(ValueError, match="label"):
        fitted(model).best_with(X, label)


@pytest.mark.parametrize(
    "model",
    [
        *MODELS,
        PMM1(temperature=1.0, decode="greedy"),
        PMM1(temperature=4.0, decode="map"),
        PMM1(temperature=4.0, decode="map", search="exact"),
    ],
    ids=repr,
)
def test_one_pass_gives_all_answers(model):
    """`assess` gives the same sets, margins and probabilities as the single methods."""
    model = fitted(model)

    sets, margins, proba = model.assess(X)

    assert (sets != model.predict_indicator(X)).nnz == 0
    np.testing.assert_array_equal(margins, model.decision_function(X))
    np.testing.assert_array_equal(proba, model.predict_proba(X))
    assert (sets.toarray() == model.predict(X)).all()


@every_model
def test_arrays_hold_the_whole_model(model):
    """A model from arrays gives the same answers, and has the same number of words."""
    model = fitted(model)

    again = clone(model).from_arrays(model.to_arrays(), labels=NAMES, n_words=6, tuned=model.tuned_)

    assert again.n_features_in_ == 6
    assert again.classes_.tolist() == NAMES
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    with pytest.raises(ValueError, match="features"):
        again.predict(X[:, :5])


@every_model
def test_only_allowed_labels_are_answered(model):
    """Only allowed labels are predicted, also if the most frequent set is not allowed."""
    documents = np.vstack([X, np.zeros((1, 6), dtype=int)])
    model = fitted(model)

    for gone in range(3):
        only = model.restrict_to(np.arange(4) != gone)
        answers, proba = only.predict(documents), only.predict_proba(documents)

        assert not answers[:, gone].any()
        assert not proba[:, gone].any()
        assert answers.any(axis=1).all()
        assert (proba[answers == 1] > 0).all()
    everything = model.restrict_to(np.ones(4, dtype=bool))
    assert (everything.predict(documents) == model.predict(documents)).all()
