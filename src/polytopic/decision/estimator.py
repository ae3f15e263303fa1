"""LabelDecision: any rule on any estimator's scores."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from polytopic.counts import group_rows
from polytopic.labels import read_targets, with_fallback
from polytopic.models import CountModel, LabelSetClassifier

SCORES = ("decision_function", "predict_log_proba", "predict_proba")


def _has(method):
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), method))


class LabelDecision(LabelSetClassifier, MetaEstimatorMixin, BaseEstimator):
    """An estimator whose labels are chosen by a rule.

    A document without a known word gets the most frequent label set of the training documents,
    whatever the rule, unless the rule may reject. (Where the estimator takes texts, it alone knows
    which words are known.)

    Parameters
    ----------
    estimator : estimator
        Gives the scores: ``decision_function``, else ``predict_log_proba`` or ``predict_proba``.
        Ours or scikit-learn's.
    rule : rule of :mod:`polytopic.decision`
        Accepts labels by their scores. Its parameters are open to search: ``rule__ratio``.

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
        return tags

    def fit(self, X, y, **fit_params):
        """Fit the estimator; the rule itself learns nothing."""
        targets = read_targets(y)
        inner = y
        if targets.form.kind == "names" and not isinstance(self.estimator, CountModel):
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

    def predict(self, X):
        """Return the labels that the rule accepts; for a 1-D ``y`` the estimator's own answer."""
        check_is_fitted(self)
        if self._form.kind == "single":
            return self.estimator_.predict(X)
        Y = apply_rule(self.estimator_, self.rule, X, self._fallback, unseen=self._unseen)
        return self._form.give_back(Y)

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


def apply_rule(estimator, rule, X, fallback, *, unseen=None):
    """Return the labels that a rule accepts on a fitted estimator's scores, as an indicator.

    ``fallback`` are the labels of documents without words, unless the rule may reject;
    ``unseen`` masks labels without training documents.
    """
    scores = _scores(estimator, X)
    if unseen is not None:
        scores[:, unseen] = -np.inf
    reference = _world_score(estimator, rule, X) if rule.needs_reference else None
    Y = rule.decide(scores, reference=reference)
    return Y if rule.reject or not _holds_numbers(X) else with_fallback(X, Y, fallback)


def _holds_numbers(X):
    """Tell whether X are words, not texts, so that documents without words can be seen."""
    return sparse.issparse(X) or np.asarray(X).dtype.kind in "biuf"


def _scores(estimator, X):
    """Return one score for each document and label."""
    method = next((name for name in SCORES if hasattr(estimator, name)), None)
    if method is None:
        raise ValueError(
            f"{type(estimator).__name__} gives no scores; one of {', '.join(SCORES)} is needed."
        )
    scores = getattr(estimator, method)(X)
    if isinstance(scores, list):  # scikit-learn's, one array of two columns a label
        scores = np.column_stack([column[:, -1] for column in scores])
    scores = np.array(scores, dtype=np.float64)
    return scores[:, None] if scores.ndim == 1 else scores  # 1-D: one label only


def _world_score(estimator, rule, X):
    if not hasattr(estimator, "world_score"):
        raise ValueError(
            f"{type(rule).__name__} needs each document's score under a general model, and "
            f"{type(estimator).__name__} has no world_score; use NaiveBayes or another rule."
        )
    return estimator.world_score(X)


def _most_frequent(Y, weight=None):
    """Return the columns of the label set that most rows have; of several, the first."""
    labelled = np.flatnonzero(np.diff(Y.indptr) > 0)
    if not labelled.size:
        raise ValueError("Y has no labelled document; at least one is needed.")
    group = group_rows(Y[labelled])
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)[labelled]
    commonest = np.argmax(np.bincount(group, weights=weight))
    return Y[labelled[np.flatnonzero(group == commonest)[0]]].indices
