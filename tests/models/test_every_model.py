"""What every model promises, whatever its family."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from polytopic import MML, PDMM, PMM1, PMM2, BoosTexter, CoL, NaiveBayes

MODELS = [
    NaiveBayes(),
    PMM1(temperature=1.0),
    PMM2(temperature=1.0),
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
    **dict.fromkeys(["predict", "choose", "decision_function", "predict_proba", "assess"], (X,)),
    **dict.fromkeys(["predict_sets", "set_proba", "lead", "word_labels", "mixture"], (X,)),
    **dict.fromkeys(["class_perplexity", "log_likelihood", "log_joint", "forget"], (X, Y)),
    **dict.fromkeys(["loo_predict", "loo_log_likelihood"], (X, Y)),
    "account": (X[:1], Y[:1]),
    "best_with": (X, 0),
    "top_words": (0, 3),
}


@pytest.mark.parametrize(
    ("model", "method"),
    [(model, method) for model in MODELS for method in CALLS if hasattr(model, method)],
    ids=str,
)
def test_a_model_that_was_not_fitted(model, method):
    """It says so, instead of failing for want of an attribute."""
    with pytest.raises(NotFittedError):
        getattr(clone(model), method)(*CALLS[method])


@every_model
def test_the_best_set_with_a_label_holds_it(model):
    """Whatever the words say."""
    model = fitted(model)

    for label in range(3):
        found = model.best_with(X, label).toarray()

        assert found.shape == (len(X), 4)
        assert (found[:, label] == 1).all()
        assert not found[:, 3].any()


@every_model
@pytest.mark.parametrize("label", [-1, 4, 3])
def test_the_best_set_with_an_impossible_label(model, label):
    """A column that is not there, and a label without documents, are refused."""
    with pytest.raises(ValueError, match="label"):
        fitted(model).best_with(X, label)


@every_model
def test_one_pass_gives_all_answers(model):
    """Sets, margins and probabilities at once are those that are given one by one."""
    model = fitted(model)

    sets, margins, proba = model.assess(X)

    assert (sets != model.choose(X)).nnz == 0
    np.testing.assert_array_equal(margins, model.decision_function(X))
    np.testing.assert_array_equal(proba, model.predict_proba(X))
    assert (sets.toarray() == model.predict(X)).all()


@every_model
def test_arrays_hold_the_whole_model(model):
    """From its arrays a model gives the same answers, and knows how many words there are."""
    model = fitted(model)

    again = clone(model).from_arrays(
        model.to_arrays(), labels=NAMES, n_words=6, chosen=model.chosen_
    )

    assert again.n_features_in_ == 6
    assert again.classes_.tolist() == NAMES
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    with pytest.raises(ValueError, match="features"):
        again.predict(X[:, :5])


@every_model
def test_only_allowed_labels_are_answered(model):
    """Also for a document without words, where the commonest set is not allowed."""
    documents = np.vstack([X, np.zeros((1, 6), dtype=int)])
    model = fitted(model)

    for gone in range(3):
        only = model.restricted(np.arange(4) != gone)
        answers, proba = only.predict(documents), only.predict_proba(documents)

        assert not answers[:, gone].any()
        assert not proba[:, gone].any()
        assert answers.any(axis=1).all()
        assert (proba[answers == 1] > 0).all()
    everything = model.restricted(np.ones(4, dtype=bool))
    assert (everything.predict(documents) == model.predict(documents)).all()
