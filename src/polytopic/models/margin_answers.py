"""What maximal margin labeling answers once its weights are known."""

from __future__ import annotations

from copy import copy
from numbers import Integral

import numpy as np
from scipy import sparse, special
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted, validate_data

from polytopic.counts import canonical_counts
from polytopic.labels import LabelSpace, with_fallback
from polytopic.models.arrays import CHOSEN_BY_MARGINS, check_chosen, check_margins
from polytopic.models.documents import DocumentModel
from polytopic.models.label_sets import LabelSets
from polytopic.models.margin_tuning import FEWEST
from polytopic.models.set_scorer import SetScorer
from polytopic.models.words import softmax
from polytopic.text.weights import is_valid_counts

MOST_SETS = 1 << 16


class MarginAnswers(DocumentModel):
    """A classifier that scores label sets by linear weights, on documents of unit length."""

    sees_counts = False

    # What was learned

    def _set_weights(self, vectors, weights):
        self._vectors, self._weights = vectors, weights
        self.n_features_in_ = weights.shape[0]
        self._allow(np.arange(self._columns.size))

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        return {
            "weights": self._weights,
            "vectors": self._vectors,
            **self._label_arrays(),
        }

    def from_arrays(self, arrays, *, labels, n_words, chosen=None):
        """Take over what :meth:`to_arrays` gave; prediction is then the same to the bit.

        Arrays that no model could have given raise ValueError.
        """
        self._check_parameters()
        check_margins(arrays, len(labels), n_words)
        self._take_labels(arrays, labels, check_chosen(chosen, CHOSEN_BY_MARGINS))
        self._set_weights(arrays["vectors"], arrays["weights"])
        return self

    def _check_words(self, X, *, reset=False):
        if not is_valid_counts(self, X, reset=reset):
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=reset)
        return canonical_counts(X)

    # Answers

    def _allow(self, places):
        """Answer with labels at these places of the columns only."""
        self._scorer = SetScorer(
            self._weights,
            self._vectors,
            self._columns,
            places,
            n_labels=self.classes_.size,
            single=self._form.kind == "single",
        )

    def restricted(self, allowed):
        """Return this model with some of its labels only: those where ``allowed`` is true."""
        model = copy(self)
        places = np.flatnonzero(allowed[self._columns])
        if not places.size:
            raise ValueError("none of the labels that are allowed has a document.")
        model._allow(places)
        model._fallback = self._fallback_within(allowed)
        return model

    def choose(self, X) -> sparse.csr_matrix:
        """Return the predicted label sets as a sparse indicator, whatever the form of ``Y``."""
        check_is_fitted(self)
        X = self._check_words(X)
        return with_fallback(X, self._scorer.best(X), self._fallback)

    def decision_function(self, X):
        """Return the score of the best set with each label less that of the best without it.

        It is ``-inf`` for a label without documents, and ``inf`` for one that is alone.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        if self._form.kind != "single":
            return self._scorer.margins(X)
        scores = self._scorer.label_scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X):
        """Return one probability for each document and label; see the notes of the class."""
        check_is_fitted(self)
        X = self._check_words(X)
        if self._form.kind == "single":
            return softmax(self._scorer.label_scores(X))
        return self._probabilities(X, self._scorer.margins(X))

    def assess(self, X, labels=None):
        """Return predicted sets (CSR indicator), margins and probabilities."""
        check_is_fitted(self)
        X = self._check_words(X)
        sets, margins = self._sets_and_margins(X)
        return sets, margins, self._probabilities(X, margins)

    def _sets_and_margins(self, X):
        """Return predicted sets (CSR indicator) and margins of documents that were checked."""
        sets, margins = self._scorer.assess(X)
        return with_fallback(X, sets, self._fallback), margins

    def _probabilities(self, X, margins):
        if "label_curve" not in self.chosen_:
            return special.expit(margins)
        proba = np.interp(margins, *self.chosen_["label_curve"])
        proba[X.getnnz(axis=1) == 0] = self.label_docs_ / self._n_docs
        proba[np.isneginf(margins)] = 0.0
        return proba

    def set_proba(self, X):
        """Return the probability that the whole label set of each document is right.

        By isotonic regression on its lead over the second best set, on held-out documents.
        """
        check_is_fitted(self)
        if "set_curve" not in self.chosen_:
            raise ValueError(
                "MML knows no probability of label sets; fit it with calibrate=True, on "
                f"{FEWEST} documents or more."
            )
        X = self._check_words(X)
        lead = self.lead(X)
        known = (X.getnnz(axis=1) > 0) | np.isposinf(lead)
        proba = np.interp(lead, *self.chosen_["set_curve"])
        return np.where(known, proba, self._fallback_docs / self._n_docs)

    def lead(self, X):
        """Return how much more the best label set scores than the second best.

        It is ``inf`` where there is but one set.
        """
        check_is_fitted(self)
        best, second = self._scorer.n_best(self._check_words(X), 2)[1].T
        return best - second

    def predict_sets(self, X, n_best=3) -> LabelSets:
        """Return each document's best label sets, exactly, with a bound on every other set.

        ``log_posterior`` has their scores, and ``bound`` is the score of the next best set. A
        document without a known word has the most frequent label set first; all score 0 there.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Weights of words.
        n_best : int, default=3
            Label sets to give, at most 65536.
        """
        check_is_fitted(self)
        if self._form.kind == "single":
            raise ValueError(
                "y was 1-D, one label a document, so there are no label sets; use predict_proba."
            )
        check_scalar(n_best, "n_best", Integral, min_val=1, max_val=MOST_SETS)
        X, n_sets = self._check_words(X), int(n_best) + 1
        Y, scores = self._scorer.n_best(X, n_sets)
        rows = [tuple(labels) for labels in LabelSpace(self.classes_.tolist()).decode(Y)]
        sets = [list(filter(None, rows[k : k + n_sets])) for k in range(0, len(rows), n_sets)]
        commonest = tuple(self.classes_[self._fallback].tolist())
        for doc in np.flatnonzero(X.getnnz(axis=1) == 0):
            sets[doc] = [commonest, *(labels for labels in sets[doc] if labels != commonest)]
        return LabelSets([listed[:n_best] for listed in sets], scores[:, :-1], scores[:, -1])

    def best_with(self, X, label) -> sparse.csr_matrix:
        """Return each document's best label set that holds a label (a column), as an indicator."""
        check_is_fitted(self)
        X = self._check_words(X)
        check_scalar(label, "label", Integral, min_val=0, max_val=self.classes_.size - 1)
        self._check_label(label, self._scorer.labels)
        return self._scorer.best_with(X, label)
