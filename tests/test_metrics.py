"""Measures: worked examples, slow twins, scikit-learn, and what changes nothing."""

import math
import pickle
import warnings
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import metrics as sk

from polytopic.labels import LabelTree
from polytopic.metrics import (
    by_level,
    class_perplexity,
    coverage,
    document_f1,
    evaluate,
    hierarchical_f1,
    hierarchical_precision,
    hierarchical_recall,
    macro_f1,
    micro_f1,
    ndcg_at_k,
    precision_at_k,
    ranking,
    samples_f1,
    samples_precision,
    samples_recall,
    subset_accuracy,
)
from polytopic.metrics.tally import Tally

SET_MEASURES = [
    samples_f1,
    subset_accuracy,
    macro_f1,
    micro_f1,
    samples_precision,
    samples_recall,
    document_f1,
]
SCORE_MEASURES = {
    "precision": lambda Y, scores, **classes: precision_at_k(Y, scores, 2, **classes),
    "ndcg": lambda Y, scores, **classes: ndcg_at_k(Y, scores, 2, **classes),
    "coverage": coverage,
}
FORMS = {
    "dense": np.asarray,
    "lists": lambda Y: np.asarray(Y).tolist(),
    "bool": lambda Y: np.asarray(Y, dtype=bool),
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "coo": sparse.coo_array,
    "float": lambda Y: sparse.csr_array(np.asarray(Y, dtype=float)),
}


class Paths:
    """A tree of paths, known only by its ancestors."""

    def ancestors(self, label):
        """Return the paths above, nearest first."""
        steps = label.split("/")
        return ["/".join(steps[:stop]) for stop in range(len(steps) - 1, 0, -1)]


@st.composite
def label_pairs(draw, min_labels=1):
    """Draw true and predicted labels of a few documents."""
    shape = draw(st.tuples(st.integers(1, 6), st.integers(min_labels, 5)))
    cells = st.lists(st.integers(0, 1), min_size=math.prod(shape), max_size=math.prod(shape))
    return tuple(np.array(draw(cells)).reshape(shape) for _ in range(2))


@st.composite
def scored(draw, min_labels=1, values=(-2.0, -0.5, 0.0, 0.0, 0.25, 1.0, 3.0)):
    """Draw true labels and scores with many ties."""
    Y, _ = draw(label_pairs(min_labels))
    cells = st.lists(st.sampled_from(values), min_size=Y.size, max_size=Y.size)
    return Y, np.array(draw(cells)).reshape(Y.shape)


def names(Y):
    """Return an indicator as sets of names."""
    return [{f"label {j}" for j in np.flatnonzero(row)} for row in np.asarray(Y)]


def columns(Y):
    """Return the name of each column."""
    return [f"label {j}" for j in range(np.shape(Y)[1])]


def twin(Y_true, Y_pred):
    """Return all measures of label sets, told with Python sets."""
    pairs = list(zip(names(Y_true), names(Y_pred), strict=True))
    precision = np.mean([share(t & p, p, not t) for t, p in pairs])
    recall = np.mean([share(t & p, t, not p) for t, p in pairs])
    topics = [[set(np.flatnonzero(column)) for column in np.transpose(Y)] for Y in (Y_true, Y_pred)]
    both = precision + recall
    return {
        "samples_f1": np.mean([dice(t, p, 1) for t, p in pairs]),
        "subset_accuracy": np.mean([t == p for t, p in pairs]),
        "macro_f1": np.mean([dice(t, p, 0) for t, p in zip(*topics, strict=True)]),
        "micro_f1": dice(numbered(names(Y_true)), numbered(names(Y_pred)), 1),
        "samples_precision": precision,
        "samples_recall": recall,
        "document_f1": 2 * precision * recall / both if both else 0,
    }


def numbered(rows):
    """Return all pairs of document and label."""
    return {(i, label) for i, row in enumerate(rows) for label in row}


def dice(t, p, empty):
    """Return the F-measure of two sets."""
    return 2 * len(t & p) / (len(t) + len(p)) if t or p else empty


def share(part, whole, empty):
    """Return the size of a part in a whole."""
    return len(part) / len(whole) if whole else float(empty)


def ranking_twin(Y_true, scores, k):
    """Return precision and nDCG at k of one document, averaged over all orders that ties allow."""
    labels = range(len(scores))
    best_first = sorted(scores, reverse=True)
    orders = [o for o in permutations(labels) if [scores[j] for j in o] == best_first]
    best = sum(1 / math.log2(r + 2) for r in range(min(k, sum(Y_true))))
    hits = [[Y_true[j] and scores[j] > -np.inf for j in order[:k]] for order in orders]
    gains = [sum(hit / math.log2(r + 2) for r, hit in enumerate(row)) for row in hits]
    return np.mean([sum(row) / k for row in hits]), np.mean(gains) / best if best else 0


def test_label_sets_by_hand():
    """One miss, one wrong guess, one document right, one without prediction, one empty twice."""
    true = [["a", "b"], ["c"], ["a"], ["b"], []]
    pred = [["a"], ["c", "d"], ["a"], [], []]

    values = evaluate(true, pred)

    assert values == pytest.approx(
        {
            "samples_f1": (2 / 3 + 2 / 3 + 1 + 0 + 1) / 5,
            "subset_accuracy": 2 / 5,
            "macro_f1": (1 + 0 + 1 + 0) / 4,
            "micro_f1": 6 / 9,
            "samples_precision": (1 + 1 / 2 + 1 + 0 + 1) / 5,
            "samples_recall": (1 / 2 + 1 + 1 + 0 + 1) / 5,
            "document_f1": 0.7,
        }
    )
    assert list(values) == [measure.__name__ for measure in SET_MEASURES]


def test_predictions_without_truth():
    """Labels for a document that has none earn nothing, in recall too."""
    for measure in SET_MEASURES:
        assert measure([[]], [["a"]]) == 0


def test_nothing_at_all():
    """No labels on either side are a perfect match of documents, and no topics at all."""
    for measure in set(SET_MEASURES) - {macro_f1}:
        assert measure([[], []], [[], []]) == 1
        assert measure(np.zeros((2, 3)), np.zeros((2, 3))) == 1
    assert macro_f1([[], []], [[], []]) == 0
    assert macro_f1(np.zeros((2, 3)), np.zeros((2, 3))) == 0


def test_unseen_label_is_missed():
    """A true label that the model never saw counts against it."""
    assert samples_recall([["new", "a"]], [["a"]]) == 0.5
    assert macro_f1([["new", "a"]], [["a"]]) == 0.5


def test_f1_is_of_the_averages():
    """Eq. (9) takes F of mean precision and mean recall, not the mean of F."""
    true, pred = [["a", "b", "c"], ["d"]], [["a"], ["d", "e", "f"]]

    assert document_f1(true, pred) == pytest.approx(2 / 3)
    assert samples_f1(true, pred) == pytest.approx(1 / 2)


@given(label_pairs())
def test_label_sets_as_told(pair):
    """The measures agree with Python sets, in every form."""
    expected = pytest.approx(twin(*pair))

    assert evaluate(*pair) == expected
    assert evaluate(*map(sparse.csr_array, pair)) == expected
    assert evaluate(*map(names, pair), classes=columns(pair[0])) == expected


@given(label_pairs(min_labels=2))
def test_label_sets_as_scikit_learn(pair):
    """Where scikit-learn defines the measure, the values are the same."""
    assert subset_accuracy(*pair) == pytest.approx(sk.accuracy_score(*pair))
    for measure, average, empty in [
        (samples_f1, "samples", 1.0),
        (macro_f1, "macro", 0.0),
        (micro_f1, "micro", 1.0),
    ]:
        expected = sk.f1_score(*pair, average=average, zero_division=empty)
        assert measure(*pair) == pytest.approx(expected)


@given(label_pairs(min_labels=2))
def test_documents_as_scikit_learn(pair):
    """Precision and recall agree where no document is empty twice."""
    pair[0][:, 0] |= ~(pair[0] | pair[1]).any(axis=1)

    for measure, twin in [
        (samples_precision, sk.precision_score),
        (samples_recall, sk.recall_score),
    ]:
        expected = twin(*pair, average="samples", zero_division=0)
        assert measure(*pair) == pytest.approx(expected)


@pytest.mark.parametrize("pred_form", FORMS)
@pytest.mark.parametrize("true_form", FORMS)
def test_any_mix_of_forms(true_form, pred_form):
    """Dense and sparse go together."""
    rng = np.random.default_rng(0)
    Y_true, Y_pred = rng.integers(0, 2, (2, 7, 4))
    true, pred = FORMS[true_form](Y_true), FORMS[pred_form](Y_pred)

    values = evaluate(true, pred, Y_pred * 0.5)

    assert values == evaluate(Y_true, Y_pred, Y_pred * 0.5)


def test_forms_of_names():
    """Tuples, sets, arrays and repeated names mean the same."""
    expected = evaluate([["a", "b"], ["b", "c"]], [["a"], ["c"]])

    assert evaluate((("b", "a", "a"), {"b", "c"}), [{"a"}, np.array(["c"])]) == expected
    assert evaluate(np.array([["a", "b"], ["b", "c"]]), [["a"], ["c"]]) == expected


def test_input_is_left_alone():
    """Stored zeros and unsorted columns are read, not tidied in the caller's matrix."""
    Y = sparse.csr_array((np.array([1, 0, 1]), [2, 1, 0], [0, 3]), shape=(1, 3))

    value = subset_accuracy(Y, [[1, 0, 1]])

    assert value == 1
    assert Y.nnz == 3
    assert list(Y.indices) == [2, 1, 0]


@given(scored(), st.randoms(use_true_random=False))
def test_order_changes_nothing(case, random):
    """Documents and labels may come in any order."""
    Y, scores = case
    docs, labels = list(range(Y.shape[0])), list(range(Y.shape[1]))
    random.shuffle(docs)
    random.shuffle(labels)
    pred = scores > 0

    moved = [array[np.ix_(docs, labels)] for array in (Y, pred, scores)]

    assert evaluate(*moved) == pytest.approx(evaluate(Y, pred, scores))


def test_rankings_by_hand():
    """The worked example: true labels at ranks 1 and 3, and a tie for rank 1."""
    Y, scores = [[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.1], [0.2, 0.7, 0.7]]
    third = 1 / math.log2(3)

    assert precision_at_k(Y, scores, 1) == pytest.approx((1 + 1 / 2) / 2)
    assert precision_at_k(Y, scores, 4) == pytest.approx((2 / 4 + 1 / 4) / 2)
    assert ndcg_at_k(Y, scores, 1) == pytest.approx((1 + 1 / 2) / 2)
    assert ndcg_at_k(Y, scores, 3) == pytest.approx((1.5 / (1 + third) + (1 + third) / 2) / 2)
    assert coverage(Y, scores) == (3 + 2) / 2


@given(scored(values=(-np.inf, -1.0, 0.0, 0.5, 2.0)), st.integers(1, 7))
def test_rankings_as_told(case, k):
    """Precision and nDCG are means over all orders that ties allow; -inf is never listed."""
    expected = np.mean([ranking_twin(*row, k) for row in zip(*case, strict=True)], axis=0)

    assert precision_at_k(*case, k) == pytest.approx(expected[0])
    assert ndcg_at_k(*case, k) == pytest.approx(expected[1])


@given(scored(min_labels=2), st.integers(1, 7))
def test_rankings_as_scikit_learn(case, k):
    """Coverage and nDCG agree with scikit-learn, ties and documents without labels included."""
    assert ndcg_at_k(*case, k) == pytest.approx(sk.ndcg_score(*case, k=k))
    assert coverage(*case) == pytest.approx(sk.coverage_error(*case))


@given(scored())
def test_sparse_scores(case):
    """A score that is not stored is 0, above negative ones."""
    Y, scores = case
    for measure in SCORE_MEASURES.values():
        expected = pytest.approx(measure(Y, scores))

        assert measure(Y, sparse.csr_array(scores)) == expected
        assert measure(sparse.csr_array(Y), sparse.coo_matrix(scores)) == expected
        assert measure(names(Y), scores, classes=columns(Y)) == expected


@pytest.mark.parametrize("measure", SCORE_MEASURES.values(), ids=SCORE_MEASURES)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_unseen_label_in_rankings(measure, form):
    """A label outside classes is like a last column of -inf."""
    scores = np.array([[0.0, 0.5], [-1.0, 0.0], [0.0, 0.0]])
    with_column = np.column_stack([scores, np.full(3, -np.inf)])

    value = measure([["a", "new"], ["b"], ["new"]], form(scores), classes=["a", "b"])

    assert value == measure([[1, 0, 1], [0, 1, 0], [0, 0, 1]], with_column)


def test_infinite_scores():
    """Infinities are ranked; +inf is best, -inf is never listed but is covered last."""
    scores = [[np.inf, 0.0, -np.inf, -np.inf]]

    assert precision_at_k([[1, 0, 0, 0]], scores, 1) == 1
    assert precision_at_k([[0, 0, 1, 0]], scores, 4) == 0
    assert coverage([[0, 0, 1, 0]], scores) == 4


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_blocks(monkeypatch, form):
    """Values do not depend on how many documents are ranked at once."""
    rng = np.random.default_rng(1)
    Y, scores = rng.integers(0, 2, (20, 5)), rng.integers(-2, 3, (20, 5)) / 2
    proba = form(rng.random((20, 5)))
    expected = evaluate(Y, Y, form(scores)), class_perplexity(Y, proba)

    monkeypatch.setattr(ranking, "BLOCK_CELLS", 15)
    monkeypatch.setattr(ranking, "BLOCK_DOCS", 3)

    assert evaluate(Y, Y, form(scores)) == pytest.approx(expected[0])
    assert class_perplexity(Y, proba) == pytest.approx(expected[1])


def test_evaluate_with_scores():
    """Rankings follow the label sets, in a fixed order."""
    values = evaluate([[1, 0]], [[1, 0]], [[2.0, 1.0]])

    assert list(values)[len(SET_MEASURES) :] == [
        "precision_at_1",
        "precision_at_3",
        "precision_at_5",
        "ndcg_at_3",
        "ndcg_at_5",
        "coverage",
    ]
    assert values["precision_at_1"] == values["ndcg_at_5"] == values["coverage"] == 1
    assert all(type(value) is float for value in values.values())


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_perplexity_by_hand(form):
    """Eq. (15): the inverse of the geometric mean of 1/2, 1/4 and 1/8."""
    proba = form([[0.5, 0.25, 0.25], [0.0, 0.875, 0.125]])

    assert class_perplexity([[1, 1, 0], [0, 0, 1]], proba) == pytest.approx(4)
    assert class_perplexity([["a", "b"], ["c"]], proba, classes=["a", "b", "c"]) == pytest.approx(4)
    assert class_perplexity([[1, 1, 0], [0, 0, 0]], proba) == pytest.approx(math.sqrt(8))


def test_perplexity_of_the_impossible():
    """A true label of probability 0, or unseen, makes it infinite, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert class_perplexity([[1, 0]], [[0.0, 1.0]]) == math.inf
        assert class_perplexity([[1, 0]], sparse.csr_array([[0.0, 1.0]])) == math.inf
        assert class_perplexity([["new"]], [[0.5, 0.5]], classes=["a", "b"]) == math.inf


def test_hierarchy_by_hand():
    """A near miss shares its ancestors; sets count each ancestor once."""
    true = [["s/space/mars", "s/space/moon"], ["t"]]
    pred = [["s/space", "s/bio"], []]

    assert hierarchical_precision(true, pred, Paths()) == pytest.approx(2 / 3)
    assert hierarchical_recall(true, pred, Paths()) == pytest.approx(2 / 5)
    assert hierarchical_f1(true, pred, Paths()) == pytest.approx(4 / 8)


def test_hierarchy_edges():
    """Nothing against nothing is right, anything against nothing wrong."""
    for measure in (hierarchical_f1, hierarchical_precision, hierarchical_recall):
        assert measure([[]], [[]], Paths()) == 1
        assert measure([["a/b"]], [[]], Paths()) == 0
        assert measure([[]], [["a/b"]], Paths()) == 0


@given(label_pairs())
def test_hierarchy_as_told(pair):
    """The measures agree with Python sets, as names and as indicators."""
    classes = ["a", "a/b", "a/b/c", "d/e", "d/f"][: pair[0].shape[1]]
    sides = [[[classes[j] for j in np.flatnonzero(row)] for row in Y] for Y in pair]
    true, pred = (
        {(i, node) for i, c in side for node in [c, *Paths().ancestors(c)]}
        for side in map(numbered, sides)
    )

    for value in (
        hierarchical_f1(*sides, Paths()),
        hierarchical_f1(*pair, Paths(), classes),
        hierarchical_f1(*map(sparse.csr_array, pair), Paths(), np.array(classes)),
    ):
        assert value == pytest.approx(dice(true, pred, 1))
    precision = hierarchical_precision(*sides, Paths())
    assert precision == pytest.approx(share(true & pred, pred, not true))
    assert hierarchical_recall(*sides, Paths()) == pytest.approx(share(true & pred, true, not pred))


@pytest.mark.parametrize(
    ("true", "pred", "sentence"),
    [
        ([[1, 0]], [[1], [0]], "Y_true has 1 documents and Y_pred 2, must be the same."),
        ([[1, 0]], [[1]], r"Y_true has 2 labels \(columns\) and Y_pred 1, must be the same."),
        ([["a"]], [["a"], ["b"]], "Y_true has 1 documents and Y_pred 2"),
        ([], [], "Y_true has 0 documents, needs at least 1."),
        (np.zeros((0, 3)), np.zeros((0, 3)), "Y_true has 0 documents"),
        ([[1, 0]], [[2, 0]], "Y_pred holds 2, must be 0 or 1."),
        ([[0.5, 0]], [[1, 0]], "Y_true holds 0.5, must be 0 or 1."),
        ([[np.nan, 0]], [[1, 0]], "Y_true holds nan, must be 0 or 1."),
        (sparse.csr_array([[-1, 0]]), [[1, 0]], "Y_true holds -1, must be 0 or 1."),
        ([["a"]], [[1]], "must both hold label names or both be indicators"),
        (["a", "b"], ["a", "b"], "Y_true has 1 dimension"),
        ([0, 1], [0, 1], "Y_true has 1 dimension"),
        (np.array([0, 1]), [[0, 1]], r"Y_true has shape \(2,\), needs \(n_docs, n_labels\)."),
        ([[1, 0], [1]], [[1, 0], [1, 0]], "Y_true has rows of different lengths."),
        ([["a", 1]], [["a"]], "Y_true must hold 0 and 1, or label names that are strings."),
        ([{1, 2}], [{1}], "Y_true must hold 0 and 1, or label names"),
    ],
)
def test_refused_labels(true, pred, sentence):
    """What is wrong is named, by every measure of label sets."""
    for measure in [*SET_MEASURES, evaluate]:
        with pytest.raises(ValueError, match=sentence):
            measure(true, pred)


@pytest.mark.parametrize(
    ("true", "scores", "classes", "sentence"),
    [
        ([[1, 0]], [[0.1, np.nan]], None, "holds NaN"),
        ([[1, 0]], sparse.csr_array([[0.1, np.nan]]), None, "holds NaN"),
        ([[1, 0]], [[0.1]], None, r"Y_true has 2 labels \(columns\) and \w+ 1"),
        ([[1, 0]], [[0.1, 0.2]] * 2, None, r"Y_true has 1 documents and \w+ 2"),
        ([[1, 0]], [0.1, 0.2], None, r"has shape \(2,\), needs \(n_docs, n_labels\)."),
        ([[1, 0]], [["x", "y"]], None, "must hold numbers."),
        ([["a"]], [[0.1, 0.2]], None, "Y_true holds names: give the label of each column"),
        ([["a"]], [[0.1, 0.2]], ["a"], "classes has 1 labels for 2 columns."),
        ([[1, 0]], [[0.1, 0.2]], ["a"], "classes has 1 labels for 2 columns."),
        ([["a"]], [[0.1, 0.2]], ["a", "a"], "classes holds a label twice"),
        (np.zeros((0, 2)), np.zeros((0, 2)), None, "Y_true has 0 documents"),
        (np.zeros((2, 0)), np.zeros((2, 0)), None, r"has 0 labels \(columns\)"),
    ],
)
def test_refused_scores(true, scores, classes, sentence):
    """What is wrong is named, by every measure of scores."""
    for measure in [*SCORE_MEASURES.values(), class_perplexity]:
        with pytest.raises(ValueError, match=sentence):
            measure(true, scores, classes=classes)


def test_by_level():
    """Labels are replaced by their ancestors; what is not in the tree stays."""
    tree = LabelTree.from_names(["a/b/c", "a/b/d", "a/e", "f"])
    true, pred = [["a/b/c"], ["f"], ["x"]], [["a/b/d", "a/e"], ["f"], ["a/e"]]

    values = by_level(true, pred, tree)
    classes = ["a/b/c", "a/b/d", "a/e", "f", "x"]
    true_columns = [[label in labels for label in classes] for labels in true]
    pred_columns = [[label in labels for label in classes] for labels in pred]

    assert values == pytest.approx({0: 2 / 3, 1: (2 / 3 + 1) / 3, 2: 1 / 3})
    assert by_level(true_columns, pred_columns, tree, classes=classes) == values
    assert by_level(true, pred, tree, subset_accuracy) == pytest.approx(
        {0: 2 / 3, 1: 1 / 3, 2: 1 / 3}
    )
    assert by_level(true, pred, tree, evaluate)[2] == evaluate(true, pred)
    assert by_level([["x"]], [["y"]], tree) == {0: 0.0}
    with pytest.raises(ValueError, match="give the label of each column as classes"):
        by_level([[1]], [[1]], tree)


def test_evaluate_with_a_tree():
    """The hierarchical measures come with the others."""
    tree = LabelTree.from_names(["a/b", "a/c"])

    values = evaluate([["a/b"]], [["a/c"]], tree=tree)

    assert values["samples_f1"] == 0
    assert [values[f"hierarchical_{name}"] for name in ("precision", "recall", "f1")] == [0.5] * 3


def test_refused_elsewhere():
    """No labels at all, no probability, no rank, and columns without names."""
    with pytest.raises(ValueError, match=r"Y_true has no label, needs at least 1\."):
        class_perplexity([[0, 0]], [[0.5, 0.5]])
    with pytest.raises(ValueError, match=r"proba holds -0.5, must be between 0 and 1\."):
        class_perplexity([[1, 0]], [[1.0, -0.5]])
    with pytest.raises(ValueError, match=r"k == 0, must be >= 1\."):
        precision_at_k([[1]], [[1.0]], 0)
    with pytest.raises(TypeError, match="k must be an instance of int"):
        ndcg_at_k([[1]], [[1.0]], 1.5)
    with pytest.raises(ValueError, match="give the label of each column as classes"):
        hierarchical_f1([[1]], [[1]], Paths())
    with pytest.raises(ValueError, match="classes has 2 labels for 1 columns"):
        hierarchical_f1([[1]], [[1]], Paths(), ["a", "b"])


def test_wide_and_sparse():
    """A table far too large to hold in full is measured by what it stores."""
    rng = np.random.default_rng(2)
    shape = (50_000, 1_000_000)
    docs = np.repeat(np.arange(shape[0]), 3)
    cells = (docs, rng.integers(0, shape[1], docs.size))
    scores = sparse.coo_array((rng.random(docs.size) + 0.1, cells), shape=shape).tocsr()
    Y = scores.astype(bool)

    values = evaluate(Y, Y, scores)

    assert values["subset_accuracy"] == values["ndcg_at_5"] == 1
    assert values["coverage"] == pytest.approx(Y.sum() / shape[0])


TALLY_TREE = LabelTree.from_names(["a/b/c", "a/b/d", "a/e", "f"])
TALLY_CLASSES = ["a/b/c", "a/b/d", "a/e", "f", "x"]
label_sets = st.lists(st.sampled_from(TALLY_CLASSES), min_size=1, max_size=3, unique=True)


@given(st.lists(st.tuples(label_sets, label_sets), min_size=2, max_size=8), st.data())
def test_tallies_add_up_to_the_measures_of_all(documents, data):
    """Documents that are counted in two parts have the measures of all together, by level too."""
    true, predicted = map(list, zip(*documents, strict=True))
    scores = np.random.default_rng(len(true)).normal(size=(len(true), len(TALLY_CLASSES)))
    border = data.draw(st.integers(0, len(true)))

    parts = [Tally(TALLY_CLASSES, TALLY_TREE), Tally(TALLY_CLASSES, TALLY_TREE)]
    for part, rows in zip(parts, (slice(border), slice(border, None)), strict=True):
        part.add(true[rows], predicted[rows], scores[rows])
    total = pickle.loads(pickle.dumps(parts[0])) + parts[1]  # noqa: S301

    settings = {"classes": TALLY_CLASSES, "tree": TALLY_TREE}
    expected = evaluate(true, predicted, scores, **settings)
    assert total.n_docs == len(true)
    assert total.measures() == pytest.approx(expected)
    assert list(total.measures()) == list(expected)
    levels = total.levels()
    for measure in (samples_f1, subset_accuracy, micro_f1):
        by_tree = by_level(true, predicted, TALLY_TREE, measure)
        for level, value in by_tree.items():
            assert levels[level][measure.__name__] == pytest.approx(value)
    assert [levels[level]["labels"] for level in sorted(levels)] == [3, 4, 5]


def test_what_no_score_reaches():
    """A true label without a score costs as many labels as there are, known or not."""
    tally = Tally(["a", "b"])

    tally.add(
        [["a"], ["new"], ["b"]], [["a"], ["a"], ["b"]], [[1.0, 0.0], [1.0, 0.0], [1, -np.inf]]
    )

    assert tally.measures()["coverage"] == (1 + 3 + 3) / 3
    assert tally.levels() == {}


def test_a_tally_of_nothing():
    """There is nothing to measure without documents."""
    tally = Tally(["a", "b"])

    tally.add([], [], np.zeros((0, 2)))

    with pytest.raises(ValueError, match="no labelled document"):
        tally.measures()
