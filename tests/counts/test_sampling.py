"""The documents that a model is tuned on: chosen by content, whatever their order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from polytopic import Document
from polytopic.counts import TextSample
from polytopic.counts.sampling import draw_documents, sample_rows, smallest_digests
from polytopic.text import Analyzer
from tests.strategies import texts


@given(texts(max_docs=12), st.randoms(), st.integers(1, 5))
def test_a_sample_of_texts_does_not_depend_on_their_order(corpus, random, size):
    """Texts are chosen by content; those without labels never."""
    corpus = [*corpus, ("goal", [])]
    one, other = TextSample(size), TextSample(size)

    one.add(*zip(*corpus, strict=True))
    for text, labels in random.sample(corpus, len(corpus)):
        other.add([text], [labels])

    assert one.texts == other.texts
    assert one.labels == other.labels
    assert len(one.texts) == min(size, len(corpus) - 1)
    assert all(one.labels)


def test_a_sample_of_parts_is_that_of_the_whole():
    """Samples of two streams add up to the sample of both, also as bags of words."""
    corpus = [f"go{'o' * k} tent" for k in range(20)]
    names = [["sport"]] * 20
    whole, first, rest = TextSample(6), TextSample(6), TextSample(6)

    whole.add(corpus, names)
    first.add(corpus[:7], names[:7])
    rest.add(corpus[7:], names[7:])

    assert (rest + first).texts == whole.texts
    counted = first.count_terms(Analyzer(None), {}) + rest.count_terms(Analyzer(None), {})
    assert counted.texts == [dict.fromkeys(sorted(text.split()), 1.0) for text in whole.texts]


def test_a_document_is_chosen_by_its_content():
    """Its id, labels and time do not matter."""
    sample, other = TextSample(3), TextSample(3)
    corpus = [f"word{k}" for k in range(9)]

    sample.add(corpus, [["a"]] * 9)
    other.add([Document(str(k), text) for k, text in enumerate(corpus)], [["b"]] * 9)

    assert [document.text for document in other.texts] == sample.texts


def test_an_empty_sample_takes_nothing():
    """A model that needs no documents costs no time."""
    sample = TextSample(0)

    sample.add(["goal"], [["sport"]])

    assert sample.texts == sample.labels == []


def test_digests():
    """The smallest ones; equal documents are told apart by labels, then by id."""
    rows = [(b"2", "x", "a"), (b"1", "y", "b"), (b"1", "x", "d"), (b"1", "x", "c")]

    assert smallest_digests(rows, 3) == ["c", "d", "b"]
    assert smallest_digests(rows[::-1], 9) == ["c", "d", "b", "a"]


@pytest.mark.parametrize("n_docs", [1, 5, 100])
def test_rows(n_docs):
    """The same documents in any order; those without words or labels never."""
    random = np.random.default_rng(0)
    X = sparse.csr_matrix(random.poisson(0.2, (40, 30)).astype(float))
    Y = sparse.csr_matrix(random.poisson(0.3, (40, 4)) > 0).astype(float)
    order = random.permutation(40)

    rows, again = sample_rows(X, Y, n_docs), order[sample_rows(X[order], Y[order], n_docs)]

    assert rows.tolist() == again.tolist()
    usable = (X.getnnz(axis=1) > 0) & (Y.getnnz(axis=1) > 0)
    assert rows.size == min(n_docs, usable.sum())
    assert usable[rows].all()


def test_drawn_documents():
    """Each at most once, by the seed."""
    drawn = draw_documents(50, 20, 3)

    assert drawn.tolist() == draw_documents(50, 20, 3).tolist()
    assert len(set(drawn.tolist())) == drawn.size == 20
    assert draw_documents(5, 20, 3).size == 5
