"""The neighbours of one label: the same as on the map, but without a table of all pairs."""

import numpy as np
import pytest
from scipy import sparse

from polytopic import Document, Labeler
from polytopic.corpus import load_sample
from polytopic.explain.correlations import (
    documents_together,
    labels_alike,
    labels_together,
    phi,
    weight_correlations,
)

LABELS = list("abcdefg")


def drawn(seed):
    """Return random label sets, and the documents of each."""
    rng = np.random.default_rng(seed)
    sets = sparse.csr_matrix(rng.random((30, 7)) < 0.3, dtype=np.float64)
    return sets, rng.integers(1, 9, size=30).astype(np.float64)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("measure", ["phi", "covariance"])
def test_correlations_are_those_of_the_map(seed, measure):
    """The neighbours of a label are its row in the table of all pairs."""
    sets, set_docs = drawn(seed)
    together, n_docs = documents_together(sets, set_docs), set_docs.sum()
    covariance = None
    expected = phi(together, n_docs)
    if measure == "covariance":
        root = np.random.default_rng(seed).normal(size=(7, 7))
        covariance = root @ root.T
        expected = weight_correlations(covariance, together, n_docs)

    for column, label in enumerate(LABELS):
        neighbours = labels_together(
            LABELS, column, sets, set_docs, covariance=covariance, n_pairs=7
        )

        values = {pair.second: pair.correlation for pair in neighbours}
        row = dict(zip(LABELS, expected[column].tolist(), strict=True))
        assert values == pytest.approx({k: v for k, v in row.items() if v > 0 or v < 0})
        assert {pair.first for pair in neighbours} <= {label}
        assert all(p.documents == together[column, LABELS.index(p.second)] for p in neighbours)


def test_the_strongest_come_first():
    """Positive correlations come first, then negative ones, at most the given number of each."""
    sets, set_docs = drawn(2)

    neighbours = labels_together(LABELS, 0, sets, set_docs, n_pairs=2)
    values = [pair.correlation for pair in neighbours]

    above, below = [v for v in values if v > 0], [v for v in values if v < 0]
    assert values == sorted(above, reverse=True) + sorted(below)
    assert len(above) <= 2
    assert len(below) <= 2


def test_labels_with_similar_words():
    """Labels are ranked by the Hellinger distance of their words, if they have one in common."""
    sets = sparse.csr_matrix(np.eye(4))
    matrix = sparse.csr_matrix([[4.0, 4, 0, 0], [1, 9, 0, 0], [5, 5, 1, 0], [0, 0, 0, 3]])

    assert labels_alike(list("abcd"), 0, sets, matrix, n_labels=3) == ["c", "b"]
    assert labels_alike(list("abcd"), 3, sets, matrix, n_labels=3) == []


def test_many_labels_take_little_memory():
    """Neighbours and a map of 30,000 labels, whose pairs would need 7 GB."""
    documents = [
        Document(str(k), counts={f"w{k % 50}": 1, f"v{k % 7}": 1}, labels=(f"l{k}", f"m{k % 9}"))
        for k in range(30_000)
    ]
    labeler = Labeler("nb", min_df=1).fit(documents)

    neighbours = labeler.neighbours("l0")
    drawn = labeler.map(n_labels=20)

    assert [pair.second for pair in neighbours.together] == ["m0"]
    assert len(neighbours.alike) == 5
    assert (len(drawn.labels), drawn.n_labels) == (20, 30_009)
    assert {f"m{k}" for k in range(9)} < {label.label for label in drawn.labels}


def test_a_map_of_the_most_frequent_labels():
    """It has the same correlations as the map of all labels, with any model."""
    labeler = Labeler("mml").fit(load_sample())
    whole = labeler.map()

    part = labeler.map(n_labels=4)

    places = [[label.label for label in whole.labels].index(one.label) for one in part.labels]
    docs = sorted((label.documents for label in whole.labels), reverse=True)
    assert sorted((label.documents for label in part.labels), reverse=True) == docs[:4]
    np.testing.assert_allclose(part.correlations, whole.correlations[np.ix_(places, places)])
    assert all(label.terms for label in part.labels)
