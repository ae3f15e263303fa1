r"""Measures of multi-label predictions: label sets, topics, trees of labels, rankings.

``Y_true`` and ``Y_pred`` are indicators of shape (n_docs, n_labels), dense or sparse in any mix, or
both are sequences of collections of label names. Names are compared over their union: a true
label that the model never saw counts as missed.

A document with neither true nor predicted labels is a perfect match and counts 1. Otherwise an
empty set earns 0: precision for a document without predictions, recall for one without true labels.

``scores`` have shape (n_docs, n_labels), dense or sparse, where an entry that is not stored is 0.
Labels with the same score share their ranks evenly, so the order of columns does not matter. A
score of -inf means that the label is never listed. If ``Y_true`` holds names, ``classes`` tells
the label of each column; true labels that are not among them have the score -inf.

Equation numbers are those of

- Kazawa et al., "Maximal Margin Labeling for Multi-Topic Text Categorization", NIPS 17, 2004;
- Skorkovská et al., "Comparison of Score Normalization Methods Applied to Multi-label
  Classification", 2014;
- Wang et al., "A Generative Probabilistic Model for Multi-Label Classification", ICDM 2008;
- Kiritchenko et al., "Learning and Evaluation in the Presence of Class Hierarchies", 2006.
"""

from polytopic.metrics.evaluation import evaluate
from polytopic.metrics.ranking import class_perplexity, coverage, ndcg_at_k, precision_at_k
from polytopic.metrics.sets import (
    by_level,
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

__all__ = [
    "by_level",
    "class_perplexity",
    "coverage",
    "document_f1",
    "evaluate",
    "hierarchical_f1",
    "hierarchical_precision",
    "hierarchical_recall",
    "macro_f1",
    "micro_f1",
    "ndcg_at_k",
    "precision_at_k",
    "samples_f1",
    "samples_precision",
    "samples_recall",
    "subset_accuracy",
]
