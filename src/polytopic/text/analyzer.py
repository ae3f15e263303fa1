"""From a text to its terms: tokens, lemmas or stems, stop words."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.utils import check_scalar

from polytopic.text import languages
from polytopic.text.counting import (
    Text,
    count_known_terms,
    count_terms,
    known_terms_and_totals,
    known_terms_by_blocks,
)
from polytopic.text.lexicon import Lexicon
from polytopic.text.vocabulary import Vocabulary


@lru_cache(maxsize=16)
def _lexicon(**settings) -> Lexicon:
    """Return the lexicon that all analyzers with these settings share."""
    return Lexicon(**settings)


class Span(NamedTuple):
    """A term and its position: the token is ``text[start:end]``."""

    term: str
    start: int
    end: int


class Analyzer(BaseEstimator):
    """Finds the words of a text and reduces them to terms.

    Tokens are found in the original text: runs of letters with their marks, and with apostrophes
    between letters. Each token is then normalized (NFKC), lowercased, reduced to its lemma or stem,
    and case-folded ("ß" is "ss", "ς" is "σ"). If a word with an apostrophe is not in the
    dictionary, its longest part counts: "l'eau" gives "eau".

    A word is dropped if it, or its lemma or stem, is a stop word. Scripts without spaces (Chinese,
    Japanese, Thai) are not segmented: a run of letters is one token.

    Parameters
    ----------
    language : str or None, default="en"
        ISO 639 code of a language that simplemma or Snowball supports. With None, only case and
        spelling are normalized, and there are no stop words.
    normalize : {"auto", "lemma", "stem"} or None, default="auto"
        What words are reduced to. "auto" is the lemma if there is a dictionary, else the stem.
    stop_words : "auto", None or collection of str, default="auto"
        Words to drop. "auto" is the language's list in stopwords-iso.
    numbers : bool, default=False
        Whether words may contain digits: "b2b", "2024". Otherwise a digit ends a word.
    hyphens : bool, default=False
        Whether a hyphenated word is one token.
    min_length, max_length : int, default=2, 64
        Length of words, and of terms, to keep.
    lowercase : bool, default=True
        Whether to ignore case. Stop words are dropped in any case.

    Examples
    --------
    >>> Analyzer("en").terms("Mice don't read the children's books.")
    ['mouse', 'read', 'child', 'book']
    >>> Analyzer("de").spans("In den Häusern")
    [Span(term='haus', start=7, end=14)]
    """

    def __init__(
        self,
        language="en",
        *,
        normalize="auto",
        stop_words="auto",
        numbers=False,
        hyphens=False,
        min_length=2,
        max_length=64,
        lowercase=True,
    ):
        self.language = language
        self.normalize = normalize
        self.stop_words = stop_words
        self.numbers = numbers
        self.hyphens = hyphens
        self.min_length = min_length
        self.max_length = max_length
        self.lowercase = lowercase

    def terms(self, text: str) -> list[str]:
        """Return the terms of a text, in order."""
        tokens = self._pattern_for(text).findall(text)
        return list(filter(None, map(self._lexicon.__getitem__, tokens)))

    def spans(self, text: str) -> list[Span]:
        """Return the terms of a text with their positions, in order."""
        tokens, lexicon = self._pattern_for(text).finditer(text), self._lexicon
        return [Span(term, *t.span()) for t in tokens if (term := lexicon[t[0]])]

    def term(self, token: str) -> str | None:
        """Return the term of one token, or None if it is dropped or not a token."""
        return self._lexicon[token] if self._pattern_for(token).fullmatch(token) else None

    def count(
        self, texts: Iterable[Text], fields: Mapping[str, float] | None = None
    ) -> tuple[csr_matrix, list[str]]:
        """Count the terms of each text.

        Parameters
        ----------
        texts : iterable of str or mapping
            A mapping to numbers is a bag of words; its terms are not analysed. A mapping to strings
            holds the fields of a text; their counts are added up.
        fields : mapping of str to float, optional
            Weights of fields; the default weight is 1.

        Returns
        -------
        counts : csr_matrix of shape (n_texts, n_terms)
            Counts of each term in each text, float64.
        terms : list of str
            The names of the columns, sorted; each occurs in some text.
        """
        return count_terms(texts, self._lexicon, fields or {})

    def count_known(
        self,
        texts: Iterable[Text],
        vocabulary: Vocabulary,
        fields: Mapping[str, float] | None = None,
    ) -> csr_matrix:
        """Count the terms of a vocabulary in each text.

        The result equals ``vocabulary.select(*analyzer.count(texts, fields))``, but is faster.

        Parameters
        ----------
        texts : iterable of str or mapping
            As in :meth:`count`.
        vocabulary : Vocabulary
            The terms to count.
        fields : mapping of str to float, optional
            Weights of fields; the default weight is 1.

        Returns
        -------
        csr_matrix of shape (n_texts, len(vocabulary))
            Counts of each term in each text, float64.
        """
        return count_known_terms(texts, self._lexicon, fields or {}, vocabulary)

    def count_known_by_blocks(
        self,
        texts: Iterable[Text],
        vocabulary: Vocabulary,
        fields: Mapping[str, float] | None = None,
        *,
        max_texts: int = 8192,
    ) -> Iterator[csr_matrix]:
        """Count the terms of a vocabulary in a stream of texts.

        Stacked, the matrices equal the result of :meth:`count_known`. The first one has few rows,
        and none has more than ``max_texts``.
        """
        return known_terms_by_blocks(texts, self._lexicon, fields or {}, vocabulary, max_texts)

    def count_known_and_totals(
        self,
        texts: Iterable[Text],
        vocabulary: Vocabulary,
        fields: Mapping[str, float] | None = None,
        *,
        max_texts: int = 8192,
    ) -> Iterator[tuple[csr_matrix, np.ndarray]]:
        """Count as :meth:`count_known_by_blocks`, and sum up the counts of all terms of each text.

        The sums are those over the rows of :meth:`count`.
        """
        return known_terms_and_totals(texts, self._lexicon, fields or {}, vocabulary, max_texts)

    def to_dict(self) -> dict:
        """Return the settings, ready for JSON, with ``normalize="auto"`` resolved."""
        settings = self.get_params(deep=False)
        words = self.stop_words
        is_list = isinstance(words, Collection) and not isinstance(words, str)
        return settings | {
            "normalize": self._reduction(),
            "stop_words": sorted(words) if is_list else words,
        }

    @classmethod
    def from_dict(cls, settings: Mapping) -> "Analyzer":
        """Return the analyzer that `to_dict` described.

        Invalid settings raise ValueError or TypeError.
        """
        analyzer = cls(**settings)
        analyzer._check()
        return analyzer

    def __eq__(self, other):
        if not isinstance(other, Analyzer):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # settings may change

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        self.__dict__.pop("_lexicon", None)  # made with the old settings

    def __getstate__(self):
        return {key: value for key, value in super().__getstate__().items() if key != "_lexicon"}

    def _pattern_for(self, text):
        if not isinstance(text, str):
            raise TypeError(f"text is a {type(text).__name__}, must be a str.")
        return self._lexicon.pattern_for(text)

    @cached_property
    def _lexicon(self):
        self._check()
        auto = isinstance(self.stop_words, str)
        words = languages.stop_words(self.language) if auto else self.stop_words
        resolved = {"normalize": self._reduction(), "stop_words": frozenset(words or ())}
        return _lexicon(**self.get_params(deep=False) | resolved)

    def _reduction(self):
        if self.normalize != "auto":
            return self.normalize
        if self.language is None:
            return None
        return "lemma" if self.language in languages.LEMMATIZED else "stem"

    def _check(self):
        """Raise if a setting is invalid."""
        lemmatized = self.language is None or self.language in languages.LEMMATIZED
        if not lemmatized and self.language not in languages.stemmed_languages():
            known = ", ".join(sorted(languages.LEMMATIZED | languages.stemmed_languages()))
            raise ValueError(f"language == {self.language!r}, must be one of {known} or None.")
        for name in ("numbers", "hyphens", "lowercase"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise TypeError(f"{name} == {getattr(self, name)!r}, must be True or False.")
        check_scalar(self.min_length, "min_length", Integral, min_val=1)
        check_scalar(self.max_length, "max_length", Integral, min_val=self.min_length)
        self._check_normalize()
        self._check_stop_words()

    def _check_normalize(self):
        if self.normalize not in (None, "auto", "lemma", "stem"):
            raise ValueError(
                f"normalize == {self.normalize!r}, must be 'auto', 'lemma', 'stem' or None."
            )
        if self.normalize == "lemma":
            known = languages.LEMMATIZED
        elif self.normalize == "stem":
            known = languages.stemmed_languages()
        else:
            return
        if self.language not in known:
            raise ValueError(
                f"normalize == {self.normalize!r} is not available for language == "
                f"{self.language!r}. Use 'auto'."
            )

    def _check_stop_words(self):
        words = self.stop_words
        if words is None or (isinstance(words, str) and words == "auto"):
            return
        if isinstance(words, str) or not isinstance(words, Collection):
            raise ValueError(f"stop_words == {words!r}, must be 'auto', None or a list of words.")
        if not all(isinstance(word, str) for word in words):
            raise TypeError(f"stop_words == {words!r}, must contain strings only.")
