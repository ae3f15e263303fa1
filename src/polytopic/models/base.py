"""What every model does, and the abilities that it declares.

``Model`` is the contract. A ``CountModel`` (see ``count_model``) knows a corpus only through its
table of counts per label set, so it can learn and forget documents exactly. A ``DocumentModel`` is
fitted on the documents themselves; a ``LinearModel`` is one whose scores are sums over words.
``Labeler``, ``Store``, explanations, the command line and the service ask a model for its
abilities; they never look at its name or its methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from itertools import pairwise
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.array_specs import WHOLE, ArraySpec
from polytopic.kernels.blocks import run_tasks
from polytopic.labels import LabelSpace, TargetForm, Targets, read_targets, widen
from polytopic.metrics.label_sets import f1
from polytopic.models.checks import check_sets, check_words
from polytopic.models.results import WordLabels, WordScores

# The arrays of a document model in files: the labels that have documents, and how many
LABEL_ARRAYS = {
    "columns": ArraySpec(WHOLE, ("n_columns",), 0, below="n_labels"),
    "fallback": ArraySpec(WHOLE, ("n_fallback",), 0, below="n_labels"),
    "label_docs": ArraySpec(WHOLE, ("n_labels",), 0),
    "docs": ArraySpec(WHOLE, (2,), 1),  # documents in all, and those with the fallback
}


class LabelSetClassifier(ClassifierMixin):
    """A classifier that predicts label sets, and is scored by how well they match."""

    classes_: np.ndarray

    def predict_indicator(self, X) -> sparse.csr_matrix:
        """Return the predicted label sets as a sparse indicator over ``classes_``."""
        raise NotImplementedError

    def score(self, X, y, sample_weight=None) -> float:
        """Return the samples-averaged F1 of the predicted label sets.

        A label that the model never saw counts as missed. With one label per document, this is
        the accuracy.

        Parameters
        ----------
        X : documents
            As in ``predict``.
        y : labels
            The true labels, in any form that ``fit`` accepts.
        sample_weight : array of shape (n_docs,), default=None
            Weights of the documents in the mean.
        """
        check_is_fitted(self)
        true, labels = read_targets(y), self.classes_.tolist()
        space = LabelSpace([*labels, *true.labels])
        Y_true = widen(true.Y, true.labels, space)
        Y_pred = widen(self.predict_indicator(X), labels, space)
        right = Y_true.multiply(Y_pred).sum(axis=1).A1
        values = f1(right, np.diff(Y_true.indptr), np.diff(Y_pred.indptr))
        return float(np.average(values, weights=sample_weight))


class Model(LabelSetClassifier, BaseEstimator, ABC):
    """What every model does. Class attributes declare what else it can do.

    Attributes
    ----------
    name : str
        The name of the model in commands, files and stores.
    learns_from : {"counts", "documents"}
        Whether the model is fitted on a table of counts per label set, or on documents.
    reads : {"counts", "weights"}
        Whether rows of ``X`` hold word counts, or weights such as tf-idf.
    has_mixture : bool
        Has ``mixture``, the share of each label in a document, and ``proportions``.
    can_set_mixture : bool
        ``word_labels`` and ``explain_words`` accept other shares of labels (``mixture=``).
    has_word_proba : bool
        Has ``word_proba_`` and ``world_log_proba_``, the word distributions of the labels and of
        the whole corpus. Other models have ``top_words``.
    has_world_score : bool
        Has ``world_score``, the score of a document under the model of the whole corpus.
    has_set_posterior : bool
        Has ``predict_sets`` and ``set_probability``.
    has_topics : bool
        Has ``label_topics_``, ``topic_word_proba_`` and ``label_covariance_``.
    can_forget : bool
        Has ``partial_fit`` and ``forget``, both exact.
    audit_method : {"leave-one-out", "out-of-fold"}
        How learned documents are assessed as if they had not been learned: by removing the counts
        of each, exactly, or by models that are fitted on the other folds.
    can_warm_start : bool
        ``fit`` can start from an earlier model (``warm=``).
    can_distribute : bool
        Can be fitted on a corpus in partitions.
    finds_candidates : bool
        Scores only the candidate labels of each document; others are absent from its sparse scores.
    """

    name: ClassVar[str]
    learns_from: ClassVar[Literal["counts", "documents"]]
    reads: ClassVar[Literal["counts", "weights"]] = "counts"
    has_mixture: ClassVar[bool] = False
    can_set_mixture: ClassVar[bool] = False
    has_word_proba: ClassVar[bool] = False
    has_world_score: ClassVar[bool] = False
    has_set_posterior: ClassVar[bool] = False
    has_topics: ClassVar[bool] = False
    can_forget: ClassVar[bool] = False
    audit_method: ClassVar[Literal["leave-one-out", "out-of-fold"]] = "out-of-fold"
    can_warm_start: ClassVar[bool] = False
    can_distribute: ClassVar[bool] = False
    finds_candidates: ClassVar[bool] = False

    tuned_: dict[str, Any]
    label_docs_: np.ndarray
    _form: TargetForm
    _fallback: np.ndarray

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.reads == "counts"
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.poor_score = True  # scikit-learn's blobs are not word counts
        return tags

    # Learning

    @abstractmethod
    def fit(self, X, y):
        """Learn from documents and their labels."""

    @property
    def is_fitted(self) -> bool:
        """Whether the model has learned anything, by ``fit`` or from arrays."""
        try:
            check_is_fitted(self, ("classes_", "tuned_"))
        except NotFittedError:
            return False
        return True

    @property
    def needs_documents(self) -> bool:
        """Whether ``fit`` tunes a parameter on documents."""
        return False

    @property
    def can_continue(self) -> bool:
        """Whether a warm start can begin from this fitted model."""
        return False

    @abstractmethod
    def restrict_to(self, allowed) -> Self:
        """Return a copy that predicts only the labels where ``allowed`` is true."""

    @abstractmethod
    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return what was learned as plain arrays."""

    @abstractmethod
    def from_arrays(self, arrays, *, labels, n_words, tuned=None) -> Self:
        """Restore what :meth:`to_arrays` returned; predictions are then identical bit for bit.

        Arrays that no model could have produced raise ValueError.
        """

    # Predicting

    def predict(self, X):
        """Return the labels of each document, in the form of the ``Y`` that was learned.

        A document with no known words gets the most frequent label set.
        """
        Y = self.predict_indicator(X)
        return self.classes_[Y.indices] if self._form.kind == "single" else self._form.convert(Y)

    @abstractmethod
    def predict_indicator(self, X) -> sparse.csr_matrix:
        """Return the predicted label sets as a sparse indicator, whatever the form of ``Y``."""

    @abstractmethod
    def decision_function(self, X):
        """Return one score per document and label."""

    @abstractmethod
    def predict_proba(self, X):
        """Return one probability per document and label."""

    @abstractmethod
    def assess(self, X, labels=None):
        """Return predicted sets (CSR indicator), scores and probabilities in one pass.

        If ``labels`` (columns) are given, the scores of other labels may be rough.
        """

    @property
    def fallback(self) -> np.ndarray:
        """Columns of the most frequent label set, which documents without words get."""
        return self._fallback

    def set_probability(self, X) -> np.ndarray:
        """Return the probability that the whole predicted label set of each document is right.

        By default, the posterior of the most probable label set.
        """
        check_is_fitted(self)
        reason = self.why_no_set_probability()
        if reason:
            raise ValueError(f"set_probability is not available: {reason}.")
        return np.exp(self.predict_sets(X, 1).scores[:, 0])

    def why_no_set_probability(self) -> str:
        """Return why :meth:`set_probability` is unavailable and what to do; "" if it is not."""
        if self.has_set_posterior:
            return ""
        return f"{type(self).__name__} has none; use MML(calibrate=True) or a mixture"

    # Explaining

    @abstractmethod
    def explain_words(self, x, y) -> WordScores:
        """Return what the score of a label set is made of, for one document."""

    @abstractmethod
    def word_labels(self, X, Y=None) -> WordLabels:
        """Return the share of each label of a document's set in each of its words.

        ``Y`` is the label sets that share the words; by default the predicted ones.
        """

    @abstractmethod
    def best_with(self, X, label) -> sparse.csr_matrix:
        """Return the best label set of each document that contains a label (a column)."""

    # Checks

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise if a parameter is invalid."""

    def _check_words(self, X, *, reset=False) -> sparse.csr_matrix:
        """Return documents in the form that the model computes with."""
        return check_words(self, X, reset=reset)

    def _check_sets(self, X, Y) -> sparse.csr_matrix:
        """Return the given label sets over ``classes_``, or the predicted ones if None."""
        return self.predict_indicator(X) if Y is None else check_sets(X, Y, self.classes_)

    def _check_label(self, label, known) -> None:
        """Raise if ``label`` is not one of the ``known`` columns."""
        check_scalar(label, "label", Integral, min_val=0, max_val=self.classes_.size - 1)
        if label not in known:
            name = self.classes_[label]
            raise ValueError(f"label {str(name)!r} has no documents, or is not allowed.")

    def _set_classes(self, labels, form: TargetForm) -> None:
        names = any(isinstance(label, str) for label in labels)
        self.classes_, self._form = np.array(labels, dtype=object if names else None), form


class HeldOutScores(NamedTuple):
    """How a model scores documents that it was not fitted on.

    Attributes
    ----------
    scores : ndarray of shape (n_held_out, n_labels)
        The scores of the documents of each fold, fold by fold.
    tuned : dict
        What was tuned on the way, for ``fit``.
    fitted : model or None
        A model that is fitted on all documents, if there is one already.
    """

    scores: np.ndarray
    tuned: dict[str, Any]
    fitted: Any = None


def held_out_scores(model, X, Y, folds) -> HeldOutScores:
    """Fit a model without the documents of each fold in turn, and return their scores."""

    def run(fold):
        train, test = fold
        return clone(model).fit(X[train], Y[train]).decision_function(X[test])

    return HeldOutScores(np.vstack(run_tasks(run, folds)), {})


class DocumentModel(Model):
    """A model that is fitted on documents, and keeps how often labels and label sets occur."""

    learns_from = "documents"
    cut: ClassVar[float] = 0.0  # labels with a higher score are predicted

    def held_out_scores(self, X, Y, folds) -> HeldOutScores:
        """Return the scores of documents by models that were fitted without them.

        Parameters
        ----------
        X : csr_matrix of shape (n_docs, n_words)
            Documents of unit length, all with words.
        Y : csr_matrix of shape (n_docs, n_labels)
            Their labels; each has one.
        folds : list of pairs of arrays
            Rows to fit on, and rows to score.
        """
        return held_out_scores(self, X, Y, folds)

    def _set_labels(self, targets: Targets) -> None:
        """Store the labels, and how often they and their sets occur."""
        self._set_classes(targets.labels, targets.form)
        self.label_docs_ = targets.Y.getnnz(axis=0)
        self._columns = np.flatnonzero(self.label_docs_)
        Y = targets.Y.sorted_indices()
        labels = Y.indices.tolist()
        sets = Counter(tuple(labels[a:b]) for a, b in pairwise(Y.indptr.tolist()) if b > a)
        most_frequent = min(sets, key=lambda labels: (-sets[labels], labels))
        self._fallback = np.array(most_frequent, dtype=np.int64)
        self._n_docs, self._fallback_docs = sets.total(), sets[most_frequent]

    def _set_label_sets(self, labels, sets, set_docs) -> None:
        """Store label sets in sorted order, and how many documents have each."""
        self._set_classes(labels, TargetForm())
        set_docs = np.asarray(set_docs).astype(np.int64)
        most_frequent = int(np.argmax(set_docs))
        self.label_docs_ = sets.T.astype(np.int64) @ set_docs
        self._columns = np.flatnonzero(self.label_docs_)
        self._fallback = sets[most_frequent].indices.astype(np.int64)
        self._n_docs, self._fallback_docs = int(set_docs.sum()), int(set_docs[most_frequent])

    def _label_arrays(self) -> dict[str, np.ndarray]:
        """Return what is known of the labels as plain arrays."""
        return {
            "columns": self._columns,
            "fallback": self._fallback,
            "label_docs": self.label_docs_,
            "docs": np.array([self._n_docs, self._fallback_docs]),
        }

    def _restore_labels(self, arrays, labels, tuned) -> None:
        """Restore what :meth:`_label_arrays` returned, and the tuned parameters."""
        self._set_classes(labels, TargetForm())
        self.tuned_, self.label_docs_ = tuned, arrays["label_docs"]
        self._columns, self._fallback = arrays["columns"], arrays["fallback"]
        self._n_docs, self._fallback_docs = arrays["docs"].tolist()

    def _fallback_within(self, allowed) -> np.ndarray:
        """Return the fallback if only some labels are allowed."""
        if allowed[self._fallback].all():
            return self._fallback
        return np.argmax(np.where(allowed, self.label_docs_, -1), keepdims=True)


class LinearModel(DocumentModel):
    """A document model whose scores are sums of what each word adds for each label."""

    def explain_words(self, x, y):
        """Return what the score of a label set is made of, for one document."""
        check_is_fitted(self)
        weights, by_label = self._word_contributions(x, sparse.csr_matrix(y))
        return WordScores(
            weights=weights,
            word_scores=by_label.sum(axis=1),
            corpus_scores=np.zeros(weights.size),
            by_label=by_label,
        )

    def word_labels(self, X, Y=None):
        """Return the share of each label of a document's set in each of its words.

        The shares of a word are proportional to what it adds to the score of each label. If it adds
        to none of them, they are equal.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        sets = self._check_sets(X, Y)
        doc, word, label, share = [], [], [], []
        for d in range(X.shape[0]):
            x, y = X[d], sets[d]
            contributions = np.maximum(x.data[:, None] * self._word_scores(x, y), 0.0)
            contributions[contributions.sum(axis=1) == 0] = 1.0
            doc.append(np.full(contributions.size, d))
            word.append(np.repeat(x.indices, y.nnz))
            label.append(np.tile(y.indices, x.nnz))
            share.append((contributions / contributions.sum(axis=1, keepdims=True)).ravel())
        return WordLabels(*(np.concatenate(part) for part in (doc, word, label, share)))

    @abstractmethod
    def top_words(self, label, k) -> tuple[np.ndarray, np.ndarray]:
        """Return the ``k`` words with the largest weights for a label (a column), and these."""

    @abstractmethod
    def _word_contributions(self, x, y) -> tuple[np.ndarray, np.ndarray]:
        """Return one document's words as ``fit`` saw them, and what one unit adds per label."""

    @abstractmethod
    def _word_scores(self, x, y) -> np.ndarray:
        """Return the weights of one document's words for each label of a set."""


def check_label_arrays(arrays, *, ascending=True):
    """Raise if the arrays of labels and documents are inconsistent.

    Columns are ``ascending``, unless a model has an order of its own.
    """
    columns, fallback, label_docs = (arrays[name] for name in ("columns", "fallback", "label_docs"))
    n_docs, fallback_docs = arrays["docs"].tolist()
    if not np.array_equal(columns if ascending else np.sort(columns), np.flatnonzero(label_docs)):
        raise ValueError(
            "'columns' must hold the labels with documents, without repetition"
            + (", in ascending order" if ascending else "")
        )
    if not fallback.size or (np.diff(fallback) <= 0).any():
        raise ValueError("'fallback' must hold a label set in ascending order")
    if not fallback_docs <= label_docs[fallback].min() <= label_docs.max() <= n_docs:
        raise ValueError("a label or label set has more documents than there are")
    if label_docs.astype(np.float64).sum() < n_docs:
        raise ValueError("there are documents without a label")
