"""The stack: its decision, its combination, its members, what it tunes and forgets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier

from polytopic import MML, LinearSVM, NaiveBayes, RandomForest, Stack
from polytopic.models.stack import kernels
from polytopic.models.stack.combining import SURE, Combination, best_thresholds, member_odds
from tests.twins import stack as twins

probabilities = st.lists(st.floats(0.001, 0.999), min_size=1, max_size=7)


@given(probabilities)
def test_choose_sets(p):
    """No set has a higher expected F1 than the chosen one."""
    P = np.array([p])
    chosen = np.zeros(P.shape, dtype=bool)

    kernels.choose_sets(P, chosen)

    reached, best = twins.expected_f1(P[0], np.vstack([chosen, twins.choose_sets(P)]).astype(int))
    assert reached == pytest.approx(best)


def test_choose_sets_of_twelve_labels():
    """The same with twelve labels, and so thousands of sets."""
    P = np.random.default_rng(0).beta(0.3, 1.5, (3, 12))
    chosen = np.zeros(P.shape, dtype=bool)

    kernels.choose_sets(P, chosen)

    np.testing.assert_array_equal(chosen, twins.choose_sets(P))


def test_many_expected_labels():
    """Of documents with many labels, more than the 14 most probable ones are chosen."""
    P = np.full((1, 40), 0.9)
    P[0, 30:] = 0.05
    chosen = np.zeros(P.shape, dtype=bool)

    kernels.choose_sets(P, chosen)

    assert np.flatnonzero(chosen[0]).tolist() == list(range(30))


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=6), st.integers(0, 5))
def test_add_log_odds(places, seed):
    """Log odds are those of the twin on steps, between them and beyond the curve."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.choice([*places, *rng.normal(size=3)], 8)).astype(float)
    y = np.sort(rng.choice([0.0, 0.2, 0.9, 1.0], 8))
    scores = np.concatenate([x, rng.normal(0, 3, 20), [-np.inf, np.inf]])

    odds = member_odds((x.tolist(), y.tolist()), scores)

    expected = twins.add_log_odds(scores, x, y, SURE, 1.0, np.zeros(scores.size))
    np.testing.assert_allclose(odds, expected, atol=1e-9)


def test_choose_sets_of_many_labels():
    """Labels beyond the most probable count by their expected number."""
    P = np.full((1, 200), 0.01)
    P[0, :3] = 0.9, 0.8, 0.1
    chosen = np.zeros(P.shape, dtype=bool)

    kernels.choose_sets(P, chosen)

    assert np.flatnonzero(chosen[0]).tolist() == [0, 1]


def test_best_thresholds():
    """They give each label's highest expected F1 over all numbers of documents."""
    proba = np.random.default_rng(0).random((9, 3))

    highest = best_thresholds(proba)

    for label in range(3):
        p = np.sort(proba[:, label])[::-1]
        expected = max(2 * p[:k].sum() / (k + p.sum()) for k in range(1, 10))
        assert highest[label] == pytest.approx(expected)


def test_combination():
    """Two members together are better than each alone; log odds are weighted sums."""
    rng = np.random.default_rng(0)
    truth = rng.random((400, 5)) < 0.3
    good, bad = truth + rng.normal(0, 0.3, truth.shape), truth + rng.normal(0, 2.0, truth.shape)

    combination = Combination.fit([good, bad], truth)

    odds = combination.log_odds([good, bad])
    alone = [Combination.fit([scores], truth).log_odds([scores]) for scores in (good, bad)]
    errors = [((expit(each) - truth) ** 2).mean() for each in (odds, *alone)]
    assert errors[0] < errors[1] < errors[2]
    expected = combination.intercept + sum(
        weight * member_odds(curve, scores)
        for weight, curve, scores in zip(
            combination.weights, combination.curves, (good, bad), strict=True
        )
    )
    np.testing.assert_allclose(odds, expected)
    assert abs(expit(odds).mean() - truth.mean()) < 0.01


def topics(n_docs=240, seed=0):
    """Return documents whose words depend on their labels, of which some have several."""
    rng = np.random.default_rng(seed)
    theta = np.random.default_rng(9).dirichlet(np.full(30, 0.1), size=5)
    Y = (rng.random((n_docs, 5)) < 0.15).astype(int)
    Y[np.arange(n_docs), rng.integers(0, 5, n_docs)] = 1
    X = np.array([rng.multinomial(20, theta[y > 0].mean(axis=0)) for y in Y])
    return sparse.csr_matrix(X, dtype=float), Y


X, Y = topics()
NEW, TRUE = topics(seed=1)


def test_probabilities_are_calibrated():
    """The mean probability is the share of right labels, also among confident predictions."""
    proba = Stack().fit(X, Y).predict_proba(NEW)

    assert abs(proba.mean() - TRUE.mean()) < 0.03
    assert TRUE[proba > 0.9].mean() > 0.8


def test_goals():
    """The goal "exact" has the most exact matches; "macro" predicts the most labels."""
    stacks = {goal: Stack(goal=goal).fit(X, Y) for goal in ("f", "macro", "exact")}
    exact = {
        goal: (model.predict(NEW) == TRUE).all(axis=1).mean() for goal, model in stacks.items()
    }
    sizes = {goal: model.predict(NEW).sum() for goal, model in stacks.items()}

    assert exact["exact"] >= max(exact.values()) - 0.01
    assert sizes["macro"] >= sizes["f"] >= sizes["exact"]


@pytest.mark.parametrize(
    "member",
    [LogisticRegression(), MultinomialNB(), KNeighborsClassifier(3), LinearSVM(1.0), "forest"],
    ids=str,
)
def test_members(member):
    """A member is a name, a model, or a classifier of scikit-learn, for one label or several."""
    model = Stack(("mml", member)).fit(X, Y)

    assert model.member_weights_.shape == (2,)
    assert model.score(NEW, TRUE) > 0.6


@pytest.mark.parametrize(
    "members", [(), "mml", ("nb",), (NaiveBayes(),), (3,), ("magic",)], ids=str
)
def test_wrong_members(members):
    """The error names the wrong member."""
    with pytest.raises(ValueError, match="must"):
        Stack(members).fit(X, Y)


def test_classifiers_of_others_cannot_be_saved():
    """A classifier of another library cannot be written safely."""
    model = Stack(("mml", LogisticRegression())).fit(X, Y)

    with pytest.raises(ValueError, match="LogisticRegression is not a model of polytopic"):
        model.to_arrays()


def test_what_was_tuned_is_reused():
    """With the tuned values of an earlier fit, the same documents give the same model."""
    model = Stack().fit(X, Y)

    again = Stack().fit(X, Y, tuned=model.tuned_)

    np.testing.assert_array_equal(again.decision_function(NEW), model.decision_function(NEW))
    assert again.tuned_ == model.tuned_


def test_names_of_forgotten_labels_are_not_kept():
    """When the last document of a label is forgotten, so are its tuned values."""
    names = [[f"label {k}" for k in np.flatnonzero(y)] for y in Y]
    tuned = Stack().fit(X, names).tuned_
    without = np.flatnonzero(Y[:, 4] == 0)

    stack = Stack().fit(X[without], [names[d] for d in without], tuned=tuned)

    assert "label 4" in tuned["thresholds"]
    assert "label 4" not in stack.tuned_["thresholds"]


def test_few_documents():
    """Too few documents cannot be held out, so the first member predicts alone."""
    few, labels = X[:20], Y[:20]
    model, alone = Stack(("mml", "svm")).fit(few, labels), MML().fit(few, labels)

    np.testing.assert_array_equal(model.predict(NEW), alone.predict(NEW))
    assert model.member_weights_.tolist() == [1]
    with pytest.raises(ValueError, match="needs at least 30 documents"):
        model.set_probability(NEW)


def test_probability_of_the_set():
    """The mean probability is about the share of predicted sets that are right."""
    model = Stack(goal="exact").fit(X, Y)

    proba = model.set_probability(NEW)

    right = (model.predict(NEW) == TRUE).all(axis=1)
    assert abs(proba.mean() - right.mean()) < 0.1
    assert proba[right].mean() > proba[~right].mean()


def test_a_forest_is_fitted_once():
    """Its out-of-bag scores replace held-out ones, so the same forest is the member."""
    model = Stack(("mml", RandomForest(5))).fit(X, Y)

    alone = RandomForest(5).fit(X, Y)
    np.testing.assert_array_equal(
        model.members_[1].decision_function(NEW), alone.decision_function(NEW)
    )


def test_documents_with_many_labels():
    """Sets are not limited to the labels whose distribution is computed."""
    rng = np.random.default_rng(0)
    Y = rng.random((120, 60)) < rng.uniform(0.2, 0.8, 60)
    X = np.hstack([Y + rng.random(Y.shape), np.ones((120, 1))])

    sets = Stack(("svm", "knn")).fit(X, Y.astype(int)).predict(X)

    assert sets.sum(axis=1).mean() > 20
    assert (sets == Y).mean() > 0.8


def test_a_warm_start():
    """Members that can start from those of another stack do so; others are fitted anew."""
    names = [[f"label {k}" for k in np.flatnonzero(y)] for y in Y]
    before = Stack(("mml", "svm")).fit(X[:200], names[:200])
    rows = np.where(np.arange(240) < 200, np.arange(240), -1)

    warm = Stack(("mml", "svm")).fit(X, names, tuned=before.tuned_, warm=before, rows=rows)

    cold = Stack(("mml", "svm")).fit(X, names, tuned=before.tuned_)
    first, second = (member.decision_function(NEW) for member in warm.members_)
    assert (first != cold.members_[0].decision_function(NEW)).any()
    np.testing.assert_array_equal(second, cold.members_[1].decision_function(NEW))
    assert (warm.predict(NEW) == cold.predict(NEW)).mean() > 0.95


def test_no_warm_start_with_other_labels():
    """If the labels differ, members are fitted anew, exactly."""
    names = [[f"label {k}" for k in np.flatnonzero(y)] for y in Y]
    before = Stack(("mml", "svm")).fit(X[:200], names[:200])
    names[-1] = ["another label"]
    rows = np.where(np.arange(240) < 200, np.arange(240), -1)

    warm = Stack(("mml", "svm")).fit(X, names, tuned=before.tuned_, warm=before, rows=rows)

    cold = Stack(("mml", "svm")).fit(X, names, tuned=before.tuned_)
    np.testing.assert_array_equal(warm.decision_function(NEW), cold.decision_function(NEW))
