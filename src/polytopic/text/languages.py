"""What is known of each language: its lemmas, its stems, its stop words."""

from threading import Lock
from unicodedata import normalize

import simplemma
import snowballstemmer
import stopwordsiso
from simplemma import Lemmatizer
from simplemma.strategies import DefaultStrategy, DictionaryLookupStrategy, RulesStrategy
from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

from polytopic.text.dictionaries import KeptDictionaries
from polytopic.text.english import STOP_WORDS
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


def lemmatizer(language):
    """Return the function that gives the dictionary form of a word, as simplemma does."""
    dictionaries = KeptDictionaries()
    lookup = DictionaryLookupStrategy(dictionaries)
    lemmatize = Lemmatizer(
        cache_max_size=0,  # a lexicon asks for each word once
        lemmatization_strategy=DefaultStrategy(dictionary_factory=dictionaries),
    ).lemmatize

    def lemma(word):
        if "'" in word and lookup.get_lemma(normalize("NFC", word), language) is None:
            word = main_part(word)
        if _IS_READ and word.isascii() and word.isalpha():
            return lemma_of_letters(word)
        return word and lemmatize(word, language)

    def lemma_of_letters(word):  # of A to Z: simplemma's way, without what does nothing to them
        known = dictionaries.get_dictionary(language).get
        if language != "en":
            return known(word) or lemmatize(word, language)
        other = word.lower() if word[0].isupper() else word.capitalize()
        return known(word) or known(other) or _RULES.get_lemma(word, language) or word

    return lemma


def stemmer(language):
    """Return the function that cuts the ending off a word."""
    stem_word = snowballstemmer.stemmer(_SNOWBALL_NAMES[language]).stemWord
    lock = Lock()  # a Snowball stemmer holds the word it works on

    def stem(word):
        with lock:
            return stem_word(main_part(word))

    return stem
