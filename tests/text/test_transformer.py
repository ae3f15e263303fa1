"""TextCounts: from texts to CSR, as a scikit-learn transformer."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from polytopic.text import Analyzer, TermWeights, TextCounts, Vocabulary

TEXTS = ["Oil prices climbed", "Oil, oil and gold", "Grain harvests; grain prices"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_checks():
    """It passes the checks that apply to an estimator on texts."""
    check_estimator(TextCounts())


def test_counts_by_hand():
    """Columns are the sorted terms, cells their counts."""
    counts = TextCounts("en")

    X = counts.fit_transform(TEXTS)

    terms = ["climb", "gold", "grain", "harvest", "oil", "price"]
    assert counts.get_feature_names_out().tolist() == terms
    assert X.toarray().tolist() == [[1, 0, 0, 0, 1, 1], [0, 1, 0, 0, 2, 0], [0, 0, 2, 1, 0, 1]]
    assert counts.vocabulary_ == Vocabulary(terms)
    assert counts.analyzer_ == Analyzer("en")


@pytest.mark.parametrize("weights", ["tf", "binary", "tfidf", "ltc"])
def test_fit_transform_is_fit_then_transform(weights):
    """One pass and two passes give the same matrix."""
    once = TextCounts(min_df=2, weights=weights).fit_transform(TEXTS)
    twice = TextCounts(min_df=2, weights=weights).fit(TEXTS).transform(TEXTS)

    np.testing.assert_array_equal(once.toarray(), twice.toarray())


def test_weights_are_those_of_term_weights():
    """Weights from TextCounts are those of its counts."""
    counts = TextCounts().fit_transform(TEXTS)

    weighed = TextCounts(weights="tfidf", unit_length=True).fit_transform(TEXTS)

    expected = TermWeights("tfidf", unit_length=True).fit_transform(counts)
    np.testing.assert_array_equal(weighed.toarray(), expected.toarray())


def test_vocabulary_is_cut():
    """First by min_df, then by size: more documents first, then the name."""
    assert TextCounts(min_df=2).fit(TEXTS).vocabulary_.terms == ("oil", "price")
    assert TextCounts(max_terms=3).fit(TEXTS).vocabulary_.terms == ("climb", "oil", "price")


def test_unknown_words_are_ignored():
    """New words do not change the columns; a text without known words is an empty row."""
    counts = TextCounts().fit(TEXTS)

    X = counts.transform(["silver oil", "silver", ""])

    assert X.shape == (3, 6)
    assert X.sum(axis=1).A1.tolist() == [1, 0, 0]
    assert counts.transform([]).shape == (0, 6)


def test_fields_and_bags():
    """Fields have the given weights, and bags of words are used unchanged."""
    texts = [{"title": "oil", "body": "oil gold"}, {"gold": 5}]

    X = TextCounts(fields={"title": 2}).fit_transform(texts)

    assert X.toarray().tolist() == [[1, 3], [5, 0]]


def test_own_analyzer():
    """A given analyzer takes precedence over the language, and is copied."""
    analyzer = Analyzer(None, numbers=True)

    counts = TextCounts("en", analyzer=analyzer).fit(["The B2B"])

    assert counts.vocabulary_.terms == ("b2b", "the")
    assert counts.analyzer_ == analyzer
    assert counts.analyzer_ is not analyzer


def test_pipeline_and_grid_search():
    """The analyzer's parameters can be searched in a pipeline."""
    texts = ["good oil", "fine oil", "bad gold", "poor gold"] * 3
    pipeline = make_pipeline(
        TextCounts(analyzer=Analyzer("en", stop_words=None)), LogisticRegression()
    )
    grid = {"textcounts__analyzer__normalize": ["stem", None], "textcounts__weights": ["tf", "ltc"]}

    search = GridSearchCV(pipeline, grid, cv=2).fit(texts, [0, 0, 1, 1] * 3)

    assert search.best_score_ == 1
    assert search.predict(["oil", "gold"]).tolist() == [0, 1]


def test_clone_and_pickle():
    """A clone has the settings, a pickle also what was learned."""
    counts = TextCounts("cs", analyzer=Analyzer("en"), fields={"title": 2}).fit(TEXTS)

    loaded = pickle.loads(pickle.dumps(counts))  # noqa: S301

    assert repr(clone(counts)) == repr(counts)
    np.testing.assert_array_equal(
        loaded.transform(TEXTS).toarray(), counts.transform(TEXTS).toarray()
    )


def test_data_frames_are_rejected():
    """A sparse matrix does not become a data frame by accident."""
    counts = TextCounts().set_output(transform="pandas")

    with pytest.raises(ValueError, match="outputs a scipy sparse matrix"):
        counts.fit_transform(TEXTS)


@pytest.mark.parametrize(
    ("settings", "texts", "sentence"),
    [
        ({}, "one text", "texts is one str, must be a list of texts"),
        ({}, [], r"min_df == 1, 0 texts"),
        ({}, ["the of"], r"min_df == 1, 1 texts"),
        ({"min_df": 4}, TEXTS, r"min_df == 4, 3 texts"),
        ({"min_df": 0}, TEXTS, "min_df == 0, must be >= 1"),
        ({"weights": "bm25"}, TEXTS, "scheme == 'bm25', must be one of"),
        ({"language": "xx"}, TEXTS, "language == 'xx', must be one of"),
    ],
)
def test_invalid_training_input_is_rejected(settings, texts, sentence):
    """The error names the setting and its value."""
    with pytest.raises(ValueError, match=sentence):
        TextCounts(**settings).fit(texts)


def test_transform_needs_fit():
    """An unfitted transformer says so."""
    with pytest.raises(NotFittedError):
        TextCounts().transform(TEXTS)
