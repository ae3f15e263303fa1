"""The correlated labeling model compared with tomotopy's labelled LDA on Reuters.

Both see the same stemmed words. tomotopy's PLDA has 300 topics over the 36 classes (as many for
each as CoL's start gives on average, the rest shared), and 100 sweeps of Gibbs sampling; inference
is its default of 100 sweeps per document, ranked by the labels' shares. All on the same cores; each
repeat runs all, and ratios are medians of paired ones. growth: time to fit by the number of
documents of arxiv-cs. versions: processor seconds to fit on Reuters with 36 classes, and F, of this
checkout and of another one (--other), by turns.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import markdown
from correlated import KEEPS, measures, reuters
from parts import read_parts
from scipy import sparse

from polytopic import CoL

N_TOPICS, SWEEPS = 300, 100
HERE = Path(__file__).parents[1]
FIT = """
import json, sys, time
import numpy as np
from scipy import sparse
from polytopic import CoL
X, Y, X_test, Y_test = (sparse.load_npz(f"{sys.argv[1]}/{k}.npz") for k in range(4))
Y, Y_test = Y.toarray(), Y_test.toarray()
out = {}
for name, n_topics in (("default", []), ("100", [100]), ("300", [300])):
    CoL(*n_topics).fit(X, Y)  # compiles
    start = time.process_time()
    model = CoL(*n_topics).fit(X, Y)
    spent = time.process_time() - start
    answers = np.asarray(model.predict(X_test))
    f = 2 * (answers * Y_test).sum(axis=1) / (answers.sum(axis=1) + Y_test.sum(axis=1))
    out[name] = spent, f.mean()
print(json.dumps(out))
"""  # uses only what all releases have
SETTINGS = {"EM": {}, "stepwise": {"batch_size": 500}}
GROWTH = (4000, 8000, 16000, 32000, 66371)


def bags(X, names):
    """Return documents as lists of words."""
    rows = np.split(X.indices, X.indptr[1:-1]), np.split(X.data.astype(int), X.indptr[1:-1])
    return [[names[w] for w in np.repeat(*row)] for row in zip(*rows, strict=True)]


class LabelledTopics:
    """tomotopy's partially labelled LDA."""

    def __init__(self, names, classes):
        import tomotopy

        per_label = N_TOPICS // (len(classes) + 1)
        rest = N_TOPICS - per_label * len(classes)
        self.model = tomotopy.PLDAModel(latent_topics=rest, topics_per_label=per_label, seed=0)
        self.names, self.classes = names, classes

    def fit(self, X, Y):
        """Learn by Gibbs sampling."""
        for words, row in zip(bags(X, self.names), Y, strict=True):
            labels = [self.classes[c] for c in np.flatnonzero(row)]
            if words:
                self.model.add_doc(words, labels=labels)
        self.model.train(SWEEPS, workers=2)
        return self

    def predict(self, X):
        """Return the shares of labels in documents."""
        documents = [self.model.make_doc(words or ["?"]) for words in bags(X, self.names)]
        topics, _ = self.model.infer(documents, workers=2)
        labels = list(self.model.topic_label_dict)
        per_label = self.model.topics_per_label
        shares = np.asarray(topics)[:, : per_label * len(labels)].reshape(
            len(X.indptr) - 1, -1, per_label
        )
        out = np.zeros((len(shares), len(self.classes)))
        out[:, [self.classes.index(label) for label in labels]] = shares.sum(axis=2)
        return out


def time_call(function):
    """Return the time of a call, and its result."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def speed(repeats):
    """Print times to fit and to predict, and the quality of predictions."""
    (X, Y, X_test, Y_test), names, classes = reuters(KEEPS["36"])
    CoL(50).fit(X[:300], Y[:300]).predict(X_test[:50])  # compiles
    times: dict = {}
    for _ in range(repeats):
        for name, settings in SETTINGS.items():
            spent, model = time_call(lambda s=settings: CoL(N_TOPICS, **s).fit(X, Y))
            seconds_to_predict, answers = time_call(lambda m=model: m.predict(X_test))
            times.setdefault(f"CoL, {name}", []).append((spent, seconds_to_predict))
            print(name, measures(Y_test, answers))
        competitor = LabelledTopics(names, classes)
        spent, _ = time_call(lambda r=competitor: r.fit(X, Y))
        seconds_to_predict, shares = time_call(lambda r=competitor: r.predict(X_test))
        times.setdefault("tomotopy PLDA", []).append((spent, seconds_to_predict))
        best = (shares >= 0.5 * shares.max(axis=1, keepdims=True)).astype(int)
        print("tomotopy", measures(Y_test, best))
    competitor_times = np.array(times["tomotopy PLDA"])
    rows = []
    for name, values in times.items():
        fit, predict = np.median(np.array(values) / competitor_times, axis=0)
        seconds = np.median(values, axis=0)
        rows.append(
            (
                name,
                f"{seconds[0]:.2f}",
                f"{fit:.2f}",
                f"{1e6 * seconds[1] / len(Y_test):.0f}",
                f"{1 / predict:.0f}",
            )
        )
    markdown(["model", "fit, s", "ratio", "predict, µs per document", "times as fast"], rows)


def growth():
    """Print times to fit by the number of documents."""
    train, _ = read_parts("arxiv-cs")
    rows = []
    for n_docs in GROWTH:
        X, Y = train.X[:n_docs], train.Y[:n_docs]
        row = [f"{n_docs:,}"]
        for settings in SETTINGS.values():
            spent, model = time_call(lambda s=settings: CoL(N_TOPICS, **s).fit(X, Y))  # noqa: B023
            row += [f"{spent:.1f}", f"{1e6 * spent / n_docs:.0f}", model.n_iter_]
        rows.append(row)
    heads = [f"{name}, {what}" for name in SETTINGS for what in ("s", "µs per document", "steps")]
    markdown(["documents", *heads], rows)


def versions(other, repeats):
    """Print the time to fit and F of two checkouts, which take turns."""
    parts, _, _ = reuters(KEEPS["36"])
    times: dict = {}
    with tempfile.TemporaryDirectory() as folder:
        for k, part in enumerate(parts):
            sparse.save_npz(Path(folder, f"{k}.npz"), sparse.csr_matrix(part))
        for _ in range(repeats):
            for name, checkout in (("this", HERE), ("other", Path(other))):
                environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
                command = [sys.executable, "-c", FIT, folder]
                run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
                for n_topics, figures in json.loads(run.stdout).items():
                    times.setdefault((name, n_topics), []).append(figures)
    rows = []
    for n_topics in ("default", "100", "300"):
        this, old = (np.array(times[name, n_topics]) for name in ("this", "other"))
        ratio = np.median(this[:, 0] / old[:, 0])
        medians = [f"{np.median(found[:, 0]):.2f}" for found in (this, old)]
        rows.append((n_topics, *medians, f"{ratio:.2f}", f"{this[0, 1]:.3f}", f"{old[0, 1]:.3f}"))
    markdown(["topics", "this, s", "other, s", "ratio", "F, this", "F, other"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["speed", "growth"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--other", metavar="FOLDER", help="another checkout, for versions")
    arguments = parser.parse_args()
    if "speed" in arguments.parts:
        speed(arguments.repeats)
    if "growth" in arguments.parts:
        growth()
    if "versions" in arguments.parts:
        if not arguments.other:
            parser.error("versions needs --other FOLDER, the checkout to compare with.")
        versions(arguments.other, arguments.repeats)
