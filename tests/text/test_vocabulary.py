"""Vocabulary: a selection of terms, and a view of a matrix."""

import pickle
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array

from polytopic.text import Vocabulary, resolve_min_df

FREQUENCIES = st.dictionaries(st.text(max_size=3), st.integers(0, 4), max_size=12)


def test_terms_are_sorted_and_distinct():
    """Order and repetition of the given terms do not matter."""
    vocabulary = Vocabulary(["oil", "grain", "oil"])

    assert vocabulary.terms == ("grain", "oil")
    assert vocabulary.index == {"grain": 0, "oil": 1}
    assert list(vocabulary) == ["grain", "oil"]
    assert len(vocabulary) == 2
    assert "oil" in vocabulary
    assert "gold" not in vocabulary


def test_equality_is_by_terms():
    """Vocabularies of the same terms are equal, also after pickling."""
    vocabulary = Vocabulary(["ab", "cd"])

    assert vocabulary == Vocabulary(["cd", "ab"]) == pickle.loads(pickle.dumps(vocabulary))  # noqa: S301
    assert hash(vocabulary) == hash(Vocabulary(["cd", "ab"]))
    assert vocabulary != Vocabulary(["ab"])
    assert vocabulary != ("ab", "cd")


@given(
    frequency=FREQUENCIES,
    seed=st.integers(0, 99),
    min_df=st.integers(1, 3),
    max_size=st.none() | st.integers(1, 5),
)
def test_selection_depends_on_terms_and_frequencies_alone(frequency, seed, min_df, max_size):
    """Any order of the counters gives the terms that the definition gives."""
    terms = random.Random(seed).sample(sorted(frequency), len(frequency))
    counts = [frequency[term] for term in terms]

    chosen = Vocabulary.from_frequencies(terms, counts, min_df=min_df, max_size=max_size)

    frequent = [term for term in frequency if frequency[term] >= min_df]
    best_first = sorted(frequent, key=lambda term: (-frequency[term], term))
    assert list(chosen) == sorted(best_first[:max_size])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"min_df": 0}, "min_df == 0, must be >= 1"),
        ({"max_size": 0}, "max_size == 0, must be >= 1"),
    ],
)
def test_wrong_limits_are_rejected(settings, sentence):
    """Both limits are at least one."""
    with pytest.raises(ValueError, match=sentence):
        Vocabulary.from_frequencies(["a"], [1], **settings)


def test_min_df_is_not_a_share():
    """A float, which scikit-learn accepts, is rejected."""
    with pytest.raises(TypeError, match="min_df must be an instance of"):
        Vocabulary.from_frequencies(["a"], [1], min_df=0.5)


def test_frequencies_must_match_terms():
    """There is one number per term."""
    with pytest.raises(ValueError, match="must have one number per term"):
        Vocabulary.from_frequencies(["a"], [1, 2])


def test_a_string_is_not_a_list_of_terms():
    """A str is not split into letters."""
    with pytest.raises(TypeError, match="'oil' is one str, must be a list"):
        Vocabulary("oil")


def test_columns_of_terms():
    """Unknown terms have column -1."""
    columns = Vocabulary(["a", "b"]).columns(["b", "x", "a"])

    assert columns.tolist() == [1, -1, 0]
    assert columns.dtype == np.intp


@given(
    names=st.permutations("abcdefgh"),
    known=st.sets(st.sampled_from("abcdefghxyz")),
    seed=st.integers(0, 99),
)
def test_select_is_a_view_by_name(names, known, seed):
    """Columns keep their names: unknown ones are dropped, missing ones are zero."""
    vocabulary = Vocabulary(known)
    matrix = csr_matrix(random_array((5, 8), density=0.4, rng=np.random.default_rng(seed)))

    selected = vocabulary.select(matrix, names)

    dense = dict(zip(names, matrix.toarray().T, strict=True))
    assert selected.shape == (5, len(vocabulary))
    assert selected.has_canonical_format
    for column, term in enumerate(vocabulary):
        expected = dense.get(term, np.zeros(5))
        np.testing.assert_array_equal(selected.toarray()[:, column], expected)


def test_select_needs_one_name_per_column():
    """There must be as many terms as columns."""
    with pytest.raises(ValueError, match="1 terms for 2 columns"):
        Vocabulary(["a"]).select(csr_matrix((1, 2)), ["a"])


def test_least_documents():
    """A number is used as it is; "auto" depends on the number of documents alone."""
    assert resolve_min_df(3, 10) == 3
    assert [resolve_min_df("auto", n) for n in (1, 999, 1000)] == [1, 1, 2]
    with pytest.raises(ValueError, match="min_df == 'many', must be 'auto' or a number"):
        resolve_min_df("many", 10)
    with pytest.raises(ValueError, match="min_df == 0, must be >= 1"):
        resolve_min_df(0, 10)
