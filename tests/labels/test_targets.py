"""Label spaces, and the forms of targets."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from polytopic.labels import LabelSpace, read_targets, with_fallback

ROWS = [["a", "b"], [], ["b"]]
DENSE = np.array([[1, 1], [0, 0], [0, 1]])


@given(st.lists(st.sets(st.text(min_size=1, max_size=3), max_size=4), max_size=6))
def test_encode_and_decode(rows):
    """Decoding an indicator gives the label sets in sorted order."""
    space = LabelSpace(label for row in rows for label in row)

    assert space.decode(space.encode(rows)) == [sorted(row) for row in rows]


def test_names_by_language():
    """A label has names in several languages; without one, its id is its name."""
    space = LabelSpace(
        ["t1", "t2", "t3"], names={"t1": {"en": "Space", "cs": "Vesmír"}, "t2": "Film"}
    )

    assert [space.name("t1", "cs"), space.name("t1", "de"), space.name("t2"), space.name("t3")] == [
        "Vesmír",
        "Space",
        "Film",
        "t3",
    ]
    assert space.index("t2") == 1
    assert "t9" not in space
    with pytest.raises(ValueError, match="label 't9' is not known"):
        space.index("t9")


@pytest.mark.parametrize(
    ("Y", "kind"),
    [
        (ROWS, "names"),
        ([set(row) for row in ROWS], "names"),
        (tuple(map(tuple, ROWS)), "names"),
        ((row for row in ROWS), "names"),
        (pd.Series(ROWS), "names"),
        (np.array([*ROWS, None], dtype=object)[:3], "names"),
        (DENSE, "dense"),
        (DENSE.tolist(), "dense"),
        (DENSE.astype(bool), "dense"),
        (pd.DataFrame(DENSE), "dense"),
        (pd.DataFrame(DENSE).astype("Int64"), "dense"),
        (sparse.csr_matrix(DENSE), "sparse"),
        (sparse.coo_array(DENSE), "sparse"),
        (sparse.csc_matrix(DENSE), "sparse"),
    ],
)
def test_forms(Y, kind):
    """Targets may be collections of names or matrices of 0 and 1, in any container."""
    targets = read_targets(Y)

    assert targets.form.kind == kind
    assert targets.Y.toarray().tolist() == DENSE.tolist()
    assert targets.labels == (("a", "b") if kind == "names" else (0, 1))


@pytest.mark.parametrize(
    ("y", "labels"),
    [(["b", "a", "b"], ("a", "b")), ([2, 0, 2], (0, 2)), (np.array([True, False]), (False, True))],
)
def test_one_label_per_document(y, labels):
    """A 1-D target has one label per document."""
    targets = read_targets(y)

    assert targets.form.kind == "single"
    assert targets.labels == labels
    assert (targets.Y.sum(axis=1) == 1).all()


def test_arrays_of_strings_are_names():
    """A 2-D array of strings with two columns has two labels per document."""
    assert read_targets(np.array([["a", "b"], ["b", "c"]])).labels == ("a", "b", "c")


def test_the_callers_matrix_is_left_alone():
    """Stored zeros, unsorted indices and duplicate entries are read, and not changed."""
    Y = sparse.csr_matrix(([1.0, 0.0, 1.0, 1.0], [1, 0, 0, 1], [0, 2, 4]), shape=(2, 2))
    before = Y.indices.copy(), Y.data.copy()
    for array in (Y.indices, Y.data, Y.indptr):
        array.setflags(write=False)

    targets = read_targets(Y)

    assert targets.Y.toarray().tolist() == [[0, 1], [1, 1]]
    assert (Y.indices == before[0]).all()
    assert (Y.data == before[1]).all()
    twice = sparse.csr_matrix(([1.0, 1.0], [0, 0], [0, 2]), shape=(1, 2))
    with pytest.raises(ValueError, match="values other than 0 and 1"):
        read_targets(twice)


@pytest.mark.parametrize(
    ("Y", "sentence"),
    [
        (None, "target y is None"),
        ([["a"], None], "Y has None for a document"),
        ([[0, 2]], "values other than 0 and 1"),
        ([0.5, 1.5], "Unknown label type"),
        ([1.0, np.nan], "NaN or infinity"),
    ],
)
def test_invalid_targets(Y, sentence):
    """The error says in one sentence what is wrong."""
    with pytest.raises(ValueError, match=sentence):
        read_targets(Y)


def test_labels_of_two_kinds_do_not_sort():
    """Labels of both kinds are rejected, as they have no common order."""
    with pytest.raises(TypeError, match="must be all strings or all numbers"):
        LabelSpace([1, "a"])


def test_fallback_for_documents_without_words():
    """A stored zero is not a word."""
    X = sparse.csr_matrix(([1.0, 0.0], [0, 0], [0, 1, 2]), shape=(2, 1))
    Y = sparse.csr_matrix([[1.0, 0, 0], [1, 0, 0]])

    assert with_fallback(X, Y, [1, 2]).toarray().tolist() == [[1, 0, 0], [0, 1, 1]]
    assert X.nnz == 2  # the argument does not change


def test_spaces_are_values():
    """Spaces with the same ids and names are equal; ids are sorted."""
    space = LabelSpace(["b", "a"], {"a": "A"})

    assert list(space) == ["a", "b"]
    assert len(space) == 2
    assert "a" in space
    assert "A" not in space
    assert space == LabelSpace(["a", "b"], {"a": "A"})
    assert hash(space) == hash(LabelSpace(["a", "b"], {"a": "A"}))
    assert space != LabelSpace(["a", "b"])
    assert space != LabelSpace(["a", "c"], {"a": "A"})
    assert space != ["a", "b"]
    assert repr(space) == "LabelSpace(['a', 'b'])"


def test_labels_that_a_space_does_not_know():
    """The error names the label."""
    space = LabelSpace(["a", "b"])

    for call in (lambda: space.index("c"), lambda: space.encode([["a"], ["b", "c"]])):
        with pytest.raises(ValueError, match="label 'c' is not known"):
            call()


def test_targets_over_more_labels():
    """Columns move to the places of their labels; the error names a missing label."""
    targets = read_targets([["b"], ["a", "c"], []])

    wider = targets.over(["z", "c", "b", "a", "0"])

    assert wider.toarray().tolist() == [[0, 0, 1, 0, 0], [0, 1, 0, 1, 0], [0] * 5]
    assert targets.names() == [["b"], ["a", "c"], []]
    with pytest.raises(ValueError, match="label 'c' is not known"):
        targets.over(["a", "b"])


def test_targets_under_other_names():
    """Labels that get the same name are merged; the form stays."""
    targets = read_targets([["b"], ["a", "c"], ["a", "b", "c"]])

    renamed = targets.rename({"a": "x", "c": "x"})

    assert renamed.labels == ("b", "x")
    assert renamed.Y.toarray().tolist() == [[1, 0], [0, 1], [1, 1]]
    assert renamed.form == targets.form
    assert read_targets(np.eye(2)).rename({}).form.kind == "dense"


def test_mixed_forms():
    """Dense and sparse indicators may be mixed, names and indicators may not."""
    forms = {
        "names": read_targets([["a"]]).form,
        "dense": read_targets(np.eye(2)).form,
        "sparse": read_targets(sparse.csr_matrix(np.eye(2))).form,
        "single": read_targets(np.array(["a", "b"])).form,
    }

    mixed = {
        (a, b) for a, one in forms.items() for b, two in forms.items() if one.is_compatible(two)
    }

    assert mixed == {(kind, kind) for kind in forms} | {("dense", "sparse"), ("sparse", "dense")}
    assert [form.is_indicator for form in forms.values()] == [False, True, True, False]


def test_predictions_have_the_form_of_targets():
    """A dense indicator stays dense and a sparse one sparse, with the same type."""
    Y = np.array([[1, 0], [1, 1]], dtype=np.int8)
    answer = sparse.csr_matrix(Y, dtype=float)

    dense = read_targets(Y).form.convert(answer)
    thin = read_targets(sparse.csr_matrix(Y)).form.convert(answer)
    names = read_targets([["a"]]).form.convert(answer)

    assert isinstance(dense, np.ndarray)
    assert sparse.issparse(thin)
    assert dense.dtype == thin.dtype == np.int8
    assert names.dtype == np.int64
    assert dense.tolist() == thin.toarray().tolist() == names.tolist() == Y.tolist()


def test_a_column_of_labels():
    """A column is read as one label per document, with a warning."""
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        targets = read_targets(np.array([[3], [5], [3]]))

    assert targets.form.kind == "single"
    assert targets.labels == (3, 5)


def test_a_matrix_of_other_types():
    """An indicator must contain numbers."""
    with pytest.raises(ValueError, match="Y is a matrix of "):
        read_targets(np.array([[1j, 0], [0, 1]]))


def test_no_fallback_is_needed():
    """If every document has words, label sets stay as they are."""
    Y = sparse.csr_matrix(np.eye(2))

    assert with_fallback(np.eye(2), Y, [0]) is Y


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_documents_without_words_get_the_fallback(form):
    """The fallback applies to documents in any form."""
    X = form([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 2.0, 0.0]])
    Y = sparse.csr_matrix([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])

    filled = with_fallback(X, Y, [1])

    assert filled.toarray().tolist() == [[0, 1], [1, 0], [1, 0]]
