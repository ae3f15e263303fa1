"""Rules and the estimator that puts them on scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from polytopic import PMM1, NaiveBayes
from polytopic.decision import LabelDecision, Threshold, TopK, WorldModel
from polytopic.text import TextCounts

SCORES = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 4), st.integers(1, 5)),
    elements=st.sampled_from([-np.inf, -7.5, -1.0, 0.0, 0.5, 2.0, 9.0]),
)
X = [[3, 0, 1], [0, 2, 1], [2, 2, 0], [0, 3, 0]]
Y = [["s"], ["f"], ["f", "s"], ["f"]]


def slow(rule, scores, reference):
    """Decide one document by the definition of each rule."""
    if isinstance(rule, TopK):
        best = sorted(range(len(scores)), key=lambda c: (-scores[c], c))[: rule.k]
        accepted = set(best)
    elif isinstance(rule, Threshold):
        accepted = {c for c, s in enumerate(scores) if s >= rule.value}
    else:
        scores = scores - reference
        top = max(scores)
        accepted = {
            c for c, z in enumerate(scores) if z == top or z >= top - (1 - rule.ratio) * abs(top)
        }
        if rule.reject and top <= 0:
            accepted = set()
    if not rule.reject:
        accepted.add(int(np.argmax(scores)))
    return {c for c in accepted if scores[c] > -np.inf}


@given(
    scores=SCORES,
    rule=st.one_of(
        st.builds(TopK, st.integers(1, 6)),
        st.builds(Threshold, st.sampled_from([-3.0, 0.0, 1.0]), reject=st.booleans()),
        st.builds(WorldModel, st.sampled_from([0.0, 0.3, 0.8, 1.0]), reject=st.booleans()),
    ),
)
def test_rules_do_what_they_say(scores, rule):
    """Equal to the definition for ties, negative and missing scores; sparse out."""
    reference = np.linspace(-2.0, 1.0, len(scores))

    decided = rule.decide(scores, reference=reference)

    assert sparse.issparse(decided)
    for row, found, ref in zip(scores, decided.toarray(), reference, strict=True):
        assert set(np.flatnonzero(found)) == slow(rule, row, ref)
        if not rule.reject and row.max() > -np.inf:
            assert found.any()


@given(scores=SCORES, low=st.floats(0, 1), high=st.floats(0, 1))
def test_world_model_is_monotone(scores, low, high):
    """A higher ratio never accepts more, also where the best is negative."""
    low, high = sorted([low, high])
    reference = np.zeros(len(scores))

    many = WorldModel(low).decide(scores, reference=reference).toarray()
    few = WorldModel(high).decide(scores, reference=reference).toarray()

    assert (few <= many).all()


@pytest.mark.parametrize(
    ("decide", "sentence"),
    [
        (lambda: TopK(0).decide([[1.0]]), "k == 0, must be >= 1"),
        (lambda: WorldModel(1.5).decide([[1.0]], reference=[0.0]), "ratio == 1.5, must be <= 1"),
        (lambda: Threshold(float("nan")).decide([[1.0]]), "value == nan"),
        (lambda: TopK().decide([[np.nan, 1.0]]), "scores hold NaN"),
        (lambda: TopK().decide([1.0, 2.0]), r"shape \(2,\)"),
        (lambda: WorldModel().decide([[1.0]]), "WorldModel needs reference"),
        (lambda: WorldModel().decide([[1.0]], reference=[1.0, 2.0]), "1 finite numbers are needed"),
    ],
)
def test_bad_scores_and_parameters(decide, sentence):
    """Each fault gets its sentence."""
    with pytest.raises(ValueError, match=sentence):
        decide()


@pytest.mark.parametrize(
    "estimator",
    [
        OneVsRestClassifier(LinearSVC()),
        OneVsRestClassifier(LogisticRegression()),
        PMM1(),
        NaiveBayes(),
    ],
)
def test_any_estimator_will_do(estimator):
    """Ours and scikit-learn's, with names or indicators."""
    indicator = [[0, 1], [1, 0], [1, 1], [1, 0]]

    by_name = LabelDecision(estimator, TopK(1)).fit(X, Y)
    by_column = LabelDecision(estimator, TopK(1)).fit(X, indicator)

    assert by_name.classes_.tolist() == ["f", "s"]
    assert by_name.predict([[9, 0, 1]]).tolist() == [[0, 1]]
    np.testing.assert_array_equal(by_name.predict(X), by_column.predict(X))
    assert by_name.predict([[0, 0, 0]]).tolist() == [[1, 0]]  # no words: the commonest set


def test_rejecting_leaves_documents_without_labels():
    """With reject=True even a document without words gets none."""
    model = LabelDecision(NaiveBayes(), Threshold(1e9, reject=True)).fit(X, Y)

    assert not model.predict([[9, 0, 1], [0, 0, 0]]).any()


def test_weights_are_those_of_the_estimator():
    """Labels that weigh nothing are unknown, and the commonest set is weighed."""
    gone = LabelDecision(NaiveBayes(), TopK(1)).fit(
        [[1, 0], [0, 1], [1, 1]], [["a"], ["b"], ["a"]], sample_weight=[1, 0, 1]
    )
    heavy = LabelDecision(NaiveBayes(), TopK(1)).fit(X, Y, sample_weight=[1, 1, 9, 1])

    assert gone.predict([[1, 0]]).tolist() == [[1]]
    assert heavy.predict([[0, 0, 0]]).tolist() == [[1, 1]]


def test_on_a_pipeline_of_texts():
    """The estimator may take texts."""
    texts = ["goal match", "orbit moon", "goal orbit"]
    pipeline = make_pipeline(TextCounts(None), NaiveBayes())

    model = LabelDecision(pipeline, TopK(2)).fit(texts, [[1, 0], [0, 1], [1, 1]])

    assert model.predict(["goal"]).tolist() == [[1, 1]]


def test_rules_are_open_to_search():
    """Parameters of rule and estimator can be searched together; clones are independent."""
    indicator = np.array([[0, 1], [1, 0], [1, 1], [1, 0]] * 3)
    model = LabelDecision(NaiveBayes(), WorldModel())
    grid = {"rule__ratio": [0.2, 0.9], "estimator__smoothing": [0.1, 1.0]}

    search = GridSearchCV(model, grid, cv=2).fit(np.array(X * 3), indicator)

    assert search.best_params_["rule__ratio"] in (0.2, 0.9)
    copy = clone(model).set_params(rule__ratio=0.5)
    assert (copy.rule.ratio, model.rule.ratio) == (0.5, 0.8)


def test_a_rule_without_its_reference_is_told():
    """A model without a general model cannot be judged against it."""
    model = LabelDecision(PMM1(), WorldModel()).fit(X, Y)

    with pytest.raises(ValueError, match="PMM1 has no world_score"):
        model.predict(X)
