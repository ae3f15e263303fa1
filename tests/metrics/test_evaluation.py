"""All metrics at once, and in parts."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from polytopic.labels import LabelTree
from polytopic.metrics import (
    Tally,
    by_level,
    evaluate,
    macro_f1,
    micro_f1,
    samples_f1,
    subset_accuracy,
)
from polytopic.metrics.scores import above_absent
from tests.metrics.cases import FORMS, scored


@pytest.mark.parametrize("pred_form", FORMS)
@pytest.mark.parametrize("true_form", FORMS)
def test_any_mix_of_forms(true_form, pred_form):
    """Dense and sparse inputs can be mixed."""
    rng = np.random.default_rng(0)
    Y_true, Y_pred = rng.integers(0, 2, (2, 7, 4))
    true, pred = FORMS[true_form](Y_true), FORMS[pred_form](Y_pred)

    values = evaluate(true, pred, Y_pred * 0.5)

    assert values == evaluate(Y_true, Y_pred, Y_pred * 0.5)


@given(scored(), st.randoms(use_true_random=False))
def test_order_does_not_matter(case, random):
    """Documents and labels may come in any order."""
    Y, scores = case
    docs, labels = list(range(Y.shape[0])), list(range(Y.shape[1]))
    random.shuffle(docs)
    random.shuffle(labels)
    pred = scores > 0

    moved = [array[np.ix_(docs, labels)] for array in (Y, pred, scores)]

    assert evaluate(*moved) == pytest.approx(evaluate(Y, pred, scores))


def test_evaluate_with_scores():
    """Rankings follow the label sets, in a fixed order."""
    values = evaluate([[1, 0]], [[1, 0]], [[2.0, 1.0]])

    assert list(values)[7:] == [
        "precision_at_1",
        "precision_at_3",
        "precision_at_5",
        "recall_at_5",
        "recall_at_10",
        "ndcg_at_3",
        "ndcg_at_5",
        "ndcg_at_10",
        "coverage",
    ]
    assert values["precision_at_1"] == values["ndcg_at_5"] == values["coverage"] == 1
    assert all(type(value) is float for value in values.values())


def test_evaluate_with_a_tree():
    """Hierarchical metrics are included with a tree."""
    tree = LabelTree.from_names(["a/b", "a/c"])

    values = evaluate([["a/b"]], [["a/c"]], tree=tree)

    assert values["samples_f1"] == 0
    assert [values[f"hierarchical_{name}"] for name in ("precision", "recall", "f1")] == [0.5] * 3


def test_wide_and_sparse():
    """A table far too large to be dense is evaluated by its stored entries."""
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
def test_tallies_add_up_to_the_metrics_of_all(documents, data):
    """Documents counted in two parts have the metrics of all together, also by level."""
    true, predicted = map(list, zip(*documents, strict=True))
    scores = np.random.default_rng(len(true)).normal(size=(len(true), len(TALLY_CLASSES)))
    border = data.draw(st.integers(0, len(true)))

    parts = [Tally(TALLY_CLASSES, TALLY_TREE), Tally(TALLY_CLASSES, TALLY_TREE)]
    for part, rows in zip(parts, (slice(border), slice(border, None)), strict=True):
        if true[rows]:
            part.add(true[rows], predicted[rows], scores[rows])
    total = pickle.loads(pickle.dumps(parts[0])) + parts[1]  # noqa: S301

    settings = {"classes": TALLY_CLASSES, "tree": TALLY_TREE}
    expected = evaluate(true, predicted, scores, **settings)
    assert total.n_docs == len(true)
    assert total.metrics() == pytest.approx(expected)
    assert list(total.metrics()) == list(expected)
    levels = total.metrics_by_level()
    for metric in (samples_f1, subset_accuracy, micro_f1, macro_f1):
        by_tree = by_level(true, predicted, TALLY_TREE, metric, classes=TALLY_CLASSES)
        for level, value in by_tree.items():
            assert levels[level][metric.__name__] == pytest.approx(value)
    assert [levels[level]["labels"] for level in sorted(levels)] == [3, 4, 5]


def test_labels_without_scores():
    """A true label without a score is covered by all labels, known or not."""
    tally = Tally(["a", "b"])

    tally.add(
        [["a"], ["new"], ["b"]], [["a"], ["a"], ["b"]], [[1.0, 0.0], [1.0, 0.0], [1, -np.inf]]
    )

    assert tally.metrics()["coverage"] == (1 + 3 + 3) / 3
    assert tally.metrics_by_level() == {}


def test_an_empty_tally():
    """Without documents, there is an error."""
    with pytest.raises(ValueError, match="no labelled document"):
        Tally(["a", "b"]).metrics()
    with pytest.raises(ValueError, match="Y_true has 0 documents"):
        Tally(["a", "b"]).add([], [], np.zeros((0, 2)))


def test_indicators_add_up():
    """Columns without names can be counted in parts, too."""
    Y_true, Y_pred = np.random.default_rng(3).integers(0, 2, (2, 9, 4))

    tally = Tally()
    for start in (0, 4, 6):
        rows = slice(start, {0: 4, 4: 6, 6: 9}[start])
        tally.add(Y_true[rows], Y_pred[rows])

    assert tally.metrics() == pytest.approx(evaluate(Y_true, Y_pred))


def test_ranks_of_candidates():
    """In scores of candidates, an absent label ranks last, whatever the sign of the others."""
    scores = sparse.csr_matrix([[-5.0, 0.0, -1.0], [0.0, 0.0, 2.0]])
    scores.eliminate_zeros()
    Y = [[0, 0, 1], [0, 1, 0]]

    values = evaluate(Y, Y, above_absent(scores))

    assert values["precision_at_1"] == 0.5
    assert above_absent(scores).nnz == 3
    assert above_absent(scores).data.min() == 1
    assert (above_absent(scores.toarray()) == scores.toarray()).all()
