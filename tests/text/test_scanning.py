"""Compiled counting compared with the regular expression and the lexicon."""

import re
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polytopic.text import Analyzer, Vocabulary, counting, lexicon, packed_words
from polytopic.text.counting import scan
from polytopic.text.kernels import CONTINUES, JOINS, STARTS
from polytopic.text.packed_words import GrowingTable, Terms, TokenTable, pack
from polytopic.text.tokens import TokenPattern

ANY_STRING = st.text(st.characters(codec=None), max_size=60)
WORDY_STRING = st.text(
    st.sampled_from(
        "aaaabbZéßİﬁΣς'’ʼ-‐\u20119²½ \u0301\u200d\u00ad\u0915\u093f\ud800\udfff𝒳😀\U000e0100_\x00\n"
    )
)
LONG_WORDS = st.builds(
    lambda stem, n, end: stem * n + end,
    st.sampled_from(["a", "ab", "abcdefg", "abcdefgh", "é", "𝒳a'"]),
    st.integers(1, 40),
    st.sampled_from(["", "b", "bc", " ", "é"]),
)
STRINGS = st.lists(ANY_STRING | WORDY_STRING | LONG_WORDS, max_size=8)
SETTINGS = [
    {"numbers": numbers, "hyphens": hyphens}
    for numbers, hyphens in product((False, True), repeat=2)
]


def grown(table, tokens):
    """Return a table extended by tokens, which are their own terms."""
    letters = pack(tokens)
    return table.grow(letters, table.terms.number(letters))


def names_of(table):
    """Return the names of a table's terms, and None as the last."""
    return [*table.terms.names(np.arange(len(table.terms))), None]


def new_tokens(scanned):
    """Return the tokens that were not known, in order."""
    distinct = scanned.new_tokens.decode().split("\0")
    return [distinct[which] for which in scanned.which]


def plain_counts(analyzer, texts):
    """Return the counts of terms of each text, found by `Analyzer.terms`."""
    return [Counter(analyzer.terms(text)) for text in texts]


def as_bags(counts, terms):
    """Return the rows of a matrix as bags of words."""
    rows = np.split(np.arange(counts.nnz), counts.indptr[1:-1])
    return [{terms[counts.indices[k]]: counts.data[k] for k in row} for row in rows]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@given(strings=STRINGS)
def test_tokens_are_those_of_the_regular_expression(settings, strings):
    """For any Unicode text and any settings, whether no, some or all tokens are known."""
    pattern = TokenPattern(**settings)
    expected = [pattern.compile_for(string).findall(string) for string in strings]
    tokens = [token for own in expected for token in own]
    distinct = list(dict.fromkeys(tokens))

    for known in ([], distinct[::2], distinct):
        table = grown(TokenTable(Terms()), known)
        scanned = scan(strings, pattern, table)

        names = [names_of(table)[number] for number in scanned.numbers]
        new = [token for token in tokens if token not in set(known)]
        assert scanned.sizes.tolist() == [len(own) for own in expected]
        assert names == [token if token in set(known) else None for token in tokens]
        assert new_tokens(scanned) == new
        assert scanned.new_tokens.count(b"\0") == len(set(new))
        assert scanned.new_places.tolist() == [k for k, name in enumerate(names) if name is None]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_classes_of_characters(settings):
    """The table assigns each character the class that the regular expression does."""
    kinds = TokenPattern(**settings).kinds(0xF4)
    expression = TokenPattern(**settings).compile_for(chr(sys.maxunicode)).pattern
    letter, inside, joint, *_ = re.findall(r"\[.*?(?<!\\)\]", expression.replace("(?:", "("))
    joint, letter, inside = sorted((letter, inside, joint), key=len)

    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    for characters, bit in ((letter, STARTS), (inside, CONTINUES), (joint, JOINS)):
        places = {match.start() for match in re.finditer(characters, everything)}
        assert set(np.flatnonzero(kinds & bit).tolist()) == places


def test_class_tables_extend_as_far_as_needed():
    """A shorter table is the beginning of the complete one."""
    pattern = TokenPattern(numbers=False, hyphens=True)

    whole = pattern.kinds(0xF4)

    for last in ("\x7f", "\uffff", "\U0003ffff", "\U0010ffff"):
        kinds = pattern.kinds(max(last.encode()))
        assert kinds.size > ord(last)
        np.testing.assert_array_equal(kinds, whole[: kinds.size])


@given(texts=STRINGS)
@pytest.mark.parametrize("language", [None, "en"])
def test_counts_are_those_of_plain_terms(language, texts):
    """A fresh analyzer and one that knows all tokens count the terms that `terms` finds."""
    analyzer = Analyzer(language, min_length=1, stop_words=["a", "ab"])
    analyzer._lexicon.tokens = GrowingTable()

    for _ in range(2):
        counts, terms = analyzer.count(texts)
        assert as_bags(counts, terms) == plain_counts(analyzer, texts) or not texts
        assert terms == sorted(set().union(*plain_counts(analyzer, texts)))
        table = analyzer._lexicon.tokens.newest
        tokens = {t for text in texts for t in analyzer._lexicon.pattern_for(text).findall(text)}
        numbers = table.terms.number(pack(analyzer._lexicon[t] or "" for t in tokens))
        analyzer._lexicon.tokens.newest = table.grow(pack(tokens), numbers)


@given(texts=STRINGS, every=st.integers(1, 3))
def test_known_terms_are_selected_counts(texts, every):
    """Counting a vocabulary's terms equals counting all and then selecting, dtypes included."""
    analyzer = Analyzer(None, min_length=1)
    vocabulary = Vocabulary([*analyzer.count(texts)[1][::every], "never met"])
    both = [*texts, {"oil": 2, "never met": 0.5}, {"title": "oil oil", "body": "gold"}]

    for _ in range(2):
        counts = analyzer.count_known(both, vocabulary, {"title": 0.3})
        expected = vocabulary.select(*analyzer.count(both, {"title": 0.3}))
        assert counts.shape == expected.shape
        for own, other in zip(
            (counts.data, counts.indices, counts.indptr),
            (expected.data, expected.indices, expected.indptr),
            strict=True,
        ):
            np.testing.assert_array_equal(own, other)
            assert own.dtype == other.dtype


def test_tables_grow_and_keep_their_tokens():
    """A table that was extended still has its tokens; the original does not change."""
    words = [f"{chr(97 + i % 26) * (1 + i % 30)}{chr(97 + i // 26 % 26)}" for i in range(3000)]
    words = list(dict.fromkeys(words))
    tables = [TokenTable(Terms())]
    for start in range(0, len(words), 100):
        tables.append(grown(tables[-1], words[start : start + 100]))

    for known, table in enumerate(tables):
        scanned = scan(words, TokenPattern(numbers=False, hyphens=False), table)
        names = names_of(table)
        numbers = [names[number] for number in scanned.numbers]
        assert numbers == [word if i < 100 * known else None for i, word in enumerate(words)]
        assert table.n_tokens == min(100 * known, len(words))


def test_a_known_token_is_not_added_again():
    """Two threads may learn the same token; it takes one slot, in a table that could be full."""
    table = TokenTable(Terms())
    for _ in range(20):
        table = grown(table, ["oil", "gold" * 9])

    assert table.n_tokens == 2
    assert np.count_nonzero(table.slots.index >= 0) == 2


@pytest.mark.parametrize("other", ["x" * 30, "x" * 29, "x" * 31, "y" * 30, "x" * 29 + "y"])
def test_equal_hashes_are_not_equal_tokens(other):
    """A long token is compared letter by letter with one that has the same hash."""
    pattern, token = TokenPattern(numbers=False, hyphens=False), "x" * 30
    table = grown(TokenTable(Terms()), [token])
    forged = table.slots._replace(letters=np.frombuffer(other.encode() + bytes(40), dtype=np.uint8))
    table.slots = forged

    scanned = scan([token], pattern, table)

    assert (scanned.numbers.tolist() == [0]) == (other == token)
    assert new_tokens(scanned) == ([] if other == token else [token])


def test_full_chains_of_slots(monkeypatch):
    """With as few slots as possible, tokens collide and wrap around, and are still found."""
    monkeypatch.setattr(packed_words, "_MIN_TOKEN_SLOTS", 2)
    pattern = TokenPattern(numbers=False, hyphens=False)
    for n in range(1, 40):
        words = ["w" * length for length in range(1, n + 1)]
        table = grown(TokenTable(Terms()), words)

        scanned = scan([" ".join(words), "w" * (n + 1)], pattern, table)

        assert [names_of(table)[number] for number in scanned.numbers[:-1]] == words
        assert new_tokens(scanned) == ["w" * (n + 1)]
        assert table.slots.index.size <= 4 * n


def test_the_table_is_bounded(monkeypatch):
    """A table with too many tokens is reset, and counts stay the same."""
    monkeypatch.setattr(lexicon, "_MAX_TOKENS", 20)
    monkeypatch.setattr(packed_words, "_MIN_NEW", 1)
    monkeypatch.setattr(counting, "_FIRST_TEXTS", 1)
    analyzer = Analyzer(None, max_length=33)
    texts = [f"{'a' * i} {'b' * i} ab" for i in range(2, 30)]

    counts, terms = analyzer.count(texts)

    assert as_bags(counts, terms) == plain_counts(analyzer, texts)
    assert 0 < analyzer._lexicon.tokens.newest.n_tokens <= 20


def test_blocks_and_threads_do_not_change_counts(monkeypatch):
    """Many small blocks on four threads give the matrix of one block on one thread."""
    rng = np.random.default_rng(0)
    words = [f"w{'abcdefghij'[i % 10] * (i // 10 + 1)}" for i in range(200)]
    texts = [" ".join(rng.choice(words, size=20)) for _ in range(500)]
    texts[7], texts[8] = {"title": "wa wb", "body": texts[7]}, {"wa": 2, "oil": 0.1}
    counts, terms = Analyzer(None, min_length=1).count(texts, {"title": 0.1})

    monkeypatch.setattr(counting, "_BLOCK", 300)
    monkeypatch.setenv("POLYTOPIC_NUM_THREADS", "4")
    others, other_terms = Analyzer(None, max_length=99).count(iter(texts), {"title": 0.1})

    assert other_terms == terms
    np.testing.assert_array_equal(others.data, counts.data)
    np.testing.assert_array_equal(others.indices, counts.indices)
    np.testing.assert_array_equal(others.indptr, counts.indptr)


def test_counting_in_many_threads_while_tokens_are_learned(monkeypatch):
    """Each thread counts its own texts correctly while all extend one lexicon."""
    monkeypatch.setattr(packed_words, "_MIN_NEW", 1)
    monkeypatch.setattr(packed_words, "_SHARE_NEW", 10_000)
    analyzer = Analyzer(None, max_length=77)
    vocabulary = Vocabulary(["a" * (2 + i) for i in range(40)])
    batches = [
        [f"{'a' * (2 + (i + k) % 50)} {'é' * (2 + k % 30)} aa" for k in range(20)]
        for i in range(60)
    ]

    def both(batch):
        return *analyzer.count(batch), analyzer.count_known(batch, vocabulary)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(both, batches))

    for batch, (counts, terms, known) in zip(batches, results, strict=True):
        assert as_bags(counts, terms) == plain_counts(analyzer, batch)
        np.testing.assert_array_equal(known.toarray(), vocabulary.select(counts, terms).toarray())
