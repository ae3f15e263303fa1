"""Naive Bayes: one unigram model per label."""

from __future__ import annotations

import numpy as np
from scipy import sparse, special
from sklearn.utils.validation import check_is_fitted

from polytopic.models.count_model import CountModel


class NaiveBayes(CountModel):
    r"""Multinomial naive Bayes with one unigram model per label.

    A document counts for each of its labels. Its score for a label is its log likelihood
    ([1]_, Eq. (1), with equal priors)

    .. math:: \log p(A \mid T) = \sum_t x_t \log p(t \mid T)

    It predicts the single best label; use a :class:`~polytopic.decision.LabelDecision` for other
    rules. ``decision_function`` returns the log likelihoods, and ``predict_proba`` the posterior
    over single labels.

    Parameters
    ----------
    smoothing : float, default=0.1
        Pseudo-count of every word in every label.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order, or column numbers if fitted on an indicator.
    counts_ : LabelSetCounts
        The table of the learned documents.
    word_proba_ : ndarray of shape (n_labels, n_words)
        Word distribution of each label.
    world_log_proba_ : ndarray of shape (n_words,)
        Logarithm of the word distribution of the whole corpus.

    References
    ----------
    .. [1] Skorkovská, Zajíc and Müller, "Comparison of Score Normalization Methods Applied to
       Multi-label Classification", 2014.

    Examples
    --------
    >>> X = [[3, 0, 1], [0, 2, 1], [2, 2, 0]]
    >>> model = NaiveBayes().fit(X, [["sport"], ["film"], ["film", "sport"]])
    >>> model.classes_, model.predict([[4, 1, 0]])
    (array(['film', 'sport'], dtype=object), array([[0, 1]]))
    """

    name = "nb"
    has_world_score = True

    def __init__(self, *, smoothing=0.1):
        self.smoothing = smoothing

    def _estimate(self, matrix, sets):
        return sparse.csr_matrix(sets.T @ matrix)

    def world_score(self, X):
        """Return the log likelihood of each document under the model of the whole corpus."""
        check_is_fitted(self)
        return self._check_words(X) @ self.world_log_proba_

    def _log_likelihood(self, X, sets, theta=None):
        r"""Return :math:`\log \frac{1}{|L|} \sum_{l \in L} p(A \mid l)`.

        The model draws one of the labels, then all words from it.
        """
        scores = self._scores(X, None if theta is None else np.log(theta), masked=False)
        scores = np.where(sets.toarray() > 0, scores, -np.inf)
        with np.errstate(divide="ignore"):  # no label: -inf
            return special.logsumexp(scores, axis=1) - np.log(np.maximum(1, np.diff(sets.indptr)))

    def _own_counts(self, X, sets):
        return np.repeat(X.data, np.repeat(np.diff(sets.indptr), np.diff(X.indptr)))

    def _log_words(self, x, sets, theta=None):
        r"""Return the mean of the labels' log probabilities of each stored word.

        The weights are :math:`r_l`, the posterior of the label that all words were drawn from.
        The rest of the log likelihood is the entropy of :math:`r` less :math:`\log |L|`.
        """
        log_theta = self._log_theta if theta is None else np.log(theta)
        log_theta = log_theta[x.indices][:, sets.indices]
        return log_theta @ special.softmax(x.data @ log_theta)
