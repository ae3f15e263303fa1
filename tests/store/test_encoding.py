"""Counts and label sets as bytes and JSON, and digests of documents."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from polytopic.errors import DamagedError
from polytopic.store.encoding import (
    MultisetDigest,
    decode_rows,
    document_digests,
    encode_rows,
    label_set_key,
    to_json,
)
from tests.strategies import TERMS

ROWS = st.lists(
    st.dictionaries(
        st.integers(0, 9),
        st.sampled_from([1, 7, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**53 - 1]),
        max_size=4,
    ),
    max_size=6,
)
PAIRS = st.lists(st.tuples(st.sampled_from(['["a"]', '["a", "b"]']), st.binary(max_size=3)))


def matrix_of(rows, n_columns=10):
    """Return rows of counts by column as a matrix that keeps the order within rows."""
    indices = [column for row in rows for column in row]
    data = np.array([n for row in rows for n in row.values()], dtype=np.float64)
    ends = np.cumsum([0, *map(len, rows)])
    return sparse.csr_matrix((data, indices, ends), shape=(len(rows), n_columns))


@given(ROWS)
def test_decoding_undoes_encoding(rows):
    """Counts are decoded as they were, whatever their width, in the same order."""
    matrix = matrix_of(rows)

    decoded = decode_rows(*encode_rows(matrix), n_columns=10)

    assert decoded.shape == matrix.shape
    assert decoded.indptr.tolist() == matrix.indptr.tolist()
    assert decoded.indices.tolist() == matrix.indices.tolist()
    assert decoded.data.tolist() == matrix.data.tolist()


@pytest.mark.parametrize(
    ("largest", "width"),
    [(255, 1), (256, 2), (65535, 2), (65536, 4), (2**32 - 1, 4), (2**32, 8), (2**53 - 1, 8)],
)
def test_counts_take_few_bytes(largest, width):
    """A row takes as many bytes per number as its largest one needs, whatever other rows need."""
    columns, values = encode_rows(matrix_of([{3: 1, 1: largest}, {}, {0: 1}]))

    assert [len(part) for part in columns] == [8, 0, 4]
    assert [len(part) for part in values] == [2 * width, 0, 1]


@pytest.mark.parametrize(
    ("columns", "values"),
    [(b"\1\0\0\0", b""), (b"", b"\1"), (b"\1\0\0\0", b"\1\1\1"), (b"\12\0\0\0", b"\1")],
)
def test_unpack_rejects_what_does_not_fit(columns, values):
    """Bytes that pack cannot have produced are rejected."""
    with pytest.raises(DamagedError, match="counts"):
        decode_rows([columns], [values], n_columns=10)


@given(PAIRS, st.randoms(use_true_random=False), st.integers(0, 5))
def test_digest_does_not_depend_on_order(pairs, random, cut):
    """The same pairs have the same digest, in any order and in any batches."""
    whole = MultisetDigest().with_changes(pairs)
    shuffled = random.sample(pairs, len(pairs))

    steps = MultisetDigest().with_changes(shuffled[:cut]).with_changes(shuffled[cut:])

    assert steps == whole
    assert steps.text == whole.text


@given(PAIRS, PAIRS)
def test_removing_undoes_adding(one, other):
    """Adding and removing leaves the digest as it was, at once or in steps."""
    before = MultisetDigest().with_changes(one)

    assert before.with_changes(other).with_changes([], other) == before
    assert before.with_changes(other, other) == before


@given(PAIRS, PAIRS)
def test_other_pairs_have_another_digest(one, other):
    """Two multisets have the same digest only if they are the same."""
    same = sorted(one) == sorted(other)

    assert (MultisetDigest().with_changes(one) == MultisetDigest().with_changes(other)) == same


def test_digest_counts_repetitions():
    """How often a pair occurs matters, up to 65,535 times."""
    pair = ('["a"]', b"x")
    digests = [MultisetDigest().with_changes([pair] * n) for n in (0, 1, 2, 65_535)]

    assert len({digest.text for digest in digests}) == 4


def test_digest_ignores_what_is_not_counted():
    """Bags without labels do not change the digest."""
    assert MultisetDigest().with_changes([("[]", b"x")]) == MultisetDigest()


@given(st.lists(st.dictionaries(st.sampled_from(TERMS), st.integers(1, 3)), min_size=1))
def test_document_digests_depend_on_the_bag_alone(bags):
    """Neither the other documents of a batch nor their terms matter; any other bag differs."""

    def digests(batch):
        terms = sorted({term for bag in batch for term in bag})
        rows = [{terms.index(term): bag[term] for term in sorted(bag)} for bag in batch]
        return document_digests(matrix_of(rows, len(terms)), terms)

    together = digests(bags)

    assert together == [digests([bag])[0] for bag in bags]
    for bag, digest in zip(bags, together, strict=True):
        same = [other == bag for other in bags]
        assert [other == digest for other in together] == same


def test_label_sets_have_one_form():
    """A label set is stored sorted, and its key is that of the stored text."""
    assert to_json({"b", "a", "ä"}) == '["a", "b", "ä"]'
    assert label_set_key(to_json(["b", "a"])) == label_set_key('["a", "b"]')
    assert label_set_key('["a"]') != label_set_key('["a", "b"]')
