"""What speaks for the label sets of the correlated labeling model, word by word."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from polytopic.models.checks import check_sets, check_words
from polytopic.models.col_answers import ColAnswers
from polytopic.models.words import Account, WordLabels
from polytopic.models.words import word_labels as shared_words


class ColReasons(ColAnswers):
    r"""Gives reasons for its answers.

    A label set's words are the mean of those of its labels, :math:`\frac{1}{|y|} \sum_{c \in y}
    p(w \mid c)`, which is what topics come to on average over documents.
    """

    def score(self, X, y, sample_weight=None):
        """Return the mean bound of the documents' log likelihood given their labels."""
        return float(np.average(self.bound(X, y), weights=sample_weight))

    def bound(self, X, Y) -> np.ndarray:
        """Return a lower bound of each document's log likelihood, given its labels."""
        check_is_fitted(self)
        X = check_words(self, X)
        sets = check_sets(X, Y, self.classes_)
        inside = sets[:, self._columns].sorted_indices()
        if not (np.diff(inside.indptr) == np.diff(sets.indptr)).all():
            raise ValueError("Y has a label without documents in training; it has no topics.")
        if not np.diff(inside.indptr).all():
            raise ValueError("Y has a document without labels; at least one is needed.")
        return self._topics.bound(X, inside)

    def log_prior(self, Y):
        """Return the log prior of each label set; ``-inf`` with labels without documents."""
        check_is_fitted(self)
        sets = check_sets(None, Y, self.classes_)
        inside = sets[:, self._columns]
        known = np.diff(inside.indptr) == np.diff(sets.indptr)
        return np.where(known, self._prior.log_prior(inside), -np.inf)

    def account(self, x, y) -> Account:
        """Return what the log likelihood of one document under a label set is made of."""
        check_is_fitted(self)
        x, sets = check_words(self, x), check_sets(None, y, self.classes_)
        return Account(np.log(self._words_of(sets.indices, x.indices).mean(axis=1)), 0.0)

    def _words_of(self, labels, words):
        """Return the probabilities of words in labels, (n_words, n_labels)."""
        places = np.full(self.classes_.size, -1)
        places[self._columns] = np.arange(self._columns.size)
        inside = places[labels]
        world = np.exp(self.world_log_proba_[words])[:, None]  # of labels without documents
        return np.where(inside >= 0, self._theta[np.ix_(words, inside)], world)

    def word_labels(self, X, Y=None) -> WordLabels:
        """Tell who said each word: the share of each label of the document's set in it."""
        check_is_fitted(self)
        X = check_words(self, X)
        sets = self.choose(X) if Y is None else check_sets(X, Y, self.classes_)
        words, places = np.unique(X.indices, return_inverse=True)
        own = sparse.csr_matrix((X.data, places, X.indptr), shape=(X.shape[0], words.size))
        proba = self._words_of(np.arange(self.classes_.size), words)
        found = shared_words(own, sets, np.ones(sets.nnz), proba)
        return found._replace(word=words[found.word])
