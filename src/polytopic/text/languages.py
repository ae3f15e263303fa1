"""What is known of each language: its lemmas, its stems, its stop words."""

from threading import Lock

import simplemma
import snowballstemmer
import stopwordsiso
from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

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
    """Return the function that gives the dictionary form of a word."""

    def lemma(word):
        if "'" in word and not simplemma.is_known(word, language):
            word = main_part(word)
        return word and simplemma.lemmatize(word, language)

    return lemma


def stemmer(language):
    """Return the function that cuts the ending off a word."""
    stem_word = snowballstemmer.stemmer(_SNOWBALL_NAMES[language]).stemWord
    lock = Lock()  # a Snowball stemmer holds the word it works on

    def stem(word):
        with lock:
            return stem_word(main_part(word))

    return stem
