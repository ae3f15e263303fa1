"""Searches over all label sets equal brute force; inner products of embeddings are similarities."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polytopic.kernels import labeling
from polytopic.kernels.heaps import new_heap, pop, push
from polytopic.kernels.sizes import EXACT, RESCALED, SCORE, best_set, new_room, price_of
from polytopic.models.label_embedding import by_vectors, embed_sizes, rotated
from tests.margins import SIMILARITIES, dice, label_sets

KINDS = [("cosine", None), ("dice", 1), ("dice", 2), ("dice", 4), ("dice", None)]


def sizes_of(similarity, rank, n_labels, dtype=np.float64):
    """Return the embedding of sizes, where documents mostly have few labels."""
    used = np.array([0, 9, 5, 2, 1])[: n_labels + 1]
    sizes = embed_sizes(similarity, n_labels, used, rank)
    return by_vectors(sizes.vectors.astype(dtype, order="C"), empty=sizes.empty)


def matrix_of(sets, n_labels):
    """Return an indicator of label sets."""
    return np.array([[label in labels for label in range(n_labels)] for labels in sets])


def random_scores(rng, sizes, n_docs, n_labels):
    """Return scores of documents like those of models: single labels stand out, or many do."""
    shape = (n_docs, sizes.vectors.shape[1], n_labels)
    Z = rng.normal(size=shape) * rng.choice([0.1, 1.0, 5.0], size=(n_docs, 1, 1))
    Z += rng.choice([-1.0, 0.0, 1.0], size=(n_docs, 1, 1)) * sizes.vectors[1][None, :, None]
    Z += (rng.random((n_docs, 1, n_labels)) < 0.3) * sizes.vectors[:3][-1][None, :, None]
    return Z.astype(sizes.vectors.dtype)


def best_sets(Z, sizes):
    """Return the indicator of each document's best label set."""
    n_docs, _, n_labels = Z.shape
    found, n_found = np.empty(n_docs * n_labels, np.int32), np.empty(n_docs, np.int64)
    n = labeling.best_sets(Z, sizes, found, n_found)
    chosen = np.zeros((n_docs, n_labels), bool)
    assert n == n_found.sum()
    for doc, labels in enumerate(np.split(found[:n], np.cumsum(n_found)[:-1])):
        assert (np.diff(labels) > 0).all()
        chosen[doc, labels] = True
    return chosen


def set_scores(Z, sizes, members):
    """Return the score of each set: the sum of its labels' scores at its size."""
    vectors = sizes.vectors[members.sum(axis=1)].astype(float)
    return np.einsum("sq,qj,sj->s", vectors, Z.astype(float), members.astype(float))


def own_merits(goal, sizes, own, sets, scores):
    """Return how much each set violates the margin of a document's own set; itself: not at all."""
    base = scores[sets.index(own)]
    merits = np.full(len(sets), -np.inf)
    for k, other in enumerate(sets):
        if other == own:
            continue
        a, b, common = len(own), len(other), len(own & other)
        u, v = sizes.vectors[a].astype(float), sizes.vectors[b].astype(float)
        distance = np.sqrt(a * u @ u + b * v @ v - 2 * common * u @ v)
        if goal == EXACT:
            merits[k] = 1 - (base - scores[k]) / distance
        else:
            merits[k] = 1 - dice(own, other) - (base - scores[k])
    return merits


@pytest.mark.parametrize("goal", [EXACT, RESCALED])
@pytest.mark.parametrize(("similarity", "rank"), KINDS)
def test_the_most_violated_label_set(similarity, rank, goal):
    """It is that of brute force, over random scores and all sizes of the own set."""
    rng = np.random.default_rng(0)
    for n_labels in (1, 2, 5, 9):
        sizes = sizes_of(similarity, rank, n_labels)
        sets = label_sets(n_labels, empty=sizes.empty)
        members = matrix_of(sets, n_labels)
        room = None
        for Z in random_scores(rng, sizes, 25, n_labels):
            room = room or new_room(Z)
            own = frozenset(rng.choice(n_labels, rng.integers(1, n_labels + 1), False).tolist())
            merits = own_merits(goal, sizes, own, sets, set_scores(Z, sizes, members))

            size, merit = best_set(Z, np.array(sorted(own)), goal, sizes, -np.inf, room)

            assert merit == pytest.approx(merits.max(), rel=1e-9, abs=1e-9)
            labels = np.array(sorted(own))
            for floor in (merit + 1e-6, 1e6):
                assert best_set(Z, labels, goal, sizes, floor, room) == (-1, floor)
            again = best_set(Z, labels, goal, sizes, merit - 1e-6, room)
            assert again == (size, pytest.approx(merit))
            if np.isfinite(merit):
                found = frozenset(room.best[:size].tolist())
                assert merits[sets.index(found)] == pytest.approx(merits.max(), abs=1e-9)


def highest_merit(goal, Z, sizes, own):
    """Return the highest merit of all sets but the own one, by sorting labels for each size."""
    scores, n_labels = sizes.vectors.astype(float) @ Z.astype(float), Z.shape[1]
    others = np.setdiff1d(np.arange(n_labels), own)
    base, a, found = scores[len(own), own].sum(), len(own), [-np.inf]
    for b, row in enumerate(scores[1:], start=1):
        inside, outside = (np.cumsum([0, *np.sort(-row[k])]) for k in (own, others))
        for common in range(max(b - others.size, 0), min(a, b) + 1):
            score = -inside[common] - outside[b - common]
            if common == a == b or goal == SCORE:
                found.append(score if goal == SCORE else -np.inf)
                continue
            u, v = sizes.vectors[a].astype(float), sizes.vectors[b].astype(float)
            distance = np.sqrt(a * u @ u + b * v @ v - 2 * common * u @ v)
            margin = (1 - 2 * common / (a + b)) if goal == RESCALED else 1.0
            found.append(margin - (base - score) / (1.0 if goal == RESCALED else distance))
    return max(found)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("goal", [SCORE, EXACT, RESCALED])
@pytest.mark.parametrize("n_labels", [30, 90, 200])
def test_the_best_of_many_labels(n_labels, goal, dtype):
    """No size is passed over that has the best set, whatever the scores look like."""
    rng = np.random.default_rng(4)
    sizes = sizes_of("dice", 4, n_labels, dtype)
    sizes = sizes._replace(empty=False)
    for Z in random_scores(rng, sizes, 40, n_labels):
        Z *= rng.choice([0.01, 0.3, 1.0])
        Z -= (rng.random() * sizes.vectors[rng.integers(1, n_labels)])[:, None].astype(dtype)
        n_own = 0 if goal == SCORE else rng.integers(1, 7)
        own = np.sort(rng.choice(n_labels, n_own, False))

        _, merit = best_set(Z, own, goal, sizes, -np.inf, new_room(Z))

        expected = highest_merit(goal, Z, sizes, own)
        assert merit == pytest.approx(expected, rel=1e-5, abs=2e-5 if dtype == np.float32 else 1e-9)


@given(
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=40),
    st.integers(1, 40),
    st.floats(-1, 1),
)
def test_a_price_bounds_the_sum_of_the_highest(values, n, mean):
    """No sum of so many values, or of fewer or more, is higher, whatever the mean is said to be."""
    values, n = np.array(values, np.float32), min(n, len(values))
    rest = float(np.maximum(values, 0).sum(dtype=float))

    price = price_of(values, n, mean, rest, np.log(np.maximum(np.arange(values.size + 2), 1)))

    sums = np.cumsum([0.0, *np.sort(-values.astype(float))])
    for k in range(values.size + 1):
        assert -sums[k] <= k * price.each + price.rest + 1e-5


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("similarity", "rank"), KINDS)
def test_answers_are_those_of_brute_force(similarity, rank, dtype):
    """Best sets, several best ones, margins, and best ones with a label, of all that have any."""
    rng = np.random.default_rng(1)
    close = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 1e-5, "atol": 1e-4}
    for n_labels in (1, 2, 5, 9, 12) if similarity == "dice" else (1, 6):
        sizes = by_vectors(sizes_of(similarity, rank, n_labels, dtype).vectors, empty=False)
        members = matrix_of(label_sets(n_labels), n_labels)
        n_docs, n_best = 8 if n_labels > 9 else 20, 7
        Z = random_scores(rng, sizes, n_docs, n_labels)
        scores = np.array([set_scores(z, sizes, members) for z in Z])
        found = np.zeros((n_docs, n_labels), bool)
        out, several = np.empty((n_docs, n_labels)), np.zeros((n_docs, n_best, n_labels), bool)
        values, wanted = np.empty((n_docs, n_best)), n_labels // 2

        chosen = best_sets(Z, sizes)
        labeling.n_best_sets(Z, sizes, n_best, several, values)
        labeling.margins(Z, sizes, out)
        labeling.best_with(Z, sizes, wanted, found)

        for doc, row in enumerate(scores):
            best = np.sort(row)[::-1][:n_best]
            chosen_score = set_scores(Z[doc], sizes, chosen[doc][None])
            np.testing.assert_allclose(chosen_score[0], best[0], **close)
            np.testing.assert_allclose(values[doc, : best.size], best, **close)
            assert np.isneginf(values[doc, best.size :]).all()
            listed = several[doc, : best.size]
            np.testing.assert_allclose(set_scores(Z[doc], sizes, listed), best, **close)
            assert len({tuple(labels) for labels in listed.tolist()}) == len(listed)
            assert not several[doc, best.size :].any()
            with_each = np.array([row[members[:, j]].max() for j in range(n_labels)])
            without = [row[~members[:, j]].max(initial=-np.inf) for j in range(n_labels)]
            np.testing.assert_allclose(out[doc], with_each - without, **close)
            assert found[doc, wanted]
            found_score = set_scores(Z[doc], sizes, found[doc][None])
            np.testing.assert_allclose(found_score[0], with_each[wanted], **close)


def test_of_equal_sets_the_smallest_and_first():
    """Ties are settled by size, then by the order of labels."""
    sizes = sizes_of("dice", None, 4)
    Z = np.zeros((1, sizes.vectors.shape[1], 4))
    several, values = np.zeros((1, 2, 4), bool), np.empty((1, 2))

    chosen = best_sets(Z, sizes)
    labeling.n_best_sets(Z, sizes, 2, several, values)

    assert chosen.tolist() == [[True, False, False, False]]
    assert several[0, :, 0].tolist() == [True, False]
    assert values.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("n_best", [1, 40, 127, 130])
def test_many_sets_are_listed_in_order(n_best):
    """All of them if need be, each once, equal ones by size."""
    rng = np.random.default_rng(4)
    sizes, sets = by_vectors(sizes_of("dice", 4, 7).vectors, empty=False), label_sets(7)
    equal = np.full((1, 4, 7), 0.1)
    Z = np.concatenate([random_scores(rng, sizes, 5, 7), equal, 0 * equal])
    found, scores = np.zeros((7, n_best, 7), bool), np.empty((7, n_best))

    labeling.n_best_sets(Z, sizes, n_best, found, scores)

    n_sets = min(n_best, len(sets))
    for doc in range(7):
        best = np.sort(set_scores(Z[doc], sizes, matrix_of(sets, 7)))[::-1][:n_sets]
        np.testing.assert_allclose(scores[doc, :n_sets], best, atol=1e-9)
        assert len({tuple(labels) for labels in found[doc, :n_sets].tolist()}) == n_sets
    assert found[-1, :n_sets].sum(axis=1).tolist() == [len(labels) for labels in sets[:n_sets]]
    assert np.isneginf(scores[:, n_sets:]).all()


@given(st.lists(st.sampled_from([None, 0.0, 0.5, 1.0, -np.inf]), max_size=60))
def test_a_heap_gives_the_first_item(steps):
    """Whatever is pushed and popped in between: the lowest key, and of equal ones the oldest."""
    heap, there = new_heap(len(steps)), []

    for age, key in enumerate(steps):
        if key is not None:
            push(heap, len(there), key, age, -age)
            there.append((key, age))
        elif there:
            first = there.pop(there.index(min(there)))
            assert (heap.key[0], heap.rank[0], heap.item[0]) == (*first, -first[1])
            pop(heap, len(there) + 1)
        if there:
            assert (heap.key[0], heap.rank[0]) == min(there)


def test_without_labels_the_best_set_scores_best():
    """A document without labels of its own is asked for its score only."""
    rng = np.random.default_rng(2)
    sizes = sizes_of("dice", None, 6)
    members = matrix_of(label_sets(6), 6)
    for Z in random_scores(rng, sizes, 20, 6):
        room = new_room(Z)

        _, merit = best_set(Z, np.empty(0, np.int64), SCORE, sizes, -np.inf, room)

        assert merit == pytest.approx(set_scores(Z, sizes, members).max(), rel=1e-9)


# The embedding


def embedded(labels, vectors, n_labels):
    """Return the embedding of a label set, flat."""
    phi = np.zeros((n_labels, vectors.shape[1]))
    phi[list(labels)] = vectors[len(labels)]
    return phi.ravel()


@pytest.mark.parametrize("similarity", ["dice", "cosine"])
def test_inner_products_are_similarities(similarity):
    """Of all pairs of label sets, to nine digits, before and after the rotation."""
    n_labels = 6
    sizes = sizes_of(similarity, None, n_labels)
    sets = label_sets(n_labels, empty=sizes.empty)
    turned, _ = rotated(sizes.vectors, np.zeros((1, sizes.vectors.shape[1], n_labels)))

    for vectors in (sizes.vectors, turned):
        phi = np.array([embedded(labels, vectors, n_labels) for labels in sets])
        expected = [[SIMILARITIES[similarity](a, b) for b in sets] for a in sets]
        np.testing.assert_allclose(phi @ phi.T, expected, atol=1e-9)


@pytest.mark.parametrize("n_labels", [3, 25, 90, 400])
def test_exact_vectors_of_many_sizes(n_labels):
    """Inner products are 2 / (a + b), however many sizes there are."""
    size = np.arange(1, n_labels + 1)

    vectors = embed_sizes("dice", n_labels, np.array([0, 9, 5, 2, 1]), None).vectors[1:]

    np.testing.assert_allclose(vectors @ vectors.T, 2 / (size[:, None] + size), atol=1e-9)


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_a_low_rank_is_exact_for_the_sizes_needed_most(rank):
    """As many sizes as there are dimensions have exact inner products, with all others too."""
    size = np.arange(1, 31)

    vectors = embed_sizes("dice", 30, np.array([0, 90, 50, 20, 2]), rank).vectors[1:]

    wrong = np.abs(vectors @ vectors.T - 2 / (size[:, None] + size))
    assert vectors.shape == (30, rank)
    exact = np.flatnonzero(wrong.max(axis=1) < 1e-12) + 1
    assert len(exact) == rank
    assert set(exact) <= {1, 2, 3, 4, 5}
    assert 2 in exact
    if rank == 4:
        assert wrong.max() < 0.01


def test_the_rotation_changes_no_score():
    """Scores of sets are the same by turned vectors and weights."""
    rng = np.random.default_rng(3)
    sizes = sizes_of("dice", None, 9)
    weights = rng.normal(size=(5, sizes.vectors.shape[1], 9))

    vectors, turned = rotated(sizes.vectors, weights.copy())

    assert vectors.shape[1] <= sizes.vectors.shape[1]
    for size, word in product(range(10), range(5)):
        np.testing.assert_allclose(
            vectors[size] @ turned[word], sizes.vectors[size] @ weights[word], atol=1e-9
        )


@pytest.mark.parametrize("rank", [1, 2, 4, None])
@pytest.mark.parametrize("similarity", ["dice", "cosine"])
def test_sizes_between_two_ends_are_near_their_mean(similarity, rank):
    """No further than the slack, for many labels; an end is its own mean."""
    sizes = embed_sizes(similarity, 170, np.array([0, 9, 5, 2, 1]), rank)

    assert sizes.ends[0] == 1
    assert sizes.ends[-1] == 170
    assert (sizes.share[sizes.ends] == 1).all()
    for (before, end), limit in zip(pairwise(sizes.ends), sizes.slack[1:], strict=True):
        low, high = sizes.vectors[before], sizes.vectors[end]
        for size in range(before + 1, end):
            mean = low + sizes.share[size] * (high - low)
            assert 0 <= sizes.share[size] <= 1
            assert np.linalg.norm(sizes.vectors[size] - mean) <= limit + 1e-15
