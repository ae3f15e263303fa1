"""The term of each token, analysed once."""

from functools import cached_property
from string import ascii_letters

import numpy as np

from polytopic.text import languages
from polytopic.text.letters import (
    borders_of,
    bytes_of,
    chosen,
    distinct,
    letters_of,
    main_parts,
    split,
    spread,
)
from polytopic.text.terms import Terms
from polytopic.text.token_table import GrowingTable
from polytopic.text.tokens import TURKIC, TokenPattern, fold, lower, main_part, spell

_MAX_CACHED = 1_000_000
_MAX_LETTERS = 32 << 20  # of all tokens that are cached: one token may be as long as a text
_FEW = 32  # tokens that are analysed faster one by one
_REDUCERS: dict[str, type[languages.Lemmas | languages.Stems]] = {
    "lemma": languages.Lemmas,
    "stem": languages.Stems,
}
_IS_PLAIN = np.isin(np.arange(256), list(b"\0'" + ascii_letters.encode()))


class Lexicon(dict):
    """The term of each token met so far, None if it is dropped; the rest on first look-up.

    Parameters are those of `Analyzer`, checked, with "auto" resolved.
    """

    def __init__(
        self,
        *,
        language,
        normalize,
        stop_words,
        numbers,
        hyphens,
        min_length,
        max_length,
        lowercase,
    ):
        self._language = language
        self._lowercase = lowercase
        self._lengths = range(min_length, max_length + 1)
        self._reduce = _REDUCERS[normalize](language) if normalize else None
        self._capital_nouns = normalize == "lemma" and language in languages.CAPITAL_NOUNS
        self._stop_words = frozenset(fold(spell(word), language) for word in stop_words)
        self.pattern = TokenPattern(numbers=numbers, hyphens=hyphens)
        self._n_letters = 0  # of the tokens that are cached
        self.tokens = GrowingTable()  # what is known here in the form that compiled loops read

    def pattern_of(self, text):
        """Return the compiled expression that finds the tokens of this text."""
        return self.pattern.of(text)

    # One by one

    def __missing__(self, token):
        term = self._analyze(token)
        self._n_letters += len(token)
        if len(self) >= _MAX_CACHED or self._n_letters > _MAX_LETTERS:
            self.clear()
            self._n_letters = len(token)
        if len(token) <= _MAX_LETTERS:
            self[token] = term
        return term

    def _analyze(self, token):
        word = spell(token)
        folded = fold(word, self._language)
        if not self._keeps(folded):
            return None
        term = self._term(word, folded)
        return term if term == folded or self._keeps(fold(term, self._language)) else None

    def _keeps(self, folded):
        return len(folded) in self._lengths and folded not in self._stop_words

    def _term(self, word, folded):
        if self._reduce is None:
            return main_part(folded if self._lowercase else word)
        if not self._lowercase:
            return self._reduce(word)
        capital_noun = self._capital_nouns and word[0].isupper()
        word = word.capitalize() if capital_noun else lower(word, self._language)
        return fold(self._reduce(word), self._language)

    # Many at once, with the same terms

    def learn(self, letters):
        """Let the compiled loops know tokens; return what numbers terms, and their numbers.

        Tokens are distinct, in UTF-8, with a zero after each.
        """
        if letters.count(b"\0") <= _FEW:
            terms = letters_of(self[token] or "" for token in split(letters))
            which = np.arange(terms.count(b"\0"))
        else:
            terms, which = self._analyze_many(letters)
        return self.tokens.learn(letters, terms, which, most=_MAX_CACHED, most_letters=_MAX_LETTERS)

    def _analyze_many(self, letters):
        """Return the terms of tokens as letters, empty for none, and which of them each token has.

        Those of the letters A to Z and apostrophes, which have one spelling, are analysed together.
        """
        starts, ends = borders_of(letters)
        plain = np.full(ends.size, self._language not in TURKIC)
        plain[np.searchsorted(ends, np.flatnonzero(~_IS_PLAIN[bytes_of(letters)]))] = False
        which = np.empty(ends.size, dtype=np.intp)
        which[plain], words = distinct(self._cased(letters, starts), starts[plain], ends[plain])
        others = split(chosen(letters, ~plain))
        which[~plain] = np.arange(len(others)) + words.count(b"\0")
        return self._terms_of_plain(words) + letters_of(self[word] or "" for word in others), which

    def _cased(self, letters, starts):
        """Return plain tokens in the case in which they are reduced; others may be spoiled."""
        if not self._lowercase:
            return letters
        if not self._capital_nouns:
            return letters.lower()
        cased = bytes_of(letters.lower()).copy()
        cased[starts] = bytes_of(letters)[starts]
        return cased.tobytes()

    def _terms_of_plain(self, words):
        """Return the terms of words in the case in which they are reduced, all as letters."""
        kept = self._keep(words)
        terms = self._reduced(chosen(words, kept))
        kept[kept] = own = self._keep(terms)
        return spread(chosen(terms, own), kept)

    def _reduced(self, words):
        if self._reduce is None:
            return main_parts(words)
        terms = self._reduce.of_letters(words)
        return self._folded(terms) if self._lowercase else terms

    def _keep(self, words):
        """Return which of words are kept."""
        if not words.isascii():
            return np.array([self._keeps(fold(word, self._language)) for word in split(words)])
        starts, ends = borders_of(words)
        sizes = ends - starts
        kept = (sizes >= self._lengths[0]) & (sizes <= self._lengths[-1])
        if self._stop_words:
            kept &= ~self._plain_stop_words.has(words.lower())
        return kept

    @cached_property
    def _plain_stop_words(self):
        plain = [word for word in self._stop_words if word.isascii() and "\0" not in word]
        terms = Terms()
        terms.number(letters_of(plain))
        return terms

    def _folded(self, words):
        if words.isascii():
            return words.lower()
        return letters_of(fold(word, self._language) for word in split(words))
