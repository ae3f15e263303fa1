"""Invalid matrices, targets and parameters raise one clear sentence, and are not computed with."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from polytopic.counts import LabelSetCounts
from polytopic.labels import read_targets
from polytopic.models import MML, PMM1, PMM2, CoL, LinearSVM, Stack
from polytopic.models.registry import create_model, find_model, model_names
from polytopic.text import TermWeights

OURS = [name for name in model_names() if find_model(name).path.startswith("polytopic.")]
COUNTS = [[2, 0, 1], [0, 1, 1], [1, 1, 0], [3, 0, 0]]
LABELS = [["a"], ["b"], ["a", "b"], ["a"]]


def with_indices(value, layout="csr"):
    """Return a matrix with an index outside it, as SciPy builds it from three arrays."""
    X = sparse.csr_matrix(COUNTS, dtype=float).asformat(layout)
    indices = X.indices.copy()
    indices[-1] = value
    return type(X)((X.data, indices, X.indptr), shape=X.shape)


def with_indptr(place, value):
    """Return a matrix whose rows overlap, or end beyond its entries."""
    X = sparse.csr_matrix(COUNTS, dtype=float)
    X.indptr = X.indptr.astype(np.int64)
    X.indptr[place] = value
    return X


BROKEN = [
    (with_indices(3), "X has an entry in column 3, must have entries in columns 0 to 2"),
    (with_indices(-1), "X has an entry in column -1, must have entries in columns 0 to 2"),
    (with_indices(4, "csc"), "X has an entry in row 4, must have entries in rows 0 to 3"),
    (with_indptr(-1, 1 << 62), "values that rise from 0 to at most 7"),
    (with_indptr(1, 6), "its indptr must rise"),
    (with_indptr(0, -1), "its indptr must rise"),
]


@pytest.mark.parametrize("model", OURS)
@pytest.mark.parametrize(("X", "sentence"), BROKEN)
def test_sparse_matrices_with_entries_outside(model, X, sentence):
    """Fit and predict reject them, instead of reading and writing other memory."""
    fitted = create_model(model).fit(np.array(COUNTS, dtype=float), LABELS)

    with pytest.raises(ValueError, match=sentence):
        create_model(model).fit(X, LABELS)
    with pytest.raises(ValueError, match=sentence):
        fitted.predict(X)


@pytest.mark.parametrize(("X", "sentence"), BROKEN)
def test_other_readers_of_sparse_matrices(X, sentence):
    """Tables of counts, weights and targets check them, too."""
    with pytest.raises(ValueError, match=sentence):
        LabelSetCounts.from_matrix(X, read_targets(LABELS))
    with pytest.raises(ValueError, match=sentence):
        TermWeights().fit(X)
    with pytest.raises(ValueError, match=sentence.replace("X", "Y")):
        read_targets(X)


@pytest.mark.parametrize(
    ("Y", "sentence"),
    [
        ([[1, 2], [3]], "Y has 1 for document 0, must have collections of strings"),
        ([["a"], [1]], "Y has 1 for document 1, must have collections of strings"),
        ([["a", None], ["b"]], "Y has None for document 0, must have collections of strings"),
        ([[None], [None]], "Y has None for document 0, must have collections of strings"),
        ([["a"], "b"], r"Y has \['a'\] for document 0, must have collections of strings"),
        ([{1}, {2}], "Y has 1 for document 0, must have collections of strings"),
        (pd.Series(["a", None]), "Y has None for a document"),
        (np.array(["a", 1], dtype=object), "label ids have several types"),
        (5, "Y is a int, must have labels for each document"),
        ("ab", "Y is a str, must have labels for each document"),
        ({"a", "b"}, "Y is a set, must have labels for each document"),
    ],
)
def test_targets_of_no_form(Y, sentence):
    """What is no target is named, with the place where it is wrong."""
    with pytest.raises((ValueError, TypeError), match=sentence):
        read_targets(Y)


def test_the_exact_solver_without_words():
    """Documents without words teach nothing but the most frequent label set."""
    model = MML(solver="exact").fit(np.zeros((4, 3)), LABELS)

    assert model.predict(np.zeros((1, 3))).tolist() == [[1, 0]]


@pytest.mark.parametrize(
    ("model", "value", "same"),
    [
        (PMM1(), {"temperature": np.float16(0.5)}, 0.5),
        (PMM2(), {"bias_smoothing": np.uint8(255)}, 255.0),
        (CoL(n_topics=2, max_iter=3), {"batch_size": np.uint8(255)}, 255),
        (CoL(n_topics=2, max_iter=3), {"smoothing": Fraction(1, 4)}, 0.25),
    ],
)
def test_numbers_of_few_bits(model, value, same):
    """A parameter of another type of number gives the same model; nothing overflows."""
    X, ((name, _),) = np.array(COUNTS, dtype=float), value.items()

    one = clone(model).set_params(**value).fit(X, LABELS)

    other = clone(model).set_params(**{name: same}).fit(X, LABELS)
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))


def test_a_tiny_smoothing_of_biases():
    """The logarithm of a bias that is rounded to 0 does not make the objective infinite."""
    model = PMM2(bias_smoothing=1e-30).fit(np.array(COUNTS, dtype=float), LABELS)

    assert np.isfinite(model.objective_)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (MML(calibrate="no"), "calibrate must be an instance of"),
        (MML(solver="exact", similarity=b"x"), "similarity is a bytes, must be dice"),
        (MML(solver="exact", similarity=10**400), "similarity is a int, must be dice"),
        (LinearSVM(max_iter=2**63), "max_iter == 9223372036854775808, must be <= 2147483647"),
        (Stack(members=None), "members == None, must be a tuple of one model or more"),
    ],
)
def test_parameters_beyond_their_borders(model, sentence):
    """The message names the parameter, and says what it may be."""
    with pytest.raises((ValueError, TypeError), match=sentence):
        model.fit(np.array(COUNTS, dtype=float), LABELS)
