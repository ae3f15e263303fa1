"""BoosTexter: boosted rules of one word."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils import check_scalar

from polytopic.labels import read_targets
from polytopic.models.boost_answers import BoostAnswers
from polytopic.models.boost_training import train
from polytopic.models.checks import check_as_many, check_number_or, check_pseudo_count


class BoosTexter(BoostAnswers):
    r"""Real abstaining AdaBoost.MH: rules of one word each, which say nothing where it is absent.

    The rule of a word gives a document that has it a number for each label ([1]_, section 4.2),

    .. math:: c_l = \tfrac12 \ln \frac{W_+^l + \varepsilon}{W_-^l + \varepsilon}

    where :math:`W_\pm^l` is the weight of the documents that have the word, with and without the
    label; others get 0. Each round takes the word that makes :math:`Z = W_0 + 2 \sum_l
    \sqrt{W_+^l W_-^l}` least of all words, and multiplies the weights of documents and labels by
    :math:`e^{\mp c_l}`. What the rules give is added up, and the labels above 0 are the answer.

    Parameters
    ----------
    n_rounds : int, default=1000
        Rules to find; fewer are found where no further rule lowers Z.
    best_if_none : bool, default=True
        Whether a document of which no label is above 0 gets the best one; otherwise it gets none.
    smoothing : float or None, default=None
        :math:`\varepsilon`, as a part of all weights; None is that of [1]_, one by the number of
        documents and that of labels.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order, or column numbers if fitted on an indicator.
    rules_ : list of WordRule
        The rules in the order in which they were found: ``word``, its column in ``X``; ``outputs``
        for each label; and ``z``. A word may have several.
    z_ : ndarray of shape (n_iter_,)
        What each round multiplied the total of the weights by, at most 1. Their product is the
        mean of :math:`e^{-Y f}` over documents and labels, no less than the Hamming loss.
    n_iter_ : int
        Rules found.
    chosen_ : dict
        Empty: nothing is chosen by documents.

    Notes
    -----
    Only whether a document has a word counts, not how often. Words without a rule are unknown: a
    document without others gets the most frequent label set. Labels without documents and
    documents without a label or a word are not learned from, nor counted in ``smoothing``.

    Words whose Z differs by less than 1e-12 are equal, and the first is taken. Sums of weights are
    kept up by differences, and added up anew every 200 rounds; the words that could be the best
    after all that differences get wrong are weighed by their documents in each round.

    ``decision_function`` gives the sum of what the rules say. ``predict_proba`` gives
    :math:`1 / (1 + e^{-2f})` of it ([2]_), which is not calibrated, and shares of documents where
    all rules abstain.

    References
    ----------
    .. [1] Schapire and Singer, "BoosTexter: A Boosting-based System for Text Categorization",
       Machine Learning 39, 2000.
    .. [2] Friedman, Hastie and Tibshirani, "Additive Logistic Regression: A Statistical View of
       Boosting", Annals of Statistics 28, 2000.

    Examples
    --------
    >>> X = [[3, 0, 1], [0, 2, 1], [2, 2, 0]]
    >>> model = BoosTexter(10).fit(X, [["sport"], ["film"], ["film", "sport"]])
    >>> model.classes_, model.predict([[4, 0, 1]])
    (array(['film', 'sport'], dtype=object), array([[0, 1]]))
    >>> [rule.word for rule in model.rules_[:2]]
    [0, 1]
    """

    name = "boostexter"

    def __init__(self, n_rounds=1000, *, best_if_none=True, smoothing=None):
        self.n_rounds = n_rounds
        self.best_if_none = best_if_none
        self.smoothing = smoothing

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.poor_score = True  # blobs have all words
        return tags

    def fit(self, X, y, *, chosen=None):
        """Learn from documents.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts, or other weights that are not negative.
        y : indicator of shape (n_docs, n_labels), or one collection of names a document
            Labels; 1-D means one label a document. Documents without a label or without a word
            are not learned from.
        chosen : dict, default=None
            What an earlier fit chose; there is nothing to be chosen.
        """
        self._check_parameters()
        targets = read_targets(y)
        X = self._check_words(X, reset=True)
        check_as_many(X, targets.Y)
        labelled = targets.Y.getnnz(axis=1) > 0
        if not labelled.any():
            raise ValueError("Y has no labelled document; at least one is needed.")
        self._set_labels(targets)
        self.chosen_ = {}
        known = np.flatnonzero(labelled & (X.getnnz(axis=1) > 0))
        X, Y = X[known], targets.Y[known][:, self._columns]
        smoothing = 1.0 / max(np.prod(Y.shape), 1) if self.smoothing is None else self.smoothing
        self._set_rules(train(X, Y, int(self.n_rounds), float(smoothing)), X.shape[1])
        return self

    @property
    def n_iter_(self) -> int:
        """Rules found."""
        return self.z_.size

    def _check_parameters(self):
        check_scalar(self.n_rounds, "n_rounds", Integral, min_val=1)
        check_scalar(self.best_if_none, "best_if_none", bool)
        if self.smoothing is not None:
            check_number_or(" or None", self.smoothing, "smoothing")
            check_pseudo_count(self.smoothing, "smoothing")
