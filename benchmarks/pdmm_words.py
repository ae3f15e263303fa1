"""Words of a document by how evenly its labels say them: Sato & Nakagawa, Tables 1 to 5.

Each word of a document has shares of the document's labels, phi of Eq. (28); the paper ranks words
by the increasing sum of phi log phi, which it calls entropy but which lacks a sign: words that the
labels share most evenly come first. Here on medline-cf: two lists of one document, with ranks by
tf-idf, and a check over all test documents of what the paper says such lists show.
"""

import numpy as np
from common import corpus_path, markdown
from scipy.special import digamma
from sklearn.preprocessing import MultiLabelBinarizer

from polytopic import PDMM
from polytopic.corpus import read_documents
from polytopic.text import TextCounts

STEPS = 100  # of variational Bayes
SHOWN = 10


def shares(theta, counts, labels):
    """Return the labels' shares of each word of a document, and of the document."""
    gamma = np.ones(len(labels))
    for _ in range(STEPS):
        phi = theta[labels].T * np.exp(digamma(gamma))
        phi /= phi.sum(axis=1, keepdims=True)
        gamma = 1 + counts @ phi
    return phi, gamma / gamma.sum()


def rank_words(theta, x, labels):
    """Return the words of a document by the rising sum of phi log phi."""
    phi, _ = shares(theta[:, x.indices], x.data, labels)
    logs = np.log(np.maximum(phi, 1e-300))
    return x.indices[np.argsort((phi * logs).sum(axis=1), kind="stable")]


def read():
    """Return training and test counts and indicators, words and labels of medline-cf."""
    documents = list(read_documents(corpus_path("medline-cf")))
    names = MultiLabelBinarizer()
    Y = names.fit_transform([d.labels for d in documents])
    kept = (Y.sum(axis=0) >= 20) & (Y.sum(axis=0) <= 600)
    counts = TextCounts("en", min_df=1)
    X = counts.fit_transform([d.text for d in documents])
    test = np.array([d.split == "test" for d in documents])
    words, labels = counts.get_feature_names_out(), names.classes_[kept]
    return (X[~test], Y[~test][:, kept]), (X[test], Y[test][:, kept]), words, labels


def lists(theta, x, chosen, words, labels, idf):
    """Print the first and the last words of a document, with their ranks by tf-idf."""
    order = rank_words(theta, x, chosen)
    by_weight = x.indices[np.argsort(-x.data * idf[x.indices], kind="stable")]
    place = {word: k + 1 for k, word in enumerate(by_weight)}
    _, weights = shares(theta[:, x.indices], x.data, chosen)
    said = ", ".join(f"{labels[k]} {w:.3f}" for k, w in zip(chosen, weights, strict=True))
    print(f"\n{said}\n")
    for name, part in (("first", order[:SHOWN]), ("last", order[-SHOWN:])):
        print(f"{name}: {', '.join(f'{words[w]} ({place[w]})' for w in part)}\n")


def report():
    """Print the lists of a document, and the means over all."""
    (X, Y), (X_test, Y_test), words, labels = read()
    theta = PDMM(smoothing=1.0).fit(X, Y).word_proba_
    idf = np.log(X.shape[0] / np.maximum(X.getnnz(axis=0), 1))
    random = np.random.default_rng(0)
    several = np.flatnonzero((Y_test.sum(axis=1) >= 3) & (X_test.getnnz(axis=1) >= 4 * SHOWN))
    rows = {"own labels": [], "as many other labels": []}
    common = {"as many other labels": [], "half of its labels": []}
    for doc in several:
        x, own = X_test[doc], np.flatnonzero(Y_test[doc])
        others = random.choice(np.flatnonzero(Y_test[doc] == 0), own.size, replace=False)
        half = random.choice(own, max(2, own.size // 2), replace=False)
        order = rank_words(theta, x, own)
        for name, chosen in (("own labels", own), ("as many other labels", others)):
            by = rank_words(theta, x, chosen)
            rows[name].append([idf[by[:SHOWN]].mean(), idf[by[-SHOWN:]].mean()])
        for name, chosen in (("as many other labels", others), ("half of its labels", half)):
            by = rank_words(theta, x, chosen)
            common[name].append(np.isin(order[:SHOWN], by[:SHOWN]).sum())
    doc = min(several, key=lambda d: (Y_test[d].sum() != 3, d))
    own = np.flatnonzero(Y_test[doc])
    lists(theta, X_test[doc], own, words, labels, idf)
    others = random.choice(np.flatnonzero(Y_test[doc] == 0), own.size, replace=False)
    lists(theta, X_test[doc], others, words, labels, idf)
    print(f"{several.size} test documents with three labels or more; idf of words, the mean:\n")
    means = {name: np.mean(values, axis=0) for name, values in rows.items()}
    markdown(
        ["labels given", f"first {SHOWN} words", f"last {SHOWN}"],
        [(name, *(f"{value:.2f}" for value in mean)) for name, mean in means.items()],
    )
    for name, values in common.items():
        print(f"\nof the first {SHOWN} words, {np.mean(values):.1f} stay with {name}")


if __name__ == "__main__":
    report()
