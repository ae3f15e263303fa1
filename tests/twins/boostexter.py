"""Slow twins of BoosTexter's kernels (Schapire and Singer 2000); X, Y and D are dense."""

import numpy as np


def locate_pairs(X, Y, label, ends):
    """Return the position of each pair of a word and a label of each document, in order."""
    positions = []
    for x, y in zip(X, Y, strict=True):
        for word in np.flatnonzero(x):
            own = label[ends[word] : ends[word + 1]].tolist()
            positions += [ends[word] + own.index(each) for each in np.flatnonzero(y)]
    return positions


def sum_weights(X, Y, D):
    """Return plus and minus of each word and label, and mass and gain of each word."""
    D, has = D / D.sum(), (X > 0).astype(float)
    plus, minus = has.T @ (D * Y), has.T @ (D * (1 - Y))
    gain = ((np.sqrt(plus) - np.sqrt(minus)) ** 2).sum(axis=1)
    return plus, minus, has.T @ D.sum(axis=1), gain


def all_z(X, Y, D):
    """Return Z of the rule of each word (section 4.2), for weights that sum to one."""
    z = []
    for has in (X > 0).T:
        plus, minus = (D * Y)[has].sum(axis=0), (D * (1 - Y))[has].sum(axis=0)
        z.append(D[~has].sum() + 2 * np.sqrt(plus * minus).sum())
    return np.array(z)


def add_rule(X, Y, D, word, smoothing):
    """Return the outputs of a word's rule, and the weights after it, before normalization."""
    has = X[:, word] > 0
    plus, minus = (D * Y)[has].sum(axis=0), (D * (1 - Y))[has].sum(axis=0)
    outputs = np.log((plus + smoothing) / (minus + smoothing)) / 2
    return outputs, D * np.exp(-np.outer(has, outputs) * (2 * Y - 1))


def add_rules(X, Y, D, n_rounds, smoothing):
    """Return the words, outputs and z of rules; the first of tied words is taken."""
    words, outputs, z = [], [], []
    for _ in range(n_rounds):
        all_of = all_z(X, Y, D)
        words.append(int(np.flatnonzero(all_of <= all_of.min() + 1e-12)[0]))
        output, D = add_rule(X, Y, D, words[-1], smoothing)
        outputs.append(output)
        z.append(D.sum())
        D = D / D.sum()
    return words, np.array(outputs), np.array(z)
