"""What a stack can combine: models of polytopic that read weights, and scikit-learn classifiers."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils import get_tags

from polytopic.models.base import DocumentModel, HeldOutScores, Model, held_out_scores
from polytopic.models.registry import create_model, find_model, model_names
from polytopic.models.results import LabelEvidence


def as_member(member):
    """Return an unfitted member, given a name, a model or a classifier."""
    if isinstance(member, str):
        member = create_model(member)
    if isinstance(member, DocumentModel) and member.reads == "weights":
        return clone(member)
    is_foreign = isinstance(member, BaseEstimator) and not isinstance(member, Model)
    if is_foreign and is_classifier(member):
        return Classifier(member)
    names = [name for name in model_names() if find_model(name).load().reads == "weights"]
    raise ValueError(
        f"members has {member!r}, must have models that read weights ({', '.join(names)}) or "
        "scikit-learn classifiers."
    )


class Classifier(BaseEstimator):
    """A scikit-learn classifier as a member of a stack.

    One that has no multi-label support is fitted on each label.
    """

    cut = 0.0

    def __init__(self, classifier):
        self.classifier = classifier

    def fit(self, X, Y, *, tuned=None):
        """Fit the classifier on an indicator of labels."""
        self._seen, self._n_labels = np.flatnonzero(Y.getnnz(axis=0)), Y.shape[1]
        several = get_tags(self.classifier).classifier_tags.multi_label
        classifier = clone(self.classifier)
        self.classifier_ = classifier if several else OneVsRestClassifier(classifier)
        dense = Y[:, self._seen].toarray().astype(np.int64)
        self.classifier_.fit(X, dense)
        return self

    def decision_function(self, X):
        """Return a score per label; ``-inf`` for a label without documents."""
        scores = np.full((X.shape[0], self._n_labels), -np.inf)
        scores[:, self._seen] = self._scores(X)
        return scores

    def _scores(self, X):
        if hasattr(self.classifier_, "decision_function"):
            return self.classifier_.decision_function(X).reshape(X.shape[0], -1)
        proba = self.classifier_.predict_proba(X)
        if isinstance(proba, list):  # one array per label
            proba = np.column_stack([of_label[:, -1] for of_label in proba])
        return proba - 0.5

    def held_out_scores(self, X, Y, folds) -> HeldOutScores:
        """Return the scores of held-out documents by classifiers fitted on the others."""
        return held_out_scores(self, X, Y, folds)

    def label_evidence(self, x, labels):
        """Return scores that no word accounts for."""
        return LabelEvidence(
            x.data, np.zeros((x.nnz, len(labels))), self.decision_function(x)[0, labels]
        )

    def top_words(self, label, k):
        """Return no words."""
        return np.zeros(0, dtype=np.int64), np.zeros(0)
