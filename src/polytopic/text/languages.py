"""The lemmas, stems and stop words of each language."""

from functools import cache
from itertools import compress
from threading import Lock
from unicodedata import normalize

import numpy as np
from simplemma import Lemmatizer
from simplemma.strategies import DefaultStrategy, DictionaryLookupStrategy, RulesStrategy
from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

from polytopic.text.dictionary import CachedDictionaryFactory, MappedDictionary
from polytopic.text.packed_words import (
    are_empty,
    bounds,
    byte_view,
    contain,
    main_parts,
    pack,
    replace,
    select,
    unpack,
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

LEMMATIZED = SUPPORTED_LANGUAGES
CAPITAL_NOUNS = ("de", "lb")  # Bäume are trees, bäume is a verb

# The English words that both stopwords-iso and scikit-learn list. The list of stopwords-iso alone
# is long and contains topics ("computer", "world").
_ENGLISH_STOP_WORDS = frozenset(
    """
    a about above across after afterwards again against all almost alone along already also
    although always am among amongst amoungst amount an and another any anyhow anyone anything
    anyway anywhere are around as at back be became because become becomes becoming been before
    beforehand behind being below beside besides between beyond bill both bottom but by call can
    cannot cant co con could couldnt cry de describe detail do done down due during each eg eight
    either eleven else elsewhere empty enough etc even ever every everyone everything everywhere
    except few fifteen fifty fill find fire first five for former formerly forty found four from
    front full further get give go had has hasnt have he hence her here hereafter hereby herein
    hereupon hers herself him himself his how however hundred i ie if in inc indeed interest into
    is it its itself keep last latter latterly least less ltd made many may me meanwhile might mill
    mine more moreover most mostly move much must my myself name namely neither never nevertheless
    next nine no nobody none noone nor not nothing now nowhere of off often on once one only onto
    or other others otherwise our ours ourselves out over own part per perhaps please put rather re
    same see seem seemed seeming seems serious several she should show side since sincere six sixty
    so some somehow someone something sometime sometimes somewhere still such system take ten than
    that the their them themselves then thence there thereafter thereby therefore therein thereupon
    these they thick thin third this those though three through throughout thru thus to together
    too top toward towards twelve twenty two un under until up upon us very via was we well were
    what whatever when whence whenever where whereafter whereas whereby wherein whereupon wherever
    whether which while whither who whoever whole whom whose why will with within without would yet
    you your yours yourself yourselves
    """.split()  # noqa: SIM905
)


@cache
def stemmed_languages():
    """Return the codes of the languages that Snowball supports."""
    import snowballstemmer  # here and below: most languages need neither list

    names = snowballstemmer.algorithms()
    return frozenset(code for code, name in _SNOWBALL_NAMES.items() if name in names)


def stop_words(language):
    """Return the stop words of a language; none if there is no list."""
    return _ENGLISH_STOP_WORDS if language == "en" else stop_list(language)


def stop_list(language):
    """Return all words that stopwords-iso lists for a language; none if it has no list."""
    import stopwordsiso

    code = stop_list_code(language)
    return stopwordsiso.stopwords(code) if code in stopwordsiso.langs() else frozenset()


def stop_list_code(language):
    """Return the code under which stopwords-iso lists the stop words of a language."""
    return _STOP_LISTS.get(language, language)


class Lemmas:
    """The dictionary forms of words, by simplemma.

    Words of the letters A to Z are looked up together. If such an English word is not in the
    dictionary, only two of simplemma's strategies apply: the other case, and the rules. Unknown
    words of other languages go through all strategies.
    """

    def __init__(self, language):
        self._language = language
        self._dictionaries = CachedDictionaryFactory()
        self._look_up = DictionaryLookupStrategy(self._dictionaries).get_lemma
        self._apply_rules = RulesStrategy().get_lemma
        self._lemmatize = Lemmatizer(
            cache_max_size=0,  # a lexicon looks up each word once
            lemmatization_strategy=DefaultStrategy(dictionary_factory=self._dictionaries),
        ).lemmatize

    def __call__(self, word):
        """Return the dictionary form of a word."""
        if "'" in word and not self._has(word):
            word = main_part(word)
        return word and self._lemmatize(word, self._language)

    def _has(self, word):
        """Return whether the dictionary has a word with apostrophes."""
        dictionary = self._dictionary
        if (
            isinstance(dictionary, MappedDictionary)
            and word.isascii()
            and word.lower() not in dictionary.apostrophe_words
        ):
            return False  # not with any case or apostrophe, so do not look it up
        return self._look_up(normalize("NFC", word), self._language) is not None

    def of_packed(self, packed):
        """Return the dictionary forms of packed words of the letters A to Z and apostrophes."""
        dictionary = self._dictionary
        if not isinstance(dictionary, MappedDictionary):
            return pack(map(self, unpack(packed)))
        joined = contain(packed, b"'")
        words = unpack(select(packed, joined))
        has = np.array([self._has(word) for word in words], dtype=bool)
        joined[joined] = has
        lemmas = self._of_letters(main_parts(packed), dictionary)
        return replace(lemmas, pack(map(self, compress(words, has))), joined)

    def _of_letters(self, packed, dictionary):
        lemmas = dictionary.lemmas(packed)
        unknown = are_empty(lemmas)
        others = select(packed, unknown)
        if self._language == "en":
            others = self._of_unknown_english(others, dictionary)
        else:
            others = pack(self._lemmatize(word, self._language) for word in unpack(others))
        return replace(lemmas, others, unknown)

    def _of_unknown_english(self, packed, dictionary):
        lemmas = dictionary.lemmas(_in_other_case(packed))
        unknown = are_empty(lemmas)
        words = unpack(select(packed, unknown))
        by_rule = pack([self._apply_rules(word, "en") or word for word in words])
        return replace(lemmas, by_rule, unknown)

    @property
    def _dictionary(self):
        return self._dictionaries.get_dictionary(self._language)


def _in_other_case(packed):
    """Return words in lower case, or capitalized if their first letter is in lower case."""
    others, starts = byte_view(packed.lower()).copy(), bounds(packed)[0]
    others[starts] = byte_view(packed)[starts] ^ (ord("a") - ord("A"))
    return others.tobytes()


class Stems:
    """Words without their endings, by Snowball."""

    def __init__(self, language):
        import snowballstemmer

        self._stem = snowballstemmer.stemmer(_SNOWBALL_NAMES[language]).stemWord
        self._lock = Lock()  # a Snowball stemmer holds the word it works on

    def __call__(self, word):
        """Return a word without its ending."""
        with self._lock:
            return self._stem(main_part(word))

    def of_packed(self, packed):
        """Return packed words without their endings."""
        return pack(map(self, unpack(packed)))
