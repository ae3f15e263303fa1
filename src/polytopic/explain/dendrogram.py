"""Labels clustered by their words: which join at which height, for programs and for drawings."""

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
ORDERED = 500  # labels up to which neighbours are made as alike as the joins allow
PLAIN = re.compile("[A-Za-z0-9./+-]+")  # Newick names that need no quotes
UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
BOX = " ╵╷│╴┘┐┤╶└┌├─┴┬┼"  # by the sum of the directions that lines go to


class Joint(NamedTuple):
    """A join as it is drawn: its height, and the row and height of what it joins.

    Labels have no height: they are drawn at the edge.
    """

    height: float
    upper: tuple[float, float | None]
    lower: tuple[float, float | None]


def _mean(one: float, other: float) -> float:
    return (one + other) / 2


@dataclass(frozen=True, eq=False)
class Dendrogram:
    r"""Labels clustered by how alike their words are, by average linkage.

    The distance of two labels is the Hellinger distance of their word distributions,

    .. math:: \sqrt{1 - \sum_w \sqrt{p(w \mid c)\, p(w \mid d)}}

    from 0 for the same words to 1 for labels that share none. What smoothing gives to every word
    is taken off first, since it makes all labels with few documents alike: each label's smallest
    probability.

    Attributes
    ----------
    labels : tuple
        The labels.
    linkage : ndarray of shape (n_labels - 1, 4)
        The joins as :func:`scipy.cluster.hierarchy.linkage` gives them, lowest first: two
        clusters, the height they join at, and the labels in both.
    """

    labels: tuple
    linkage: np.ndarray

    @classmethod
    def of_words(cls, labels: Sequence, word_proba) -> Dendrogram:
        """Cluster labels by their word distributions, (n_labels, n_words)."""
        if len(labels) < 2:
            return cls(tuple(labels), np.empty((0, 4)))
        distances = squareform(_hellinger(word_proba), checks=False)
        joins = hierarchy.linkage(distances, "average", optimal_ordering=len(labels) <= ORDERED)
        return cls(tuple(labels), joins)

    @cached_property
    def order(self) -> list[int]:
        """The places of the labels from top to bottom of a drawing."""
        return hierarchy.leaves_list(self.linkage).tolist() if len(self.linkage) else [0]

    @property
    def span(self) -> tuple[float, float]:
        """The heights of the lowest join and of the highest."""
        low, high = self.linkage[[0, -1], 2].tolist() if len(self.linkage) else (0.0, 0.0)
        return low, high

    def depth(self, height: float | None) -> float:
        """Return how far from the root a height is drawn, from 0 to 1, where labels are.

        Most joins are high: the root of the depth gives them room.
        """
        low, high = self.span
        if height is None:
            return 1.0
        return 0.9 * float(np.sqrt((high - height) / (high - low))) if height < high else 0.0

    def newick(self) -> str:
        """Return the tree in the Newick format.

        The branches between two labels add up to the height at which they join. Names are quoted
        where the format asks for it; a blank stands for what no name can hold, such as newlines.
        """

        def join(first, second, height):
            inside = ",".join(
                f"{name}:{max(0.0, height - below) / 2:.6g}" for name, below in (first, second)
            )
            return f"({inside})", height

        text, _ = self._folded(lambda place: (_quoted(str(self.labels[place])), 0.0), join)
        return f"{text};"

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as plain values: joins with ``height`` and ``children``, and labels."""
        return self._folded(
            lambda place: {"label": self.labels[place]},
            lambda first, second, height: {"height": height, "children": [first, second]},
        )

    def agreement(self, tree: LabelTree) -> float:
        """Return how well the joins agree with a known tree, from -1 to 1.

        This is the cophenetic correlation: of the heights at which two labels join with the steps
        between them in the tree, over all pairs. Roots are one step below a common top; labels
        that the tree does not hold are roots. NaN where there is nothing to compare: fewer than
        three labels, or all of them equally far from each other.
        """
        if len(self.labels) < 3:
            return float("nan")
        joined, known = hierarchy.cophenet(self.linkage), _steps(self.labels, tree)
        if np.ptp(joined) == 0 or np.ptp(known) == 0:
            return float("nan")
        return float(np.corrcoef(joined, known)[0, 1])

    def joints(self, middle: Callable[[float, float], float] = _mean) -> Iterator[Joint]:
        """Give the joins, lowest first; ``middle`` tells the row of one from those it joins."""
        row = np.empty(len(self.labels))
        row[self.order] = np.arange(len(self.labels))
        places: list[tuple[float, float | None]] = [(place, None) for place in row.tolist()]
        for first, second, height, _ in self.linkage.tolist():
            upper, lower = sorted((places[int(first)], places[int(second)]))
            places.append((middle(upper[0], lower[0]), height))
            yield Joint(height, upper, lower)

    def lines(self, width: int) -> list[str]:
        """Return the tree drawn with box characters, a line a label, root to the left.

        Joins stand the further to the right the lower they are; those that fall together are drawn
        as one.
        """
        grid = np.zeros((len(self.labels), width), dtype=np.intp)

        def column(height):
            return int(self.depth(height) * width)

        for joint in self.joints(min):
            x, top, bottom = column(joint.height), int(joint.upper[0]), int(joint.lower[0])
            grid[top:bottom, x] |= DOWN
            grid[top + 1 : bottom + 1, x] |= UP
            for row, height in (joint.upper, joint.lower):
                end = column(height)
                grid[int(row), x:end] |= RIGHT
                grid[int(row), x + 1 : end + 1] |= LEFT
        return ["".join(BOX[cell] for cell in row) for row in grid]

    def _folded(self, leaf: Callable, join: Callable) -> Any:
        """Return what becomes of the tree when each label and then each join becomes something."""
        values = [leaf(place) for place in range(len(self.labels))]
        for first, second, height, _ in self.linkage.tolist():
            values.append(join(values[int(first)], values[int(second)], height))
        return values[-1]


def _hellinger(word_proba) -> np.ndarray:
    """Return the distances between distributions, (n_labels, n_labels).

    Without what every word has, unless all words have the same.
    """
    proba = np.asarray(word_proba)
    least = proba.min(axis=1, keepdims=True).astype(np.float64)
    mass = proba.sum(axis=1, keepdims=True, dtype=np.float64) - least * proba.shape[1]
    uniform = ~(proba.max(axis=1, keepdims=True) > least)
    least, mass = np.where(uniform, 0.0, least), np.where(uniform, 1.0, mass)
    alike = np.zeros((len(proba), len(proba)))
    for start in range(0, proba.shape[1], BLOCK):
        root = np.sqrt((proba[:, start : start + BLOCK] - least) / mass)
        alike += root @ root.T
    distances = np.sqrt(np.clip(1.0 - (alike + alike.T) / 2, 0.0, 1.0))
    np.fill_diagonal(distances, 0.0)
    return distances


def _steps(labels: Sequence, tree: LabelTree) -> np.ndarray:
    """Return the steps between each two labels in a tree, in the order of ``pdist``."""
    tree = tree.including(labels)
    place = {node: column for column, node in enumerate(tree.nodes)}
    paths = [[place[label], *map(place.__getitem__, tree.ancestors(label))] for label in labels]
    above = indicator(np.concatenate(paths), np.cumsum([0, *map(len, paths)]), len(place))
    common = (above @ above.T).toarray()
    depth = common.diagonal()
    return squareform(depth[:, None] + depth - 2 * common, checks=False)


def _quoted(name: str) -> str:
    """Return a name as Newick has it."""
    if PLAIN.fullmatch(name):
        return name
    name = "".join(c if c.isprintable() else " " for c in name)
    return "'" + name.replace("'", "''") + "'"
