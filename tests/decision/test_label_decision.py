"""LabelDecision: any rule on any estimator."""

import pickle

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from polytopic import MML, PMM1, Labeler, LabelTree, NaiveBayes
from polytopic.decision import (
    LabelDecision,
    MeanPlusStd,
    Threshold,
    TNorm,
    TopK,
    TreeCohort,
    UnconstrainedCohort,
    WorldModel,
    tune_decision,
)
from polytopic.text import TextCounts

X = [[3, 0, 1], [0, 2, 1], [2, 2, 0], [0, 3, 0]]
Y = [["s"], ["f"], ["f", "s"], ["f"]]
TREE = LabelTree({"f": "arts", "s": "play", "t": "play"})
RULES = [
    TopK(2),
    Threshold(),
    MeanPlusStd(),
    WorldModel(),
    UnconstrainedCohort(2),
    TreeCohort(TREE),
    TNorm(),
]


ON_COUNTS = [LabelDecision(NaiveBayes(), rule) for rule in RULES]
ON_REGRESSIONS = [
    LabelDecision(OneVsRestClassifier(LogisticRegression()), rule)
    for rule in RULES
    if not rule.needs_reference
]


def fails(estimator):
    """Return the checks that fail, and why."""
    if isinstance(estimator.estimator, NaiveBayes):
        reason = "feeds negative numbers, which word counts cannot be"
        return {"check_decision_proba_consistency": reason}
    return {}


@parametrize_with_checks([ON_COUNTS[3], ON_REGRESSIONS[-1]], expected_failed_checks=fails)
def test_scikit_learn_checks(estimator, check):
    """A rule on naive Bayes or on logistic regressions passes scikit-learn's checks."""
    check(estimator)


@pytest.mark.long
@parametrize_with_checks(ON_COUNTS + ON_REGRESSIONS, expected_failed_checks=fails)
def test_scikit_learn_checks_with_every_rule(estimator, check):
    """The same holds for every rule."""
    check(estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        OneVsRestClassifier(LinearSVC()),
        OneVsRestClassifier(LogisticRegression()),
        PMM1(),
        MML(),
        NaiveBayes(),
    ],
)
def test_any_estimator_will_do(estimator):
    """Estimators of ours and of scikit-learn work, with names or indicators."""
    indicator = [[0, 1], [1, 0], [1, 1], [1, 0]]

    by_name = LabelDecision(estimator, TopK(1)).fit(X, Y)
    by_column = LabelDecision(estimator, TopK(1)).fit(X, indicator)

    assert by_name.classes_.tolist() == ["f", "s"]
    assert by_name.predict([[9, 0, 1]]).tolist() == [[0, 1]]
    np.testing.assert_array_equal(by_name.predict(X), by_column.predict(X))
    assert by_name.predict([[0, 0, 0]]).tolist() == [[1, 0]]  # no words: the most frequent set


class ByLogarithm(LogisticRegression):
    """An estimator that has only logarithms of probabilities."""

    decision_function = predict_proba = property()

    def fit(self, X, y):
        """Fit one classifier per label."""
        self.inner_ = OneVsRestClassifier(LogisticRegression()).fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict_log_proba(self, X):
        """Return the logarithms of the probabilities."""
        return np.log(self.inner_.predict_proba(X))


def test_any_kind_of_score():
    """Logarithms of probabilities are used if there is no decision function."""
    model = LabelDecision(ByLogarithm(), TNorm(1.0)).fit(X, np.array([[0, 1], [1, 0]] * 2))

    assert not hasattr(model, "decision_function")
    assert model.predict([[9, 0, 1]]).tolist() == [[0, 1]]


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_on_naive_bayes(rule):
    """Predictions are those of the rule on the scores, also after pickling."""
    model = LabelDecision(NaiveBayes(), rule).fit(X, Y)
    fresh = [[2, 1, 0], [0, 0, 4]]
    inner = model.estimator_

    answers = model.predict(fresh)

    known = clone(rule).fit(classes=["f", "s"])
    scores, reference = inner.decision_function(fresh), inner.world_score(fresh)
    np.testing.assert_array_equal(answers, known.decide(scores, reference=reference).toarray())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(fresh), answers)  # noqa: S301
    assert not hasattr(rule, "group_")


def test_rules_on_an_estimator_of_texts():
    """A labeler gets texts and names, in fitting and in tuning."""
    texts = ["goal match", "orbit moon", "goal orbit", "match moon goal", "moon star"] * 6
    names = [["sport"], ["space"], ["space", "sport"], ["space", "sport"], ["space"]] * 6

    decision = LabelDecision(Labeler("nb", language=None), TopK(1)).fit(texts, names)
    tuned = tune_decision(Labeler("nb", language=None), texts, names, cv=3)

    assert decision.predict(["orbit star", "match match"]).argmax(axis=1).tolist() == [0, 1]
    assert decision.classes_.tolist() == ["space", "sport"]
    assert tuned.best_score > 0.8
    with pytest.raises(
        ValueError, match="X has 30 documents and Y has 29; the numbers must be equal"
    ):
        tune_decision(Labeler("nb", language=None), texts, names[1:])


def test_siblings_by_names():
    """The tree has names of labels; the estimator knows their columns."""
    X, Y = np.eye(4), [["arts/a"], ["arts/b"], ["play/c"], ["play/d"]]
    tree = LabelTree.from_names([name for names in Y for name in names])
    doc = [[4, 3, 1, 0]]

    by_tree = LabelDecision(NaiveBayes(), TreeCohort(tree, 0.9)).fit(X, Y).predict(doc)

    scores = NaiveBayes().fit(X, Y).decision_function(doc)[0]
    z = scores - scores[[1, 0, 3, 2]]
    assert by_tree.tolist() == [(z >= 0.9 * z.max()).astype(int).tolist()]


def test_sparse_in_sparse_out():
    """Fitted on a sparse indicator, it predicts a sparse indicator."""
    indicator = sparse.csr_matrix([[0, 1], [1, 0], [1, 1], [1, 0]])

    answers = LabelDecision(NaiveBayes(), TNorm()).fit(X, indicator).predict(X)

    assert sparse.issparse(answers)


def test_rejecting_leaves_documents_without_labels():
    """With reject=True, even a document without words gets no label."""
    model = LabelDecision(NaiveBayes(), Threshold(1e9, reject=True)).fit(X, Y)

    assert not model.predict([[9, 0, 1], [0, 0, 0]]).any()


def test_weights_are_those_of_the_estimator():
    """Labels of weight 0 are unknown, and the most frequent set is counted with weights."""
    weightless = LabelDecision(NaiveBayes(), TopK(1)).fit(
        [[1, 0], [0, 1], [1, 1]], [["a"], ["b"], ["a"]], sample_weight=[1, 0, 1]
    )
    heavy = LabelDecision(NaiveBayes(), TopK(1)).fit(X, Y, sample_weight=[1, 1, 9, 1])

    assert weightless.predict([[1, 0]]).tolist() == [[1]]
    assert heavy.predict([[0, 0, 0]]).tolist() == [[1, 1]]


def test_weights_are_routed():
    """With scikit-learn's metadata routing, the estimator gets the weights that it requests."""
    with sklearn.config_context(enable_metadata_routing=True):
        asking = NaiveBayes().set_fit_request(sample_weight=True)
        model = LabelDecision(asking, TopK(1)).fit(X, Y, sample_weight=[1, 1, 9, 1])
        silent = LabelDecision(NaiveBayes(), TopK(1))

        assert model.predict([[0, 0, 0]]).tolist() == [[1, 1]]
        with pytest.raises(ValueError, match="sample_weight"):
            silent.fit(X, Y, sample_weight=[1, 1, 9, 1])


def test_on_a_pipeline_of_texts():
    """The estimator may take texts."""
    texts = ["goal match", "orbit moon", "goal orbit"]
    pipeline = make_pipeline(TextCounts(None), NaiveBayes())

    model = LabelDecision(pipeline, TopK(2)).fit(texts, [[1, 0], [0, 1], [1, 1]])

    assert model.predict(["goal"]).tolist() == [[1, 1]]


@pytest.mark.parametrize(
    ("rule", "grid"),
    [
        (WorldModel(), {"rule__ratio": [0.2, 0.9], "estimator__smoothing": [0.1, 1.0]}),
        (UnconstrainedCohort(), {"rule__size": [1, 2], "rule__cohort": ["next", "best"]}),
        (TreeCohort(TREE), {"rule__ratio": [0.2, 0.9]}),
        (TopK(), {"rule": [TopK(1), TNorm(0.5)]}),
    ],
)
def test_rules_are_open_to_search(rule, grid):
    """Parameters of rule and estimator can be searched together, and clones are independent."""
    indicator = np.array([[0, 1], [1, 0], [1, 1], [1, 0]] * 3)
    model = LabelDecision(NaiveBayes(), rule)

    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(np.array(X * 3), indicator)

    assert set(search.best_params_) == set(grid)
    if hasattr(rule, "ratio"):
        copy = clone(model).set_params(rule__ratio=0.5)
        assert copy.rule.ratio == 0.5
        assert model.rule.ratio == type(rule)().ratio


def test_a_rule_may_be_replaced():
    """Another rule needs no new fit."""
    model = LabelDecision(NaiveBayes(), TopK(1)).fit(X, Y)

    assert model.set_params(rule=TopK(2)).predict(X).all()


def test_a_rule_without_its_reference_is_rejected():
    """An estimator without a general model has no reference for such a rule."""
    model = LabelDecision(PMM1(), WorldModel()).fit(X, Y)

    with pytest.raises(ValueError, match="PMM1 has no world_score"):
        model.predict(X)


def test_documents_without_any_score():
    """If the logarithms of all probabilities are -inf, documents get the most frequent set."""
    indicator = np.array([[1, 0], [0, 0], [1, 1], [0, 0]])

    model = LabelDecision(DecisionTreeClassifier(random_state=0), TNorm()).fit(X, indicator)

    assert model.predict(X).tolist() == [[1, 0], [1, 0], [1, 1], [1, 0]]
    assert not model.set_params(rule=TNorm(reject=True)).predict(X)[[1, 3]].any()


@pytest.mark.parametrize(
    "estimator", [DecisionTreeClassifier(), OneVsRestClassifier(MultinomialNB())]
)
def test_one_label_by_its_probability(estimator):
    """Of two columns, absence and presence, the second is the label's probability."""
    model = LabelDecision(estimator, Threshold(-0.1, reject=True)).fit(X, [["a"], [], ["a"], []])

    assert model.predict(X).shape == (4, 1)


def test_a_label_that_all_documents_have():
    """One-vs-rest then claims to have a decision function that its models lack."""
    model = LabelDecision(OneVsRestClassifier(MultinomialNB()), TopK(2))

    assert model.fit(X, [["a"], ["a", "b"], ["a"], ["a", "b"]]).predict(X).all()


def test_tags():
    """Tags are the estimator's, except that labels are not those with a score above zero."""
    for estimator in (NaiveBayes(), LogisticRegression()):
        inner, tags = get_tags(estimator), get_tags(LabelDecision(estimator, TopK()))

        assert tags.input_tags == inner.input_tags
        assert tags.classifier_tags == inner.classifier_tags
        assert not tags.target_tags.multi_output
        assert tags.target_tags.required == inner.target_tags.required


class _Scoreless(BaseEstimator):
    """An estimator whose method for scores fails when it is called."""

    def fit(self, X, y):
        """Learn nothing."""
        self.classes_ = np.arange(2)
        return self


class _Broken(_Scoreless):
    def decision_function(self, X):
        """Fail as scikit-learn's OneVsRestClassifier may."""
        raise AttributeError("no decision for you")


def test_estimators_without_scores():
    """The error names the missing method, or what the method itself lacks."""
    X, Y = np.eye(2), np.eye(2, dtype=int)

    with pytest.raises(ValueError, match=r"_Scoreless has no scores; it needs one of"):
        LabelDecision(_Scoreless(), TopK()).fit(X, Y).predict(X)
    with pytest.raises(AttributeError, match="no decision for you"):
        LabelDecision(_Broken(), TopK()).fit(X, Y).predict(X)


def test_no_labelled_document():
    """Without labels, there is no label set for documents without words."""
    with pytest.raises(ValueError, match="Y has no labelled document"):
        LabelDecision(_Scoreless(), TopK()).fit(np.eye(2), np.zeros((2, 2), dtype=int))


def test_a_decision_is_not_what_scores_above_zero():
    """scikit-learn's check of multi-label estimators would require that."""
    tree = DecisionTreeClassifier()

    assert get_tags(tree).target_tags.multi_output
    assert not get_tags(LabelDecision(tree, TopK(1))).target_tags.multi_output
