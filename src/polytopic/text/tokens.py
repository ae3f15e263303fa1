"""Find the words of a text, and normalize their spelling.

Python's ``re`` has no classes for letters and marks, so they are built here, once, from the Unicode
tables in ``unicodedata``.
"""

import re
import sys
import unicodedata
from functools import cache, lru_cache

import numpy as np

from polytopic.text.kernels import CONTINUES, JOINS, STARTS

_APOSTROPHES = "'\u2019"  # and U+02BC, which is a letter
_HYPHENS = "-\u2010\u2011"
_JOINERS = "\u00ad\u200c\u200d"  # soft hyphen, Persian and Indic (non-)joiners
# the largest byte of a text in UTF-8, and the code points that it may contain
_REACH = ((0x7F, 0x80), (0xEF, 0x10000), (0xF0, 0x40000), (0xFF, sys.maxunicode + 1))
_BEYOND_BMP = re.compile("[\U00010000-\U0010ffff]")

LONGEST_RUN = 30  # of marks, as in the Unicode stream-safe format (UAX #15)

_SPELLING = {
    **dict.fromkeys(map(ord, "\u2019\u02bc"), "'"),
    **dict.fromkeys(map(ord, "\u2010\u2011"), "-"),
    **dict.fromkeys([0x00AD, *range(0xFE00, 0xFE10)]),  # soft hyphen, variation selectors
}
_TURKISH_CASE = str.maketrans({"I": "ı", "İ": "i"})
TURKIC = ("az", "tr")


class TokenPattern:
    """Finds the tokens of a text: words exactly as they are written.

    A token is a run of letters with their marks. An apostrophe or an invisible joiner between two
    letters does not end it.

    Parameters
    ----------
    numbers : bool
        Whether digits count as letters: "b2b", "2024".
    hyphens : bool
        Whether a token may contain hyphens between letters.
    """

    def __init__(self, *, numbers, hyphens):
        self._settings = bool(numbers), bool(hyphens)

    def compile_for(self, text):
        """Return the compiled expression that finds the tokens of this text."""
        # Character classes that go beyond the BMP make re ten times slower; few texts need them.
        bmp = text.isascii() or not _BEYOND_BMP.search(text)
        return _compile(*self._settings, 0xFFFF if bmp else sys.maxunicode)

    def kinds(self, last_byte):
        """Return what each character can do in a token, by code point, for `find_bounds`.

        The array covers every text in UTF-8 whose bytes are at most ``last_byte``.
        """
        return _kinds(*self._settings, next(n for byte, n in _REACH if last_byte <= byte))


@cache
def _compile(numbers, hyphens, last):
    letter = _char_class("LN" if numbers else "L", last)
    inside = _char_class("LMN" if numbers else "LM", last)
    joiners = _joining(hyphens)
    return re.compile(f"[{letter}][{inside}]*+(?:[{re.escape(joiners)}][{letter}][{inside}]*+)*+")


@cache
def _char_class(categories, last):
    """Return the ranges of all characters whose category begins with one of the letters."""
    runs = re.finditer(f"(?:[{categories}][a-z])+", _category_names(last + 1))
    return "".join(f"{chr(run.start() // 2)}-{chr(run.end() // 2 - 1)}" for run in runs)


@cache
def _kinds(numbers, hyphens, n):
    category = np.frombuffer(_category_names(n).encode(), dtype=np.uint8)[::2]
    letter = np.isin(category, [ord(name) for name in ("LN" if numbers else "L")])
    kinds = letter * np.uint8(STARTS | CONTINUES) | (category == ord("M")) * np.uint8(CONTINUES)
    kinds[[code for code in map(ord, _joining(hyphens)) if code < n]] = JOINS
    return kinds


def _joining(hyphens):
    """Return the characters that do not end a token between two letters."""
    return _JOINERS + _APOSTROPHES + (_HYPHENS if hyphens else "")


@cache
def _category_names(n):
    """Return the two-letter categories of the first characters in a string: ``CcCc...LuLu...``."""
    return "".join(map(unicodedata.category, map(chr, range(n))))


def spell(token):
    """Return a token in Unicode's NFKC form, with straight apostrophes and plain hyphens."""
    if token.isascii():
        return token
    if len(token) > LONGEST_RUN:
        token = _without_long_runs(token)
    return unicodedata.normalize("NFKC", token).translate(_SPELLING).strip()


def _without_long_runs(token):
    """Drop marks after `LONGEST_RUN` in a row: sorting them takes quadratic time."""
    run, characters = 0, []
    for character in token:
        run = run + 1 if _is_mark(character) else 0
        if run <= LONGEST_RUN:
            characters.append(character)
    return "".join(characters)


@lru_cache(1 << 14)
def _is_mark(character):
    """Return whether normalization sorts a character among its neighbours."""
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) > 0


def lower(word, language=None):
    """Return a word in lower case by the rules of its language: İ is i, and in Turkish I is ı."""
    if language in TURKIC:
        word = word.translate(_TURKISH_CASE)
    lowered = word.lower()
    return lowered if lowered.isascii() else lowered.replace("i̇", "i")


def fold(word, language=None):
    """Return a form that is equal for words that differ only in case: ß is ss, ς is σ."""
    if word.isascii() and language not in TURKIC:
        return word.lower()
    return unicodedata.normalize("NFC", lower(word, language).casefold())


def main_part(word):
    """Return the longest part of a word between apostrophes, the last one in case of a tie.

    >>> main_part("l'eau"), main_part("bank's"), main_part("dell'arte")
    ('eau', 'bank', 'arte')
    """
    return max(reversed(word.split("'")), key=len) if "'" in word else word
