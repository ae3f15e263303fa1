"""The best label sets of documents, as every model with a posterior over sets returns them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from polytopic.labels import indicator


@dataclass(frozen=True)
class LabelSets:
    """The best label sets of documents, best first.

    Attributes
    ----------
    sets : list of lists of tuples
        For each document its label sets, each a tuple of label ids.
    scores : ndarray of shape (n_docs, n_best)
        Their scores, the log posterior for mixtures; ``-inf`` where there are fewer sets.
    bound : ndarray of shape (n_docs,)
        No set that is not listed has a higher score.
    """

    sets: list
    scores: np.ndarray
    bound: np.ndarray

    @property
    def gap(self) -> np.ndarray:
        """How much better than the best listed set any other set can be; 0 if none can."""
        return np.maximum(self.bound - self.scores[:, 0], 0.0)

    @property
    def optimal(self) -> np.ndarray:
        """Whether the best listed set is proven to be the best of all."""
        return self.bound <= self.scores[:, 0]

    def certificate(self, doc: int) -> str:
        """Return in words what is proven about a document's first set."""
        if self.optimal[doc]:
            return "optimal: no other label set is better"
        return f"no set is better by more than {self.gap[doc]:.3g}"


def stack_sets(blocks, n_labels) -> sparse.csr_matrix:
    """Return the indicator of label sets that come in blocks, as pairs of sizes and labels."""
    sizes = np.concatenate([np.zeros(0, dtype=np.int64), *(size for size, _ in blocks)])
    labels = np.concatenate([np.zeros(0, dtype=np.int64), *(label for _, label in blocks)])
    return indicator(labels, np.concatenate([[0], np.cumsum(sizes)]), n_labels)
