"""The table of counts: sums by label set, and their laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from polytopic.corpus import Document
from polytopic.counts import LabelSetCounts, canonical_counts, group_rows
from polytopic.labels import read_targets
from tests import naive
from tests.strategies import bags, matrices


@given(bags())
def test_table_is_the_sum_by_label_set(pairs):
    """Each label set holds the words of its documents, whatever their order."""
    expected = naive.label_set_table([b for b, _ in pairs], [y for _, y in pairs])

    counts = LabelSetCounts(pairs)

    assert counts.label_sets == sorted(expected)
    for row, labels in enumerate(counts.label_sets):
        documents, words = expected[labels]
        row_counts = dict(zip(counts.terms, counts.matrix[row].toarray()[0], strict=True))
        assert counts.set_docs[row] == documents
        assert {t: n for t, n in row_counts.items() if n} == {t: n for t, n in words.items() if n}


@given(bags())
def test_document_frequency_counts_documents(pairs):
    """A term's document frequency is the number of labelled documents with it."""
    counts = LabelSetCounts(pairs)

    expected = [sum(1 for bag, y in pairs if y and bag.get(term)) for term in counts.terms]
    assert counts.document_frequency.tolist() == expected
    assert all(expected)
    assert counts.n_docs == sum(1 for _, y in pairs if y)


@given(bags(), bags())
def test_remove_undoes_add(one, other):
    """After adding and removing, the counts are exactly as before."""
    counts = LabelSetCounts(one)
    before = counts.copy()

    counts.add(other)
    counts.remove(other)

    assert counts == before
    assert counts.matrix.data.tobytes() == before.matrix.data.tobytes()


@given(bags(), bags(), bags())
def test_sums_do_not_depend_on_order(a, b, c):
    """Adding is commutative and associative, in one batch or in many."""
    tables = [LabelSetCounts(part) for part in (a, b, c)]

    together = LabelSetCounts([*c, *a, *b])

    assert (tables[0] + tables[1]) + tables[2] == together
    assert tables[2] + (tables[1] + tables[0]) == together
    assert together - tables[1] == tables[0] + tables[2]


@given(bags(), st.integers(0, 3))
def test_weights_repeat_documents(pairs, weight):
    """An integer weight is the document that many times; weight 0 leaves it out."""
    documents, labels = [b for b, _ in pairs], [sorted(y) for _, y in pairs]
    weighted = LabelSetCounts()

    weighted.add(documents, labels, sample_weight=np.full(len(pairs), weight))

    assert weighted == LabelSetCounts(pairs * weight)


@given(matrices())
def test_matrix_and_bags_agree(corpus):
    """A matrix with named columns gives the table of the same bags of words."""
    X, Y = corpus
    names = [f"w{word}" for word in range(X.shape[1])]
    rows = [dict(zip(names, row.tolist(), strict=True)) for row in X]
    labels = [[f"l{label}" for label in np.flatnonzero(y)] for y in Y]

    table = LabelSetCounts.from_matrix(X, read_targets(labels), terms=names)

    assert table == LabelSetCounts(zip(rows, labels, strict=True))


@given(matrices(max_docs=30, n_labels=70))
def test_group_rows_numbers_equal_rows(corpus):
    """Equal rows share a number, and numbers follow the sorted label sets."""
    Y = sparse.csr_matrix(corpus[1])
    rows = [tuple(np.flatnonzero(row)) for row in corpus[1]]
    order = sorted(set(rows))

    assert group_rows(Y).tolist() == [order.index(row) for row in rows]


@pytest.mark.parametrize(
    "gone",
    [
        [({"goal": 1}, ["film"])],
        [({"goal": 3}, ["sport"])],
        [({"moon": 1}, ["sport"])],
        [({"goal": 1}, ["sport"]), ({}, ["sport"])],
        [({"goal": 2, "ball": 1, "x": 0}, ["sport", "film"])],
    ],
)
def test_remove_refuses_what_was_not_there(gone):
    """A count that would turn negative, or words left without documents, are rejected."""
    counts = LabelSetCounts([({"goal": 2, "ball": 1}, ["sport"])])
    before = counts.copy()

    with pytest.raises(ValueError, match="cannot be removed; nothing was changed"):
        counts.remove(gone)
    assert counts == before


def test_fractions_are_not_exact():
    """With fractional weights the table works, says that it is not exact, and cannot forget."""
    counts = LabelSetCounts()
    counts.add([{"goal": 1}], [["sport"]], sample_weight=[0.5])

    assert not counts.exact
    assert counts.n_docs == 0.5
    with pytest.raises(ValueError, match="not all integers"):
        counts.remove([({"goal": 1}, ["sport"])])


def test_huge_counts_are_not_exact():
    """Integers from 2^53 on have gaps."""
    assert not LabelSetCounts([({"goal": 2.0**53}, ["sport"])]).exact
    assert LabelSetCounts([({"goal": 2.0**53 - 1}, ["sport"])]).exact


def test_documents_can_be_added():
    """A document with counts is counted as it is."""
    counts = LabelSetCounts([Document(id="1", counts={"goal": 2}, labels=["sport"])])

    assert counts.label_sets == [("sport",)]
    assert counts.terms == ("goal",)


def test_tables_of_other_columns_do_not_mix():
    """Both sides must have the same number of numbered columns."""
    one, other = LabelSetCounts(), LabelSetCounts()
    one.add(np.ones((1, 3)), [["a"]])
    other.add(np.ones((1, 4)), [["a"]])

    with pytest.raises(ValueError, match="3 and 4 columns do not fit together"):
        one + other


@given(bags())
def test_arrays_round_trip(pairs):
    """The table comes back from its arrays."""
    counts = LabelSetCounts(pairs)

    again = LabelSetCounts.from_arrays(
        counts.to_arrays(), labels=counts.labels, terms=counts.terms, exact=counts.exact
    )

    assert again == counts


def test_negative_counts_are_refused():
    """Negative and infinite counts are rejected."""
    with pytest.raises(ValueError, match=r"numbers from 0 to 1e\+100"):
        LabelSetCounts([({"goal": -1}, ["sport"])])


def test_more_words_than_documents_can_have_had():
    """Two documents with two goals each are not one with four."""
    counts = LabelSetCounts([({"goal": 2}, ["sport"])] * 2)

    with pytest.raises(ValueError, match="cannot be removed"):
        counts.remove([({"goal": 4}, ["sport"])])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([[1.0, -1.0]], [["a"]]), r"numbers from 0 to 1e\+100"),
        (([[1.0, np.nan]], [["a"]]), r"numbers from 0 to 1e\+100"),
        (([[1.0, 1e300]], [["a"]]), r"numbers from 0 to 1e\+100"),
    ],
)
def test_bad_matrices_are_refused(arguments, sentence):
    """The counts of a matrix are checked like those of bags of words."""
    X, Y = arguments

    with pytest.raises(ValueError, match=sentence):
        LabelSetCounts().add(np.array(X), Y)
    with pytest.raises(ValueError, match=sentence):
        LabelSetCounts().add(np.ones((1, 2)), Y, sample_weight=[-1])
    with pytest.raises(ValueError, match="needs one number for each of 1 documents"):
        LabelSetCounts().add(np.ones((1, 2)), Y, sample_weight=[1, 2])


def test_documents_without_counts_are_refused():
    """A text must be counted first."""
    with pytest.raises(ValueError, match="document '7' has no counts"):
        LabelSetCounts([Document(id="7", text="goal", labels=["sport"])])


def test_heavy_documents_are_not_exact():
    """Weights count towards the limit of exact numbers too."""
    counts = LabelSetCounts()
    counts.add([{}], [["a"]], sample_weight=[2.0**53])

    assert not counts.exact


def _pairs():
    """Return three documents, two of one label set."""
    return [({"a": 2, "b": 1}, ["x"]), ({"b": 3}, ["x", "y"]), ({"c": 1}, ["x", "y"])]


def test_the_most_frequent_label_set():
    """It is given by its row; of several, the first."""
    assert LabelSetCounts(_pairs()).most_frequent == 1
    assert LabelSetCounts(_pairs()[:2]).most_frequent == 0


def test_some_columns_under_other_names():
    """The view has their counts and documents, and the table stays as it is."""
    counts = LabelSetCounts(_pairs())

    view = counts.select([2, 0], ("z", "a"))

    assert view.terms == ("z", "a")
    assert view.matrix.toarray().tolist() == [[0, 2], [1, 0]]
    assert view.matrix.has_sorted_indices
    assert view.document_frequency.tolist() == [1, 1]
    assert view.label_sets == counts.label_sets
    assert counts == LabelSetCounts(_pairs())


def test_a_table_is_shown_by_its_size():
    """In one line, and in bytes."""
    counts, larger = LabelSetCounts(_pairs()), LabelSetCounts([*_pairs(), ({"d": 1}, ["z"])])
    numbered = LabelSetCounts.from_matrix(np.eye(3), read_targets(np.eye(3)))

    assert repr(counts) == "<LabelSetCounts: 3 documents, 2 label sets, 3 terms>"
    n_bytes = sum(array.nbytes for array in counts.to_arrays().values())
    assert counts.__sizeof__() == n_bytes + len("abc")
    assert larger.__sizeof__() > counts.__sizeof__()
    n_bytes = sum(array.nbytes for array in numbered.to_arrays().values())
    assert numbered.__sizeof__() == n_bytes


def test_documents_and_labels_must_be_equally_many():
    """The error states both numbers."""
    with pytest.raises(
        ValueError, match="X has 3 documents and Y has 2; the numbers must be equal"
    ):
        LabelSetCounts.from_matrix(np.eye(3), read_targets(np.eye(2)))


def test_cells_that_come_twice_are_added():
    """A matrix in any form is one of sums, and zeros in it are no words."""
    X = sparse.csr_matrix(([1.0, 2.0, 0.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))

    counts = LabelSetCounts.from_matrix(X, read_targets([["x"], ["y"]]))

    assert counts.matrix.toarray().tolist() == [[3, 0], [0, 0]]
    assert counts.document_frequency.tolist() == [1, 0]
    assert counts.matrix.nnz == 1


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"set_indices": [0, 1, 0], "set_indptr": [0, 2, 3]}, "must be sorted and distinct"),
        ({"set_indices": [0, 0], "set_indptr": [0, 1, 2]}, "must be sorted and distinct"),
        ({"set_indices": [0, 2], "set_indptr": [0, 1, 2]}, "a label has no label set"),
        ({}, "a label has no label set"),
        ({"document_frequency": [1.0, 4.0, 1.0]}, "a term is in more documents than there are"),
        ({"set_docs": [1.5, 2.0]}, "counts are not all integers"),
        ({"data": [2.5, 1.0, 3.0, 1.0]}, "counts are not all integers"),
        ({"document_frequency": [0.5, 2.0, 1.0]}, "counts are not all integers"),
        ({"data": [2.0, 1.0, 2.0**53, 1.0]}, "counts are not all integers"),
        ({"data": [2.0, 1.0, 2.0**53 - 3, 1.0]}, "counts are not all integers"),
    ],
    ids=str,
)
def test_arrays_that_are_no_table(changed, sentence):
    """Tables that no documents could add up to are rejected."""
    counts = LabelSetCounts(_pairs())
    labels = ("x", "y", "z") if "no label set" in sentence else counts.labels
    arrays = counts.to_arrays() | {
        name: np.array(values, dtype=np.int64 if "ind" in name else np.float64)
        for name, values in changed.items()
    }

    with pytest.raises(ValueError, match=sentence):
        LabelSetCounts.from_arrays(arrays, labels=labels, terms=counts.terms, exact=True)


def test_arrays_at_the_border():
    """Every document may have a term, and sums below 2^53 are exact."""
    counts = LabelSetCounts(_pairs())
    arrays = counts.to_arrays()
    arrays["document_frequency"] = np.array([1.0, 3.0, 1.0])
    arrays["data"] = np.array([2.0, 1.0, 2.0**53 - 5, 1.0])

    again = LabelSetCounts.from_arrays(arrays, labels=counts.labels, terms=counts.terms, exact=True)

    assert again.matrix.data.tolist() == arrays["data"].tolist()


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float32])
def test_counts_are_of_double_precision(dtype):
    """Whatever they come in: sums of bytes would overflow."""
    counts = canonical_counts(sparse.csr_matrix(np.array([[100, 100]], dtype=dtype)))

    assert counts.dtype == np.float64
    assert counts.sum() == 200
