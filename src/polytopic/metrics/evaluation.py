"""All metrics at once, of documents that may be counted in parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from polytopic.metrics.calibration import CalibrationTally
from polytopic.metrics.inputs import read_named_pair, read_pair
from polytopic.metrics.label_sets import SetTally, at_level, depth, with_ancestors
from polytopic.metrics.scores import ScoreTally


def evaluate(Y_true, Y_pred, scores=None, *, classes=None, tree=None):
    """Return all metrics of label sets and, given a tree or scores, their metrics as well.

    Parameters
    ----------
    Y_true, Y_pred : array or sparse matrix of shape (n_docs, n_labels), or label names
        True and predicted labels.
    scores : array or sparse matrix of shape (n_docs, n_labels), optional
        Score of each label, not NaN.
    classes : sequence of str, optional
        All labels that the model knows; with names and scores, the label of each column.
    tree : LabelTree, optional
        The tree of labels, for the hierarchical metrics.

    Returns
    -------
    dict of str to float
        In a fixed order.

    Examples
    --------
    >>> for name, value in evaluate([["a", "b"], ["c"]], [["a"], ["c"]]).items():
    ...     print(f"{name:18} {value:.3f}")
    samples_f1         0.833
    subset_accuracy    0.500
    macro_f1           0.667
    micro_f1           0.800
    samples_precision  1.000
    samples_recall     0.750
    document_f1        0.857
    """
    tally = Tally(classes, tree)
    tally.add(Y_true, Y_pred, scores)
    return tally.metrics()


class Tally:
    """All metrics, from sums over documents; the sum of two tallies is that of all documents.

    Parameters
    ----------
    classes : sequence of str, default=None
        All labels that the model knows; with names and scores, the label of each column.
    tree : LabelTree, default=None
        The tree of labels, for the hierarchical metrics and those by level.

    Attributes
    ----------
    calibration : CalibrationTally or None
        How often probabilities came true, if they were counted; its ``plot`` draws them.

    Examples
    --------
    >>> first, second = Tally(["a", "b", "c"]), Tally(["a", "b", "c"])
    >>> first.add([["a", "b"]], [["a"]], [[3.0, 1.0, 2.0]])
    >>> second.add([["c"]], [["c"]], [[0.0, 1.0, 2.0]])
    >>> metrics = (first + second).metrics()
    >>> round(metrics["samples_f1"], 3), metrics["coverage"]
    (0.833, 2.0)
    """

    def __init__(self, classes=None, tree=None):
        self.classes = None if classes is None else list(classes)
        self.tree = tree
        self._sets: SetTally | None = None
        self._extended: SetTally | None = None  # with all ancestors
        self._levels: list[SetTally] = []
        self._scores: ScoreTally | None = None
        self.calibration: CalibrationTally | None = None

    @property
    def n_docs(self) -> int:
        """Number of documents counted."""
        return 0 if self._sets is None else int(self._sets.n_docs.sum())

    def add(self, Y_true, Y_pred, scores=None, *, proba=None, certainty=None) -> None:
        """Count documents: their true and predicted labels and, if known, the scores of labels.

        Parameters
        ----------
        Y_true, Y_pred, scores
            As for :func:`evaluate`.
        proba : array or sparse matrix of shape (n_docs, n_labels), default=None
            Probability of each label.
        certainty : array of shape (n_docs,), default=None
            Together with ``proba``: the probability that all labels of ``Y_pred`` are right.
            Documents without predicted labels do not count.
        """
        if self.tree is None:
            true, pred, labels = read_pair(Y_true, Y_pred, self.classes)
        else:
            true, pred, labels = read_named_pair(Y_true, Y_pred, self.classes)
        part = Tally(self.classes, self.tree)
        part._sets = SetTally.count(true, pred, labels)
        if self.tree is not None:
            part._extended = SetTally.count(*with_ancestors(true, pred, labels, self.tree))
            part._levels = [
                SetTally.count(*at_level(true, pred, labels, self.tree, level))
                for level in range(depth(labels, self.tree))
            ]
        if scores is not None:
            part._scores = ScoreTally.count(Y_true, scores, self.classes)
        if proba is not None and certainty is not None:
            is_right = abs(true - pred).sum(axis=1) == 0
            has_labels = np.asarray(pred.sum(axis=1)) > 0
            part.calibration = CalibrationTally.count(
                Y_true,
                proba,
                np.asarray(is_right)[has_labels],
                np.asarray(certainty)[has_labels],
                self.classes,
            )
        self._include(part)

    def __add__(self, other: Tally) -> Tally:
        total = Tally(self.classes, self.tree)
        total._include(self)
        total._include(other)
        return total

    def _include(self, part: Tally) -> None:
        n_levels = max(len(self._levels), len(part._levels))
        levels = self._levels_down_to(n_levels), part._levels_down_to(n_levels)
        self._levels = [_sum(*pair) for pair in zip(*levels, strict=True)]
        self._sets = _sum(self._sets, part._sets)
        self._extended = _sum(self._extended, part._extended)
        self._scores = _sum(self._scores, part._scores)
        self.calibration = _sum(self.calibration, part.calibration)

    def _levels_down_to(self, n_levels):
        """Return a tally per level; below the deepest label, labels stand for themselves."""
        return self._levels + [self._sets] * (n_levels - len(self._levels))

    def metrics(self) -> dict[str, float]:
        """Return what :func:`evaluate` returns for all documents counted."""
        if self._sets is None:
            raise ValueError("There is no labelled document to evaluate on.")
        values = self._sets.metrics()
        if self._extended is not None:
            values |= self._extended.hierarchical_metrics()
        if self._scores is not None:
            values |= self._scores.metrics(n_labels=self._sets.by_label.shape[1])
        if self.calibration is not None:
            values |= self.calibration.metrics()
        return values

    def metrics_by_label(self) -> dict[Any, dict[str, float]]:
        """Return what :func:`classification_report` returns for all documents counted."""
        if self._sets is None:
            raise ValueError("There is no labelled document to evaluate on.")
        return self._sets.report()

    def metrics_by_level(self) -> dict[int, dict[str, Any]]:
        """Return the main metrics at each level of the tree, see :func:`by_level`.

        ``labels`` is the number of labels there. The dictionary is empty without a tree.
        """
        return {
            level: {
                "labels": sets.by_label.shape[1],
                "samples_f1": sets.mean("samples_f1"),
                "subset_accuracy": sets.mean("subset_accuracy"),
                "micro_f1": sets.micro_f1(),
                "macro_f1": sets.macro_f1(),
            }
            for level, sets in enumerate(self._levels)
        }


def _sum(one, other):
    """Return the sum of two tallies, either of which may be missing."""
    if one is None or other is None:
        return other if one is None else one
    return one + other
