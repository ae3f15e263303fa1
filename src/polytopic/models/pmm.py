"""Parametric mixture models: a document mixes the word distributions of its labels."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.kernels import mixture
from polytopic.kernels.blocks import map_rows
from polytopic.labels import indicator
from polytopic.models.base import CountModel
from polytopic.models.mixture_em import fit_equal_mixture

SMALLEST = 1e-30  # float32 holds probabilities above it, their inverses and products


class PMM1(CountModel):
    r"""Parametric mixture model with equal label weights.

    A document draws its words from the mean of the distributions of its labels ([1]_, Eq. (3)):

    .. math:: \varphi_i = \frac{1}{|L|} \sum_{l \in L} \theta_{li}

    The answer is found by greedy search ([1]_, section 3.3): labels are added as long as the
    likelihood rises. ``decision_function`` gives the log likelihood of the best set with a label
    minus that of the best without it, among these candidates: the answer, every set that differs
    from it by one label, and every single label. ``predict_proba`` is the label's probability
    under equal priors of these two best sets.

    Parameters
    ----------
    smoothing : float, default=1.0
        Pseudo-count of every pair of a label and a word; :math:`\xi - 1` in [1]_.
    max_iter : int, default=200
        EM steps to run at most.
    tol : float, default=1e-5
        EM stops when three steps raise the objective by less than this for each word that
        has several labels to come from.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order, or column numbers if fitted on an indicator.
    counts_ : LabelSetCounts
        The table of the documents learned so far.
    word_proba_ : ndarray of shape (n_labels, n_words)
        Word distribution of each label, :math:`\theta` in [1]_.
    objective_ : float
        Log posterior of the parameters, :math:`J` of [1]_, Eq. (6); EM never lowers it.
    n_iter_ : int
        EM steps run.

    References
    ----------
    .. [1] Ueda and Saito, "Parametric Mixture Models for Multi-Labeled Text", NIPS 15, 2002.

    Examples
    --------
    >>> X = [[3, 0, 1], [0, 2, 1], [2, 2, 0]]
    >>> model = PMM1().fit(X, [["sport"], ["film"], ["film", "sport"]])
    >>> model.classes_, model.predict([[9, 9, 1]])
    (array(['film', 'sport'], dtype=object), array([[1, 1]]))
    """

    name = "pmm1"

    def __init__(self, *, smoothing=1.0, max_iter=200, tol=1e-5):
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol

    def _check_parameters(self):
        super()._check_parameters()
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)
        check_scalar(self.tol, "tol", Real, min_val=0)

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        course = {"objective": np.array(self.objective_), "n_iter": np.array(self.n_iter_)}
        return super().to_arrays() | course

    def from_arrays(self, arrays, *, labels, n_words):
        """Take over what :meth:`to_arrays` gave; prediction is then the same to the bit."""
        self.objective_, self.n_iter_ = arrays["objective"].item(), arrays["n_iter"].item()
        return super().from_arrays(arrays, labels=labels, n_words=n_words)

    def _estimate(self, matrix, sets):
        fit = fit_equal_mixture(
            matrix, sets, smoothing=self.smoothing, max_iter=self.max_iter, tol=self.tol
        )
        self.objective_, self.n_iter_ = fit.objective, fit.n_iter
        return fit.label_counts

    # Prediction

    def _set_state(self, labels, **state):
        super()._set_state(labels, **state)
        small = np.float32 if self._theta.min() > SMALLEST else np.float64
        self._rough = np.stack(
            [self._log_theta, self._theta], axis=1, dtype=small, casting="same_kind"
        )

    def _search(self, data, indices, indptr):
        """Return the greedy label sets of a block."""
        chosen = np.zeros((indptr.size - 1, self.classes_.size), dtype=bool)
        tables = self._theta, self._log_theta, self._rough
        mixture.greedy_sets(data, indices, indptr, *tables, self._seen, chosen)
        return chosen

    def _choose(self, X):
        blocks = map_rows(
            lambda data, indices, indptr, rows: np.nonzero(self._search(data, indices, indptr)),
            X,
            self.classes_.size,
        )
        sizes = np.concatenate([np.bincount(doc) for doc, _ in blocks])  # none without a label
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        return indicator(np.concatenate([label for _, label in blocks]), indptr, self.classes_.size)

    def _margins_and_marginals(self, X):
        """Look at the log likelihoods of each document's candidate sets."""
        margins = np.empty((X.shape[0], self.classes_.size))

        def block(data, indices, indptr, rows):
            chosen = self._search(data, indices, indptr)
            empty = np.diff(indptr) == 0
            chosen[empty] = np.isin(np.arange(chosen.shape[1]), self._fallback)
            sets = sparse.csr_matrix(chosen)
            best, flipped = np.empty(len(chosen)), np.empty(chosen.shape)
            mixture.log_likelihoods(
                data, indices, indptr, sets.indices, sets.indptr, self._theta, best
            )
            mixture.neighbour_sets(
                data, indices, indptr, self._theta, self._seen, chosen, best, flipped
            )
            single = self._block_scores(data, indices, indptr, rows)
            margins[rows] = _margins(chosen, best[:, None], single, flipped)

        map_rows(block, X, self.classes_.size)
        return margins, expit(margins)

    # Reasons

    def log_likelihood(self, X, Y):
        """Return the log likelihood of each document given its label set.

        It is ``-inf`` for a document without a label; multinomial coefficients, which no label
        changes, are left out.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        sets = self._check_sets(X, Y)
        out = np.empty(X.shape[0])
        map_rows(
            lambda data, indices, indptr, rows: mixture.log_likelihoods(
                data,
                indices,
                indptr,
                sets.indices,
                sets.indptr[rows.start : rows.stop + 1],
                self._theta,
                out[rows],
            ),
            X,
        )
        return np.where(np.diff(sets.indptr) > 0, out, -np.inf)

    def mixture(self, X, Y=None):
        """Return how much of each document each label says; rows sum to one.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts.
        Y : labels, default=None
            Label sets that share the words; the predicted ones by default. A document without
            words gets equal shares of its labels.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        sets = self._check_sets(X, Y)
        n_words, n_labels = X.sum(axis=1).A1, np.diff(sets.indptr)
        if not n_labels.all():
            raise ValueError(
                f"document {np.argmin(n_labels)} has no label; its words need one to belong to."
            )
        words = self._shares(X, sets)
        count = np.repeat(X.data, np.repeat(n_labels, np.diff(X.indptr)))
        said = sparse.csr_matrix((count * words.share, (words.doc, words.label)), sets.shape)
        shares = said.toarray() / np.maximum(n_words, 1e-300)[:, None]
        empty = np.diff(X.indptr) == 0
        shares[empty] = sets[empty].toarray() / n_labels[empty, None]
        return shares


def _margins(chosen, best, single, flipped):
    """Return the best candidate set with each label minus the best without it.

    Candidates are the chosen set, those with one label flipped, and the single labels. No
    extension and no single label is better than the chosen set, a set with a label less may be.
    """
    removed = np.where(chosen, flipped, -np.inf)
    top = np.maximum(best, removed.max(axis=1, keepdims=True))
    with_label = np.where(
        chosen, np.maximum(best, _best_other(removed)), np.maximum(flipped, single)
    )
    without = np.where(chosen, np.maximum(removed, _best_other(single)), top)
    with np.errstate(invalid="ignore"):  # a single label that is alone: inf
        return with_label - without


def _best_other(values):
    """Return, for each place of a row, the largest value at any other place."""
    if values.shape[1] == 1:
        return np.full(values.shape, -np.inf)
    order = np.argpartition(-values, 1, axis=1)[:, :2]
    first, second = np.take_along_axis(values, order, axis=1).T
    others = np.repeat(first[:, None], values.shape[1], axis=1)
    np.put_along_axis(others, order[:, :1], second[:, None], axis=1)
    return others
