"""Weights of terms in documents."""

from numbers import Integral

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_scalar
from sklearn.utils.sparsefuncs_fast import inplace_csr_row_normalize_l2
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from polytopic.array_specs import check_sparse

SCHEMES = ("tf", "binary", "tfidf", "ltc")


class TermWeights(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Weight terms by their frequency in the document and in the collection.

    Let :math:`tf` be the count of a term in the document, :math:`N` the number of documents and
    :math:`df` the number of documents with the term. Then :math:`idf = \log(N / \max(df, 1))`,
    which is zero for a term in every document, and the weight of a term with :math:`tf > 0` is

    ========  ==================================================================
    "tf"      :math:`tf`
    "binary"  1
    "tfidf"   :math:`tf \cdot idf`
    "ltc"     :math:`\max(1 + \log tf, 0) \cdot idf`, in rows of unit length [1]_
    ========  ==================================================================

    Parameters
    ----------
    scheme : {"tf", "binary", "tfidf", "ltc"}, default="tf"
        The weighting scheme.
    unit_length : bool, default=False
        Whether to divide each row by its Euclidean norm; "ltc" always does.

    Attributes
    ----------
    idf_ : ndarray of shape (n_terms,)
        Inverse document frequency of each term.

    References
    ----------
    .. [1] Salton and Buckley, "Term-Weighting Approaches in Automatic Text Retrieval",
       Information Processing & Management 24(5), 1988.

    Examples
    --------
    >>> TermWeights("tfidf").fit_transform([[2, 1], [0, 3]]).toarray().round(2)
    array([[1.39, 0.  ], [0.  , 0.  ]])
    """

    def __init__(self, scheme="tf", unit_length=False):
        self.scheme = scheme
        self.unit_length = unit_length

    def fit(self, X, y=None):
        """Learn the document frequency of each term."""
        X = self._check_counts(X, reset=True, copy=True)
        return self._learn(np.bincount(X.indices[X.data > 0], minlength=X.shape[1]), X.shape[0])

    def fit_frequencies(self, document_frequency, n_docs):
        """Learn from document frequencies and the number of documents."""
        check_scalar(n_docs, "n_docs", Integral, min_val=1)
        frequency = np.asarray(document_frequency)
        if frequency.ndim != 1:
            raise ValueError(f"document_frequency has {frequency.ndim} dimensions, must have 1.")
        if frequency.size and not 0 <= frequency.min() <= frequency.max() <= n_docs:
            raise ValueError(f"document_frequency must be in [0, n_docs], with n_docs == {n_docs}.")
        self.n_features_in_ = frequency.size
        return self._learn(frequency, n_docs)

    def _learn(self, frequency, n_docs):
        if self.scheme not in SCHEMES:
            raise ValueError(f"scheme == {self.scheme!r}, must be one of {', '.join(SCHEMES)}.")
        self.idf_ = np.log(n_docs / np.maximum(frequency, 1))
        return self

    def transform(self, X, copy=True):
        """Return the weights of the terms of each document as a CSR matrix.

        With ``copy=False`` the result may overwrite ``X``.
        """
        check_is_fitted(self)
        X = self._check_counts(X, reset=False, copy=copy)
        self._weigh(X)
        X.eliminate_zeros()
        if self.unit_length or self.scheme == "ltc":
            inplace_csr_row_normalize_l2(X)
        return X

    def _weigh(self, X):
        """Replace counts by weights, in place."""
        if self.scheme == "binary":
            X.data.fill(1)
        if self.scheme == "ltc":
            np.log(X.data, out=X.data)
            X.data += 1
            np.maximum(X.data, 0, out=X.data)
        if self.scheme in ("tfidf", "ltc"):
            X.data *= self.idf_.astype(X.dtype, copy=False)[X.indices]

    def _check_counts(self, X, *, reset, copy):
        """Return the counts as CSR, without stored zeros."""
        if not is_valid_counts(self, X, reset=reset):
            X = validate_data(
                self,
                X,
                accept_sparse="csr",
                dtype=(np.float64, np.float32),
                ensure_min_samples=int(reset),
                reset=reset,
            )
        check_non_negative(X, "TermWeights")
        X = csr_matrix(X, copy=copy)
        X.eliminate_zeros()
        return X

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def is_valid_counts(estimator, X, *, reset) -> bool:
    """Return whether a matrix is clearly valid; with ``reset``, also set ``n_features_in_``.

    This is a fast path before scikit-learn's `validate_data`, which checks all other matrices. A
    sparse matrix whose entries are outside it raises ValueError here.
    """
    check_sparse(X)
    valid = (
        type(X) is csr_matrix
        and X.dtype == np.float64
        and min(X.shape) > 0
        and (reset or X.shape[1] == getattr(estimator, "n_features_in_", None))
        and not hasattr(estimator, "feature_names_in_")
        and X.has_canonical_format
        and bool(np.isfinite(X.data).all())
    )
    if valid and reset:
        estimator.n_features_in_ = X.shape[1]
    return valid


def unit_rows(X) -> csr_matrix:
    """Return the rows scaled to unit length; empty rows stay empty.

    >>> unit_rows(csr_matrix([[3.0, 4.0], [0.0, 0.0]])).toarray()
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    unit = X.copy()
    inplace_csr_row_normalize_l2(unit)
    return unit
