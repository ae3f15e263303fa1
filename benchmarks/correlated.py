"""The correlated labeling model: its paper's tables and figures, and how labels correlate.

quality: Reuters with 36, 10 and 90 classes compared with kNN, naive Bayes and an SVM, averaged over
documents; topics: class perplexity, precision and recall by the number of topics; terms: relevant
words of five classes; labels: held-out log likelihood of label sets, and of independent labels;
tree: clusters of labels compared with their known tree; others: the two models that Table 2 quotes;
shares: Figures 5 and 6 on cei, by the share of training documents; paper: the paper's own
inference, with --topics topics and the given --starts, which is slow: quality, perplexity, terms,
and the topics that classes share; paper-tree: clusters of the labels of cei in the topic space of
that inference; variants: the same inference with other starts and tolerances, on 1500 training
documents; default: quality and time of fitting with the default number of topics, which is tuned,
and with 100, on the test documents of several corpora; per-label: F on held-out training documents
by the number of topics per label.
The paper's preprocessing: words are stemmed, without stop words and terms with fewer than 50
occurrences; the 36 classes are those with at least 50 documents.
"""

import argparse
import sys
import time
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
from common import corpus_path, markdown, split_documents
from parts import read_parts
from scipy import sparse
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform
from scipy.special import log_softmax
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import MultiLabelBinarizer, normalize
from sklearn.svm import SVC, LinearSVC

from polytopic import BoosTexter, CoL, Labeler, LabelTree, NaiveBayes
from polytopic.corpus import read_documents
from polytopic.decision import LabelDecision, tune_decision
from polytopic.experiments.baseline_models import (
    BinaryNaiveBayes,
    CosineNeighbours,
    McCallumMixture,
)
from polytopic.explain.dendrogram import Dendrogram
from polytopic.metrics import samples_f1, samples_precision, samples_recall
from polytopic.models.col.label_prior import LabelPrior, distinct_sets, fit_label_prior
from polytopic.models.col.prediction import Predictor, best_threshold
from polytopic.models.col.topics import Topics
from polytopic.models.col.training import (
    RANDOM,
    TopicDocuments,
    label_topics,
    random_topics,
)
from polytopic.text import Analyzer, TermWeights

PAPER = {  # Tables 1 and 2
    "kNN": (0.795, 0.797, 0.791),
    "naive Bayes": (0.751, 0.892, 0.803),
    "SVM": (0.878, 0.814, 0.848),
    "CoL, 36 classes": (0.872, 0.875, 0.876),
    "CoL, 10 classes": (0.901, 0.923, 0.898),
    "CoL, all classes": (0.867, 0.873, 0.866),
}
TABLE_4 = {
    "gas": "gasoline oil crude supply contract barrel stock price sell gas rise company industry "
    "energy import",
    "interest": "pct rate bank monetary economist market money prime reserve feed inflation "
    "deposit bill repurchase federal",
    "trade": "trade u.s dlrs deficit japan surplus mln export japanese currency import february "
    "bill gatt market",
    "ship": "u.s gulf ship iran strike attack oil union port vessel seaman tanker tonne missile "
    "shipment",
    "bop": "mln dlrs trade surplus deficit currency export pct account import current economic "
    "quarter growth u.s",
}


PARTS = ["quality", "topics", "terms", "labels", "others", "shares"]
STARTS = ("random", "labels")
INFERENCES = ("paper", "joint-paper", "joint-weights")  # the joint family, with its predict_mode
TOPICS_PER_LABEL = (1, 3, 8, 12)
AS_PRINTED = {
    "inference": "paper",
    "init": "random",
    "covariance": "variational",
    "predict_mode": "paper",
}
VARIANT_DOCS, HELD_OUT_DOCS = 1500, 400  # to learn from, and to choose the threshold and to test


def reuters(keep):
    """Return the parts of Reuters with the classes that ``keep`` chooses from their counts."""
    train, test = split_documents("reuters21578")
    counts = Counter(label for document in train + test for label in document.labels)
    classes = set(keep(counts))
    parts = [
        [(d.text, [c for c in d.labels if c in classes]) for d in part] for part in (train, test)
    ]
    parts = [[pair for pair in part if pair[1]] for part in parts]
    X, terms = Analyzer("en", normalize="stem").count([text for part in parts for text, _ in part])
    frequent = np.flatnonzero(X.sum(axis=0).A1 >= 50)
    X, terms = sparse.csr_matrix(X[:, frequent], dtype=float), [terms[w] for w in frequent]
    labels, n_train = MultiLabelBinarizer().fit([sorted(classes)]), len(parts[0])
    Y, Y_test = (labels.transform([names for _, names in part]) for part in parts)
    return (X[:n_train], Y, X[n_train:], Y_test), terms, labels.classes_.tolist()


KEEPS = {
    "36": lambda counts: [c for c in counts if counts[c] >= 50],
    "10": lambda counts: [c for c, _ in counts.most_common(10)],
    "all": list,
}


def measures(Y, answers):
    """Return document-averaged precision, recall and F as text."""
    values = (f(Y, answers) for f in (samples_precision, samples_recall, samples_f1))
    return [f"{value:.3f}" for value in values]


def neighbours(X, Y, X_test, k=37):
    """Return kNN's answers: labels weighted by similarity, a threshold by held-out documents."""
    weights = TermWeights("ltc").fit(X)
    own, tested = weights.transform(X), weights.transform(X_test)

    def scores(known, labels, tested):
        found = NearestNeighbors(n_neighbors=k, metric="cosine").fit(known)
        distance, rows = found.kneighbors(tested)
        return np.einsum("dk,dkc->dc", 1 - distance, labels[rows])

    out = np.random.default_rng(0).permutation(X.shape[0])[: X.shape[0] // 5]
    rest = np.setdiff1d(np.arange(X.shape[0]), out)
    held_out = np.log(scores(own[rest], Y[rest], own[out]) + 1e-9)
    relative = held_out - held_out.max(axis=1, keepdims=True)
    threshold = best_threshold(relative, Y[out] > 0, Y[out].sum(axis=1))
    found = np.log(scores(own, Y, tested) + 1e-9)
    return (found - found.max(axis=1, keepdims=True) >= threshold).astype(int)


def predict_by_tuned_rule(model, X, Y, X_test):
    """Return the answers of a model by the best rule on held-out scores."""
    rule = tune_decision(model, X, Y).best_rule
    return LabelDecision(model, rule).fit(X, Y).predict(X_test)


def baselines(X, Y, X_test):
    """Yield the names of the paper's baselines, with tuned rules, and their predictions."""
    weights = TermWeights("ltc").fit(X)
    W, W_test = weights.transform(X), weights.transform(X_test)
    linear = OneVsRestClassifier(LinearSVC())
    yield "kNN, 37 neighbours", neighbours(X, Y, X_test)
    yield "naive Bayes, rule tuned", predict_by_tuned_rule(NaiveBayes(), X, Y, X_test)
    answers = linear.fit(W, Y).predict(W_test)
    answers[np.arange(len(answers)), linear.decision_function(W_test).argmax(axis=1)] = 1
    yield "LinearSVC, best label added", answers
    yield "LinearSVC, rule tuned", predict_by_tuned_rule(linear, W, Y, W_test)


def paper_baselines(X, Y, X_test):
    """Yield the names of the paper's baselines, as it describes them, and their predictions.

    They see counts, as the model does, and may predict no label. SVMlight's default C is the
    inverse of the mean squared length of a document.
    """
    votes = CosineNeighbours(37).fit(X, Y).proba(X_test)
    yield "kNN, counts, share > .5", (votes > 0.5).astype(int)
    yield "naive Bayes, counts, posterior > .5", naive_bayes_posteriors(X, Y, X_test) > 0.5
    odds = BinaryNaiveBayes().fit(X, Y).decision_function(X_test)
    yield "naive Bayes, counts, one per class, posterior > .5", (odds > 0).astype(int)
    squares = X.multiply(X).sum(axis=1).mean()
    machine = OneVsRestClassifier(SVC(kernel="linear", C=1 / squares))
    yield "SVM, counts, SVMlight's C", machine.fit(X, Y).predict(X_test)
    rows, rows_test = normalize(X), normalize(X_test)
    machine = OneVsRestClassifier(SVC(kernel="linear", C=1.0))
    yield "SVM, counts in rows of length 1, SVMlight's C", machine.fit(rows, Y).predict(rows_test)


def naive_bayes_posteriors(X, Y, X_test):
    """Return the posterior of each class by Eq. (16); a document counts for each of its classes."""
    docs, labels = np.nonzero(Y)
    model = MultinomialNB().fit(X[docs], labels)
    out = np.zeros((X_test.shape[0], Y.shape[1]))
    out[:, model.classes_] = np.exp(log_softmax(model.predict_joint_log_proba(X_test), axis=1))
    return out


def quality():
    """Print Tables 1 and 2."""
    rows = []
    for name, keep in KEEPS.items():
        (X, Y, X_test, Y_test), _, _ = reuters(keep)
        classes = f"{Y.shape[1]} classes"
        if name == "36":
            rows += [
                (baseline, classes, *measures(Y_test, answers), "")
                for found in (paper_baselines, baselines)
                for baseline, answers in found(X, Y, X_test)
            ]
        for mode in ("weights", "sets", "paper"):
            start = time.perf_counter()
            answers = CoL(300, predict_mode=mode).fit(X, Y).predict(X_test)
            spent = time.perf_counter() - start
            rows.append((f"CoL, {mode}", classes, *measures(Y_test, answers), f"{spent:.1f}"))
    markdown(["model", "classes", "P", "R", "F", "seconds"], rows)
    markdown(["paper", "P", "R", "F"], [(name, *values) for name, values in PAPER.items()])


def others():
    """Print the metrics of the models that Table 2 quotes, on the same classes."""
    rows = []
    for name, label, model in (
        ("10", "McCallum's mixture", McCallumMixture()),
        ("10", "McCallum's mixture, common component", McCallumMixture(common=True)),
        ("all", "AdaBoost.MH, 1000 rounds", BoosTexter(1000)),
    ):
        (X, Y, X_test, Y_test), _, _ = reuters(KEEPS[name])
        answers = model.fit(X, Y).predict(X_test)
        rows.append((label, Y.shape[1], *measures(Y_test, answers)))
    markdown(["model", "classes", "P", "R", "F"], rows)


def shares():
    """Print F, and the share of labels that are found, by the share of training documents."""
    documents = [d for d in read_documents(corpus_path("cei")) if d.labels]
    X, _ = Analyzer("en", normalize="stem").count([d.text for d in documents])
    X = sparse.csr_matrix(X[:, np.flatnonzero(X.sum(axis=0).A1 >= 50)], dtype=float)
    Y = MultiLabelBinarizer().fit_transform([d.labels for d in documents])
    order = np.random.default_rng(0).permutation(X.shape[0])
    n_test = X.shape[0] // 5
    test, rest = order[:n_test], order[n_test:]
    found = {}
    parts = (0.25, 0.5, 0.75, 1.0)
    for part in parts:
        rows = rest[: round(part * rest.size)]
        known = Y[rows].any(axis=0)
        learned = X[rows], Y[rows][:, known], X[test]
        answers = dict(paper_baselines(*learned)) | dict(baselines(*learned))
        answers["CoL"] = CoL(250).fit(*learned[:2]).predict(learned[2])
        for name, sets in answers.items():
            whole = np.zeros((n_test, Y.shape[1]))
            whole[:, known] = sets
            right = (whole * Y[test]).any(axis=0)[Y[test].any(axis=0)].mean()
            found.setdefault(name, []).append((samples_f1(Y[test], whole), right))
    head = [f"{part * 0.8:.0%} of the documents" for part in parts]
    print("F, and the share of labels that are right at least once\n")
    markdown(
        ["model", *head],
        [(name, *(f"{f:.3f} {c:.2f}" for f, c in row)) for name, row in found.items()],
    )


def topics(figure=None):
    """Print and draw Figures 3 and 4: metrics by the number of topics."""
    (X, Y, X_test, Y_test), _, _ = reuters(KEEPS["36"])
    rows = []
    for n_topics in (36, 50, 100, 150, 200, 300, 400):
        row = [n_topics]
        for mode in ("weights", "paper"):
            model = CoL(n_topics, predict_mode=mode).fit(X, Y)
            row += [f"{model.class_perplexity(X_test, Y_test):.4g}"]
            row += measures(Y_test, model.predict(X_test))
        rows.append([*row, f"{model.bound(X_test, Y_test).mean():.1f}"])
        print(*rows[-1], file=sys.stderr)
    head = ["perplexity", "P", "R", "F"]
    markdown(["topics", *head, *(f"{h}, paper" for h in head), "bound a document"], rows)
    if figure:
        draw_topics(rows, figure)


def paper(numbers_of_topics, starts, inference, keep):
    """Print the metrics of the paper's own inference, or of the joint family, on Reuters."""
    (X, Y, X_test, Y_test), names, classes = reuters(KEEPS[keep])
    settings = AS_PRINTED if inference == "paper" else {"predict_mode": inference[6:]}
    rows = []
    for n_topics in numbers_of_topics:
        for start in starts:
            model = CoL(n_topics, **settings | {"init": start})
            spent = -time.process_time()
            model.fit(X, Y)
            spent += time.process_time()
            perplexity, answers = score_once(model, X_test, Y_test)
            alike, shared = topic_cosines(model.label_topics_), n_shared(model.label_topics_)
            row = (start, n_topics, f"{perplexity:.4g}", *measures(Y_test, answers))
            rows.append((*row, f"{alike.max():.2g}", shared, model.n_iter_, f"{spent:.0f}"))
            print(*rows[-1], file=sys.stderr)
            if start == "random" and keep == "36":
                print_terms(model.relevance(X, Y), names, classes)
                closest(alike, classes)
    head = ["start", "topics", "perplexity", "P", "R", "F", "largest cosine", "shared topics"]
    print(f"\n{len(classes)} classes, inference {inference}:\n")
    markdown([*head, "EM steps", "CPU seconds"], rows)


def document_topics(documents, n_topics, random):
    """Return topics to start from that all labels share, each with a fifth of one document."""
    topics = random_topics(documents, n_topics, random)
    single = documents.rows(random.permutation(documents.nonempty())[:n_topics])[0].toarray()
    corpus = documents.word_sums() + 1.0
    start = 0.2 * single / single.sum(axis=1, keepdims=True) + 0.8 * corpus / corpus.sum()
    return Topics(topics.alpha, np.ascontiguousarray(start.T, dtype=np.float32))


def scaled_topics(documents, n_topics, random, *, total):
    """Return random topics to start from, with this sum of alpha for each label."""
    topics = random_topics(documents, n_topics, random)
    return replace(topics, alpha=topics.alpha * (total / RANDOM))


VARIANTS = {  # start and tolerance of EM
    "usual": (random_topics, 1e-3),
    "precise": (random_topics, 1e-5),
    "alpha-1": (partial(scaled_topics, total=1.0), 1e-3),
    "alpha-50": (partial(scaled_topics, total=50.0), 1e-3),
    "documents": (document_topics, 1e-3),
    "documents-precise": (document_topics, 1e-5),
    "labels": (label_topics, 1e-3),
    "labels-precise": (label_topics, 1e-5),
}


def variants(numbers_of_topics, names, keep):
    """Print the metrics of the paper's inference with other starts and tolerances."""
    parts, _, classes = reuters(KEEPS[keep])
    rows = []
    for n_topics in numbers_of_topics:
        for name in names:
            rows.append((name, n_topics, *measure_variant(parts, name, n_topics)))
            print(*rows[-1], file=sys.stderr, flush=True)
    head = ["variant", "topics", "EM steps", "bound per document", "shared topics"]
    head += ["perplexity, each label alone", "F", "perplexity, class weights", "F"]
    print(f"\n{len(classes)} classes\n")
    markdown(head, rows)


def measure_variant(parts, name, n_topics):
    """Return the metrics of one variant: steps, bound, shared topics, and how well it predicts."""
    X, Y, X_test, Y_test = parts
    order = np.random.default_rng(1).permutation(X.shape[0])
    train, out = order[:VARIANT_DOCS], order[VARIANT_DOCS : VARIANT_DOCS + HELD_OUT_DOCS]
    X_test, Y_test = X_test[:HELD_OUT_DOCS], Y_test[:HELD_OUT_DOCS]
    known = np.flatnonzero(Y[train].any(axis=0))
    documents = TopicDocuments(X[train], sparse.csr_matrix(Y[train][:, known], dtype=float))
    prior, _ = fit_label_prior(*documents.label_sets(), "variational", as_published=True)
    start, tol = VARIANTS[name]
    topics = start(documents, n_topics, np.random.RandomState(0))
    trace = documents.fit(replace(topics, family="factored"), smoothing=0.05, max_iter=200, tol=tol)
    row = [len(trace.elbo) - 1, f"{trace.elbo[-1] / train.size:.1f}", n_shared(trace.label_topics)]
    for mode in ("paper", "weights"):
        predictor = Predictor.build(
            mode, trace.topics, prior, documents.label_docs, columns=np.arange(known.size)
        )
        held_out, scores = predictor.log_scores(X[out]), predictor.log_scores(X_test)
        relative = held_out - held_out.max(axis=1, keepdims=True)
        least = best_threshold(relative, Y[out][:, known] > 0, Y[out].sum(axis=1))
        answers = np.zeros(Y_test.shape)
        answers[:, known] = scores - scores.max(axis=1, keepdims=True) >= least
        perplexity = np.exp(-scores[Y_test[:, known] > 0].mean())
        row += [f"{perplexity:.4g}", f"{samples_f1(Y_test, answers):.3f}"]
    return row


def score_once(model, X, Y):
    """Return the class perplexity of documents, and their predictions, from the same scores.

    It equals ``class_perplexity`` and ``predict``, which would each score the documents.
    """
    log_proba = -np.logaddexp(0.0, -model.decision_function(X))
    answers = log_proba - log_proba.max(axis=1, keepdims=True) >= model.tuned_["threshold"]
    answers &= np.isfinite(log_proba)
    empty = X.getnnz(axis=1) == 0
    if empty.any():
        answers[empty] = model.predict(X[empty])
    return np.exp(-log_proba[(Y > 0) & (model.label_docs_ > 0)].mean()), answers.astype(int)


def n_shared(label_topics):
    """Return how many topics have more than .01 of at least two labels."""
    return int(((label_topics > 0.01).sum(axis=0) > 1).sum())


def topic_cosines(label_topics):
    """Return the cosines of labels in topic space (Eq. (17)), 0 for a label and itself."""
    rows = normalize(label_topics)
    alike = rows @ rows.T
    np.fill_diagonal(alike, 0.0)
    return alike


def closest(alike, classes, title="\nClosest in topic space:", n_pairs=10):
    """Print the pairs of classes that are most alike."""
    one, other = np.triu_indices(len(classes), 1)
    order = np.argsort(-alike[one, other])[:n_pairs]
    pairs = [
        f"{classes[one[k]]} and {classes[other[k]]} {alike[one[k], other[k]]:.2f}" for k in order
    ]
    print(title, ", ".join(pairs))


def default():
    """Print F and the time of fitting with the default number of topics, and with 100."""
    rows = []
    for name, read in DEFAULT_PARTS.items():
        X, Y, X_test, Y_test = read()
        for n_topics in ("auto", 100):
            CoL(n_topics, max_iter=1, tol=1.0).fit(X[:300], Y[:300])  # compiles
            spent = -time.process_time()
            model = CoL(n_topics).fit(X, Y)
            spent += time.process_time()
            row = (name, Y.shape[1], n_topics, model.topic_prior_.shape[1])
            rows.append((*row, *measures(Y_test, model.predict(X_test)), f"{spent:.1f}"))
            print(*rows[-1], file=sys.stderr)
    head = ["corpus", "labels", "n_topics", "topics", "P", "R", "F", "CPU seconds of fitting"]
    markdown(head, rows)


def per_label():
    """Print F on a quarter of at most 3000 training documents, by the topics of each label."""
    rows = []
    for name, read in DEFAULT_PARTS.items():
        X, Y, *_ = read()
        order = np.random.default_rng(0).permutation(X.shape[0])[:3000]
        out, rest = order[: order.size // 4], order[order.size // 4 :]
        known, row = Y[rest].any(axis=0), []
        for n_topics in TOPICS_PER_LABEL:
            model = CoL(int(n_topics * known.sum())).fit(X[rest], Y[rest][:, known])
            answers = np.zeros((out.size, Y.shape[1]))
            answers[:, known] = model.predict(X[out])
            row.append(f"{samples_f1(Y[out], answers):.3f}")
        rows.append((name, known.sum(), *row))
        print(*rows[-1], file=sys.stderr)
    markdown(["corpus", "labels", *(f"{n} per label" for n in TOPICS_PER_LABEL)], rows)


def own_split(name):
    """Return the counts and labels of both parts of a corpus, by its own split."""
    parts = read_parts(name)
    return [values for part in parts for values in (part.X.astype(float), part.Y)]


DEFAULT_PARTS = {
    "Reuters, 36 classes": lambda: reuters(KEEPS["36"])[0],
    "reuters21578": lambda: own_split("reuters21578"),
    "yahoo-arts-full": lambda: own_split("yahoo-arts-full"),
    "ohsumed20k": lambda: own_split("ohsumed20k"),
    "cei": lambda: own_split("cei"),
    "medline-cf": lambda: own_split("medline-cf"),
    "czech-pirati": lambda: own_split("czech-pirati"),
    "debtags-en": lambda: own_split("debtags-en"),
}


def draw_topics(rows, file):
    """Draw perplexity, precision and recall against the number of topics."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(9, 3.5), layout="constrained")
    left, right = drawing.subplots(1, 2)
    columns = [np.array([float(row[k]) for row in rows]) for k in range(9)]
    left.plot(columns[0], columns[1], marker="o", label="class weights")
    left.set(xlabel="topics", ylabel="class perplexity", title="Reuters, 36 classes")
    for place, label in ((2, "precision"), (3, "recall"), (4, "F")):
        (line,) = right.plot(columns[0], columns[place], marker="o", label=f"{label}, weights")
        right.plot(
            columns[0], columns[place + 4], "--", color=line.get_color(), label=f"{label}, paper"
        )
    right.set(xlabel="topics", title="averaged over documents")
    right.legend(fontsize="small")
    drawing.savefig(file, dpi=110)


def terms():
    """Print the relevant terms of the classes of Table 4, by Eq. (18) and by r(c) beta."""
    (X, Y, _, _), names, classes = reuters(KEEPS["36"])
    model = CoL(300).fit(X, Y)
    print("Eq. (18)\n")
    print_terms(model.relevance(X, Y), names, classes)
    print("\nr(c) beta\n")
    print_terms(model.label_topics_ @ model.topic_word_proba_.astype(float), names, classes)


def print_terms(scores, names, classes):
    """Print the best terms of the classes of Table 4, and how many of them the paper lists."""
    stem = Analyzer("en", normalize="stem")
    rows, hits = [], 0
    for label, words in TABLE_4.items():
        best = [names[w] for w in np.argsort(-scores[classes.index(label)])[:15]]
        theirs = {term for word in words.split() for term in stem.terms(word)}
        hits += len(theirs & set(best))
        rows.append((label, ", ".join(best), len(theirs & set(best))))
    markdown(["class", "terms", "in the paper's list"], rows)
    print(f"\n{hits} of 75 words are the paper's.")


def labels():
    """Print the held-out log likelihood of label sets."""
    rows = []
    for name in ("reuters21578", "debtags-en", "cei"):
        Y, held_out, names = label_parts(name)
        shares = np.asarray(Y.sum(axis=0))[0]
        sets = distinct_sets(Y)
        priors = {
            how: fit_label_prior(*sets, how, max_iter=20)[0] for how in ("mcem", "variational")
        }
        sizes = priors["mcem"].size_proba
        priors["independent"] = LabelPrior(np.log(shares), np.zeros((shares.size,) * 2), sizes)
        known = held_out[held_out.getnnz(axis=1) < sizes.size]
        values = [f"{priors[p].log_prior(known).mean():.3f}" for p in priors]
        rows.append((name, f"{Y.shape[1]}", *values))
        closest(priors["mcem"].correlations(), names, f"\n{name}: most correlated:")
    print()
    markdown(["corpus", "labels", *priors], rows)


def label_clusters(name):
    """Return the clusters of the labels of cei by the words of a model, and how well they agree."""
    documents = [d for d in split_documents("cei")[0] if d.labels]
    known = LabelTree.from_names({label for d in documents for label in d.labels}, "--")
    labeler = Labeler(name, tree=known)
    found = labeler.fit([d.text for d in documents], [d.labels for d in documents]).map()
    return found, found.agreement()


def tree(file):
    """Print how well clusters of the labels of cei agree with their tree; draw them on request."""
    rows = []
    for name in ("pmm1", "col"):
        found, agreement = label_clusters(name)
        rows.append((name, len(found.labels), f"{agreement:.2f}"))
    markdown(["model", "labels", "cophenetic correlation"], rows)
    if file:
        found.plot().savefig(file, dpi=80)


def paper_tree(numbers_of_topics):
    """Print how well clusters of the labels of cei in topic space, Eq. (17), agree with their tree.

    Topics are those of the paper's inference, from a start that labels share. Next to it, the same
    for the words of labels, and how often the nearest label is a parent, child or sibling.
    """
    documents = [d for d in split_documents("cei")[0] if d.labels]
    X, _ = Analyzer("en", normalize="stem").count([d.text for d in documents])
    X = sparse.csr_matrix(X[:, np.flatnonzero(X.sum(axis=0).A1 >= 50)], dtype=float)
    names = MultiLabelBinarizer().fit([d.labels for d in documents])
    Y, labels = names.transform([d.labels for d in documents]), names.classes_.tolist()
    known = LabelTree.from_names(set(labels), "--")
    relatives = [{known.parent(c), *known.children(c), *known.siblings(c)} for c in labels]
    chance = np.mean([len(own.intersection(labels)) / (len(labels) - 1) for own in relatives])
    rows = []
    for n_topics in numbers_of_topics:
        model = CoL(n_topics, **AS_PRINTED | {"predict_mode": "weights"}).fit(X, Y)
        places = {"topics, Eq. (17)": model.label_topics_, "words": model.word_proba_}
        for space, vectors in places.items():
            alike = topic_cosines(vectors)
            distances = squareform(1 - alike, checks=False)
            found = Dendrogram(tuple(labels), hierarchy.linkage(distances, "average"))
            nearest = [labels[k] for k in alike.argmax(axis=1)]
            related = np.mean([c in own for c, own in zip(nearest, relatives, strict=True)])
            rows.append((space, n_topics, f"{found.agreement(known):.2f}", f"{related:.2f}"))
        closest(topic_cosines(model.label_topics_), labels)
        print(f"\n{n_shared(model.label_topics_)} of {n_topics} topics are shared\n")
    markdown(["labels in", "topics", "cophenetic correlation", "nearest is a relative"], rows)
    print(f"\nparents, children and siblings are {chance:.2f} of all other labels")


def label_parts(name):
    """Return indicators of a corpus's training and test documents, and the names of labels.

    A corpus without a test part has 70 % for training.
    """
    documents = [d for d in read_documents(corpus_path(name)) if d.labels]
    if any(d.split == "test" for d in documents):
        parts = [[d for d in documents if d.split == part] for part in ("train", "test")]
    else:
        order = np.random.default_rng(0).permutation(len(documents))
        cut = int(0.7 * len(documents))
        parts = [[documents[k] for k in rows] for rows in (order[:cut], order[cut:])]
    names = MultiLabelBinarizer(sparse_output=True).fit([d.labels for d in parts[0]])
    known = set(names.classes_)
    test_labels = [d.labels for d in parts[1] if set(d.labels) <= known]
    train = names.transform([d.labels for d in parts[0]])
    parts = [sparse.csr_matrix(Y, dtype=float) for Y in (train, names.transform(test_labels))]
    return *parts, names.classes_.tolist()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=PARTS)
    parser.add_argument("--figure", metavar="FILE", help="where to draw Figures 3 and 4, or 7")
    parser.add_argument(
        "--topics", type=int, nargs="+", default=[300], help="of paper, paper-tree and variants"
    )
    parser.add_argument("--starts", nargs="+", default=STARTS, choices=STARTS, help="of paper")
    parser.add_argument("--inference", default="paper", choices=INFERENCES, help="of paper")
    parser.add_argument("--classes", default="36", choices=KEEPS, help="of paper and variants")
    parser.add_argument("--variants", nargs="+", default=VARIANTS, choices=VARIANTS)
    arguments = parser.parse_args()
    functions = {
        "quality": quality,
        "topics": lambda: topics(arguments.figure),
        "terms": terms,
        "labels": labels,
        "others": others,
        "shares": shares,
        "tree": lambda: tree(arguments.figure),
        "paper-tree": lambda: paper_tree(arguments.topics),
        "paper": lambda: paper(
            arguments.topics, arguments.starts, arguments.inference, arguments.classes
        ),
        "variants": lambda: variants(arguments.topics, arguments.variants, arguments.classes),
        "default": default,
        "per-label": per_label,
    }
    for part in arguments.parts:
        print(f"\n## {part}\n", flush=True)
        functions[part]()
