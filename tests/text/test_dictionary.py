"""Dictionaries cached on disk, and the lemmas of words, compared with simplemma itself."""

from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pytest
import simplemma
from hypothesis import example, given
from hypothesis import strategies as st
from simplemma.strategies.dictionaries import DefaultDictionaryFactory

from polytopic.text import dictionary
from polytopic.text.dictionary import CachedDictionaryFactory, MappedDictionary
from polytopic.text.languages import Lemmas
from polytopic.text.packed_words import pack, unpack
from polytopic.text.tokens import main_part

PLAIN = DefaultDictionaryFactory(cache_max_size=2)
SLOW = ("ar", "de", "es", "fi", "ru", "tr")  # to unpack
LEMMAS = {language: Lemmas(language) for language in ("en", "fr", "hy", "ms", "tr")}
ENDINGS = [
    "",
    "s",
    "s'",
    "'s",
    "n't",
    "zz",
    "-book",
    "tions",
    "cies",
    "ized",
    "erves",
    "lla",
    "\u0301",
]
LETTERS = st.sampled_from("abceiIlnorstyzTÉéßİığ՞աԱ'’-_9²一\u0301\u00a0")


def lemma_by_simplemma(word, language):
    """Return the lemma as simplemma's own functions give it."""
    if "'" in word and not simplemma.is_known(word, language):
        word = main_part(word)
    return word and simplemma.lemmatize(word, language)


def load(language):
    """Load a dictionary as a new process does."""
    return CachedDictionaryFactory.get_dictionary.__wrapped__(language)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Cache dictionaries in a new folder."""
    monkeypatch.setattr(dictionary, "cache_folder", tmp_path)
    return tmp_path


@pytest.mark.parametrize("language", ["en", "he", "ms"])
def test_a_cached_dictionary_equals_simplemmas(folder, language):
    """It has the same words with the same lemmas, and no others."""
    plain = PLAIN.get_dictionary(language)

    cached = load(language)

    assert isinstance(cached, MappedDictionary)
    assert len(cached) == len(plain)
    assert dict(cached.items()) == dict(plain.items())
    assert all(cached.get(f"{word}\0") is None for word in islice(plain, 1000))


@given(word=st.text())
@example(word="")
@example(word="\n")
def test_missing_words(word):
    """Any string can be looked up; a missing one raises a KeyError."""
    cached, plain = CachedDictionaryFactory().get_dictionary("ms"), PLAIN.get_dictionary("ms")

    assert cached.get(word, "none") == plain.get(word, "none")
    assert (word in cached) == (word in plain)


@pytest.mark.parametrize(
    "language",
    ["cs", "en", "fr", "id", *(pytest.param(one, marks=pytest.mark.long) for one in SLOW)],
)
def test_lemmas_equal_those_of_simplemma(language):
    """For words of its dictionary, in any case, and for words that its rules reduce."""
    words = PLAIN.get_dictionary(language)
    lemma = Lemmas(language)

    for word in islice(words, None, None, len(words) // 300):
        for ending in ENDINGS:
            for form in (word + ending, word.capitalize() + ending, (word + ending).upper()):
                assert lemma(form) == lemma_by_simplemma(form, language), form


def test_lemmas_of_all_english_words():
    """Looking up many words at once gives what simplemma gives for each."""
    words = [word for word in PLAIN.get_dictionary("en") if word.isascii() and word.isalpha()]
    words += [word + ending for word in words[::20] for ending in ENDINGS if ending.isalpha()]

    for form in (str, str.lower, str.capitalize):
        own = list(map(form, words))
        lemmas = unpack(Lemmas("en").of_packed(pack(own)))
        assert lemmas == [lemma_by_simplemma(word, "en") for word in own]


@pytest.mark.parametrize("language", LEMMAS)
@given(word=st.text(LETTERS, max_size=12) | st.text(max_size=8))
def test_lemmas_of_any_string(language, word):
    """Whatever is in a word, the lemma is that of simplemma."""
    assert LEMMAS[language](word) == lemma_by_simplemma(word, language)


def test_a_dictionary_is_unpacked_once(folder, monkeypatch):
    """The second process reads the file that the first has written."""
    first = dict(load("ms").items())
    monkeypatch.setattr(dictionary, "DefaultDictionaryFactory", None)

    assert dict(load("ms").items()) == first


def _cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def _change(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _empty(path):
    path.write_bytes(b"")


def _swap(path):
    load("id")
    path.with_name("lemmas-id.bin").replace(path)


@pytest.mark.parametrize("damage", [_cut, _change, _empty, _swap])
def test_a_broken_file_is_replaced(folder, damage):
    """An incomplete file, or one made from another dictionary, is not read."""
    load("ms")
    path = folder / "lemmas-ms.bin"
    whole = path.read_bytes()
    damage(path)

    cached = load("ms")

    assert dict(cached.items()) == dict(PLAIN.get_dictionary("ms").items())
    assert path.read_bytes() == whole


def _missing(folder, monkeypatch):
    monkeypatch.setattr(dictionary, "cache_folder", folder / "missing")


def _none(folder, monkeypatch):
    monkeypatch.setattr(dictionary, "cache_folder", None)


def _taken(folder, monkeypatch):
    (folder / "lemmas-ms.bin").mkdir()


@pytest.mark.parametrize("trouble", [_missing, _none, _taken])
def test_without_a_cache(folder, monkeypatch, trouble):
    """The dictionary is unpacked, and no file is left behind."""
    trouble(folder, monkeypatch)

    plain = load("ms")

    assert not isinstance(plain, MappedDictionary)
    assert dict(plain.items()) == dict(PLAIN.get_dictionary("ms").items())
    assert all(path.is_dir() for path in folder.iterdir())


def test_many_threads_at_once(folder):
    """Threads that all find no file write one complete file, and all have the words."""
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(load, ["ms"] * 8))

    assert all(dict(one.items()) == dict(loaded[0].items()) for one in loaded)
    assert [path.name for path in folder.iterdir()] == ["lemmas-ms.bin"]
