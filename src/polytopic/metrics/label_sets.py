"""Metrics of label sets: by document, by label, pooled, and along a tree of labels."""

from __future__ import annotations

from collections.abc import Container
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from polytopic.labels import Level
from polytopic.metrics.inputs import (
    all_labels,
    names_to_indicator,
    ones,
    read_named_pair,
    read_pair,
)


def ratio(part, whole, empty):
    """Return ``part / whole``, and ``empty`` where the whole is 0."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1), empty)


def f1(right, true, predicted, *, empty=1):
    """Return the F-measure of label sets of these sizes; ``empty`` where both have no label."""
    return ratio(2 * right, true + predicted, empty)


def precision(right, true, predicted):
    """Return the share of predicted labels that are right."""
    return ratio(right, predicted, empty=true == 0)


def recall(right, true, predicted):
    """Return the share of true labels that were predicted."""
    return ratio(right, true, empty=predicted == 0)


def is_exact(right, true, predicted):
    """Return whether the predicted labels are the true ones."""
    return (right == true) & (right == predicted)


def harmonic_mean(precision, recall):
    """Return the F-measure of precision and recall, 0 where both are 0."""
    return ratio(2 * precision * recall, precision + recall, empty=0)


# Metrics that are means over documents, from how many labels are right, true and predicted
PER_DOCUMENT = {
    "samples_f1": f1,
    "subset_accuracy": is_exact,
    "samples_precision": precision,
    "samples_recall": recall,
}


class SetTally:
    """Numbers of right, true and predicted labels, by document and by label.

    All metrics of label sets follow from them. The sum of two tallies is the tally of the documents
    of both.

    Parameters
    ----------
    by_document : ndarray of int of shape (3, n_triples)
        Numbers of right, true and predicted labels of documents.
    n_docs : ndarray of int of shape (n_triples,)
        How many documents have them.
    by_label : ndarray of int of shape (3, n_labels)
        Documents for which each label is right, true and predicted.
    labels : list of str, default=None
        The labels; None for columns without names.
    """

    def __init__(self, by_document, n_docs, by_label, labels=None):
        self.by_document, self.n_docs = by_document, n_docs
        self.by_label, self.labels = by_label, labels

    @classmethod
    def count(cls, true, pred, labels=None) -> SetTally:
        """Count two CSR matrices of ones."""
        parts = true.multiply(pred), true, pred
        by_document = np.array([part.sum(axis=1) for part in parts])
        by_label = np.array([part.sum(axis=0) for part in parts])
        return cls(by_document, np.ones(true.shape[0], np.int64), by_label, labels)

    def __add__(self, other: SetTally) -> SetTally:
        triples = np.hstack([self.by_document, other.by_document])
        distinct, place = np.unique(triples, axis=1, return_inverse=True)
        numbers = np.zeros(distinct.shape[1], np.int64)
        np.add.at(numbers, place.ravel(), np.concatenate([self.n_docs, other.n_docs]))
        if self.labels == other.labels:
            return SetTally(distinct, numbers, self.by_label + other.by_label, self.labels)
        labels = all_labels(self.labels, [other.labels])
        column = {label: place for place, label in enumerate(labels)}
        by_label = np.zeros((3, len(labels)), np.int64)
        for part in (self, other):
            by_label[:, [column[label] for label in part.labels]] += part.by_label
        return SetTally(distinct, numbers, by_label, labels)

    def per_document(self, metric: str) -> np.ndarray:
        """Return the value of a metric in ``PER_DOCUMENT`` for each triple of numbers."""
        return PER_DOCUMENT[metric](*self.by_document)

    def mean(self, metric: str) -> float:
        """Return the mean over documents of a metric in ``PER_DOCUMENT``."""
        return float((self.per_document(metric) * self.n_docs).sum() / self.n_docs.sum())

    @cached_property
    def pooled(self) -> np.ndarray:
        """Numbers of right, true and predicted pairs of document and label."""
        return self.by_document @ self.n_docs

    def macro_f1(self) -> float:
        """Return the mean F-measure of labels, 0 if there is no label."""
        values = f1(*self.by_label, empty=0)
        return float(values.sum() / max(1, values.size))

    def micro_f1(self) -> float:
        """Return the F-measure of all pairs of document and label."""
        return float(f1(*self.pooled))

    def document_f1(self) -> float:
        """Return the F-measure of mean precision and mean recall."""
        return float(harmonic_mean(self.mean("samples_precision"), self.mean("samples_recall")))

    def report(self) -> dict[Any, dict[str, float]]:
        """Return precision, recall, F-measure and numbers of documents of each label."""
        right, true, predicted = self.by_label
        columns = {
            "precision": ratio(right, predicted, empty=0),
            "recall": ratio(right, true, empty=0),
            "f1": f1(right, true, predicted, empty=0),
            "support": true,
            "predicted": predicted,
        }
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        labels = range(right.size) if self.labels is None else self.labels
        return {
            label: dict(zip(columns, row, strict=True))
            for label, row in zip(labels, rows, strict=True)
        }

    def metrics(self) -> dict[str, float]:
        """Return all metrics of label sets by name, in a fixed order."""
        return {
            "samples_f1": self.mean("samples_f1"),
            "subset_accuracy": self.mean("subset_accuracy"),
            "macro_f1": self.macro_f1(),
            "micro_f1": self.micro_f1(),
            "samples_precision": self.mean("samples_precision"),
            "samples_recall": self.mean("samples_recall"),
            "document_f1": self.document_f1(),
        }

    def hierarchical_metrics(self) -> dict[str, float]:
        """Return the hierarchical metrics by name; label sets must include all ancestors."""
        return {
            "hierarchical_precision": float(precision(*self.pooled)),
            "hierarchical_recall": float(recall(*self.pooled)),
            "hierarchical_f1": self.micro_f1(),
        }


def samples_f1(Y_true, Y_pred):
    r"""Mean F-measure of the documents: "labeling F" (Kazawa et al., Eq. (14)).

    .. math:: F_L = \frac1n \sum_i
        \frac{2 |L_i^{pred} \cap L_i^{true}|}{|L_i^{pred}| + |L_i^{true}|}

    A document with neither true nor predicted labels counts 1.

    Parameters
    ----------
    Y_true, Y_pred : array or sparse matrix of shape (n_docs, n_labels), or label names
        True and predicted labels.

    Returns
    -------
    float

    Examples
    --------
    >>> samples_f1([["a", "b"], ["c"]], [["a"], ["c"]])
    0.8333333333333333
    """
    return _tally(Y_true, Y_pred).mean("samples_f1")


def subset_accuracy(Y_true, Y_pred):
    r"""Share of documents whose whole label set is right: "exact match" (Kazawa et al., Eq. (15)).

    .. math:: EX = \frac1n \sum_i I[L_i^{pred} = L_i^{true}]

    The parameters are those of :func:`samples_f1`.

    Examples
    --------
    >>> subset_accuracy([["a", "b"], ["c"]], [["a"], ["c"]])
    0.5
    """
    return _tally(Y_true, Y_pred).mean("subset_accuracy")


def macro_f1(Y_true, Y_pred, *, classes=None):
    r"""Mean F-measure of the labels: "retrieval F" (Kazawa et al., Eq. (16)).

    .. math:: F_R = \frac1l \sum_j \frac{2 \sum_i L_i^{pred}[j] L_i^{true}[j]}
        {\sum_i (L_i^{pred}[j] + L_i^{true}[j])}

    All columns count; a label that is neither true nor predicted anywhere counts 0. Without any
    label the metric is 0.

    Parameters
    ----------
    Y_true, Y_pred
        See :func:`samples_f1`.
    classes : sequence of str, optional
        With names: all labels, so that those that occur nowhere count as well.

    Examples
    --------
    >>> macro_f1([["a", "b"], ["c"]], [["a"], ["c"]])
    0.6666666666666666
    >>> macro_f1([["a", "b"], ["c"]], [["a"], ["c"]], classes=["a", "b", "c", "d"])
    0.5
    """
    return _tally(Y_true, Y_pred, classes).macro_f1()


def micro_f1(Y_true, Y_pred):
    r"""F-measure of all pairs of document and label, pooled.

    .. math:: F = \frac{2 \sum_i |L_i^{pred} \cap L_i^{true}|}
        {\sum_i (|L_i^{pred}| + |L_i^{true}|)}

    Without any true or predicted label it is 1. The parameters are those of :func:`samples_f1`.

    Examples
    --------
    >>> micro_f1([["a", "b"], ["c"]], [["a"], ["c"]])
    0.8
    """
    return _tally(Y_true, Y_pred).micro_f1()


def samples_precision(Y_true, Y_pred):
    r"""Mean share of the predicted labels that are right (Skorkovská et al., Eq. (8)).

    .. math:: P = \frac1{|D|} \sum_i \frac{T_C}{T_A}

    :math:`T_C` counts the right and :math:`T_A` the predicted labels. A document without predicted
    labels counts 0, or 1 if it has no true ones either. The parameters are those of
    :func:`samples_f1`.

    Examples
    --------
    >>> samples_precision([["a", "b"], ["c"]], [["a"], ["c", "d"]])
    0.75
    """
    return _tally(Y_true, Y_pred).mean("samples_precision")


def samples_recall(Y_true, Y_pred):
    r"""Mean share of the true labels that were predicted (Skorkovská et al., Eq. (8)).

    .. math:: R = \frac1{|D|} \sum_i \frac{T_C}{T_R}

    :math:`T_C` counts the right and :math:`T_R` the true labels. A document without true labels
    counts 0, or 1 if it has no predicted ones either. Parameters as for :func:`samples_f1`.

    Examples
    --------
    >>> samples_recall([["a", "b"], ["c"]], [["a"], ["c", "d"]])
    0.75
    """
    return _tally(Y_true, Y_pred).mean("samples_recall")


def document_f1(Y_true, Y_pred):
    r"""Harmonic mean of mean precision and mean recall (Skorkovská et al., Eq. (9)).

    .. math:: F_1 = 2 \frac{P \cdot R}{P + R}

    It is not the mean of the documents' F-measures; that is :func:`samples_f1`, whose parameters
    it takes.

    Examples
    --------
    >>> document_f1([["a", "b"], ["c"]], [["a"], ["c", "d"]])
    0.75
    """
    return _tally(Y_true, Y_pred).document_f1()


def hierarchical_precision(Y_true, Y_pred, tree, classes=None):
    r"""Share of the predicted labels and their ancestors that are right (Kiritchenko et al.).

    .. math:: hP = \frac{\sum_i |\hat P_i \cap \hat T_i|}{\sum_i |\hat P_i|}

    The parameters and the sets :math:`\hat P_i`, :math:`\hat T_i` are those of
    :func:`hierarchical_f1`.

    Examples
    --------
    >>> from polytopic.labels import LabelTree
    >>> tree = LabelTree.from_names(["science/space", "science/biology"])
    >>> hierarchical_precision([["science/space"]], [["science/biology"]], tree)
    0.5
    """
    return _hierarchical("hierarchical_precision", Y_true, Y_pred, tree, classes)


def hierarchical_recall(Y_true, Y_pred, tree, classes=None):
    r"""Share of the true labels and their ancestors that were predicted (Kiritchenko et al.).

    .. math:: hR = \frac{\sum_i |\hat P_i \cap \hat T_i|}{\sum_i |\hat T_i|}

    Parameters and sets as for :func:`hierarchical_f1`.

    Examples
    --------
    >>> from polytopic.labels import LabelTree
    >>> tree = LabelTree.from_names(["science/space"])
    >>> hierarchical_recall([["science/space"]], [["science"]], tree)
    0.5
    """
    return _hierarchical("hierarchical_recall", Y_true, Y_pred, tree, classes)


def hierarchical_f1(Y_true, Y_pred, tree, classes=None):
    r"""Micro F-measure of label sets extended with all ancestors (Kiritchenko et al.).

    .. math:: hF = \frac{2 \sum_i |\hat P_i \cap \hat T_i|}{\sum_i (|\hat P_i| + |\hat T_i|)}

    :math:`\hat P_i` and :math:`\hat T_i` are the predicted and true labels of a document together
    with their ancestors, so a near miss earns partial credit. Leave a root above all labels out of
    the tree, as Kiritchenko et al. do: it would be right everywhere. Without any label it is 1.

    Parameters
    ----------
    Y_true, Y_pred : array or sparse matrix of shape (n_docs, n_labels), or label names
        True and predicted labels.
    tree : LabelTree
        Or any object whose ``ancestors(label)`` returns the labels above; if it is a container,
        labels that it does not contain have none.
    classes : sequence of str, optional
        Label of each column; needed with indicators.

    Returns
    -------
    float

    Examples
    --------
    >>> from polytopic.labels import LabelTree
    >>> tree = LabelTree.from_names(["science/space", "science/biology"])
    >>> hierarchical_f1([["science/space"]], [["science/biology"]], tree)
    0.5
    """
    return _hierarchical("hierarchical_f1", Y_true, Y_pred, tree, classes)


def by_level(Y_true, Y_pred, tree, metric=samples_f1, *, classes=None):
    """Compute a metric at each level of a tree, with labels replaced by their ancestors there.

    A label that lies no deeper than the level, or is not in the tree, stands for itself, so the
    last level has the labels unchanged.

    Parameters
    ----------
    Y_true, Y_pred : array or sparse matrix of shape (n_docs, n_labels), or label names
        True and predicted labels.
    tree : LabelTree
        The tree of labels.
    metric : callable, default=samples_f1
        Metric of two indicators, such as :func:`subset_accuracy` or :func:`evaluate`.
    classes : sequence of str, optional
        Label of each column, needed with indicators; with names, all labels the model knows.

    Returns
    -------
    dict of int to float
        The value at each level, 0 for the roots; or whatever else the metric returns.

    Examples
    --------
    >>> from polytopic.labels import LabelTree
    >>> tree = LabelTree.from_names(["science/space", "science/biology"])
    >>> by_level([["science/space"]], [["science/biology"]], tree)
    {0: 1.0, 1: 0.0}
    """
    true, pred, labels = read_named_pair(Y_true, Y_pred, classes)
    levels = (at_level(true, pred, labels, tree, level) for level in range(depth(labels, tree)))
    return {level: metric(true, pred) for level, (true, pred, _) in enumerate(levels)}


def classification_report(Y_true, Y_pred, *, classes=None):
    """Precision, recall and F-measure of each label.

    A label without predictions has precision 0, one without true documents recall 0, as in
    :func:`sklearn.metrics.classification_report` with ``zero_division=0``.

    Parameters
    ----------
    Y_true, Y_pred
        See :func:`samples_f1`.
    classes : sequence of str, optional
        Label of each column; with names, labels to list first, even if they occur nowhere.

    Returns
    -------
    dict of label to dict
        ``precision``, ``recall``, ``f1``, and the numbers of documents that have the label
        (``support``) and get it (``predicted``). The keys are column numbers for an indicator
        without ``classes``. ``pandas.DataFrame(report).T`` makes a table of it.

    Examples
    --------
    >>> report = classification_report([["a", "b"], ["b"]], [["a"], ["a", "b"]])
    >>> report["a"]
    {'precision': 0.5, 'recall': 1.0, 'f1': 0.666..., 'support': 1, 'predicted': 2}
    """
    return _tally(Y_true, Y_pred, classes).report()


def with_ancestors(true, pred, labels, tree):
    """Return both indicators with the ancestors of each label as further labels."""
    known = set(labels)
    if isinstance(tree, Container):
        known = {label for label in labels if label in tree}
    rows = [[label, *(tree.ancestors(label) if label in known else ())] for label in labels]
    nodes = all_labels([], rows)
    above = names_to_indicator(rows, nodes)
    return ones(true @ above), ones(pred @ above), nodes


def at_level(true, pred, labels, tree, level):
    """Return both indicators, and their labels, rolled up to a level of the tree."""
    rollup = Level(labels, tree, level)
    true, pred = (ones(csr_array(Y @ rollup.matrix)) for Y in (true, pred))
    return true, pred, list(rollup.labels)


def depth(labels, tree):
    """Return the number of levels down to the deepest of the labels."""
    return 1 + max((tree.level(label) for label in labels if label in tree), default=0)


def _tally(Y_true, Y_pred, classes=None):
    return SetTally.count(*read_pair(Y_true, Y_pred, classes))


def _hierarchical(metric, Y_true, Y_pred, tree, classes):
    true, pred, labels = read_named_pair(Y_true, Y_pred, classes)
    extended = with_ancestors(true, pred, labels, tree)
    return SetTally.count(*extended).hierarchical_metrics()[metric]
