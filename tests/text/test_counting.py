"""Analyzer.count compared with its slow twin."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from polytopic.text import Analyzer

ANALYZER = Analyzer("en", min_length=1)
STRINGS = st.text(st.characters(codec=None), max_size=40) | st.text(st.sampled_from("abé' \u0301𝒳"))
BAGS = st.dictionaries(st.text(max_size=3), st.integers(0, 5), max_size=4)
FIELDS = st.dictionaries(st.sampled_from(["title", "body"]), STRINGS, max_size=2)
TEXTS = st.lists(STRINGS | BAGS | FIELDS, max_size=6)


def naive_count(analyzer, texts, fields):
    """Count one text after the other with `terms` and Counters."""
    bags = []
    for text in texts:
        bag = Counter()
        if isinstance(text, str):
            bag.update(analyzer.terms(text))
        elif any(isinstance(value, str) for value in text.values()):
            for name, value in text.items():
                for term in analyzer.terms(value):
                    bag[term] += fields.get(name, 1)
        else:
            bag.update(text)
        bags.append(+bag)
    terms = sorted(set().union(*bags))
    return np.array([[bag[term] for term in terms] for bag in bags], dtype=float), terms


@given(texts=TEXTS, weight=st.sampled_from([0, 1, 2, 0.5]))
def test_count_equals_its_slow_twin(texts, weight):
    """Counts and terms are those of Counters over `terms`, for any mix of texts."""
    counts, terms = ANALYZER.count(texts, fields={"title": weight})

    expected, expected_terms = naive_count(ANALYZER, texts, {"title": weight})
    assert terms == expected_terms
    assert counts.shape == (len(texts), len(terms))
    np.testing.assert_array_equal(counts.toarray(), expected.reshape(counts.shape))


@given(texts=TEXTS)
def test_count_is_canonical(texts):
    """Rows are sorted, without duplicates or stored zeros, in float64."""
    counts, _ = ANALYZER.count(texts)

    assert counts.has_canonical_format
    assert counts.dtype == np.float64
    assert (counts.data > 0).all()


@given(texts=TEXTS, seed=st.integers(0, 99))
def test_order_of_texts_permutes_rows(texts, seed):
    """Each row depends on its text alone."""
    order = np.random.default_rng(seed).permutation(len(texts))

    counts, terms = ANALYZER.count(texts)
    shuffled, shuffled_terms = ANALYZER.count([texts[i] for i in order])

    assert shuffled_terms == terms
    np.testing.assert_array_equal(shuffled.toarray(), counts.toarray()[order])


@given(texts=st.lists(st.text(st.sampled_from("abcXYZ .,-\n"), max_size=30), min_size=1))
def test_count_equals_count_vectorizer(texts):
    """On plain English letters we count what scikit-learn counts."""
    counts, terms = Analyzer(None).count(texts)

    if terms:
        rival = CountVectorizer(token_pattern=r"[a-z]{2,}")  # noqa: S106
        np.testing.assert_array_equal(counts.toarray(), rival.fit_transform(texts).toarray())
        assert terms == list(rival.get_feature_names_out())


def test_a_bag_of_words_is_taken_verbatim():
    """Terms of a bag are not analysed; a count of zero is dropped."""
    counts, terms = ANALYZER.count([{"The Mice": 2, "gone": 0}, {}, "mice"])

    assert terms == ["The Mice", "mouse"]
    assert counts.toarray().tolist() == [[2, 0], [0, 0], [0, 1]]


def test_fields_add_up_by_weight():
    """Each field counts as often as its weight says; an unnamed one counts once."""
    text = {"title": "oil", "body": "Oil price", "note": "secret"}

    counts, terms = ANALYZER.count([text], fields={"title": 3, "note": 0})

    assert terms == ["oil", "price"]
    assert counts.toarray().tolist() == [[4, 1]]


def test_texts_may_be_an_iterator():
    """A generator of texts is read once."""
    counts, terms = ANALYZER.count(text for text in ["oil", "gold"])

    assert (counts.shape, terms) == ((2, 2), ["gold", "oil"])


def test_nothing_to_count():
    """No texts, or texts without words, give a matrix without columns."""
    assert ANALYZER.count([])[0].shape == (0, 0)
    assert ANALYZER.count(["", "!", {}])[0].shape == (3, 0)


@pytest.mark.parametrize(
    ("texts", "error", "sentence"),
    [
        ("oil", ValueError, "texts is one str, must be a list of texts"),
        ({"oil": 1}, ValueError, "texts is one dict, must be a list of texts"),
        (["oil", None], TypeError, r"texts\[1\] is a NoneType, must be a str or a mapping"),
        ([{"oil": -1}], ValueError, r"texts\[0\]\['oil'\] == -1, must be >= 0 and <= 2\*\*53"),
        ([{"oil": np.nan}], ValueError, r"must be >= 0 and <= 2\*\*53"),
        ([{"oil": np.inf}], ValueError, r"must be >= 0 and <= 2\*\*53"),
        ([{"oil": None}], TypeError, r"texts\[0\]\['oil'\] == None, must be a number"),
        ([{3: 1}], TypeError, r"texts\[0\] counts 3, must count terms"),
        ([{"title": "oil", "size": 3}], TypeError, r"texts\[0\]\['size'\] == 3, must be a str"),
    ],
)
def test_non_texts_are_rejected(texts, error, sentence):
    """The error names the text and what is wrong."""
    with pytest.raises(error, match=sentence):
        ANALYZER.count(texts)


@pytest.mark.parametrize(
    ("fields", "error", "sentence"),
    [
        ({"title": -1}, ValueError, r"fields\['title'\] == -1, must be >= 0 and <= 2\*\*53"),
        ({"title": "2"}, TypeError, r"fields\['title'\] == '2', must be a number"),
        (["title"], TypeError, r"fields == \['title'\], must be a mapping"),
    ],
)
def test_wrong_field_weights_are_rejected(fields, error, sentence):
    """A weight is a finite number that is not negative."""
    with pytest.raises(error, match=sentence):
        ANALYZER.count(["oil"], fields=fields)
