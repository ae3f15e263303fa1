"""Growing a tree for all labels at once, and dropping documents down trees.

==================  ==========================================================================
``q``               weights of words in documents, in whole steps from 1 to 255
``node``            its documents are ``docs[begin:stop]``, a range of the tree's documents
``word``, ``cut``   the split of a node: documents whose ``q`` of the word is above the cut go
                    to the right child, all others to the left one
==================  ==========================================================================

Nodes are numbered in preorder: the left child of a node follows it, and has the first part of its
range. So the ranges of the leaves are consecutive.
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled, helper

LEAF = -1  # marks a leaf, in place of the word of a split


class Documents(NamedTuple):
    """Documents by row and by word, and their labels."""

    q: np.ndarray  # (nnz,) uint8, by row
    indices: np.ndarray  # (nnz,) words of the rows
    indptr: np.ndarray  # (n_docs + 1,)
    word_q: np.ndarray  # (nnz,) uint8, by word
    word_docs: np.ndarray  # (nnz,) documents that have the words
    starts: np.ndarray  # (n_words + 1,)
    labels: np.ndarray  # labels of the documents, row by row
    ends: np.ndarray  # (n_docs + 1,)


class Splits(NamedTuple):
    """Splits that are tried at a node."""

    word: np.ndarray  # (n_tries,)
    cut: np.ndarray  # (n_tries,)
    size: np.ndarray  # (n_tries,) how many documents go right
    n_right: np.ndarray  # (n_tries, n_labels) how many of them have each label
    first: np.ndarray  # (n_words,) a split by each word, -1 for none
    other: np.ndarray  # (n_tries,) the next split by the same word, -1 for none


class Tree(NamedTuple):
    """The nodes of a tree, and the documents that it was grown on."""

    words: np.ndarray  # (n_nodes,) LEAF for leaves
    cuts: np.ndarray  # (n_nodes,) uint8
    right: np.ndarray  # (n_nodes,) the right child; for a leaf, its number
    leaf_ends: np.ndarray  # (n_leaves + 1,) leaf k has docs[leaf_ends[k]:leaf_ends[k + 1]]
    docs: np.ndarray  # (n_docs,)


class Trees(NamedTuple):
    """Trees one after another, and what their leaves give to labels."""

    roots: np.ndarray  # (n_trees + 1,) the first node of each tree
    words: np.ndarray  # (n_nodes,)
    cuts: np.ndarray  # (n_nodes,)
    right: np.ndarray  # (n_nodes,) the right child; for a leaf, its number among all leaves
    leaf_docs: np.ndarray  # (n_leaves,) how many documents a leaf has
    ends: np.ndarray  # (n_leaves + 1,) leaf k gives shares[ends[k]:ends[k + 1]] to labels
    labels: np.ndarray
    shares: np.ndarray


@helper
def _draw(state, n):
    """Return a random whole number below ``n`` (xorshift64: ``state`` is one number, not 0)."""
    s = state[0]
    s ^= s << np.uint64(13)
    s ^= s >> np.uint64(7)
    s ^= s << np.uint64(17)
    state[0] = s
    return np.int64((s >> np.uint64(33)) % np.uint64(n))


@helper
def _draw_documents(state, n_docs, docs):
    """Set ``docs`` to distinct documents, drawn at random."""
    order = np.empty(n_docs, np.int32)
    for d in range(n_docs):
        order[d] = d
    for k in range(docs.size):
        other = k + _draw(state, n_docs - k)
        docs[k] = order[other]
        order[other] = order[k]


@helper
def _count_labels(documents, docs, begin, stop, total, present):
    """Add the labels of a node to ``total``, list them in ``present``, and return how many."""
    n_present = 0
    for k in range(begin, stop):
        d = docs[k]
        for m in range(documents.ends[d], documents.ends[d + 1]):
            label = documents.labels[m]
            if total[label] == 0:
                present[n_present] = label
                n_present += 1
            total[label] += 1
    return n_present


@helper
def _draw_splits(documents, docs, begin, stop, state, splits):
    """Draw splits that send at least one document of a node right; return how many."""
    n_drawn = 0
    for _ in range(splits.word.size):
        d = docs[begin + _draw(state, stop - begin)]
        start, n_words = documents.indptr[d], documents.indptr[d + 1] - documents.indptr[d]
        if n_words > 0:
            k = start + _draw(state, n_words)
            splits.word[n_drawn] = documents.indices[k]
            splits.cut[n_drawn] = _draw(state, documents.q[k])
            splits.size[n_drawn] = 0
            n_drawn += 1
    return n_drawn


@helper
def _send_right(documents, d, splits, c):
    """Count a document that a split sends right."""
    splits.size[c] += 1
    for m in range(documents.ends[d], documents.ends[d + 1]):
        splits.n_right[c, documents.labels[m]] += 1


@helper
def _count_by_word(documents, node_of, node, splits, n_drawn):
    """Count what splits send right, through the documents that contain their words."""
    for c in range(n_drawn):
        word, cut = splits.word[c], splits.cut[c]
        for k in range(documents.starts[word], documents.starts[word + 1]):
            d = documents.word_docs[k]
            if node_of[d] == node and documents.word_q[k] > cut:
                _send_right(documents, d, splits, c)


@helper
def _count_by_document(documents, docs, begin, stop, splits, n_drawn):
    """Count what splits send right, through the words of the documents."""
    for c in range(n_drawn):
        splits.other[c] = splits.first[splits.word[c]]
        splits.first[splits.word[c]] = c
    for r in range(begin, stop):
        d = docs[r]
        for k in range(documents.indptr[d], documents.indptr[d + 1]):
            c = splits.first[documents.indices[k]]
            while c >= 0:
                if documents.q[k] > splits.cut[c]:
                    _send_right(documents, d, splits, c)
                c = splits.other[c]
    for c in range(n_drawn):
        splits.first[splits.word[c]] = -1


@helper
def _find_best(splits, n_drawn, total, present, n_present, n_here):
    """Return the split that lowers the variance of the labels most, -1 if none does.

    Counts of labels to the right are set to 0 for the next node. Equivalent to::

        n_left = total - n_right
        gain = (n_right**2).sum(axis=1) / size + (n_left**2).sum(axis=1) / (n_here - size)
        best = gain.argmax() if gain.max() > (total**2).sum() / n_here else -1
    """
    squares = 0.0
    for m in range(n_present):
        squares += np.float64(total[present[m]]) * total[present[m]]
    best, highest = -1, squares / n_here * (1 + 1e-12)
    for c in range(n_drawn):
        to_right, to_left, size = 0.0, 0.0, splits.size[c]
        for m in range(n_present):
            n = np.float64(splits.n_right[c, present[m]])
            rest = total[present[m]] - n
            to_right += n * n
            to_left += rest * rest
            splits.n_right[c, present[m]] = 0
        if size < n_here:
            gain = to_right / size + to_left / (n_here - size)
            if gain > highest:
                best, highest = c, gain
    return best


@helper
def _move_right(documents, node_of, node, middle, word, cut, docs, begin, stop):
    """Move the documents that a split sends right behind the others, from ``middle`` on."""
    for k in range(documents.starts[word], documents.starts[word + 1]):
        if node_of[documents.word_docs[k]] == node and documents.word_q[k] > cut:
            node_of[documents.word_docs[k]] = middle
    low, high = begin, stop - 1
    while low < middle:
        d = docs[low]
        if node_of[d] == middle:
            docs[low], docs[high] = docs[high], d
            high -= 1
        else:
            low += 1


@compiled
def grow_tree(documents, n_labels, n_tries, state, tree):
    """Grow a tree on documents drawn at random; return the number of its nodes.

    A split to try takes a random document of the node, one of its words, and a cut below the weight
    that this word has there. A node is a leaf if none of its splits lowers the variance of the
    labels: in the end, if its documents all have the same labels. Equivalent, for each node, with
    its documents ``node`` and with ``Y`` and ``q`` as dense matrices, to::

        d = rng.choice(node)
        word = rng.choice(np.flatnonzero(q[d]))
        cut = rng.integers(q[d, word])
        right, left = node[q[node, word] > cut], node[q[node, word] <= cut]

    for each of the ``n_tries`` splits; `_find_best` states which of them is taken.
    """
    n_docs, docs = documents.indptr.size - 1, tree.docs
    _draw_documents(state, n_docs, docs)
    node_of = np.full(n_docs, -1, np.int32)  # where the range of a document's node begins
    for d in docs:
        node_of[d] = 0
    splits = Splits(
        np.empty(n_tries, np.int32),
        np.empty(n_tries, np.int32),
        np.empty(n_tries, np.int32),
        np.zeros((n_tries, n_labels), np.int32),
        np.full(documents.starts.size - 1, -1, np.int32),
        np.empty(n_tries, np.int32),
    )
    total, present = np.zeros(n_labels, np.int32), np.empty(n_labels, np.int32)
    waiting = np.empty((docs.size + 1, 3), np.int32)  # nodes: begin, stop, parent of right ones
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = 0, docs.size, -1
    n_waiting, n_nodes, n_leaves = 1, 0, 0
    while n_waiting > 0:
        n_waiting -= 1
        begin, stop = waiting[n_waiting, 0], waiting[n_waiting, 1]
        node, n_here, best = n_nodes, stop - begin, -1
        n_nodes += 1
        if waiting[n_waiting, 2] >= 0:
            tree.right[waiting[n_waiting, 2]] = node
        if n_here > 1:
            n_present = _count_labels(documents, docs, begin, stop, total, present)
            n_drawn, by_word, by_document = 0, 0, 0
            for m in range(n_present):
                if total[present[m]] < n_here and n_drawn == 0:
                    n_drawn = _draw_splits(documents, docs, begin, stop, state, splits)
            for c in range(n_drawn):
                by_word += documents.starts[splits.word[c] + 1] - documents.starts[splits.word[c]]
            for k in range(begin, stop):
                by_document += documents.indptr[docs[k] + 1] - documents.indptr[docs[k]]
            if by_word < by_document:
                _count_by_word(documents, node_of, begin, splits, n_drawn)
            else:
                _count_by_document(documents, docs, begin, stop, splits, n_drawn)
            best = _find_best(splits, n_drawn, total, present, n_present, n_here)
            for m in range(n_present):
                total[present[m]] = 0
        if best < 0:
            tree.words[node], tree.cuts[node], tree.right[node] = LEAF, 0, n_leaves
            tree.leaf_ends[n_leaves + 1] = stop
            n_leaves += 1
        else:
            word, cut, middle = splits.word[best], splits.cut[best], stop - splits.size[best]
            _move_right(documents, node_of, begin, middle, word, cut, docs, begin, stop)
            tree.words[node], tree.cuts[node] = word, cut
            for child in range(2):
                waiting[n_waiting + child, 0] = begin if child else middle
                waiting[n_waiting + child, 1] = middle if child else stop
                waiting[n_waiting + child, 2] = -1 if child else node
            n_waiting += 2
    return n_nodes


@helper
def _drop(weight, trees, node):
    """Return the leaf that a document reaches from a node: its weights are ``weight``."""
    while trees.words[node] != LEAF:
        if weight[trees.words[node]] > trees.cuts[node]:
            node = trees.right[node]
        else:
            node += 1
    return trees.right[node]


@compiled
def mean_shares(q, indices, indptr, n_words, trees, in_bag, out):
    """Set ``out`` to the mean of what the trees give to the labels of each document.

    If ``in_bag`` (n_trees, n_docs) is not empty, a tree counts only for documents that it was not
    grown on. Equivalent, with the label indicators ``leaf(t, d)`` of the documents in the leaf of a
    tree that a document reaches, to::

        out[d] = np.mean([leaf(t, d).mean(axis=0) for t in trees if not in_bag[t, d]], axis=0)
    """
    weight = np.zeros(n_words, np.uint8)
    for d in range(indptr.size - 1):
        for k in range(indptr[d], indptr[d + 1]):
            weight[indices[k]] = q[k]
        n_trees = 0
        for t in range(trees.roots.size - 1):
            if in_bag.size == 0 or not in_bag[t, d]:
                n_trees += 1
                leaf = _drop(weight, trees, trees.roots[t])
                for k in range(trees.ends[leaf], trees.ends[leaf + 1]):
                    out[d, trees.labels[k]] += trees.shares[k]
        for j in range(out.shape[1]):
            out[d, j] /= max(n_trees, 1)
        for k in range(indptr[d], indptr[d + 1]):
            weight[indices[k]] = 0


@compiled
def find_ends(trees, ends):
    """Set ``ends`` to the node that follows the last one below each node.

    Return whether the trees are in preorder, and their leaves numbered in this order. Equivalent,
    for the nodes of a tree from ``root`` to ``stop`` in order, to ``ends[root] = stop`` and, unless
    ``node`` is a leaf, to ``ends[node + 1], ends[right[node]] = right[node], ends[node]``.
    """
    n_leaves = 0
    for t in range(trees.roots.size - 1):
        root, stop = trees.roots[t], trees.roots[t + 1]
        if not 0 <= root < stop <= ends.size:
            return False
        ends[root] = stop
        for node in range(root, stop):
            right, end = trees.right[node], ends[node]
            if trees.words[node] == LEAF:
                if end != node + 1 or right != n_leaves:
                    return False
                n_leaves += 1
            elif node + 1 < right < end:
                ends[node + 1], ends[right] = right, end
            else:
                return False
    return trees.roots[-1] == ends.size and n_leaves == trees.leaf_docs.size
