"""Slow twins of the kernels of random forests; steps ``q`` and labels ``Y`` are dense."""

from itertools import pairwise

import numpy as np

LEAF = -1


def draw(state, n):
    """Return a random whole number below ``n``, and the next state (xorshift64)."""
    mask = (1 << 64) - 1
    state ^= (state << 13) & mask
    state ^= state >> 7
    state ^= (state << 17) & mask
    return (state >> 33) % n, state


class Draws:
    """Random numbers one after the other."""

    def __init__(self, seed):
        self.state = int(seed)

    def __call__(self, n):
        """Return the next number below ``n``."""
        number, self.state = draw(self.state, int(n))
        return number


def agreement(Y):
    """Return how much label sets agree; the higher it is on both sides, the less labels vary."""
    return float((Y.sum(axis=0) ** 2).sum()) / len(Y)


def grow_tree(q, Y, n_docs, n_tries, seed):
    """Return the nodes of a tree in preorder: a word and a cut, or the documents of a leaf."""
    draws = Draws(seed)
    order, docs = list(range(len(q))), []
    for k in range(n_docs):
        other = k + draws(len(q) - k)
        docs.append(order[other])
        order[other] = order[k]
    return grow_node(q, Y, docs, n_tries, draws)


def grow_node(q, Y, docs, n_tries, draws):
    """Return the nodes from this one on down."""
    best, highest = None, agreement(Y[docs]) * (1 + 1e-12)
    if len(docs) > 1 and (Y[docs] != Y[docs[0]]).any():
        for _ in range(n_tries):
            d = docs[draws(len(docs))]
            words = np.flatnonzero(q[d])
            if not words.size:
                continue
            word = int(words[draws(words.size)])
            cut = draws(q[d, word])
            goes = np.array([q[other, word] > cut for other in docs])
            if not goes.all():
                gain = agreement(Y[docs][goes]) + agreement(Y[docs][~goes])
                if gain > highest:
                    best, highest = (word, cut), gain
    if best is None:
        return [sorted(docs)]
    word, cut = best
    left, right = part(q, docs, word, cut)
    below = grow_node(q, Y, left, n_tries, draws)
    return [best, *below, *grow_node(q, Y, right, n_tries, draws)]


def part(q, docs, word, cut):
    """Return the documents on both sides of a split, in the order in which a kernel has them."""
    n_right = sum(q[d, word] > cut for d in docs)
    docs, middle = list(docs), len(docs) - n_right
    low, high = 0, len(docs) - 1
    while low < middle:
        if q[docs[low], word] > cut:
            docs[low], docs[high] = docs[high], docs[low]
            high -= 1
        else:
            low += 1
    return docs[:middle], docs[middle:]


def shares(q, Y, nodes):
    """Return the labels that a document with these steps gets from a tree."""
    node = nodes[0]
    if isinstance(node, list):
        return Y[node].mean(axis=0)
    left = first_tree(nodes[1:])
    below = nodes[1 + left :] if q[node[0]] > node[1] else nodes[1 : 1 + left]
    return shares(q, Y, below)


def mean_shares(q, Y, trees):
    """Return the mean of what the trees give to the labels of each document."""
    return np.array([np.mean([shares(row, Y, tree) for tree in trees], axis=0) for row in q])


def first_tree(nodes):
    """Return how many of these nodes belong to the first tree among them."""
    if isinstance(nodes[0], list):
        return 1
    left = first_tree(nodes[1:])
    return 1 + left + first_tree(nodes[1 + left :])


def find_ends(words, right, roots):
    """Return for each node the one after the last below it."""
    ends = np.zeros(len(words), dtype=int)
    for root, stop in pairwise(roots):
        ends[root] = stop
        for node in range(root, stop):
            if words[node] != LEAF:
                ends[node + 1], ends[right[node]] = right[node], ends[node]
    return ends
