"""Terms of scripts without spaces between words: Chinese, Japanese, Thai, and some others.

A *run* is a stretch of letters of such a script, with their marks. It becomes pairs of adjacent
letters, which overlap, or words that a segmenter of its language finds. All other text has spaces,
and is left to :class:`~polytopic.text.tokens.TokenPattern`.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from itertools import accumulate, pairwise
from threading import Lock
from typing import NamedTuple

from polytopic.errors import PolytopicError
from polytopic.text.tokens import char_class, last_code_point

UNSPACED = ("ja", "th", "zh")  # languages without spaces between words
LONGEST = 2000  # characters that a segmenter reads at once

_LETTERS = (  # of scripts without spaces: first and last code point
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3006),  # marks of repetition
    (0x3031, 0x3035),
    (0x3041, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9D),  # Katakana, half width
    (0x1B000, 0x1B16F),  # old Kana
    (0x20000, 0x3FFFF),  # Han
)
_WIDTH_MARKS = "\uff9e\uff9f"  # sound marks of half-width Katakana, which are letters in Unicode


class Segmenter:
    """Finds the tokens of runs of letters without spaces.

    Parameters
    ----------
    segment : {"bigrams", "words"}
        What a run becomes.
    language : str or None
        The language of words.
    """

    def __init__(self, segment: str, language: str | None):
        self._cut = _adjacent_pairs if segment == "bigrams" else _Words(language)

    def spans(self, text: str, pattern: re.Pattern) -> Iterator[tuple[int, int]]:
        """Yield where each token of a text starts and ends.

        ``pattern`` finds the tokens between the runs.
        """
        end = 0
        for run in _runs(text):
            yield from (token.span() for token in pattern.finditer(text, end, run.start()))
            yield from self._tokens(run)
            end = run.end()
        yield from (token.span() for token in pattern.finditer(text, end))

    def spread(self, text: str) -> str:
        """Return a text in which spaces separate the tokens of its runs."""
        if text.isascii():
            return text
        pieces, end = [], 0
        for run in _runs(text):
            pieces += [text[end : run.start()], *(text[a:b] for a, b in self._tokens(run))]
            end = run.end()
        return " ".join([*pieces, text[end:]])

    def _tokens(self, run):
        letters = [letter.start() for letter in _letters(run[0]).finditer(run[0])]
        first = run.start()
        return [(first + start, first + end) for start, end in self._cut(run[0], letters)]


def _adjacent_pairs(run, letters):
    """Return where pairs of adjacent letters start and end; a letter alone stays alone."""
    bounds = [*letters, len(run)]
    return list(zip(bounds, bounds[2:], strict=False)) or [(0, len(run))]


class _Words:
    """Where the words of runs start and end, as the segmenter of a language finds them."""

    def __init__(self, language):
        require_segmenter(language)
        self._words = _SEGMENTERS[language].create()
        self._lock = Lock()  # a segmenter may hold the text it works on

    def __call__(self, run, letters):
        borders: set[int] = set()
        for first in range(0, len(run), LONGEST):
            with self._lock:
                words = self._words(run[first : first + LONGEST])
            borders.update(accumulate(map(len, words), initial=first))
        # a mark stays with its letter, so that each piece is one token
        return list(pairwise([*sorted(borders & set(letters)), len(run)]))


class _SegmenterPackage(NamedTuple):
    """A package that finds words, and a function that returns its function from text to words."""

    name: str
    create: Callable[[], Callable[[str], list[str]]]


def _jieba():
    import logging

    import jieba

    jieba.setLogLevel(logging.WARNING)  # it prints how long its dictionary takes to load
    return lambda text: list(jieba.cut(text))


def _sudachi():
    import sudachipy

    tokenizer = sudachipy.Dictionary().tokenizer()
    return lambda text: [word.surface() for word in tokenizer.tokenize(text)]


def _pythainlp():
    from pythainlp.tokenize import word_tokenize

    return lambda text: word_tokenize(text, engine="newmm-safe")


_SEGMENTERS = {
    "ja": _SegmenterPackage("sudachipy", _sudachi),
    "th": _SegmenterPackage("pythainlp", _pythainlp),
    "zh": _SegmenterPackage("jieba", _jieba),
}


def require_segmenter(language: str | None) -> None:
    """Raise unless there is a segmenter of a language, and its package is installed."""
    if language not in _SEGMENTERS:
        raise ValueError(
            f"segment == 'words' is for the languages {', '.join(_SEGMENTERS)}, not for language "
            f"== {language!r}. Use 'bigrams'."
        )
    package = _SEGMENTERS[language].name
    if find_spec(package) is None:
        raise PolytopicError(
            f"{package} is not installed. Install it with: pip install 'polytopic[segmenters]'"
        )


def _runs(text):
    """Return the runs of a text."""
    letters, marks = _classes(last_code_point(text))
    return re.finditer(f"[{letters}][{letters}{marks}]*+", text)


def _letters(run):
    """Return the compiled expression that finds each letter of a run, with its marks."""
    letters, marks = _classes(last_code_point(run))
    return re.compile(f"[{letters}][{marks}]*+")


@cache
def _classes(last):
    """Return the classes of letters without spaces, and of marks, up to a code point."""
    letters = char_class("L", last, _LETTERS)
    return letters, char_class("M", last) + _WIDTH_MARKS
