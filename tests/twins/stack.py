"""Slow twins of the kernels of a stack."""

from itertools import product

import numpy as np


def expected_f1(p, chosen):
    """Return the expected F1 of a label set over all sets of independent labels."""
    total = 0.0
    for labels in product([0, 1], repeat=len(p)):
        truth = np.array(labels, dtype=bool)
        chance = np.where(truth, p, 1 - p).prod()
        total += chance * 2 * (truth & chosen).sum() / max(truth.sum() + chosen.sum(), 1)
    return total


def choose_sets(P):
    """Return the set with the highest expected F1 among all that are not empty."""
    sets = [np.array(s, dtype=bool) for s in product([0, 1], repeat=P.shape[1]) if any(s)]
    return np.array([max(sets, key=lambda s, p=p: expected_f1(p, s)) for p in P])
