"""What the correlated labeling model answers once it is learned."""

from __future__ import annotations

from copy import copy
from numbers import Integral

import numpy as np
from scipy import sparse
from scipy.special import log_softmax, logsumexp
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.kernels import classes as kernels
from polytopic.kernels.blocks import map_rows
from polytopic.labels import indicator, with_fallback
from polytopic.models.arrays import CHOSEN_BY_TOPICS, check_chosen, check_topics
from polytopic.models.checks import check_sets, check_words
from polytopic.models.documents import DocumentModel
from polytopic.models.label_prior import LabelPrior
from polytopic.models.label_sets import LabelSets, stack_sets
from polytopic.models.topics import Topics

WEIGHT_STEPS = 6  # of EM for the classes' weights; more of them take the words too literally
N_CANDIDATES = 10  # labels that sets are made of


class ColAnswers(DocumentModel):
    """Answers by the word distributions of labels and the prior of label sets.

    What is inside has only the labels that have documents, in the order of ``_columns``.
    """

    # What was learned

    def _set_state(self, topics: Topics, prior: LabelPrior, words, label_topics):
        """Take over what was learned, and derive what prediction reads."""
        self._topics, self._prior, self._words = topics, prior, words
        self._label_topics = label_topics
        self.n_features_in_ = words.size
        self._theta = topics.label_words()
        docs = self.label_docs_[self._columns]
        self._start = docs / docs.sum()  # of the classes' weights
        world = words + self.smoothing
        self.world_log_proba_ = np.log(world / world.sum())

    def _spread(self, values, rest):
        """Return values of labels inside, in the first dimension, for all labels."""
        out = np.full((self.classes_.size, *values.shape[1:]), rest, dtype=values.dtype)
        out[self._columns] = values
        return out

    @property
    def label_mean_(self):
        """Mean of the labels' logarithmic shares."""
        check_is_fitted(self)
        return self._spread(self._prior.mean, -np.inf)

    @property
    def label_covariance_(self):
        """Covariance of the labels' logarithmic shares."""
        check_is_fitted(self)
        return self._spread(self._spread(self._prior.covariance, 0.0).T, 0.0)

    @property
    def topic_prior_(self):
        """Dirichlet parameters of each label's topics."""
        check_is_fitted(self)
        return self._spread(self._topics.alpha, 0.0)

    @property
    def label_topics_(self):
        """Mean posterior topic shares of each label's documents."""
        check_is_fitted(self)
        return self._spread(self._label_topics, 0.0)

    @property
    def topic_word_proba_(self):
        """Word distribution of each topic."""
        check_is_fitted(self)
        return self._topics.beta.T

    @property
    def word_proba_(self):
        """Word distribution of each label, (n_labels, n_words); the corpus' without documents."""
        check_is_fitted(self)
        out = np.tile(np.exp(self.world_log_proba_), (self.classes_.size, 1))
        out[self._columns] = self._theta.T
        return out

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        return {
            "alpha": self._topics.alpha,
            "beta": self._topics.beta,
            "mean": self._prior.mean,
            "covariance": self._prior.covariance,
            "size_proba": self._prior.size_proba,
            "words": self._words,
            "label_topics": self._label_topics,
            "elbo": self.elbo_,
            "label_objective": self.label_objective_,
            **self._label_arrays(),
        }

    def from_arrays(self, arrays, *, labels, n_words, chosen=None):
        """Take over what :meth:`to_arrays` gave; prediction is then the same to the bit.

        Arrays that no model could have given raise ValueError.
        """
        self._check_parameters()
        check_topics(arrays, len(labels), n_words)
        chosen = check_chosen(chosen, CHOSEN_BY_TOPICS)
        if "threshold" not in chosen:
            raise ValueError("no threshold was chosen")
        self._take_labels(arrays, labels, chosen)
        prior = LabelPrior(*(arrays[name] for name in ("mean", "covariance", "size_proba")))
        topics = Topics(arrays["alpha"], arrays["beta"])
        self._set_state(topics, prior, arrays["words"], arrays["label_topics"])
        self.elbo_, self.label_objective_ = arrays["elbo"], arrays["label_objective"]
        return self

    def restricted(self, allowed):
        """Return this model with some of its labels only: those where ``allowed`` is true."""
        model = copy(self)
        model._start = np.where(allowed[self._columns], self._start, 0.0)
        if not model._start.any():
            raise ValueError("none of the labels that are allowed has a document.")
        model._start /= model._start.sum()
        model._fallback = self._fallback_within(allowed)
        return model

    # Scores of labels

    def _log_scores(self, X):
        """Return the logarithms of labels' weights or posteriors, which add up to 1."""
        with np.errstate(divide="ignore"):
            if self.predict_mode == "paper":
                return self._log_posteriors(X)
            return np.log(np.vstack(self._map_weights(X, lambda weights, best, rows: weights)))

    def _map_weights(self, X, function):
        """Call ``function(weights, best, rows)`` for blocks of documents."""

        def block(data, indices, indptr, rows):
            weights = np.empty((indptr.size - 1, self._start.size))
            best = np.empty(indptr.size - 1)
            kernels.class_weights(
                data, indices, indptr, self._theta, self._start, WEIGHT_STEPS, weights, best
            )
            return function(weights, best, rows)

        return map_rows(block, X, self._start.size) or [np.zeros((0, self._start.size))]

    def _log_posteriors(self, X):
        """Return the log posterior of each label alone, by the bound of the likelihood."""
        scores, n_docs = np.full((X.shape[0], self._start.size), -np.inf), X.shape[0]
        for label in np.flatnonzero(self._start):
            alone = indicator(np.full(n_docs, label), np.arange(n_docs + 1), self._start.size)
            scores[:, label] = self._topics.bound(X, alone) + np.log(self._start[label])
        return log_softmax(scores, axis=1)

    def decision_function(self, X):
        """Return the log odds of each label's weight, or posterior with "paper".

        It is ``-inf`` for a label without documents, and ``inf`` for one that is alone.
        """
        check_is_fitted(self)
        scores = self._scores(check_words(self, X))
        if self._form.kind == "single" and scores.shape[1] == 2:
            return scores[:, 1]
        return scores

    def _scores(self, X):
        """Return the log odds of labels; those of no words are their shares of documents."""
        return self._spread(log_odds(self._log_scores(X)).T, -np.inf).T

    def predict_proba(self, X):
        """Return one probability for each document and label; see the notes of the class."""
        check_is_fitted(self)
        X = check_words(self, X)
        if self._form.kind == "single":
            return self._spread(np.exp(self._log_scores(X)).T, 0.0).T
        return self._probabilities(X, self._scores(X))

    def _probabilities(self, X, scores):
        if self.predict_mode == "sets":
            proba = self._meet(X).marginals(self.classes_.size)
        elif "label_curve" in self.chosen_:
            proba = np.interp(scores, *self.chosen_["label_curve"])
        else:
            proba = np.exp(-np.logaddexp(0.0, -scores))
        proba[X.getnnz(axis=1) == 0] = self.label_docs_ / self._n_docs
        proba[np.isneginf(scores)] = 0.0
        return proba

    def assess(self, X, labels=None):
        """Return predicted sets (CSR indicator), scores and probabilities."""
        check_is_fitted(self)
        X = check_words(self, X)
        scores = self._scores(X)
        return self.choose(X), scores, self._probabilities(X, scores)

    def class_perplexity(self, X, Y) -> float:
        """Return the inverse geometric mean of true labels' weights, or posteriors with "paper".

        That is Eq. (15) of the paper; labels without documents are left out.
        """
        check_is_fitted(self)
        X = check_words(self, X)
        truth = check_sets(X, Y, self.classes_)[:, self._columns]
        if not truth.nnz:
            raise ValueError("Y has no label with documents, needs at least 1.")
        return float(np.exp(-self._log_scores(X)[truth.nonzero()].mean()))

    # Label sets

    def choose(self, X) -> sparse.csr_matrix:
        """Return the predicted label sets as a sparse indicator, whatever the form of ``Y``."""
        check_is_fitted(self)
        X = check_words(self, X)
        if self.predict_mode == "sets" and self._form.kind != "single":
            return with_fallback(X, self._meet(X).best(self.classes_.size), self._fallback)
        if self.predict_mode == "paper":
            blocks = [self._given(self._log_scores(X))]
        else:
            with np.errstate(divide="ignore"):
                blocks = self._map_weights(X, lambda weights, *_: self._given(np.log(weights)))
        return with_fallback(X, stack_sets(blocks, self.classes_.size), self._fallback)

    def _given(self, scores):
        """Return the sizes of label sets, and their labels, by scores of labels."""
        if self._form.kind == "single":
            return np.ones(len(scores), dtype=np.int64), self._columns[scores.argmax(axis=1)]
        relative = scores - scores.max(axis=1, keepdims=True)
        given = (relative >= self.chosen_["threshold"]) & np.isfinite(scores)
        spread = self._spread(given.T, False).T
        return spread.sum(axis=1), np.nonzero(spread)[1]

    def _meet(self, X, label=-1):
        """Return the label sets that a greedy search meets; all hold a label if one is given."""
        prior = self._prior
        shares = np.ascontiguousarray(np.exp(prior.log_shares.T))
        temperature, n_candidates = self.temperature_, min(N_CANDIDATES, self._start.size)
        n_sets = n_candidates * (n_candidates + 1) // 2
        candidates = np.empty((X.shape[0], n_candidates), dtype=np.int64)
        members = np.zeros((X.shape[0], n_sets), dtype=np.int64)
        values, bounds = np.full((X.shape[0], n_sets), -np.inf), np.empty(X.shape[0])

        def block(weights, best, rows):
            bounds[rows] = best
            if label >= 0:
                weights[:, label] = np.inf
            order = np.argsort(-weights, axis=1, kind="stable")[:, :n_candidates]
            likely = np.take_along_axis(weights, order, axis=1) > 0
            candidates[rows] = np.where(likely, order, -1)
            part = X[rows]
            kernels.grow_sets(
                part.data,
                part.indices.astype(np.int32, copy=False),
                part.indptr.astype(np.int64),
                self._theta,
                candidates[rows],
                label >= 0,
                shares,
                prior.log_scales[: n_candidates + 1],
                temperature,
                members[rows],
                values[rows],
            )

        self._map_weights(X, block)
        bounds = bounds / temperature + np.log(prior.size_proba.max())
        columns = np.where(candidates >= 0, self._columns[candidates], -1)
        return MetSets(columns, members, values, bounds)

    @property
    def temperature_(self):
        """What log likelihoods of label sets are divided by."""
        return self.chosen_.get("temperature", 1.0)

    def predict_sets(self, X, n_best=3) -> LabelSets:
        """Return each document's best label sets of those that a greedy search meets.

        The log posterior is over these sets. No other set is above ``bound``, by which that of
        all shares of labels bounds the likelihood, and that of its size the prior.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts.
        n_best : int, default=3
            Label sets to give, if as many are met.
        """
        check_is_fitted(self)
        if self._form.kind == "single":
            raise ValueError(
                "y was 1-D, one label a document, so there are no label sets; use predict_proba."
            )
        check_scalar(n_best, "n_best", Integral, min_val=1)
        return self._meet(check_words(self, X)).listed(self.classes_, int(n_best))

    def best_with(self, X, label) -> sparse.csr_matrix:
        """Return the best label set met that holds a label (a column), as an indicator."""
        check_is_fitted(self)
        check_scalar(label, "label", Integral, min_val=0, max_val=self.classes_.size - 1)
        self._check_label(label, self._columns[self._start > 0])
        inside = int(np.flatnonzero(self._columns == label)[0])
        return self._meet(check_words(self, X), inside).best(self.classes_.size)


def log_odds(log_proba):
    """Return the log odds of probabilities that add up to 1 in a row, by their logarithms.

    Those of the largest one are by the sum of the others, which may be far below 1.
    """
    top = log_proba.argmax(axis=1)[:, None]
    others = log_proba.copy()
    np.put_along_axis(others, top, -np.inf, axis=1)
    best = np.take_along_axis(log_proba, top, axis=1)
    with np.errstate(divide="ignore"):  # one that is alone
        odds = others - np.log1p(-np.exp(np.minimum(others, 0.0)))
        np.put_along_axis(odds, top, best - logsumexp(others, axis=1, keepdims=True), axis=1)
    return odds


class MetSets:
    """Label sets that a search met, with their log posteriors before they are normalised.

    ``members`` has a bit for each of the document's ``columns``, which are -1 where there are
    fewer, and ``values`` is ``-inf`` where there are fewer sets.
    """

    def __init__(self, columns, members, values, bounds):
        self.columns, self.members, self.values, self.bounds = columns, members, values, bounds

    def _labels(self, members):
        """Return an indicator of each document's candidates in one of its sets."""
        return (members[:, None] >> np.arange(self.columns.shape[1]) & 1).astype(bool)

    def best(self, n_labels) -> sparse.csr_matrix:
        """Return the best set of each document."""
        top = self.values.argmax(axis=1)
        inside = self._labels(np.take_along_axis(self.members, top[:, None], axis=1)[:, 0])
        ends = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
        return indicator(self.columns[inside], ends, n_labels).sorted_indices()

    def marginals(self, n_labels) -> np.ndarray:
        """Return the probability of each label over the sets that were met."""
        proba, out = self._proba(), np.zeros((self.columns.shape[0], n_labels))
        for i in range(self.columns.shape[1]):
            rows = np.flatnonzero(self.columns[:, i] >= 0)
            inside = np.where(self.members[rows] >> i & 1, proba[rows], 0.0)
            out[rows, self.columns[rows, i]] = np.minimum(inside.sum(axis=1), 1.0)
        return out

    def _proba(self):
        return np.exp(self.values - logsumexp(self.values, axis=1, keepdims=True))

    def listed(self, classes, n_best) -> LabelSets:
        """Return the best sets by name."""
        n_best = min(n_best, self.values.shape[1])
        order = np.argsort(-self.values, axis=1, kind="stable")[:, :n_best]
        values = np.take_along_axis(self.values, order, axis=1)
        members = np.take_along_axis(self.members, order, axis=1)
        total = logsumexp(self.values, axis=1)
        sets = [
            [_named(classes, columns, m) for m in row[value > -np.inf].tolist()]
            for columns, row, value in zip(self.columns, members, values, strict=True)
        ]
        return LabelSets(sets, values - total[:, None], self.bounds - total)


def _named(classes, columns, member):
    inside = np.sort(columns[member >> np.arange(columns.size) & 1 == 1])
    return tuple(classes[inside].tolist())
