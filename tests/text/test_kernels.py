"""Compiled loops over texts compared with their slow twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polytopic.text import kernels
from polytopic.text.dictionary import _DIGEST_SIZE, MappedDictionary, content
from polytopic.text.kernels import PADDING, Slots
from polytopic.text.packed_words import byte_view, pack, word_view
from polytopic.text.tokens import TokenPattern

from ..twins import text as twins

WORDS = st.sampled_from(["a", "b", "ab", "oil", "é", "abcdefg", "abcdefgh", "x" * 14, "x" * 15]) | (
    st.integers(1, 60).map(lambda n: "internationalisation"[: n % 20 + 1] * (n // 20 + 1))
)
TOKENS = st.lists(WORDS, max_size=30).map(lambda words: [word.encode() for word in words])
TEXTS = st.text(st.sampled_from("aabZéß'’-9 \u0301\u200d𝒳😀\n"), max_size=60)


def padded(data):
    """Return bytes as the kernels read them: bytes and words."""
    data = data + bytes(PADDING)
    return byte_view(data), word_view(data)


def bounds_of(words):
    """Return packed words, and where each starts and ends."""
    packed = twins.pack_tokens(words)
    starts, ends = twins.packed_bounds(packed)
    return packed, np.array(starts, np.int64), np.array(ends, np.int64)


class Table:
    """A table of tokens, filled by `number_tokens`."""

    def __init__(self, words):
        packed, starts, ends = bounds_of(words)
        self.index = np.full(4 << len(words).bit_length(), -1, np.int32)
        self.rows = np.empty((len(words) + 1, 4), np.int64)
        self.letters, self.used = np.zeros(len(packed) + PADDING, np.uint8), np.zeros(2, np.int64)
        self.numbers = np.empty(len(words), np.int32)
        state = self.index, self.rows, self.letters, self.used, self.numbers
        kernels.number_tokens(*padded(packed), starts, ends, *state)


@pytest.mark.parametrize("settings", [(False, False), (True, True)])
@given(text=TEXTS)
def test_find_bounds(settings, text):
    """Tokens are the matches of a regular expression over character classes."""
    numbers, hyphens = settings
    kinds = TokenPattern(numbers=numbers, hyphens=hyphens).kinds(0xFF)
    data = padded(text.encode())[0]
    bounds = np.empty(data.size + 1, np.int64)

    n = kernels.find_bounds(data, kinds, bounds)

    assert bounds[:n].tolist() == twins.find_bounds(text, kinds)


@given(known=TOKENS, words=TOKENS, dropped=st.integers(1, 4))
def test_find_and_add_tokens(known, words, dropped):
    """A table finds the terms that were added first, and drops tokens without a term."""
    terms = [-1 if k % dropped == 0 else k for k in range(len(known))]
    packed, starts, ends = bounds_of(known)
    slots = Slots(
        np.full(4 << len(known).bit_length(), -1, np.int32),
        np.empty((len(known) + 1, 4), np.int64),
        *padded(packed),
    )
    term_of = {}
    twins.add_tokens(term_of, known, terms)

    n = kernels.add_tokens(slots, 0, starts, ends, np.array(terms, np.int32))
    packed, starts, ends = bounds_of(words)
    numbers, n_terms = np.empty(len(words), np.int32), np.zeros(1, np.int64)
    new, sizes = np.empty((3, len(words)), np.int64), np.array([len(packed)])
    bounds = np.column_stack([starts, ends]).ravel()
    n_new = kernels.find_tokens(*padded(packed), sizes, bounds, slots, numbers, n_terms, new)

    assert n == len(term_of)
    assert numbers[: n_terms[0]].tolist() == twins.find_tokens(words, term_of)
    unknown = [word for word in words if word not in term_of]
    assert [packed[start:end] for _, start, end in new[:, :n_new].T] == unknown
    assert all(numbers[place] == -1 for place in new[0, :n_new])


@given(words=TOKENS, others=TOKENS)
def test_number_and_know_tokens(words, others):
    """Equal tokens have one number, and those with a number are known."""
    number_of = {}
    expected = twins.number_tokens(words, number_of)

    table = Table(words)
    packed, starts, ends = bounds_of(others)
    known = np.empty(len(others), bool)
    kernels.are_known(*padded(packed), starts, ends, table.index, table.rows, table.letters, known)

    assert table.numbers.tolist() == expected
    assert table.letters[: table.used[1]].tobytes() == twins.pack_tokens(number_of)
    assert known.tolist() == twins.are_known(others, number_of)


@given(words=TOKENS)
def test_pack_tokens_and_their_bounds(words):
    """Packed tokens have a zero after each, and are found again."""
    packed, starts, ends = bounds_of(words)
    letters = np.empty(len(packed), np.uint8)
    bounds = np.empty((2, len(words) + 1), np.int64)

    kernels.pack_tokens(byte_view(packed), starts, ends, letters)
    kernels.packed_bounds(byte_view(packed), *bounds)

    assert letters.tobytes() == packed
    assert bounds[:, : len(words)].tolist() == [starts.tolist(), ends.tolist()]


@given(words=TOKENS)
def test_index_tokens(words):
    """Each token takes the first empty slot, starting at the one of its hash."""
    table = Table(words)
    n = int(table.used[0])
    alone = [np.full(table.index.size, -1, np.int32) for _ in range(n)]
    for row, index in enumerate(alone):
        kernels.index_tokens(table.rows[row:], 1, index)

    index = np.full(table.index.size, -1, np.int32)
    kernels.index_tokens(table.rows, n, index)

    hashes = [int(own.argmax()) for own in alone]
    assert index.tolist() == twins.index_tokens(hashes, index.size)


@given(entries=st.dictionaries(WORDS, WORDS, min_size=1), others=TOKENS)
def test_find_lemmas(entries, others):
    """Words are found in their slots, and no others."""
    data = bytes(_DIGEST_SIZE) + b"".join(content(entries))
    first = int.from_bytes(data[_DIGEST_SIZE : _DIGEST_SIZE + 4], "little")
    places = np.frombuffer(data[_DIGEST_SIZE:first], np.uint32)
    words = [*(word.encode() for word in entries), *others]
    packed, starts, ends = bounds_of(words)
    bounds = np.empty((2, len(words)), np.int64)

    kernels.find_lemmas(byte_view(packed), starts, ends, byte_view(data), places, *bounds)

    expected = twins.find_lemmas(words, data, places)
    assert [data[start:end] for start, end in bounds.T] == expected
    assert expected[: len(entries)] == [lemma.encode() for lemma in entries.values()]
    assert MappedDictionary(data).lemmas(pack(w.decode() for w in words)) == twins.pack_tokens(
        expected
    )


@given(numbers=st.lists(st.integers(-1, 9)), known=st.integers(0, 10))
def test_number_columns(numbers, known):
    """A term gets its column when it first occurs; -1 stays -1."""
    columns = np.array([*range(known), *[-2] * (10 - known)], dtype=np.int32)
    own = columns.tolist()
    places, new = np.empty(len(numbers), np.int32), np.empty(len(numbers), np.int32)

    n_new = kernels.number_columns(np.array(numbers, np.int32), columns, known, places, new)

    assert (places.tolist(), new[:n_new].tolist()) == twins.number_columns(numbers, own, known)
    assert columns.tolist() == own


@given(
    table=st.lists(
        st.lists(st.tuples(st.sampled_from([1.0, 2.0, 0.5]), st.lists(st.integers(-1, 299)))),
        max_size=5,
    ),
    is_ordered=st.booleans(),
)
def test_sum_rows(table, is_ordered):
    """Rows hold the sums of the weights of their entries, sorted by column."""
    order = np.random.default_rng(0).permutation(300).astype(np.int32)
    order = order if is_ordered else order[:0]
    parts = [part for row in table for part in row]
    columns = np.array([c for _, own in parts for c in own], np.int32)
    data, indices = np.empty(columns.size), np.empty(columns.size, np.int32)
    sizes, row_parts = np.empty(len(table), np.int64), np.array([*map(len, table)], np.int64)
    part_sizes = np.array([len(own) for _, own in parts], np.int64)
    weights = np.array([weight for weight, _ in parts])

    n = kernels.sum_rows(columns, order, part_sizes, weights, row_parts, 300, data, indices, sizes)

    ends = np.cumsum(sizes).tolist()
    rows = [
        dict(zip(indices[end - size : end].tolist(), data[end - size : end].tolist(), strict=True))
        for size, end in zip(sizes.tolist(), ends, strict=True)
    ]
    assert n == sum(map(len, rows))
    assert [list(row.items()) for row in rows] == [
        list(row.items()) for row in twins.sum_rows(table, order.tolist())
    ]
