"""Metrics of scores: worked examples, all orders that ties allow, scikit-learn."""

import math
import warnings
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve

from polytopic.metrics import (
    class_perplexity,
    coverage,
    evaluate,
    expected_calibration_error,
    label_propensities,
    ndcg_at_k,
    precision_at_k,
    propensity_precision_at_k,
    recall_at_k,
)
from polytopic.metrics import scores as scores_module
from tests.metrics.cases import columns, names, scored

SCORE_METRICS = {
    "precision": lambda Y, scores, **classes: precision_at_k(Y, scores, 2, **classes),
    "recall": lambda Y, scores, **classes: recall_at_k(Y, scores, 2, **classes),
    "ndcg": lambda Y, scores, **classes: ndcg_at_k(Y, scores, 2, **classes),
    "coverage": coverage,
}


def ranking_twin(Y_true, scores, k, weight=None):
    """Return precision, recall, nDCG and weighted gain at k of a document, over all tied orders."""
    weight = np.ones(len(scores)) if weight is None else weight
    labels = range(len(scores))
    best_first = sorted(scores, reverse=True)
    orders = [o for o in permutations(labels) if [scores[j] for j in o] == best_first]
    best = sum(1 / math.log2(r + 2) for r in range(min(k, sum(Y_true))))
    hits = [[Y_true[j] and scores[j] > -np.inf for j in order[:k]] for order in orders]
    gains = [sum(hit / math.log2(r + 2) for r, hit in enumerate(row)) for row in hits]
    n_right = np.mean([sum(row) for row in hits])
    weighted = [
        sum(hit * weight[j] for hit, j in zip(row, order, strict=False))
        for row, order in zip(hits, orders, strict=True)
    ]
    return (
        n_right / k,
        n_right / max(1, sum(Y_true)),
        np.mean(gains) / best if best else 0,
        np.mean(weighted),
    )


def test_rankings_by_hand():
    """The worked example: true labels at ranks 1 and 3, and a tie for rank 1."""
    Y, scores = [[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.1], [0.2, 0.7, 0.7]]
    third = 1 / math.log2(3)

    assert precision_at_k(Y, scores, 1) == pytest.approx((1 + 1 / 2) / 2)
    assert precision_at_k(Y, scores, 4) == pytest.approx((2 / 4 + 1 / 4) / 2)
    assert recall_at_k(Y, scores, 1) == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert recall_at_k(Y, scores, 4) == 1
    assert ndcg_at_k(Y, scores, 1) == pytest.approx((1 + 1 / 2) / 2)
    assert ndcg_at_k(Y, scores, 3) == pytest.approx((1.5 / (1 + third) + (1 + third) / 2) / 2)
    assert coverage(Y, scores) == (3 + 2) / 2


@given(scored(values=(-np.inf, -1.0, 0.0, 0.5, 2.0)), st.integers(1, 7))
def test_rankings_match_the_twin(case, k):
    """Metrics at k are means over all orders that ties allow; -inf is never listed."""
    expected = np.mean([ranking_twin(*row, k) for row in zip(*case, strict=True)], axis=0)

    assert precision_at_k(*case, k) == pytest.approx(expected[0])
    assert recall_at_k(*case, k) == pytest.approx(expected[1])
    assert ndcg_at_k(*case, k) == pytest.approx(expected[2])


@given(scored(min_labels=2), st.integers(1, 7))
def test_rankings_as_scikit_learn(case, k):
    """Coverage and nDCG agree with scikit-learn, ties and documents without labels included."""
    assert ndcg_at_k(*case, k) == pytest.approx(sk.ndcg_score(*case, k=k))
    assert coverage(*case) == pytest.approx(sk.coverage_error(*case))


@given(scored())
def test_sparse_scores(case):
    """A score that is not stored is 0, above negative ones."""
    Y, scores = case
    for measure in SCORE_METRICS.values():
        expected = pytest.approx(measure(Y, scores))

        assert measure(Y, sparse.csr_array(scores)) == expected
        assert measure(sparse.csr_array(Y), sparse.coo_matrix(scores)) == expected
        assert measure(names(Y), scores, classes=columns(Y)) == expected


@pytest.mark.parametrize("measure", SCORE_METRICS.values(), ids=SCORE_METRICS)
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
    expected = (
        evaluate(Y, Y, form(scores)),
        class_perplexity(Y, proba),
        expected_calibration_error(Y, proba),
        propensity_precision_at_k(Y, form(scores), 2, Y_train=Y),
    )

    monkeypatch.setattr(scores_module, "BLOCK_CELLS", 15)
    monkeypatch.setattr(scores_module, "BLOCK_DOCS", 3)

    assert evaluate(Y, Y, form(scores)) == pytest.approx(expected[0])
    assert class_perplexity(Y, proba) == pytest.approx(expected[1])
    assert expected_calibration_error(Y, proba) == pytest.approx(expected[2])
    assert propensity_precision_at_k(Y, form(scores), 2, Y_train=Y) == pytest.approx(expected[3])


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


@pytest.mark.parametrize(
    ("true", "scores", "classes", "sentence"),
    [
        ([[1, 0]], [[0.1, np.nan]], None, "holds NaN"),
        ([[1, 0]], sparse.csr_array([[0.1, np.nan]]), None, "holds NaN"),
        ([[1, 0]], [[0.1]], None, r"Y_true has 2 labels \(columns\) and \w+ has 1"),
        ([[1, 0]], [[0.1, 0.2]] * 2, None, r"Y_true has 1 documents and \w+ has 2"),
        ([[1, 0]], [0.1, 0.2], None, r"has shape \(2,\), needs \(n_docs, n_labels\)."),
        ([[1, 0]], [["x", "y"]], None, "must hold numbers."),
        ([["a"]], [[0.1, 0.2]], None, "Y_true holds names: give the label of each column"),
        ([["a"]], [[0.1, 0.2]], ["a"], "classes has 1 labels for 2 columns."),
        ([[1, 0]], [[0.1, 0.2]], ["a"], "classes has 1 labels for 2 columns."),
        ([["a"]], [[0.1, 0.2]], ["a", "a"], "classes contains a label twice"),
        (np.zeros((0, 2)), np.zeros((0, 2)), None, "Y_true has 0 documents"),
        (np.zeros((2, 0)), np.zeros((2, 0)), None, r"has 0 labels \(columns\)"),
    ],
)
def test_rejected_scores(true, scores, classes, sentence):
    """Every metric of scores names what is wrong."""
    for measure in [*SCORE_METRICS.values(), class_perplexity, expected_calibration_error]:
        with pytest.raises(ValueError, match=sentence):
            measure(true, scores, classes=classes)


@given(scored(values=(-np.inf, -1.0, 0.0, 0.5, 2.0)), st.integers(1, 7))
def test_propensity_precision_matches_the_twin(case, k):
    """True labels count by their inverse propensity, relative to the best possible ranking."""
    Y, scores = case
    train = np.vstack([Y, np.eye(Y.shape[1], dtype=int), np.ones_like(Y)])
    weight = 1 / label_propensities(train.sum(axis=0), len(train))
    reached = sum(ranking_twin(*row, k, weight)[3] for row in zip(Y, scores, strict=True))
    best = sum(sum(sorted(weight * row, reverse=True)[:k]) for row in Y)
    expected = pytest.approx(reached / best if best else 0.0)

    assert propensity_precision_at_k(Y, scores, k, Y_train=train) == expected
    assert propensity_precision_at_k(Y, scores, k, Y_train=sparse.csr_array(train)) == expected
    named = propensity_precision_at_k(names(Y), scores, k, Y_train=names(train), classes=columns(Y))
    assert named == expected


def test_propensities_by_hand():
    """The formula of Jain et al. with their constants for Wikipedia; few documents count fully."""
    n_docs, label_docs, a, b = 1_000_000, np.array([0, 3, 500_000]), 0.5, 0.4
    c = (math.log(n_docs) - 1) * (b + 1) ** a

    values = label_propensities(label_docs, n_docs, a=a, b=b)

    assert values == pytest.approx(
        [1 / (1 + c * math.exp(-a * math.log(n + b))) for n in label_docs]
    )
    assert label_propensities([0, 2], 2).tolist() == [1, 1]


def test_propensity_of_an_unseen_label():
    """A true label without training documents cannot be reached, and has the lowest propensity."""
    train = [["a"], ["a", "b"], ["a"], ["b"]]
    weight = 1 / label_propensities([3, 2, 0], 4)

    value = propensity_precision_at_k(
        [["a"], ["new"]], [[1.0, 0.0], [1.0, 0.0]], 1, Y_train=train, classes=["a", "b"]
    )

    assert value == pytest.approx(weight[0] / (weight[0] + weight[2]))
    with pytest.raises(ValueError, match="must both hold label names or both be indicators"):
        propensity_precision_at_k([["a"]], [[1.0]], 1, Y_train=[[1]], classes=["a"])
    with pytest.raises(ValueError, match=r"Y_true has 2 labels \(columns\) and Y_train has 1"):
        propensity_precision_at_k([[1, 0]], [[1.0, 0.0]], 1, Y_train=[[1]])


@given(scored(values=(0.0, 0.0, 0.1, 0.25, 0.5, 0.7, 1.0)), st.integers(1, 12))
def test_calibration_error_as_scikit_learn(case, n_bins):
    """Bins are those of calibration_curve, each weighted by its share of all pairs."""
    Y, proba = case
    right, mean = calibration_curve(Y.ravel(), proba.ravel(), n_bins=n_bins)
    borders = np.linspace(0, 1, n_bins + 1)
    pairs = np.bincount(np.searchsorted(borders[1:-1], proba.ravel()), minlength=n_bins)
    expected = pytest.approx((np.abs(right - mean) * pairs[pairs > 0]).sum() / proba.size)

    assert expected_calibration_error(Y, proba, n_bins=n_bins) == expected
    assert expected_calibration_error(Y, sparse.csr_array(proba), n_bins=n_bins) == expected
    named = expected_calibration_error(names(Y), proba, n_bins=n_bins, classes=columns(Y))
    assert named == expected


def test_calibration_of_an_unseen_label():
    """A true label that the model does not know has the probability 0."""
    value = expected_calibration_error([["new"]], [[0.0]], classes=["a"])

    assert value == 1 / 2


def test_rejected_probabilities_and_ranks():
    """Invalid labels, probabilities, ranks and bins are rejected."""
    with pytest.raises(ValueError, match=r"Y_true has no label, needs at least 1\."):
        class_perplexity([[0, 0]], [[0.5, 0.5]])
    for metric in (class_perplexity, expected_calibration_error):
        with pytest.raises(ValueError, match=r"proba holds -0.5, must be between 0 and 1\."):
            metric([[1, 0]], [[1.0, -0.5]])
    with pytest.raises(ValueError, match=r"k == 0, must be >= 1\."):
        precision_at_k([[1]], [[1.0]], 0)
    with pytest.raises(TypeError, match="k must be an instance of int"):
        ndcg_at_k([[1]], [[1.0]], 1.5)
    with pytest.raises(ValueError, match=r"n_bins == 0, must be >= 1\."):
        expected_calibration_error([[1]], [[1.0]], n_bins=0)
    with pytest.raises(ValueError, match=r"k == 0, must be >= 1\."):
        propensity_precision_at_k([[1]], [[1.0]], 0, Y_train=[[1]])
