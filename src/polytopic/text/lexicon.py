"""The term of each token, analysed once."""

from polytopic.text import languages
from polytopic.text.token_table import GrowingTable
from polytopic.text.tokens import TokenPattern, fold, lower, main_part, spell

_MAX_CACHED = 1_000_000
_REDUCERS = {"lemma": languages.lemmatizer, "stem": languages.stemmer}


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

    def learn(self, tokens):
        """Return the terms of tokens in UTF-8, and let the compiled loops know them."""
        terms = {token: self[token.decode()] for token in tokens}
        if terms:
            self.tokens.learn(terms, most=_MAX_CACHED)
        return terms

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
