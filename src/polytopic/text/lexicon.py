"""The term of each token, analysed once."""

import numpy as np

from polytopic.text import languages
from polytopic.text.token_table import GrowingTable, borders_of, distinct
from polytopic.text.tokens import TURKIC, TokenPattern, fold, lower, main_part, spell

_MAX_CACHED = 1_000_000
_FEW = 32  # tokens that are analysed faster one by one
_REDUCERS: dict[str, type[languages.Lemmas | languages.Stems]] = {
    "lemma": languages.Lemmas,
    "stem": languages.Stems,
}
_IS_PLAIN = np.array([byte < 0x80 and (byte == 0 or chr(byte).isalpha()) for byte in range(256)])


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
        self.tokens = GrowingTable()  # what is known here in the form that compiled loops read

    def pattern_of(self, text):
        """Return the compiled expression that finds the tokens of this text."""
        return self.pattern.of(text)

    # One by one

    def __missing__(self, token):
        if len(self) >= _MAX_CACHED:
            self.clear()
        self[token] = term = self._analyze(token)
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
            terms = [self[token] for token in _split(letters)]
            which = np.arange(len(terms))
        else:
            terms, which = self._analyze_many(letters)
        return self.tokens.learn(letters, terms, which, most=_MAX_CACHED)

    def _analyze_many(self, letters):
        """Return the terms of tokens, and which of them each token has.

        Those that have only the letters A to Z, which have one spelling, are analysed together.
        """
        starts, ends = borders_of(letters)
        plain = np.full(ends.size, self._language not in TURKIC)
        strange = np.flatnonzero(~_IS_PLAIN[np.frombuffer(letters, dtype=np.uint8)])
        plain[np.searchsorted(ends, strange)] = False
        which = np.empty(ends.size, dtype=np.intp)
        which[plain], words = distinct(self._cased(letters, starts), starts[plain], ends[plain])
        terms = self._terms_of_plain(_split(words))
        others = zip(starts[~plain].tolist(), ends[~plain].tolist(), strict=True)
        which[~plain] = np.arange(len(terms), len(terms) + np.count_nonzero(~plain))
        return terms + [self[letters[start:end].decode()] for start, end in others], which

    def _cased(self, letters, starts):
        """Return plain tokens in the case in which they are reduced; others may be spoiled."""
        if not self._lowercase:
            return letters
        if not self._capital_nouns:
            return letters.lower()
        cased = bytearray(letters.lower())
        np.frombuffer(cased, dtype=np.uint8)[starts] = np.frombuffer(letters, np.uint8)[starts]
        return bytes(cased)

    def _terms_of_plain(self, words):
        """Return the terms of distinct words in the case in which they are reduced."""
        words = self._kept(words)
        if self._reduce is None:
            return words
        kept = [word for word in words if word is not None]
        terms = self._reduce.of_letters(kept)
        terms = self._kept(self._folded(terms) if self._lowercase else terms)
        return list(map(dict(zip(kept, terms, strict=True)).get, words))

    def _kept(self, words):
        """Return words, None for those that are dropped."""
        least, most, stop_words = self._lengths[0], self._lengths[-1], self._stop_words
        return [
            word if least <= len(own) <= most and own not in stop_words else None
            for word, own in zip(words, self._folded(words), strict=True)
        ]

    def _folded(self, words):
        joined = "\0".join(words)
        if not joined.isascii():
            return [fold(word, self._language) for word in words]
        return words if joined == joined.lower() else joined.lower().split("\0")


def _split(letters):
    """Return tokens that have a zero after each."""
    return letters.decode().split("\0")[:-1]
