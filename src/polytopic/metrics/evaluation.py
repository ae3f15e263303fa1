"""All measures at once."""

from polytopic.metrics.ranking import at_k, covered, ndcg, precision, score_means
from polytopic.metrics.reading import check_pair
from polytopic.metrics.sets import (
    document_f1,
    document_precision,
    document_recall,
    exact_match,
    hierarchical_f,
    hierarchical_precision,
    hierarchical_recall,
    labeling_f,
    micro_f,
    retrieval_f,
)

_SET_MEASURES = (
    labeling_f,
    exact_match,
    retrieval_f,
    micro_f,
    document_precision,
    document_recall,
    document_f1,
)

_TREE_MEASURES = (hierarchical_precision, hierarchical_recall, hierarchical_f)

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
    labeling_f         0.833
    exact_match        0.500
    retrieval_f        0.667
    micro_f            0.800
    document_precision 1.000
    document_recall    0.750
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
