"""Labels as they are seen from higher up in the tree."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

import numpy as np
from scipy import sparse
from sklearn.utils import check_scalar

from polytopic.labels.space import merge, merged
from polytopic.labels.tree import LabelTree


class Level:
    r"""Labels rolled up to their ancestors at one level of the tree.

    A label that lies no deeper than the level, or is not in the tree, stands for itself. Rolling
    up to one level and then to a higher one is the same as rolling up at once.

    Parameters
    ----------
    labels : sequence of str
        The labels of columns.
    tree : LabelTree
        What lies above them.
    level : int
        0 for the roots.

    Attributes
    ----------
    labels : tuple of str
        The labels at the level, sorted.
    matrix : csr_matrix of shape (n_labels, n_labels_at_level)
        A 1 where a label is, or lies under, a label at the level.

    Examples
    --------
    >>> tree = LabelTree.from_names(["science/space", "science/biology", "sport"])
    >>> level = Level(["science/biology", "science/space", "sport"], tree, 0)
    >>> level.labels, level.proba(np.array([[0.5, 0.5, 0.1]]))
    (('science', 'sport'), array([[0.75, 0.1 ]]))
    """

    def __init__(self, labels: Sequence[str], tree: LabelTree, level: int) -> None:
        check_scalar(level, "level", Integral, min_val=0)
        above = [tree.at_level(label, level) if label in tree else label for label in labels]
        space, self.matrix = merged(above)
        self.labels: tuple[str, ...] = space.ids
        place = self.matrix.indices
        self._order = np.argsort(place, kind="stable")
        self._starts = np.searchsorted(place[self._order], np.arange(len(space)))

    def sets(self, Y: sparse.csr_matrix) -> sparse.csr_matrix:
        """Return the indicator of what lies above the labels of each row."""
        return merge(Y, self.matrix)

    def scores(self, scores: np.ndarray) -> np.ndarray:
        """Return the best score of any label below."""
        return np.maximum.reduceat(scores[:, self._order], self._starts, axis=1)

    def proba(self, proba: np.ndarray) -> np.ndarray:
        r"""Return how probable it is that any label below is right, were they independent.

        .. math:: p = 1 - \prod_l (1 - p_l)

        Labels are not independent, so this is an approximation; it is never below the
        probability of the best label and never above their sum.
        """
        wrong = np.multiply.reduceat(1.0 - proba[:, self._order], self._starts, axis=1)
        return 1.0 - wrong
