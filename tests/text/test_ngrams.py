"""Weights of n-grams of characters and words."""

import pickle
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

from polytopic.text import Analyzer, CharacterNGrams, TermWeights, Vocabulary, WordNGrams

TEXTS = ["Prices of oil climbed.", "Oil prices fell, prices of grain climbed.", "No news"]


def test_weights():
    """They are the ltc weights of scikit-learn's counts."""
    counter = CountVectorizer(analyzer="char_wb", ngram_range=(2, 4), min_df=2)

    weights = CharacterNGrams(2, 4).fit_transform(TEXTS)

    plain = TermWeights("ltc").fit_transform(counter.fit_transform(TEXTS).astype(float))
    np.testing.assert_allclose(weights.toarray(), plain.toarray())


@given(text=st.text(max_size=30))
def test_word_pairs(text):
    """N-grams of words are adjacent terms of the analyzer."""
    texts = [text, "two mice", "two mice"]
    terms = Analyzer("en").terms(text)

    ngrams = WordNGrams(1, 2, min_df=1).fit(texts)

    expected = Counter(terms) + Counter(" ".join(pair) for pair in pairwise(terms))
    row = ngrams.transform([text])[0]
    known = {
        name for name, idf in zip(ngrams.vocabulary_, ngrams.weights_.idf_, strict=True) if idf
    }
    assert {ngrams.vocabulary_.terms[k] for k in row.indices} == set(expected) & known


@pytest.mark.parametrize("ngrams", [CharacterNGrams(max_terms=9), WordNGrams(min_df=1)], ids=repr)
def test_forms(ngrams):
    """Fitting and transforming agree; so do pickles and restored n-grams."""
    rows = clone(ngrams).fit_transform(TEXTS)
    fitted = clone(ngrams).fit(TEXTS)
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    restored = clone(ngrams).restore(
        Vocabulary.from_sorted(fitted.vocabulary_.terms), fitted.weights_.idf_
    )

    for form in (fitted, again, restored):
        assert (form.transform(TEXTS) != rows).nnz == 0
    assert fitted.get_feature_names_out().tolist() == sorted(fitted.vocabulary_.terms)


@pytest.mark.parametrize(
    ("ngrams", "sentence"),
    [
        (CharacterNGrams(0), "min_n == 0, must be >= 1"),
        (CharacterNGrams(3, 2), "max_n == 2, must be >= 3"),
        (WordNGrams(2, 11), "max_n == 11, must be <= 10"),
        (WordNGrams(min_df=0), "min_df == 0, must be >= 1"),
        (WordNGrams(max_terms=0), "max_terms == 0, must be >= 1"),
        (WordNGrams(min_df=9), "no n-gram of WordNGrams occurs in min_df == 9 of the 3 texts"),
    ],
    ids=repr,
)
def test_wrong_settings(ngrams, sentence):
    """They are reported on first use."""
    with pytest.raises(ValueError, match=sentence):
        ngrams.fit(TEXTS)


@pytest.mark.parametrize("ngrams", [CharacterNGrams(), WordNGrams(5, 5)], ids=repr)
def test_texts_without_ngrams(ngrams):
    """Texts without a word have none, which is reported in the same words."""
    with pytest.raises(ValueError, match="occurs in min_df == 2 of the 2 texts"):
        ngrams.fit(["", "."])
