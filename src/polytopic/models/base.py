"""What the count models share: learning and forgetting on a table, and forms of answers."""

from __future__ import annotations

from copy import copy
from numbers import Integral

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.counts import LabelSetCounts
from polytopic.labels import LabelSpace, TargetForm, read_targets, widen, with_fallback
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
from polytopic.models.classifier import LabelSetClassifier
from polytopic.models.words import Account, WordLabels, best_labels, label_scores, smoothed, softmax
from polytopic.models.words import word_labels as shared_words


class CountModel(LabelSetClassifier, BaseEstimator):
    """A model that sees a corpus through its :class:`~polytopic.LabelSetCounts` alone.

    A subclass says how the table becomes word counts of each label (``_estimate``), which label
    sets documents get (``_choose``), and what ``decision_function`` and ``predict_proba`` mean
    (``_margins_and_marginals``).
    """

    _array_specs = plain.COUNTS
    _chosen_ranges: plain.Ranges = plain.NOTHING_CHOSEN

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.poor_score = True  # on scikit-learn's blobs, which are no counts
        return tags

    # Learning

    def fit(self, X, y, sample_weight=None):
        """Learn from documents.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts, not negative.
        y : indicator of shape (n_docs, n_labels), or one collection of names a document
            Labels; 1-D means one label a document. Documents without a label are ignored.
        sample_weight : array of shape (n_docs,), default=None
            How many times each document counts.
        """
        X, targets, sample_weight = check_documents(self, X, y, sample_weight, reset=True)
        declared = targets.labels if targets.form.is_indicator else ()
        counts = LabelSetCounts.from_matrix(X, targets, sample_weight=sample_weight)
        documents = whole_documents(X, targets, sample_weight)
        return self._fit_table(counts, targets.form, declared, documents=documents)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn more documents, exactly as if all had been given to ``fit`` at once.

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
        chosen = None if first else self.chosen_
        return self._fit_table(known + new, form, declared, documents=documents, chosen=chosen)

    def forget(self, X, y, sample_weight=None):
        """Unlearn documents: what remains is bitwise what is learned without them."""
        check_is_fitted(self)
        X, targets, sample_weight = check_documents(self, X, y, sample_weight, reset=False)
        check_form(targets, self._form, self._declared)
        gone = LabelSetCounts.from_matrix(X, targets, sample_weight=sample_weight)
        left = require_counts(self.counts_) - gone
        if not left.set_docs.size:
            raise ValueError("no document would be left to learn from; nothing was forgotten.")
        return self._fit_table(left, self._form, self._declared, chosen=self.chosen_)

    def fit_counts(self, counts: LabelSetCounts, *, documents=None, chosen=None):
        """Learn from a table of counts by label set, whose columns are the words.

        Parameters
        ----------
        counts : LabelSetCounts
            The table.
        documents : pair of a matrix and collections of label names, default=None
            Some of the table's documents, to choose by what is not fixed.
        chosen : dict, default=None
            What an earlier fit chose (``chosen_``), to be kept.
        """
        if documents is not None:
            documents = documents[0], read_targets(documents[1])
        return self._fit_table(counts, TargetForm(), (), documents=documents, chosen=chosen)

    def _fit_table(self, counts, form, declared, *, documents=None, chosen=None):
        """Learn from a table; ``classes_`` are its labels and those declared."""
        self._check_parameters()
        if not counts.set_docs.size:
            raise ValueError("Y has no labelled document; at least one is needed.")
        space = LabelSpace([*declared, *counts.labels])
        self._check_labels(space.ids)
        self.chosen_ = dict(chosen or {})
        sets = widen(counts.indicator, counts.labels, space)
        self.counts_, self._form, self._declared = counts, form, declared
        self._learn(space.ids, sets)
        if documents is not None and form.kind != "single":
            X, targets = documents
            self._tune(X, targets.over(list(space.ids)))
        return self

    def _learn(self, labels, sets):
        """Learn from ``counts_``, whose label sets are these."""
        self._set_state(
            labels,
            label_counts=self._estimate(self.counts_.matrix, sets),
            sets=sets,
            set_docs=self.counts_.set_docs,
            world_counts=self.counts_.matrix.sum(axis=0).A1,
        )

    def _tune(self, X, Y):
        """Choose by documents what is not fixed, into ``chosen_``: nothing here."""

    def _check_labels(self, labels):
        """Refuse labels that the parameters do not fit, before anything is changed."""

    def _set_state(self, labels, *, label_counts, sets, set_docs, world_counts):
        """Take over what was learned, and derive what prediction reads."""
        names = any(isinstance(label, str) for label in labels)
        self.classes_ = np.array(labels, dtype=object if names else None)
        self.n_features_in_ = label_counts.shape[1]
        self._label_counts, self._world_counts = label_counts, world_counts
        self._sets, self._set_docs = sets, set_docs
        self.label_docs_ = sets.T @ set_docs
        self._fallback = sets[int(np.argmax(set_docs))].indices.astype(np.int64)
        self._seen = self.label_docs_ > 0
        self._theta, self._log_theta = smoothed(label_counts, self.smoothing_)
        world = world_counts + self.smoothing_
        self.world_log_proba_ = np.log(world / world.sum())

    def restricted(self, allowed):
        """Return this model with some of its labels only: those where ``allowed`` is true."""
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
    def needs_documents(self):
        """Whether something is to be chosen by documents."""
        return False

    @property
    def smoothing_(self):
        """The pseudo-count of every pair of a label and a word that is used."""
        return self.smoothing

    @property
    def temperature_(self):
        """What log likelihoods are divided by in the posterior."""
        return 1.0

    def log_prior(self, Y):
        """Return the log prior of each label set; here all are equally likely."""
        check_is_fitted(self)
        return np.zeros(self._check_sets(None, Y).shape[0])

    def log_joint(self, X, Y):
        """Return what the posterior over label sets is proportional to, as a logarithm."""
        return self.log_likelihood(X, Y) / self.temperature_ + self.log_prior(Y)

    # Arrays for files and stores

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        return plain.pack(self._label_counts, self._sets, self._set_docs, self._world_counts)

    def from_arrays(self, arrays, *, labels, n_words, chosen=None):
        """Take over what :meth:`to_arrays` gave; prediction is then the same to the bit.

        Arrays that no model could have given raise ValueError.
        """
        self._check_parameters()
        state = plain.unpack(arrays, len(labels), n_words, self._array_specs)
        self.chosen_ = plain.check_chosen(chosen, self._chosen_ranges)
        self.counts_, self._form, self._declared = None, TargetForm(), ()
        self._set_state(labels, **state)
        return self

    # Checks

    def _check_parameters(self):
        check_pseudo_count(self.smoothing, "smoothing")

    def _check_words(self, X):
        return check_words(self, X)

    def _check_sets(self, X, Y):
        """Return given label sets over ``classes_``, or the predicted ones."""
        return self._predicted(X) if Y is None else check_sets(X, Y, self.classes_)

    # Answers

    @property
    def fallback(self):
        """Columns of the most frequent label set, which documents without words get."""
        return self._fallback

    @property
    def word_proba_(self):
        """Word distribution of each label, (n_labels, n_words)."""
        check_is_fitted(self)
        return self._theta.T

    def predict(self, X):
        """Return each document's labels, in the form of the ``Y`` that was learned.

        A document without a known word gets the most frequent label set.
        """
        Y = self.choose(X)
        return self.classes_[Y.indices] if self._form.kind == "single" else self._form.give_back(Y)

    def choose(self, X) -> sparse.csr_matrix:
        """Return the predicted label sets as a sparse indicator, whatever the form of ``Y``."""
        check_is_fitted(self)
        return self._predicted(self._check_words(X))

    def decision_function(self, X):
        """Return one score for each document and label; the class says what it means.

        Where a score compares label sets with a label and without it, it is ``inf`` for a label
        that no set can do without: the only one that is allowed.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        if self._form.kind != "single":
            return self._margins_and_marginals(X)[0]
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X):
        """Return one probability for each document and label; the class says what it means."""
        check_is_fitted(self)
        X = self._check_words(X)
        if self._form.kind != "single":
            return self._margins_and_marginals(X)[1]
        return softmax(self._scores(X))

    def assess(self, X, labels=None):
        """Return predicted sets (CSR indicator), margins and probabilities in one pass.

        The same as the sets of ``predict``, ``decision_function`` and ``predict_proba`` on
        several labels. Where some labels (columns) are asked for, the rest may be rough.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        return self._predicted(X), *self._margins_and_marginals(X)

    def word_labels(self, X, Y=None) -> WordLabels:
        """Tell who said each word: the share of each label of the document's set in it.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts.
        Y : labels, default=None
            Label sets that share the words; the predicted ones by default.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        return self._shares(X, self._check_sets(X, Y))

    def best_with(self, X, label) -> sparse.csr_matrix:
        """Return each document's best label set that holds a label (a column), as an indicator."""
        raise NotImplementedError

    def _check_label(self, label):
        """Refuse what is no column of a label with documents."""
        check_scalar(label, "label", Integral, min_val=0, max_val=self.classes_.size - 1)
        if not self._seen[label]:
            name = self.classes_[label]
            raise ValueError(f"label {str(name)!r} has no documents, or is not allowed.")

    # Leaving documents out

    def loo_log_likelihood(self, X, Y):
        """Return the log likelihood of each learned document without its own counts.

        Exactly that of a model that never saw the document, whose labels are ``Y``.
        """
        return leave_one_out.log_likelihood(self, X, Y)

    def loo_predict(self, X, Y):
        """Return the labels that each learned document would get without its own counts.

        Exactly those of a model that never saw the document.
        """
        return leave_one_out.predict(self, X, Y)

    def _predicted(self, X):
        """Return the predicted label sets as an indicator."""
        if self._form.kind == "single":
            return with_fallback(X, self._best_label(X), self._fallback[:1])
        return with_fallback(X, self._choose(X), self._fallback)

    def _best_label(self, X, log_theta=None, allowed=None):
        """Return the single best label of each document as an indicator."""
        log_theta = self._log_theta if log_theta is None else log_theta
        return best_labels(X, log_theta, self._seen if allowed is None else allowed)

    def _judge_left_out(self, part):
        """Return how well the own and the best labels of left-out documents suit them; the latter.

        Here a label is as good as its log likelihood, and a set as its best label.
        """
        scores = self._scores(part.X, np.log(part.theta), masked=False)
        scores[:, ~part.allowed] = -np.inf
        own = scores[:, part.labels].max(axis=1)
        return own, scores.max(axis=1), self._choose_left_out(part)

    def _choose_left_out(self, part):
        """Return the labels of documents that were left out, none for those without words."""
        return self._best_label(part.X, np.log(part.theta), part.allowed)

    def _scores(self, X, log_theta=None, *, masked=True):
        """Return the log likelihood of each document under each single label."""
        scores = label_scores(X, self._log_theta if log_theta is None else log_theta)
        if masked:
            scores[:, ~self._seen] = -np.inf
        return scores

    def account(self, x, y) -> Account:
        """Return what the log likelihood of one document is made of."""
        check_is_fitted(self)
        x = self._check_words(x)
        sets = self._check_sets(x, y)
        words = self._log_words(x, sets)
        return Account(words, float(self._score(x, sets)[0] - x.data @ words))

    def _log_words(self, x, sets, theta=None):
        """Return the log probability of each stored word of one document under its label set."""
        raise NotImplementedError

    def _label_weights(self, X, sets, theta=None):
        """Return what multiplies the words of each label of each document's set."""
        return np.ones(sets.nnz)

    def _own_counts(self, X, sets):
        """Return how much of each stored count was learned for each label of its document.

        One document after the other, word by word.
        """
        raise NotImplementedError

    def _shares(self, X, sets, weights=None, theta=None):
        """Return who said each word; labels have the weights of an answer by default."""
        theta = self._theta if theta is None else theta
        weights = self._label_weights(X, sets, theta) if weights is None else weights
        return shared_words(X, sets, weights, theta)
