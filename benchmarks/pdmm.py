"""PDMM compared with PMM and naive Bayes on medical abstracts: Sato & Nakagawa, Figures 2, 3.

Figure 2: samples F1 over the share of test documents. Figure 3: over the share of documents with
several labels, 60 % of them for testing. Means of random splits, all in the papers' settings; then
the same models with a prior of label sets and the answer of best expected F.

Two things are ours: the corpora, since the paper's abstracts are unknown, and how NBM predicts,
which the paper does not say. It learns from the number of documents with a word, plus one. The
first row predicts sets as PMM does, since the paper's models differ in how they learn; two others
predict the best label, and those that WorldModel accepts.
"""

import argparse

import numpy as np
from common import corpus_path, markdown, select_models
from sklearn.preprocessing import MultiLabelBinarizer

import polytopic
from polytopic.corpus import read_documents
from polytopic.decision import LabelDecision, WorldModel
from polytopic.metrics import samples_f1
from polytopic.text import TextCounts

CORPORA = {  # least and most documents of the labels that are used
    "medline-cf": (20, 600),
    "cei": (1, np.inf),
    "ohsumed20k": (1, np.inf),
}
TEST_SHARES = (0.02, 0.1, 0.2, 0.4, 0.6, 0.8)
MULTI_SHARES = (0.3, 0.5, 0.7, 0.9)
LEAST_DOCS = 500  # fewer are too few for Figure 3


class NBM(polytopic.PMM1):
    """PMM1 with the word distributions of naive Bayes, by the number of documents with a word."""

    def fit(self, X, Y):
        """Learn how many documents of each label have each word."""
        return super().fit(X > 0, Y)


class NBMOfOneLabel(polytopic.NaiveBayes):
    """The same word distributions; the best label, or those that a rule accepts."""

    def fit(self, X, Y):
        """Learn how many documents of each label have each word."""
        return super().fit(X > 0, Y)


def _papers(model, **settings):
    return lambda: getattr(polytopic, model)(
        smoothing=1.0, prior="uniform", decode="greedy", **settings
    )


def _set_prior(model, **settings):
    return lambda: getattr(polytopic, model)(
        prior="labelset", temperature="auto", decode="f", **settings
    )


PAPERS = {  # functions that make a model
    "NBM, sets": lambda: NBM(smoothing=1.0, prior="uniform", decode="greedy", estimate="nb"),
    "NBM, best label": lambda: NBMOfOneLabel(smoothing=1.0),
    "NBM + WorldModel": lambda: LabelDecision(NBMOfOneLabel(smoothing=1.0), WorldModel()),
    "PMM1": _papers("PMM1"),
    "PMM2": _papers("PMM2"),
    "PDMM, Eq. (35)": _papers("PDMM", mixing=1.0, likelihood="paper"),
    "PDMM, bound": _papers("PDMM", mixing=1.0, likelihood="bound"),
}
OURS = {
    "PMM1, set prior": _set_prior("PMM1"),
    "PMM2, set prior": _set_prior("PMM2"),
    "PDMM, set prior": _set_prior("PDMM"),
}


def read_corpus(name):
    """Return counts over the words of all documents, and the indicator of the labels used."""
    documents = list(read_documents(corpus_path(name)))
    Y = MultiLabelBinarizer().fit_transform([d.labels for d in documents])
    least, most = CORPORA[name]
    Y = Y[:, (Y.sum(axis=0) >= least) & (Y.sum(axis=0) <= most)]
    labelled = np.flatnonzero(Y.any(axis=1))
    X = TextCounts("en", min_df=1).fit_transform([documents[d].text for d in labelled])
    return X, Y[labelled]


def measure(make, X, Y, docs_of, test_share, n_splits):
    """Return F of each random split of the documents that ``docs_of(random)`` draws."""
    scores = []
    for seed in range(n_splits):
        random = np.random.default_rng(seed)
        docs = random.permutation(docs_of(random))
        cut = round(test_share * docs.size)
        test, train = docs[:cut], docs[cut:]
        answers = make().fit(X[train], Y[train]).predict(X[test])
        scores.append(samples_f1(Y[test], answers))
    return np.array(scores)


def figure2(models, X, Y, shares, n_splits):
    """Return F of each model for each share of test documents."""
    return {
        name: [
            measure(make, X, Y, lambda random: np.arange(X.shape[0]), share, n_splits)
            for share in shares
        ]
        for name, make in models.items()
    }


def figure3(models, X, Y, n_splits):
    """Return F of each model for each share of documents with several labels.

    All shares have the same number of documents, the largest that the corpus can give.
    """
    several = Y.sum(axis=1) > 1
    pools = np.flatnonzero(several), np.flatnonzero(~several)
    n_docs = int(min(min(pools[0].size / s, pools[1].size / (1 - s)) for s in MULTI_SHARES))
    if n_docs < LEAST_DOCS:
        return n_docs, {}

    def mixed(share):
        n_several = round(share * n_docs)
        return lambda random: np.concatenate(
            [
                random.choice(pools[0], n_several, replace=False),
                random.choice(pools[1], n_docs - n_several, replace=False),
            ]
        )

    return n_docs, {
        name: [measure(make, X, Y, mixed(share), 0.6, n_splits) for share in MULTI_SHARES]
        for name, make in models.items()
    }


def table(shares, results):
    """Print mean and standard deviation of F by share."""
    markdown(
        ["model", *(f"{share:.0%}" for share in shares)],
        [
            (name, *(f"{scores.mean():.3f} ± {scores.std():.3f}" for scores in row))
            for name, row in results.items()
        ],
    )


def draw(path, label, shares, results):
    """Draw a figure like the paper's, if matplotlib is there."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("\nno figure: matplotlib is not installed")
        return
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for (name, row), marker in zip(results.items(), "osv^Dxp<>", strict=False):
        means, stds = [s.mean() for s in row], [s.std() for s in row]
        axes.errorbar(
            np.array(shares) * 100, means, stds, label=name, marker=marker, capsize=2, linewidth=1
        )
    axes.set(xlabel=label, ylabel="samples F1")
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=150)


def report(name, words, n_splits, folder):
    """Print all tables of a corpus, and draw its figures into a folder if one is given."""
    X, Y = read_corpus(name)
    several = Y.sum(axis=1) > 1
    print(
        f"\n{name}: {X.shape[0]} documents, {X.shape[1]} words, {Y.shape[1]} labels, "
        f"{Y.sum(axis=1).mean():.1f} per document, {several.mean():.1%} with several; "
        f"mean and standard deviation of {n_splits} splits"
    )
    models = select_models(PAPERS | OURS, words)
    papers = {model: make for model, make in models.items() if model in PAPERS}
    ours = {model: make for model, make in models.items() if model in OURS}
    if papers:
        results = figure2(papers, X, Y, TEST_SHARES, n_splits)
        print("\nFigure 2: F by share of test documents\n")
        table(TEST_SHARES, results)
        if folder:
            draw(f"{folder}/{name}-figure2.png", "test documents, %", TEST_SHARES, results)
        n_docs, results = figure3(papers, X, Y, n_splits)
        print(f"\nFigure 3: F by share of documents with several labels, {n_docs} documents\n")
        if not results:
            print(f"left out: fewer than {LEAST_DOCS} documents")
        else:
            table(MULTI_SHARES, results)
            if folder:
                label = "documents with several labels, %"
                draw(f"{folder}/{name}-figure3.png", label, MULTI_SHARES, results)
    if ours:
        print("\nWith a prior of label sets, answers of best expected F\n")
        table((0.2,), figure2(ours, X, Y, (0.2,), n_splits))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="words in the names of models; all by default")
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=list(CORPORA))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--figures", metavar="FOLDER", help="where to draw figures; none if unset")
    arguments = parser.parse_args()
    for corpus in arguments.corpora:
        report(corpus, arguments.models, arguments.splits, arguments.figures)
