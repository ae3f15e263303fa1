"""Rules on the scores as they are: so many labels, a fixed threshold, mean plus deviation."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_scalar

from polytopic.decision.base import Rule
from polytopic.kernels.decisions import deviation_cuts, threshold_cuts, top_cuts


class TopK(Rule):
    """Accept the ``k`` best labels; of equal scores, those that come first.

    Parameters
    ----------
    k : int, default=1
        Labels to accept.
    reject : bool, default=False
        Whether a document whose best score is not above zero gets no label.

    Examples
    --------
    >>> TopK(2).decide([[-4.0, -1.0, -2.0]]).toarray()
    array([[0., 1., 1.]])
    """

    swept = "k"
    swept_type = np.int64

    def __init__(self, k=1, *, reject=False):
        self.k = k
        self.reject = reject

    def _check_parameters(self):
        check_scalar(self.k, "k", Integral, min_val=1)

    def _cut(self, scores, reference, values, cut, ties):
        top_cuts(scores, values, self.reject, cut, ties)


class Threshold(Rule):
    """Accept labels whose score is at least a value.

    Parameters
    ----------
    value : float, default=0.0
        The smallest score that is accepted.
    reject : bool, default=False
        Whether a document may get no label; otherwise it gets its best, of several the first.

    Examples
    --------
    >>> Threshold(0.5).decide([[0.7, 0.6, 0.1], [0.2, 0.3, 0.1]]).toarray()
    array([[1., 1., 0.],
           [0., 1., 0.]])
    """

    swept = "value"

    def __init__(self, value=0.0, *, reject=False):
        self.value = value
        self.reject = reject

    def _check_parameters(self):
        check_scalar(self.value, "value", Real)
        if np.isnan(self.value):
            raise ValueError("value == nan, must be a number.")

    def _cut(self, scores, reference, values, cut, ties):
        threshold_cuts(scores, values, self.reject, cut, ties)


class MeanPlusStd(Rule):
    r"""Accept labels whose score is at least the mean of all plus one standard deviation.

    The dynamic threshold of Bracewell et al. that [1]_ compares with: :math:`s_l \ge \mu + \sigma`
    over the document's finite scores. Where these are all equal, none stands out.

    Parameters
    ----------
    reject : bool, default=False
        Whether a document without such a label gets none; otherwise it gets its best, of several
        the first.

    References
    ----------
    .. [1] Skorkovská, Zajíc and Müller, "Comparison of Score Normalization Methods Applied to
       Multi-label Classification", 2014.

    Examples
    --------
    >>> MeanPlusStd().decide([[5.0, 5.0, 1.0, 0.0, 0.0, 0.0]]).toarray()
    array([[1., 1., 0., 0., 0., 0.]])
    """

    def __init__(self, *, reject=False):
        self.reject = reject

    def _cut(self, scores, reference, values, cut, ties):
        deviation_cuts(scores, self.reject, cut, ties)
