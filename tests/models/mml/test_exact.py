"""The exact solver of maximal margin labeling: dense problems, and the estimator."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_predict
from sklearn.utils.estimator_checks import parametrize_with_checks

from polytopic import MML, Labeler, load
from polytopic.models.mml import label_sets
from polytopic.models.mml.exact import maximize
from tests.twins import mml as twins
from tests.twins.mml import Problem, own_sets

COSTS = [0.1, 1.0, 30.0]
LISTED = label_sets(range(4), empty=True)


def random_similarity(seed=0):
    """Return a positive definite matrix over all sets of four labels, the empty one first."""
    points = np.random.default_rng(seed).normal(size=(len(LISTED), 20))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points @ points.T


def by_matrix(matrix):
    """Return a matrix as a function of two label sets."""
    return lambda a, b: matrix[LISTED.index(a), LISTED.index(b)]


SIMILARITIES = {
    "dice": ("dice", "dice"),
    "cosine": ("cosine", "cosine"),
    "identity": ("identity", "identity"),
    "random": (random_similarity(), by_matrix(random_similarity())),
    "lengths": (2.5 * random_similarity(1), by_matrix(2.5 * random_similarity(1))),
}
KERNELS = {
    "linear": ("linear", twins.cosine_of_rows),
    "gaussian": (lambda X, Z: rbf_kernel(X, Z, gamma=0.5), twins.gaussian),
}


@parametrize_with_checks([MML(solver="exact", labels="neighbours", similarity="cosine")])
def test_scikit_learn_checks(estimator, check):
    """It passes scikit-learn's own checks."""
    check(estimator)


@pytest.mark.long
@parametrize_with_checks([MML(solver="exact")])
def test_scikit_learn_checks_over_all_label_sets(estimator, check):
    """It passes them over all label sets, too, of which there are many dual variables."""
    check(estimator)


def set_scores(model, X, sets):
    """Return the scores of label sets, by what a model lists."""
    ranked = model.predict_sets(X, len(sets))
    scores = np.full((len(X), len(sets)), np.nan)
    for row, listed, values in zip(scores, ranked.sets, ranked.scores, strict=True):
        for labels, value in zip(listed, values, strict=False):
            row[sets.index(frozenset(labels))] = value
    return scores


# The solution


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", SIMILARITIES)
@pytest.mark.parametrize("labels", ["all", "neighbours"])
def test_it_solves_the_dense_problem(labels, name, kernel):
    """Objective and scores are those of the problem (7) and of Eq. (8), in each entry."""
    X, Y, X_new = twins.corpus(n_docs=5, seed=1)
    similarity, function = SIMILARITIES[name]
    given, of_rows = KERNELS[kernel]
    settings = {"C": 1.0, "kernel": of_rows}
    if labels == "all":
        problem = Problem.over_all(X, Y, function, "exact", **settings)
    else:
        problem = Problem.over_neighbours(X, Y, function, **settings)
    alpha = problem.solve_generally()

    model = MML(solver="exact", labels=labels, similarity=similarity, kernel=given).fit(X, Y)

    assert model.objective_ == pytest.approx(problem.objective(alpha), rel=1e-6)
    assert 0 <= model.dual_gap_ <= 1e-9 * model.objective_
    sets = twins.label_sets(4)
    expected = problem.scores(alpha, X_new, sets)
    np.testing.assert_allclose(set_scores(model, X_new, sets), expected, atol=1e-6)
    answers = np.flatnonzero(np.diff(np.sort(expected, axis=1)[:, -2:]).ravel() > 1e-3)
    assert [own_sets(model.predict(X_new))[k] for k in answers] == [
        sets[expected[k].argmax()] for k in answers
    ]


@pytest.mark.parametrize("C", COSTS)
@pytest.mark.parametrize("name", ["dice", "cosine", "random"])
def test_it_solves_larger_problems(name, C):
    """The gap is as small as that of accelerated ascent."""
    X, Y, X_new = twins.corpus(n_docs=8, seed=2)
    similarity, function = SIMILARITIES[name]
    problem = Problem.over_all(X, Y, function, "exact", C)
    alpha = problem.solve()

    model = MML(C, solver="exact", similarity=similarity).fit(X, Y)

    assert model.objective_ == pytest.approx(problem.objective(alpha), rel=1e-8)
    sets = twins.label_sets(4)
    np.testing.assert_allclose(
        set_scores(model, X_new, sets), problem.scores(alpha, X_new, sets), atol=1e-6
    )


@pytest.mark.parametrize("empty", ["neighbour", "answer", "both", "out"])
@pytest.mark.parametrize("similarity", ["dice", "cosine"])
def test_both_solvers_agree_on_neighbours(similarity, empty):
    """They agree in objective, margins and predictions, for each role of the empty set."""
    X, Y, X_new = twins.corpus(n_docs=12, seed=3)
    settings = {"similarity": similarity, "labels": "neighbours", "empty": empty}

    exact = MML(0.5, solver="exact", **settings).fit(X, Y)
    fast = MML(0.5, rank=None, tol=1e-9, max_iter=50_000, **settings).fit(X, Y)

    assert exact.objective_ == pytest.approx(fast.objective_, rel=1e-7)
    np.testing.assert_allclose(
        exact.decision_function(X_new), fast.decision_function(X_new), atol=1e-3
    )
    np.testing.assert_allclose(
        exact.predict_sets(X_new, 16).scores, fast.predict_sets(X_new, 16).scores, atol=1e-3
    )
    np.testing.assert_array_equal(exact.predict(X_new), fast.predict(X_new))


@pytest.mark.parametrize("similarity", ["dice", "cosine"])
def test_working_sets_are_below_it(similarity):
    """Both are equal if no slack is needed, so that no set excludes others."""
    X, Y = np.eye(4), np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1], [1, 1, 1]])
    tight = {"rank": None, "tol": 1e-8, "max_iter": 20_000, "goal": "exact"}

    for C in (0.2, 100.0):
        exact = MML(C, solver="exact", similarity=similarity).fit(X, Y)
        fast = MML(C, similarity=similarity, **tight).fit(X, Y)

        assert fast.objective_ <= exact.objective_ * (1 + 1e-7)
    assert fast.objective_ == pytest.approx(exact.objective_, rel=1e-6)


def test_a_function_a_matrix_and_a_name_agree():
    """Of label sets, and so do kernels; labels without documents have rows that are not used."""
    X, Y, X_new = twins.corpus(seed=4)
    wide = np.insert(Y, 1, 0, axis=1)
    sets = label_sets(range(5))
    matrix = [[twins.dice(a, b) for a in sets] for b in sets]
    named = MML(solver="exact").fit(X, wide)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    unit_new = X_new / np.linalg.norm(X_new, axis=1, keepdims=True)

    for model, train, test in [
        (MML(solver="exact", similarity=twins.dice), X, X_new),
        (MML(solver="exact", similarity=matrix), X, X_new),
        (MML(solver="exact", kernel=lambda A, B: A @ B.T), unit, unit_new),
        (MML(solver="exact", kernel="precomputed"), unit @ unit.T, unit_new @ unit.T),
    ]:
        model.fit(train, wide)

        assert model.objective_ == pytest.approx(named.objective_, rel=1e-9)
        np.testing.assert_allclose(
            model.decision_function(test), named.decision_function(X_new), atol=1e-5
        )
        assert np.isneginf(model.decision_function(test)[:, 1]).all()


def test_functions_get_names_of_labels():
    """Functions of label sets get the names in ``classes_``."""
    X, Y, _ = twins.corpus(n_labels=2)
    names = np.array(["art", "film"])
    seen = set()

    def similarity(a, b):
        seen.update(a | b)
        return twins.dice(a, b)

    MML(solver="exact", similarity=similarity).fit(X, [names[y > 0].tolist() for y in Y])

    assert seen == {"art", "film"}


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("rank", [1, 3, 12])
def test_maximize_ends_at_the_optimum(rank, C):
    """Slopes are zero within the limits and point outwards at them, also for a singular matrix."""
    A = np.random.default_rng(rank).normal(size=(12, rank))
    Q = A @ A.T

    alpha, objectives, gap = maximize(Q, C, 100)

    slope = 1 - Q @ alpha
    scale = 1e-5 * C
    assert gap <= 1e-9 * objectives[-1]
    assert (slope[alpha > scale] > -1e-5).all()
    assert (slope[alpha < C - scale] < 1e-5).all()
    assert objectives[-1] == pytest.approx(alpha.sum() - alpha @ Q @ alpha / 2)


def test_too_few_steps_warn():
    """Too few steps give a warning, as too few passes do."""
    X, Y, _ = twins.corpus()

    with pytest.warns(ConvergenceWarning, match="max_iter == 2 passes") as caught:
        model = MML(solver="exact", max_iter=2).fit(X, Y)

    assert caught[0].filename == __file__
    assert model.n_iter_ == len(model.objectives_) == 2


# The estimator


@pytest.fixture
def fitted():
    """Return a model, and more documents, the last without words."""
    X, Y, X_new = twins.corpus(seed=5)
    return MML(solver="exact").fit(X, Y), np.vstack([X_new, np.zeros((1, X.shape[1]))])


def test_methods_agree_with_the_list_of_sets(fitted):
    """Margins, leads, sets with a label and fewer labels are those of brute force."""
    model, X = fitted
    X = X[:-1]
    sets = twins.label_sets(4)
    scores = set_scores(model, X, sets)
    falling = -np.sort(-scores, axis=1)

    np.testing.assert_allclose(model.lead(X), falling[:, 0] - falling[:, 1])
    assert own_sets(model.predict(X)) == [sets[k] for k in scores.argmax(axis=1)]
    for label in range(4):
        has = np.array([label in labels for labels in sets])
        margin = scores[:, has].max(axis=1) - scores[:, ~has].max(axis=1)
        np.testing.assert_allclose(model.decision_function(X)[:, label], margin)
        with_label = own_sets(model.best_with(X, label).toarray())
        assert with_label == [sets[k] for k in np.where(has, scores, -np.inf).argmax(axis=1)]
    few = model.restrict_to(np.array([True, False, True, True]))
    inside = np.array([1 not in labels for labels in sets])
    best = np.where(inside, scores, -np.inf)
    assert own_sets(few.predict(X)) == [sets[k] for k in best.argmax(axis=1)]
    assert np.isneginf(few.decision_function(X)[:, 1]).all()


def test_documents_without_words_get_the_most_frequent_set(fitted):
    """They get the most frequent set, as with every model."""
    model, X = fitted

    assert np.flatnonzero(model.predict(X)[-1]).tolist() == model.fallback.tolist()
    assert model.predict_sets(X).sets[-1][0] == tuple(model.fallback.tolist())


def test_words_add_up_to_the_score(fitted):
    """Shared equally by the labels of a set; a label's top words are those of the label alone."""
    model, X = fitted
    x, y = sparse.csr_matrix(X[:1]), np.array([[1, 0, 1, 0]])
    sets = twins.label_sets(4)
    scores = set_scores(model, X[:1], sets)[0]

    parts = model.explain_words(x, y)

    assert x.data @ parts.word_scores == pytest.approx(scores[sets.index(frozenset([0, 2]))])
    np.testing.assert_allclose(parts.by_label[:, 0], parts.by_label[:, 1])
    words, weights = model.top_words(1, 2)
    alone = set_scores(model, np.eye(X.shape[1]), sets)[:, sets.index(frozenset([1]))]
    assert words.tolist() == np.argsort(-alone)[:2].tolist()
    np.testing.assert_allclose(weights, alone[words])
    assert np.unique(model.word_labels(X[:2]).doc).tolist() == [0, 1]


@pytest.mark.parametrize("empty", [None, "answer"])
@pytest.mark.parametrize("similarity", ["dice", "cosine", "random"])
def test_arrays_round_trip(similarity, empty):
    """A model from arrays, or from a pickle, gives the same results, bit for bit."""
    X, Y, X_new = twins.corpus(seed=6)
    settings = {"similarity": SIMILARITIES[similarity][0], "empty": empty, "solver": "exact"}
    model = MML(**settings).fit(X, Y)

    loaded = MML(**settings).from_arrays(
        model.to_arrays(), labels=model.classes_.tolist(), n_words=X.shape[1], tuned=model.tuned_
    )
    for again in (loaded, pickle.loads(pickle.dumps(model))):  # noqa: S301
        assert again.decision_function(X_new).tobytes() == model.decision_function(X_new).tobytes()
        assert again.predict_sets(X_new).sets == model.predict_sets(X_new).sets


@pytest.mark.parametrize(
    "broken",
    [
        {"set_weights": np.zeros((6, 7))},
        {"set_weights": np.full((6, 15), np.nan)},
        {"set_weights": np.zeros((5, 15))},
        {"fallback": np.array([9])},
    ],
)
def test_broken_arrays_are_rejected(broken):
    """They are rejected before they are used."""
    X, Y, _ = twins.corpus()
    arrays = MML(solver="exact").fit(X, Y).to_arrays()

    with pytest.raises(ValueError, match="must"):
        MML(solver="exact").from_arrays({**arrays, **broken}, labels=list("abcd"), n_words=6)


TEXTS = ["a goal in the match", "the match", "a film of a goal", "the film", "film and cinema"]
LABELS = [["sport"], ["sport"], ["film", "sport"], ["film"], ["film"]]


@pytest.mark.parametrize("similarity", ["cosine", "matrix"])
def test_files(tmp_path, similarity):
    """A labeler is saved and loaded with a matrix, too."""
    matrix = [[1, 0.2, 0.5], [0.2, 1, 0.5], [0.5, 0.5, 1]]
    given = np.array(matrix) if similarity == "matrix" else similarity
    labeler = Labeler(MML(solver="exact", similarity=given)).fit(TEXTS, LABELS)
    labeler.save(tmp_path / "exact.model")

    again = load(tmp_path / "exact.model")

    assert again.predict(TEXTS) == labeler.predict(TEXTS)
    assert again.model_.solver == "exact"


@pytest.mark.parametrize("wrong", [{"similarity": twins.dice}, {"kernel": rbf_kernel}])
def test_functions_are_not_in_files(tmp_path, wrong):
    """The error says what to use instead."""
    labeler = Labeler(MML(solver="exact", **wrong)).fit(TEXTS, LABELS)

    with pytest.raises(ValueError, match="cannot be stored in a file; use kernel='linear'"):
        labeler.save(tmp_path / "exact.model")


def test_cross_validation_of_a_precomputed_kernel():
    """scikit-learn selects rows and columns."""
    X, Y, _ = twins.corpus(n_docs=12)
    model = MML(solver="exact", kernel="precomputed")

    by_kernel = cross_val_predict(model, rbf_kernel(X), Y, cv=3)

    by_rows = cross_val_predict(MML(solver="exact", kernel=rbf_kernel), X, Y, cv=3)
    np.testing.assert_array_equal(by_kernel, by_rows)


def test_unlabelled_documents_with_a_precomputed_kernel():
    """Rows without labels keep their columns in prediction."""
    X, Y, X_new = twins.corpus(n_docs=8)
    Y[2] = 0
    rest = np.arange(8) != 2

    model = MML(solver="exact", kernel="precomputed").fit(rbf_kernel(X), Y)

    few = MML(solver="exact", kernel=rbf_kernel).fit(X[rest], Y[rest])
    np.testing.assert_allclose(
        model.decision_function(rbf_kernel(X_new, X)), few.decision_function(X_new), atol=1e-6
    )


@pytest.mark.parametrize("labels", ["all", "neighbours"])
def test_one_label_per_document(labels):
    """With a 1-D y, predictions are 1-D, and there may be more than ten labels."""
    X = np.eye(36)[:, :12] + np.eye(36)[:, 12:24] + np.eye(36)[:, 24:]
    y = np.arange(36) % 12

    model = MML(solver="exact", labels=labels).fit(X, y)

    assert model.predict(X).tolist() == y.tolist()
    assert model.decision_function(X).shape == (36, 12)


def test_tuning():
    """C is chosen and probabilities are calibrated as with the other solver."""
    X, Y, X_new = twins.corpus(n_docs=40)

    model = MML("auto", solver="exact", calibrate=True).fit(X, Y)

    assert set(model.tuned_) == {"C", "set_curve", "label_curve"}
    assert ((model.set_probability(X_new) >= 0) & (model.set_probability(X_new) <= 1)).all()


# Invalid input


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"solver": "qp"}, "solver == 'qp', must be one of fast, exact"),
        ({"empty": "yes"}, "empty == 'yes', must be one of neighbour, answer, both, out"),
        ({"kernel": "rbf"}, "kernel == 'rbf', must be one of linear, precomputed"),
        ({"kernel": "precomputed"}, "kernel == 'precomputed' requires solver='exact'"),
        ({"kernel": rbf_kernel}, "requires solver='exact'; solver == 'fast' has linear"),
        ({"similarity": "identity"}, "similarity == 'identity' requires solver='exact'"),
        ({"similarity": twins.dice}, "requires solver='exact'; solver == 'fast' has dice and cos"),
        ({"similarity": np.eye(3)}, "requires solver='exact'"),
        ({"similarity": "x", "solver": "exact"}, "must be one of dice, cosine, identity"),
        ({"similarity": np.eye(4), "solver": "exact"}, r"shape \(4, 4\), must .* the 15 sets of 4"),
        ({"similarity": -np.eye(15), "solver": "exact"}, "similarity is not positive definite"),
        ({"similarity": np.ones((15, 15)), "solver": "exact"}, "must distinguish them"),
        ({"similarity": np.triu(np.ones((15, 15))), "solver": "exact"}, "is not symmetric"),
        ({"similarity": np.full((15, 15), np.nan), "solver": "exact"}, "not finite"),
        (
            {"similarity": np.eye(15), "solver": "exact", "empty": "answer"},
            "has 15 rows, must have 16",
        ),
        (
            {"kernel": lambda X, Z: -rbf_kernel(X, Z), "solver": "exact"},
            "kernel is not positive definite",
        ),
        ({"kernel": lambda X, Z: X, "solver": "exact"}, r"shape \(5, 6\) for 5 and 5 documents"),
        ({"kernel": "precomputed", "solver": "exact"}, "must be square"),
        (
            {"kernel": "precomputed", "solver": "exact", "C": "auto"},
            "has no documents to tune on; give C as a number",
        ),
    ],
)
def test_wrong_parameters(wrong, sentence):
    """The error says in one sentence what is wrong."""
    X, Y, _ = twins.corpus(n_docs=5)

    with pytest.raises(ValueError, match=sentence):
        MML(**wrong).fit(X, Y)


def test_problems_that_are_too_large():
    """The error says how large the problem is, and what is possible."""
    X, Y, _ = twins.corpus(n_docs=300)

    with pytest.raises(ValueError, match="300 documents and 14 label sets, 4,200 in all"):
        MML(solver="exact").fit(X, Y)
    with pytest.raises(ValueError, match=r"11 labels, must be at most 1,024 sets \(10 labels\)"):
        MML(solver="exact").fit(np.eye(11), np.eye(11, dtype=int))
    assert MML(solver="exact", labels="neighbours").fit(X[:99], Y[:99]).dual_gap_ < 1e-6


def test_words_without_weights():
    """Only with a linear kernel do words have weights."""
    X, Y, _ = twins.corpus()
    model = MML(solver="exact", kernel=rbf_kernel).fit(X, Y)

    with pytest.raises(ValueError, match="words have weights with kernel == 'linear' only"):
        model.top_words(1, 2)


def test_no_warm_start():
    """The exact solver always starts cold."""
    X, Y, _ = twins.corpus()
    model = MML(solver="exact").fit(X, Y)

    assert not model.can_continue
    with pytest.raises(ValueError, match="warm requires solver == 'fast'"):
        MML().fit(X, Y, warm=model, rows=np.arange(len(X)))
