"""The transformer from texts to a matrix of counts."""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from polytopic.text.analyzer import Analyzer
from polytopic.text.vocabulary import Vocabulary, resolve_min_df
from polytopic.text.weights import TermWeights


class TextCounts(TransformerMixin, BaseEstimator):
    """Turn texts into a matrix of the counts, or weights, of their terms.

    A text is a str, a mapping of field names to str, or a bag of words: a mapping of terms to
    counts. See `Analyzer.count`.

    Parameters
    ----------
    language : str or None, default="en"
        Language of the texts; ignored if an analyzer is given.
    analyzer : Analyzer, optional
        Finds the terms of a text; `Analyzer(language)` by default.
    min_df : int or "auto", default="auto"
        Smallest number of texts that contain a term; "auto" is 2 for 1000 texts or more, else 1.
    max_terms : int, optional
        Largest number of terms: those in most texts are kept, ties by name.
    weights : {"tf", "binary", "tfidf", "ltc"}, default="tf"
        Weighting scheme, see `TermWeights`.
    unit_length : bool, default=False
        Whether to scale each row to unit length.
    fields : mapping of str to float, optional
        Weights of the fields of a text; the default weight is 1.

    Attributes
    ----------
    analyzer_ : Analyzer
        Finds the terms of a text.
    vocabulary_ : Vocabulary
        The terms of the columns.
    weights_ : TermWeights
        The weights of terms.

    Examples
    --------
    >>> counts = TextCounts("en")
    >>> counts.fit_transform(["Oil prices climbed.", "Price of oil, oil!"]).toarray()
    array([[1., 1., 1.], [0., 2., 1.]])
    >>> counts.get_feature_names_out()
    array(['climb', 'oil', 'price'], dtype=object)
    """

    def __init__(
        self,
        language="en",
        *,
        analyzer=None,
        min_df="auto",
        max_terms=None,
        weights="tf",
        unit_length=False,
        fields=None,
    ):
        self.language = language
        self.analyzer = analyzer
        self.min_df = min_df
        self.max_terms = max_terms
        self.weights = weights
        self.unit_length = unit_length
        self.fields = fields

    def fit(self, texts, y=None):
        """Learn the terms of the texts."""
        self._learn(texts)
        return self

    def fit_transform(self, texts, y=None):
        """Learn the terms of the texts and count them, in one pass."""
        counts = self._learn(texts)
        return self.weights_.transform(counts, copy=False)

    def transform(self, texts):
        """Return the counts, or weights, of the known terms of each text as a CSR matrix."""
        check_is_fitted(self)
        counts = self.analyzer_.count_known(texts, self.vocabulary_, self.fields)
        return self.weights_.transform(counts, copy=False)

    def get_feature_names_out(self, input_features=None):
        """Return the terms of the columns; `input_features` is ignored."""
        check_is_fitted(self)
        return np.array(self.vocabulary_.terms, dtype=object)

    def _learn(self, texts):
        """Learn vocabulary and weights from the texts; return their counts."""
        self.analyzer_ = Analyzer(self.language) if self.analyzer is None else clone(self.analyzer)
        counts, terms = self.analyzer_.count(texts, self.fields)
        min_df = resolve_min_df(self.min_df, counts.shape[0])
        self.vocabulary_ = Vocabulary.from_frequencies(
            terms, _document_frequency(counts), min_df=min_df, max_size=self.max_terms
        )
        if not len(self.vocabulary_):
            raise ValueError(
                f"No term occurs in enough texts (min_df == {min_df}, {counts.shape[0]} texts). "
                "Lower min_df or add texts."
            )
        selected = self.vocabulary_.select(counts, terms)
        weights = TermWeights(self.weights, self.unit_length)
        self.weights_ = weights.fit_frequencies(_document_frequency(selected), counts.shape[0])
        return selected

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.dict = True
        tags.input_tags.two_d_array = False
        return tags


def _document_frequency(counts):
    return np.bincount(counts.indices, minlength=counts.shape[1])
