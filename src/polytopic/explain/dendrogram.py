"""Labels clustered by their words: a tree to compute with, to export and to draw."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from polytopic.labels import LabelTree, indicator

BLOCK = 4096  # words compared at once
MAX_ORDERED = 500  # labels: for more, ordering similar labels next to each other is too slow
PLAIN = re.compile("[A-Za-z0-9./+-]+")  # Newick names that need no quotes
UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
BOX = " ╵╷│╴┘┐┤╶└┌├─┴┬┼"  # indexed by the sum of a cell's directions


class Join(NamedTuple):
    """Two clusters that join, as they are drawn: the height, and row and height of each cluster.

    The height of a single label is None: labels are drawn at the edge.
    """

    height: float
    upper: tuple[float, float | None]
    lower: tuple[float, float | None]


def _mean(one: float, other: float) -> float:
    return (one + other) / 2


@dataclass(frozen=True, eq=False)
class Dendrogram:
    r"""Labels clustered by the similarity of their words, with average linkage.

    The distance of two labels is the Hellinger distance of their word distributions,

    .. math:: \sqrt{1 - \sum_w \sqrt{p(w \mid c)\, p(w \mid d)}}

    which is 0 for the same distribution and 1 for labels without a common word. Smoothing would
    make all labels with few documents similar. So each label's smallest probability, which is what
    smoothing gives to every word, is subtracted first.

    Attributes
    ----------
    labels : tuple
        The labels.
    linkage : ndarray of shape (n_labels - 1, 4)
        The joins as :func:`scipy.cluster.hierarchy.linkage` returns them, lowest first: two
        clusters, the height at which they join, and the number of labels in both.
    """

    labels: tuple
    linkage: np.ndarray

    @classmethod
    def from_words(cls, labels: Sequence, word_proba) -> Dendrogram:
        """Cluster labels by their word distributions, (n_labels, n_words)."""
        if len(labels) < 2:
            return cls(tuple(labels), np.empty((0, 4)))
        distances = squareform(_hellinger(word_proba), checks=False)
        joins = hierarchy.linkage(distances, "average", optimal_ordering=len(labels) <= MAX_ORDERED)
        return cls(tuple(labels), joins)

    @cached_property
    def order(self) -> list[int]:
        """The numbers of the labels, from top to bottom of a drawing."""
        return hierarchy.leaves_list(self.linkage).tolist() if len(self.linkage) else [0]

    @property
    def span(self) -> tuple[float, float]:
        """The heights of the lowest and of the highest join."""
        low, high = self.linkage[[0, -1], 2].tolist() if len(self.linkage) else (0.0, 0.0)
        return low, high

    def depth(self, height: float | None) -> float:
        """Return how far from the root a height is drawn: 0 is the root, 1 is where labels are.

        Most joins are close to the root, so a square root spreads them out.
        """
        low, high = self.span
        if height is None:
            return 1.0
        return 0.9 * float(np.sqrt((high - height) / (high - low))) if height < high else 0.0

    def newick(self) -> str:
        """Return the tree in the Newick format.

        The branches between two labels add up to the height at which they join. Names are quoted
        where the format requires it; characters that cannot be printed become spaces.
        """

        def join(first, second, height):
            inside = ",".join(
                f"{name}:{max(0.0, height - below) / 2:.6g}" for name, below in (first, second)
            )
            return f"({inside})", height

        text, _ = self._fold(lambda place: (_quote(str(self.labels[place])), 0.0), join)
        return f"{text};"

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as dicts: a join has ``height`` and ``children``, a leaf ``label``."""
        return self._fold(
            lambda place: {"label": self.labels[place]},
            lambda first, second, height: {"height": height, "children": [first, second]},
        )

    def agreement(self, tree: LabelTree) -> float:
        """Return how well the clusters agree with a known tree, from -1 to 1.

        This is the cophenetic correlation: over all pairs of labels, the correlation of the height
        at which they join with the number of steps between them in the tree. Roots are one step
        below a common top; labels that are not in the tree count as roots. The result is NaN if
        there is nothing to compare: fewer than three labels, or all equally far apart.
        """
        if len(self.labels) < 3:
            return float("nan")
        joined, known = hierarchy.cophenet(self.linkage), _steps(self.labels, tree)
        if np.ptp(joined) == 0 or np.ptp(known) == 0:
            return float("nan")
        return float(np.corrcoef(joined, known)[0, 1])

    def joins(self, middle: Callable[[float, float], float] = _mean) -> Iterator[Join]:
        """Yield the joins, lowest first; ``middle`` computes the row of one from those it joins."""
        row = np.empty(len(self.labels))
        row[self.order] = np.arange(len(self.labels))
        places: list[tuple[float, float | None]] = [(place, None) for place in row.tolist()]
        for first, second, height, _ in self.linkage.tolist():
            upper, lower = sorted((places[int(first)], places[int(second)]))
            places.append((middle(upper[0], lower[0]), height))
            yield Join(height, upper, lower)

    def lines(self, width: int) -> list[str]:
        """Return the tree drawn with box characters: one line per label, the root on the left.

        The lower a join, the further to the right it is drawn. Joins in the same place are merged.
        """
        grid = np.zeros((len(self.labels), width), dtype=np.intp)

        def column(height):
            return int(self.depth(height) * width)

        for join in self.joins(min):
            x, top, bottom = column(join.height), int(join.upper[0]), int(join.lower[0])
            grid[top:bottom, x] |= DOWN
            grid[top + 1 : bottom + 1, x] |= UP
            for row, height in (join.upper, join.lower):
                end = column(height)
                grid[int(row), x:end] |= RIGHT
                grid[int(row), x + 1 : end + 1] |= LEFT
        return ["".join(BOX[cell] for cell in row) for row in grid]

    def _fold(self, leaf: Callable, join: Callable) -> Any:
        """Compute a value of each label, then of each join from those it joins; return the last."""
        values = [leaf(place) for place in range(len(self.labels))]
        for first, second, height, _ in self.linkage.tolist():
            values.append(join(values[int(first)], values[int(second)], height))
        return values[-1]


def _hellinger(word_proba) -> np.ndarray:
    """Return the distances between distributions, (n_labels, n_labels).

    The smallest probability is subtracted, unless all words have the same.
    """
    proba = np.asarray(word_proba)
    least = proba.min(axis=1, keepdims=True).astype(np.float64)
    mass = proba.sum(axis=1, keepdims=True, dtype=np.float64) - least * proba.shape[1]
    uniform = ~(proba.max(axis=1, keepdims=True) > least)
    least, mass = np.where(uniform, 0.0, least), np.where(uniform, 1.0, mass)
    affinity = np.zeros((len(proba), len(proba)))
    for start in range(0, proba.shape[1], BLOCK):
        root = np.sqrt((proba[:, start : start + BLOCK] - least) / mass)
        affinity += root @ root.T
    distances = np.sqrt(np.clip(1.0 - (affinity + affinity.T) / 2, 0.0, 1.0))
    np.fill_diagonal(distances, 0.0)
    return distances


def _steps(labels: Sequence, tree: LabelTree) -> np.ndarray:
    """Return the number of steps between any two labels in a tree, in the order of ``pdist``."""
    tree = tree.including(labels)
    place = {node: column for column, node in enumerate(tree.nodes)}
    paths = [[place[label], *map(place.__getitem__, tree.ancestors(label))] for label in labels]
    above = indicator(np.concatenate(paths), np.cumsum([0, *map(len, paths)]), len(place))
    common = (above @ above.T).toarray()
    depth = common.diagonal()
    return squareform(depth[:, None] + depth - 2 * common, checks=False)


def _quote(name: str) -> str:
    """Return a name as Newick writes it."""
    if PLAIN.fullmatch(name):
        return name
    name = "".join(c if c.isprintable() else " " for c in name)
    return "'" + name.replace("'", "''") + "'"
