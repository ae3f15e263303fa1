"""From texts to counts of terms: tokens, lemmas, stop words, vocabulary, weights."""

from polytopic.text.analyzer import Analyzer, Span
from polytopic.text.counting import Text
from polytopic.text.transformer import TextCounts
from polytopic.text.vocabulary import Vocabulary, resolve_min_df
from polytopic.text.weights import TermWeights

__all__ = ["Analyzer", "Span", "TermWeights", "Text", "TextCounts", "Vocabulary", "resolve_min_df"]
