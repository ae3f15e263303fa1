"""The term of each token, analysed once."""

from functools import cached_property
from string import ascii_letters

import numpy as np

from polytopic.text import languages
from polytopic.text.packed_words import (
    GrowingTable,
    Terms,
    bounds,
    byte_view,
    distinct,
    main_parts,
    pack,
    scatter,
    select,
    unpack,
)
from polytopic.text.tokens import TURKIC, TokenPattern, fold, lower, main_part, spell

_MAX_TOKENS = 1_000_000
_MAX_LETTERS = 32 << 20  # of all cached tokens, since one token may be as long as a text
_FEW = 32  # tokens that are analysed faster one by one
_REDUCERS: dict[str, type[languages.Lemmas | languages.Stems]] = {
    "lemma": languages.Lemmas,
    "stem": languages.Stems,
}
# Letters at the end of the beginning of a token whose spelling may still change: the marks of the
# last letter are sorted and composed with those that follow.
_SLACK = 64
_IS_PLAIN = np.isin(np.arange(256), list(b"\0'" + ascii_letters.encode()))


class Lexicon(dict):
    """A cache of the term of each token, None for a token that is dropped.

    Parameters are those of `Analyzer`, validated, with "auto" resolved.
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
        self._n_letters = 0  # of the cached tokens
        self.tokens = GrowingTable()  # the tokens that compiled loops know

    def pattern_for(self, text):
        """Return the compiled expression that finds the tokens of this text."""
        return self.pattern.compile_for(text)

    # One by one

    def __missing__(self, token):
        term = self._analyze(token)
        self._n_letters += len(token)
        if len(self) >= _MAX_TOKENS or self._n_letters > _MAX_LETTERS:
            self.clear()
            self._n_letters = len(token)
        if len(token) <= _MAX_LETTERS:
            self[token] = term
        return term

    def _analyze(self, token):
        if self._is_too_long(token):
            return None
        word = spell(token)
        folded = fold(word, self._language)
        if not self._keeps(folded):
            return None
        term = self._term(word, folded)
        return term if term == folded or self._keeps(fold(term, self._language)) else None

    def _is_too_long(self, token):
        """Return whether the beginning of a token shows that its spelling is too long.

        Normalizing all of a token of a million letters may take a minute, in which Python runs no
        other thread, and a hundred times its memory.
        """
        most = self._lengths[-1] + _SLACK
        size = 4 * most
        while size < len(token):
            if len(fold(spell(token[:size]), self._language)) > most:
                return True
            size *= 4  # characters that are invisible or dropped do not count
        return False

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

    # Many at once, with the same result

    def learn(self, packed):
        """Add distinct packed tokens to `tokens`; return its `Terms` and each token's number."""
        if packed.count(b"\0") <= _FEW:
            terms = pack(self[token] or "" for token in unpack(packed))
            which = np.arange(terms.count(b"\0"))
        else:
            terms, which = self._analyze_many(packed)
        limits = {"max_tokens": _MAX_TOKENS, "max_bytes": _MAX_LETTERS}
        return self.tokens.add(packed, terms, which, **limits)

    def _analyze_many(self, packed):
        """Return packed terms, empty for none, and which of them each packed token has.

        Tokens of the letters A to Z and apostrophes have one spelling, and are analysed together.
        """
        starts, ends = bounds(packed)
        plain = np.full(ends.size, self._language not in TURKIC)
        plain[np.searchsorted(ends, np.flatnonzero(~_IS_PLAIN[byte_view(packed)]))] = False
        which = np.empty(ends.size, dtype=np.intp)
        which[plain], words = distinct(self._fold_case(packed, starts), starts[plain], ends[plain])
        others = unpack(select(packed, ~plain))
        which[~plain] = np.arange(len(others)) + words.count(b"\0")
        return self._plain_terms(words) + pack(self[word] or "" for word in others), which

    def _fold_case(self, packed, starts):
        """Return plain tokens in the case in which they are reduced; others may be garbled."""
        if not self._lowercase:
            return packed
        if not self._capital_nouns:
            return packed.lower()
        folded = byte_view(packed.lower()).copy()
        folded[starts] = byte_view(packed)[starts]
        return folded.tobytes()

    def _plain_terms(self, words):
        """Return the terms of plain packed words, empty for those that are dropped."""
        mask = self._keep(words)
        terms = self._reduce_many(select(words, mask))
        mask[mask] = keep_terms = self._keep(terms)
        return scatter(select(terms, keep_terms), mask)

    def _reduce_many(self, words):
        if self._reduce is None:
            return main_parts(words)
        terms = self._reduce.of_packed(words)
        if not self._lowercase:
            return terms
        if terms.isascii():
            return terms.lower()
        return pack(fold(term, self._language) for term in unpack(terms))

    def _keep(self, words):
        """Return which of the packed words to keep."""
        if not words.isascii():
            return np.array([self._keeps(fold(word, self._language)) for word in unpack(words)])
        starts, ends = bounds(words)
        sizes = ends - starts
        mask = (sizes >= self._lengths[0]) & (sizes <= self._lengths[-1])
        if self._stop_words:
            mask &= ~self._plain_stop_words.contain(words.lower())
        return mask

    @cached_property
    def _plain_stop_words(self):
        terms = Terms()
        terms.number(pack(w for w in self._stop_words if w.isascii() and "\0" not in w))
        return terms
