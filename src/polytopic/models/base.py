"""What every model does, the abilities that it declares, and what the two kinds of models share.

``Model`` is the contract. A ``CountModel`` sees a corpus only through its table of counts per label
set, so it can learn and forget documents exactly. A ``DocumentModel`` is fitted on the documents
themselves. ``Labeler``, ``Store``, explanations, the command line and the service ask a model for
its abilities; they never look at its name or its methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from copy import copy
from itertools import pairwise
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.counts import LabelSetCounts
from polytopic.kernels.blocks import run_tasks
from polytopic.labels import (
    LabelSpace,
    TargetForm,
    Targets,
    indicator,
    read_targets,
    widen,
    with_fallback,
)
from polytopic.metrics.label_sets import f1
from polytopic.models import arrays as plain
from polytopic.models import leave_one_out
from polytopic.models.checks import (
    check_documents,
    check_form,
    check_pseudo_count,
    check_sets,
    check_words,
    declare,
    require_counts,
    whole_documents,
)
from polytopic.models.words import (
    WordLabels,
    WordScores,
    best_labels,
    label_scores,
    smoothed,
    softmax,
)
from polytopic.models.words import word_labels as shared_words


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
        The name under which commands, files and stores know the model.
    learns_from : {"counts", "documents"}
        Whether the model is fitted on a table of counts per label set, or on documents.
    reads : {"counts", "weights"}
        Whether rows of ``X`` hold word counts, or weights such as tf-idf.
    has_mixture : bool
        Has ``mixture``, the share of each label in a document, and ``proportions``.
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
    can_audit : bool
        Can assess a document as if it had never been learned.
    can_warm_start : bool
        ``fit`` can start from an earlier model (``warm=``).
    can_distribute : bool
        Can be fitted on a corpus in partitions.
    """

    name: ClassVar[str]
    learns_from: ClassVar[Literal["counts", "documents"]]
    reads: ClassVar[Literal["counts", "weights"]] = "counts"
    has_mixture: ClassVar[bool] = False
    has_word_proba: ClassVar[bool] = False
    has_world_score: ClassVar[bool] = False
    has_set_posterior: ClassVar[bool] = False
    has_topics: ClassVar[bool] = False
    can_forget: ClassVar[bool] = False
    can_audit: ClassVar[bool] = False
    can_warm_start: ClassVar[bool] = False
    can_distribute: ClassVar[bool] = False

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
        """Restore what :meth:`to_arrays` returned; predictions are then identical to the bit.

        Arrays that no model could have produced raise ValueError.
        """

    # Predicting

    def predict(self, X):
        """Return the labels of each document, in the form of the ``Y`` that was learned.

        A document without a known word gets the most frequent label set.
        """
        Y = self.predict_indicator(X)
        return self.classes_[Y.indices] if self._form.kind == "single" else self._form.give_back(Y)

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


class CountModel(Model):
    """A model that sees a corpus only through its :class:`~polytopic.LabelSetCounts`.

    A subclass implements four methods: ``_estimate`` (how the table becomes word counts per
    label), ``_own_counts`` (what one document contributed to them), ``_log_likelihood`` (of
    documents given label sets) and ``_log_words`` (how it splits into words). By default a
    document gets its single most likely label; override ``_best_sets`` and
    ``_margins_and_marginals`` to predict label sets.
    """

    learns_from = "counts"
    has_word_proba = True
    can_forget = True
    can_audit = True
    can_distribute = True

    _array_specs = plain.COUNTS
    _tuned_ranges: plain.Ranges = plain.NOTHING_TUNED

    # Learning

    def fit(self, X, y, sample_weight=None):
        """Learn from documents.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts, not negative.
        y : indicator of shape (n_docs, n_labels), or one collection of names per document
            Labels; 1-D means one label per document. Documents without a label are ignored.
        sample_weight : array of shape (n_docs,), default=None
            How many times each document counts.
        """
        X, targets, sample_weight = check_documents(self, X, y, sample_weight, reset=True)
        declared = targets.labels if targets.form.is_indicator else ()
        counts = LabelSetCounts.from_matrix(X, targets, sample_weight=sample_weight)
        documents = whole_documents(X, targets, sample_weight)
        return self._fit_table(counts, targets.form, declared, documents=documents)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn more documents, exactly as if ``fit`` had seen all of them at once.

        New labels may come by name; ``classes`` declares labels that may have no document yet.
        """
        first = not hasattr(self, "classes_")
        if first and classes is None:
            return self.fit(X, y, sample_weight)
        X, targets, sample_weight = check_documents(self, X, y, sample_weight, reset=first)
        form, declared = (targets.form, ()) if first else (self._form, self._declared)
        if classes is not None:
            declared = declare(declared, classes, targets)
        check_form(targets, form, declared)
        known = LabelSetCounts() if first else require_counts(self.counts_)
        new = LabelSetCounts.from_matrix(X, targets, sample_weight=sample_weight)
        documents = whole_documents(X, targets, sample_weight) if first else None
        tuned = None if first else self.tuned_
        return self._fit_table(known + new, form, declared, documents=documents, tuned=tuned)

    def forget(self, X, y, sample_weight=None):
        """Unlearn documents: the result is, to the bit, what is learned without them."""
        check_is_fitted(self)
        X, targets, sample_weight = check_documents(self, X, y, sample_weight, reset=False)
        check_form(targets, self._form, self._declared)
        gone = LabelSetCounts.from_matrix(X, targets, sample_weight=sample_weight)
        left = require_counts(self.counts_) - gone
        if not left.set_docs.size:
            raise ValueError("no document would be left to learn from; nothing was forgotten.")
        return self._fit_table(left, self._form, self._declared, tuned=self.tuned_)

    def fit_counts(self, counts: LabelSetCounts, *, documents=None, tuned=None):
        """Learn from a table of counts per label set, whose columns are the words.

        Parameters
        ----------
        counts : LabelSetCounts
            The table.
        documents : pair of a matrix and label names per document, default=None
            Some of the table's documents, to tune parameters on.
        tuned : dict, default=None
            Parameters tuned by an earlier fit (``tuned_``), to keep.
        """
        if documents is not None:
            documents = documents[0], read_targets(documents[1])
        return self._fit_table(counts, TargetForm(), (), documents=documents, tuned=tuned)

    def _fit_table(self, counts, form, declared, *, documents=None, tuned=None):
        """Learn from a table; ``classes_`` are its labels and those declared."""
        self._check_parameters()
        if not counts.set_docs.size:
            raise ValueError("Y has no labelled document; at least one is needed.")
        space = LabelSpace([*declared, *counts.labels])
        self._check_labels(space.ids)
        self.tuned_ = dict(tuned or {})
        sets = widen(counts.indicator, counts.labels, space)
        self.counts_, self._form, self._declared = counts, form, declared
        self._learn(space.ids, sets)
        if documents is not None and form.kind != "single":
            X, targets = documents
            self._tune(X, targets.over(list(space.ids)))
        return self

    def _learn(self, labels, sets):
        """Learn from ``counts_``, whose label sets are ``sets``."""
        self._set_state(
            labels,
            label_counts=self._estimate(self.counts_.matrix, sets),
            sets=sets,
            set_docs=self.counts_.set_docs,
            world_counts=self.counts_.matrix.sum(axis=0).A1,
        )

    @abstractmethod
    def _estimate(self, matrix, sets) -> sparse.csr_matrix:
        """Return the word counts of each label, expected or certain.

        ``matrix`` has the word counts of each label set, ``sets`` their labels. The result must
        depend on these alone, so that forgetting is exact.
        """

    def _tune(self, X, Y):
        """Tune parameters on documents, into ``tuned_``. By default there are none."""

    def _check_labels(self, labels):
        """Raise if the parameters do not fit the labels, before anything changes."""

    def _set_state(self, labels, *, label_counts, sets, set_docs, world_counts):
        """Store what was learned, and derive what prediction reads."""
        self._set_classes(labels, self._form)
        self.n_features_in_ = label_counts.shape[1]
        self._label_counts, self._world_counts = label_counts, world_counts
        self._sets, self._set_docs = sets, set_docs
        self.label_docs_ = sets.T @ set_docs
        self._fallback = sets[int(np.argmax(set_docs))].indices.astype(np.int64)
        self._seen = self.label_docs_ > 0
        self._theta, self._log_theta = smoothed(label_counts, self.smoothing_)
        world = world_counts + self.smoothing_
        self.world_log_proba_ = np.log(world / world.sum())

    def restrict_to(self, allowed):
        """Return a copy that predicts only the labels where ``allowed`` is true."""
        model = copy(self)
        model._seen = self._seen & allowed
        whole = self._sets @ (~model._seen).astype(np.float64) == 0
        if whole.any():
            commonest = int(np.argmax(np.where(whole, self._set_docs, -1.0)))
            model._fallback = self._sets[commonest].indices.astype(np.int64)
        else:
            docs = np.where(model._seen, self.label_docs_, -1.0)
            model._fallback = np.argmax(docs, keepdims=True)
        return model

    @property
    def smoothing_(self):
        """The pseudo-count of every word in every label."""
        return self.smoothing

    @property
    def temperature_(self):
        """The number that log likelihoods are divided by in the posterior."""
        return 1.0

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        return plain.counts_to_arrays(
            self._label_counts, self._sets, self._set_docs, self._world_counts
        )

    def from_arrays(self, arrays, *, labels, n_words, tuned=None):
        """Restore what :meth:`to_arrays` returned; predictions are then identical to the bit.

        Arrays that no model could have produced raise ValueError.
        """
        self._check_parameters()
        state = plain.counts_from_arrays(arrays, len(labels), n_words, self._array_specs)
        self.tuned_ = plain.check_tuned(tuned, self._tuned_ranges)
        self.counts_, self._form, self._declared = None, TargetForm(), ()
        self._set_state(labels, **state)
        return self

    def _check_parameters(self):
        check_pseudo_count(self.smoothing, "smoothing")

    def _check_label(self, label, known=None):
        super()._check_label(label, np.flatnonzero(self._seen) if known is None else known)

    # Predicting

    @property
    def word_proba_(self) -> np.ndarray:
        """Word distribution of each label, (n_labels, n_words)."""
        check_is_fitted(self)
        return self._theta.T

    def predict_indicator(self, X):
        """Return the predicted label sets as a sparse indicator, whatever the form of ``Y``."""
        check_is_fitted(self)
        return self._predicted(self._check_words(X))

    def _predicted(self, X):
        """Return the label sets of documents that were checked."""
        if self._form.kind == "single":
            return with_fallback(X, self._best_label(X), self._fallback[:1])
        return with_fallback(X, self._best_sets(X), self._fallback)

    def _check_sets(self, X, Y):
        return self._predicted(X) if Y is None else check_sets(X, Y, self.classes_)

    def _best_sets(self, X) -> sparse.csr_matrix:
        """Return the label sets of documents as an indicator; by default the one best label."""
        return self._best_label(X)

    def _best_label(self, X, log_theta=None, allowed=None):
        """Return the single best label of each document as an indicator."""
        log_theta = self._log_theta if log_theta is None else log_theta
        return best_labels(X, log_theta, self._seen if allowed is None else allowed)

    def decision_function(self, X):
        """Return one score per document and label; the class documents its meaning.

        Where a score compares label sets with and without a label, it is ``inf`` if no set can do
        without the label, because it is the only one allowed.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        if self._form.kind != "single":
            return self._margins_and_marginals(X)[0]
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X):
        """Return one probability per document and label; the class documents its meaning."""
        check_is_fitted(self)
        X = self._check_words(X)
        if self._form.kind != "single":
            return self._margins_and_marginals(X)[1]
        return softmax(self._scores(X))

    def assess(self, X, labels=None):
        """Return predicted sets (CSR indicator), scores and probabilities in one pass.

        They equal the sets of ``predict``, ``decision_function`` and ``predict_proba`` on several
        labels. If ``labels`` (columns) are given, the scores of other labels may be rough.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        return self._predicted(X), *self._margins_and_marginals(X)

    def _margins_and_marginals(self, X):
        """Return scores and probabilities of labels; by default as if each were alone."""
        scores = self._scores(X)
        return scores, softmax(scores)

    def _scores(self, X, log_theta=None, *, masked=True):
        """Return the log likelihood of each document under each single label."""
        scores = label_scores(X, self._log_theta if log_theta is None else log_theta)
        if masked:
            scores[:, ~self._seen] = -np.inf
        return scores

    def best_with(self, X, label):
        """Return the best label set of each document that contains a label (a column).

        By default the label alone.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        self._check_label(label)
        rows = np.arange(X.shape[0] + 1)
        return indicator(np.full(X.shape[0], label), rows, self.classes_.size)

    # The posterior over label sets

    def log_likelihood(self, X, Y) -> np.ndarray:
        """Return the log likelihood of each document given its label set.

        It is ``-inf`` for a document without a label. Multinomial coefficients, which do not
        depend on the labels, are left out.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        return self._log_likelihood(X, self._check_sets(X, Y))

    @abstractmethod
    def _log_likelihood(self, X, sets, theta=None) -> np.ndarray:
        """Return the log likelihood of each document; ``theta`` replaces the word distributions.

        ``theta`` is (n_words, n_labels).
        """

    def log_prior(self, Y) -> np.ndarray:
        """Return the log prior of each label set; 0, as all are equally likely."""
        check_is_fitted(self)
        return np.zeros(self._check_sets(None, Y).shape[0])

    def log_joint(self, X, Y) -> np.ndarray:
        """Return the logarithm of what the posterior over label sets is proportional to."""
        return self.log_likelihood(X, Y) / self.temperature_ + self.log_prior(Y)

    # Explaining

    def explain_words(self, x, y):
        """Return what the log posterior of a label set is made of, for one document."""
        check_is_fitted(self)
        x = self._check_words(x)
        sets = self._check_sets(x, y)
        words = self._log_words(x, sets)
        return WordScores(
            weights=x.data,
            word_scores=words,
            corpus_scores=self.world_log_proba_[x.indices],
            mixing=float(self._log_likelihood(x, sets)[0] - x.data @ words),
            temperature=float(self.temperature_),
            log_prior=float(self.log_prior(sets)[0]),
        )

    @abstractmethod
    def _log_words(self, x, sets, theta=None) -> np.ndarray:
        """Return the log probability of each stored word of one document under its label set."""

    def word_labels(self, X, Y=None):
        """Return the share of each label of a document's set in each of its words.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts.
        Y : labels, default=None
            Label sets that share the words; by default the predicted ones.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        return self._shares(X, self._check_sets(X, Y))

    def _shares(self, X, sets, weights=None, theta=None):
        """Return the labels of each word; by default labels weigh what they do in prediction."""
        theta = self._theta if theta is None else theta
        weights = self._label_weights(X, sets, theta) if weights is None else weights
        return shared_words(X, sets, weights, theta)

    def _label_weights(self, X, sets, theta=None):
        """Return what the word distributions of each document's labels are multiplied by."""
        return np.ones(sets.nnz)

    # Leave-one-out

    def loo_log_likelihood(self, X, Y):
        """Return the log likelihood of each learned document without its own counts.

        It is exactly that of a model that never saw the document, whose labels are ``Y``.
        """
        return leave_one_out.log_likelihood(self, X, Y)

    def loo_predict(self, X, Y):
        """Return the labels that each learned document would get without its own counts.

        They are exactly those of a model that never saw the document.
        """
        return leave_one_out.predict(self, X, Y)

    @abstractmethod
    def _own_counts(self, X, sets) -> np.ndarray:
        """Return how much of each stored count was learned for each label of its document.

        Documents come one after the other, word by word, label by label.
        """

    def _loo_audit(self, group):
        """Return how well left-out documents fit their own and the best labels; the latter.

        By default a label fits as well as its log likelihood, and a set as well as its best label.
        """
        scores = self._scores(group.X, np.log(group.theta), masked=False)
        scores[:, ~group.allowed] = -np.inf
        own = scores[:, group.labels].max(axis=1)
        return own, scores.max(axis=1), self._loo_sets(group)

    def _loo_sets(self, group):
        """Return the labels of documents that were left out, none for those without words."""
        return self._best_label(group.X, np.log(group.theta), group.allowed)


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
        commonest = min(sets, key=lambda labels: (-sets[labels], labels))
        self._fallback = np.array(commonest, dtype=np.int64)
        self._n_docs, self._fallback_docs = sets.total(), sets[commonest]

    def _set_label_sets(self, labels, sets, set_docs) -> None:
        """Store label sets in sorted order, and how many documents have each."""
        self._set_classes(labels, TargetForm())
        set_docs = np.asarray(set_docs).astype(np.int64)
        commonest = int(np.argmax(set_docs))
        self.label_docs_ = sets.T.astype(np.int64) @ set_docs
        self._columns = np.flatnonzero(self.label_docs_)
        self._fallback = sets[commonest].indices.astype(np.int64)
        self._n_docs, self._fallback_docs = int(set_docs.sum()), int(set_docs[commonest])

    def _label_arrays(self) -> dict[str, np.ndarray]:
        """Return what is known of the labels as plain arrays."""
        return {
            "columns": self._columns,
            "fallback": self._fallback,
            "label_docs": self.label_docs_,
            "docs": np.array([self._n_docs, self._fallback_docs]),
        }

    def _take_labels(self, arrays, labels, tuned) -> None:
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

        A word is shared by what it adds to the score of each label. One that adds to none of them
        is shared equally.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        sets = self._check_sets(X, Y)
        doc, word, label, share = [], [], [], []
        for d in range(X.shape[0]):
            x, y = X[d], sets[d]
            added = np.maximum(x.data[:, None] * self._word_scores(x, y), 0.0)
            added[added.sum(axis=1) == 0] = 1.0
            doc.append(np.full(added.size, d))
            word.append(np.repeat(x.indices, y.nnz))
            label.append(np.tile(y.indices, x.nnz))
            share.append((added / added.sum(axis=1, keepdims=True)).ravel())
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
