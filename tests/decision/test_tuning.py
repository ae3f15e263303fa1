"""Tuning: the best rule, ratio and size, from one pass over held-out scores."""

import builtins

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from polytopic import MML, LabelTree, NaiveBayes, metrics
from polytopic.corpus import folds
from polytopic.decision import (
    RULES,
    LabelDecision,
    MeanPlusStd,
    Threshold,
    TNorm,
    TopK,
    TreeCohort,
    UnconstrainedCohort,
    WorldModel,
    describe_rule,
    tune_decision,
)
from polytopic.errors import PolytopicError
from polytopic.text import TextCounts

NAMES = ["arts/film", "arts/song", "play/golf", "play/judo", "science"]
TREE = LabelTree.from_names(NAMES)
GRID = {"ratio": [0.0, 0.5, 0.8, 1.0], "size": [1, 3], "k": [1, 2], "value": [-30.0, -9.0, 0.0]}
MEASURES = (
    "samples_f1",
    "subset_accuracy",
    "samples_precision",
    "samples_recall",
    "micro_f1",
    "document_f1",
)


def corpus(n_docs=60, seed=0):
    """Return documents over eight words and five labels, some without words or labels."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(8, 0.4), size=5)
    Y = rng.random((n_docs, 5)) < 0.35
    mixed = [theta[y].mean(axis=0) if y.any() else np.full(8, 1 / 8) for y in Y]
    X = np.array([rng.multinomial(rng.integers(0, 25), p) for p in mixed])
    X[::9] = 0
    return X, Y.astype(int)


def names_of(Y):
    """Return the rows of an indicator as sets of names."""
    return [{NAMES[c] for c in np.flatnonzero(row)} for row in Y]


class Counting(NaiveBayes):
    """Naive Bayes that counts how often it is fitted."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        """Count the call, and fit."""
        Counting.fits += 1
        return super().fit(X, y, sample_weight)


def make(point):
    """Return the rule at a point of the surface."""
    kinds = (TopK, Threshold, MeanPlusStd, WorldModel, UnconstrainedCohort, TreeCohort, TNorm)
    (kind,) = (kind for kind in kinds if kind.__name__ == point["rule"])
    names = ("size", "ratio", "cohort", "k", "value")
    parameters = {name: point[name] for name in names if point[name] is not None}
    return kind(
        **parameters, reject=point["reject"], **({"tree": TREE} if kind is TreeCohort else {})
    )


@pytest.mark.parametrize("reject", [False, True])
@pytest.mark.parametrize("estimator", [NaiveBayes(), OneVsRestClassifier(LogisticRegression())])
def test_surface_is_that_of_decisions(estimator, reject):
    """All metrics at all points equal those of a LabelDecision fitted on the same folds."""
    X, Y = corpus()
    rules = [TopK(), Threshold(), MeanPlusStd(), TNorm(), TreeCohort()]
    rules += [UnconstrainedCohort(), UnconstrainedCohort(cohort="best")]
    rules += [WorldModel()] if isinstance(estimator, NaiveBayes) else []
    rules = [rule.set_params(reject=reject) for rule in rules]
    names, used = names_of(Y), np.arange(60) if reject else np.flatnonzero(Y.any(axis=1))

    tuned = tune_decision(estimator, X, names, rules, cv=3, grid=GRID, tree=TREE)

    assert tuned.n_docs == used.size
    assert len(tuned.surface) == 2 + 3 + 1 + 2 * 2 * 4 + (len(rules) - 5) * 4
    fitted = [(LabelDecision(estimator, TopK()).fit(X[a], Y[a]), b) for a, b in folds(Y, 3)]
    for point in tuned.surface:
        predicted = np.zeros_like(Y)
        for model, test in fitted:
            model.classes_ = np.array(NAMES)
            predicted[test] = model.set_params(rule=make(point)).predict(X[test])
        for measure in MEASURES:
            right = getattr(metrics, measure)(Y[used], predicted[used])
            assert point[measure] == pytest.approx(right, abs=1e-12), (point, measure)


def test_one_fit_per_fold():
    """Hundreds of points need one fit per fold, and none with a fitted estimator."""
    X, Y = corpus()
    Counting.fits = 0

    tuned = tune_decision(Counting(), X, Y, cv=4)

    assert Counting.fits == 4
    assert len(tuned.surface) > 500
    model = Counting().fit(X, Y)
    tune_decision(model, X, Y, cv="prefit")
    assert Counting.fits == 5


def test_the_best_of_all():
    """The best rule has the highest score, is ready to use, and tuning again gives the same."""
    X, Y = corpus()

    tuned, again = (tune_decision(NaiveBayes(), X, names_of(Y), tree=TREE, cv=3) for _ in "ab")

    assert tuned.best_score == max(point["samples_f1"] for point in tuned.surface)
    assert tuned.surface == again.surface
    assert repr(tuned.best_rule) == repr(again.best_rule)
    assert list(tuned.best_rules) == list(RULES)
    for rule in tuned.best_rules.values():
        LabelDecision(NaiveBayes(), clone(rule)).fit(X, names_of(Y)).predict(X)


def test_the_middle_of_equal_points():
    """Of neighbouring ratios that are equally good, the middle one is chosen."""
    X, Y = np.eye(3)[[0, 1, 2] * 4] * 9, np.eye(3, dtype=int)[[0, 1, 2] * 4]

    tuned = tune_decision(NaiveBayes(), X, Y, [TNorm(0.3)], cv=2)

    good = [point["ratio"] for point in tuned.surface if point["samples_f1"] == tuned.best_score]
    assert tuned.best_rule.ratio == good[(len(good) - 1) // 2]


@pytest.mark.parametrize("metric", ["macro_f1", "hierarchical_f1", metrics.macro_f1])
def test_any_metric(metric):
    """Metrics that are not means over documents are computed from the decided labels."""
    X, Y = corpus()
    names = names_of(Y)

    tuned = tune_decision(
        NaiveBayes(), X, names, [TNorm(), TopK()], metric, cv=3, grid=GRID, tree=TREE
    )

    name = metric if isinstance(metric, str) else "macro_f1"
    used = np.flatnonzero(Y.any(axis=1))
    predicted = np.zeros_like(Y)
    for train, test in folds(Y, 3):
        model = LabelDecision(NaiveBayes(), tuned.best_rule).fit(X[train], Y[train])
        predicted[test] = model.predict(X[test])
    settings = {"tree": TREE, "classes": NAMES} if name == "hierarchical_f1" else {}
    right = getattr(metrics, name)(Y[used], predicted[used], **settings)
    assert tuned.metric == name
    assert tuned.best_score == pytest.approx(right)
    assert tuned.best_score == max(point[name] for point in tuned.surface)


def test_other_estimators_and_forms():
    """MML, pipelines on texts, sparse labels, splitters, pairs of rows and tables work."""
    pandas = pytest.importorskip("pandas")
    X, Y = corpus()
    texts = [" ".join("abcdefgh"[w] * 3 for w in np.repeat(np.arange(8), x)) for x in X]
    pipeline = make_pipeline(TextCounts(None), NaiveBayes())
    rules = [TNorm(), UnconstrainedCohort(), TopK()]

    by_texts = tune_decision(pipeline, texts, Y, rules, cv=KFold(3))
    by_rows = tune_decision(NaiveBayes(), X, sparse.csr_matrix(Y), rules, cv=KFold(3))
    by_table = tune_decision(NaiveBayes(), pandas.DataFrame(X), Y, rules, cv=KFold(3))
    by_margins = tune_decision(MML(), X, names_of(Y), rules, cv=[(range(40), range(40, 60))])

    assert by_table.surface == by_rows.surface
    assert by_texts.n_docs == by_rows.n_docs == Y.any(axis=1).sum()
    assert by_margins.n_docs == Y[40:].any(axis=1).sum()


def test_names_that_a_fold_never_saw():
    """A label whose documents are all held out has no score, as with an indicator."""
    X, Y = corpus()
    Y[:, 0] = 0
    Y[3, 0] = 1

    by_names = tune_decision(NaiveBayes(), X, names_of(Y), [TNorm(), TopK()], cv=3)
    by_columns = tune_decision(NaiveBayes(), X, Y, [TNorm(), TopK()], cv=3)

    assert by_names.surface == by_columns.surface


def test_labels_that_the_model_never_saw():
    """They count as missed, as in all metrics."""
    X, Y = corpus()
    names = names_of(Y)
    model = NaiveBayes().fit(X, names)
    tuned = tune_decision(model, X, names, [TopK()], cv="prefit", grid={"k": [2]})

    more = [row | {"zoo"} for row in names]
    missed = tune_decision(model, X, more, [TopK(reject=True)], cv="prefit", grid={"k": [2]})

    assert missed.best_score < tuned.best_score
    inside = LabelDecision(OneVsRestClassifier(LogisticRegression()), TopK()).fit(X, names)
    assert tune_decision(inside, X, names, cv="prefit").best_score > 0


def test_documents_without_labels_count_where_they_may_be_rejected():
    """A rule that may reject is right to leave documents without true labels unlabelled."""
    X, Y = np.eye(3)[[0, 1, 2, 2] * 4] * 9, np.eye(3, dtype=int)[[0, 1, 2, 2] * 4]
    Y[:, 2] = 0

    closed = tune_decision(NaiveBayes(), X, Y, [WorldModel()], cv=2)
    opened = tune_decision(NaiveBayes(), X, Y, [WorldModel(reject=True)], cv=2)

    assert (closed.n_docs, opened.n_docs) == (8, 16)
    assert "reject=True" in repr(opened)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"Y": [0, 1] * 30}, "one label per document"),
        ({"cv": "none"}, "cv == 'none', must be a number, 'prefit'"),
        ({"cv": []}, "cv yields no split"),
        ({"cv": 100}, "n_splits == 100"),
        ({"metric": "coverage"}, "metric == 'coverage', must be one of samples_f1"),
        ({"metric": "hierarchical_f1"}, "needs the tree of labels"),
        ({"rules": ["TopK"]}, "rules must be a list of rules"),
        ({"rules": TopK()}, "rules must be a list of rules"),
        ({"rules": iter([])}, "rules must be a list of rules"),
        ({"rules": [TNorm()], "grid": {"ratio": [0.5, float("nan")]}}, "ratio == nan"),
        ({"rules": [TreeCohort()]}, "TreeCohort has no tree of labels"),
        ({"grid": {"sizes": [1]}}, "grid has 'sizes'"),
        ({"grid": {"ratio": []}}, "grid has 'ratio'"),
        ({"grid": {"size": [1.5]}}, "must be whole numbers"),
        ({"grid": {"ratio": [0.5, 1.5]}}, "ratio == 1.5, must be <= 1"),
        ({"estimator": MML(), "rules": [WorldModel()]}, "MML has no world_score"),
        (
            {"estimator": NaiveBayes().fit(*corpus()), "cv": "prefit", "Y": "names"},
            "different labels",
        ),
    ],
)
def test_bad_arguments(arguments, sentence):
    """The error says in one sentence what is wrong."""
    X, Y = corpus()
    given = {"estimator": NaiveBayes(), "X": X, "Y": Y} | arguments
    given["Y"] = names_of(Y) if isinstance(given["Y"], str) else given["Y"]

    with pytest.raises(ValueError, match=sentence):
        tune_decision(**given)


def test_shown_as_a_table():
    """There is one line per rule with its parameters, the best first."""
    tuned = tune_decision(NaiveBayes(), *corpus(), [TopK(), MeanPlusStd(), TNorm()], cv=3)

    first, header, *rows = repr(tuned).splitlines()

    assert first == f"{tuned.n_docs} held-out documents"
    assert header.split() == [
        "rule",
        "samples_f1",
        "samples_precision",
        "samples_recall",
        "document_f1",
        "subset_accuracy",
    ]
    assert sorted(row.split("(")[0] for row in rows) == ["MeanPlusStd", "TNorm", "TopK"]
    assert f"{tuned.best_score:.4f}" in rows[0]


def test_plot():
    """The plots are the paper's figures: by ratio for each rule, and by size for each cohort."""
    pytest.importorskip("matplotlib")

    figure = tune_decision(NaiveBayes(), *corpus(), cv=3).plot()
    one_kind = tune_decision(NaiveBayes(), *corpus(), [UnconstrainedCohort()], cv=3).plot()
    alone = tune_decision(NaiveBayes(), *corpus(), [TNorm()], cv=3).plot()

    panels = [(axes.get_xlabel(), axes.get_title()[-4:-1]) for axes in figure.axes[1:]]
    assert panels == [("ratio", "ext"), ("size", "ext"), ("ratio", "est"), ("size", "est")]
    assert len(figure.axes[0].lines) == sum(not r.load().needs_tree for r in RULES.values())
    assert [axes.get_xlabel() for axes in one_kind.axes] == ["ratio", "ratio", "size"]
    assert len(alone.axes) == 1
    assert figure.get_figwidth() == one_kind.get_figwidth() == 3 * alone.get_figwidth()
    assert figure.get_figheight() == 2 * one_kind.get_figheight() == 2 * alone.get_figheight()


def test_both_cohorts():
    """Both kinds of cohort are tried unless a rule is given; a grid may name them."""
    cohort = UnconstrainedCohort(cohort="best")

    def kinds(**settings):
        tuned = tune_decision(NaiveBayes(), *corpus(), cv=3, **settings)
        return {point["cohort"] for point in tuned.surface}, tuned

    every, tuned = kinds()
    given, tuned_alone = kinds(rules=[cohort])
    named, _ = kinds(rules=[cohort], grid={"cohort": ["best", "next"]})

    assert every == {"next", "best", None}
    assert given == {"best"}
    assert named == {"next", "best"}
    assert tuned_alone.best_rule.cohort == "best"
    assert describe_rule(tuned_alone.best_rule).endswith(", cohort='best')")
    own = [p["samples_f1"] for p in tuned.surface if p["rule"] == "UnconstrainedCohort"]
    shown = describe_rule(tuned.best_rules["UnconstrainedCohort"])
    assert f"{max(own):.4f}" in next(row for row in repr(tuned).splitlines() if shown in row)


def test_plot_without_matplotlib(monkeypatch):
    """The error says what to install."""
    tuned = tune_decision(NaiveBayes(), *corpus(), [TopK()], cv=3)
    real = builtins.__import__

    def without(name, *arguments, **settings):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *arguments, **settings)

    monkeypatch.setattr(builtins, "__import__", without)

    with pytest.raises(PolytopicError, match=r"pip install 'polytopic\[plots\]'"):
        tuned.plot()


def test_documents_without_any_score():
    """They get the most frequent label set, as in a decision."""
    X, Y = corpus()
    rows = [(range(40), range(40, 60))]

    tuned = tune_decision(DecisionTreeClassifier(random_state=0), X, Y, iter([TNorm()]), cv=rows)

    model = LabelDecision(DecisionTreeClassifier(random_state=0), tuned.best_rule)
    used = 40 + np.flatnonzero(Y[40:].any(axis=1))
    predicted = model.fit(X[:40], Y[:40]).predict(X[used])
    assert predicted.any(axis=1).all()
    assert tuned.best_score == pytest.approx(metrics.samples_f1(Y[used], predicted))


class _Given:
    """A fitted estimator whose scores are the documents themselves."""

    def __init__(self, n_labels):
        self.classes_ = np.arange(n_labels)

    def decision_function(self, X):
        """Return the documents."""
        return np.asarray(X)


def test_the_grid():
    """By default, the values are those that the documentation lists."""
    rng = np.random.default_rng(0)
    scores, Y = rng.normal(size=(30, 130)), (rng.random((30, 130)) < 0.05).astype(int)
    rules = [UnconstrainedCohort(), TopK(), Threshold()]

    surface = tune_decision(_Given(130), scores, Y, rules, cv="prefit").surface

    by_rule = {
        name: [point for point in surface if point["rule"] == name]
        for name in ("UnconstrainedCohort", "TopK", "Threshold")
    }
    sizes = {point["size"] for point in by_rule["UnconstrainedCohort"]}
    assert sizes == {1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 80, 120}
    ratios = {point["ratio"] for point in by_rule["UnconstrainedCohort"]}
    assert ratios == {k / 100 for k in range(101)}
    assert {point["k"] for point in by_rule["TopK"]} == set(range(1, 11))


def test_thresholds_to_try():
    """Thresholds accept from an eighth to eight times as many labels as are true."""
    rng = np.random.default_rng(0)
    scores, Y = rng.normal(size=(200, 40)), (rng.random((200, 40)) < 0.05).astype(int)
    Y[np.arange(200), np.arange(200) % 40] = 1

    surface = tune_decision(_Given(40), scores, Y, [Threshold()], cv="prefit").surface

    values = sorted(point["value"] for point in surface)
    accepted = [(scores >= value).sum() / Y.sum() for value in (values[0], values[-1])]
    assert len(values) == 101
    assert accepted == pytest.approx([8, 0.125], rel=0.02)


def test_thresholds_without_any_finite_score():
    """Without scores to choose from, the threshold is zero."""
    scores = np.full((4, 2), -np.inf)

    tuned = tune_decision(_Given(2), scores, np.eye(2)[[0, 1, 0, 1]], [Threshold()], cv="prefit")

    assert [point["value"] for point in tuned.surface] == [0.0]


def test_nothing_to_measure_by():
    """At least one held-out document must have a label."""
    with pytest.raises(ValueError, match="No held-out document has a label"):
        tune_decision(_Given(2), np.eye(2), np.zeros((2, 2), dtype=int), [TopK()], cv="prefit")


def test_scores_of_other_labels():
    """An estimator must give one score for each of its labels."""
    with pytest.raises(ValueError, match=r"3 scores for 2 labels in classes_"):
        tune_decision(_Given(2), np.eye(3), np.eye(2)[[0, 1, 0]], [TopK()], cv="prefit")


def test_a_metric_of_labels_if_documents_may_be_rejected():
    """A metric that is not a mean over documents is that of the decided labels."""
    rng = np.random.default_rng(0)
    scores, Y = rng.normal(size=(30, 4)), (rng.random((30, 4)) < 0.4).astype(int)
    Y[0] = 1
    rules = [Threshold(reject=True)]

    tuned = tune_decision(
        _Given(4), scores, Y, rules, metric="macro_f1", cv="prefit", grid={"value": [0.0, 1.0]}
    )

    for point in tuned.surface:
        decided = Threshold(point["value"], reject=True).decide(scores)
        assert point["macro_f1"] == pytest.approx(metrics.macro_f1(Y, decided))
