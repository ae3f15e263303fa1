"""Quality on real corpora, with the papers' settings."""

from collections import Counter

import numpy as np
import pytest
from sklearn.preprocessing import MultiLabelBinarizer

from polytopic import MML, PDMM, PMM1, PMM2, CoL, Labeler, NaiveBayes
from polytopic.corpus import read_documents
from polytopic.decision import LabelDecision, WorldModel, tune_decision
from polytopic.metrics import samples_f1, subset_accuracy
from polytopic.models.col.label_prior import LabelPrior, distinct_sets, fit_label_prior
from polytopic.text import Analyzer, TermWeights, TextCounts

pytestmark = pytest.mark.corpus

PAPERS = {"prior": "uniform", "decode": "greedy"}
ENDS = slice(10), slice(-10, None)  # as lists of words
# F of Ueda & Saito, Table 1 (PMM1); F and subset accuracy of Kazawa et al., Table 4 (PM)
YAHOO = {
    "arts": (0.506, 0.50, 0.21),
    "business": (0.755, 0.75, 0.48),
    "education": (0.513, 0.51, 0.19),
    "health": (0.662, 0.66, 0.34),
    "reference": (0.611, 0.63, 0.39),
    "science": (0.514, 0.52, 0.22),
}
# F of Ueda & Saito, Table 1 (PMM2)
YAHOO_PMM2 = {
    "arts": 0.486,
    "business": 0.721,
    "education": 0.483,
    "health": 0.651,
    "reference": 0.601,
    "science": 0.499,
}


@pytest.fixture(scope="module")
def reuters(data):
    """Return counts and indicators of both parts of Reuters."""
    train = list(read_documents(data("reuters21578"), split="train"))
    test = list(read_documents(data("reuters21578"), split="test"))
    counts, labels = TextCounts("en"), MultiLabelBinarizer()
    return (
        counts.fit_transform([d.text for d in train]),
        labels.fit_transform([d.labels for d in train]),
        counts.transform([d.text for d in test]),
        labels.transform([d.labels for d in test]),
    )


def test_naive_bayes_with_the_world_model_on_reuters(reuters):
    """With the rule, samples F1 is at least .85."""
    X, Y, X_test, Y_test = reuters

    one = samples_f1(Y_test, NaiveBayes().fit(X, Y).predict(X_test))
    several = samples_f1(
        Y_test, LabelDecision(NaiveBayes(), WorldModel()).fit(X, Y).predict(X_test)
    )

    assert several >= 0.85
    assert several > one


def test_naive_bayes_with_a_tuned_rule_on_reuters(reuters):
    """With rule and smoothing tuned on training documents, samples F1 is at least .86."""
    X, Y, X_test, Y_test = reuters

    models = [NaiveBayes(smoothing=smoothing) for smoothing in (0.1, 0.3, 1.0)]
    tuned = [tune_decision(model, X, Y) for model in models]
    best = int(np.argmax([surface.best_score for surface in tuned]))
    model = LabelDecision(models[best], tuned[best].best_rule).fit(X, Y)

    assert samples_f1(Y_test, model.predict(X_test)) >= 0.86


def test_pmm1_on_reuters(reuters):
    """As in the paper: samples F1 of .82 at least."""
    X, Y, X_test, Y_test = reuters

    answers = PMM1(**PAPERS).fit(X, Y).predict(X_test)

    assert samples_f1(Y_test, answers) >= 0.82


@pytest.mark.parametrize(
    ("model", "f", "exact"),
    [
        (PMM1(decode="f"), 0.865, 0.74),
        (PMM1(decode="map"), 0.86, 0.75),
        (PMM2(decode="f"), 0.86, 0.74),
        (PMM2(**PAPERS), 0.81, 0.61),
        (PDMM(**PAPERS), 0.815, 0.6),
        (PDMM(), 0.85, 0.74),
    ],
)
def test_the_posterior_on_reuters(reuters, model, f, exact):
    """A prior of label sets and a tuned temperature raise F and subset accuracy."""
    X, Y, X_test, Y_test = reuters

    answers = model.fit(X, Y).predict(X_test)

    assert samples_f1(Y_test, answers) >= f
    assert subset_accuracy(Y_test, answers) >= exact


@pytest.mark.parametrize(
    ("model", "f", "exact"),
    [
        (MML(), 0.918, 0.0),
        (MML(goal="exact"), 0.0, 0.85),
        (MML(labels="neighbours"), 0.91, 0.0),
    ],
)
def test_maximal_margin_labeling_on_reuters(reuters, model, f, exact):
    """On ltc weights: samples F1 and subset accuracy as the goal says."""
    X, Y, X_test, Y_test = reuters
    weights = TermWeights("ltc").fit(X)

    answers = model.fit(weights.transform(X), Y).predict(weights.transform(X_test))

    assert samples_f1(Y_test, answers) >= f
    assert subset_accuracy(Y_test, answers) >= exact
    assert answers.any(axis=1).all()


def test_a_proof_for_every_document_of_reuters(reuters):
    """Branch and bound ends for nearly all documents, and makes no prediction worse."""
    X, Y, X_test, _ = reuters
    model = PMM1(decode="map", search="exact").fit(X, Y)

    proven = model.predict_sets(X_test[:300], n_best=1)

    answers, candidates = (
        model.log_joint(X_test[:300], m.predict(X_test[:300]))
        for m in (model, PMM1(decode="map").fit(X, Y))
    )
    assert proven.optimal.mean() >= 0.95
    assert (answers >= candidates - 1e-9).all()


def test_forgetting_half_of_reuters(reuters):
    """Forgetting is exact on a real corpus, too."""
    X, Y, _, _ = reuters
    half = X.shape[0] // 2
    alone = PMM1().fit(X[:half], Y[:half])

    both = PMM1().fit(X, Y).forget(X[half:], Y[half:])

    assert both.word_proba_.tobytes() == alone.word_proba_.tobytes()
    assert both.counts_ == alone.counts_


def yahoo(data, name, n_splits, model=PMM1):
    """Return mean samples F1 and subset accuracy of a model as in its paper over random splits."""
    documents = list(read_documents(data(f"yahoo-{name}-full")))
    X, _ = Analyzer(None).count([d.counts for d in documents])
    Y = MultiLabelBinarizer().fit_transform([d.labels for d in documents])
    scores = []
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(len(documents))
        train, test = order[:2000], order[2000:5000]
        answers = model(**PAPERS).fit(X[train], Y[train]).predict(X[test])
        scores.append((samples_f1(Y[test], answers), subset_accuracy(Y[test], answers)))
    return np.mean(scores, axis=0)


def test_pmm1_on_a_yahoo_set(data):
    """One set, two splits: near the papers' numbers."""
    f, exact = yahoo(data, "science", 2)

    assert f == pytest.approx(YAHOO["science"][0], abs=0.02)
    assert exact == pytest.approx(YAHOO["science"][2], abs=0.03)


@pytest.mark.long
@pytest.mark.parametrize("name", YAHOO)
def test_pmm1_on_all_yahoo_sets(data, name):
    """Ten splits of each set: within .02 of Table 1 in F and .03 in subset accuracy.

    Kazawa et al. give reference .63 where Ueda and Saito give .611; we are within .03 of that.
    """
    f_000, f_001, exact_001 = YAHOO[name]

    f, exact = yahoo(data, name, 10)

    assert f == pytest.approx(f_000, abs=0.02)
    assert f == pytest.approx(f_001, abs=0.03 if name == "reference" else 0.02)
    assert exact == pytest.approx(exact_001, abs=0.03)


def test_pmm2_on_a_yahoo_set(data):
    """One set, two splits: near the paper's numbers."""
    f, _ = yahoo(data, "science", 2, PMM2)

    assert f == pytest.approx(YAHOO_PMM2["science"], abs=0.025)


@pytest.mark.long
@pytest.mark.parametrize("name", YAHOO_PMM2)
def test_pmm2_on_all_yahoo_sets(data, name):
    """Five splits of each set: within .025 of Table 1 in F."""
    f, _ = yahoo(data, name, 5, PMM2)

    assert f == pytest.approx(YAHOO_PMM2[name], abs=0.025)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("reuters21578", "en"),
        ("ohsumed20k", "en"),
        ("cei", "en"),
        ("medline-cf", "en"),
        ("czech-pirati", "cs"),
        ("debtags-en", "en"),
        ("debtags-cs", "cs"),
        ("fi-makupalat", "fi"),
        ("fi-kirjastonhoitaja", "fi"),
        ("arxiv-cs", "en"),
        ("goemotions", "en"),
        ("cooking", "en"),
        ("bibtex", None),
        ("delicious", None),
        ("enron", None),
        ("medical", None),
        ("tmc2007-500", None),
    ],
)
@pytest.mark.parametrize("model", ["nb", "pmm1", "pmm2", "pdmm"])
def test_every_corpus_from_file_to_labels(data, tmp_path, name, language, model):
    """A labeler learns the training part, is saved and loaded, and labels each text by itself."""
    train = list(read_documents(data(name), split="train"))
    test = list(read_documents(data(name), split="test"))[:100]
    labeler = Labeler(model, language=language).fit(train)
    labeler.save(tmp_path / "model")

    from polytopic import load

    answers = load(tmp_path / "model").predict(test)

    true = [d.labels for d in test]
    others = [*answers[1:], answers[0]]
    assert answers == labeler.predict(test)
    assert all(answers)
    assert samples_f1(true, answers) > 1.1 * samples_f1(true, others)


@pytest.fixture(scope="module")
def frequent_classes(data):
    """Return both parts of Reuters by the 36 classes and the preprocessing of Wang et al."""
    documents = list(read_documents(data("reuters21578")))
    counts = Counter(label for d in documents for label in d.labels)
    kept = {label for label in counts if counts[label] >= 50}
    documents = [d for d in documents if kept & set(d.labels)]
    X, _ = Analyzer("en", normalize="stem").count([d.text for d in documents])
    X = X[:, np.flatnonzero(X.sum(axis=0).A1 >= 50)]
    names = MultiLabelBinarizer().fit([sorted(kept)])
    Y = names.transform([[label for label in d.labels if label in kept] for d in documents])
    test = np.array([d.split == "test" for d in documents])
    return X[~test], Y[~test], X[test], Y[test]


def test_correlated_labeling_on_reuters(frequent_classes):
    """By class weights F is above the paper's .876, and the bound never falls."""
    X, Y, X_test, Y_test = frequent_classes

    model = CoL(300).fit(X, Y)

    assert (X.shape[0], X_test.shape[0], Y.shape[1]) == (7544, 2906, 36)
    assert samples_f1(Y_test, model.predict(X_test)) >= 0.885
    assert (np.diff(model.elbo_) > 0).all()


@pytest.mark.parametrize(
    ("name", "gain"),
    [("reuters21578", 0.2), ("cei", 0.3), ("debtags-en", 0.3)],
)
def test_labels_that_go_together(data, name, gain):
    """Label sets that were held out are likelier than if labels were independent."""
    documents = [d.labels for d in read_documents(data(name)) if d.labels]
    order = np.random.default_rng(0).permutation(len(documents))
    train, rest = np.split(order, [int(0.7 * len(documents))])
    names = MultiLabelBinarizer(sparse_output=True).fit([documents[k] for k in train])
    known = set(names.classes_)
    Y = names.transform([documents[k] for k in train])
    held_out = names.transform([documents[k] for k in rest if set(documents[k]) <= known])

    prior, _ = fit_label_prior(*distinct_sets(Y), "mcem")
    shares = np.asarray(Y.sum(axis=0))[0]
    alone = LabelPrior(np.log(shares), np.zeros((shares.size, shares.size)), prior.size_proba)

    held_out = held_out[np.diff(held_out.indptr) < prior.size_proba.size]
    assert prior.log_prior(held_out).mean() > alone.log_prior(held_out).mean() + gain


@pytest.fixture(scope="module")
def medline(data):
    """Return the documents of medline-cf with their labels of 20 to 600 documents."""
    documents = list(read_documents(data("medline-cf")))
    docs = Counter(label for document in documents for label in document.labels)
    used = {label for label, n in docs.items() if 20 <= n <= 600}
    texts = [(d.text, sorted(used.intersection(d.labels)), d.split) for d in documents]
    return [one for one in texts if one[1]]


def test_nbm_on_medline(medline):
    """Sato & Nakagawa's baseline with PMM's search: .315 ± .019 with a tenth for testing."""
    X = TextCounts("en", min_df=1).fit_transform([text for text, _, _ in medline])
    Y = MultiLabelBinarizer().fit_transform([labels for _, labels, _ in medline])
    order = np.random.default_rng(0).permutation(X.shape[0])
    test, train = order[: X.shape[0] // 10], order[X.shape[0] // 10 :]
    models = {
        "sets": PMM1(estimate="nb", **PAPERS).fit(X[train] > 0, Y[train]),
        "best": NaiveBayes(smoothing=1.0).fit(X[train] > 0, Y[train]),
        "pmm1": PMM1(**PAPERS).fit(X[train], Y[train]),
    }

    f = {name: samples_f1(Y[test], model.predict(X[test])) for name, model in models.items()}

    assert f["best"] < f["sets"] < f["pmm1"]
    assert f["sets"] == pytest.approx(0.315, abs=0.04)


def test_words_in_the_order_of_the_paper_on_medline(medline):
    """Sato & Nakagawa, Tables 1 to 5: rare words first, those of a single label last."""
    learned = [one for one in medline if one[2] == "train"]
    documents = [one for one in medline if one[2] == "test" and len(one[1]) >= 3][:20]
    model = PDMM(smoothing=1.0, likelihood="paper", **PAPERS)
    labeler = Labeler(model, min_df=1).fit(*map(list, list(zip(*learned, strict=True))[:2]))
    idf = dict(zip(labeler.counts_.terms, -np.log(labeler.counts_.document_frequency), strict=True))

    lists = [labeler.keywords(text, labels, order="paper") for text, labels, _ in documents]

    first, last = ([word for words in lists for word in words[part]] for part in ENDS)
    assert np.mean([idf[w.term] for w in first]) > np.mean([idf[w.term] for w in last]) + 1
    assert np.mean([w.share for w in first]) < 0.7 < np.mean([w.share for w in last])
