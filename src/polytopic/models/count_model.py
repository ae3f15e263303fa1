"""CountModel: what models that learn from a table of counts per label set have in common.

Word distributions are word-major here, (n_words, n_labels), as the kernels read them.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy

import numpy as np
from scipy import sparse
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from polytopic.array_specs import DOUBLE, WHOLE, ArraySpec, check_arrays, check_memory, check_rows
from polytopic.counts import LARGEST, LabelSetCounts, group_rows
from polytopic.kernels import words as kernels
from polytopic.kernels.blocks import map_rows
from polytopic.labels import LabelSpace, TargetForm, indicator, read_targets, widen, with_fallback
from polytopic.models import leave_one_out
from polytopic.models.base import Model
from polytopic.models.checks import (
    SMALLEST_DIVISOR,
    Ranges,
    check_documents,
    check_fits,
    check_form,
    check_pseudo_count,
    check_sets,
    check_tuned,
    declare_labels,
    require_counts,
    select_whole_documents,
)
from polytopic.models.results import WordLabels, WordScores

CELL_BYTES = 24  # of word distributions, their logarithms and what is between, per word and label

# The arrays of a model in files: word counts per label, label sets and their documents, and word
# counts of the corpus
COUNTS = {
    "data": ArraySpec(DOUBLE, ("n_counts",), 0, LARGEST),
    "indices": ArraySpec(WHOLE, ("n_counts",), 0, below="n_words"),
    "indptr": ArraySpec(WHOLE, ("n_labels+1",), 0),
    "set_indices": ArraySpec(WHOLE, ("n_members",), 0, below="n_labels"),
    "set_indptr": ArraySpec(WHOLE, ("n_sets+1",), 0),
    "set_docs": ArraySpec(DOUBLE, ("n_sets",), SMALLEST_DIVISOR, LARGEST),
    "world_counts": ArraySpec(DOUBLE, ("n_words",), 0, LARGEST),
}


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
    audit_method = "leave-one-out"
    can_distribute = True

    _array_specs = COUNTS
    _tuned_ranges: Ranges = {}  # noqa: RUF012

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
        documents = select_whole_documents(X, targets, sample_weight)
        return self._fit_table(counts, targets.form, declared, documents=documents)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn more documents, exactly as if ``fit`` had seen all of them at once.

        New labels may come by name; ``classes`` declares labels that may have no document yet.
        """
        first = not self.is_fitted
        if first and classes is None:
            return self.fit(X, y, sample_weight)
        X, targets, sample_weight = check_documents(self, X, y, sample_weight, reset=first)
        form, declared = (targets.form, ()) if first else (self._form, self._declared)
        if classes is not None:
            declared = declare_labels(declared, classes, targets)
        check_form(targets, form, declared)
        learned = LabelSetCounts() if first else require_counts(self.counts_)
        new = LabelSetCounts.from_matrix(X, targets, sample_weight=sample_weight)
        documents = select_whole_documents(X, targets, sample_weight) if first else None
        tuned = None if first else self.tuned_
        return self._fit_table(learned + new, form, declared, documents=documents, tuned=tuned)

    def forget(self, X, y, sample_weight=None):
        """Unlearn documents: the result is bit for bit that of a fit without them."""
        check_is_fitted(self)
        X, targets, sample_weight = check_documents(self, X, y, sample_weight, reset=False)
        check_form(targets, self._form, self._declared)
        removed = LabelSetCounts.from_matrix(X, targets, sample_weight=sample_weight)
        remaining = require_counts(self.counts_) - removed
        if not remaining.set_docs.size:
            raise ValueError("no document would be left to learn from; nothing was forgotten.")
        return self._fit_table(remaining, self._form, self._declared, tuned=self.tuned_)

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
        """Learn from a table; ``classes_`` are its labels and the declared ones."""
        self._check_parameters()
        if not counts.set_docs.size:
            raise ValueError("Y has no labelled document; at least one is needed.")
        space = LabelSpace([*declared, *counts.labels])
        self._check_labels(space.ids)
        check_fits(self, counts.matrix.shape[1], len(space), CELL_BYTES)
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
        self._theta, self._log_theta = smooth_counts(label_counts, self.smoothing_)
        world = world_counts + self.smoothing_
        self.world_log_proba_ = np.log(world / world.sum())

    def restrict_to(self, allowed):
        """Return a copy that predicts only the labels where ``allowed`` is true."""
        model = copy(self)
        model._seen = self._seen & allowed
        whole = self._sets @ (~model._seen).astype(np.float64) == 0
        if whole.any():
            most_frequent = int(np.argmax(np.where(whole, self._set_docs, -1.0)))
            model._fallback = self._sets[most_frequent].indices.astype(np.int64)
        else:
            docs = np.where(model._seen, self.label_docs_, -1.0)
            model._fallback = np.argmax(docs, keepdims=True)
        return model

    @property
    def smoothing_(self):
        """The pseudo-count of every word in every label."""
        return float(self.smoothing)

    @property
    def temperature_(self):
        """The number that log likelihoods are divided by in the posterior."""
        return 1.0

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        return counts_to_arrays(self._label_counts, self._sets, self._set_docs, self._world_counts)

    def from_arrays(self, arrays, *, labels, n_words, tuned=None):
        """Restore what :meth:`to_arrays` returned; predictions are then identical bit for bit.

        Arrays that no model could have produced raise ValueError.
        """
        self._check_parameters()
        state = counts_from_arrays(arrays, len(labels), n_words, self._array_specs)
        self.tuned_ = check_tuned(tuned, self._tuned_ranges)
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
        return self._choose_sets(self._check_words(X))

    def _choose_sets(self, X):
        """Return the predicted label sets of documents that have been checked."""
        if self._form.kind == "single":
            return with_fallback(X, self._best_label(X), self._fallback[:1])
        return with_fallback(X, self._best_sets(X), self._fallback)

    def _check_sets(self, X, Y):
        return self._choose_sets(X) if Y is None else check_sets(X, Y, self.classes_)

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
        return softmax(self._scores(X), axis=1)

    def assess(self, X, labels=None):
        """Return predicted sets (CSR indicator), scores and probabilities in one pass.

        They equal the sets of ``predict``, ``decision_function`` and ``predict_proba`` on several
        labels. If ``labels`` (columns) are given, the scores of other labels may be rough.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        return self._choose_sets(X), *self._margins_and_marginals(X)

    def _margins_and_marginals(self, X):
        """Return scores and probabilities of labels; by default as if each were alone."""
        scores = self._scores(X)
        return scores, softmax(scores, axis=1)

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
        """Return the labels of each word; by default with the label weights of prediction."""
        theta = self._theta if theta is None else theta
        weights = self._label_weights(X, sets, theta) if weights is None else weights
        return WordLabels.from_distributions(X, sets, weights, theta)

    def _label_weights(self, X, sets, theta=None):
        """Return the weight of the word distribution of each label of each document."""
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

        Documents come one after another, word by word, label by label.
        """

    def _loo_audit(self, group):
        """Return how well left-out documents fit their own and the best labels, and the best ones.

        By default a label fits as well as its log likelihood, and a set as well as its best label.
        """
        scores = self._scores(group.X, np.log(group.theta), masked=False)
        scores[:, ~group.allowed] = -np.inf
        own = scores[:, group.labels].max(axis=1)
        return own, scores.max(axis=1), self._loo_sets(group)

    def _loo_sets(self, group):
        """Return the labels of left-out documents; none for those without words."""
        return self._best_label(group.X, np.log(group.theta), group.allowed)


# Arrays in files


def counts_to_arrays(label_counts, sets, set_docs, world_counts):
    """Return word counts of labels and of the corpus, and label sets with their documents."""
    return {
        "data": label_counts.data,
        "indices": label_counts.indices.astype(np.int64),
        "indptr": label_counts.indptr.astype(np.int64),
        "set_indices": sets.indices.astype(np.int64),
        "set_indptr": sets.indptr.astype(np.int64),
        "set_docs": set_docs,
        "world_counts": world_counts,
    }


def counts_from_arrays(arrays, n_labels, n_words, specs=COUNTS):
    """Return the arguments of :func:`counts_to_arrays`, by name, after validation."""
    sizes = check_arrays(arrays, specs, n_labels=n_labels, n_words=n_words)
    check_rows("data", arrays["indices"], arrays["indptr"])
    check_rows("set_indices", arrays["set_indices"], arrays["set_indptr"], empty=False)
    check_memory(2 * 8 * n_labels * n_words, arrays)  # both dense tables of word probabilities
    sets = indicator(arrays["set_indices"], arrays["set_indptr"], n_labels)
    if not sizes["n_sets"] or (group_rows(sets) != np.arange(sizes["n_sets"])).any():
        raise ValueError("label sets must be sorted and distinct, and there must be at least one")
    label_counts = sparse.csr_matrix(
        (arrays["data"], arrays["indices"], arrays["indptr"]), shape=(n_labels, n_words)
    )
    return {
        "label_counts": label_counts,
        "sets": sets,
        "set_docs": arrays["set_docs"],
        "world_counts": arrays["world_counts"],
    }


# Word distributions


def label_scores(X, log_theta):
    """Return the log likelihood of each document under each single label."""
    return np.vstack(
        map_rows(
            lambda data, indices, indptr, rows: _block_scores(data, indices, indptr, log_theta),
            X,
            log_theta.shape[1],
        )
    )


def best_labels(X, log_theta, allowed):
    """Return the single best of the allowed labels of each document as an indicator."""

    def block(data, indices, indptr, rows):
        scores = _block_scores(data, indices, indptr, log_theta)
        scores[:, ~allowed] = -np.inf
        return np.argmax(scores, axis=1)

    blocks = map_rows(block, X, allowed.size)
    return indicator(np.concatenate(blocks), np.arange(X.shape[0] + 1), allowed.size)


def _block_scores(data, indices, indptr, log_theta):
    scores = np.zeros((indptr.size - 1, log_theta.shape[1]))
    kernels.add_scores(data, indices, indptr, log_theta, scores)
    return scores


def smooth_counts(label_counts, smoothing):
    """Return the word distributions of counts (n_labels, n_words), and their logarithms."""
    total = label_counts.sum(axis=1).A1 + smoothing * label_counts.shape[1]
    by_word = label_counts.tocsc()
    proba = (by_word.data + smoothing) / total[by_word.indices]
    theta = _fill(smoothing / total, proba, by_word)
    return theta, _fill(np.log(smoothing / total), np.log(proba), by_word)


def _fill(background, values, by_word):
    """Return a word-major array: these values at the entries of ``by_word`` (CSC)."""
    dense = np.empty((by_word.shape[1], by_word.shape[0]))
    dense[:] = background
    word = np.repeat(np.arange(by_word.shape[1]), np.diff(by_word.indptr))
    dense[word, by_word.indices] = values
    return dense
