"""Training of maximal margin labeling: dense problems, and laws."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from polytopic import MML
from polytopic.models.mml.embedding import embed_sizes, rotate
from polytopic.models.mml.training import DualAscent, Margins
from tests.strategies import matrices
from tests.twins import mml as twins
from tests.twins.mml import Problem, label_sets, own_sets, stored_problem

TIGHT = {"rank": None, "tol": 1e-7, "max_iter": 20_000}
KINDS = [
    {"labels": "neighbours"},
    {"labels": "neighbours", "similarity": "cosine"},
    {"goal": "f"},
    {"goal": "exact"},
    {"goal": "f", "similarity": "cosine"},
    {"goal": "exact", "similarity": "cosine"},
]
COSTS = [0.1, 1.0, 3.0]


def row_sets(Y):
    """Return the label sets of an indicator."""
    return own_sets(np.asarray(Y))


@pytest.mark.parametrize("C", COSTS)
@pytest.mark.parametrize("similarity", ["dice", "cosine"])
def test_neighbours_solve_the_paper(similarity, C):
    """Objective and predictions are those of the dense problem (7) and of Eq. (8)."""
    X, Y, X_new = twins.corpus()
    problem = Problem.over_neighbours(X, Y, similarity, C)
    alpha = problem.solve()
    sets = label_sets(Y.shape[1])
    scores = problem.scores(alpha, X_new, sets)

    model = MML(C, similarity=similarity, labels="neighbours", **TIGHT).fit(X, Y)

    assert model.objective_ == pytest.approx(problem.objective(alpha), rel=1e-6)
    assert 0 <= model.dual_gap_ <= 1e-7 * model.objective_
    lead = np.diff(np.sort(scores, axis=1)[:, -2:], axis=1).ravel()
    clear = lead > 1e-3
    assert clear.mean() > 0.7
    assert [a for a, c in zip(row_sets(model.predict(X_new)), clear, strict=True) if c] == [
        sets[k] for k in scores.argmax(axis=1)[clear]
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_dual_variables(kind):
    """All label sets score as Eq. (8) says, whatever the dual variables are."""
    X, Y, X_new = twins.corpus(seed=1)
    sets = label_sets(Y.shape[1])

    model = MML(rank=None, tol=0.01, **kind).fit(X, Y)
    ranked = model.predict_sets(X_new, n_best=len(sets))

    problem, alpha = stored_problem(model, X, Y)
    scores = problem.scores(alpha, X_new, sets)
    for doc, listed in enumerate(ranked.sets):
        expected = [scores[doc, sets.index(frozenset(labels))] for labels in listed]
        np.testing.assert_allclose(ranked.scores[doc], expected, rtol=1e-9, atol=1e-10)
        assert frozenset(listed[0]) == problem.classify(alpha, X_new[doc], Y.shape[1])
    assert row_sets(model.predict(X_new)) == [sets[k] for k in scores.argmax(axis=1)]


@pytest.mark.parametrize("C", COSTS)
@pytest.mark.parametrize("goal", ["exact", "f"])
@pytest.mark.parametrize("similarity", ["dice", "cosine"])
def test_working_sets_solve_their_problem(similarity, goal, C):
    """The objective is optimal for the final working sets."""
    X, Y, _ = twins.corpus(seed=2)

    model = MML(C, similarity=similarity, goal=goal, **TIGHT).fit(X, Y)

    problem, alpha = stored_problem(model, X, Y)
    assert model.objective_ == pytest.approx(problem.objective(alpha), rel=1e-12)
    assert model.objective_ == pytest.approx(problem.objective(problem.solve()), rel=1e-6)
    np.testing.assert_allclose(problem.nearest(alpha), alpha, rtol=1e-12)


@pytest.mark.parametrize("C", COSTS)
@pytest.mark.parametrize("similarity", ["dice", "cosine"])
def test_goal_f_solves_the_problem_over_all_label_sets(similarity, C):
    """The gap over all label sets is closed, so working sets lack no important set."""
    X, Y, _ = twins.corpus(seed=3)
    everything = Problem.over_all(X, Y, similarity, "f", C)

    model = MML(C, similarity=similarity, goal="f", **TIGHT).fit(X, Y)

    problem, alpha = stored_problem(model, X, Y)
    gap = problem.primal(alpha, Y.shape[1]) - problem.objective(alpha)
    assert -1e-9 <= gap <= TIGHT["tol"] * model.objective_
    assert model.objective_ == pytest.approx(everything.objective(everything.solve(1e-8)), rel=1e-6)


@pytest.mark.parametrize("tol", [0.1, 0.01])
@pytest.mark.parametrize("C", COSTS)
def test_goal_f_closes_the_gap_it_reports(C, tol):
    """Even with a loose tolerance, the gap over all label sets is about the reported one."""
    X, Y, _ = twins.corpus(n_docs=12, seed=4)

    model = MML(C, goal="f", rank=None, tol=tol, max_iter=1000).fit(X, Y)

    problem, alpha = stored_problem(model, X, Y)
    gap = problem.primal(alpha, Y.shape[1]) - problem.objective(alpha)
    assert gap <= 2 * tol * model.objective_


@pytest.mark.parametrize("C", COSTS)
@pytest.mark.parametrize("similarity", ["dice", "cosine"])
def test_goal_exact_is_below_the_problem_over_all_label_sets(similarity, C):
    """With a slack for each set of a working set, the objective is that of a smaller problem."""
    X, Y, _ = twins.corpus(seed=3)
    everything = Problem.over_all(X, Y, similarity, "exact", C)

    model = MML(C, similarity=similarity, goal="exact", **TIGHT).fit(X, Y)

    best = everything.objective(everything.solve(1e-8))
    assert 0.1 * best < model.objective_ <= best * (1 + 1e-7)


def test_goal_exact_is_the_whole_problem_where_no_slack_is_needed():
    """If C is large, separable documents are separated from all label sets."""
    X, Y = np.eye(4), np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1], [1, 1, 1]])
    everything = Problem.over_all(X, Y, "dice", "exact", 100.0)

    model = MML(100.0, goal="exact", **TIGHT).fit(X, Y)

    assert model.objective_ == pytest.approx(everything.objective(everything.solve()), rel=1e-6)
    assert model.max_violation_ <= 1e-7


@settings(max_examples=30)
@given(matrices(min_docs=2, labelled=True), st.sampled_from(KINDS), st.sampled_from(COSTS))
def test_the_objective_never_falls(corpus, kind, C):
    """Each pass raises the dual objective, and it stays below the primal one."""
    X, Y = corpus

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MML(C, rank=None, tol=1e-4, max_iter=12, **kind).fit(X, Y)

    assert len(model.objectives_) == model.n_iter_ <= 12
    assert (np.diff([0.0, *model.objectives_]) >= -1e-12 * (1 + abs(model.objective_))).all()
    assert model.dual_gap_ >= -1e-9


def learned(model):
    """Return the parameters of a model as bytes."""
    return model._weights.tobytes(), model.objectives_, model.dual_gap_


@pytest.mark.parametrize("kind", KINDS[::2])
def test_the_order_of_documents_does_not_matter(kind):
    """Permuted rows give the same bits, even with equal documents among them."""
    X, Y, _ = twins.corpus(n_docs=20, n_words=15)
    X, Y = np.vstack([X, X[:5], X[:5]]), np.vstack([Y, Y[:5], 1 - Y[:5]])
    order = np.random.default_rng(1).permutation(len(X))

    one = MML(**kind).fit(X, Y)
    other = MML(**kind).fit(sparse.csr_matrix(X[order]), Y[order])

    assert learned(one) == learned(other)


@pytest.mark.parametrize("kind", KINDS[::2])
def test_random_state_fixes_the_bits(kind):
    """The same number gives the same bits, another number another approximation."""
    X, Y, _ = twins.corpus(n_docs=20, n_words=15)

    same = [MML(random_state=7, **kind).fit(X, Y) for _ in range(2)]
    by_instance = MML(random_state=np.random.RandomState(7), **kind).fit(X, Y)
    other = MML(random_state=8, **kind).fit(X, Y)

    assert learned(same[0]) == learned(same[1]) == learned(by_instance)
    assert learned(same[0]) != learned(other)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.get("goal") != "exact"])
def test_permuting_labels_and_words_permutes_predictions(kind):
    """The order of labels and words does not matter once training has converged.

    With ``goal="exact"`` it does, because the working sets depend on the steps before.
    """
    X, Y, X_new = twins.corpus(n_docs=10, seed=5)
    labels, words = np.array([2, 0, 3, 1]), np.array([3, 1, 4, 0, 2, 5])
    model = MML(0.5, **TIGHT, **kind).fit(X, Y)

    permuted = MML(0.5, **TIGHT, **kind).fit(X[:, words], Y[:, labels])

    assert permuted.objective_ == pytest.approx(model.objective_, rel=1e-7)
    np.testing.assert_allclose(
        permuted.decision_function(X_new[:, words]),
        model.decision_function(X_new)[:, labels],
        atol=2e-3,
    )


def test_repeated_words_and_lengths_do_not_matter():
    """Only the direction of a document matters, and duplicate entries are added up."""
    X, Y, X_new = twins.corpus()
    model = MML(rank=None).fit(X, Y)
    coo = sparse.coo_array(np.hstack([X, X]))
    twice = sparse.csr_matrix((coo.data, (coo.row, coo.col % X.shape[1])), shape=X.shape)

    scaled = MML(rank=None).fit(twice, Y)

    np.testing.assert_allclose(scaled._weights, model._weights, atol=1e-9)
    np.testing.assert_allclose(
        scaled.decision_function(X_new * 7), model.decision_function(X_new), atol=1e-9
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_convergence_warning(kind):
    """One pass is too few, and gives one warning."""
    X, Y, _ = twins.corpus()

    with pytest.warns(ConvergenceWarning, match="max_iter == 1 passes") as caught:
        model = MML(tol=1e-6, max_iter=1, **kind).fit(X, Y)

    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.n_iter_ == 1
    assert model.dual_gap_ > 1e-6 * model.objective_


# Steps on documents, compared with their twins


def begin(similarity, C, *, labels="all", goal="f", tol=0.01):
    """Return the initial state, the margins, and the documents in the form of the twins."""
    X, Y, _ = twins.corpus(n_docs=12, n_words=7)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    used, has_empty = np.bincount(Y.sum(axis=1)), similarity == "cosine"
    sizes = embed_sizes(similarity, Y.shape[1], used, None, has_empty=has_empty)
    matrices = sparse.csr_matrix(X), sparse.csr_matrix(Y, dtype=float)
    ascent = DualAscent.begin(*matrices, sizes, np.float64, np.random.RandomState(0))
    own, order = own_sets(Y), np.concatenate(ascent.chunks)
    W = np.zeros((X.shape[1], ascent.W[0].size))
    return ascent, Margins(labels, goal, C, tol), (X, own, order, W)


@pytest.mark.parametrize("C", COSTS)
@pytest.mark.parametrize("similarity", ["dice", "cosine"])
def test_passes_over_neighbours_are_those_of_the_twin(similarity, C):
    """Weights, gap and objective are those of plain coordinate ascent."""
    ascent, margins, (X, own, order, W) = begin(similarity, C, labels="neighbours")
    vectors, alpha = ascent.sizes.vectors, [{} for _ in own]
    empty = similarity == "cosine"

    for _ in range(3):
        gap, _, linear = ascent.run_pass(margins, np.random.RandomState(1))

        expected = [
            twins.ascend_neighbours(X[d], own[d], alpha[d], vectors, C, W, empty=empty)
            for d in order
        ]
        np.testing.assert_allclose(ascent.W.reshape(W.shape), W, atol=1e-10)
        np.testing.assert_allclose((gap, linear), np.sum(expected, axis=0), atol=1e-10)


@pytest.mark.parametrize("C", COSTS)
@pytest.mark.parametrize("goal", ["f", "exact"])
@pytest.mark.parametrize("similarity", ["dice", "cosine"])
def test_passes_over_working_sets_are_those_of_the_twin(similarity, goal, C):
    """Weights, gap, largest violation and linear term are those of plain coordinate ascent.

    With ``goal="f"`` they agree approximately: once a document's limit is used up, rounding decides
    whether a set takes a tiny step or takes from another set.
    """
    close = {"atol": 1e-8} if goal == "exact" else {"atol": 5e-3}
    ascent, margins, (X, own, order, W) = begin(similarity, C, goal=goal)
    vectors, alpha = ascent.sizes.vectors, [{} for _ in own]
    sets = label_sets(ascent.W.shape[2], empty=similarity == "cosine")

    for _ in range(3):
        gap, missed, linear = ascent.run_pass(margins, np.random.RandomState(1))

        expected = [
            twins.ascend_sets(X[d], own[d], alpha[d], goal, vectors, sets, C, margins.tol, W)
            for d in order
        ]
        gaps, violations, terms = np.transpose(expected)
        np.testing.assert_allclose(ascent.W.reshape(W.shape), W, **close)
        np.testing.assert_allclose(
            (gap, missed, linear), (gaps.sum(), violations.max(), terms.sum()), **close
        )


@pytest.mark.parametrize("goal", ["f", "exact"])
def test_weights_of_dual_variables_are_those_of_the_twin(goal):
    """Initial weights are the sum of the contributions of dual variables."""
    ascent, margins, (X, own, order, W) = begin("dice", 1.0, goal=goal)
    Y = sparse.csr_matrix([[label in labels for label in range(4)] for labels in own], dtype=float)
    alpha = [{frozenset(range(k % 4, 4)) - {3}: 0.2, frozenset({3}): 0.3} for k in range(len(own))]
    alpha = [{s: v for s, v in a.items() if s and s != o} for a, o in zip(alpha, own, strict=True)]

    ascent.start_from([[(v, sorted(s)) for s, v in a.items()] for a in alpha], Y, margins)

    for d in order:
        twins.start_weights(X[d], own[d], alpha[d], goal, ascent.sizes.vectors, 4, W)
    np.testing.assert_allclose(ascent.W.reshape(W.shape), W, atol=1e-12)


# Starting from another model


@pytest.mark.parametrize("kind", KINDS[2:])
def test_a_warm_start_from_itself(kind):
    """Training starts where the other model ended."""
    X, Y, X_new = twins.corpus(n_docs=12, n_words=12)
    X[3] = 0.0  # no model learns from these
    settings = {"rank": None, "tol": 1e-6, "max_iter": 5000, **kind}
    cold = MML(**settings).fit(X, Y)

    warm = MML(**settings).fit(X, Y, warm=cold, rows=np.arange(len(X)))

    assert warm.n_iter_ <= 3 < cold.n_iter_
    assert warm.objectives_[0] >= cold.objective_ * (1 - 1e-12)
    np.testing.assert_allclose(
        warm.decision_function(X_new), cold.decision_function(X_new), atol=1e-2
    )


@pytest.mark.parametrize("kind", KINDS[2:])
def test_a_warm_start_with_other_documents_and_labels(kind):
    """With documents and labels added and removed, it is nearly as a cold start, but faster."""
    X, Y, X_new = twins.corpus(n_docs=12, n_words=12)
    names = np.array(["b", "c", "d", "e"])
    Y = [names[y > 0].tolist() for y in Y]
    settings = {"rank": None, "tol": 1e-7, "max_iter": 20_000, **kind}
    before = MML(**settings).fit(X, Y)
    rows = np.array([k for k in range(12) if "e" not in Y[k]] + [-1, -1])
    X_now = np.vstack([X[rows[:-2]], X_new[:2]])
    Y_now = [Y[k] for k in rows[:-2]] + [["a", "c"], ["a"]]

    cold = MML(**settings).fit(X_now, Y_now)
    warm = MML(**settings).fit(X_now, Y_now, warm=before, rows=rows)

    assert warm.classes_.tolist() == ["a", "b", "c", "d"]
    assert warm.objectives_[0] > cold.objectives_[0]
    if kind["goal"] == "f":
        assert warm.objective_ == pytest.approx(cold.objective_, rel=1e-6)
        np.testing.assert_allclose(
            warm.decision_function(X_new), cold.decision_function(X_new), atol=1e-2
        )


@pytest.mark.parametrize("change", ["learn", "forget"])
@pytest.mark.parametrize("tol", [0.1, 0.01, 1e-6])
def test_a_warm_start_is_as_near_the_best_as_a_cold_one(tol, change):
    """Both gaps bound the same optimum; if they are narrow, all predictions agree."""
    X, Y, X_new = twins.corpus(n_docs=60, n_words=20, seed=6)
    few, many = np.arange(0, 54), np.arange(60)
    old, new = (few, many) if change == "learn" else (many, few)
    settings = {"rank": None, "tol": tol, "max_iter": 20_000}
    before = MML(**settings).fit(X[old], Y[old])
    rows = np.where(np.isin(new, old), new, -1)

    cold = MML(**settings).fit(X[new], Y[new])
    warm = MML(**settings).fit(X[new], Y[new], warm=before, rows=rows)

    assert warm.n_iter_ <= cold.n_iter_
    assert warm.objective_ == pytest.approx(cold.objective_, rel=tol)
    if tol < 1e-3:
        assert (warm.predict(X_new) == cold.predict(X_new)).all()


@pytest.mark.parametrize("goal", ["f", "exact"])
def test_a_warm_start_with_another_cost(goal):
    """Dual variables above a lower C are reduced to it."""
    X, Y, _ = twins.corpus(n_docs=12, n_words=12)
    settings = {"rank": None, "tol": 1e-6, "max_iter": 5000, "goal": goal}
    dear = MML(5.0, **settings).fit(X, Y)

    warm = MML(0.1, **settings).fit(X, Y, warm=dear, rows=list(range(12)))

    problem, alpha = stored_problem(warm, X, Y)
    assert alpha.min() > 0
    np.testing.assert_allclose(problem.nearest(alpha), alpha, rtol=1e-9)
    assert warm.objective_ == pytest.approx(problem.objective(alpha), rel=1e-9)
    if goal == "f":
        cold = MML(0.1, **settings).fit(X, Y)
        assert warm.objective_ == pytest.approx(cold.objective_, rel=1e-5)


@pytest.mark.parametrize("goal", ["f", "exact"])
def test_a_warm_start_with_other_labels_of_a_document(goal):
    """A document may now have a label set that it was separated from before."""
    X, Y, _ = twins.corpus(n_docs=12, n_words=12)
    settings = {"rank": None, "tol": 1e-6, "max_iter": 5000, "goal": goal}
    before = MML(**settings).fit(X, Y)
    problem, _ = stored_problem(before, X, Y)
    now = Y.copy()
    for doc, other in problem.pairs[::3]:
        now[doc] = [label in other for label in range(Y.shape[1])]

    warm = MML(**settings).fit(X, now, warm=before, rows=np.arange(12))

    after, alpha = stored_problem(warm, X, now)
    assert all(after.own[doc] != other for doc, other in after.pairs)
    assert warm.objective_ == pytest.approx(after.objective(alpha), rel=1e-9)


def test_neighbours_do_not_start_warm():
    """The error says that neighbours always start cold."""
    X, Y, _ = twins.corpus()
    model = MML(labels="neighbours").fit(X, Y)

    with pytest.raises(ValueError, match="neighbours always start cold"):
        MML(labels="neighbours").fit(X, Y, warm=model, rows=np.arange(len(X)))
    with pytest.raises(ValueError, match="neighbours always start cold"):
        MML().fit(X, Y, warm=model, rows=np.arange(len(X)))


@pytest.mark.parametrize("rows", [None, [0, 1], 3])
def test_a_warm_start_needs_rows(rows):
    """There must be one row per document."""
    X, Y, _ = twins.corpus()
    model = MML().fit(X, Y)

    with pytest.raises(ValueError, match="for each document its row in warm's X, or -1"):
        MML().fit(X, Y, warm=model, rows=rows)


def test_a_warm_start_needs_dual_variables():
    """A model from a file has no dual variables."""
    X, Y, _ = twins.corpus()
    model = MML().fit(X, Y)
    loaded = MML().from_arrays(model.to_arrays(), labels=model.classes_, n_words=X.shape[1])

    with pytest.raises(ValueError, match="has no dual variables"):
        MML().fit(X, Y, warm=loaded, rows=np.arange(len(X)))


def test_a_warm_start_from_another_kind():
    """Sets that are invalid here are left out: the empty one, and several labels with a 1-D y."""
    X, Y, _ = twins.corpus(n_docs=12, n_words=12)
    rows, first = np.arange(12), Y.argmax(axis=1)
    settings = {"rank": None, "tol": 1e-6, "max_iter": 5000}
    wide = MML(similarity="cosine", **settings).fit(X, Y)

    dice = MML(**settings).fit(X, Y, warm=wide, rows=rows)
    single = MML(**settings).fit(X, first, warm=wide, rows=rows)

    assert all(other for _, other in stored_problem(dice, X, Y)[0].pairs)
    assert dice.objective_ == pytest.approx(MML(**settings).fit(X, Y).objective_, rel=1e-5)
    assert single.objective_ == pytest.approx(MML(**settings).fit(X, first).objective_, rel=1e-5)


@pytest.mark.parametrize("n_sizes", [2, 3, 9])
def test_weights_are_rotated_in_place(n_sizes):
    """Rotation gives the bits of the sum over axes, in place unless axes are dropped."""
    random = np.random.RandomState(0)
    vectors = random.normal(size=(n_sizes, 3))
    weights = random.normal(size=(2500, 3, 4)).astype(np.float32)
    before = weights.copy()

    turned, turned_weights = rotate(vectors, weights)

    axes = np.linalg.svd(vectors, full_matrices=False)[2]
    expected = np.zeros((2500, len(axes), 4), np.float32)
    for k, axis in enumerate(axes.astype(np.float32)):
        for q, factor in enumerate(axis):
            expected[:, k] += factor * before[:, q]
    assert turned_weights.tobytes() == expected.tobytes()
    assert np.shares_memory(turned_weights, weights) == (n_sizes > 2)
    np.testing.assert_allclose(turned @ axes, vectors)
