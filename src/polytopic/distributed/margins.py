"""MML on a cluster: rounds of CoCoA+ over documents in parts."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polytopic.distributed.engine import broadcast, delayed, map_tasks, tree_reduce
from polytopic.distributed.learning import CollectedRows, take_rows
from polytopic.models.mml.training import DualAscent, sample_documents, tune
from polytopic.text.weights import unit_rows


class MarginParts:
    r"""Documents in parts on a cluster, as :meth:`polytopic.MML.fit_documents` takes them.

    In each round, every one of the :math:`K` parts makes a pass over its documents as if there were
    no others, starting from the weights of the last round, with a :math:`C` that is :math:`K` times
    as large. The next round starts from the mean of their weights. With dual variables
    :math:`K \alpha` for :math:`\alpha`, this is CoCoA+ [1]_ with :math:`\gamma = 1` and
    :math:`\sigma' = K`: a part climbs its share of the dual objective, in which the quadratic term
    of its own changes counts :math:`K` times, so that the changes of all parts can be added.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    parts : list
        Tasks that give pairs of CSR matrices, words and labels; documents were dealt to them in
        turn. Documents without words are ignored.
    progress : callable, default=None
        Called with the number of finished rounds and the largest number of rounds.

    References
    ----------
    .. [1] Ma et al., "Adding vs. Averaging in Distributed Primal-Dual Optimization", ICML 2015.
    """

    def __init__(self, client: Any, parts: list, progress: Any = None):
        self.client, self.progress = client, progress
        has_words = client.gather(client.compute(map_tasks(_has_words, parts)))
        self._has_words = np.zeros(sum(mask.size for mask in has_words), dtype=bool)
        for part, mask in enumerate(has_words):
            self._has_words[part :: len(parts)] = mask
        self.parts = client.persist(map_tasks(_with_words, parts))
        sizes = client.gather(client.compute(map_tasks(_count_sizes, self.parts)))
        length = max(counts.size for counts in sizes)
        self._docs_by_part = [int(counts.sum()) for counts in sizes]
        self.sizes = np.sum([np.pad(n, (0, length - n.size)) for n in sizes], axis=0)

    @classmethod
    def from_rows(cls, rows: CollectedRows, progress: Any = None) -> MarginParts:
        """Divide rows into parts in turn."""
        return cls(rows.client, rows.deal(), progress)

    def tune(self, model) -> dict:
        """Tune on a worker, which gets a sample of the documents."""
        order = sample_documents(model, sum(self._docs_by_part))
        docs, n_parts = np.flatnonzero(self._has_words)[order], len(self.parts)
        places = np.zeros(self._has_words.size, dtype=np.int64)
        for part in range(n_parts):
            places[part::n_parts] = np.cumsum(self._has_words[part::n_parts]) - 1
        sample = take_rows(self.parts, docs % n_parts, places[docs])
        return self.client.compute(delayed(_tune)(model, sample)).result()

    def train(self, sizes, dtype, margins, order, max_iter) -> DualAscent:
        """Run rounds until the gap is a small fraction of the objective, at most ``max_iter``."""
        begin, run_pass, mean = map(delayed, (_begin, _run_pass, _mean))
        used = [p for p, size in enumerate(self._docs_by_part) if size]
        seeds = order.randint(2**31 - 1, size=len(used)).tolist()
        settings = broadcast(margins._replace(C=margins.C * len(used)))
        states = [
            begin(self.parts[p], sizes, dtype, seed) for p, seed in zip(used, seeds, strict=True)
        ]
        ascent = DualAscent(None, sizes, np.zeros(0), [], [], converged=not used)
        W = None
        while not ascent.converged and len(ascent.objectives) < max_iter:
            passes = [run_pass(state, W, settings) for state in states]
            total = tree_reduce([pair[1] for pair in passes], _sum_passes)
            W = mean(total, len(used))
            measured = delayed(_measure)(total, W, len(used))
            W, measured, *states = self.client.persist([W, measured, *(p[0] for p in passes)])
            gap, missed, linear, square = self.client.compute(measured).result()
            ascent.record(gap, missed, linear - square / 2, margins.tol)
            if self.progress is not None:
                self.progress(len(ascent.objectives), max_iter)
        ascent.W = self.client.compute(W).result()
        return ascent


# On workers


def _has_words(part):
    return part[0].getnnz(axis=1) > 0


def _with_words(part):
    """Return the documents of a part that have words, at unit length."""
    X, Y = part
    rows = np.flatnonzero(X.getnnz(axis=1))
    return unit_rows(X[rows]), Y[rows].sorted_indices()


def _count_sizes(part):
    """Return the number of documents with 0, 1, 2, ... labels."""
    return np.bincount(part[1].getnnz(axis=1), minlength=2)


def _tune(model, sample):
    X, Y = sample
    return tune(model, X, Y, np.arange(X.shape[0]))


def _begin(part, sizes, dtype, seed):
    """Return the initial state of a part: its ascent, and its random state."""
    order = check_random_state(seed)
    return DualAscent.begin(part[0], part[1], sizes, dtype, order), order


def _run_pass(state, W, margins):
    """Run a pass over a part; return its new state, and its weights and measurements."""
    ascent, order = state
    W = ascent.W.copy() if W is None else W.copy()
    ascent, order = replace(ascent, W=W, duals=list(ascent.duals)), deepcopy(order)
    measured = ascent.run_pass(margins, order)
    return (replace(ascent, W=np.zeros(0)), order), (ascent.W, *measured)


def _sum_passes(passes):
    """Return the sums of weights, gaps and linear terms, and the largest missed violation."""
    W, gap, missed, linear = zip(*passes, strict=True)
    total = W[0].copy()
    for weights in W[1:]:
        total += weights
    return total, sum(gap), max(missed), sum(linear)


def _mean(total, n_parts):
    return total[0] / total[0].dtype.type(n_parts)


def _measure(total, W, n_parts):
    """Return the gap, the largest missed violation, and both terms of the dual objective."""
    _, gap, missed, linear = total
    weights = W.ravel()
    return gap / n_parts, missed, linear / n_parts, float(np.dot(weights, weights))
