"""The best label sets of documents, with a bound on all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from polytopic.kernels import branch
from polytopic.kernels.blocks import map_rows
from polytopic.labels import LabelSpace, indicator

UNLIMITED = 1 << 62  # the kernels count to 2**63


@dataclass(frozen=True)
class LabelSets:
    """The best label sets of documents, best first.

    Attributes
    ----------
    sets : list of lists of tuples
        For each document its label sets, each a tuple of label ids.
    scores : ndarray of shape (n_docs, n_best)
        Their log posterior; ``-inf`` where there are fewer sets.
    bound : ndarray of shape (n_docs,)
        No set that is not listed has a higher log posterior.
    """

    sets: list
    scores: np.ndarray
    bound: np.ndarray

    @property
    def gap(self) -> np.ndarray:
        """How much better than the best listed set any other set may be; 0 if none is better."""
        return np.maximum(self.bound - self.scores[:, 0], 0.0)

    @property
    def optimal(self) -> np.ndarray:
        """Whether the best listed set is proven to be the best of all."""
        return self.bound <= self.scores[:, 0]

    def certificate(self, doc: int) -> str:
        """Return what is proven of a document's first set, in words."""
        if self.optimal[doc]:
            return "optimal: no other label set is better"
        return f"no set is better by more than {self.gap[doc]:.3g}"


@dataclass(frozen=True)
class FoundSets:
    """What a search has found, by columns of labels."""

    indicator: sparse.csr_matrix  # of all documents' sets, n_best rows a document
    values: np.ndarray
    bounds: np.ndarray
    totals: np.ndarray

    def first(self) -> sparse.csr_matrix:
        """Return the best set of each document."""
        return self.indicator[:: self.values.shape[1]]

    def named(self, classes) -> LabelSets:
        """Return the sets by name, with log posteriors."""
        rows = LabelSpace(classes.tolist()).decode(self.indicator)
        n_best = self.values.shape[1]
        sets = [
            [tuple(labels) for labels in rows[start : start + n_best] if labels]
            for start in range(0, len(rows), n_best)
        ]
        return LabelSets(sets, self.values - self.totals[:, None], self.bounds - self.totals)


def find_sets(X, problem, n_best, max_nodes) -> FoundSets:
    """Find the best label sets of documents; ``problem`` is that of the kernels."""
    n_docs, n_labels = X.shape[0], problem.theta.shape[1]
    max_nodes = int(min(max_nodes, UNLIMITED))
    values, bounds, totals = np.empty((n_docs, n_best)), np.empty(n_docs), np.empty(n_docs)

    def block(data, indices, indptr, rows):
        found = np.zeros((indptr.size - 1, n_best, n_labels), dtype=bool)
        branch.best_sets(
            data,
            indices,
            indptr,
            problem,
            n_best,
            max_nodes,
            found,
            values[rows],
            bounds[rows],
            totals[rows],
        )
        return found.sum(axis=2).ravel(), np.nonzero(found)[2]

    blocks = map_rows(block, X, n_best * n_labels)
    return FoundSets(stack_sets(blocks, n_labels), values, bounds, totals)


def stack_sets(blocks, n_labels) -> sparse.csr_matrix:
    """Return the indicator of pairs of the sizes of sets and their labels, block by block."""
    sizes = np.concatenate([np.zeros(0, dtype=np.int64), *(size for size, _ in blocks)])
    labels = np.concatenate([np.zeros(0, dtype=np.int64), *(label for _, label in blocks)])
    return indicator(labels, np.concatenate([[0], np.cumsum(sizes)]), n_labels)
