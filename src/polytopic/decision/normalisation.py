r"""Rules on normalised scores: how much better a label is than what else the document may be.

All of them accept a label if its normalised score is near the best label's ([1]_, section III)::

    z >= z.max() - (1 - ratio) * abs(z.max())

That is at least ``ratio`` of a positive best, never empty, and shrinks with the ratio for a
negative best too. Labels that are equally good as the best are accepted all.

References
----------
.. [1] Skorkovská, Zajíc and Müller, "Comparison of Score Normalization Methods Applied to
   Multi-label Classification", 2014.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils import check_scalar

from polytopic.decision.base import Rule
from polytopic.kernels.decisions import cohort_cuts, ratio_cuts, sibling_scores, tnorm_cuts
from polytopic.parameters import check_number


class RatioRule(Rule):
    """A rule that accepts what is near the best normalised score."""

    swept = "ratio"
    ratio: float

    def _check_parameters(self):
        check_number(self.ratio, "ratio", min_val=0, max_val=1)


class WorldModel(RatioRule):
    r"""Accept labels whose score above the general model is near the best label's.

    With :math:`z_l = \log p(A \mid l) - \log p(A \mid G)` ([1]_, Eq. (4), (5)) a label is
    accepted if :math:`z_l \ge z_{\max} - (1 - k)\,|z_{\max}|`: at least ``ratio`` of a positive
    best, never empty, and monotone in ``ratio`` for a negative best too.

    Parameters
    ----------
    ratio : float in [0, 1], default=0.8
        How near to the best, :math:`k` in [1]_.
    reject : bool, default=False
        Whether a document whose best label is no better than the general model gets no label.

    References
    ----------
    .. [1] Skorkovská, Zajíc and Müller, "Comparison of Score Normalization Methods Applied to
       Multi-label Classification", 2014.

    Examples
    --------
    >>> WorldModel(0.8).decide([[-10.0, -11.0, -18.0]], reference=[-20.0]).toarray()
    array([[1., 1., 0.]])
    """

    needs_reference = True

    def __init__(self, ratio=0.8, *, reject=False):
        self.ratio = ratio
        self.reject = reject

    def _cut(self, scores, reference, values, cut, ties):
        ratio_cuts(scores, reference, values, self.reject, cut, ties)


class UnconstrainedCohort(RatioRule):
    r"""Accept labels that are as much better than their strongest rivals as the best label is.

    A label is compared with the :math:`N` best *other* labels of the document ([1]_, Eq. (6)):

    .. math:: z_l = s_l - \frac1N \sum_{n=1}^{N} s_{(n)}, \qquad s_{(1)} \ge s_{(2)} \ge \dots
        \text{ without } s_l

    and accepted if :math:`z_l \ge z_{\max} - (1 - k)\,|z_{\max}|`. Where a document has fewer
    scores, all others are the cohort; a single label has :math:`z = 0`. (The "next :math:`N`
    highest scores" of the paper, read literally, would make :math:`z` fall where scores rise.)

    Parameters
    ----------
    size : int, default=15
        Labels in the cohort, :math:`N`.
    ratio : float in [0, 1], default=0.7
        How near to the best, :math:`k` in [1]_.
    reject : bool, default=False
        Whether a document whose best label is no better than its rivals gets no label.

    References
    ----------
    .. [1] Skorkovská, Zajíc and Müller, "Comparison of Score Normalization Methods Applied to
       Multi-label Classification", 2014.

    Examples
    --------
    >>> UnconstrainedCohort(size=2, ratio=0.7).decide([[-10.0, -10.5, -18.0, -19.0]]).toarray()
    array([[1., 1., 0., 0.]])
    """

    def __init__(self, size=15, ratio=0.7, *, reject=False):
        self.size = size
        self.ratio = ratio
        self.reject = reject

    def _check_parameters(self):
        super()._check_parameters()
        check_scalar(self.size, "size", Integral, min_val=1)

    def _cut(self, scores, reference, values, cut, ties):
        size = min(int(self.size), scores.shape[1])
        cohort_cuts(scores, size, values, self.reject, cut, ties)


class TreeCohort(RatioRule):
    r"""Accept labels that are as much better than their siblings as the best label is.

    A label is compared with the mean of the labels under the same parent ([1]_, section III-B3):

    .. math:: z_l = s_l - \frac{1}{|S_l|} \sum_{m \in S_l} s_m

    and accepted if :math:`z_l \ge z_{\max} - (1 - k)\,|z_{\max}|`. The siblings are those among
    the scored labels; roots are siblings of roots. A label without siblings, or which is not in
    the tree, is compared with all others; a single label has :math:`z = 0`.

    Parameters
    ----------
    tree : LabelTree, default=None
        The tree of labels. In a :class:`~polytopic.Labeler` its own tree by default.
    ratio : float in [0, 1], default=0.8
        How near to the best, :math:`k` in [1]_.
    reject : bool, default=False
        Whether a document without a label that is better than its siblings gets no label.

    Attributes
    ----------
    group_ : ndarray of shape (n_labels,)
        Which columns are siblings: those with the same number.

    References
    ----------
    .. [1] Skorkovská, Zajíc and Müller, "Comparison of Score Normalization Methods Applied to
       Multi-label Classification", 2014.

    Examples
    --------
    >>> from polytopic import LabelTree
    >>> tree = LabelTree.from_names(["sport/golf", "sport/judo", "arts/film", "arts/opera"])
    >>> rule = TreeCohort(tree).fit(classes=["arts/film", "arts/opera", "sport/golf", "sport/judo"])
    >>> rule.decide([[-10.0, -11.0, -12.0, -18.0]]).toarray()
    array([[0., 0., 1., 0.]])
    """

    needs_classes = True

    def __init__(self, tree=None, ratio=0.8, *, reject=False):
        self.tree = tree
        self.ratio = ratio
        self.reject = reject

    def fit(self, scores=None, Y=None, *, classes=None):
        """Learn which columns are siblings.

        Parameters
        ----------
        scores, Y : ignored
            Not used.
        classes : sequence of labels
            Labels of the columns; needed.
        """
        if self.tree is None:
            raise ValueError("TreeCohort has no tree of labels; give one: TreeCohort(tree).")
        if classes is None:
            raise ValueError("TreeCohort needs classes, the label of each column.")
        numbers: dict = {}
        for column, label in enumerate(np.asarray(classes).tolist()):
            family = ("under", self.tree.parent(label)) if label in self.tree else ("", column)
            numbers.setdefault(family, []).append(column)
        self.group_ = np.empty(len(classes), np.uint32)
        for number, columns in enumerate(numbers.values()):
            self.group_[columns] = number
        return self

    def _check_columns(self, scores):
        if not hasattr(self, "group_"):
            raise ValueError(
                "TreeCohort does not know the labels of the columns; call fit(classes=...) "
                "before decide, or put it into a LabelDecision."
            )
        if scores.shape[1] != self.group_.size:
            raise ValueError(
                f"scores have {scores.shape[1]} columns, and TreeCohort was fitted on "
                f"{self.group_.size} labels; they must be as many."
            )

    def _normalised(self, scores):
        z = np.empty(scores.shape)
        sibling_scores(scores, self.group_, np.bincount(self.group_), z)
        return z

    def _cut(self, scores, reference, values, cut, ties):
        ratio_cuts(scores, np.zeros(len(scores)), values, self.reject, cut, ties)


class TNorm(RatioRule):
    r"""Accept labels whose standardised score is near the best label's.

    With the mean :math:`\mu` and the standard deviation :math:`\sigma` of the document's scores
    ([1]_, Eq. (7)) :math:`z_l = (s_l - \mu) / \sigma`, and a label is accepted if
    :math:`z_l \ge k\, z_{\max}`. The best is never below the mean, and :math:`\sigma` cancels:
    labels are compared with the mean of all. Where all scores are equal, all are the best.

    Parameters
    ----------
    ratio : float in [0, 1], default=0.9
        How near to the best, :math:`k` in [1]_.
    reject : bool, default=False
        Whether a document whose scores are all equal gets no label.

    References
    ----------
    .. [1] Skorkovská, Zajíc and Müller, "Comparison of Score Normalization Methods Applied to
       Multi-label Classification", 2014.

    Examples
    --------
    >>> TNorm(0.9).decide([[-10.0, -11.0, -18.0, -49.0]]).toarray()
    array([[1., 1., 0., 0.]])
    """

    def __init__(self, ratio=0.9, *, reject=False):
        self.ratio = ratio
        self.reject = reject

    def _cut(self, scores, reference, values, cut, ties):
        tnorm_cuts(scores, values, self.reject, cut, ties)
