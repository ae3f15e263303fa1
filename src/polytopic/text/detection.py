"""Tell that a text is in another language, or another script, than the texts of a model.

Every second word of a running text is a stop word. A text that has clearly more stop words of
another language than of its own is in that language. Scripts are those that Unicode names.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import chain

from polytopic.text.languages import stop_list, stop_list_code

_NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish",
    "de": "German", "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish",
    "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French",
    "ga": "Irish", "gl": "Galician", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian",
    "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian", "it": "Italian", "la": "Latin",
    "lt": "Lithuanian", "lv": "Latvian", "ms": "Malay", "nl": "Dutch", "no": "Norwegian",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak",
    "sl": "Slovenian", "sv": "Swedish", "sw": "Swahili", "tl": "Tagalog", "tr": "Turkish",
    "uk": "Ukrainian",
}  # fmt: skip
_WORD = re.compile(r"[^\W\d_]{2,}")  # lists of stop words have letters of the alphabet, too
_CHARACTERS = 500  # of a text, from its beginning
_MIN_WORDS = 2  # stop words of another language
_MIN_SHARE = 0.1  # of the words
_ENOUGH = 0.3  # of the words, stop words of its own language: no other one is looked for
_TIMES = 1.5  # as many as of the model's own language
_FOREIGN_LETTERS = 1 / 3  # of a text
_KNOWN_LETTERS = 0.02  # of a vocabulary
_TERMS = 1000  # of a vocabulary


def other_language(text: str, language: str | None) -> str | None:
    """Return the English name of the language of a text if it is clearly not ``language``.

    The name is that of the language with the most stop words in the text. Related languages, and
    languages without a list of stop words, are not told apart.

    Examples
    --------
    >>> other_language("Der Stürmer hat in der letzten Minute ein Tor geschossen.", "en")
    'German'
    >>> other_language("The striker scored a goal in the last minute.", "en")
    """
    own, words = stop_list_code(language), _WORD.findall(text[:_CHARACTERS].lower())
    if own not in _NAMES or not words:
        return None
    own_words = _stop_words(own)
    n_own = sum(map(own_words.__contains__, words))
    if n_own >= _ENOUGH * len(words):
        return None
    of_word = _codes_of_stop_words()
    counts = Counter(chain.from_iterable(of_word[word] for word in words if word in of_word))
    del counts[own]
    least = max(_MIN_WORDS, _MIN_SHARE * len(words), _TIMES * n_own)
    best, n = max(counts.items(), key=lambda count: count[1], default=("", 0))
    return _NAMES[best] if n >= least else None


_stop_words = cache(stop_list)


@cache
def _codes_of_stop_words() -> dict[str, list[str]]:
    """Return the languages that each stop word is one of."""
    codes: dict[str, list[str]] = {}
    for code in _NAMES:
        for word in _stop_words(code):
            codes.setdefault(word, []).append(code)
    return codes


def name_of_language(language: str | None) -> str | None:
    """Return the English name of a language, None if it has none here."""
    return _NAMES.get(stop_list_code(language) or "")


def other_script(text: str, scripts: frozenset[str]) -> str | None:
    """Return the script of a text if many of its letters are in a script that is not listed.

    Examples
    --------
    >>> other_script("Нападающий забил гол за Spartak.", frozenset({"Latin"}))
    'Cyrillic'
    """
    text = text[:_CHARACTERS]
    if text.isascii() and "Latin" in scripts:
        return None
    counts = _script_counts(text)
    others = {name: n for name, n in counts.items() if name not in scripts}
    if not others or sum(others.values()) < _FOREIGN_LETTERS * counts.total():
        return None
    return max(others, key=lambda name: others[name])


def scripts_of(terms: Iterable[str]) -> frozenset[str]:
    """Return the scripts of a vocabulary, except those with few letters in it."""
    terms = tuple(terms)
    counts = _script_counts("".join(terms[:: max(len(terms) // _TERMS, 1)]))
    return frozenset(name for name, n in counts.items() if n >= _KNOWN_LETTERS * counts.total())


def _script_counts(text: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for letter, n in Counter(text).items():
        if letter.isalpha():
            counts[_script(letter)] += n
    return counts


@lru_cache(1 << 14)
def _script(letter: str) -> str:
    """Return the script of a letter: the first word of its name in Unicode."""
    name = unicodedata.name(unicodedata.normalize("NFKC", letter)[0], "other").split()[0]
    return "Chinese" if name == "CJK" else name.capitalize()
