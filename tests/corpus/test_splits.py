"""Splits: their laws, and how evenly labels are spread."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from polytopic.corpus import (
    Document,
    folds,
    random_split,
    read_documents,
    stratified_split,
    time_split,
)

label_sets = st.lists(st.sets(st.sampled_from("abcdefgh"), max_size=4), min_size=2, max_size=60)
sizes = st.floats(0.001, 0.999)
seeds = st.integers(0, 2**32)
START = datetime(2020, 1, 1, tzinfo=UTC)


def zipf_labels(n_docs, n_labels, seed=0):
    """Draw label sets whose frequencies fall as in real corpora."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, n_labels + 1)
    sizes = rng.integers(1, 4, n_docs)
    return [rng.choice(n_labels, k, replace=False, p=share / share.sum()) for k in sizes]


def indicator(labels, n_labels):
    """Return the dense indicator of label numbers."""
    Y = np.zeros((len(labels), n_labels), dtype=int)
    for doc, row in enumerate(labels):
        Y[doc, row] = 1
    return Y


def is_partition(train, test, n_docs):
    """Return whether the sides are sorted, disjoint, complete and not empty."""
    sorted_ = (np.diff(train) > 0).all() and (np.diff(test) > 0).all()
    return sorted_ and len(train) and len(test) and {*train, *test} == {*range(n_docs)}


def deviation(Y, test):
    """Return how far each label's share in the test part is from the part's size."""
    return np.abs(Y[test].sum(axis=0) / Y.sum(axis=0) - len(test) / len(Y))


@given(st.integers(2, 200), sizes, seeds)
def test_random_split_is_a_partition(n_docs, test_size, seed):
    """Each document is on one side, and no side is empty."""
    train, test = random_split(n_docs, test_size, seed)

    assert is_partition(train, test, n_docs)
    assert abs(len(test) - n_docs * test_size) <= 1


@given(label_sets, sizes, seeds)
def test_stratified_split_is_a_partition(labels, test_size, seed):
    """Each document is on one side, and the sides have exactly the requested sizes."""
    train, test = stratified_split(labels, test_size, seed)

    assert is_partition(train, test, len(labels))
    assert abs(len(test) - len(labels) * test_size) <= 1


@given(label_sets, st.data(), seeds)
def test_folds_are_partitions(labels, data, seed):
    """Each document is tested on once; the sizes of folds differ by at most one."""
    n_splits = data.draw(st.integers(2, len(labels)))

    pairs = folds(labels, n_splits, seed)

    tests = [test for _, test in pairs]
    assert all(is_partition(train, test, len(labels)) for train, test in pairs)
    assert sorted(np.concatenate(tests)) == [*range(len(labels))]
    assert max(map(len, tests)) - min(map(len, tests)) <= 1


@pytest.mark.parametrize("split", [random_split, stratified_split, folds])
def test_the_seed_decides(split):
    """The same seed gives the same split, another seed another."""
    labels = [["a", "b"][: 1 + i % 2] for i in range(50)]

    one, again, other = (split(labels, seed=seed) for seed in (1, 1, 2))

    assert str(one) == str(again)
    assert str(one) != str(other)


def test_the_order_within_a_label_set_does_not_matter():
    """Sets are read in the same order in every process, whatever their hashes."""
    rng = np.random.default_rng(0)
    labels = [[f"label {i}" for i in rng.choice(20, 4, replace=False)] for _ in range(80)]

    one = stratified_split(labels)
    two = stratified_split([row[::-1] for row in labels])

    assert np.array_equal(one[1], two[1])


def test_all_forms_of_labels_are_equivalent():
    """Names, documents and indicators give the same split."""
    labels = [list(row) for row in indicator(zipf_labels(100, 8), 8)]
    names = [[str(i) for i in np.flatnonzero(row)] for row in labels]
    documents = [Document("1", text="", labels=row) for row in names]

    by_number = [stratified_split(form)[1] for form in (labels, np.array(labels))]
    by_number.append(stratified_split(csr_array(labels))[1])
    by_name = [stratified_split(form)[1] for form in (names, documents)]

    assert all(np.array_equal(by_number[0], other) for other in by_number)
    assert np.array_equal(*by_name)


def test_one_label_per_document():
    """A flat list means one label per document, of any type."""
    _, test = stratified_split(["a", "b", "b", "a"] * 10, 0.5)
    _, same = stratified_split([0, 1, 1, 0] * 10, 0.5)

    assert np.bincount(test % 4 % 3 > 0).tolist() == [10, 10]
    assert np.array_equal(test, same)


@pytest.mark.parametrize("test_size", [0.1, 0.25, 0.5, 0.8])
def test_shares_are_nearer_than_at_random(test_size):
    """Labels are spread several times more evenly than at random."""
    labels = zipf_labels(3000, 60)
    Y = indicator(labels, 60)

    _, test = stratified_split(Y, test_size)
    _, chance = random_split(len(Y), test_size)

    assert deviation(Y, test).mean() < deviation(Y, chance).mean() / 3
    assert (deviation(Y, test) * Y.sum(axis=0)).max() <= 4


def test_folds_have_equal_shares():
    """Each fold has its share of every label, to within three documents."""
    Y = indicator(zipf_labels(3000, 60), 60)

    tests = [test for _, test in folds(Y, 5)]

    shares = np.array([Y[test].sum(axis=0) for test in tests])
    assert np.abs(shares - Y.sum(axis=0) / 5).max() <= 3


@pytest.mark.parametrize("test_size", [0.1, 0.25, 0.9])
def test_rare_labels_are_on_both_sides(test_size):
    """A label with two documents is trained and tested on."""
    labels = [["common"]] * 400 + [[f"rare {i}"] for i in range(10)] * 2

    sides = stratified_split(labels, test_size)

    for side in sides:
        assert {labels[doc][0] for doc in side} == {"common", *(f"rare {i}" for i in range(10))}


def test_rare_labels_do_not_crowd_out_the_common():
    """If the test part is too small for all labels, frequent ones keep half of their share."""
    labels = [["common"]] * 500 + [[f"rare {i}"] for i in range(250)] * 2

    _, test = stratified_split(labels, 0.05)

    assert sum(labels[doc] == ["common"] for doc in test) >= 12


def test_unlabelled_documents_are_spread():
    """Documents without labels, or with unique ones, are on both sides in proportion."""
    labels = [["a"]] * 100 + [[]] * 100 + [[f"own {i}"] for i in range(100)]

    train, test = stratified_split(labels, 0.2)

    assert (np.bincount(test // 100) >= 10).all()
    assert (np.bincount(train // 100) >= 70).all()


@given(st.lists(st.integers(0, 20), min_size=2), sizes)
def test_time_split_is_in_order(days, test_size):
    """No training document is later than a test document."""
    documents = [Document("1", text="", time=START + timedelta(days=day)) for day in days]

    train, test = time_split(documents, test_size)

    assert is_partition(train, test, len(days))
    assert max(days[doc] for doc in train) <= min(days[doc] for doc in test)


@pytest.mark.parametrize("at", ["2020-01-03", datetime(2020, 1, 3), datetime(2020, 1, 3).date()])
def test_time_split_at_a_date(at):
    """The test documents are those from that time on."""
    times = ["2020-01-05", "2020-01-01", "2020-01-03T00:00Z", "2020-01-03T00:00+01:00"]
    documents = [Document("1", text="", time=time) for time in times]

    train, test = time_split(documents, at=at)

    assert (train.tolist(), test.tolist()) == ([1, 3], [0, 2])


def test_time_split_needs_times():
    """The first document without a time is named."""
    documents = [Document("1", text="", time="2020-01-01"), Document("x", text="")]

    with pytest.raises(ValueError, match=r"document 'x' has no time, must have one"):
        time_split(documents)


@pytest.mark.parametrize("at", ["2019-01-01", "2021-01-01", "soon"])
def test_time_split_at_a_wrong_time(at):
    """The time must be valid, with documents before and after it."""
    documents = [Document("1", text="", time=START + timedelta(days=day)) for day in range(5)]

    with pytest.raises(ValueError, match=f"at == '{at}', must"):
        time_split(documents, at=at)


@pytest.mark.parametrize("test_size", [0, 1.0 + 1e-9, -0.1, 10, 2.5, float("nan")])
def test_wrong_test_size(test_size):
    """The size is a share or a number that leaves something on both sides."""
    with pytest.raises(ValueError, match=r"test_size == .*, must be a share .* from 1 to 9\."):
        random_split(10, test_size)


def test_a_number_of_documents():
    """A whole number is a number of documents."""
    assert len(random_split(10, 3)[1]) == len(stratified_split([["a"]] * 10, 3)[1]) == 3


@pytest.mark.parametrize("split", [random_split, stratified_split])
@pytest.mark.parametrize("n_docs", [0, 1])
def test_too_few_documents(split, n_docs):
    """One document cannot be split."""
    with pytest.raises(ValueError, match=f"{n_docs} documents, must be at least 2"):
        split([["a"]] * n_docs)


@pytest.mark.parametrize("n_splits", [1, 5])
def test_wrong_number_of_folds(n_splits):
    """There must be at least two folds and a document in each."""
    with pytest.raises(ValueError, match=f"n_splits == {n_splits}, must be from 2 to 4"):
        folds([["a"]] * 4, n_splits)


@pytest.mark.corpus
@pytest.mark.parametrize("name", ["reuters21578", "cooking", "medline-cf"])
def test_a_real_corpus_is_spread_evenly(data, name):
    """Every label with two documents is on both sides, and shares are better than at random."""
    documents = list(read_documents(data(name)))
    names = sorted({label for document in documents for label in document.labels})
    number = {label: i for i, label in enumerate(names)}
    Y = indicator([[number[x] for x in d.labels] for d in documents], len(names))

    train, test = stratified_split(documents)
    _, chance = random_split(documents)

    often = Y.sum(axis=0) >= 2
    assert Y[train][:, often].any(axis=0).all()
    assert Y[test][:, often].any(axis=0).all()
    assert deviation(Y, test)[often].mean() < deviation(Y, chance)[often].mean() / 2
