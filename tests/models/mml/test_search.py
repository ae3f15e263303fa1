"""Searches over all label sets, compared with brute force, and the embedding of label sets."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from polytopic.models.mml import search_kernels as search
from polytopic.models.mml.embedding import embed_sizes, rotate, with_knots
from polytopic.models.mml.search_kernels import EXACT, RESCALED, SCORE, best_set, bound_sum
from tests.twins import mml as twins
from tests.twins.mml import indicator_of, label_sets, set_scores

GOALS = {"score": SCORE, "exact": EXACT, "f": RESCALED}
KINDS = [("cosine", None), ("dice", 1), ("dice", 2), ("dice", 4), ("dice", None)]


def sizes_of(similarity, rank, n_labels, dtype=np.float64):
    """Return the embedding of sizes, where documents mostly have few labels."""
    used = np.array([0, 9, 5, 2, 1])[: n_labels + 1]
    sizes = embed_sizes(similarity, n_labels, used, rank, has_empty=similarity == "cosine")
    return with_knots(sizes.vectors.astype(dtype, order="C"), has_empty=sizes.has_empty)


def random_scores(rng, sizes, n_docs, n_labels):
    """Return scores of documents like those of models, in which one or many labels stand out."""
    shape = (n_docs, sizes.vectors.shape[1], n_labels)
    Z = rng.normal(size=shape) * rng.choice([0.1, 1.0, 5.0], size=(n_docs, 1, 1))
    Z += rng.choice([-1.0, 0.0, 1.0], size=(n_docs, 1, 1)) * sizes.vectors[1][None, :, None]
    Z += (rng.random((n_docs, 1, n_labels)) < 0.3) * sizes.vectors[:3][-1][None, :, None]
    return Z.astype(sizes.vectors.dtype)


def workspace(Z):
    """Return a workspace for the scores of one document."""
    return search.new_search(*Z.shape, Z.dtype)


def best_sets(Z, sizes):
    """Return the indicator of each document's best label set."""
    n_docs, _, n_labels = Z.shape
    found_labels, n_found = np.empty(n_docs * n_labels, np.int32), np.empty(n_docs, np.int64)
    n = search.best_sets(Z, sizes, workspace(Z[0]), found_labels, n_found)
    chosen = np.zeros((n_docs, n_labels), bool)
    assert n == n_found.sum()
    for doc, labels in enumerate(np.split(found_labels[:n], np.cumsum(n_found)[:-1])):
        assert (np.diff(labels) > 0).all()
        chosen[doc, labels] = True
    return chosen


@pytest.mark.parametrize("goal", ["exact", "f"])
@pytest.mark.parametrize(("similarity", "rank"), KINDS)
def test_the_most_violated_label_set(similarity, rank, goal):
    """It is that of brute force, for random scores and own sets of all sizes."""
    rng = np.random.default_rng(0)
    for n_labels in (1, 2, 5, 9):
        sizes = sizes_of(similarity, rank, n_labels)
        sets = label_sets(n_labels, empty=sizes.has_empty)
        members = indicator_of(sets, n_labels)
        for Z in random_scores(rng, sizes, 25, n_labels):
            work = workspace(Z)
            own = frozenset(rng.choice(n_labels, rng.integers(1, n_labels + 1), False).tolist())
            scores = set_scores(Z, sizes.vectors, members)
            merits = twins.violations(goal, sizes.vectors, own, sets, scores)

            labels = np.array(sorted(own))
            size, merit = best_set(Z, labels, GOALS[goal], sizes, -np.inf, work)

            assert merit == pytest.approx(merits.max(), rel=1e-9, abs=1e-9)
            for floor in (merit + 1e-6, 1e6):
                assert best_set(Z, labels, GOALS[goal], sizes, floor, work) == (-1, floor)
            again = best_set(Z, labels, GOALS[goal], sizes, merit - 1e-6, work)
            assert again == (size, pytest.approx(merit))
            if np.isfinite(merit):
                best = frozenset(work.best[:size].tolist())
                assert merits[sets.index(best)] == pytest.approx(merits.max(), abs=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("goal", list(GOALS))
@pytest.mark.parametrize("n_labels", [30, 90, 200])
def test_the_best_of_many_labels(n_labels, goal, dtype):
    """The size of the best set is never skipped, whatever the scores are."""
    rng = np.random.default_rng(4)
    sizes = sizes_of("dice", 4, n_labels, dtype)
    sizes = sizes._replace(has_empty=False)
    for Z in random_scores(rng, sizes, 40, n_labels):
        Z *= rng.choice([0.01, 0.3, 1.0])
        Z -= (rng.random() * sizes.vectors[rng.integers(1, n_labels)])[:, None].astype(dtype)
        n_own = 0 if goal == "score" else rng.integers(1, 7)
        own = np.sort(rng.choice(n_labels, n_own, False))

        _, merit = best_set(Z, own, GOALS[goal], sizes, -np.inf, workspace(Z))

        expected = twins.highest_merit(goal, Z, sizes.vectors, own)
        assert merit == pytest.approx(expected, rel=1e-5, abs=2e-5 if dtype == np.float32 else 1e-9)


@given(
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=40),
    st.integers(1, 40),
    st.floats(-1, 1),
)
def test_a_price_bounds_the_sum_of_the_highest(values, n, mean):
    """No sum of any number of values exceeds the bound, whatever mean is assumed."""
    values, n = np.array(values, np.float32), min(n, len(values))
    above_zero = float(np.maximum(values, 0).sum(dtype=float))
    logs = np.log(np.maximum(np.arange(values.size + 2), 1))

    bound = bound_sum(values, n, mean, above_zero, logs)

    sums = np.cumsum([0.0, *np.sort(-values.astype(float))])
    for k in range(values.size + 1):
        assert -sums[k] <= k * bound.price + bound.excess + 1e-5


@pytest.mark.parametrize("has_empty", [True, False])
def test_leads_are_those_of_the_two_best_sets(has_empty):
    """The same if the empty set is an answer, which may be the best or the second best."""
    sizes = with_knots(sizes_of("cosine", None, 4, np.float64).vectors, has_empty=has_empty)
    Z = random_scores(np.random.default_rng(2), sizes, 40, 4)
    leads, two, sets = np.empty(40), np.empty((40, 2)), np.zeros((40, 2, 4), bool)

    search.leads(Z, sizes, leads)
    search.n_best_sets(Z, sizes, search.new_listing(2, 4), sets, two)

    np.testing.assert_allclose(leads, two[:, 0] - two[:, 1])
    assert (~sets.any(axis=2)).any() == has_empty


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("similarity", "rank"), KINDS)
def test_answers_are_those_of_brute_force(similarity, rank, dtype):
    """Best sets, several best sets, margins, and best sets with a label equal brute force."""
    rng = np.random.default_rng(1)
    close = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 1e-5, "atol": 1e-4}
    for n_labels in (1, 2, 5, 9, 12) if similarity == "dice" else (1, 6):
        sizes = with_knots(sizes_of(similarity, rank, n_labels, dtype).vectors, has_empty=False)
        members = indicator_of(label_sets(n_labels), n_labels)
        n_docs, n_best = 8 if n_labels > 9 else 20, 7
        Z = random_scores(rng, sizes, n_docs, n_labels)
        scores = np.array([set_scores(z, sizes.vectors, members) for z in Z])
        best_marks = np.zeros((n_docs, n_labels), bool)
        out, several = np.empty((n_docs, n_labels)), np.zeros((n_docs, n_best, n_labels), bool)
        values, label = np.empty((n_docs, n_best)), n_labels // 2

        chosen = best_sets(Z, sizes)
        search.n_best_sets(Z, sizes, search.new_listing(n_best, n_labels), several, values)
        search.margins(Z, sizes, out)
        search.best_with(Z, sizes, label, best_marks)
        leads, two = np.empty(n_docs), np.empty((n_docs, 2))
        several_two = np.zeros((n_docs, 2, n_labels), bool)
        search.leads(Z, sizes, leads)
        search.n_best_sets(Z, sizes, search.new_listing(2, n_labels), several_two, two)

        assert leads.tolist() == (two[:, 0] - two[:, 1]).tolist()

        for doc, row in enumerate(scores):
            best = twins.n_best_sets(row, n_best)
            chosen_score = set_scores(Z[doc], sizes.vectors, chosen[doc][None])
            np.testing.assert_allclose(chosen_score[0], twins.best_sets(row), **close)
            np.testing.assert_allclose(values[doc, : best.size], best, **close)
            assert np.isneginf(values[doc, best.size :]).all()
            listed = several[doc, : best.size]
            np.testing.assert_allclose(set_scores(Z[doc], sizes.vectors, listed), best, **close)
            assert len({tuple(labels) for labels in listed.tolist()}) == len(listed)
            assert not several[doc, best.size :].any()
            np.testing.assert_allclose(out[doc], twins.margins(row, members), **close)
            np.testing.assert_allclose(leads[doc], twins.leads(row), **close)
            assert best_marks[doc, label]
            found_score = set_scores(Z[doc], sizes.vectors, best_marks[doc][None])
            np.testing.assert_allclose(
                found_score[0], twins.best_with(row, members, label), **close
            )


def test_of_equal_sets_the_smallest_and_first():
    """Ties are resolved by size, then by the order of labels."""
    sizes = sizes_of("dice", None, 4)
    Z = np.zeros((1, sizes.vectors.shape[1], 4))
    several, values = np.zeros((1, 2, 4), bool), np.empty((1, 2))

    chosen = best_sets(Z, sizes)
    search.n_best_sets(Z, sizes, search.new_listing(2, 4), several, values)

    assert chosen.tolist() == [[True, False, False, False]]
    assert several[0, :, 0].tolist() == [True, False]
    assert values.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("n_best", [1, 40, 127, 130])
def test_many_sets_are_listed_in_order(n_best):
    """Up to all sets are listed, each once, and equal ones by size."""
    rng = np.random.default_rng(4)
    sizes, sets = with_knots(sizes_of("dice", 4, 7).vectors, has_empty=False), label_sets(7)
    equal = np.full((1, 4, 7), 0.1)
    Z = np.concatenate([random_scores(rng, sizes, 5, 7), equal, 0 * equal])
    listed, scores = np.zeros((7, n_best, 7), bool), np.empty((7, n_best))

    search.n_best_sets(Z, sizes, search.new_listing(n_best, 7), listed, scores)

    n_sets = min(n_best, len(sets))
    for doc in range(7):
        best = twins.n_best_sets(set_scores(Z[doc], sizes.vectors, indicator_of(sets, 7)), n_sets)
        np.testing.assert_allclose(scores[doc, :n_sets], best, atol=1e-9)
        assert len({tuple(labels) for labels in listed[doc, :n_sets].tolist()}) == n_sets
    assert listed[-1, :n_sets].sum(axis=1).tolist() == [len(labels) for labels in sets[:n_sets]]
    assert np.isneginf(scores[:, n_sets:]).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_projections(dtype):
    """Scores are products with the weights, for documents of any size."""
    rng = np.random.default_rng(5)
    X = sparse.csr_matrix(rng.random((12, 9)) * (np.arange(9) < np.arange(12)[:, None]))
    weights = rng.normal(size=(9, 2, 5)).astype(dtype)
    flat = np.full((12, 10), np.nan, dtype)

    data, indices, indptr = X.data.astype(dtype), X.indices, X.indptr.astype(np.int64)
    search.project_rows(data, indices, indptr, weights.reshape(9, 10), flat)

    expected = twins.project_rows(X.toarray(), weights)
    np.testing.assert_allclose(flat.reshape(expected.shape), expected, rtol=1e-4, atol=1e-5)


def test_without_labels_the_best_set_scores_best():
    """For a document without own labels, the best set is the one with the highest score."""
    rng = np.random.default_rng(2)
    sizes = sizes_of("dice", None, 6)
    members = indicator_of(label_sets(6), 6)
    for Z in random_scores(rng, sizes, 20, 6):
        _, merit = best_set(Z, np.empty(0, np.int64), SCORE, sizes, -np.inf, workspace(Z))

        assert merit == pytest.approx(set_scores(Z, sizes.vectors, members).max(), rel=1e-9)


# The embedding


def embedded(labels, vectors, n_labels):
    """Return the embedding of a label set, flat."""
    phi = np.zeros((n_labels, vectors.shape[1]))
    phi[list(labels)] = vectors[len(labels)]
    return phi.ravel()


@pytest.mark.parametrize("similarity", ["dice", "cosine"])
def test_inner_products_are_similarities(similarity):
    """Inner products of all pairs of label sets are exact to nine digits, also after rotation."""
    n_labels = 6
    sizes = sizes_of(similarity, None, n_labels)
    sets = label_sets(n_labels, empty=sizes.has_empty)
    turned, _ = rotate(sizes.vectors, np.zeros((1, sizes.vectors.shape[1], n_labels)))

    for vectors in (sizes.vectors, turned):
        phi = np.array([embedded(labels, vectors, n_labels) for labels in sets])
        expected = [[twins.SIMILARITIES[similarity](a, b) for b in sets] for a in sets]
        np.testing.assert_allclose(phi @ phi.T, expected, atol=1e-9)


@pytest.mark.parametrize("n_labels", [3, 25, 90, 400])
def test_exact_vectors_of_many_sizes(n_labels):
    """Inner products are 2 / (a + b), however many sizes there are."""
    size = np.arange(1, n_labels + 1)

    vectors = embed_sizes(
        "dice", n_labels, np.array([0, 9, 5, 2, 1]), None, has_empty=False
    ).vectors[1:]

    np.testing.assert_allclose(vectors @ vectors.T, 2 / (size[:, None] + size), atol=1e-9)


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_a_low_rank_is_exact_for_the_sizes_needed_most(rank):
    """As many sizes as there are dimensions have exact inner products with all others."""
    size = np.arange(1, 31)

    vectors = embed_sizes("dice", 30, np.array([0, 90, 50, 20, 2]), rank, has_empty=False).vectors[
        1:
    ]

    wrong = np.abs(vectors @ vectors.T - 2 / (size[:, None] + size))
    assert vectors.shape == (30, rank)
    exact = np.flatnonzero(wrong.max(axis=1) < 1e-12) + 1
    assert len(exact) == rank
    assert set(exact) <= {1, 2, 3, 4, 5}
    assert 2 in exact
    if rank == 4:
        assert wrong.max() < 0.01


def test_the_rotation_changes_no_score():
    """Rotated vectors and weights give the same scores of sets."""
    rng = np.random.default_rng(3)
    sizes = sizes_of("dice", None, 9)
    weights = rng.normal(size=(5, sizes.vectors.shape[1], 9))

    vectors, turned = rotate(sizes.vectors, weights.copy())

    assert vectors.shape[1] <= sizes.vectors.shape[1]
    for size, word in product(range(10), range(5)):
        np.testing.assert_allclose(
            vectors[size] @ turned[word], sizes.vectors[size] @ weights[word], atol=1e-9
        )


@pytest.mark.parametrize("rank", [1, 2, 4, None])
@pytest.mark.parametrize("similarity", ["dice", "cosine"])
def test_sizes_between_two_knots_are_near_their_mean(similarity, rank):
    """The distance from the mean is at most the slack, and zero at a knot."""
    sizes = embed_sizes(similarity, 170, np.array([0, 9, 5, 2, 1]), rank, has_empty=False)

    assert sizes.knots[0] == 1
    assert sizes.knots[-1] == 170
    assert (sizes.blend[sizes.knots] == 1).all()
    for (before, end), limit in zip(pairwise(sizes.knots), sizes.slack[1:], strict=True):
        low, high = sizes.vectors[before], sizes.vectors[end]
        for size in range(before + 1, end):
            mean = low + sizes.blend[size] * (high - low)
            assert 0 <= sizes.blend[size] <= 1
            assert np.linalg.norm(sizes.vectors[size] - mean) <= limit + 1e-15
