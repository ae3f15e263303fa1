"""The count models as estimators: scikit-learn's checks, laws, unusual input."""

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from polytopic import PDMM, PMM1, PMM2, NaiveBayes
from polytopic.decision import LabelDecision, Threshold, TopK, WorldModel
from tests.strategies import matrices
from tests.twins import mixture as slow

MODELS = [
    NaiveBayes(),
    PMM1(temperature=2.0),
    PMM1(temperature=2.0, estimate="nb"),
    PMM2(temperature=2.0),
    PDMM(temperature=2.0, decode="map"),
]
DECISIONS = [
    LabelDecision(NaiveBayes(), WorldModel()),
    LabelDecision(PMM1(), Threshold(0.0)),
    LabelDecision(NaiveBayes(), TopK(2)),
]
BYTES = ("_theta", "_log_theta", "world_log_proba_", "_fallback", "label_docs_")


@parametrize_with_checks(
    [
        *MODELS,
        PMM1(),
        PMM1(estimate="nb"),
        PMM2(),
        PDMM(),
        PDMM(likelihood="paper", decode="greedy"),
        *DECISIONS,
    ],
    expected_failed_checks=lambda estimator: {
        "check_decision_proba_consistency": "feeds negative numbers, and word counts have none",
    },
)
def test_scikit_learn_checks(estimator, check):
    """Every estimator passes scikit-learn's own checks."""
    check(estimator)


def same_parameters(one, other):
    """Return whether two models are equal bit for bit."""
    return (
        one.classes_.tolist() == other.classes_.tolist()
        and one.counts_ == other.counts_
        and all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in BYTES)
        and (not hasattr(one, "bias_") or one.bias_.tobytes() == other.bias_.tobytes())
    )


def corpus(n_docs=60, seed=0):
    """Return documents over five words and three named labels, some without words."""
    rng = np.random.default_rng(seed)
    theta = np.array([[8, 1, 1, 1, 2], [1, 8, 1, 1, 2], [1, 1, 4, 4, 2]]) / 13
    names = np.array(["film", "science", "sport"])
    sets = [rng.choice(3, size=rng.integers(1, 3), replace=False) for _ in range(n_docs)]
    X = np.array([rng.multinomial(rng.integers(0, 15), theta[s].mean(axis=0)) for s in sets])
    return X, [names[s].tolist() for s in sets]


@pytest.mark.parametrize("model", MODELS)
@given(a=matrices(labelled=True), b=matrices())
def test_forgetting_is_exact(model, a, b):
    """After learning and forgetting documents, every bit is as before."""
    (X, Y), (X_more, Y_more) = a, b
    alone = clone(model).fit(X, Y)
    both = clone(model).fit(np.vstack([X, X_more]), np.vstack([Y, Y_more]))

    both.forget(X_more, Y_more)

    assert same_parameters(both, alone)


@pytest.mark.parametrize("model", MODELS)
@given(a=matrices(labelled=True), b=matrices(labelled=True))
def test_forgetting_named_labels_removes_them(model, a, b):
    """A label whose last document is forgotten disappears without a trace."""
    names = np.array(["a", "b", "c", "d"])
    (X, Y), (X_more, Y_more) = a, b
    Y = [names[y > 0].tolist() for y in Y]
    Y_more = [[*names[y > 0].tolist(), "new"] for y in Y_more]
    alone = clone(model).fit(X, Y)
    both = clone(model).fit(X, Y).partial_fit(X_more, Y_more)
    assert "new" in both.classes_

    both.forget(X_more, Y_more)

    assert same_parameters(both, alone)


@pytest.mark.parametrize("model", MODELS)
@given(documents=matrices(min_docs=3, labelled=True), data=st.data())
def test_batches_and_order_do_not_matter(model, documents, data):
    """Learning in any order and batches gives the same bits."""
    X, Y = documents
    order = data.draw(st.permutations(range(len(X))))
    cut = data.draw(st.integers(1, len(X) - 1))
    whole = clone(model).fit(X, Y)

    parts = clone(model).partial_fit(X[order[:cut]], Y[order[:cut]])
    parts.partial_fit(X[order[cut:]], Y[order[cut:]])

    assert same_parameters(parts, whole)


@pytest.mark.parametrize("model", MODELS)
def test_threads_do_not_matter(model, monkeypatch):
    """One thread or four, small blocks: the same bits."""
    monkeypatch.setattr("polytopic.kernels.blocks.block_borders.__defaults__", (64, 1))
    X, Y = corpus(400)
    answers = []

    for threads in ("1", "4"):
        monkeypatch.setenv("POLYTOPIC_NUM_THREADS", threads)
        fitted = clone(model).fit(X, Y)
        answers.append(
            [
                fitted.word_proba_,
                fitted.predict(X),
                fitted.decision_function(X),
                fitted.predict_proba(X),
                fitted.word_labels(X).share,
            ]
        )

    for one, four in zip(*answers, strict=True):
        assert one.tobytes() == four.tobytes()


@pytest.mark.parametrize("model", MODELS)
def test_permuting_labels_and_words_permutes_the_answer(model):
    """Neither the names of labels nor the order of words matters."""
    X, names = corpus(80)
    Y = np.array([[n in row for n in ("film", "science", "sport")] for row in names]).astype(int)
    labels, words = np.array([2, 0, 1]), np.array([3, 1, 4, 0, 2])
    fitted = clone(model).fit(X, Y)

    permuted = clone(model).fit(X[:, words], Y[:, labels])

    known = X.any(axis=1)
    np.testing.assert_allclose(
        permuted.word_proba_, fitted.word_proba_[labels][:, words], atol=1e-9
    )
    np.testing.assert_allclose(
        permuted.decision_function(X[:, words]), fitted.decision_function(X)[:, labels], atol=1e-6
    )
    assert (permuted.predict(X[known][:, words]) == fitted.predict(X[known])[:, labels]).all()


@pytest.mark.parametrize("model", MODELS)
def test_forms_of_targets_agree(model):
    """Names, dense and sparse indicators give the same predictions, each in its own form."""
    X, names = corpus()
    classes = ["film", "science", "sport"]
    Y = np.array([[c in row for c in classes] for row in names]).astype(np.int32)

    by_name = clone(model).fit(X, names)
    dense = clone(model).fit(sparse.csr_matrix(X), Y)
    by_csr = clone(model).fit(X.tolist(), sparse.csr_matrix(Y))

    assert by_name.classes_.tolist() == classes
    assert dense.predict(X).dtype == np.int32
    assert sparse.issparse(by_csr.predict(X))
    np.testing.assert_array_equal(by_name.predict(X), dense.predict(X))
    np.testing.assert_array_equal(by_csr.predict(X).toarray(), dense.predict(X))


def test_naive_bayes_is_scikit_learns_on_one_label():
    """With one label per document, it is multinomial naive Bayes with equal priors."""
    X, names = corpus()
    y = [row[0] for row in names]
    twin = MultinomialNB(alpha=0.1, fit_prior=False).fit(X, y)

    model = NaiveBayes(smoothing=0.1).fit(X, y)

    known = X.any(axis=1)
    assert model.predict(X[known]).tolist() == twin.predict(X[known]).tolist()
    np.testing.assert_allclose(model.predict_proba(X), twin.predict_proba(X), rtol=1e-9)
    np.testing.assert_allclose(np.log(model.word_proba_), twin.feature_log_prob_)


def test_mixtures_are_naive_bayes_on_one_label():
    """If no document has two labels, mixtures are naive Bayes."""
    X, names = corpus()
    y = [row[0] for row in names]

    for model in (PMM1(smoothing=0.1), PMM2(smoothing=0.1), PDMM(smoothing=0.1)):
        np.testing.assert_allclose(
            model.fit(X, y).predict_proba(X),
            NaiveBayes(smoothing=0.1).fit(X, y).predict_proba(X),
        )


def test_pmm1_labels_a_mixed_text():
    """A text with the words of two labels gets both, with their shares."""
    X = [[9, 1, 0, 0], [8, 0, 0, 1], [0, 1, 9, 0], [1, 0, 8, 8], [5, 0, 5, 5]]
    model = PMM1(smoothing=0.1).fit(X, [["a"], ["a"], ["b"], ["b"], ["a", "b"]])

    assert model.predict([[6, 0, 2, 1]]).tolist() == [[1, 1]]
    shares = model.mixture([[6, 0, 2, 1], [0, 0, 0, 0]], [["a", "b"], ["a", "b"]])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert shares[0, 0] == pytest.approx(6 / 9, abs=0.05)
    assert shares[1].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("model", [*MODELS, LabelDecision(NaiveBayes(), TopK(1))])
def test_documents_without_words_get_the_commonest_set(model):
    """They get the most frequent label set, not the most frequent label."""
    X = [[2, 1], [1, 2], [1, 1], [2, 0]]
    Y = [["a", "b"], ["a", "b"], ["a"], ["c"]]

    answer = model.fit(X, Y).predict([[0, 0], [3, 0]])

    assert answer[0].tolist() == [1, 1, 0]
    assert answer[1].any()


@pytest.mark.parametrize("model", MODELS)
def test_unlabelled_documents_are_ignored(model):
    """Unlabelled documents change nothing."""
    X, Y = corpus()
    alone = clone(model).fit(X, Y)

    more = clone(model).fit(np.vstack([X, X]), Y + [[]] * len(X))

    assert same_parameters(more, alone)


@pytest.mark.parametrize("model", MODELS)
def test_a_label_without_documents_is_never_predicted(model):
    """An empty column of an indicator is kept, with score -inf."""
    X, _ = corpus()
    Y = np.zeros((len(X), 3), dtype=int)
    Y[:, 0] = np.arange(len(X)) % 2
    Y[:, 2] = 1 - Y[:, 0]

    fitted = clone(model).set_params(smoothing=1e-3).fit(X, Y)

    assert not fitted.predict(X)[:, 1].any()
    assert (fitted.decision_function(X)[:, 1] == -np.inf).all()
    assert (fitted.predict_proba(X)[:, 1] == 0).all()


@pytest.mark.parametrize("model", MODELS)
def test_declared_classes_may_come_later(model):
    """Labels in ``classes`` have columns even before they have documents."""
    fitted = clone(model).partial_fit([[1, 2]], [["b"]], classes=["a", "b", "c"])
    assert fitted.predict([[1, 1]]).tolist() == [[0, 1, 0]]

    fitted.partial_fit([[5, 0]], [["a"]])

    assert fitted.classes_.tolist() == ["a", "b", "c"]
    assert fitted.predict([[9, 0]])[0, 0] == 1


@pytest.mark.parametrize("model", MODELS)
def test_weights_are_repetitions(model):
    """An integer weight stands for that many documents, also in forgetting."""
    X, Y = corpus(10)
    weight = np.arange(10) % 3
    repeated = np.repeat(np.arange(10), weight)

    weighted = clone(model).fit(X, Y, sample_weight=weight)

    plain = clone(model).fit(X[repeated], [Y[d] for d in repeated])
    assert same_parameters(weighted, plain)
    weighted.partial_fit(X, Y, sample_weight=np.full(10, 2))
    weighted.forget(X, Y, sample_weight=np.full(10, 2))
    assert same_parameters(weighted, plain)


def test_fractional_counts_cannot_be_forgotten():
    """A model of tf-idf weights works, and says why it cannot forget."""
    model = NaiveBayes().fit([[0.5, 1.5], [1.0, 0.2]], [["a"], ["b"]])

    assert not model.counts_.exact
    with pytest.raises(ValueError, match="not all integers"):
        model.forget([[0.5, 1.5]], [["a"]])


@pytest.mark.parametrize(
    ("X", "Y", "sentence"),
    [
        ([[1, -1]], [["a"]], "Negative values in data"),
        ([[1, np.nan]], [["a"]], "NaN"),
        ([[1, np.inf]], [["a"]], "infinity"),
        ([[1, 1]], [["a"], ["b"]], "X has 1 documents and Y has 2"),
        ([[1, 1]], [[]], "no labelled document"),
        ([[1, 1]], [[2, 1]], "values other than 0 and 1"),
        ([[1, 1]], None, "target y is None"),
    ],
)
@pytest.mark.parametrize("model", MODELS)
def test_bad_input_is_rejected(model, X, Y, sentence):
    """The error names the wrong argument."""
    with pytest.raises(ValueError, match=sentence):
        clone(model).fit(X, Y)


def test_bad_parameters_are_rejected():
    """The error names the parameter, with its value."""
    with pytest.raises(ValueError, match="smoothing == -1, must be > 0"):
        PMM1(smoothing=-1).fit([[1]], [["a"]])
    with pytest.raises(ValueError, match="smoothing == 1e-301, must be >= 1e-300"):
        PMM1(smoothing=1e-301).fit([[1]], [["a"]])
    with pytest.raises(ValueError, match="max_iter == 0, must be >= 1"):
        PMM1(max_iter=0).fit([[1]], [["a"]])


def test_forms_do_not_mix():
    """A model of names rejects indicators, and the number of labels must not change."""
    named = NaiveBayes().fit([[1, 2]], [["a"]])
    with pytest.raises(
        ValueError, match="has the form 'dense', but the model was fitted on 'names'"
    ):
        named.partial_fit([[1, 2]], [[1]])

    columns = NaiveBayes().fit([[1, 2]], [[1, 0]])
    with pytest.raises(ValueError, match="3 columns and the model has 2 labels"):
        columns.partial_fit([[1, 2]], [[1, 0, 0]])
    columns.partial_fit([[1, 2]], [[1, 0, 1]], classes=range(3))
    assert columns.predict([[1, 2]]).shape == (1, 3)


def test_forgetting_everything_is_rejected():
    """The last document cannot be forgotten, as a model without documents cannot predict."""
    model = PMM1().fit([[1, 2]], [["a"]])

    with pytest.raises(ValueError, match="nothing was forgotten"):
        model.forget([[1, 2]], [["a"]])
    assert model.counts_.n_docs == 1


@pytest.mark.parametrize("model", MODELS)
def test_in_a_pipeline_and_a_grid(model):
    """They work in scikit-learn's pipelines, searches and cross-validation."""
    X, names = corpus()
    Y = np.array([[n in row for n in ("film", "science", "sport")] for row in names]).astype(int)
    pipeline = make_pipeline(FunctionTransformer(np.sqrt), model)
    step = type(model).__name__.lower()

    search = GridSearchCV(pipeline, {f"{step}__smoothing": [0.1, 1.0]}, cv=3).fit(X, Y)

    assert search.best_params_[f"{step}__smoothing"] in (0.1, 1.0)
    assert cross_val_predict(model, X, Y, cv=3).shape == Y.shape


def test_log_likelihood_of_a_set():
    """One label has its score; of several labels, NB mixes documents and PMM1 words."""
    X, names = corpus()
    nb, pmm = NaiveBayes().fit(X, names), PMM1().fit(X, names)
    theta = nb.word_proba_
    x = X[1]

    one = nb.log_likelihood([x], [["film"]])[0]
    two = nb.log_likelihood([x], [["film", "sport"]])[0]

    scores = [x @ np.log(theta[0]), x @ np.log(theta[2])]
    assert one == pytest.approx(scores[0])
    assert two == pytest.approx(np.log(np.exp(scores).mean()))
    mean = pmm.word_proba_[[0, 2]].mean(axis=0)
    assert pmm.log_likelihood([x], [["film", "sport"]])[0] == pytest.approx(x @ np.log(mean))
    with pytest.raises(ValueError, match="label 'music' is not known"):
        pmm.log_likelihood([x], [["music"]])


def test_world_model_scores():
    """The general model is the distribution of all documents together."""
    X, names = corpus()
    model = NaiveBayes(smoothing=0.1).fit(X, names)

    words = X.sum(axis=0) + 0.1
    np.testing.assert_allclose(model.world_score(X), X @ np.log(words / words.sum()))


@pytest.mark.parametrize("model", [NaiveBayes(), PMM1(prior="uniform", decode="greedy")])
@pytest.mark.parametrize("scale", [1e-3, 0.7, 1e12, 1e37, 1e60])
def test_any_scale_of_counts(model, scale):
    """With fractions and huge counts, predictions are those of the plain search."""
    X, names = corpus(80)
    fitted = clone(model).fit(X, names)

    answers = fitted.predict(X * scale)

    for x, answer in zip(X * scale, answers, strict=True):
        if x.any():
            labels = slow.greedy_sets_of_pmm1(x, fitted.word_proba_, [True] * 3)
            expected = labels if isinstance(model, PMM1) else labels[:1]
            assert set(np.flatnonzero(answer)) == set(expected)


@pytest.mark.parametrize("smoothing", [1e-300, 1e-12, 1e6])
def test_any_smoothing(smoothing):
    """With extreme smoothing, scores are finite and predictions those of the plain search."""
    X, names = corpus(80)
    model = PMM1(smoothing=smoothing, prior="uniform", decode="greedy").fit(X, names)

    answers = model.predict(X)

    assert np.isfinite(model.decision_function(X)).all()
    for x, answer in zip(X, answers, strict=True):
        if x.any():
            expected = slow.greedy_sets_of_pmm1(x, model.word_proba_, [True] * 3)
            value = slow.log_likelihood(x, model.word_proba_, np.flatnonzero(answer))
            best = slow.log_likelihood(x, model.word_proba_, expected)
            assert value == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("model", [*MODELS, LabelDecision(NaiveBayes(), TopK(1))])
def test_names_can_be_scored_and_searched(model):
    """Label sets as sets of names work in scikit-learn's searches, by subset accuracy."""
    X, names = corpus()
    sets = [set(row) for row in names]

    search = GridSearchCV(model, {}, cv=3).fit(X, sets)

    assert 0 < search.best_score_ <= 1


@pytest.mark.parametrize("model", MODELS)
def test_a_rejected_call_changes_nothing(model):
    """After an invalid partial_fit, the model is as before, and a valid one works."""
    X, names = corpus()
    fitted = clone(model).fit(X, names)
    before = fitted.word_proba_.copy()

    for wrong in ([[1, 0]] * len(X), [["new"]] * len(X)):
        with pytest.raises(ValueError, match=r"always pass the same form|not in classes"):
            fitted.partial_fit(X, wrong, classes=["film"])

    assert (fitted.word_proba_ == before).all()
    assert fitted.partial_fit(X, names).counts_.n_docs == 2 * len(X)


@pytest.mark.parametrize("model", MODELS)
def test_assess(model):
    """`assess` gives the results of three calls in one pass, also for empty documents."""
    X, names = corpus()
    fitted = clone(model).fit(X, names)

    sets, margins, proba = fitted.assess(X)

    assert (sets.toarray() == fitted.predict(X)).all()
    np.testing.assert_array_equal(margins, fitted.decision_function(X))
    np.testing.assert_array_equal(proba, fitted.predict_proba(X))


def test_documents_without_labels_in_questions():
    """A document without labels has likelihood -inf; its words cannot be divided among labels."""
    X, names = corpus()
    model = PMM1().fit(X, names)

    assert model.log_likelihood(X[:2], [[], ["film"]])[0] == -np.inf
    assert np.isfinite(model.log_likelihood(X[:2], [[], ["film"]])[1])
    with pytest.raises(ValueError, match="document 0 has no label"):
        model.mixture(X[:2], [[], ["film"]])
    assert model.word_labels(X[:2], [[], []]).share.size == 0


def test_max_iter():
    """EM takes at most max_iter steps."""
    X, names = corpus()

    assert [PMM1(max_iter=n, tol=0).fit(X, names).n_iter_ for n in (1, 2, 3, 4, 7)] == [
        1,
        2,
        3,
        4,
        7,
    ]


def test_labels_keep_every_character():
    """A NUL at the end of a label is kept, which NumPy's strings would lose."""
    model = NaiveBayes().fit([[2, 0], [0, 2]], [["a"], ["a\0"]])

    assert model.classes_.tolist() == ["a", "a\0"]
    assert model.predict([[0, 3]]).tolist() == [[0, 1]]


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
def test_smoothing_must_be_a_number(value):
    """NaN and infinity are rejected by fit, not only noticed by predict."""
    with pytest.raises(ValueError, match=r"smoothing == .*, must be"):
        PMM1(smoothing=value).fit([[1, 2]], [["a"]])


def test_huge_counts_are_rejected():
    """Counts whose sums would overflow are rejected."""
    with pytest.raises(ValueError, match="word counts must be <= 1e"):
        PMM1().fit([[1e300, 2]], [["a"]])


@pytest.mark.compiled
def test_the_number_of_blas_threads_does_not_matter():
    """Parameters do not depend on BLAS, whose threads would change the last bits."""
    code = (
        "import hashlib, numpy as np\n"
        "from polytopic import PMM1\n"
        "rng = np.random.default_rng(0)\n"
        "X, Y = rng.poisson(0.3, (400, 6000)), rng.random((400, 12)) < 0.3\n"
        "m = PMM1(max_iter=12).fit(X, Y.astype(int))\n"
        "print(hashlib.sha256(m.word_proba_.tobytes()).hexdigest(), m.objective_)"
    )

    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads, "POLYTOPIC_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    }

    assert len(answers) == 1


@given(documents=matrices(min_docs=4, max_docs=10, labelled=True), data=st.data())
def test_permutations_by_hypothesis(documents, data):
    """Any permutation of labels and words permutes parameters and scores."""
    X, Y = documents
    labels = data.draw(st.permutations(range(Y.shape[1])))
    words = data.draw(st.permutations(range(X.shape[1])))

    one = PMM1(smoothing=0.5).fit(X, Y)
    other = PMM1(smoothing=0.5).fit(X[:, words], Y[:, labels])

    np.testing.assert_allclose(
        other.word_proba_, one.word_proba_[labels][:, words], rtol=1e-9, atol=1e-9
    )


@pytest.mark.compiled
@pytest.mark.parametrize("model", MODELS)
def test_memory_grows_with_the_labels_of_documents(model):
    """Predicting sparse label sets needs no dense array of documents × labels or × words."""
    n_docs, n_labels = 16_000, 600
    X = sparse.random(n_docs, 300, density=0.01, random_state=0, format="csr")
    X.data = np.ceil(3 * X.data)
    Y = sparse.csr_matrix(
        (np.ones(n_docs), (np.arange(n_docs), np.arange(n_docs) % n_labels)), (n_docs, n_labels)
    )
    fitted = clone(model).fit(X, Y)
    fitted.predict(X[:100])

    tracemalloc.start()
    answers = fitted.predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert answers.shape == (n_docs, n_labels)
    assert peak < n_docs * n_labels  # bytes: an eighth of one dense array of scores
