"""The random forest: a slow twin, out-of-bag scores, damaged arrays."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from polytopic import RandomForest
from polytopic.models.forest import estimator, kernels
from polytopic.text.weights import unit_rows
from tests.twins import forest as twins


@pytest.fixture
def documents():
    """Return steps of weights, labels, and what the kernels read of them."""
    rng = np.random.default_rng(0)
    q = rng.poisson(0.3, (50, 20)).clip(0, 3) * rng.integers(1, 80, (50, 20))
    Y = (rng.random((50, 4)) < 0.4).astype(int)
    rows, words = sparse.csr_matrix(q.astype(np.uint8)), sparse.csc_matrix(q.astype(np.uint8))
    labels = sparse.csr_matrix(Y)
    read = kernels.Documents(
        rows.data,
        rows.indices.astype(np.int32),
        rows.indptr.astype(np.int64),
        words.data,
        words.indices.astype(np.int32),
        words.indptr.astype(np.int64),
        labels.indices.astype(np.int32),
        labels.indptr.astype(np.int64),
    )
    return q, Y, read


def nodes_of(tree):
    """Return the nodes of a tree as the twin has them."""
    return [
        sorted(tree.docs[tree.leaf_ends[right] : tree.leaf_ends[right + 1]].tolist())
        if word == kernels.LEAF
        else (word, cut)
        for word, cut, right in zip(
            tree.words.tolist(), tree.cuts.tolist(), tree.right.tolist(), strict=True
        )
    ]


@pytest.mark.parametrize("seed", [1, 2, 3, 2**61])
@pytest.mark.parametrize("n_tries", [1, 10, 60])
def test_grow_tree(documents, seed, n_tries):
    """Nodes and documents are those of the twin, which draws the same numbers."""
    q, Y, read = documents

    tree = estimator.grow(read, 4, n_tries, seed)

    assert nodes_of(tree) == twins.grow_tree(q, Y, len(tree.docs), n_tries, seed)
    assert len(tree.docs) == 31  # of 50


def test_a_forest_scores_as_its_trees(documents):
    """The score is the mean over the twin's trees."""
    q, Y, read = documents
    trees = [estimator.grow(read, 4, 10, seed) for seed in (5, 6, 7)]
    joined = estimator.join(trees, sparse.csr_matrix(Y))
    shares = np.zeros(Y.shape)

    kernels.mean_shares(read.q, read.indices, read.indptr, 20, joined, estimator.ALL_TREES, shares)

    grown = [twins.grow_tree(q, Y, 31, 10, seed) for seed in (5, 6, 7)]
    np.testing.assert_allclose(shares, twins.mean_shares(q, Y, grown), atol=1e-6)


def test_find_ends(documents):
    """The end of the nodes below each node is that of the twin."""
    _, Y, read = documents
    joined = estimator.join(
        [estimator.grow(read, 4, 10, seed) for seed in (5, 6)], sparse.csr_matrix(Y)
    )
    ends = np.empty(joined.words.size, np.int64)

    assert kernels.find_ends(joined, ends)
    expected = twins.find_ends(joined.words, joined.right, joined.roots)
    np.testing.assert_array_equal(ends, expected)


def corpus(seed=0):
    """Return documents whose words depend on their labels."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(20, 0.15), size=4)
    Y = np.eye(4, dtype=int)[rng.integers(0, 4, 200)]
    X = np.array([rng.multinomial(15, y @ theta) for y in Y])
    return sparse.csr_matrix(X, dtype=float), Y


def test_out_of_bag_scores():
    """The score of a document is the mean of the trees that were grown without it."""
    X, Y = corpus()
    model = RandomForest(6, random_state=1).fit(X, Y)

    scores = model.out_of_bag_scores(X)

    total, n_trees = np.zeros(Y.shape), np.zeros(len(Y))
    for tree, docs in enumerate(model._bags):
        only = np.ones((6, len(Y)), dtype=bool)
        only[tree] = False
        out = np.setdiff1d(np.arange(len(Y)), docs)
        total[out] += model._mean_shares(unit_rows(X), only)[out]
        n_trees[out] += 1
    np.testing.assert_allclose(scores, total / np.maximum(n_trees, 1)[:, None])
    assert (scores.argmax(axis=1) == Y.argmax(axis=1))[n_trees > 0].mean() > 0.6


def test_out_of_bag_scores_need_the_forest_that_was_fitted():
    """A loaded forest does not know the documents of its trees."""
    X, Y = corpus()
    model = RandomForest(2).fit(X, Y)
    loaded = clone(model).from_arrays(model.to_arrays(), labels=list(range(4)), n_words=20)

    with pytest.raises(ValueError, match="fit the forest again"):
        loaded.out_of_bag_scores(X)
    with pytest.raises(ValueError, match="fewer than fit was given"):
        model.out_of_bag_scores(X[:3])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("right", lambda a: a + 1),
        ("right", lambda a: a[::-1]),
        ("words", lambda a: np.where(a == -1, 0, a)),
        ("roots", lambda a: a[::-1]),
        ("roots", lambda a: a + 1),
        ("leaf_docs", lambda a: 0 * a),
        ("shares", lambda a: a + 2),
        ("labels", lambda a: a + 9),
    ],
)
def test_damaged_trees(name, change):
    """Arrays that do not describe a forest are rejected."""
    X, Y = corpus()
    model = RandomForest(3).fit(X, Y)
    arrays = model.to_arrays()

    with pytest.raises(ValueError, match=r"'\w+'"):
        clone(model).from_arrays(
            arrays | {name: np.ascontiguousarray(change(arrays[name]))},
            labels=list(range(4)),
            n_words=20,
        )


@pytest.mark.parametrize("name", ["n_trees", "n_tries"])
def test_wrong_parameters(name):
    """The error names the parameter."""
    with pytest.raises(ValueError, match=f"{name} == 0, must be >= 1"):
        RandomForest(**{name: 0}).fit([[1, 0], [0, 1]], [["a"], ["b"]])
