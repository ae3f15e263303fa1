"""What speaks for the label sets of maximal margin labeling, word by word."""

from __future__ import annotations

from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from polytopic.models.linear_reasons import LinearReasons
from polytopic.models.margin_answers import MarginAnswers
from polytopic.models.words import Account


class MarginReasons(MarginAnswers, LinearReasons):
    """Gives reasons for its answers: a set's score is the sum of what its words add for labels."""

    def account(self, x, y) -> Account:
        """Return what one document's score of a label set is made of, for words of unit weight."""
        check_is_fitted(self)
        x = self._check_words(x)
        by_label = self._word_scores(x, y) / (sparse.linalg.norm(x) or 1.0)
        return Account(by_label.sum(axis=1), 0.0, by_label)

    def top_words(self, label, k):
        """Return the ``k`` words that speak most for a label (a column), and their weights."""
        check_is_fitted(self)
        return self._scorer.top_words(label, k)

    def _word_scores(self, x, y):
        """Return the weights of one document's words for each label of a set, at its size."""
        return self._scorer.word_scores(x.indices, sparse.csr_matrix(y).indices)
