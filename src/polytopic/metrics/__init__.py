r"""Metrics of multi-label predictions: label sets, label trees, rankings and probabilities.

``Y_true`` and ``Y_pred`` are indicators of shape (n_docs, n_labels), dense or sparse in any mix, or
both are sequences of collections of label names. Names are compared over their union: a true
label that the model has never seen counts as missed.

A document with neither true nor predicted labels is a perfect match and counts 1. Otherwise an
empty set earns 0: precision for a document without predictions, recall for one without true labels.

``scores`` and ``proba`` have shape (n_docs, n_labels), dense or sparse; an entry that is not stored
is 0. Labels with equal scores share their ranks evenly, so the order of columns does not matter. A
label with a score of -inf is never listed. If ``Y_true`` holds names, ``classes`` gives the label
of each column; true labels outside ``classes`` have the score -inf and the probability 0.

All metrics of label sets are computed from one tally of right, true and predicted labels, and
:class:`Tally` adds such tallies up, so documents may also be counted in parts.

References
----------
- Guo et al., "On Calibration of Modern Neural Networks", ICML 2017.
- Jain, Prabhu and Varma, "Extreme Multi-label Loss Functions for Recommendation, Tagging, Ranking &
  Other Missing Label Applications", KDD 2016.
- Kazawa et al., "Maximal Margin Labeling for Multi-Topic Text Categorization", NIPS 17, 2004.
- Kiritchenko et al., "Learning and Evaluation in the Presence of Class Hierarchies", 2006.
- Skorkovská et al., "Comparison of Score Normalization Methods Applied to Multi-label
  Classification", 2014.
- Wang et al., "A Generative Probabilistic Model for Multi-Label Classification", ICDM 2008.
"""

from polytopic.metrics.evaluation import Tally, evaluate
from polytopic.metrics.label_sets import (
    by_level,
    classification_report,
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
from polytopic.metrics.scores import (
    class_perplexity,
    coverage,
    expected_calibration_error,
    label_propensities,
    ndcg_at_k,
    precision_at_k,
    propensity_precision_at_k,
    recall_at_k,
)

__all__ = [
    "Tally",
    "by_level",
    "class_perplexity",
    "classification_report",
    "coverage",
    "document_f1",
    "evaluate",
    "expected_calibration_error",
    "hierarchical_f1",
    "hierarchical_precision",
    "hierarchical_recall",
    "label_propensities",
    "macro_f1",
    "micro_f1",
    "ndcg_at_k",
    "precision_at_k",
    "propensity_precision_at_k",
    "recall_at_k",
    "samples_f1",
    "samples_precision",
    "samples_recall",
    "subset_accuracy",
]
