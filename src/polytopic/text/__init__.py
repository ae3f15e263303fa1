"""From texts to counts of terms: tokens, lemmas, stop words, vocabulary, weights."""

from polytopic.text.analyzer import Analyzer, Span
from polytopic.text.counting import Text
from polytopic.text.embeddings import Embeddings
from polytopic.text.ngrams import CharacterNGrams, WordNGrams
from polytopic.text.transformer import TextCounts
from polytopic.text.vocabulary import Vocabulary, resolve_min_df
from polytopic.text.weights import TermWeights

__all__ = [
    "Analyzer",
    "CharacterNGrams",
    "Embeddings",
    "Span",
    "TermWeights",
    "Text",
    "TextCounts",
    "Vocabulary",
    "WordNGrams",
    "resolve_min_df",
]
