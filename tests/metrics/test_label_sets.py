"""Metrics of label sets: worked examples, Python sets, scikit-learn, invariances."""

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse
from sklearn import metrics as sk

from polytopic.labels import LabelTree
from polytopic.metrics import (
    by_level,
    classification_report,
    document_f1,
    evaluate,
    hierarchical_f1,
    hierarchical_precision,
    hierarchical_recall,
    macro_f1,
    micro_f1,
    samples_f1,
    samples_precision,
    samples_recall,
    subset_accuracy,
)
from tests.metrics.cases import Paths, columns, dice, label_pairs, names, numbered, share

SET_METRICS = [
    samples_f1,
    subset_accuracy,
    macro_f1,
    micro_f1,
    samples_precision,
    samples_recall,
    document_f1,
]


def twin(Y_true, Y_pred):
    """Return all metrics of label sets, computed with Python sets."""
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


def test_label_sets_by_hand():
    """One miss, one wrong label, one document right, one without prediction, one empty pair."""
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
    assert list(values) == [measure.__name__ for measure in SET_METRICS]


def test_predictions_without_truth():
    """Labels for a document without true labels count 0, in recall too."""
    for measure in SET_METRICS:
        assert measure([[]], [["a"]]) == 0


def test_no_labels_at_all():
    """No labels on either side are a perfect match of documents; there are no labels to average."""
    for measure in set(SET_METRICS) - {macro_f1}:
        assert measure([[], []], [[], []]) == 1
        assert measure(np.zeros((2, 3)), np.zeros((2, 3))) == 1
    assert macro_f1([[], []], [[], []]) == 0
    assert macro_f1(np.zeros((2, 3)), np.zeros((2, 3))) == 0


def test_unseen_label_is_missed():
    """A true label that the model never saw counts as missed."""
    assert samples_recall([["new", "a"]], [["a"]]) == 0.5
    assert macro_f1([["new", "a"]], [["a"]]) == 0.5


def test_f1_is_of_the_averages():
    """Eq. (9) takes F of mean precision and mean recall, not the mean of F."""
    true, pred = [["a", "b", "c"], ["d"]], [["a"], ["d", "e", "f"]]

    assert document_f1(true, pred) == pytest.approx(2 / 3)
    assert samples_f1(true, pred) == pytest.approx(1 / 2)


@given(label_pairs())
def test_label_sets_match_the_twin(pair):
    """The metrics agree with Python sets, in every form."""
    expected = pytest.approx(twin(*pair))

    assert evaluate(*pair) == expected
    assert evaluate(*map(sparse.csr_array, pair)) == expected
    assert evaluate(*map(names, pair), classes=columns(pair[0])) == expected


@given(label_pairs(min_labels=2))
def test_label_sets_as_scikit_learn(pair):
    """If scikit-learn defines the metric, the values are the same."""
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
    """Precision and recall agree if no document is empty on both sides."""
    pair[0][:, 0] |= ~(pair[0] | pair[1]).any(axis=1)

    for measure, twin in [
        (samples_precision, sk.precision_score),
        (samples_recall, sk.recall_score),
    ]:
        expected = twin(*pair, average="samples", zero_division=0)
        assert measure(*pair) == pytest.approx(expected)


def test_forms_of_names():
    """Tuples, sets, arrays and repeated names are equivalent."""
    expected = evaluate([["a", "b"], ["b", "c"]], [["a"], ["c"]])

    assert evaluate((("b", "a", "a"), {"b", "c"}), [{"a"}, np.array(["c"])]) == expected
    assert evaluate(np.array([["a", "b"], ["b", "c"]]), [["a"], ["c"]]) == expected


def test_input_is_not_changed():
    """Stored zeros and unsorted columns are read; the caller's matrix is not changed."""
    Y = sparse.csr_array((np.array([1, 0, 1]), [2, 1, 0], [0, 3]), shape=(1, 3))

    value = subset_accuracy(Y, [[1, 0, 1]])

    assert value == 1
    assert Y.nnz == 3
    assert list(Y.indices) == [2, 1, 0]


def test_hierarchy_by_hand():
    """A near miss shares its ancestors; sets count each ancestor once."""
    true = [["s/space/mars", "s/space/moon"], ["t"]]
    pred = [["s/space", "s/bio"], []]

    assert hierarchical_precision(true, pred, Paths()) == pytest.approx(2 / 3)
    assert hierarchical_recall(true, pred, Paths()) == pytest.approx(2 / 5)
    assert hierarchical_f1(true, pred, Paths()) == pytest.approx(4 / 8)


def test_hierarchy_edges():
    """Two empty sets match; an empty and a non-empty set do not."""
    for measure in (hierarchical_f1, hierarchical_precision, hierarchical_recall):
        assert measure([[]], [[]], Paths()) == 1
        assert measure([["a/b"]], [[]], Paths()) == 0
        assert measure([[]], [["a/b"]], Paths()) == 0


@given(label_pairs())
def test_hierarchy_matches_the_twin(pair):
    """The metrics agree with Python sets, as names and as indicators."""
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
        (
            [[1, 0]],
            [[1], [0]],
            "Y_true has 1 documents and Y_pred has 2; the numbers must be equal.",
        ),
        (
            [[1, 0]],
            [[1]],
            r"Y_true has 2 labels \(columns\) and Y_pred has 1; the numbers must be equal.",
        ),
        ([["a"]], [["a"], ["b"]], "Y_true has 1 documents and Y_pred has 2"),
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
def test_rejected_labels(true, pred, sentence):
    """Every metric of label sets names what is wrong."""
    for measure in [*SET_METRICS, evaluate]:
        with pytest.raises(ValueError, match=sentence):
            measure(true, pred)


def test_by_level():
    """Labels are replaced by their ancestors; labels outside the tree stay."""
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


def test_hierarchy_needs_names():
    """Columns without names have no ancestors."""
    with pytest.raises(ValueError, match="give the label of each column as classes"):
        hierarchical_f1([[1]], [[1]], Paths())
    with pytest.raises(ValueError, match="classes has 2 labels for 1 columns"):
        hierarchical_f1([[1]], [[1]], Paths(), ["a", "b"])


@given(label_pairs(min_labels=2))
def test_report_as_scikit_learn(pair):
    """Each label has scikit-learn's numbers, as columns and by name."""
    expected = sk.classification_report(
        *pair, target_names=columns(pair[0]), output_dict=True, zero_division=0
    )

    report = classification_report(*pair)
    by_name = classification_report(*map(names, pair), classes=columns(pair[0]))

    assert list(report) == list(range(pair[0].shape[1]))
    assert list(report.values()) == list(by_name.values())
    for label, row in by_name.items():
        assert row["f1"] == pytest.approx(expected[label]["f1-score"])
        for name in ("precision", "recall", "support"):
            assert row[name] == pytest.approx(expected[label][name])
    assert [row["predicted"] for row in report.values()] == pair[1].sum(axis=0).tolist()
