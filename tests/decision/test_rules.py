"""Decision rules: against their twins, and by their laws."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.base import clone

from polytopic.decision import (
    MeanPlusStd,
    Threshold,
    TNorm,
    TopK,
    TreeCohort,
    UnconstrainedCohort,
    WorldModel,
)
from polytopic.decision import (
    rules as rules_module,
)
from polytopic.decision.registry import RULES
from polytopic.labels import LabelTree
from tests.twins import decision as twins

KINDS = [entry.load() for entry in RULES.values()]
LABELS = ["arts/film", "arts/opera", "arts/song", "science", "sport/golf", "sport/judo", "zoo"]
TREE = LabelTree.from_names(LABELS[:-1])  # "zoo" is not in the tree
PARENTS = ["arts", "arts", "arts", None, "sport", "sport", "zoo"]
SIBLINGS = {
    c: [o for o, p in enumerate(PARENTS) if o != c and p == PARENTS[c]] for c in range(len(PARENTS))
}
FEW = [-np.inf, -7.5, -1.0, 0.0, 0.5, 2.0, 9.0, np.inf]
RATIOS = st.sampled_from([0.0, 0.3, 0.5, 0.8, 1.0])
FIRST_BEST = (TopK, Threshold, MeanPlusStd)  # of equal labels, the first is accepted
SHIFTED = (UnconstrainedCohort, TreeCohort, TNorm, MeanPlusStd)  # a shift changes nothing


def score_arrays(elements=None, max_labels=7, min_labels=1):
    """Draw scores with ties, infinite ones, and any sign."""
    either = st.one_of(st.sampled_from(FEW), st.integers(-900, 900).map(lambda n: n / 8))
    shapes = st.tuples(st.integers(1, 4), st.integers(min_labels, max_labels))
    return hnp.arrays(np.float64, shapes, elements=either if elements is None else elements)


@st.composite
def rules(draw, *kinds):
    """Draw a rule of any kind with any parameters."""
    kind = draw(st.sampled_from(kinds or KINDS))
    settings = {"reject": draw(st.booleans())}
    if kind is TopK:
        settings["k"] = draw(st.integers(1, 8))
    if kind is Threshold:
        settings["value"] = draw(st.sampled_from([-np.inf, -3.0, 0.0, 0.5, 1.0]))
    if kind is TreeCohort:
        settings["tree"] = TREE
    if kind is UnconstrainedCohort:
        settings["size"] = draw(st.integers(1, 8))
        settings["cohort"] = draw(st.sampled_from(["next", "best"]))
    if kind.swept == "ratio":
        settings["ratio"] = draw(RATIOS)
    return kind(**settings)


def decide(rule, scores, order=None):
    """Return a rule's decision as booleans; a rule that needs a reference gets one."""
    order = np.arange(scores.shape[1]) if order is None else order
    rule.fit(scores, classes=[LABELS[c % len(LABELS)] + "+" * (c // len(LABELS)) for c in order])
    return rule.decide(scores, reference=np.linspace(-2, 1, len(scores))).toarray() > 0


def assert_as_twin(accepted, rule, row, **arguments):
    """Assert that the twin accepts the same labels, except where rounding may decide."""
    right, labels = twins.decide(rule, row, **arguments), set(np.flatnonzero(accepted))
    assert right.accepted - right.doubtful <= labels <= right.accepted | right.doubtful


@given(scores=score_arrays(), rule=rules(), single=st.booleans())
def test_rules_do_what_they_say(scores, rule, single):
    """Rules agree with their twins for ties and negative, missing and infinite scores."""
    scores = scores.astype(np.float32) if single else scores
    known = range(scores.shape[1])
    siblings = {c: [o for o in SIBLINGS[c] if o in known] for c in known}

    decided = decide(rule, scores)

    references = np.linspace(-2, 1, len(scores))
    for row, accepted, reference in zip(scores, decided, references, strict=True):
        assert_as_twin(accepted, rule, row, reference=reference, siblings=siblings)
        assert accepted.any() or rule.reject or row.max() == -np.inf
        assert (row[accepted] > -np.inf).all()


@given(rule=rules(), seed=st.integers(0, 2**32 - 1), single=st.booleans())
def test_rules_on_many_labels(rule, seed, single):
    """The same for hundreds of labels, many of them with equal scores."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(-300, 40, (3, 260))
    scores[1] = np.round(scores[1], -1)
    scores[2, rng.random(260) < 0.9] = -np.inf
    scores = scores.astype(np.float32 if single else np.float64)
    if isinstance(rule, UnconstrainedCohort):
        rule.size = int(rng.integers(1, 280))
    if isinstance(rule, TopK):
        rule.k = int(rng.integers(1, 280))
    if isinstance(rule, Threshold):
        rule.value = -250.0
    groups = rng.integers(0, 30, 260)
    siblings = {c: [o for o in np.flatnonzero(groups == groups[c]) if o != c] for c in range(260)}
    if isinstance(rule, TreeCohort):
        rule.tree = LabelTree.from_names([f"{g}/{c}" for c, g in enumerate(groups)])
        rule.fit(classes=[f"{g}/{c}" for c, g in enumerate(groups)])

    decided = rule.decide(scores, reference=np.full(3, -310.0)).toarray() > 0

    for row, accepted in zip(scores, decided, strict=True):
        assert_as_twin(accepted, rule, row, reference=-310.0, siblings=siblings)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 15, 80, 300])
def test_many_documents_with_the_next_labels(size, dtype):
    """Few labels are sorted for many documents together; labels without a score change nothing."""
    rng = np.random.default_rng(size)
    scores = rng.normal(-300, 40, (160, 130)).astype(dtype)
    scores[40:80] = np.round(scores[40:80], -1)
    scores[80:120][rng.random((40, 130)) < 0.5] = -np.inf
    scores[7], scores[8, 3] = -np.inf, np.inf
    wide = np.hstack([scores, np.full((160, 200), -np.inf, dtype)])
    for ratio in (0.0, 0.2, 0.7, 1.0):
        rule = UnconstrainedCohort(size, ratio)

        decided = rule.decide(scores).toarray() > 0

        for row, accepted in zip(scores, decided, strict=True):
            assert_as_twin(accepted, rule, row)
        np.testing.assert_array_equal(rule.decide(wide).toarray()[:, :130] > 0, decided)


@given(
    scores=score_arrays(),
    rule=rules(WorldModel, UnconstrainedCohort, TreeCohort, TNorm),
    low=st.floats(0, 1),
    high=st.floats(0, 1),
)
def test_monotone_in_the_ratio(scores, rule, low, high):
    """A higher ratio never accepts more labels, even if the best score is negative."""
    low, high = sorted([low, high])

    many = decide(clone(rule).set_params(ratio=low), scores)
    few = decide(clone(rule).set_params(ratio=high), scores)

    assert (few <= many).all()


def is_clear(rule, row):
    """Return whether neither rounding nor the order of equal scores decides a document."""
    known = range(len(row))
    siblings = {c: [o for o in SIBLINGS[c] if o in known] for c in known}
    doubtful = twins.decide(rule, row, siblings=siblings).doubtful
    return not doubtful and (rule.swept == "ratio" or len(set(row.tolist())) == len(row))


@given(scores=score_arrays(), rule=rules(), seed=st.integers(0, 99))
def test_order_does_not_matter(scores, rule, seed):
    """The order of documents, and except for equal scores that of labels, does not matter."""
    rng = np.random.default_rng(seed)
    reference = np.zeros(len(scores))
    docs, columns = rng.permutation(len(scores)), rng.permutation(scores.shape[1])
    rule.fit(classes=LABELS[: scores.shape[1]])

    decided = rule.decide(scores, reference=reference).toarray()
    by_docs = rule.decide(scores[docs], reference=reference).toarray()
    rule.fit(classes=[LABELS[c] for c in columns])
    by_columns = rule.decide(scores[:, columns], reference=reference).toarray()

    np.testing.assert_array_equal(by_docs, decided[docs])
    clear = [is_clear(rule, row) for row in scores]
    np.testing.assert_array_equal(by_columns[clear], decided[:, columns][clear])


@given(
    scores=score_arrays(st.sampled_from([-np.inf, -8.0, -1.0, 0.0, 4.0, 64.0])),
    rule=rules(*SHIFTED),
    shift=st.integers(-1000, 1000),
)
def test_a_shift_changes_nothing(scores, rule, shift):
    """Rules that compare scores ignore a constant that is added to all of them."""
    clear = [isinstance(rule, MeanPlusStd) or is_clear(rule, row) for row in scores]

    decided, shifted = decide(rule, scores), decide(rule, scores + shift)

    np.testing.assert_array_equal(shifted[clear], decided[clear])


@pytest.mark.parametrize("kind", KINDS)
def test_equal_scores(kind):
    """If all labels are equally good, ratio rules accept all, and others all or the first."""
    rule = kind(TREE) if kind is TreeCohort else kind()

    decided = decide(rule, np.full((2, 7), -0.1))

    accepted = {7} if kind.swept == "ratio" else {1} if kind in FIRST_BEST else {1, 7}
    assert set(decided.sum(axis=1)) <= accepted
    assert decided[:, 0].all()
    if kind in SHIFTED:
        assert not decide(rule.set_params(reject=True), np.full((2, 7), -0.1)).any()


@pytest.mark.parametrize("kind", KINDS)
def test_one_label(kind):
    """One label is accepted, however bad it is."""
    rule = kind(TREE) if kind is TreeCohort else kind()

    assert decide(rule, np.array([[-9.0], [0.0], [3.0], [-np.inf]])).tolist() == [
        [True],
        [True],
        [True],
        [False],
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_forms_of_scores(kind, monkeypatch):
    """Scores may have any type and memory layout, and there may be no document."""
    rng = np.random.default_rng(0)
    scores = rng.integers(-50, 50, (40, 7))
    rule = kind(TREE) if kind is TreeCohort else kind()
    expected = decide(rule, scores.astype(np.float64))

    for form in (scores, scores.astype(np.float32), np.asfortranarray(scores), scores.astype("f2")):
        np.testing.assert_array_equal(decide(rule, form), expected)
    monkeypatch.setattr(rules_module, "BLOCK_CELLS", 20)
    np.testing.assert_array_equal(decide(rule, scores), expected)
    none = rule.decide(np.empty((0, 7)), reference=[])
    assert sparse.issparse(none)
    assert none.shape == (0, 7)
    assert rule.decide(scores.tolist(), reference=np.zeros(40)).has_sorted_indices


def test_the_paper_for_a_negative_best():
    """If the best is below the general model, the literal ratio would accept no label."""
    scores, reference = [[-30.0, -33.0, -60.0]], [-20.0]

    assert WorldModel(0.7).decide(scores, reference=reference).toarray().tolist() == [[1, 1, 0]]
    assert WorldModel(1.0).decide(scores, reference=reference).toarray().tolist() == [[1, 0, 0]]
    assert not WorldModel(0.7, reject=True).decide(scores, reference=reference).nnz


def test_a_cohort_of_the_next_labels():
    """The paper's cohort by hand: ties share one, it may be small, and it is empty for the last."""
    scores = [[-1.0, -4.0, -4.0, -9.0, -10.0, -np.inf]]  # z: 3, 5.5, 5.5, 1, 0, none

    def accepted(ratio):
        return UnconstrainedCohort(2, ratio).decide(scores).toarray()[0].astype(int).tolist()

    assert accepted(1.0) == [1, 1, 1, 0, 0, 0]
    assert accepted(0.4) == [1, 1, 1, 0, 0, 0]
    assert accepted(0.3) == [1, 1, 1, 1, 0, 0]
    assert accepted(0.0) == [1, 1, 1, 1, 1, 0]


@given(scores=score_arrays(), rule=rules())
def test_a_higher_score_is_never_worse(scores, rule):
    """A label that scores higher than an accepted one is accepted, too.

    This does not hold for siblings; with a cohort of next labels, it holds for the best score only.
    """
    for row, accepted in zip(scores, decide(rule, scores), strict=True):
        if accepted.any() and getattr(rule, "cohort", None) == "next":
            assert accepted[row == row.max()].all()
        elif accepted.any() and not isinstance(rule, TreeCohort):
            assert accepted[row > row[accepted].min()].all()


@given(rule=rules(UnconstrainedCohort, WorldModel, TNorm), scores=score_arrays())
def test_equal_scores_have_equal_answers(scores, rule):
    """Labels with equal scores are accepted together, for any ratio and cohort."""
    for row, accepted in zip(scores, decide(rule, scores), strict=True):
        assert all(len(set(accepted[row == score])) == 1 for score in set(row.tolist()))


def test_siblings_by_the_tree():
    """Siblings share a parent among the scored labels; labels without any are compared with all."""
    rule = TreeCohort(TREE).fit(classes=LABELS)

    groups = [np.flatnonzero(rule.group_ == g).tolist() for g in np.unique(rule.group_)]

    assert groups == [[0, 1, 2], [3], [4, 5], [6]]
    assert TreeCohort(TREE).fit(classes=np.array(LABELS)[[0, 3]]).group_.tolist() == [0, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_nan_is_rejected(kind):
    """NaN is rejected anywhere, even if all other scores are missing."""
    rule = kind(TREE) if kind is TreeCohort else kind()
    for place in range(3):
        scores = np.array([[1.0, -np.inf, 0.5], [-np.inf] * 3])
        for row in range(2):
            broken = scores.copy()
            broken[row, place] = np.nan
            with pytest.raises(ValueError, match="scores contain NaN; use -inf for a label"):
                decide(rule, broken)


@pytest.mark.parametrize(
    ("decide", "sentence"),
    [
        (lambda: TopK(0).decide([[1.0]]), "k == 0, must be >= 1"),
        (lambda: WorldModel(1.5).decide([[1.0]], reference=[0.0]), "ratio == 1.5, must be <= 1"),
        (lambda: TNorm(-0.1).decide([[1.0]]), "ratio == -0.1, must be >= 0"),
        (lambda: UnconstrainedCohort(0).decide([[1.0]]), "size == 0, must be >= 1"),
        (
            lambda: UnconstrainedCohort(cohort="all").decide([[1.0]]),
            "cohort == 'all', must be 'next' or 'best'",
        ),
        (lambda: Threshold(float("nan")).decide([[1.0]]), "value == nan"),
        (lambda: TopK().decide([1.0, 2.0]), r"shape \(2,\)"),
        (lambda: WorldModel().decide([[1.0]]), "WorldModel needs reference"),
        (lambda: WorldModel().decide([[1.0]], reference=[1.0, 2.0]), "1 finite numbers are needed"),
        (lambda: TreeCohort(TREE).decide([[1.0]]), "does not know the labels of the columns"),
        (lambda: TreeCohort(TREE).fit(), "TreeCohort needs classes"),
        (lambda: TreeCohort().fit(classes=["a"]), "TreeCohort has no tree of labels"),
        (
            lambda: TreeCohort(TREE).fit(classes=["a"]).decide([[1.0, 2.0]]),
            "scores have 2 columns, and TreeCohort was fitted on 1 labels",
        ),
    ],
)
def test_bad_scores_and_parameters(decide, sentence):
    """The error says in one sentence what is wrong."""
    with pytest.raises(ValueError, match=sentence):
        decide()


@pytest.mark.parametrize("kind", KINDS)
def test_copies_of_rules(kind):
    """A clone is not fitted and has the same parameters; a pickle decides the same."""
    rule = (kind(TREE) if kind is TreeCohort else kind()).fit(classes=LABELS)
    scores = np.random.default_rng(0).normal(size=(5, 7))

    again = pickle.loads(pickle.dumps(rule))  # noqa: S301

    assert clone(rule).get_params() == rule.get_params()
    answers, expected = (r.decide(scores, reference=np.zeros(5)) for r in (again, rule))
    assert (answers != expected).nnz == 0


@given(
    scores=score_arrays(min_labels=3),
    rule=rules(),
    seed=st.integers(0, 99),
)
def test_counting_along_a_parameter(scores, rule, seed):
    """One pass counts the same labels as a decision for each value."""
    values = {"k": [6, 3, 2, 1], "value": [-3.0, 0.0, 0.5], "ratio": [0.0, 0.3, 0.8, 1.0]}.get(
        rule.swept
    )
    Y = sparse.csr_matrix(np.random.default_rng(seed).integers(0, 2, scores.shape))
    reference = np.linspace(-2, 1, len(scores))
    rule.fit(classes=LABELS[: scores.shape[1]])

    (counted,) = rule.count(
        scores,
        Y,
        values,
        reference=reference,
        measure=lambda accepted, right, rows: (accepted, right),
    )

    for place, value in enumerate([None] if values is None else values):
        if value is not None:
            setattr(rule, rule.swept, value)
        decided = rule.decide(scores, reference=reference)
        assert counted[0][:, place].tolist() == decided.sum(axis=1).A1.tolist()
        assert counted[1][:, place].tolist() == decided.multiply(Y).sum(axis=1).A1.tolist()


@pytest.mark.parametrize("kind", [WorldModel, UnconstrainedCohort, TreeCohort, TNorm])
def test_a_ratio_that_is_no_number(kind):
    """NaN is rejected, not treated as a ratio of one."""
    rule = kind(TREE) if kind is TreeCohort else kind()

    with pytest.raises(ValueError, match="ratio == nan"):
        decide(rule.set_params(ratio=float("nan")), np.ones((1, 3)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("power", [1, 8, 40])
def test_scores_that_lie_far_below_the_best(dtype, power):
    """Rules agree with their twins if one probability is near 1 and the others near 0."""
    rng = np.random.default_rng(power)
    scores = (1e-12 * rng.random((6, 300)) ** power).astype(dtype)
    scores[3:] = np.round(scores[3:], 13)
    scores[:, 7] = 1.0
    for size in (1, 2, 15, 100, 299, 300):
        cohorts = [
            UnconstrainedCohort(size, ratio, cohort)
            for ratio in (0.3, 1e-13)
            for cohort in ("next", "best")
        ]
        for rule in (TopK(size), *cohorts):
            decided = rule.decide(scores).toarray() > 0

            for row, accepted in zip(scores, decided, strict=True):
                assert_as_twin(accepted, rule, row)


@pytest.mark.parametrize("reject", [1, None, "no"])
def test_rejecting_is_true_or_false(reject):
    """Any other value of reject raises an error."""
    with pytest.raises(TypeError, match=r"reject == .*, must be True or False"):
        TopK(reject=reject).decide([[0.5, 0.2]])


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (TopK(2**63), "k == 9223372036854775808, must be <= 2147483647"),
        (Threshold(float("nan")), "value == nan, must be a number"),
        (Threshold(10**400), "value == 10+, must be a number"),
    ],
)
def test_values_beyond_their_borders(rule, sentence):
    """The message names the parameter."""
    with pytest.raises(ValueError, match=sentence):
        rule.decide([[0.5, 0.1]])


def test_a_tree_that_is_none():
    """What is passed as the tree must be one."""
    with pytest.raises(TypeError, match="tree is a str, must be a LabelTree"):
        TreeCohort("x").fit(classes=["x", "y"])


def test_fractions_are_thresholds():
    """Any real number is a threshold."""
    assert Threshold(Fraction(1, 3)).decide([[0.5, 0.1]]).toarray().tolist() == [[1.0, 0.0]]
