"""What is known of each language: its lemmas, its stems, its stop words."""

from itertools import compress
from threading import Lock
from unicodedata import normalize

import numpy as np
import simplemma
import snowballstemmer
import stopwordsiso
from simplemma import Lemmatizer
from simplemma.strategies import DefaultStrategy, DictionaryLookupStrategy, RulesStrategy
from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

from polytopic.text.dictionaries import KeptDictionaries, KeptDictionary
from polytopic.text.english import STOP_WORDS
from polytopic.text.letters import (
    are_empty,
    borders_of,
    bytes_of,
    chosen,
    filled,
    having,
    letters_of,
    main_parts,
    split,
)
from polytopic.text.tokens import main_part

_SNOWBALL_NAMES = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek",
    "en": "english", "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque",
    "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi",
    "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian",
    "nb": "norwegian", "ne": "nepali", "nl": "dutch", "nn": "norwegian", "no": "norwegian",
    "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "st": "sesotho", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
_STOP_LISTS = {"nb": "no", "nn": "no", "hbs": "hr"}
_IS_READ = simplemma.__version__ == "2.0.0"  # whose order of steps is known here
_RULES = RulesStrategy()
_ENDS_BY_RULE = [  # the last three letters of the English words for which it has rules
    int.from_bytes(end, "big") for end in b"ces ies ves ips nts oms ons sms sts ums zed".split()
]

LEMMATIZED = frozenset(SUPPORTED_LANGUAGES)
STEMMED = frozenset(
    code for code, name in _SNOWBALL_NAMES.items() if name in snowballstemmer.algorithms()
)
LANGUAGES = LEMMATIZED | STEMMED
CAPITAL_NOUNS = ("de", "lb")  # Bäume are trees, bäume is a verb


def stop_words(language):
    """Return the stop words of a language; none where no list is known."""
    if language == "en":
        return STOP_WORDS
    code = _STOP_LISTS.get(language, language)
    return stopwordsiso.stopwords(code) if code in stopwordsiso.langs() else frozenset()


class Lemmas:
    """The dictionary forms of words, as simplemma gives them."""

    def __init__(self, language):
        self._language = language
        self._dictionaries = dictionaries = KeptDictionaries()
        self._look_up = DictionaryLookupStrategy(dictionaries).get_lemma
        self._lemmatize = Lemmatizer(
            cache_max_size=0,  # a lexicon asks for each word once
            lemmatization_strategy=DefaultStrategy(dictionary_factory=dictionaries),
        ).lemmatize

    def __call__(self, word):
        """Return the dictionary form of a word."""
        if "'" in word and not self._has(word):
            word = main_part(word)
        if _IS_READ and word.isascii() and word.isalpha():
            return self._of_letters(word)
        return word and self._lemmatize(word, self._language)

    def _has(self, word):
        """Return whether the dictionary has a word with apostrophes, which may be others."""
        joint = getattr(self._dictionary, "joint_words", None)
        if joint is not None and word.isascii() and word.lower() not in joint:
            return False  # in any case and with any apostrophe, so look no further
        return self._look_up(normalize("NFC", word), self._language) is not None

    def _of_letters(self, word):  # simplemma's way, without what does nothing to A to Z
        known = self._dictionary.get
        if self._language != "en":
            return known(word) or self._lemmatize(word, self._language)
        return known(word) or known(_other_case(word)) or _RULES.get_lemma(word, "en") or word

    def of_letters(self, letters):
        """Return the dictionary forms of many words of A to Z and apostrophes, all as letters."""
        dictionary = self._dictionary
        if not (_IS_READ and isinstance(dictionary, KeptDictionary)):
            return letters_of(map(self, split(letters)))
        joint = having(letters, b"'")
        words = split(chosen(letters, joint))
        known = dictionary.joint_words
        has = np.array([word.lower() in known and self._has(word) for word in words], dtype=bool)
        joint[joint] = has
        lemmas = self._of_many(main_parts(letters), dictionary)
        return filled(lemmas, letters_of(map(self, compress(words, has))), joint)

    def _of_many(self, letters, dictionary):
        lemmas = dictionary.lemmas(letters)
        unknown = are_empty(lemmas)
        return filled(lemmas, self._of_unknown(chosen(letters, unknown), dictionary), unknown)

    def _of_unknown(self, letters, dictionary):
        """Return the dictionary forms of words that the dictionary does not have as they are."""
        if self._language != "en":
            return letters_of(self._lemmatize(word, self._language) for word in split(letters))
        lemmas = dictionary.lemmas(_other_cases(letters))
        unknown = are_empty(lemmas)
        return filled(lemmas, _by_rules(chosen(letters, unknown)), unknown)

    @property
    def _dictionary(self):
        return self._dictionaries.get_dictionary(self._language)


def _other_case(word):
    return word.lower() if word[0].isupper() else word.capitalize()


def _other_cases(letters):
    """Return words in lower case, those whose first letter is in lower case in title case."""
    others, starts = bytes_of(letters.lower()).copy(), borders_of(letters)[0]
    first = bytes_of(letters)[starts]
    others[starts] = first ^ (ord("a") - ord("A"))
    return others.tobytes()


def _by_rules(letters):
    """Return what simplemma's rules make of English words, or the words as they are."""
    last, codes = borders_of(letters)[1] - 1, bytes_of(b"\0\0" + letters).astype(np.int32)
    has_rule = np.isin(codes[last] << 16 | codes[last + 1] << 8 | codes[last + 2], _ENDS_BY_RULE)
    words = split(chosen(letters, has_rule))
    return filled(letters, letters_of(_RULES.get_lemma(w, "en") or w for w in words), has_rule)


class Stems:
    """Words without their endings, as Snowball cuts them off."""

    def __init__(self, language):
        self._stem = snowballstemmer.stemmer(_SNOWBALL_NAMES[language]).stemWord
        self._lock = Lock()  # a Snowball stemmer holds the word it works on

    def __call__(self, word):
        """Return a word without its ending."""
        with self._lock:
            return self._stem(main_part(word))

    def of_letters(self, letters):
        """Return many words without their endings, all as letters."""
        return letters_of(map(self, split(letters)))
