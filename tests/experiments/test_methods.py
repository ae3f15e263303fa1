"""Methods: baselines against slow twins, and all methods on the sample."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import check_grad
from sklearn.naive_bayes import MultinomialNB
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from polytopic.corpus import load_sample
from polytopic.experiments import Method, Prediction, Protocol, all_methods
from polytopic.experiments.baseline_models import (
    BinaryNaiveBayes,
    CosineNeighbours,
    CostSVM,
    HiddenLayerNetwork,
    McCallumMixture,
    MLkNN,
)
from polytopic.experiments.methods import (
    apply_threshold,
    best_threshold,
    threshold_or_best,
    tune_settings,
)
from polytopic.experiments.protocols import CountedCorpus, Part
from polytopic.experiments.runner import measure
from polytopic.metrics import macro_f1, samples_f1, subset_accuracy

METHODS = all_methods()
USUAL = [name for name, method in METHODS.items() if not method.missing]


def random_part(seed, n_docs=40, n_terms=25, n_labels=4):
    """Return random counts and labels."""
    rng = np.random.default_rng(seed)
    X = sparse.csr_matrix(rng.poisson(0.6, (n_docs, n_terms)).astype(float))
    Y = rng.random((n_docs, n_labels)) < 0.3
    Y[~Y.any(axis=1), 0] = True
    return X, Y.astype(float)


@pytest.fixture(scope="module")
def parts():
    """Return the training and test parts of the sample."""
    corpus = CountedCorpus.from_documents("sample", load_sample())
    (split,) = Protocol("random", train=200, test=60, repeats=1).splits(corpus)
    return corpus.parts(split.train, split.test)


@pytest.mark.compiled
@pytest.mark.parametrize("name", USUAL)
def test_every_method_learns_and_predicts(parts, name):
    """It is better than chance, and its metrics are complete."""
    train, test = parts
    method = METHODS[name]

    answer = method.fit(train, method.settings, 0)(test)
    metrics = measure(train, test, answer)

    assert answer.sets.shape == test.Y.shape
    assert metrics["metrics"]["samples_f1"] > 0.15  # at random: .09
    assert np.mean(metrics["documents"]["samples_f1"]) == pytest.approx(
        metrics["metrics"]["samples_f1"], abs=1e-4
    )
    assert sum(one["documents"] for one in metrics["by_size"]) == test.Y.shape[0]
    if answer.proba is not None:
        assert ((answer.proba >= 0) & (answer.proba <= 1)).all()
        assert sum(one["pairs"] for one in metrics["calibration"]) == answer.proba.size


@pytest.mark.parametrize(
    "name", ["svm", "knn", "nb-one-vs-rest", "nb-ueda-best", "svm-ueda-best", "network-ueda-best"]
)
def test_absent_labels_are_never_predicted(parts, name):
    """A label without training documents is not predicted, whatever its score."""
    train, test = parts
    Y = train.Y.tolil()
    Y[:, 3] = 0
    bare = type(train)(train.X, Y.tocsr(), train.texts)

    answer = METHODS[name].fit(bare, METHODS[name].settings, 0)(test)

    assert answer.sets[:, 3].nnz == 0


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_and_their_twin(seed):
    """The vote of the nearest documents, computed one by one."""
    X, Y = random_part(seed)
    new, _ = random_part(seed + 100, n_docs=7)

    proba = CosineNeighbours(k=5).fit(X, Y).proba(new)

    dense, queries = X.toarray(), new.toarray()
    for doc, query in enumerate(queries):
        lengths = np.linalg.norm(dense, axis=1) * (np.linalg.norm(query) or 1.0)
        similarity = dense @ query / np.where(lengths > 0, lengths, 1.0)
        near = np.argsort(-similarity, kind="stable")[:5]
        if np.partition(-similarity, 5)[4] == np.partition(-similarity, 5)[5]:
            continue  # a tie: which one is taken does not matter
        votes = similarity[near] @ Y[near] / similarity[near].sum()
        assert proba[doc] == pytest.approx(votes)


@pytest.mark.parametrize("seed", range(3))
def test_mlknn_and_its_twin(seed):
    """The posterior of Zhang and Zhou, label by label."""
    X, Y = random_part(seed)
    new, _ = random_part(seed + 100, n_docs=5)
    model = MLkNN(k=4).fit(X, Y)
    own = np.vstack([model.count_labels(near) for near, _ in model.neighbours(X, leave_out=True)])
    theirs = np.vstack([model.count_labels(near) for near, _ in model.neighbours(new)])

    proba = model.proba(new)

    for label in range(Y.shape[1]):
        has = Y[:, label] > 0
        prior = (1 + has.sum()) / (2 + has.size)
        for doc in range(5):
            c = theirs[doc, label]
            yes = (1 + (own[has, label] == c).sum()) / (5 + has.sum())
            no = (1 + (own[~has, label] == c).sum()) / (5 + (~has).sum())
            posterior = prior * yes / (prior * yes + (1 - prior) * no)
            assert proba[doc, label] == pytest.approx(posterior)


@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_mccallum_never_decreases(seed, common):
    """EM never decreases its objective."""
    X, Y = random_part(seed)

    model = McCallumMixture(max_iter=15, common=common).fit(X, Y)

    assert (np.diff(model.log_likelihood_) > -1e-8).all()


def test_mccallum_separates_topics():
    """A document with the words of two labels gets both."""
    X = sparse.csr_matrix(np.array([[5, 0, 0], [0, 5, 0], [4, 4, 0], [0, 0, 5]], dtype=float))
    Y = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=float)

    model = McCallumMixture(smoothing=0.1).fit(X, Y)

    assert model.predict(np.array([[6, 5, 0], [0, 0, 3]])).toarray().tolist() == [
        [1, 1, 0],
        [0, 0, 1],
    ]


@pytest.mark.parametrize("seed", range(3))
def test_mccallums_common_component_is_a_label_of_all_documents(seed):
    """It learns what a label learns that every document has, and is never predicted."""
    X, Y = random_part(seed)
    everywhere = np.column_stack([Y, np.ones(len(Y))])

    model = McCallumMixture(max_iter=5, common=True).fit(X, Y)

    label = McCallumMixture(max_iter=5).fit(X, everywhere)
    assert model.log_likelihood_ == pytest.approx(label.log_likelihood_)
    assert model.predict(X).shape == Y.shape


@pytest.mark.parametrize("seed", range(3))
def test_binary_naive_bayes_and_scikit_learn(seed):
    """The log odds of one MultinomialNB per label."""
    X, Y = random_part(seed)
    new, _ = random_part(seed + 100, n_docs=7)

    scores = BinaryNaiveBayes(smoothing=0.5).fit(X, Y).decision_function(new)

    for label in range(Y.shape[1]):
        log_proba = MultinomialNB(alpha=0.5).fit(X, Y[:, label]).predict_log_proba(new)
        assert scores[:, label] == pytest.approx(log_proba[:, 1] - log_proba[:, 0])


def test_log_odds_of_long_documents_do_not_underflow():
    """Labels of a document with thousands of words are still ranked."""
    X, Y = random_part(0)
    long = sparse.csr_matrix(2000 * random_part(100, n_docs=3)[0])

    odds = BinaryNaiveBayes().fit(X, Y).decision_function(long)

    assert np.abs(odds).max() > 745  # exp(-745) is the smallest number above 0
    assert np.isfinite(odds).all()


@pytest.mark.parametrize("pair", [(10, 1), (100, 5)])
def test_cost_svm_and_scikit_learn(pair):
    """With one pair of costs, the margins of one SVC per label; J multiplies positive costs."""
    X, Y = random_part(1)
    new, _ = random_part(101, n_docs=7)

    scores = CostSVM([pair]).fit(X, Y).decision_function(new)

    C, J = pair
    rows, queries = (normalize(part, norm="l1").toarray() for part in (X, new))
    for label in range(Y.shape[1]):
        model = SVC(C=C, kernel="linear", class_weight={1: J}).fit(rows, Y[:, label])
        assert scores[:, label] == pytest.approx(model.decision_function(queries), abs=1e-2)


def test_costs_are_chosen_on_held_out_documents():
    """Each label gets the pair with its best F1 on the held-out third, computed anew."""
    X, Y = random_part(2, n_docs=90)
    pairs = [(1, 1), (10, 5), (100, 1)]

    model = CostSVM(pairs, seed=4).fit(X, Y)

    rows = normalize(X, norm="l1").toarray()
    held, rest = np.split(np.random.default_rng(4).permutation(90), [30])
    for label, chosen in model.costs_.items():
        best_pairs = []
        for C, J in pairs:
            svm = SVC(C=C, kernel="linear", class_weight={1: J}).fit(rows[rest], Y[rest, label])
            predicted, true = svm.predict(rows[held]), Y[held, label]
            best_pairs.append(2 * (true * predicted).sum() / max(true.sum() + predicted.sum(), 1))
        assert best_pairs[pairs.index(chosen)] == pytest.approx(max(best_pairs))


def test_cost_svm_of_labels_that_none_or_all_have():
    """They need no SVM: one is never predicted, the other always."""
    X, Y = random_part(3)
    Y[:, 0], Y[:, 1] = 0, 1

    scores = CostSVM([(10, 1)]).fit(X, Y).decision_function(X)

    assert (scores[:, 0] < 0).all()
    assert (scores[:, 1] > 0).all()


def test_gradient_of_the_network():
    """The gradient of the loss agrees with differences of the loss."""
    X, Y = random_part(5, n_docs=8, n_terms=6)
    model = HiddenLayerNetwork(decay=0.1, rows="counts", units=3, steps=1).fit(X, Y)
    n_parameters = 6 * 3 + 3 + 3 * 4 + 4
    flat = np.random.default_rng(0).normal(size=n_parameters)

    error = check_grad(
        lambda point: model.loss_and_gradient(point, X, X.T.tocsr(), Y)[0],
        lambda point: model.loss_and_gradient(point, X, X.T.tocsr(), Y)[1],
        flat,
    )

    assert error < 1e-5


@pytest.mark.parametrize("rows", ["unit", "counts"])
def test_network_learns_what_no_linear_model_can(rows):
    """Exclusive or of two words."""
    X = sparse.csr_matrix(np.array([[3, 0, 1], [0, 3, 1], [3, 3, 1], [0, 0, 1]] * 5, dtype=float))
    Y = np.array([[1], [1], [0], [0]] * 5)

    proba = HiddenLayerNetwork(decay=1e-5, rows=rows, steps=200).fit(X, Y).proba(X)

    assert ((proba > 0.5) == Y).all()


@pytest.mark.parametrize("name", ["nb", "svm", "knn", "network"])
def test_both_readings_of_the_papers_baselines(parts, name):
    """They differ in documents where no label passes; there, the second predicts the best one."""
    train, test = parts
    plain, best = (
        METHODS[key].fit(train, METHODS[key].settings, 0)(test)
        for key in (f"{name}-ueda", f"{name}-ueda-best")
    )

    empty = plain.sets.sum(axis=1).A1 == 0

    assert plain.scores == pytest.approx(best.scores)
    assert (plain.sets[~empty] != best.sets[~empty]).nnz == 0
    assert (best.sets[empty].sum(axis=1).A1 == 1).all()
    assert (best.scores[empty].argmax(axis=1) == best.sets[empty].argmax(axis=1).A1).all()


def test_labels_above_a_threshold():
    """Labels above the threshold, and the best one if there is none, if requested."""
    scores = np.array([[0.6, 0.2], [0.1, 0.3]])

    assert apply_threshold(scores, 0.5, best_if_none=True).toarray().tolist() == [[1, 0], [0, 1]]
    assert apply_threshold(scores, 0.5, best_if_none=False).toarray().tolist() == [[1, 0], [0, 0]]


def test_metrics_by_document_and_by_group():
    """The mean over documents is the metric; groups agree with the metric of their rows."""
    rng = np.random.default_rng(0)
    Y, sets = (sparse.csr_matrix(rng.random((30, 5)) < 0.4, dtype=float) for _ in range(2))
    part = Part(sparse.csr_matrix((30, 1)), Y, [""] * 30)

    metrics = measure(part, part, Prediction(sets))

    true, predicted = Y.toarray() > 0, sets.toarray() > 0
    assert np.mean(metrics["documents"]["samples_f1"]) == pytest.approx(
        samples_f1(Y, sets), abs=1e-5
    )
    assert np.mean(metrics["documents"]["subset_accuracy"]) == subset_accuracy(Y, sets)
    for group in metrics["by_size"]:
        own = true.sum(axis=1) == group["size"]
        assert group["documents"] == own.sum()
        assert group["f1"] == pytest.approx(samples_f1(true[own], predicted[own]))
    n_docs = true.sum(axis=0)
    for group, ends in zip(metrics["by_frequency"], [(5, 20)], strict=True):
        own = (n_docs >= ends[0]) & (n_docs < ends[1])
        assert (group["from"], group["labels"]) == (ends[0], own.sum())
        assert group["f1"] == pytest.approx(macro_f1(true[:, own], predicted[:, own]))


def test_settings_are_chosen(parts):
    """The best of the grid on held-out documents; the choice is deterministic."""
    train, _ = parts
    method = METHODS["svm-threshold"]

    settings = tune_settings(method, train, 0, None)

    assert settings == tune_settings(method, train, 0, None)
    assert settings["threshold"] < 0
    assert set(settings) == {"C", "class_weight", "threshold"}


def test_thresholds_need_no_fits(parts):
    """There are as many fits as other settings, however many thresholds are tried."""
    train, test = parts
    fits = []

    def fit(rest, settings, seed):
        fits.append(settings["k"])
        scores = rest.Y.mean(axis=0).A1 + np.zeros(test.Y.shape)
        return lambda part: Prediction(
            threshold_or_best(scores[: part.Y.shape[0]], 0.5), scores[: part.Y.shape[0]]
        )

    method = Method(
        "m", "M", fit, {"k": 1, "threshold": 0.5}, {"k": (1, 2)}, decide=threshold_or_best
    )
    tune_settings(method, train, 0, None)

    assert fits == [1] * 4 + [2] * 4  # each quarter in its turn, as documents are few


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_best_threshold(scale):
    """It is nearly the best of all thresholds, for scores on any scale."""
    rng = np.random.default_rng(3)
    Y = rng.random((80, 12)) < 0.2
    scores = scale * (Y + rng.normal(size=Y.shape))

    value, threshold = best_threshold(scores, Y, threshold_or_best)

    all_of_them = [samples_f1(Y, threshold_or_best(scores, one)) for one in np.unique(scores)]
    assert value == samples_f1(Y, threshold_or_best(scores, threshold))
    assert value > max(all_of_them) - 0.01


def test_optuna_searches(parts):
    """The requested number of settings is tried, within the limits."""
    pytest.importorskip("optuna", reason="optuna is not installed")
    train, _ = parts

    settings = tune_settings(METHODS["knn"], train, 0, 4)

    assert 5 <= settings["k"] <= 30
