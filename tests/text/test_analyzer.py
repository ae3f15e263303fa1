"""Analyzer: words of many languages, positions, settings."""

import json
import pickle
import sys
import time
import tracemalloc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import stopwordsiso
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from polytopic.text import Analyzer, Span, lexicon
from polytopic.text.languages import stop_words

ANY_TEXT = st.text(st.characters(codec=None), max_size=60)
WORDY_TEXT = st.text(
    st.sampled_from("aZéßİﬁΣς'’-‐9²½ \u0301\u200d\u00ad\u0915\u093f\ud800𝒳😀_\x00")
)
ANALYZERS = [
    Analyzer(None),
    Analyzer("en"),
    Analyzer("en", normalize="stem", numbers=True, hyphens=True),
    Analyzer(None, min_length=1, numbers=True, lowercase=False),
]


@pytest.mark.parametrize(
    ("language", "text", "terms"),
    [
        ("en", "The mice were studying the children.", ["mouse", "study", "child"]),
        ("cs", "Psům se ve městech s knihami daří.", ["pes", "město", "kniha", "dařit"]),
        ("de", "Die Bäume und die Häuser", ["baum", "haus"]),
        ("fi", "Lapset taloissa ja kirjoja", ["lapsi", "talo", "kirja"]),
        ("fr", "Les chevaux et les maisons", ["cheval", "maison"]),
        ("pl", "Książki i psów", ["książka", "pies"]),
        ("ru", "Собаками и кошек", ["собака", "кошка"]),
        ("es", "Los niños y los libros", ["niño", "libro"]),
    ],
)
def test_inflected_words_become_lemmas_and_stop_words_go(language, text, terms):
    """Each language reduces its own words and drops its own stop words."""
    assert Analyzer(language).terms(text) == terms


def test_stems_if_there_is_no_dictionary():
    """The default is the stem for a language that has only a stemmer."""
    analyzer = Analyzer("eu")

    terms = analyzer.terms("etxeak")

    assert terms == Analyzer("eu", normalize="stem").terms("etxeak") != ["etxeak"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("İstanbul", "istanbul"),
        ("ﬁnance", "FINANCE"),
        ("Straße", "STRASSE"),
        ("Όμηρος", "ΌΜΗΡΟΣ"),
        ("cafe\u0301", "CAFÉ"),
        ("ｗｉｄｅ", "wide"),
        ("infor\u00admation", "information"),
        ("it’s", "it's"),
    ],
)
def test_spellings_of_one_word_are_one_term(one, other):
    """Case, ligatures, decomposed marks, width and soft hyphens do not make another term."""
    analyzer = Analyzer(None)

    assert analyzer.terms(one) == analyzer.terms(other)
    assert len(analyzer.terms(one)) == 1


def test_turkish_lowercase():
    """In Turkish, I is the capital of ı, and İ of i."""
    analyzer = Analyzer("tr", normalize=None, stop_words=None)

    assert analyzer.terms("ISI İZMİR") == ["ısı", "izmir"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("e\u0301te\u0301 x", ["e\u0301te\u0301"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("می‌خواهم", ["می‌خواهم"]),
        ("日本語、中国", ["日本語", "中国"]),
        ("Москва-tower 😀👍🏽 ok", ["Москва", "tower", "ok"]),
        ("𝒳𝒴𝒵 and 𐐀𐐁", ["𝒳𝒴𝒵", "and", "𐐀𐐁"]),
        ("snake_case b2b, 2024 'quoted'", ["snake", "case", "quoted"]),
    ],
)
def test_tokens_are_letters_with_their_marks(text, tokens):
    """Marks and joiners stay with their letters; emoji, digits and signs end a word."""
    spans = Analyzer(None).spans(text)

    assert [text[start:end] for _, start, end in spans] == tokens


def test_numbers_and_hyphens_on_request():
    """Digits and hyphens are part of words only if the settings say so."""
    text = "B2B in 2024: state-of-the-art, well‐known"

    plain = Analyzer(None).terms(text)
    full = Analyzer(None, numbers=True, hyphens=True).terms(text)

    assert plain == ["in", "state", "of", "the", "art", "well", "known"]
    assert full == ["b2b", "in", "2024", "state-of-the-art", "well-known"]


@pytest.mark.parametrize(
    ("language", "text", "terms"),
    [
        ("en", "don't won’t", []),
        ("en", "The bank's O'Neill", ["bank", "neill"]),
        ("fr", "l'eau qu'elle L’Oréal", ["eau", "oréal"]),
        ("uk", "об'єкта м’яча", ["об'єкт", "м'яч"]),
        (None, "don't l'eau dell'arte", ["don", "eau", "arte"]),
    ],
)
def test_apostrophes(language, text, terms):
    """Words in the dictionary stay whole; otherwise the longest part is the word."""
    assert Analyzer(language, min_length=1).terms(text) == terms


def test_stop_words_before_and_after_reduction():
    """A word is dropped if it is a stop word, or if its lemma is one."""
    analyzer = Analyzer("en", stop_words=["MICE", "child"])

    assert analyzer.terms("mice mouse children child") == ["mouse"]


def test_english_stop_words_are_those_that_two_lists_share():
    """Only those of stopwords-iso that are also in scikit-learn's list."""
    assert stop_words("en") == stopwordsiso.stopwords("en") & ENGLISH_STOP_WORDS


def test_no_stop_words():
    """None keeps every word."""
    assert Analyzer("en", stop_words=None, normalize=None).terms("to be or") == ["to", "be", "or"]


def test_lengths():
    """Words that are too short or too long are dropped, not cut."""
    analyzer = Analyzer(None, min_length=2, max_length=3)

    assert analyzer.terms("a ab abc abcd") == ["ab", "abc"]


def test_case_can_be_preserved():
    """Without lowercase, terms keep their case, and stop words are still recognized."""
    assert Analyzer("en", normalize=None, lowercase=False).terms("The US Bank") == ["Bank"]
    assert Analyzer("en", stop_words=None, lowercase=False).terms("Paris") == ["Paris"]


@pytest.mark.parametrize("analyzer", ANALYZERS, ids=str)
@given(text=ANY_TEXT | WORDY_TEXT)
def test_spans_terms_and_term_agree(analyzer, text):
    """For every Unicode text, positions are right, and each token alone gives the same term."""
    spans = analyzer.spans(text)

    assert [span.term for span in spans] == analyzer.terms(text)
    for term, start, end in spans:
        assert 0 <= start < end <= len(text)
        assert analyzer.term(text[start:end]) == term


@given(text=ANY_TEXT | WORDY_TEXT)
def test_tokens_do_not_overlap_and_hold_all_letters(text):
    """With nothing dropped, every letter of the text is in exactly one token."""
    spans = Analyzer(None, min_length=1, max_length=10_000).spans(text)

    covered = Counter(place for span in spans for place in range(span.start, span.end))
    assert set(covered.values()) <= {1}
    assert all(place in covered for place, char in enumerate(text) if char.isalpha())


def test_terms_of_non_tokens():
    """A stop word, two words, a lone surrogate and an empty string have no term."""
    analyzer = Analyzer("en")

    assert [analyzer.term(token) for token in ("the", "two words", "\ud800", "")] == [None] * 4


@pytest.mark.parametrize("text", [None, 3, b"bytes", ["a list"]])
def test_a_text_is_a_str(text):
    """Anything else is rejected with a clear message."""
    with pytest.raises(TypeError, match=rf"text is a {type(text).__name__}, must be a str\."):
        Analyzer().terms(text)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"language": "xx"}, "language == 'xx', must be one of ar, .* or None"),
        ({"normalize": "root"}, "normalize == 'root', must be"),
        ({"language": "eu", "normalize": "lemma"}, "'lemma' is not available for language == 'eu'"),
        ({"language": None, "normalize": "stem"}, "'stem' is not available for language == None"),
        ({"stop_words": "english"}, "stop_words == 'english', must be"),
        ({"stop_words": 3}, "stop_words == 3, must be"),
        ({"min_length": 0}, "min_length == 0, must be >= 1"),
        ({"max_length": 1}, "max_length == 1, must be >= 2"),
    ],
)
def test_wrong_settings_are_reported_on_first_use(settings, sentence):
    """The constructor only stores its settings; they are validated on use."""
    analyzer = Analyzer(**settings)

    with pytest.raises(ValueError, match=sentence):
        analyzer.terms("text")


@pytest.mark.parametrize(
    "analyzer", [*ANALYZERS, Analyzer("cs", stop_words={"a"}, max_length=9)], ids=str
)
def test_settings_round_trip(analyzer):
    """JSON, pickle and clone give an equal analyzer."""
    settings = json.loads(json.dumps(analyzer.to_dict()))

    assert Analyzer.from_dict(settings) == analyzer
    assert pickle.loads(pickle.dumps(analyzer)) == analyzer  # noqa: S301
    assert clone(analyzer) == analyzer


def test_equality_is_by_meaning():
    """Settings that mean the same are equal, others are not."""
    assert Analyzer("en") == Analyzer("en", normalize="lemma")
    assert Analyzer("en", stop_words=["b", "a"]) == Analyzer("en", stop_words=("a", "b"))
    assert Analyzer("en") != Analyzer("en", numbers=True)
    assert Analyzer("en") != "en"


def test_repr():
    """The printed form is the call that creates the analyzer."""
    assert repr(Analyzer("cs", numbers=True)) == "Analyzer(language='cs', numbers=True)"


def test_pickle_omits_the_cache():
    """A used analyzer pickles to the bytes of a fresh one."""
    used = Analyzer("en")
    used.terms("some words to remember")

    assert pickle.dumps(used) == pickle.dumps(Analyzer("en"))


def test_a_changed_setting_takes_effect():
    """After a change, nothing that was analysed before is remembered."""
    analyzer = Analyzer("en", normalize=None)
    analyzer.terms("mice")

    analyzer.set_params(normalize="lemma")

    assert analyzer.terms("mice") == ["mouse"]


def test_the_cache_is_bounded(monkeypatch):
    """A full cache is emptied, and answers stay the same."""
    monkeypatch.setattr(lexicon, "_MAX_TOKENS", 2)
    analyzer = Analyzer(None)

    terms = analyzer.terms("one two three four one two")

    assert terms == ["one", "two", "three", "four", "one", "two"]
    assert len(analyzer._lexicon) <= 2


@pytest.fixture
def eager_threads():
    """Make threads switch every few instructions."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("eager_threads")
def test_stems_in_many_threads():
    """A Snowball stemmer is not thread-safe; an analyzer is."""
    words = [f"{stem}ing" for stem in ("walk", "talk", "jump", "read", "sing")] * 200
    analyzer = Analyzer("en", normalize="stem")
    alone = {word: Analyzer("en", normalize="stem").term(word) for word in set(words)}

    def term(word):
        analyzer._lexicon.pop(word, None)
        return analyzer.term(word)

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(term, words))

    assert together == [alone[word] for word in words]


def test_spans_are_tuples():
    """A span unpacks into term, start and end."""
    assert Analyzer("en").spans("Two mice.") == [Span("mouse", 4, 8)]


@pytest.mark.parametrize("marks", ["\u0315\u0327", "\uff9e\u0315\u0327"])
def test_many_marks_take_no_longer(marks):
    """Marks out of order take linear time, though normalizing them takes quadratic time."""
    begin = time.process_time()

    Analyzer("en").terms("a" + marks * 50_000)

    assert time.process_time() - begin < 5


def test_long_tokens_are_not_cached():
    """Tokens that are as long as texts do not fill the memory."""
    analyzer = Analyzer("en")
    analyzer.terms("warm up")
    tracemalloc.start()
    try:
        for letter in "abcdefghijklmnop":
            analyzer.terms(letter * 8_000_000)
            analyzer.count([letter.upper() * 8_000_000])

        assert tracemalloc.get_traced_memory()[0] < 100e6
    finally:
        tracemalloc.stop()


def test_titles():
    """The words of a first line count several times, if more lines follow."""
    texts = ["Red house\nthe house burns", "one house", "a house\n\n", {"title": "house\nhouse"}]
    analyzer = Analyzer("en", title=3)

    counts, terms = analyzer.count(texts)

    assert terms == ["burn", "house", "red"]
    assert counts.toarray().tolist() == [[1, 4, 3], [0, 1, 0], [0, 1, 0], [0, 2, 0]]
    assert Analyzer.from_dict(analyzer.to_dict()) == analyzer
    assert "title" not in Analyzer("en").to_dict()


@pytest.mark.parametrize("title", [0, 1.5, 101])
def test_wrong_weights_of_titles(title):
    """The error names the parameter."""
    with pytest.raises((TypeError, ValueError), match="title"):
        Analyzer("en", title=title).terms("house")
