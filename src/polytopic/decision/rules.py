"""Rules: which labels are enough, given a document's scores.

A rule's ``decide(scores, reference=None)`` returns an indicator (CSR). It accepts the best label
always, unless ``reject=True``; a score of ``-inf`` is never accepted.
"""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_scalar


class Rule(BaseEstimator):
    """A rule that accepts labels by their scores; a subclass says which (``_accept``)."""

    needs_reference = False

    def decide(self, scores, *, reference=None) -> sparse.csr_matrix:
        """Return the accepted labels of each document as an indicator.

        Parameters
        ----------
        scores : ndarray of shape (n_docs, n_labels)
            One score for each document and label; higher is better.
        reference : ndarray of shape (n_docs,), default=None
            Score of each document under a general model, for rules that need it.
        """
        self._check_parameters()
        scores = _check_scores(scores)
        if self.needs_reference:
            scores = scores - _check_reference(reference, scores, type(self).__name__)
        accepted = self._accept(scores) & (scores > -np.inf)
        if not self.reject:
            best = np.argmax(scores, axis=1)
            known = np.flatnonzero(scores[np.arange(best.size), best] > -np.inf)
            accepted[known, best[known]] = True
        return sparse.csr_matrix(accepted, dtype=np.float64)

    def _check_parameters(self):
        pass


class TopK(Rule):
    """Accept the ``k`` best labels; of equal scores, those that come first.

    Parameters
    ----------
    k : int, default=1
        Labels to accept.

    Examples
    --------
    >>> TopK(2).decide([[-4.0, -1.0, -2.0]]).toarray()
    array([[0., 1., 1.]])
    """

    reject = False

    def __init__(self, k=1):
        self.k = k

    def _check_parameters(self):
        check_scalar(self.k, "k", Integral, min_val=1)

    def _accept(self, scores):
        order = np.argsort(-scores, axis=1, kind="stable")[:, : self.k]
        accepted = np.zeros(scores.shape, dtype=bool)
        np.put_along_axis(accepted, order, True, axis=1)
        return accepted


class Threshold(Rule):
    """Accept labels whose score is at least a value.

    Parameters
    ----------
    value : float, default=0.0
        The smallest score that is accepted.
    reject : bool, default=False
        Whether a document may get no label; otherwise it gets its best.

    Examples
    --------
    >>> Threshold(0.5).decide([[0.7, 0.6, 0.1], [0.2, 0.3, 0.1]]).toarray()
    array([[1., 1., 0.],
           [0., 1., 0.]])
    """

    def __init__(self, value=0.0, *, reject=False):
        self.value = value
        self.reject = reject

    def _check_parameters(self):
        check_scalar(self.value, "value", Real)
        if np.isnan(self.value):
            raise ValueError("value == nan, must be a number.")

    def _accept(self, scores):
        return scores >= self.value


class WorldModel(Rule):
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

    def _check_parameters(self):
        check_scalar(self.ratio, "ratio", Real, min_val=0, max_val=1)

    def _accept(self, scores):
        best = scores.max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):  # infinite scores
            accepted = (scores >= best - (1 - self.ratio) * np.abs(best)) | (scores == best)
        return accepted & (best > 0) if self.reject else accepted


def _check_scores(scores):
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 2 or scores.shape[1] == 0:
        raise ValueError(
            f"scores have the shape {scores.shape}; one row a document, one column a label needed."
        )
    if np.isnan(scores).any():
        raise ValueError("scores hold NaN; a label without a score is -inf.")
    return scores


def _check_reference(reference, scores, rule):
    if reference is None:
        raise ValueError(f"{rule} needs reference, each document's score under a general model.")
    reference = np.asarray(reference, dtype=np.float64)
    if reference.shape != scores.shape[:1] or not np.isfinite(reference).all():
        raise ValueError(
            f"reference has the shape {reference.shape}; "
            f"{scores.shape[0]} finite numbers are needed, one a document."
        )
    return reference[:, None]
