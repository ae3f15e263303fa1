"""What the count models share: learning and forgetting on a table, and forms of answers."""

from __future__ import annotations

from copy import copy
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_scalar
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_non_negative,
    validate_data,
)

from polytopic.counts import LabelSetCounts, canonical_counts
from polytopic.errors import PolytopicError
from polytopic.kernels import mixture
from polytopic.kernels.blocks import map_rows
from polytopic.labels import (
    LabelSpace,
    TargetForm,
    canonical,
    indicator,
    read_targets,
    widen,
    with_fallback,
)

LARGEST = 1e100  # of counts and pseudo-counts: sums and products stay finite


class WordLabels(NamedTuple):
    """Who said each word: parallel arrays, one entry for each word and label of a document.

    ``label`` is a column of ``classes_``. The shares of a document's word sum to one.
    """

    doc: np.ndarray
    word: np.ndarray
    label: np.ndarray
    share: np.ndarray


class LabelSetClassifier(ClassifierMixin):
    """A classifier whose ``score`` understands collections of label names too."""

    def score(self, X, y, sample_weight=None):
        """Return the share of documents whose labels are all right."""
        if read_targets(y).form.kind != "names":
            return super().score(X, y, sample_weight)
        predicted = LabelSpace(self.classes_.tolist()).decode(self.predict(X))
        right = [set(true) == set(found) for true, found in zip(y, predicted, strict=True)]
        return float(np.average(right, weights=sample_weight))


class CountModel(LabelSetClassifier, BaseEstimator):
    """A model that sees a corpus through its :class:`~polytopic.LabelSetCounts` alone.

    A subclass says how the table becomes word counts of each label (``_estimate``), which label
    sets documents get (``_choose``), and what ``decision_function`` and ``predict_proba`` mean
    (``_margins_and_marginals``).
    """

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
        X, targets, sample_weight = self._check_documents(X, y, sample_weight, reset=True)
        declared = targets.labels if targets.form.is_indicator else ()
        counts = LabelSetCounts.from_matrix(X, targets, sample_weight=sample_weight)
        return self._fit_table(counts, targets.form, declared)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn more documents, exactly as if all had been given to ``fit`` at once.

        New labels may come by name; ``classes`` declares labels that may have no document yet.
        """
        first = not hasattr(self, "classes_")
        if first and classes is None:
            return self.fit(X, y, sample_weight)
        X, targets, sample_weight = self._check_documents(X, y, sample_weight, reset=first)
        form, declared = (targets.form, ()) if first else (self._form, self._declared)
        if classes is not None:
            declared = _declare(declared, classes, targets)
        _check_form(targets, form, declared)
        known = LabelSetCounts() if first else require_counts(self.counts_)
        new = LabelSetCounts.from_matrix(X, targets, sample_weight=sample_weight)
        return self._fit_table(known + new, form, declared)

    def forget(self, X, y, sample_weight=None):
        """Unlearn documents: what remains is bitwise what is learned without them."""
        check_is_fitted(self)
        X, targets, sample_weight = self._check_documents(X, y, sample_weight, reset=False)
        _check_form(targets, self._form, self._declared)
        gone = LabelSetCounts.from_matrix(X, targets, sample_weight=sample_weight)
        left = require_counts(self.counts_) - gone
        if not left.set_docs.size:
            raise ValueError("no document would be left to learn from; nothing was forgotten.")
        return self._fit_table(left, self._form, self._declared)

    def fit_counts(self, counts: LabelSetCounts):
        """Learn from a table of counts by label set, whose columns are the words."""
        return self._fit_table(counts, TargetForm(), ())

    def _fit_table(self, counts, form, declared):
        """Learn from a table; ``classes_`` are its labels and those declared."""
        self._check_parameters()
        if not counts.set_docs.size:
            raise ValueError("Y has no labelled document; at least one is needed.")
        space = LabelSpace([*declared, *counts.labels])
        sets = widen(counts.indicator, counts.labels, space)
        label_counts = self._estimate(counts.matrix, sets)
        self.counts_, self._form, self._declared = counts, form, declared
        self._set_state(
            space.ids,
            label_counts=label_counts,
            label_docs=sets.T @ counts.set_docs,
            world_counts=counts.matrix.sum(axis=0).A1,
            fallback=sets[counts.most_frequent].indices,
        )
        return self

    def _set_state(self, labels, *, label_counts, label_docs, world_counts, fallback):
        """Take over what was learned, and derive what prediction reads."""
        names = any(isinstance(label, str) for label in labels)
        self.classes_ = np.array(labels, dtype=object if names else None)
        self.n_features_in_ = label_counts.shape[1]
        self._label_counts, self.label_docs_ = label_counts, label_docs
        self._world_counts, self._fallback = world_counts, fallback.astype(np.int64)
        self._seen = label_docs > 0
        total = label_counts.sum(axis=1).A1 + self.smoothing * label_counts.shape[1]
        by_word = label_counts.tocsc()
        proba = (by_word.data + self.smoothing) / total[by_word.indices]
        self._theta = _filled(self.smoothing / total, proba, by_word)
        self._log_theta = _filled(np.log(self.smoothing / total), np.log(proba), by_word)
        world = world_counts + self.smoothing
        self.world_log_proba_ = np.log(world / world.sum())

    def restricted(self, allowed):
        """Return this model with some of its labels only: those where ``allowed`` is true."""
        model = copy(self)
        model._seen = self._seen & allowed
        model._fallback = self._fallback[model._seen[self._fallback]]
        if not model._fallback.size:
            model._fallback = np.argmax(
                np.where(model._seen, self.label_docs_, -1.0), keepdims=True
            )
        return model

    # Arrays for files and stores

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        return {
            "data": self._label_counts.data,
            "indices": self._label_counts.indices.astype(np.int64),
            "indptr": self._label_counts.indptr.astype(np.int64),
            "label_docs": self.label_docs_,
            "world_counts": self._world_counts,
            "fallback": self._fallback,
        }

    def from_arrays(self, arrays, *, labels, n_words):
        """Take over what :meth:`to_arrays` gave; prediction is then the same to the bit."""
        label_counts = sparse.csr_matrix(
            (arrays["data"], arrays["indices"], arrays["indptr"]), shape=(len(labels), n_words)
        )
        label_counts.check_format(full_check=True)
        if (
            arrays["label_docs"].shape != (len(labels),)
            or arrays["world_counts"].shape != (n_words,)
            or not np.isin(arrays["fallback"], np.arange(len(labels))).all()
            or not arrays["fallback"].size
        ):
            raise ValueError("arrays of the model have other sizes than its labels and words")
        counted = label_counts.data, arrays["label_docs"], arrays["world_counts"]
        if not all((array >= 0).all() and (array <= LARGEST).all() for array in counted):
            raise ValueError("arrays of the model hold negative or infinite counts")
        self._check_parameters()
        self.counts_, self._form, self._declared = None, TargetForm(), ()
        self._set_state(
            labels,
            label_counts=label_counts,
            label_docs=arrays["label_docs"],
            world_counts=arrays["world_counts"],
            fallback=arrays["fallback"],
        )
        return self

    # Checks

    def _check_parameters(self):
        check_scalar(self.smoothing, "smoothing", Real, min_val=0, include_boundaries="neither")
        if not float(self.smoothing) < LARGEST:
            raise ValueError(f"smoothing == {self.smoothing}, must be < {LARGEST}.")

    def _check_documents(self, X, Y, sample_weight, *, reset):
        targets = read_targets(Y)
        X = self._check_words(X, reset=reset)
        _check_as_many(X, targets.Y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        return X, targets, sample_weight

    def _check_words(self, X, *, reset=False):
        """Return word counts as a canonical CSR matrix."""
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=reset)
        check_non_negative(X, f"{type(self).__name__} (X holds word counts)")
        X = canonical_counts(X)
        if X.data.size and X.data.max() > LARGEST:
            raise ValueError(f"X holds {X.data.max()}, word counts must be <= {LARGEST}.")
        return X

    def _check_sets(self, X, Y):
        """Return given label sets over ``classes_``, or the predicted ones."""
        if Y is None:
            return self._predicted(X)
        targets = read_targets(Y)
        if targets.form.is_indicator and len(targets.labels) != self.classes_.size:
            raise ValueError(
                f"Y has {len(targets.labels)} columns and the model {self.classes_.size} labels."
            )
        _check_as_many(X, targets.Y)
        return targets.Y if targets.form.is_indicator else targets.over(self.classes_.tolist())

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
        """Return one score for each document and label; the class says what it means."""
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

    def assess(self, X):
        """Return predicted sets (CSR indicator), margins and probabilities in one pass.

        The same as the sets of ``predict``, ``decision_function`` and ``predict_proba`` on
        several labels.
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

    def _predicted(self, X):
        """Return the predicted label sets as an indicator."""
        if self._form.kind == "single":
            return with_fallback(X, self._best_label(X), self._fallback[:1])
        return with_fallback(X, self._choose(X), self._fallback)

    def _best_label(self, X):
        """Return the single best label of each document as an indicator."""
        blocks = map_rows(
            lambda *block: np.argmax(self._block_scores(*block), axis=1), X, self.classes_.size
        )
        return indicator(np.concatenate(blocks), np.arange(X.shape[0] + 1), self.classes_.size)

    def _scores(self, X):
        """Return the log likelihood of each document under each single label."""
        return np.vstack(map_rows(self._block_scores, X, self.classes_.size))

    def _block_scores(self, data, indices, indptr, rows):
        scores = np.zeros((indptr.size - 1, self.classes_.size))
        mixture.add_scores(data, indices, indptr, self._log_theta, scores)
        scores[:, ~self._seen] = -np.inf
        return scores

    def _shares(self, X, sets):
        n_words, n_labels = np.diff(X.indptr), np.diff(sets.indptr)
        offsets = np.concatenate([[0], np.cumsum(n_words * n_labels)])
        share = np.empty(offsets[-1])
        map_rows(
            lambda data, indices, indptr, rows: mixture.word_shares(
                indices,
                indptr,
                sets.indices,
                sets.indptr[rows.start : rows.stop + 1],
                self._theta,
                share[offsets[rows.start] : offsets[rows.stop]],
            ),
            X,
        )
        doc = np.repeat(np.arange(X.shape[0]), n_words * n_labels)
        place = np.arange(share.size) - offsets[doc]
        word = X.indices[X.indptr[doc] + place // n_labels[doc]]
        label = sets.indices[sets.indptr[doc] + place % n_labels[doc]]
        return WordLabels(doc, word, label, share)


def require_counts(counts):
    """Return the counts, or say why there are none to learn on."""
    if counts is None:
        raise PolytopicError(
            "this model was saved without its counts, so it cannot learn or forget; "
            "save it with counts=True."
        )
    return counts


def softmax(scores):
    """Return ``exp(scores)``, each row normalised."""
    proba = np.exp(scores - scores.max(axis=1, keepdims=True))
    return proba / proba.sum(axis=1, keepdims=True)


def _declare(known, classes, targets):
    """Return the labels declared so far and now."""
    classes = canonical(np.asarray(classes).tolist())
    unknown = sorted(set(targets.labels) - set(classes) - set(known))
    if unknown:
        raise ValueError(f"Y holds {unknown!r}, which is not in classes == {classes!r}.")
    return tuple(canonical([*known, *classes]))


def _check_form(targets, form, declared):
    """Refuse targets of another form, or with other columns, than before."""
    if not form.fits(targets.form):
        raise ValueError(
            f"Y came as {targets.form.kind} and before as {form.kind}; keep to one form."
        )
    if targets.form.is_indicator and len(targets.labels) != len(declared):
        raise ValueError(
            f"Y has {len(targets.labels)} columns and the model {len(declared)} labels; "
            "declare new ones in classes, or give labels by name."
        )


def _check_as_many(X, Y):
    if X.shape[0] != Y.shape[0]:
        raise ValueError(
            f"X has {X.shape[0]} documents and Y has {Y.shape[0]}; they must be as many."
        )


def _filled(background, values, by_word):
    """Return a word-major array: these values at the entries of ``by_word`` (CSC)."""
    dense = np.empty((by_word.shape[1], by_word.shape[0]))
    dense[:] = background
    word = np.repeat(np.arange(by_word.shape[1]), np.diff(by_word.indptr))
    dense[word, by_word.indices] = values
    return dense
