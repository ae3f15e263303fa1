"""Weights of n-grams of characters or words, as features beside the words."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.text.analyzer import Analyzer
from polytopic.text.vocabulary import Vocabulary
from polytopic.text.weights import TermWeights

LONGEST = 10  # of n-grams


class NGrams(TransformerMixin, BaseEstimator):
    """What n-grams of characters and of words share: counting, choosing and weighting them."""

    kind: ClassVar[str]
    min_n: int
    max_n: int
    min_df: int
    max_terms: int | None

    def fit(self, texts: Sequence[str], y=None):
        """Learn the n-grams of the texts and their weights."""
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Sequence[str], y=None) -> sparse.csr_matrix:
        """Learn the n-grams of the texts, and return their weights, in one pass."""
        self._check_parameters()
        counter = self._counter()
        try:
            counts, terms = counter.fit_transform(texts), counter.get_feature_names_out().tolist()
        except ValueError:  # not one n-gram
            counts, terms = sparse.csr_matrix((len(texts), 0)), []
        frequency = np.bincount(counts.indices, minlength=len(terms))
        vocabulary = Vocabulary.from_frequencies(
            terms, frequency, min_df=self.min_df, max_size=self.max_terms
        )
        if not len(vocabulary):
            raise ValueError(
                f"no n-gram of {type(self).__name__} occurs in min_df == {self.min_df} of the "
                f"{len(texts)} texts; lower min_df or leave these features out."
            )
        chosen = vocabulary.select(sparse.csr_matrix(counts), terms)
        frequency = np.bincount(chosen.indices, minlength=len(vocabulary))
        weights = TermWeights("ltc").fit_frequencies(frequency, len(texts))
        self.restore(vocabulary, weights.idf_)
        return self.weights_.transform(chosen, copy=False)

    def restore(self, vocabulary: Vocabulary, idf: np.ndarray):
        """Take n-grams and their inverse document frequencies, such as those of a file."""
        self._check_parameters()
        self.vocabulary_, self.weights_ = vocabulary, TermWeights("ltc")
        self.weights_.idf_, self.weights_.n_features_in_ = idf, len(vocabulary)
        self._known = self._counter(vocabulary=vocabulary.index)
        return self

    def transform(self, texts: Sequence[str]) -> sparse.csr_matrix:
        """Return the weights of the known n-grams of each text, in rows of unit length."""
        check_is_fitted(self, "vocabulary_")
        counts = sparse.csr_matrix(self._known.transform(texts))
        counts.sort_indices()
        return self.weights_.transform(counts, copy=False)

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        """Return the n-grams of the columns; ``input_features`` is ignored."""
        check_is_fitted(self, "vocabulary_")
        return np.array(self.vocabulary_.terms, dtype=object)

    @abstractmethod
    def _split(self) -> dict[str, Any]:
        """Return how a CountVectorizer splits a text into n-grams."""

    def _counter(self, vocabulary=None):
        """Return what counts n-grams: all of them, or those of a vocabulary."""
        from sklearn.feature_extraction.text import CountVectorizer  # here: it takes a moment

        return CountVectorizer(vocabulary=vocabulary, dtype=np.float64, **self._split())

    def _check_parameters(self):
        check_scalar(self.min_n, "min_n", Integral, min_val=1, max_val=LONGEST)
        check_scalar(self.max_n, "max_n", Integral, min_val=self.min_n, max_val=LONGEST)
        check_scalar(self.min_df, "min_df", Integral, min_val=1)
        if self.max_terms is not None:
            check_scalar(self.max_terms, "max_terms", Integral, min_val=1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


class CharacterNGrams(NGrams):
    """Weights (ltc) of the n-grams of characters inside words.

    A word is what spaces separate, in lower case, with a space before and after it: "to go" has the
    3-grams " to", "to ", " go" and "go ".

    Parameters
    ----------
    min_n, max_n : int, default=3, 5
        Length of n-grams.
    min_df : int, default=2
        N-grams that occur in fewer texts are ignored.
    max_terms : int, default=50000
        Maximum number of n-grams: those that occur in the most texts are kept.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        The n-grams.
    weights_ : TermWeights
        Their weights.

    Examples
    --------
    >>> ngrams = CharacterNGrams(3, 3, min_df=1).fit(["to go"])
    >>> ngrams.get_feature_names_out()
    array([' go', ' to', 'go ', 'to '], dtype=object)
    """

    kind = "characters"

    def __init__(self, min_n=3, max_n=5, *, min_df=2, max_terms=50_000):
        self.min_n = min_n
        self.max_n = max_n
        self.min_df = min_df
        self.max_terms = max_terms

    def _split(self):
        return {"analyzer": "char_wb", "ngram_range": (self.min_n, self.max_n)}


class WordNGrams(NGrams):
    """Weights (ltc) of the n-grams of terms, such as pairs of words that follow one another.

    Parameters
    ----------
    min_n, max_n : int, default=2, 2
        Number of terms.
    analyzer : Analyzer, default=None
        Finds the terms of a text. By default it is that of the labeler or, elsewhere,
        ``Analyzer()``.
    min_df : int, default=2
        N-grams that occur in fewer texts are ignored.
    max_terms : int, default=50000
        Maximum number of n-grams: those that occur in the most texts are kept.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        The n-grams.
    weights_ : TermWeights
        Their weights.

    Examples
    --------
    >>> WordNGrams(min_df=1).fit(["The price of oil climbed."]).get_feature_names_out()
    array(['oil climb', 'price oil'], dtype=object)
    """

    kind = "words"

    def __init__(self, min_n=2, max_n=2, *, analyzer=None, min_df=2, max_terms=50_000):
        self.min_n = min_n
        self.max_n = max_n
        self.analyzer = analyzer
        self.min_df = min_df
        self.max_terms = max_terms

    def _split(self):
        analyzer = Analyzer() if self.analyzer is None else self.analyzer
        lengths = range(self.min_n, self.max_n + 1)

        def ngrams(text):
            terms = analyzer.terms(text)
            return [" ".join(terms[k : k + n]) for n in lengths for k in range(len(terms) - n + 1)]

        return {"analyzer": ngrams}

    def __getstate__(self):
        # a function inside a function cannot be pickled; it is made again
        return {name: v for name, v in super().__getstate__().items() if name != "_known"}

    def __setstate__(self, state):
        super().__setstate__(state)
        if "vocabulary_" in vars(self):
            self._known = self._counter(vocabulary=self.vocabulary_.index)


NGRAMS: dict[str, type[NGrams]] = {cls.kind: cls for cls in (CharacterNGrams, WordNGrams)}
