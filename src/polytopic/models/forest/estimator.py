"""The estimator of a random forest for all labels at once."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polytopic.array_specs import REAL, WHOLE, ArraySpec, check_arrays, check_rows
from polytopic.kernels.blocks import map_rows, run_tasks
from polytopic.models.base import LABEL_ARRAYS, HeldOutScores, check_label_arrays
from polytopic.models.checks import check_size, check_tuned
from polytopic.models.forest import kernels
from polytopic.models.forest.kernels import LEAF, Documents, Tree, Trees
from polytopic.models.label_scores import WordWeightModel
from polytopic.models.results import LabelEvidence
from polytopic.text.weights import unit_rows

IN_BAG = 1 - np.exp(-1)  # the fraction of the documents that a large bootstrap sample contains
HIGHEST = 0.999  # the weights above this quantile count as the highest step
N_STEPS = 255
ALL_TREES = np.zeros((0, 0), dtype=bool)  # no document is in the bag of a tree

ARRAYS = LABEL_ARRAYS | {
    "scale": ArraySpec(REAL, (1,), 0),
    "roots": ArraySpec(WHOLE, ("n_trees+1",), 0),
    "words": ArraySpec(WHOLE, ("n_nodes",), LEAF, below="n_words"),
    "cuts": ArraySpec(("uint8",), ("n_nodes",), 0, N_STEPS),
    "right": ArraySpec(WHOLE, ("n_nodes",), 0),
    "leaf_docs": ArraySpec(WHOLE, ("n_leaves",), 1),
    "ends": ArraySpec(WHOLE, ("n_leaves+1",), 0),
    "labels": ArraySpec(WHOLE, ("n_shares",), 0, below="n_columns"),
    "shares": ArraySpec(REAL, ("n_shares",), 0, 1),
}


class RandomForest(WordWeightModel):
    r"""A random forest on sparse documents, whose trees predict all labels together.

    A tree is grown on a random part of the documents, as many as a bootstrap sample would contain.
    A node is split by a word and a weight: documents that contain the word with more than this
    weight are separated from the others. Of ``n_tries`` splits drawn from the documents of the
    node, the one that leaves the least variance of labels is used. Leaves have one document, or
    several with equal labels. The score of a label is the mean over trees of its share of the
    leaf's documents.

    Weights are compared in 255 steps. Rows of ``X`` are scaled to unit length first.

    Parameters
    ----------
    n_trees : int, default=40
        Number of trees.
    n_tries : int, default=50
        Number of splits that are tried at each node.
    random_state : int, RandomState or None, default=0
        Determines the documents of trees and the splits that are tried.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order, or column numbers if fitted on an indicator.
    tuned_ : dict
        Empty: nothing is tuned.

    Notes
    -----
    Labels with more than half of the votes are predicted, or the best one. ``decision_function``
    returns the score, and ``predict_proba`` the same with half a tree for each label and half a
    tree against it, so that few trees are never certain.

    Explanations follow a document down the trees: where a word that it contains sends it right, the
    change of a label's share is due to that word [1]_. What words that it does *not* contain
    change is part of the base, with the shares at the roots.

    References
    ----------
    .. [1] Palczewska, Palczewski, Robinson and Neagu, "Interpreting Random Forest Classification
       Models Using a Feature Contribution Method", Integration of Reusable Systems, 2014.

    Examples
    --------
    >>> X = [[3, 0, 1], [0, 2, 1], [2, 2, 0]] * 5
    >>> Y = [["sport"], ["film"], ["film", "sport"]] * 5
    >>> model = RandomForest().fit(X, Y)
    >>> model.classes_, model.predict([[4, 0, 1]])
    (array(['film', 'sport'], dtype=object), array([[0, 1]]))
    """

    name = "forest"
    cut = 0.5

    def __init__(self, n_trees=40, *, n_tries=50, random_state=0):
        self.n_trees = n_trees
        self.n_tries = n_tries
        self.random_state = random_state

    def _learn(self, X, Y, tuned):
        highest = np.quantile(X.data, HIGHEST) if X.nnz else 1.0
        self._scale, self._bags = N_STEPS / highest, None
        q = self._steps(X)
        by_word = sparse.csc_matrix(sparse.csr_matrix((q, X.indices, X.indptr), shape=X.shape))
        documents = Documents(
            q,
            X.indices.astype(np.int32),
            X.indptr.astype(np.int64),
            by_word.data,
            by_word.indices.astype(np.int32),
            by_word.indptr.astype(np.int64),
            Y.indices.astype(np.int32),
            Y.indptr.astype(np.int64),
        )
        draws = check_random_state(self.random_state)
        seeds = draws.randint(1, 2**62, size=int(self.n_trees), dtype=np.int64).astype(np.uint64)
        seeds = seeds.tolist() if X.shape[0] else []  # without documents, there is nothing to grow
        trees = run_tasks(lambda seed: grow(documents, Y.shape[1], int(self.n_tries), seed), seeds)
        self._trees, self._bags = join(trees, Y), [tree.docs for tree in trees]

    def out_of_bag_scores(self, X) -> np.ndarray:
        """Return the scores of the documents that ``fit`` was given, by trees grown without them.

        All documents that ``fit`` was given must have words and labels. A document that every tree
        was grown on has scores of 0. Not available for a model that was loaded.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        if self._bags is None:
            raise ValueError("files do not hold the documents of each tree; fit the forest again.")
        if X.shape[0] < max(map(np.max, self._bags), default=-1) + 1:
            raise ValueError(f"X has {X.shape[0]} documents, fewer than fit was given.")
        in_bag = np.zeros((len(self._bags), X.shape[0]), dtype=bool)
        for tree, docs in enumerate(self._bags):
            in_bag[tree, docs] = True
        scores = np.full((X.shape[0], self.classes_.size), -np.inf)
        scores[:, self._columns] = self._mean_shares(unit_rows(X), in_bag)
        return scores

    def held_out_scores(self, X, Y, folds):
        """Return the out-of-bag scores of the documents of the folds, and the forest itself."""
        forest = clone(self).fit(X, Y)
        rows = np.concatenate([test for _, test in folds])
        return HeldOutScores(forest.out_of_bag_scores(X)[rows], {}, forest)

    def _check_parameters(self):
        check_size(self.n_trees, "n_trees")
        check_size(self.n_tries, "n_tries")

    # Files and stores

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        return {
            "scale": np.array([self._scale]),
            **self._trees._asdict(),
            **self._label_arrays(),
        }

    def from_arrays(self, arrays, *, labels, n_words, tuned=None):
        """Restore what :meth:`to_arrays` returned; predictions are then identical bit for bit.

        Arrays that no model could have produced raise ValueError.
        """
        self._check_parameters()
        check_arrays(arrays, ARRAYS, n_labels=len(labels), n_words=n_words)
        check_label_arrays(arrays)
        check_rows("labels", arrays["labels"], arrays["ends"])
        self._restore_labels(arrays, labels, check_tuned(tuned, {}))
        self._trees = Trees(*(arrays[name] for name in Trees._fields))
        if not kernels.find_ends(self._trees, np.empty(self._trees.words.size, np.int64)):
            raise ValueError("'right' must hold trees in preorder, and the numbers of their leaves")
        self._scale, self._bags = float(arrays["scale"][0]), None
        self._allowed = np.ones(self._columns.size, dtype=bool)
        self.n_features_in_ = n_words
        return self

    # Scores

    def _steps(self, X):
        return np.clip(np.ceil(X.data * self._scale), 1, N_STEPS).astype(np.uint8)

    def _column_scores(self, X):
        return self._mean_shares(X, ALL_TREES)

    def _mean_shares(self, X, in_bag):
        X = sparse.csr_matrix((self._steps(X), X.indices, X.indptr), shape=X.shape)

        def block(q, indices, indptr, rows):
            shares = np.zeros((indptr.size - 1, self._columns.size))
            bags = in_bag[:, rows] if in_bag.size else in_bag
            kernels.mean_shares(q, indices, indptr, self.n_features_in_, self._trees, bags, shares)
            return shares

        return np.vstack(map_rows(block, X, self._columns.size))

    def _score_proba(self, scores):
        n_votes = int(self.n_trees)
        return (n_votes * np.maximum(scores, 0.0) + 0.5) / (n_votes + 1)

    def _column_evidence(self, x, columns):
        shares = self._node_shares(columns)
        trees, place = self._trees, {word: k for k, word in enumerate(x.indices.tolist())}
        q, by_word = self._steps(x).tolist(), np.zeros((x.nnz, len(columns)))
        base = shares(trees.roots[:-1])[0].sum(axis=0)
        for root in trees.roots[:-1].tolist():
            path, words = [root], []
            while (word := int(trees.words[path[-1]])) != LEAF:
                k = place.get(word, -1)
                goes_right = k >= 0 and q[k] > trees.cuts[path[-1]]
                path.append(int(trees.right[path[-1]]) if goes_right else path[-1] + 1)
                words.append(k)
            changes = np.diff(shares(np.array(path))[0], axis=0)
            present = np.array(words, dtype=np.intp)
            np.add.at(by_word, present[present >= 0], changes[present >= 0])
            base += changes[present < 0].sum(axis=0)
        n_trees = max(trees.roots.size - 1, 1)
        return LabelEvidence(x.data, by_word / (n_trees * x.data[:, None]), base / n_trees)

    def _node_shares(self, columns):
        """Return a function from nodes to the shares of columns there, and their documents."""
        trees, n_leaves = self._trees, self._trees.leaf_docs.size
        ends = np.empty(trees.words.size, np.int64)
        kernels.find_ends(trees, ends)
        leaves = np.concatenate([[0], np.cumsum(trees.words == LEAF)])  # before each node
        shape = (n_leaves, self._columns.size)
        in_leaf = sparse.csr_matrix((trees.shares, trees.labels, trees.ends), shape=shape)
        n_with = np.zeros((n_leaves + 1, len(columns)))  # documents with the labels, before a leaf
        in_leaf = in_leaf[:, columns].toarray() * trees.leaf_docs[:, None]
        np.cumsum(in_leaf, axis=0, out=n_with[1:])
        n_docs = np.concatenate([[0], np.cumsum(trees.leaf_docs)])

        def shares(nodes):
            first, last = leaves[nodes], leaves[ends[nodes]]
            size = n_docs[last] - n_docs[first]
            return (n_with[last] - n_with[first]) / size[:, None], size

        return shares

    def _column_words(self, column):
        """Return how much each word raises the share of a label where it sends documents right."""
        trees, shares = self._trees, self._node_shares([column])
        nodes = np.flatnonzero(trees.words != LEAF)
        here, _ = shares(nodes)
        there, n_docs = shares(trees.right[nodes])
        gain = (there - here)[:, 0] * n_docs
        return np.bincount(trees.words[nodes], gain, minlength=self.n_features_in_)


def grow(documents: Documents, n_labels: int, n_tries: int, seed: int) -> Tree:
    """Return a tree that is grown on a random part of the documents."""
    n_docs = max(1, int(IN_BAG * (documents.indptr.size - 1)))
    most = 2 * n_docs  # nodes
    tree = Tree(
        np.empty(most, np.int32),
        np.empty(most, np.uint8),
        np.empty(most, np.int32),
        np.zeros(n_docs + 1, np.int32),
        np.empty(n_docs, np.int32),
    )
    n_nodes = kernels.grow_tree(documents, n_labels, n_tries, np.array([seed], np.uint64), tree)
    words, cuts, right, leaf_ends, docs = tree
    n_leaves = int((words[:n_nodes] == LEAF).sum())
    return Tree(
        *(part[:n_nodes].copy() for part in (words, cuts, right)), leaf_ends[: n_leaves + 1], docs
    )


def join(trees: list[Tree], Y: sparse.csr_matrix) -> Trees:
    """Return trees one after another, with the labels of their leaves instead of documents."""
    sizes, sizes_of_leaves, right = [0], [], []
    n_leaves = 0
    for tree in trees:
        is_leaf = tree.words == LEAF
        right.append(tree.right + np.where(is_leaf, n_leaves, sum(sizes)).astype(np.int32))
        sizes.append(tree.words.size)
        sizes_of_leaves.append(np.diff(tree.leaf_ends))
        n_leaves += sizes_of_leaves[-1].size
    none = np.zeros(0, np.int32)
    leaf_docs = np.concatenate([none, *sizes_of_leaves])
    in_leaf = sparse.csr_matrix(
        (
            np.repeat(1 / leaf_docs, leaf_docs),
            np.concatenate([none, *(tree.docs for tree in trees)]),
            np.concatenate([[0], np.cumsum(leaf_docs)]),
        ),
        shape=(n_leaves, Y.shape[0]),
    )
    shares = sparse.csr_matrix(in_leaf @ Y)
    shares.sort_indices()
    return Trees(
        np.cumsum(sizes),
        np.concatenate([none, *(tree.words for tree in trees)]),
        np.concatenate([none.astype(np.uint8), *(tree.cuts for tree in trees)]),
        np.concatenate([none, *right]),
        leaf_docs,
        shares.indptr.astype(np.int64),
        shares.indices.astype(np.int32),
        np.minimum(shares.data, 1.0).astype(np.float32),
    )
