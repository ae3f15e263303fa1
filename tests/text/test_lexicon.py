"""Many new tokens analysed at once, compared with one by one."""

import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.base import clone

from polytopic.text import Analyzer, counting, lexicon
from polytopic.text.counting import NewColumns
from polytopic.text.dictionary import CachedDictionaryFactory, MappedDictionary, content
from polytopic.text.languages import Lemmas
from polytopic.text.packed_words import (
    GrowingTable,
    Terms,
    are_empty,
    bounds,
    contain,
    distinct,
    main_parts,
    pack,
    replace,
    scatter,
    select,
    unpack,
)
from polytopic.text.tokens import main_part, spell

from .test_scanning import LONG_WORDS, STRINGS, as_bags, plain_counts

ANALYZERS = [
    Analyzer(None),
    Analyzer("en"),
    Analyzer("de"),
    Analyzer("tr"),
    Analyzer("cs"),
    Analyzer("en", normalize="stem"),
    Analyzer("en", normalize=None),
    Analyzer("en", lowercase=False, min_length=1),
    Analyzer("de", lowercase=False, stop_words=None),
    Analyzer(None, lowercase=False, stop_words=["Bank", "a"]),
    Analyzer("en", hyphens=True, numbers=True, min_length=3, max_length=7),
    Analyzer(None, hyphens=True, numbers=True, min_length=1, max_length=1),
]
WORDS = st.sampled_from(
    re.findall(
        r"\S+",
        "The mice nations isms agencies bank bank's don't I'll rock'n'roll Haus Häuser Bäume bäume "
        "Istanbul İstanbul ISTANBUL ışık psům Psům městech café naïve ﬁre Straße o'er we b2b 2024 "
        "well-known X-RAY Monday mondays organized deserves Ments cies fancies policies",
    )
)
FORMS = st.builds(
    lambda word, change, end: change(word) + end,
    WORDS,
    st.sampled_from([str, str.lower, str.upper, str.capitalize, str.swapcase]),
    st.sampled_from(["", "s", "'s", "tions", "ized", "x", "\u0301"]),
)
TEXTS = st.lists(st.lists(FORMS).map(" ".join), max_size=4) | STRINGS


def tokens_of(own, texts):
    """Return the distinct tokens of texts."""
    return list(dict.fromkeys(t for text in texts for t in own.find_tokens(text)))


def is_plain(word):
    """Return whether a word has only the letters A to Z and apostrophes between them."""
    return all(part.isascii() and part.isalpha() for part in word.split("'"))


@cache
def mapped(language):
    """Return a dictionary as it is in its file, even if nothing can be cached."""
    plain = CachedDictionaryFactory.get_dictionary(language)
    return MappedDictionary(bytes(32) + b"".join(content(plain)))


@pytest.mark.parametrize("analyzer", ANALYZERS, ids=str)
@given(texts=TEXTS)
def test_many_tokens_have_the_same_terms(analyzer, texts):
    """For any Unicode text and any settings, the terms are those of the tokens one by one."""
    own = analyzer._lexicon
    tokens = tokens_of(own, texts)

    terms, which = own._analyze_many(pack(tokens))

    terms = [term or None for term in unpack(terms)]
    assert [terms[place] for place in which] == [own._analyze(token) for token in tokens]


@pytest.mark.parametrize("analyzer", ANALYZERS, ids=str)
@given(texts=TEXTS)
def test_first_counts_are_those_of_plain_terms(analyzer, texts):
    """An analyzer without cached tokens counts what `Analyzer.terms` finds."""
    expected = plain_counts(analyzer, texts)
    own = analyzer._lexicon
    own.clear()
    own.tokens = GrowingTable()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexicon, "_FEW", 0)
        counts, terms = analyzer.count(texts)

    assert as_bags(counts, terms) == expected or not texts
    assert terms == sorted(set().union(*expected))


def test_german_nouns_keep_their_capital():
    """The first letter distinguishes noun and verb for many tokens as for one."""
    own = Analyzer("de")._lexicon
    tokens = ["Klage", "klage", "KLAGE", "Pfade", "pfade"]

    terms, which = own._analyze_many(pack(tokens))

    lemmas = [unpack(terms)[place] for place in which]
    assert lemmas == ["klage", "klagen", "klage", "pfad", "pfaden"]
    assert lemmas == [own._analyze(token) for token in tokens]


def test_few_tokens_are_looked_up_and_many_are_not(monkeypatch):
    """Few are analysed one by one, through the cache that `terms` uses; many together."""
    analyzer = Analyzer(None, max_length=61)
    monkeypatch.setattr(lexicon, "_FEW", 3)

    analyzer.count(["oil gas tin"])
    analyzer.count(["zinc gold lead iron"])

    assert set(analyzer._lexicon) == {"oil", "gas", "tin"}


@pytest.mark.parametrize("language", ["en", "cs", "fr"])
def test_lemmas_of_many_words(language):
    """They are those of each word alone, for known and unknown words in any case."""
    lemmas, dictionary = Lemmas(language), mapped(language)
    lemmas._dictionaries = SimpleNamespace(get_dictionary=lambda _: dictionary)
    some = [word for word in islice(dictionary, None, None, 40) if word.isascii()]
    endings = ["", "'s", "s", "cies", "isms", "ized", "erves", "tions", "zz", "d"]
    words = [word + end for word in some if word.isalpha() for end in endings]
    words += [word.replace("\u2019", "'") for word in dictionary.apostrophe_words if is_plain(word)]

    for form in (str, str.lower, str.upper, str.capitalize):
        given = ["a", *map(form, words)]
        assert unpack(lemmas.of_packed(pack(given))) == list(map(lemmas, given))


@given(words=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"))))
@example(words=[])
@example(words=[""])
def test_looking_up_many_words(words):
    """The lemmas are those of each word alone; a missing one is empty."""
    dictionary = mapped("ms")
    words = [*words, *islice(dictionary, 200), *(f"{word}x" for word in islice(dictionary, 200))]

    assert unpack(dictionary.lemmas(pack(words))) == [dictionary.get(w, "") for w in words]


@pytest.mark.parametrize("language", ["en", "fr", "hy"])
def test_words_with_apostrophes(language):
    """They are those of the dictionary, whatever apostrophes it has."""
    dictionary = mapped(language)

    plain = [word.replace("\u2019", "'").replace("\u02bc", "'") for word in dictionary]

    assert dictionary.apostrophe_words == {word.lower() for word in plain if "'" in word}


def test_main_parts():
    """They are those of each word alone."""
    words = ["l'eau", "eau", "bank's", "dell'arte", "rock'n'roll", "a'b", ""]

    assert unpack(main_parts(pack(words))) == list(map(main_part, words))


@given(words=st.lists(st.sampled_from(["", "a", "b", "abcdefghi", "é"]) | LONG_WORDS))
def test_borders(words):
    """Words lie between their borders, including empty ones."""
    letters = pack(words) if words else b""

    starts, ends = bounds(letters)

    places = zip(starts.tolist(), ends.tolist(), strict=True)
    assert [letters[start:end].decode() for start, end in places] == words


@given(tokens=st.lists(st.sampled_from(["a", "b", "A", "abcdefghi", "é"]) | LONG_WORDS))
def test_distinct_tokens(tokens):
    """Each token has the position of the first one that equals it."""
    tokens = [token for token in tokens if token]

    which, letters = distinct(pack(tokens), *bounds(pack(tokens)))

    own = list(dict.fromkeys(tokens))
    assert letters == pack(own)
    assert which.tolist() == [own.index(token) for token in tokens]


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0")) | LONG_WORDS


def test_terms_with_the_same_beginning_are_sorted():
    """Their first sixteen bytes are equal, and one term is exactly these."""
    rng = np.random.default_rng(0)
    beginning = "internationalisa"
    ends = ["", *("".join(rng.choice(list("abé"), 3)) for _ in range(200)), "tion"]
    own = list(dict.fromkeys([beginning + end for end in ends] + ["inter", "z", beginning[:-1]]))
    terms = Terms()

    terms.number(pack(own))

    assert [sorted(own)[rank] for rank in terms.rank()] == own


@given(batches=st.lists(st.lists(NAMES | st.sampled_from(["oil", "gas", "é", "z" * 20]))))
def test_terms_keep_their_numbers(batches):
    """A term has one number, and its rank is its position in Python's sorting order."""
    terms, own = Terms(), []
    for batch in batches:
        numbers = terms.number(pack(batch))
        own = list(dict.fromkeys([*own, *filter(None, batch)]))

        assert numbers.tolist() == [own.index(name) if name else -1 for name in batch]
        assert [sorted(own)[rank] for rank in terms.rank()] == own
        assert terms.names(np.arange(len(terms))) == own
        assert terms.contain(pack([*own, "never met"])).tolist() == [True] * len(own) + [False]


@given(words=st.lists(st.tuples(st.sampled_from(["", "a", "é", "long" * 9]), st.booleans())))
def test_words_as_letters(words):
    """Selecting, spreading and filling do what they do with lists."""
    letters, mask = pack(word for word, _ in words), np.array([m for _, m in words], bool)
    some = [word for word, is_chosen in words if is_chosen]

    assert unpack(letters) == [word for word, _ in words]
    assert are_empty(letters).tolist() == [not word for word, _ in words]
    assert unpack(select(letters, mask)) == some
    assert unpack(scatter(pack(some), mask)) == [word if m else "" for word, m in words]
    assert contain(letters, b"o").tolist() == ["o" in word for word, _ in words]
    others = [f"{place}" for place in range(len(some))]
    expected = iter(others)
    assert unpack(replace(letters, pack(others), mask)) == [
        next(expected) if m else word for word, m in words
    ]


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["name", 0, 1]), st.lists(st.sampled_from("abcdefgh"))),
        max_size=6,
    ),
    n_before=st.sampled_from([0, 500]),
)
def test_a_term_is_one_column_wherever_it_comes_from(steps, n_before):
    """Bags, one lexicon or two, few or many texts: the columns are those of the names."""
    numbered = [Terms(), Terms()]
    for terms in numbered:
        terms.number(pack(f"other{n}" for n in range(n_before)))
    columns, places = NewColumns(), []
    for source, names in steps:
        if source == "name":
            places += columns.of_terms(names)
        else:
            terms = numbered[source]
            places += columns.of_numbers(terms, terms.number(pack(names))).tolist()

    names, order = columns.sorted()

    given = [name for _, own in steps for name in own]
    assert names == sorted(set(given))
    assert [names[order[column]] for column in places] == given


def test_few_texts_and_then_many(monkeypatch):
    """A lexicon of many terms gives the same columns for texts of few terms, then of most."""
    monkeypatch.setattr(counting, "_FIRST_TEXTS", 1)
    words = ["".join(chr(97 + n // 26**k % 26) for k in range(3)) for n in range(1000)]
    analyzer = Analyzer(None, max_length=62)
    analyzer.count([" ".join(words)])
    texts = ["zzz aaa", *words[::2]]

    counts, terms = analyzer.count(texts)

    assert as_bags(counts, terms) == plain_counts(analyzer, texts)


def test_many_threads_learn_many_tokens(monkeypatch):
    """Each thread counts correctly while all learn, and while the table is reset."""
    monkeypatch.setattr(lexicon, "_MAX_TOKENS", 900)
    words = ["".join(chr(97 + n // 26**k % 26) for k in range(3)) for n in range(2000)]
    analyzer = Analyzer("en", max_length=63)
    batches = [[" ".join(words[start::7]), "mice mice"] for start in range(40)]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(analyzer.count, batches))

    for batch, (counts, terms) in zip(batches, results, strict=True):
        assert as_bags(counts, terms) == plain_counts(analyzer, batch)


CLUSTERS = st.sampled_from(
    [
        "a",
        "é",
        "e\u0301",
        "\ufdfa",
        "ﬁ",
        "a\u00ad",
        "a" + "\ufe00" * 9,
        "ᾂ",
        "\u1100\u1161\u11a8",
        "İ",
        "ß",
    ]
)


@given(parts=st.lists(st.tuples(CLUSTERS, st.integers(1, 60)), min_size=1, max_size=6))
@pytest.mark.parametrize("analyzer", ANALYZERS)
def test_long_tokens_that_are_not_read_to_their_end(analyzer, parts):
    """A token is dropped by its beginning only if all of it would be too long."""
    token = "".join(cluster * n for cluster, n in parts)

    with mock.patch.object(lexicon, "_SLACK", 1 << 60):
        whole = clone(analyzer).term(token)

    assert clone(analyzer).term(token) == whole


@pytest.mark.parametrize("letter", ["\ufdfa", "漢", "\u0130\u00df\ufb03", "e\u0301\u0323"])
def test_a_text_that_is_one_token(letter, monkeypatch):
    """Its spelling, of which a million letters may have eighteen million, is not computed."""
    sizes = []
    monkeypatch.setattr(lexicon, "spell", lambda token: sizes.append(len(token)) or spell(token))

    counts, _ = Analyzer("en").count(["é", letter * 100_000])

    assert counts.nnz == 0
    assert max(sizes) < 1000
