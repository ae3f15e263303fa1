"""Classifiers of scikit-learn as the model of a labeler."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from polytopic import Labeler, Stack
from polytopic.corpus import load_sample
from polytopic.models.classifier import ClassifierModel

LINEAR = [
    LogisticRegression(C=10.0),
    LinearSVC(),
    RidgeClassifier(),
    SVC(kernel="linear"),
    LinearSVC(fit_intercept=False),
]
OTHERS = [
    MultinomialNB(alpha=0.01),
    KNeighborsClassifier(3),
    GaussianNB(),
    SVC(),
    OneVsRestClassifier(LogisticRegression(C=10.0)),
    RandomForestClassifier(20, random_state=0),
    DecisionTreeClassifier(random_state=0),
    MLPClassifier((8,), solver="lbfgs", random_state=0),
    HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2),
]
DOCUMENTS = load_sample()[:90]
TEXTS = [document.text for document in DOCUMENTS]


@pytest.fixture(scope="module")
def fitted():
    """Return a function from a classifier to a fitted labeler, which is made once."""
    labelers = {}

    def fit(classifier):
        key = repr(classifier)
        if key not in labelers:
            labelers[key] = Labeler(classifier, max_terms=200).fit(DOCUMENTS)
        return labelers[key]

    return fit


@pytest.mark.parametrize("classifier", [*LINEAR, *OTHERS], ids=repr)
def test_answers(fitted, classifier):
    """Labels, scores and probabilities agree, and the given classifier is not fitted."""
    labeler = fitted(classifier)
    scores, proba = labeler.decision_function(TEXTS), labeler.predict_proba(TEXTS)

    for labels, row, answer in zip(
        labeler.predict(TEXTS), scores, labeler.suggest(TEXTS), strict=True
    ):
        above = labeler.classes_[row > 0].tolist()
        assert labels == (above or [labeler.classes_[row.argmax()]]) == answer.labels
    assert ((proba >= 0) & (proba <= 1)).all()
    own = labeler.model_.predict_proba(labeler.transform(TEXTS))  # of all words, known or not
    assert ((own > 0.5) == (scores > 0)).all()
    assert not hasattr(classifier, "classes_")


def test_scores_are_those_of_one_classifier_per_label(fitted):
    """They equal scikit-learn's own one-vs-rest classifiers on the same weights."""
    labeler, plain = fitted(LinearSVC()), OneVsRestClassifier(LinearSVC())
    X = labeler.transform(TEXTS)

    plain.fit(X, labeler.state_.documents.Y.toarray().astype(int))

    np.testing.assert_allclose(
        labeler.decision_function(TEXTS), plain.decision_function(X), atol=1e-3
    )


@pytest.mark.parametrize("classifier", LINEAR, ids=repr)
def test_words_explain_linear_scores(fitted, classifier):
    """Evidence and intercept add up to the score, and labels have terms."""
    labeler = fitted(classifier)
    model, x = labeler.model_, labeler.transform(TEXTS[:1])

    evidence = model.label_evidence(x, [0, 1])
    explanation = labeler.explain(TEXTS[0])

    scores = labeler.decision_function(TEXTS[:1])[0]
    np.testing.assert_allclose(evidence.base + evidence.weights @ evidence.by_word, scores[:2])
    assert explanation.labels[0].words[0].evidence > 0
    assert labeler.label_terms(3)[0]["words"]


@pytest.mark.parametrize("classifier", OTHERS, ids=repr)
def test_other_scores_are_not_made_of_words(fitted, classifier):
    """The explanation has scores, and no evidence."""
    labeler = fitted(classifier)

    explanation = labeler.explain(TEXTS[0], why_not=[labeler.suggest(TEXTS[:1], 50)[0][-1].label])

    reason = explanation.labels[0]
    assert reason.score == pytest.approx(labeler.decision_function(TEXTS[:1]).max())
    assert {word.evidence for word in reason.words} == {0.0}
    assert labeler.label_terms(3)[0]["words"] == []


def test_learning_and_forgetting(fitted):
    """They fit the classifier again, on all documents."""
    labeler = Labeler(LogisticRegression(), max_terms=200).fit(DOCUMENTS[:60])

    labeler.learn(DOCUMENTS[60:])
    again = labeler.decision_function(TEXTS)

    np.testing.assert_allclose(again, fitted(LogisticRegression()).decision_function(TEXTS))


def test_a_label_that_every_text_has():
    """It is always predicted, and the other labels are learned."""
    texts, labels = ["goal match", "film actor", "goal film"], [["a", "s"], ["a", "f"], ["a", "s"]]

    labeler = Labeler(LogisticRegression(C=100.0)).fit(texts, labels)

    assert labeler.predict(["goal", "actor"]) == [["a", "s"], ["a", "f"]]
    assert labeler.explain("goal", ["a"], why_not=["f"]).labels[0].score == np.inf


def test_grid_search_and_clone():
    """The parameters of the classifier are those of the labeler's model."""
    labels = [set(document.labels) for document in DOCUMENTS]
    search = GridSearchCV(
        Labeler(LogisticRegression(), max_terms=50), {"model__C": [0.01, 100.0]}, cv=2
    ).fit(TEXTS, labels)

    assert search.best_params_ == {"model__C": 100.0}
    assert clone(search.best_estimator_).model.C == 100.0


def test_it_cannot_be_saved(fitted, tmp_path):
    """The sentence says why, and what can be saved; so it does for a stack."""
    stack = Labeler(Stack(("svm", LogisticRegression())), max_terms=50).fit(DOCUMENTS)

    for labeler in (fitted(LogisticRegression(C=10.0)), stack):
        with pytest.raises(ValueError, match=r"LogisticRegression is not a model .* can run code"):
            labeler.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("model", "error", "sentence"),
    [
        (LinearRegression(), TypeError, "model is a LinearRegression, must be one of mml"),
        (LogisticRegression, TypeError, "model is a ABCMeta|model is a type, must be one of"),
        (NearestCentroid(metric="manhattan"), ValueError, "has neither decision_function nor"),
    ],
    ids=["regressor", "class", "no scores"],
)
def test_wrong_models(model, error, sentence):
    """A regressor, a class, or a classifier without scores is rejected."""
    with pytest.raises(error, match=sentence):
        Labeler(model).fit(["a goal", "a film"], [["s"], ["f"]])


def test_wrong_classifier():
    """The model itself says what it needs."""
    with pytest.raises(TypeError, match="classifier == 3, must be a classifier of scikit-learn"):
        ClassifierModel(3).fit(np.eye(3), np.eye(3))
