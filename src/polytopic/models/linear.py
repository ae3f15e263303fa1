"""Evidence of linear models: a label set's score is the sum of its words' weights for its labels."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from polytopic.models.checks import check_sets
from polytopic.models.documents import DocumentModel
from polytopic.models.words import WordLabels


class LinearModel(DocumentModel):
    """A document model that scores label sets by weights of words for labels."""

    temperature_ = 1.0

    @property
    def world_log_proba_(self):
        """What words say without labels: nothing."""
        return np.zeros(self.n_features_in_)

    def log_prior(self, Y):
        """Return zero for each label set: the words say all."""
        check_is_fitted(self)
        return np.zeros(check_sets(None, Y, self.classes_).shape[0])

    def word_labels(self, X, Y=None) -> WordLabels:
        """Return the share of each label of a document in each of its words.

        A word is shared in proportion to its positive contributions to the labels' scores, or
        equally if it has none.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        sets = self.choose(X) if Y is None else check_sets(X, Y, self.classes_)
        doc, word, label, share = [], [], [], []
        for d in range(X.shape[0]):
            x, y = X[d], sets[d]
            evidence = np.maximum(x.data[:, None] * self._word_scores(x, y), 0.0)
            evidence[evidence.sum(axis=1) == 0] = 1.0
            doc.append(np.full(evidence.size, d))
            word.append(np.repeat(x.indices, y.nnz))
            label.append(np.tile(y.indices, x.nnz))
            share.append((evidence / evidence.sum(axis=1, keepdims=True)).ravel())
        return WordLabels(*(np.concatenate(part) for part in (doc, word, label, share)))

    def _check_words(self, X, *, reset=False) -> sparse.csr_matrix:
        """Return validated documents."""
        raise NotImplementedError

    def _word_scores(self, x, y):
        """Return the weights of one document's words for each label of a set."""
        raise NotImplementedError
