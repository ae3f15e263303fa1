r"""The decision rules, and what they share.

Rules on normalized scores accept a label if its normalized score :math:`z_l` is near the best
label's ([1]_, section III): :math:`z_l \ge z_{\max} - (1 - k)\,|z_{\max}|`, where :math:`k` is the
rule's ``ratio``. That is at least ``ratio`` of a positive best, is never empty, and shrinks as the
ratio rises for a negative best, too. All labels that are as good as the best are accepted.

References
----------
.. [1] Skorkovská, Zajíc and Müller, "Comparison of Score Normalization Methods Applied to
   Multi-label Classification", 2014.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_scalar

from polytopic.decision.kernels import (
    accept,
    cohort_cuts,
    count_accepted,
    deviation_cuts,
    next_cuts,
    ratio_cuts,
    sibling_scores,
    threshold_cuts,
    tnorm_cuts,
    top_cuts,
)
from polytopic.kernels.blocks import run_blocks
from polytopic.labels import LabelTree, indicator
from polytopic.parameters import check_number

LARGEST_FLOAT = float(np.finfo(np.float64).max)
MAX_LABELS = 2**31 - 1
BLOCK_CELLS = 1 << 17  # scores in a block of documents


class Rule(BaseEstimator, ABC):
    """A rule that accepts labels by their scores.

    A subclass implements ``_cut``, which sets the lowest score that each document accepts. It
    declares the following class attributes where they differ from the defaults, and is listed in
    :mod:`polytopic.decision.registry`.

    Attributes
    ----------
    needs_reference : bool
        Whether ``decide`` needs each document's score under a general model.
    needs_tree : bool
        Whether the rule has a parameter ``tree``, and ``fit`` needs the labels of the columns.
    grid : mapping of str to sequence
        Values of its parameters that :func:`~polytopic.decision.tune_decision` tries; empty for a
        parameter whose values are chosen by the scores.
    swept : str or None
        Parameter in ``grid`` whose values are all tried in one pass over the scores.
    swept_type : type
        Type of its values.
    falls : bool
        Whether label sets shrink as the swept parameter falls, not as it rises.
    variants : mapping of str to sequence
        Parameters that choose between forms of the rule, with their values, the default first.
        :func:`~polytopic.decision.tune_decision` tries all forms unless rules are given.
    """

    needs_reference: ClassVar[bool] = False
    needs_tree: ClassVar[bool] = False
    grid: ClassVar[Mapping[str, Sequence]] = {}
    swept: ClassVar[str | None] = None
    swept_type: ClassVar[type] = np.float64
    falls: ClassVar[bool] = False
    variants: ClassVar[Mapping[str, Sequence]] = {}
    reject: bool

    @abstractmethod
    def _cut(self, scores, reference, values, cut, ties):
        """Set the cuts of a block of documents, see :mod:`polytopic.decision.kernels`.

        Document ``d`` accepts a label at ``values[r]`` if its score is above ``cut[d, r]``, or if
        it is among the first ``ties[d, r]`` labels with exactly this score (``kernels.ALL``: all).
        ``values`` are those of the swept parameter, ordered so that label sets shrink; without a
        swept parameter there is one.

        Unless ``self.reject``, every document accepts its best label, so no cut may be above the
        best score, not even by rounding. A score of ``-inf`` is never accepted: where the cut is
        ``-inf``, ``ties`` must be 0.

        A rule that does not accept labels in the order of their scores returns what is cut instead
        of them, see :meth:`_normalizes`: numbers in double precision, ``-inf`` for a label that no
        value accepts, and NaN where a score is.
        """

    def _normalizes(self) -> bool:
        """Return whether ``_cut`` returns what is cut instead of the scores."""
        return False

    def _check_parameters(self):
        """Raise if a parameter is wrong."""

    def _check_columns(self, scores):
        """Raise unless the scores have the labels that the rule was fitted on."""

    def fit(self, scores=None, Y=None, *, classes=None):
        """Learn how the labels of the columns are related; most rules learn nothing.

        Parameters
        ----------
        scores, Y : ignored
            Not used.
        classes : sequence of labels, default=None
            Labels of the columns.
        """
        return self

    def with_labels(self, classes, tree=None) -> Rule:
        """Return the rule, or a copy fitted on the labels of the columns if it needs them.

        Parameters
        ----------
        classes : sequence of labels
            Labels of the columns.
        tree : LabelTree, default=None
            The tree for a rule that needs one and has none.
        """
        return self

    def decide(self, scores, *, reference=None) -> sparse.csr_matrix:
        """Return the accepted labels of each document as an indicator.

        Parameters
        ----------
        scores : array or csr_matrix of shape (n_docs, n_labels)
            Scores of the labels, higher is better; ``-inf`` for a label without a score. A label
            that is absent from a sparse matrix has no score either.
        reference : ndarray of shape (n_docs,), default=None
            Score of each document under a general model, for rules that need it.
        """
        if sparse.issparse(scores):
            return self._decide_candidates(scores, reference)
        values = None if self.swept is None else [getattr(self, self.swept)]

        def accept_block(scores, cut, ties, rows):
            labels, ends = np.empty(scores.size, np.int32), np.empty(len(scores), np.int64)
            return accept(scores, cut, ties, labels, ends) and (labels[: ends[-1]].copy(), ends)

        parts = self._over_blocks(accept_block, scores, reference, values)
        lengths = [np.diff(ends, prepend=0) for _, ends in parts]
        indptr = np.concatenate([[0], *lengths]).cumsum()
        indices = np.concatenate([np.empty(0, np.int32), *(labels for labels, _ in parts)])
        return indicator(indices, indptr, np.shape(scores)[1])

    def _decide_candidates(self, scores, reference) -> sparse.csr_matrix:
        """Return the accepted labels, given scores of each document's candidates."""
        if self.needs_tree:
            raise ValueError(
                f"{type(self).__name__} compares labels with their siblings, so it needs scores of "
                "all labels, and a model of thousands of labels scores candidates only; use "
                "another rule."
            )
        scores = sparse.csr_matrix(scores)
        if not scores.has_sorted_indices:
            scores = scores.sorted_indices()
        sizes = np.diff(scores.indptr)
        if not sizes.max(initial=0):
            return sparse.csr_matrix(scores.shape)
        used = np.arange(sizes.max()) < sizes[:, None]
        compact, labels = np.full(used.shape, -np.inf), np.zeros(used.shape, dtype=np.int64)
        compact[used], labels[used] = scores.data, scores.indices
        Y = self.decide(compact, reference=reference)
        docs = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
        return indicator(labels[docs, Y.indices], Y.indptr, scores.shape[1])

    def count(self, scores, Y, values, *, reference=None, measure=None) -> list:
        """Count the accepted labels for many values of the swept parameter in one pass.

        Parameters
        ----------
        scores, reference
            See :meth:`decide`.
        Y : csr_matrix of shape (n_docs, n_labels)
            The true labels.
        values : array of shape (n_values,)
            Values of the swept parameter, ordered so that label sets shrink; None if there is no
            such parameter.
        measure : callable
            Called as ``measure(accepted, right, rows)`` for each block of documents:
            ``accepted`` and ``right`` have shape (documents in the block, n_values) and hold how
            many labels are accepted and how many of them are true; ``rows`` is the block's slice.

        Returns
        -------
        list
            What ``measure`` returned for each block.
        """
        indices, indptr = Y.indices.astype(np.int64), Y.indptr.astype(np.int64)

        def count_block(scores, cut, ties, rows):
            accepted, right = np.empty(cut.shape, np.int32), np.empty(cut.shape, np.int32)
            own = indptr[rows.start : rows.stop + 1]
            complete = count_accepted(scores, cut, ties, indices, own, accepted, right)
            return complete and (measure(accepted, right, rows),)

        return [part[0] for part in self._over_blocks(count_block, scores, reference, values)]

    def _over_blocks(self, function, scores, reference, values) -> list:
        """Call ``function(scores, cut, ties, rows)`` for each block; it returns False for NaN."""
        if not isinstance(self.reject, bool | np.bool_):
            raise TypeError(f"reject == {self.reject!r}, must be True or False.")
        self._check_parameters()
        scores = check_scores(scores)
        self._check_columns(scores)
        if self.needs_reference:
            reference = _check_reference(reference, scores, type(self).__name__)
        values = np.zeros(1) if values is None else np.asarray(values, dtype=self.swept_type)

        def run(rows):
            block = np.ascontiguousarray(scores[rows])
            if block.dtype not in (np.float32, np.float64):
                block = block.astype(np.float64)
            kind = np.dtype(np.float64) if self._normalizes() else block.dtype
            cut = np.empty((len(block), values.size), kind)
            ties = np.empty(cut.shape, np.int32)
            own = reference[rows] if self.needs_reference else None
            normalized = self._cut(block, own, values, cut, ties)
            return function(normalized if self._normalizes() else block, cut, ties, rows)

        n_docs, n_labels = scores.shape
        step = max(1, BLOCK_CELLS // n_labels)
        borders = np.append(np.arange(0, n_docs, step), n_docs)
        parts = run_blocks(run, borders) if n_docs else []
        if not all(parts):
            raise ValueError("scores contain NaN; use -inf for a label without a score.")
        return parts


class TopK(Rule):
    """Accept the ``k`` best labels; of equal scores, those that come first.

    Parameters
    ----------
    k : int, default=1
        Number of labels to accept.
    reject : bool, default=False
        Whether a document whose best score is not above zero gets no label.

    Examples
    --------
    >>> TopK(2).decide([[-4.0, -1.0, -2.0]]).toarray()
    array([[0., 1., 1.]])
    """

    grid = {"k": tuple(range(1, 11))}  # noqa: RUF012
    swept = "k"
    swept_type = np.int64
    falls = True

    def __init__(self, k=1, *, reject=False):
        self.k = k
        self.reject = reject

    def _check_parameters(self):
        check_scalar(self.k, "k", Integral, min_val=1, max_val=MAX_LABELS)

    def _cut(self, scores, reference, values, cut, ties):
        top_cuts(scores, values, self.reject, cut, ties)


class Threshold(Rule):
    """Accept labels whose score reaches a value.

    Parameters
    ----------
    value : float, default=0.0
        The lowest score that is accepted.
    reject : bool, default=False
        Whether a document may get no label; otherwise it gets its best, of several the first.

    Examples
    --------
    >>> Threshold(0.5).decide([[0.7, 0.6, 0.1], [0.2, 0.3, 0.1]]).toarray()
    array([[1., 1., 0.],
           [0., 1., 0.]])
    """

    grid = {"value": ()}  # noqa: RUF012
    swept = "value"

    def __init__(self, value=0.0, *, reject=False):
        self.value = value
        self.reject = reject

    def _check_parameters(self):
        check_scalar(self.value, "value", Real)
        if not -LARGEST_FLOAT <= self.value <= LARGEST_FLOAT and abs(self.value) != np.inf:
            raise ValueError(f"value == {self.value}, must be a number.")

    def _cut(self, scores, reference, values, cut, ties):
        threshold_cuts(scores, values, self.reject, cut, ties)


class MeanPlusStd(Rule):
    r"""Accept labels whose score is at least one standard deviation above the mean.

    The dynamic threshold of Bracewell et al. that Skorkovská et al. compare with:
    :math:`s_l \ge \mu + \sigma` over the document's finite scores. If these are all equal, no label
    stands out.

    Parameters
    ----------
    reject : bool, default=False
        Whether a document without such a label gets none; otherwise it gets its best, of several
        the first.

    Examples
    --------
    >>> MeanPlusStd().decide([[5.0, 5.0, 1.0, 0.0, 0.0, 0.0]]).toarray()
    array([[1., 1., 0., 0., 0., 0.]])
    """

    def __init__(self, *, reject=False):
        self.reject = reject

    def _cut(self, scores, reference, values, cut, ties):
        deviation_cuts(scores, self.reject, cut, ties)


class RatioRule(Rule):
    """A rule that accepts labels near the best normalized score."""

    grid = {"ratio": tuple(step / 100 for step in range(101))}  # noqa: RUF012
    swept = "ratio"
    ratio: float

    def _check_parameters(self):
        check_number(self.ratio, "ratio", min_val=0, max_val=1)


class WorldModel(RatioRule):
    r"""Accept labels whose score above the general model is near the best label's.

    :math:`z_l = \log p(A \mid l) - \log p(A \mid G)` (Skorkovská et al., Eq. (4), (5)).

    Parameters
    ----------
    ratio : float in [0, 1], default=0.8
        How near to the best a label must be.
    reject : bool, default=False
        Whether a document whose best label is no better than the general model gets no label.

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
    r"""Accept labels that stand out from their strongest competitors as the best one does.

    With ``cohort="next"``, a label is compared with the :math:`N` scores that follow its own in the
    document's ranking (Skorkovská et al., Eq. (6)):

    .. math:: z_l = s_l - \frac1N \sum_{n=1}^{N} s_{(n)}, \qquad s_l > s_{(1)} \ge s_{(2)} \ge \dots

    Where fewer follow, they are the cohort; the last label has :math:`z = 0`. Labels with equal
    scores do not follow each other, so they have the same cohort. A label before a gap may have a
    higher :math:`z` than one with a higher score, even than the label that scores best. That label
    sets the standard, as in the paper ("80% of the normalized score of the best scoring topic"):
    :math:`z_{\max}` is its :math:`z`, so it is always accepted.

    With ``cohort="best"``, a label is compared with the :math:`N` best *other* labels, so :math:`z`
    rises with the score. If a document has fewer scores, all others are the cohort; a single label
    has :math:`z = 0`.

    Parameters
    ----------
    size : int, default=15
        Number of labels in the cohort, :math:`N`.
    ratio : float in [0, 1], default=0.7
        How near to the best a label must be.
    cohort : {"next", "best"}, default="next"
        The competitors: the next labels in the ranking, or the best other labels.
    reject : bool, default=False
        Whether a document whose best label is no better than its cohort gets no label.

    Examples
    --------
    >>> scores = [[-10.0, -12.0, -18.0, -19.0]]
    >>> UnconstrainedCohort(size=2, ratio=0.7).decide(scores).toarray()
    array([[1., 1., 0., 0.]])
    >>> UnconstrainedCohort(size=2, ratio=0.7, cohort="best").decide(scores).toarray()
    array([[1., 0., 0., 0.]])
    """

    grid = {"size": (1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 80, 120), **RatioRule.grid}  # noqa: RUF012
    variants = {"cohort": ("next", "best")}  # noqa: RUF012

    def __init__(self, size=15, ratio=0.7, cohort="next", *, reject=False):
        self.size = size
        self.ratio = ratio
        self.cohort = cohort
        self.reject = reject

    def _check_parameters(self):
        super()._check_parameters()
        check_scalar(self.size, "size", Integral, min_val=1)
        if self.cohort not in self.variants["cohort"]:
            raise ValueError(f"cohort == {self.cohort!r}, must be 'next' or 'best'.")

    def _normalizes(self):
        return self.cohort == "next"

    def _cut(self, scores, reference, values, cut, ties):
        size = min(int(self.size), scores.shape[1])
        if self.cohort == "best":
            return cohort_cuts(scores, size, values, self.reject, cut, ties)
        z = np.empty(scores.shape)
        bits = scores.view(f"i{scores.itemsize}")
        next_cuts(scores, bits, size, values, self.reject, z, cut, ties)
        return z


class TreeCohort(RatioRule):
    r"""Accept labels that stand out from their siblings as the best label does.

    A label is compared with the mean of the labels under the same parent (Skorkovská et al.,
    section III-B3):

    .. math:: z_l = s_l - \frac{1}{|S_l|} \sum_{m \in S_l} s_m

    Siblings are taken among the scored labels; roots are siblings of roots. A label without
    siblings, or one that is not in the tree, is compared with all others; a single label has
    :math:`z = 0`.

    Parameters
    ----------
    tree : LabelTree, default=None
        The tree of labels. A :class:`~polytopic.Labeler` uses its own tree by default.
    ratio : float in [0, 1], default=0.8
        How near to the best a label must be.
    reject : bool, default=False
        Whether a document without a label that is better than its siblings gets no label.

    Attributes
    ----------
    group_ : ndarray of shape (n_labels,)
        Number of each column's group of siblings.

    Examples
    --------
    >>> from polytopic import LabelTree
    >>> tree = LabelTree.from_names(["sport/golf", "sport/judo", "arts/film", "arts/opera"])
    >>> rule = TreeCohort(tree).fit(classes=["arts/film", "arts/opera", "sport/golf", "sport/judo"])
    >>> rule.decide([[-10.0, -11.0, -12.0, -18.0]]).toarray()
    array([[0., 0., 1., 0.]])
    """

    needs_tree = True

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
            raise ValueError("TreeCohort has no tree of labels. Pass one: TreeCohort(tree).")
        if not isinstance(self.tree, LabelTree):
            raise TypeError(f"tree is a {type(self.tree).__name__}, must be a LabelTree.")
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

    def with_labels(self, classes, tree=None) -> Rule:
        """Return a copy fitted on the labels of the columns, see :meth:`Rule.with_labels`."""
        rule = copy(self)  # a shallow copy: the tree stays the same
        if rule.tree is None:
            rule.tree = tree
        return rule.fit(classes=classes)

    def _check_columns(self, scores):
        if not self.__sklearn_is_fitted__():
            raise ValueError(
                "TreeCohort does not know the labels of the columns; call fit(classes=...) "
                "before decide, or put it into a LabelDecision."
            )
        if scores.shape[1] != self.group_.size:
            raise ValueError(
                f"scores have {scores.shape[1]} columns, and TreeCohort was fitted on "
                f"{self.group_.size} labels; the numbers must be equal."
            )

    def __sklearn_is_fitted__(self):
        return "group_" in vars(self)

    def _normalizes(self):
        return True

    def _cut(self, scores, reference, values, cut, ties):
        z = np.empty(scores.shape)
        sibling_scores(scores, self.group_, np.bincount(self.group_), z)
        ratio_cuts(z, np.zeros(len(z)), values, self.reject, cut, ties)
        return z


class TNorm(RatioRule):
    r"""Accept labels whose standardized score is near the best label's.

    :math:`z_l = (s_l - \mu) / \sigma` with the mean :math:`\mu` and the standard deviation
    :math:`\sigma` of the document's scores (Skorkovská et al., Eq. (7)). The best is never below
    the mean, and :math:`\sigma` cancels: labels are compared with the mean of all. If all scores
    are equal, all labels are accepted.

    Parameters
    ----------
    ratio : float in [0, 1], default=0.9
        How near to the best a label must be.
    reject : bool, default=False
        Whether a document whose scores are all equal gets no label.

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


def check_scores(scores):
    """Return scores as an array of numbers with one row per document."""
    scores = np.asarray(scores)
    if scores.ndim != 2 or scores.shape[1] == 0:
        raise ValueError(
            f"scores have shape {scores.shape}, must be (n_docs, n_labels), with labels."
        )
    return scores if scores.dtype.kind in "biuf" else scores.astype(np.float64)


def _check_reference(reference, scores, rule):
    """Return one finite number per document."""
    if reference is None:
        raise ValueError(f"{rule} needs reference, each document's score under a general model.")
    reference = np.asarray(reference, dtype=np.float64)
    if reference.shape != scores.shape[:1] or not np.isfinite(reference).all():
        raise ValueError(
            f"reference has shape {reference.shape}; {scores.shape[0]} finite numbers are needed, "
            "one per document."
        )
    return reference
