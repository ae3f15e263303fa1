"""How time grows with documents, labels and words, on arxiv-cs; draws docs/growth.png.

Usage: growth.py FIGURE

One of the three grows at a time: documents are drawn at random; for labels, a label is split into
several or the rarest are merged into one; for words, the most frequent are used. CPU time of one
thread, from counts, including the settings that models choose; prediction is for 2000 documents.
"""

import os
import sys
import time

os.environ.setdefault("POLYTOPIC_NUM_THREADS", "1")

import numpy as np
from common import markdown, split_counts
from matplotlib import pyplot as plt
from scipy import sparse

from polytopic import PMM1, NaiveBayes
from polytopic.models import MML
from polytopic.text import TermWeights

DOCUMENTS = (1000, 2000, 4000, 8000, 16000, 32000, 64000)
LABELS = (6, 11, 22, 45, 89, 178, 356)
WORDS = (1000, 2000, 4000, 8000, 16000, 32000)
USUAL = 8000  # documents, where these do not grow
TESTED = 2000
MODELS = {
    "MML, the default": (lambda: MML(C="auto", calibrate=True), True),
    "PMM1": (PMM1, False),
    "NaiveBayes": (NaiveBayes, False),
}


def times(X, Y, T):
    """Return the seconds to learn and to label of each model."""
    weights = TermWeights("ltc").fit(X)
    found = {}
    for name, (make, weighed) in MODELS.items():
        A, B = (weights.transform(X), weights.transform(T)) if weighed else (X, T)
        begin = time.process_time()
        model = make().fit(A, Y)
        learned = time.process_time()
        model.predict_indicator(B)
        found[name] = learned - begin, time.process_time() - learned
    return found


def with_labels(Y, n_labels):
    """Return label sets over another number of labels."""
    if n_labels <= Y.shape[1]:
        order = np.argsort(-np.asarray(Y.sum(axis=0)).ravel())
        columns, rest = order[: n_labels - 1], order[n_labels - 1 :]
        return sparse.hstack([Y[:, columns], Y[:, rest].max(axis=1)], format="csr")
    times = n_labels // Y.shape[1]
    groups = np.arange(Y.shape[0]) % times
    parts = [sparse.diags((groups == g).astype(float)) @ Y for g in range(times)]
    return sparse.hstack(parts, format="csr")


def with_words(X, T, n_words):
    """Return documents with the most frequent words only."""
    columns = np.sort(np.argsort(-X.getnnz(axis=0), kind="stable")[:n_words])
    return X[:, columns], T[:, columns]


def main(figure):
    """Measure, write the table and draw."""
    X, Y, T, _ = split_counts("arxiv-cs")
    Y, T = sparse.csr_matrix(Y, dtype=float), T[:TESTED]
    order = np.random.default_rng(0).permutation(X.shape[0])
    some = order[:USUAL]
    times(X[some[:500]], Y[some[:500]].toarray(), T[:100])  # loads what is compiled
    series = {
        "documents": [(n, times(X[order[:n]], Y[order[:n]].toarray(), T)) for n in DOCUMENTS],
        "labels": [(n, times(X[some], with_labels(Y[some], n).toarray(), T)) for n in LABELS],
        "words": [
            (n, times(*(lambda A, B: (A, Y[some].toarray(), B))(*with_words(X[some], T, n))))
            for n in WORDS
        ],
    }
    _, panels = plt.subplots(2, 3, figsize=(11, 6), sharey="row", layout="constrained")
    rows = []
    for column, (grown, points) in enumerate(series.items()):
        sizes = [n for n, _ in points]
        for row, task in enumerate(("learn", "label 2000 documents")):
            panel = panels[row, column]
            for name in MODELS:
                seconds = [found[name][row] for _, found in points]
                panel.loglog(sizes, seconds, marker="o", label=name)
            first = points[0][1]["MML, the default"][row]
            line = [first * n / sizes[0] for n in sizes]
            panel.loglog(sizes, line, color="grey", linestyle=":", label="in proportion")
            panel.set_xlabel(grown)
            if not column:
                panel.set_ylabel(f"CPU seconds to {task}")
        for n, found in points:
            cells = [f"{learn:.2f}, {label:.2f}" for learn, label in found.values()]
            rows.append([grown, f"{n:,}", *cells])
    panels[0, 0].legend()
    plt.savefig(figure, dpi=110)
    markdown(["grown", "to", *MODELS], rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
