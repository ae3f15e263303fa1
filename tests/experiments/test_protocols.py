"""Splits: which documents to train on, and which to test on."""

import numpy as np
import pytest

from polytopic import Document
from polytopic.corpus import load_sample
from polytopic.errors import CorpusError
from polytopic.experiments import Protocol
from polytopic.experiments.protocols import CountedCorpus


@pytest.fixture(scope="module")
def sample():
    """Return the bundled sample, counted."""
    return CountedCorpus.from_documents("sample", load_sample())


@pytest.mark.parametrize("kind", ["random", "curve", "folds", "time"])
def test_sides_are_disjoint(sample, kind):
    """Both sides have documents and none in common; the same seed gives the same split."""
    protocol = Protocol(kind, repeats=3, sizes=(40, 80))
    splits, again = protocol.splits(sample), protocol.splits(sample)

    for one, other in zip(splits, again, strict=True):
        assert one.train.size
        assert one.test.size
        assert not set(one.train) & set(one.test)
        assert one.name == other.name
        assert np.array_equal(one.train, other.train)
        assert np.array_equal(one.test, other.test)


def test_sizes_of_random_splits(sample):
    """Splits have the requested sizes and differ from each other."""
    first, second = Protocol("random", train=100, test=50, repeats=2).splits(sample)

    assert (first.train.size, first.test.size) == (100, 50)
    assert set(first.train) != set(second.train)


def test_a_curve_is_nested(sample):
    """Smaller training sets are within larger ones; the test documents are the same."""
    small, large = Protocol("curve", repeats=1, sizes=(40, 80)).splits(sample)

    assert set(small.train) < set(large.train)
    assert np.array_equal(small.test, large.test)


def test_folds_test_each_document_once(sample):
    """Every document is tested on in exactly one fold."""
    splits = Protocol("folds", repeats=4).splits(sample)

    tested = np.concatenate([split.test for split in splits])
    assert np.array_equal(np.sort(tested), np.arange(sample.X.shape[0]))


def test_time_goes_forward(sample):
    """No test document is earlier than a training document."""
    (split,) = Protocol("time").splits(sample)

    assert max(sample.times[k] for k in split.train) <= min(sample.times[k] for k in split.test)


def test_given_split():
    """Documents are in the part that they name; auto uses such a split if there is one."""
    documents = [
        Document(str(k), f"word{k % 3}", labels=["ab"[k % 2]], split=["train", "test"][k > 5])
        for k in range(9)
    ]
    corpus = CountedCorpus.from_documents("named", documents)

    for kind in ("given", "auto"):
        (split,) = Protocol(kind).splits(corpus)
        assert split.train.tolist() == list(range(6))
        assert split.test.tolist() == [6, 7, 8]


@pytest.mark.parametrize(
    ("documents", "sentence"),
    [
        ([], "corpus has 0 labelled documents, needs at least 4"),
        ([Document(str(k), "a b", labels=["x"]) for k in range(3)], "has 3 labelled documents"),
        ([Document(str(k), "a b", labels=["x"]) for k in range(9)], "has 1 label, 'x'; needs at"),
        ([Document(str(k), "a b", labels=["xy"[k % 2]]) for k in range(9)], "has only stop words"),
    ],
)
def test_corpora_too_small(documents, sentence):
    """The message says what is missing."""
    with pytest.raises(CorpusError, match=sentence):
        CountedCorpus.from_documents("corpus", documents)


@pytest.mark.parametrize(
    ("protocol", "sentence"),
    [
        ({"kind": "given"}, "has 0 documents marked train and 0 marked test"),
        (
            {"kind": "random", "train": 300, "test": 300},
            "has 348 documents, fewer than train == 300",
        ),
        ({"kind": "curve", "sizes": (5000,)}, "a curve that starts at 5000 training documents"),
    ],
)
def test_protocols_that_do_not_fit(sample, protocol, sentence):
    """The message says what is missing."""
    with pytest.raises(ValueError, match=sentence):
        Protocol(**protocol).splits(sample)
    with pytest.raises(ValueError, match="protocol == 'x', must be one of"):
        Protocol("x")


def test_round_trip(sample, tmp_path):
    """A corpus that is written for other processes is read back unchanged."""
    sample.save(tmp_path)
    loaded = CountedCorpus.load(tmp_path)

    assert (loaded.X != sample.X).nnz == (loaded.Y != sample.Y).nnz == 0
    assert (loaded.labels, loaded.texts, loaded.times) == (
        sample.labels,
        sample.texts,
        sample.times,
    )


def test_terms_are_those_of_training_documents(sample):
    """Terms that occur only in test documents are dropped."""
    (split,) = Protocol("time").splits(sample)
    train, test = sample.parts(split.train, split.test)

    assert train.X.shape[1] == test.X.shape[1] < sample.X.shape[1]
    assert train.X.getnnz(axis=0).min() >= 1
