"""TermWeights compared with worked examples and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_matrix, issparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from polytopic.text import TermWeights

COUNTS = np.array([[2, 1, 0], [0, 1, 0], [1, 1, 3], [0, 4, 0]], dtype=float)
SCHEMES = ["tf", "binary", "tfidf", "ltc"]
MATRICES = arrays(np.float64, (4, 3), elements=st.integers(0, 5).map(float))


@parametrize_with_checks([TermWeights(scheme) for scheme in SCHEMES])
def test_scikit_learn_checks(estimator, check):
    """Every scheme passes scikit-learn's checks."""
    check(estimator)


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("tf", COUNTS),
        ("binary", COUNTS > 0),
        (
            "tfidf",
            [[2 * np.log(2), 0, 0], [0, 0, 0], [np.log(2), 0, 3 * np.log(4)], [0, 0, 0]],
        ),
    ],
)
def test_weights_by_hand(scheme, expected):
    """The definitions on a small table; a term that is in all documents has no idf."""
    weights = TermWeights(scheme).fit_transform(COUNTS)

    np.testing.assert_allclose(weights.toarray(), np.asarray(expected, dtype=float))


def test_ltc_by_hand():
    """Salton's ltc: (1 + log tf) log(N / df), divided by the length of the row."""
    row = np.array([np.log(2), 0, (1 + np.log(3)) * np.log(4)])

    weights = TermWeights("ltc").fit_transform(COUNTS)

    np.testing.assert_allclose(weights.toarray()[2], row / np.linalg.norm(row))
    np.testing.assert_allclose(weights.toarray()[0], [1, 0, 0])


@given(X=MATRICES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_weights_in_place(scheme, dtype, X):
    """They have the same bits, and counts are overwritten only if allowed."""
    weights = TermWeights(scheme).fit(X)
    places = np.tile(np.arange(3), 4), np.arange(0, 13, 3)  # zeros are stored as well
    counts = csr_matrix((X.astype(dtype).ravel(), *places), shape=X.shape)

    expected = weights.transform(counts)

    assert counts.toarray().tolist() == X.tolist()
    weighted = weights.transform(counts, copy=False)
    assert weighted.dtype == expected.dtype == dtype
    assert (weighted != expected).nnz == 0
    assert (weights.transform(X.astype(dtype)) != expected).nnz == 0


@given(X=MATRICES)
@pytest.mark.parametrize("sublinear", [False, True])
def test_weights_compared_with_scikit_learn(sublinear, X):
    """Term frequencies are scikit-learn's, times our idf."""
    rival = TfidfTransformer(norm=None, sublinear_tf=sublinear, use_idf=False)
    scheme = "ltc" if sublinear else "tfidf"
    ours = TermWeights(scheme).fit(X)

    weights = ours.transform(X).toarray()

    expected = rival.fit_transform(X).toarray() * ours.idf_
    if sublinear:
        length = np.linalg.norm(expected, axis=1, keepdims=True)
        expected = np.divide(expected, length, where=length > 0, out=np.zeros_like(expected))
    np.testing.assert_allclose(weights, expected, atol=1e-12)


def test_idf_compared_with_scikit_learn():
    """If every term is in some document, scikit-learn's unsmoothed idf is ours plus one."""
    rival = TfidfTransformer(smooth_idf=False).fit(COUNTS)

    ours = TermWeights("tfidf").fit(COUNTS)

    np.testing.assert_allclose(ours.idf_ + 1, rival.idf_)


@given(X=MATRICES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_rows_of_unit_length(scheme, X):
    """With unit_length a row has length one, or is empty."""
    weights = TermWeights(scheme, unit_length=True).fit_transform(X).toarray()

    lengths = np.linalg.norm(weights, axis=1)
    assert np.all(np.isclose(lengths, 1) | (lengths == 0))


@given(X=MATRICES)
def test_frequencies_are_enough(X):
    """A fit on counts equals a fit on their document frequencies."""
    fitted = TermWeights("ltc").fit(X)

    additive = TermWeights("ltc").fit_frequencies((X > 0).sum(axis=0), len(X))

    np.testing.assert_array_equal(additive.idf_, fitted.idf_)
    np.testing.assert_array_equal(additive.transform(X).toarray(), fitted.transform(X).toarray())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_weights_are_finite_and_not_negative(scheme):
    """The same for terms that were in no document, and for fractional counts."""
    weights = TermWeights(scheme).fit_frequencies([0, 1, 3], n_docs=3)

    weighed = weights.transform([[1, 0.01, 5]]).toarray()

    assert np.isfinite(weighed).all()
    assert (weighed >= 0).all()


def test_sparse_stays_sparse_and_untouched():
    """The result is CSR without stored zeros, and the input is not changed."""
    X = csr_matrix(COUNTS)
    before = X.copy()

    weights = TermWeights("ltc").fit_transform(X)

    assert issparse(weights)
    assert weights.format == "csr"
    assert (weights.data > 0).all()
    assert (before != X).nnz == 0


def test_no_documents_to_weigh():
    """Weighting no documents gives an empty matrix with all columns."""
    weights = TermWeights("ltc").fit(COUNTS)

    assert weights.transform(csr_matrix((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(
    ("frequency", "n_docs", "sentence"),
    [
        ([4], 3, r"must be in \[0, n_docs\], with n_docs == 3"),
        ([-1], 3, r"must be in \[0, n_docs\]"),
        ([0], 0, "n_docs == 0, must be >= 1"),
        ([[1]], 3, "has 2 dimensions, must have 1"),
    ],
)
def test_wrong_frequencies_are_rejected(frequency, n_docs, sentence):
    """Frequencies are between zero and the number of documents."""
    with pytest.raises(ValueError, match=sentence):
        TermWeights().fit_frequencies(frequency, n_docs)


def test_unknown_scheme():
    """The error lists the schemes."""
    with pytest.raises(ValueError, match="scheme == 'bm25', must be one of tf, binary, tfidf, ltc"):
        TermWeights("bm25").fit(COUNTS)
