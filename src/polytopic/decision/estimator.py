"""LabelDecision: applies any decision rule to any estimator's scores."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from polytopic.counts import group_rows
from polytopic.labels import read_targets, with_fallback
from polytopic.models import CountModel, LabelSetClassifier, Model

SCORES = ("decision_function", "predict_log_proba", "predict_proba")


def _has(method):
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), method))


class LabelDecision(LabelSetClassifier, MetaEstimatorMixin, BaseEstimator):
    """An estimator whose labels are chosen by a rule.

    A document with no known words, or whose scores are all ``-inf``, gets the most frequent label
    set of the training documents, whatever the rule, unless the rule may reject. (If the estimator
    takes texts, only the estimator can tell which words are known.) The rule has no effect on
    ``fit``, and may be replaced afterwards.

    Parameters
    ----------
    estimator : estimator
        Scores the labels by ``decision_function``, else ``predict_log_proba`` or
        ``predict_proba``; one of ours or of scikit-learn's.
    rule : rule of :mod:`polytopic.decision`
        Accepts labels by their scores. Its parameters can be searched as ``rule__ratio``;
        :func:`~polytopic.decision.tune_decision` finds them without a fit for each value.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    classes_ : ndarray of shape (n_labels,)
        Labels of the columns.

    Examples
    --------
    >>> from polytopic import NaiveBayes
    >>> from polytopic.decision import TopK
    >>> X, Y = [[3, 0, 1], [0, 2, 1], [2, 2, 0]], [["sport"], ["film"], ["film", "sport"]]
    >>> LabelDecision(NaiveBayes(), TopK(2)).fit(X, Y).predict([[4, 1, 0]])
    array([[1, 1]])
    """

    def __init__(self, estimator, rule):
        self.estimator = estimator
        self.rule = rule

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.target_tags = inner.target_tags
        tags.classifier_tags = inner.classifier_tags
        tags.target_tags.multi_output = False  # not the labels with a score above zero
        return tags

    def get_metadata_routing(self):
        """Return which metadata, such as document weights, go to the estimator's ``fit``."""
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=to_fit)

    def fit(self, X, y, **fit_params):
        """Fit the estimator; the rule learns nothing from documents."""
        if get_config()["enable_metadata_routing"]:
            fit_params = process_routing(self, "fit", **fit_params).estimator.fit
        targets = read_targets(y)
        inner = y
        if targets.form.kind == "names" and not takes_names(self.estimator):
            inner = targets.Y.toarray().astype(np.int64)  # what scikit-learn understands
        self.estimator_ = clone(self.estimator).fit(X, inner, **fit_params)
        self._form = targets.form
        if isinstance(self.estimator_, CountModel):
            self.classes_, self._fallback = self.estimator_.classes_, self.estimator_.fallback
            self._unseen = self.estimator_.label_docs_ == 0
        else:
            self.classes_ = np.array(targets.labels)
            self._fallback = _most_frequent(targets.Y, fit_params.get("sample_weight"))
            self._unseen = np.diff(targets.Y.tocsc().indptr) == 0
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    @property
    def fallback(self) -> np.ndarray:
        """Columns of the most frequent label set, for documents without words or scores."""
        return self._fallback

    @property
    def unseen(self) -> np.ndarray:
        """Whether each label has no training document; such a label is never accepted."""
        return self._unseen

    def predict(self, X):
        """Return the labels that the rule accepts; with a 1-D ``y``, the estimator's prediction."""
        check_is_fitted(self)
        if self._form.kind == "single":
            return self.estimator_.predict(X)
        return self._form.convert(self.predict_indicator(X))

    def predict_indicator(self, X):
        """Return the labels of :meth:`predict` as a sparse indicator."""
        check_is_fitted(self)
        if self._form.kind == "single":
            return read_targets(self.estimator_.predict(X)).over(self.classes_.tolist())
        return apply_rule(
            self.estimator_,
            self.rule,
            X,
            self._fallback,
            classes=self.classes_,
            unseen=self._unseen,
        )

    @_has("decision_function")
    def decision_function(self, X):
        """Return the estimator's scores."""
        check_is_fitted(self)
        return self.estimator_.decision_function(X)

    @_has("predict_proba")
    def predict_proba(self, X):
        """Return the estimator's probabilities."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)


def takes_names(estimator) -> bool:
    """Return whether an estimator learns from label names: a count model, or one of texts."""
    return isinstance(estimator, CountModel) or get_tags(estimator).input_tags.string


def apply_rule(estimator, rule, X, fallback, *, classes=None, unseen=None, tree=None):
    """Return the labels that a rule accepts on a fitted estimator's scores, as an indicator.

    Parameters
    ----------
    estimator : fitted estimator
        Scores the labels.
    rule : rule of :mod:`polytopic.decision`
        Accepts labels by their scores.
    X : documents
        In the form that the estimator takes.
    fallback : array of int
        Columns of the labels for documents without words or without any score, unless the rule may
        reject.
    classes : sequence of labels, default=None
        Labels of the columns; those of the estimator by default.
    unseen : array of bool, default=None
        Whether each label has no training document; such labels are never accepted.
    tree : LabelTree, default=None
        The tree for a rule that needs one and has none.
    """
    classes = estimator.classes_ if classes is None else classes
    rule = rule.with_labels(classes, tree)
    scores = label_scores(estimator, X, unseen, n_labels=len(classes))
    reference = world_score(estimator, rule, X) if rule.needs_reference else None
    Y = rule.decide(scores, reference=reference)
    if rule.reject:
        return Y
    Y = with_fallback(Y, Y, fallback)  # where no label has a score
    return with_fallback(X, Y, fallback) if holds_numbers(X) else Y


def holds_numbers(X):
    """Return whether X is a matrix of numbers, not texts, so that empty documents can be seen."""
    return sparse.issparse(X) or np.asarray(X).dtype.kind in "biuf"


def label_scores(estimator, X, unseen=None, n_labels=None):
    """Return one score for each document and label; ``-inf`` for labels that were never seen.

    A model of thousands of labels has scores of candidates only, a CSR matrix.
    """
    scores = _raw_scores(estimator, X)
    if isinstance(scores, list):  # scikit-learn's: one array of two columns per label
        scores = np.column_stack([column[:, -1] for column in scores])
    if sparse.issparse(scores):  # of candidates
        return scores
    scores = np.asarray(scores)
    scores = scores if scores.dtype.kind == "f" else scores.astype(np.float64)
    scores = scores[:, None] if scores.ndim == 1 else scores  # 1-D: one label only
    if n_labels == 1 and scores.shape[1] == 2:  # scores of absence and presence
        scores = scores[:, 1:]
    if unseen is not None and unseen.any():
        scores = np.where(unseen, scores.dtype.type(-np.inf), scores)
    return scores


def _raw_scores(estimator, X):
    """Return the estimator's scores, by the first method that works.

    If a label has only one value, scikit-learn's OneVsRestClassifier claims to have a
    ``decision_function`` that the estimators of other labels lack.
    """
    missing = None
    for name in SCORES:
        if hasattr(estimator, name):
            try:
                return getattr(estimator, name)(X)
            except AttributeError as error:
                missing = missing or error
    if missing is not None:
        raise missing
    raise ValueError(
        f"{type(estimator).__name__} has no scores; it needs one of {', '.join(SCORES)}."
    )


def has_world_score(estimator) -> bool:
    """Return whether an estimator scores documents under a general model."""
    return isinstance(estimator, Model) and estimator.has_world_score


def world_score(estimator, rule, X):
    """Return each document's score under the general model."""
    if not has_world_score(estimator):
        raise ValueError(
            f"{type(rule).__name__} needs each document's score under a general model, and "
            f"{type(estimator).__name__} has no world_score; use NaiveBayes or another rule."
        )
    return estimator.world_score(X)


def _most_frequent(Y, weight=None):
    """Return the columns of the most frequent label set; of several, the first."""
    labelled = np.flatnonzero(np.diff(Y.indptr) > 0)
    if not labelled.size:
        raise ValueError("Y has no labelled document; at least one is needed.")
    group = group_rows(Y[labelled])
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)[labelled]
    most_frequent = np.argmax(np.bincount(group, weights=weight))
    return Y[labelled[np.flatnonzero(group == most_frequent)[0]]].indices
