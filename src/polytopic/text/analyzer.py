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
    FIRST_LINE,
    Text,
    count_known_terms,
    count_terms,
    known_terms_and_totals,
    known_terms_by_blocks,
)
from polytopic.text.lexicon import Lexicon
from polytopic.text.segmentation import UNSPACED, require_segmenter
from polytopic.text.vocabulary import Vocabulary

MAX_TITLE = 100


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

    A word is dropped if it, or its lemma or stem, is a stop word. In scripts without spaces between
    words (Chinese, Japanese, Thai), tokens are pairs of adjacent letters, or words that a segmenter
    finds.

    Parameters
    ----------
    language : str or None, default="en"
        ISO 639 code of a language that simplemma or Snowball supports, or "ja", "th" or "zh". With
        None, only case and spelling are normalized, and there are no stop words.
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
    segment : {"auto", "bigrams", "words"} or None, default="auto"
        What a run of letters of a script without spaces becomes: "bigrams", pairs of adjacent
        letters; "words", those that jieba (zh), sudachipy (ja) or pythainlp (th) finds; None, one
        token. "auto" is "bigrams" for the languages ja, th and zh, and None for all others.
    title : int, default=1
        How much each word of a title counts: the first line of a string that has more than one.

    Examples
    --------
    >>> Analyzer("en").terms("Mice don't read the children's books.")
    ['mouse', 'read', 'child', 'book']
    >>> Analyzer("de").spans("In den Häusern")
    [Span(term='haus', start=7, end=14)]
    >>> Analyzer("zh").terms("北京大学 Python")
    ['北京', '京大', '大学', 'python']
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
        segment="auto",
        title=1,
    ):
        self.language = language
        self.normalize = normalize
        self.stop_words = stop_words
        self.numbers = numbers
        self.hyphens = hyphens
        self.min_length = min_length
        self.max_length = max_length
        self.lowercase = lowercase
        self.segment = segment
        self.title = title

    def terms(self, text: str) -> list[str]:
        """Return the terms of a text, in order."""
        lexicon = self._lexicon_for(text)
        return list(filter(None, map(lexicon.__getitem__, lexicon.find_tokens(text))))

    def spans(self, text: str) -> list[Span]:
        """Return the terms of a text with their positions, in order. Bigrams overlap."""
        lexicon = self._lexicon_for(text)
        places = lexicon.token_spans(text)
        return [Span(term, a, b) for a, b in places if (term := lexicon[text[a:b]])]

    def term(self, token: str) -> str | None:
        """Return the term of one token, or None if it is dropped or not a token."""
        lexicon = self._lexicon_for(token)
        return lexicon[token] if lexicon.token_spans(token) == [(0, len(token))] else None

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
        return count_terms(texts, self._lexicon, self._weights(fields))

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
        return count_known_terms(texts, self._lexicon, self._weights(fields), vocabulary)

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
        return known_terms_by_blocks(
            texts, self._lexicon, self._weights(fields), vocabulary, max_texts
        )

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
        return known_terms_and_totals(
            texts, self._lexicon, self._weights(fields), vocabulary, max_texts
        )

    def to_dict(self) -> dict:
        """Return the settings, ready for JSON, with "auto" resolved.

        ``segment`` is left out if it is None, and ``title`` if it is 1, so that releases without
        them read the others.
        """
        settings = self.get_params(deep=False)
        words = self.stop_words
        is_list = isinstance(words, Collection) and not isinstance(words, str)
        resolved = settings | {
            "normalize": self._reduction(),
            "stop_words": sorted(words) if is_list else words,
            "segment": self._segmentation(),
        }
        if resolved["segment"] is None and self.language not in UNSPACED:
            del resolved["segment"]
        if resolved["title"] == 1:
            del resolved["title"]
        return resolved

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

    def _weights(self, fields):
        """Return the weights of fields, and of the first line of strings."""
        fields = fields or {}
        return fields if self.title == 1 else {**fields, FIRST_LINE: self.title}

    def _lexicon_for(self, text):
        if not isinstance(text, str):
            raise TypeError(f"text is a {type(text).__name__}, must be a str.")
        return self._lexicon

    @cached_property
    def _lexicon(self):
        self._check()
        auto = isinstance(self.stop_words, str)
        words = languages.stop_words(self.language) if auto else self.stop_words
        resolved = {
            "normalize": self._reduction(),
            "stop_words": frozenset(words or ()),
            "segment": self._segmentation(),
        }
        settings = self.get_params(deep=False) | resolved
        del settings["title"]  # the same words are found
        return _lexicon(**settings)

    def _reduction(self):
        if self.normalize != "auto":
            return self.normalize
        if self.language is None or self.language in UNSPACED:
            return None
        return "lemma" if self.language in languages.LEMMATIZED else "stem"

    def _segmentation(self):
        if self.segment != "auto":
            return self.segment
        return "bigrams" if self.language in UNSPACED else None

    def _check(self):
        """Raise if a setting is invalid."""
        simple = self.language is None or self.language in languages.LEMMATIZED.union(UNSPACED)
        if not simple and self.language not in languages.stemmed_languages():
            codes = languages.LEMMATIZED.union(languages.stemmed_languages(), UNSPACED)
            known = ", ".join(sorted(codes))
            raise ValueError(f"language == {self.language!r}, must be one of {known} or None.")
        for name in ("numbers", "hyphens", "lowercase"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise TypeError(f"{name} == {getattr(self, name)!r}, must be True or False.")
        check_scalar(self.min_length, "min_length", Integral, min_val=1)
        check_scalar(self.max_length, "max_length", Integral, min_val=self.min_length)
        check_scalar(self.title, "title", Integral, min_val=1, max_val=MAX_TITLE)
        self._check_normalize()
        self._check_stop_words()
        self._check_segment()

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

    def _check_segment(self):
        if self.segment not in (None, "auto", "bigrams", "words"):
            raise ValueError(
                f"segment == {self.segment!r}, must be 'auto', 'bigrams', 'words' or None."
            )
        if self.segment == "words":
            require_segmenter(self.language)

    def _check_stop_words(self):
        words = self.stop_words
        if words is None or (isinstance(words, str) and words == "auto"):
            return
        if isinstance(words, str) or not isinstance(words, Collection):
            raise ValueError(f"stop_words == {words!r}, must be 'auto', None or a list of words.")
        if not all(isinstance(word, str) for word in words):
            raise TypeError(f"stop_words == {words!r}, must contain strings only.")
