"""Measures of label sets: by document, by topic, over all, and along a tree."""

import numpy as np
from scipy.sparse import csr_array

from polytopic.labels import Level
from polytopic.metrics.reading import (
    align,
    all_labels,
    check_pair,
    from_names,
    ones,
)


def samples_f1(Y_true, Y_pred):
    r"""Mean F-measure of the documents (Kazawa et al., Eq. (14)).

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
    return _document_mean("samples_f1", Y_true, Y_pred)


def subset_accuracy(Y_true, Y_pred):
    r"""Share of documents whose label set is right as a whole (Kazawa et al., Eq. (15)).

    .. math:: EX = \frac1n \sum_i I[L_i^{pred} = L_i^{true}]

    Parameters
    ----------
    Y_true, Y_pred : array or sparse matrix of shape (n_docs, n_labels), or label names
        True and predicted labels.

    Returns
    -------
    float

    Examples
    --------
    >>> subset_accuracy([["a", "b"], ["c"]], [["a"], ["c"]])
    0.5
    """
    return _document_mean("subset_accuracy", Y_true, Y_pred)


def macro_f1(Y_true, Y_pred, *, classes=None):
    r"""Mean F-measure of the topics, also called macro F1 (Kazawa et al., Eq. (16)).

    .. math:: F_R = \frac1l \sum_j \frac{2 \sum_i L_i^{pred}[j] L_i^{true}[j]}
        {\sum_i (L_i^{pred}[j] + L_i^{true}[j])}

    All label columns count; a topic that is neither true nor predicted anywhere counts 0. Without
    any topic the measure is 0.

    Parameters
    ----------
    Y_true, Y_pred : array or sparse matrix of shape (n_docs, n_labels), or label names
        True and predicted labels.
    classes : sequence of str, optional
        With names: all topics, so that those that occur nowhere count as well.

    Returns
    -------
    float

    Examples
    --------
    >>> macro_f1([["a", "b"], ["c"]], [["a"], ["c"]])
    0.6666666666666666
    >>> macro_f1([["a", "b"], ["c"]], [["a"], ["c"]], classes=["a", "b", "c", "d"])
    0.5
    """
    both, true, pred = _sizes(*check_pair(Y_true, Y_pred, classes), axis=0)
    return float(_ratio(2 * both, true + pred, empty=0).sum() / max(1, both.size))


def micro_f1(Y_true, Y_pred):
    r"""F-measure of all pairs of document and label pooled.

    .. math:: F = \frac{2 \sum_i |L_i^{pred} \cap L_i^{true}|}
        {\sum_i (|L_i^{pred}| + |L_i^{true}|)}

    Without any true or predicted label it is 1.

    Parameters
    ----------
    Y_true, Y_pred : array or sparse matrix of shape (n_docs, n_labels), or label names
        True and predicted labels.

    Returns
    -------
    float

    Examples
    --------
    >>> micro_f1([["a", "b"], ["c"]], [["a"], ["c"]])
    0.8
    """
    both, true, pred = _sizes(*check_pair(Y_true, Y_pred))
    return float(_ratio(2 * both, true + pred, empty=1))


def samples_precision(Y_true, Y_pred):
    r"""Mean share of the assigned labels that are correct (Skorkovská et al., Eq. (8)).

    .. math:: P = \frac1{|D|} \sum_i \frac{T_C}{T_A}

    :math:`T_C` counts correct and :math:`T_A` assigned labels. A document without assigned labels
    counts 0, or 1 if it has no true ones either.

    Parameters
    ----------
    Y_true, Y_pred : array or sparse matrix of shape (n_docs, n_labels), or label names
        True and predicted labels.

    Returns
    -------
    float

    Examples
    --------
    >>> samples_precision([["a", "b"], ["c"]], [["a"], ["c", "d"]])
    0.75
    """
    return _document_mean("samples_precision", Y_true, Y_pred)


def samples_recall(Y_true, Y_pred):
    r"""Mean share of the true labels that were assigned (Skorkovská et al., Eq. (8)).

    .. math:: R = \frac1{|D|} \sum_i \frac{T_C}{T_R}

    :math:`T_C` counts correct and :math:`T_R` true labels. A document without true labels counts
    0, or 1 if it has no assigned ones either.

    Parameters
    ----------
    Y_true, Y_pred : array or sparse matrix of shape (n_docs, n_labels), or label names
        True and predicted labels.

    Returns
    -------
    float

    Examples
    --------
    >>> samples_recall([["a", "b"], ["c"]], [["a"], ["c", "d"]])
    0.75
    """
    return _document_mean("samples_recall", Y_true, Y_pred)


def document_f1(Y_true, Y_pred):
    r"""Harmonic mean of the averaged precision and recall (Skorkovská et al., Eq. (9)).

    .. math:: F_1 = 2 \frac{P \cdot R}{P + R}

    It is not the mean of the documents' F-measures; that is :func:`samples_f1`.

    Parameters
    ----------
    Y_true, Y_pred : array or sparse matrix of shape (n_docs, n_labels), or label names
        True and predicted labels.

    Returns
    -------
    float

    Examples
    --------
    >>> document_f1([["a", "b"], ["c"]], [["a"], ["c", "d"]])
    0.75
    """
    pair = check_pair(Y_true, Y_pred)
    precision, recall = samples_precision(*pair), samples_recall(*pair)
    return float(harmonic_mean(precision, recall))


def hierarchical_precision(Y_true, Y_pred, tree, classes=None):
    r"""Share of the predicted labels and their ancestors that are right (Kiritchenko et al.).

    .. math:: hP = \frac{\sum_i |\hat P_i \cap \hat T_i|}{\sum_i |\hat P_i|}

    Parameters and the sets :math:`\hat P_i`, :math:`\hat T_i` are those of :func:`hierarchical_f1`.

    Examples
    --------
    >>> from polytopic.labels import LabelTree
    >>> tree = LabelTree.from_names(["science/space", "science/biology"])
    >>> hierarchical_precision([["science/space"]], [["science/biology"]], tree)
    0.5
    """
    both, true, pred = _sizes(*_extended_pair(Y_true, Y_pred, tree, classes))
    return float(_ratio(both, pred, empty=true == 0))


def hierarchical_recall(Y_true, Y_pred, tree, classes=None):
    r"""Share of the true labels and their ancestors that were predicted (Kiritchenko et al.).

    .. math:: hR = \frac{\sum_i |\hat P_i \cap \hat T_i|}{\sum_i |\hat T_i|}

    Parameters and the sets :math:`\hat P_i`, :math:`\hat T_i` are those of :func:`hierarchical_f1`.

    Examples
    --------
    >>> from polytopic.labels import LabelTree
    >>> tree = LabelTree.from_names(["science/space"])
    >>> hierarchical_recall([["science/space"]], [["science"]], tree)
    0.5
    """
    both, true, pred = _sizes(*_extended_pair(Y_true, Y_pred, tree, classes))
    return float(_ratio(both, true, empty=pred == 0))


def hierarchical_f1(Y_true, Y_pred, tree, classes=None):
    r"""Micro F-measure of label sets extended with all ancestors (Kiritchenko et al.).

    .. math:: hF = \frac{2 \sum_i |\hat P_i \cap \hat T_i|}{\sum_i (|\hat P_i| + |\hat T_i|)}

    :math:`\hat P_i` and :math:`\hat T_i` are the predicted and true labels of a document together
    with their ancestors, so a near miss earns a part. Leave a root above all labels out of the
    tree, as Kiritchenko et al. do: it would be right everywhere. Without any label it is 1.

    Parameters
    ----------
    Y_true, Y_pred : array or sparse matrix of shape (n_docs, n_labels), or label names
        True and predicted labels.
    tree : LabelTree
        Or any object whose ``ancestors(label)`` gives the labels above.
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
    both, true, pred = _sizes(*_extended_pair(Y_true, Y_pred, tree, classes))
    return float(_ratio(2 * both, true + pred, empty=1))


def by_level(Y_true, Y_pred, tree, metric=samples_f1, *, classes=None):
    """Measure at each level of a tree, labels being replaced by their ancestors there.

    A label that lies no deeper than the level, or is not in the tree, stands for itself, so the
    last level is that of the labels as they are.

    Parameters
    ----------
    Y_true, Y_pred : array or sparse matrix of shape (n_docs, n_labels), or label names
        True and predicted labels.
    tree : LabelTree
        What lies above the labels.
    metric : callable, default=samples_f1
        Measure of two indicators, such as :func:`subset_accuracy` or :func:`evaluate`.
    classes : sequence of str, optional
        Label of each column, needed with indicators; with names all labels the model knows.

    Returns
    -------
    dict of int to float
        By level, 0 for the roots; or to what else the metric gives.

    Examples
    --------
    >>> from polytopic.labels import LabelTree
    >>> tree = LabelTree.from_names(["science/space", "science/biology"])
    >>> by_level([["science/space"]], [["science/biology"]], tree)
    {0: 1.0, 1: 0.0}
    """
    true, pred, labels = _named_pair(Y_true, Y_pred, classes)
    depth = 1 + max((tree.level(label) for label in labels if label in tree), default=0)
    matrices = ((level, Level(labels, tree, level).matrix) for level in range(depth))
    return {
        level: metric(ones(csr_array(true @ matrix)), ones(csr_array(pred @ matrix)))
        for level, matrix in matrices
    }


def harmonic_mean(precision, recall):
    """Return the F of precision and recall, 0 where both are."""
    return _ratio(2 * precision * recall, precision + recall, empty=0)


def _document_mean(measure, Y_true, Y_pred):
    """Return the mean over documents of a measure of one."""
    return float(BY_DOCUMENT[measure](*_sizes(*check_pair(Y_true, Y_pred), axis=1)).mean())


def _sizes(true, pred, *, axis=None):
    """Return how many labels are both, true, and predicted: in all, by document or by label."""
    return true.multiply(pred).sum(axis=axis), true.sum(axis=axis), pred.sum(axis=axis)


def _ratio(part, whole, empty):
    """Return part / whole, and ``empty`` where the whole is 0."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1), empty)


# Measures of one document by how many labels are both true and predicted, true, and predicted
BY_DOCUMENT = {
    "samples_f1": lambda both, true, pred: _ratio(2 * both, true + pred, empty=1),
    "subset_accuracy": lambda both, true, pred: (both == true) & (both == pred),
    "samples_precision": lambda both, true, pred: _ratio(both, pred, empty=true == 0),
    "samples_recall": lambda both, true, pred: _ratio(both, true, empty=pred == 0),
}


def _extended_pair(Y_true, Y_pred, tree, classes):
    """Return both indicators with the ancestors of each label as further labels."""
    true, pred, labels = _named_pair(Y_true, Y_pred, classes)
    above = _ancestor_matrix(labels, tree)
    return ones(true @ above), ones(pred @ above)


def _named_pair(Y_true, Y_pred, classes):
    """Return both indicators and the labels of their columns, which must be known."""
    true, pred, labels = align(Y_true, Y_pred, classes)
    if labels is None:
        raise ValueError("Y_true is an indicator: give the label of each column as classes.")
    return true, pred, labels


def _ancestor_matrix(labels, tree):
    """Return the indicator (n_labels, n_nodes) of each label and what is above it."""
    known = getattr(tree, "__contains__", lambda label: True)
    rows = [[label, *(tree.ancestors(label) if known(label) else ())] for label in labels]
    return from_names(rows, all_labels([], rows))
