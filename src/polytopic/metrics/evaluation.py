"""All measures at once."""

from polytopic.metrics.ranking import at_k, covered, ndcg, precision, score_means
from polytopic.metrics.reading import check_pair
from polytopic.metrics.sets import (
    document_f1,
    hierarchical_f1,
    hierarchical_precision,
    hierarchical_recall,
    macro_f1,
    micro_f1,
    samples_f1,
    samples_precision,
    samples_recall,
    subset_accuracy,
)

_SET_MEASURES = (
    samples_f1,
    subset_accuracy,
    macro_f1,
    micro_f1,
    samples_precision,
    samples_recall,
    document_f1,
)

_TREE_MEASURES = (hierarchical_precision, hierarchical_recall, hierarchical_f1)

SCORE_MEASURES = {
    "precision_at_1": at_k(precision, 1),
    "precision_at_3": at_k(precision, 3),
    "precision_at_5": at_k(precision, 5),
    "ndcg_at_3": at_k(ndcg, 3),
    "ndcg_at_5": at_k(ndcg, 5),
    "coverage": covered,
}


def evaluate(Y_true, Y_pred, scores=None, *, classes=None, tree=None):
    """Return all measures of label sets, with a tree and with scores more, in a fixed order.

    Parameters
    ----------
    Y_true, Y_pred : array or sparse matrix of shape (n_docs, n_labels), or label names
        True and predicted labels.
    scores : array or sparse matrix of shape (n_docs, n_labels), optional
        Score of each label, not NaN.
    classes : sequence of str, optional
        All labels the model knows; with names and scores the label of each column.
    tree : LabelTree, optional
        What lies above the labels, for the hierarchical measures.

    Returns
    -------
    dict of str to float

    Examples
    --------
    >>> for name, value in evaluate([["a", "b"], ["c"]], [["a"], ["c"]]).items():
    ...     print(f"{name:18} {value:.3f}")
    samples_f1         0.833
    subset_accuracy        0.500
    macro_f1        0.667
    micro_f1            0.800
    samples_precision 1.000
    samples_recall    0.750
    document_f1        0.857
    """
    pair = check_pair(Y_true, Y_pred, classes)
    values = {measure.__name__: measure(*pair) for measure in _SET_MEASURES}
    if tree is not None:
        extended = (Y_true, Y_pred, tree, classes)
        values |= {measure.__name__: measure(*extended) for measure in _TREE_MEASURES}
    if scores is not None:
        means = score_means(Y_true, scores, classes, list(SCORE_MEASURES.values()))
        values |= zip(SCORE_MEASURES, means, strict=True)
    return values
