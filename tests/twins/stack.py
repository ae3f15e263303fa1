"""Slow twins of the kernels of a stack."""

from itertools import product

import numpy as np


def all_sets(n_labels):
    """Return all label sets as rows, the empty one first."""
    return np.array(list(product([0, 1], repeat=n_labels)))


def expected_f1(p, chosen):
    """Return the expected F1 of each row of label sets, over all sets of independent labels."""
    truth = all_sets(len(p))
    chance = np.where(truth, p, 1 - p).prod(axis=1)
    sizes = chosen.sum(axis=1)[:, None] + truth.sum(axis=1)
    return (2 * chosen @ truth.T / np.maximum(sizes, 1)) @ chance


def choose_sets(P):
    """Return the set with the highest expected F1 among all that are not empty."""
    sets = all_sets(P.shape[1])[1:]
    return np.array([sets[expected_f1(p, sets).argmax()] for p in P], dtype=bool)


def add_log_odds(scores, x, y, sure, weight, total):
    """Return the total with the weighted log odds that scores stand for."""
    p = np.clip(np.interp(scores, x, y), sure, 1 - sure)
    return total + weight * np.log(p / (1 - p))
