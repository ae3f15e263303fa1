"""Thousands of labels: our labelers and Omikuji's label trees, one after the other in one run.

    python benchmarks/large.py [CORPUS [METHOD ...]]

The corpus, by default tibkat-en, is divided by its own split. Each method runs in a process of its
own. CPU time covers the texts, features and training, but not reading the corpus; Omikuji gets the
same weighted words as our labelers, and the threshold of its F1 is the best one on the test part.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import split_documents
from scipy import sparse

from polytopic import Labeler
from polytopic.corpus import Document
from polytopic.experiments.baselines import TREES, weighted_words, write_svmlight
from polytopic.labels import LabelSpace
from polytopic.metrics import precision_at_k, propensity_precision_at_k, recall_at_k, samples_f1
from polytopic.metrics.scores import above_absent
from polytopic.text import TextCounts, WordNGrams
from polytopic.text.weights import TermWeights

PAIRS = [WordNGrams(min_df=3, max_terms=None)]
LABELERS = {
    "default": {},
    "fast": {"quality": "fast"},
    "pairs": {"features": PAIRS},
    "fast-pairs": {"quality": "fast", "features": PAIRS},
}
METHODS = (*LABELERS, "parabel", "bonsai")
THRESHOLDS = np.linspace(0.02, 0.6, 30)
N_FREE = 100  # labels of a text that Omikuji ranks
COLUMNS = (
    "P@1",
    "P@3",
    "P@5",
    "R@5",
    "R@10",
    "R@50",
    "PSP@5",
    "F1",
    "CPU s",
    "MB",
    "ms",
    "file MB",
)


def our_answers(name, train, test):
    """Return the labels, scores and label sets of test documents, and measurements."""
    begin = time.process_time()
    labeler = Labeler(**LABELERS[name]).fit(train)
    learning = time.process_time() - begin
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.model"
        labeler.save(path)
        size = path.stat().st_size / 1e6
    begin = time.process_time()
    sets = labeler.predict(test)
    answering = time.process_time() - begin
    scores = above_absent(labeler.decision_function(test))
    return labeler.classes_.tolist(), scores, sets, learning, answering, size


def omikuji_answers(name, train, test):
    """Return the same for a forest of label trees."""
    import omikuji

    begin = time.process_time()
    counts = TextCounts(min_df=2)
    X = counts.fit_transform([document.text for document in train])
    weights = TermWeights("ltc").fit(X)
    space = LabelSpace(label for document in train for label in document.labels)
    Y = space.encode([document.labels for document in train])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        write_svmlight(path, weights.transform(X), Y, header=True)
        hyper = omikuji.Model.default_hyper_param()
        for setting, value in TREES[name].items():
            setattr(hyper, setting, value)
        model = omikuji.Model.train_on_data(str(path), hyper, 2)
        learning = time.process_time() - begin
        model.save(str(Path(folder) / "model"))
        size = sum(f.stat().st_size for f in (Path(folder) / "model").iterdir()) / 1e6
    begin = time.process_time()
    new = weights.transform(counts.transform([document.text for document in test]))
    rows = [model.predict(words, top_k=N_FREE) for words in weighted_words(new)]
    answering = time.process_time() - begin
    ends = np.cumsum([0, *map(len, rows)])
    labels, values = (np.array([pair[k] for row in rows for pair in row]) for k in (0, 1))
    scores = sparse.csr_matrix((values, labels, ends), shape=(len(test), len(space)))
    truth = [document.labels for document in test]
    sets = max((cut(scores, t, space) for t in THRESHOLDS), key=lambda s: samples_f1(truth, s))
    return list(space), scores, sets, learning, answering, size


def cut(scores, threshold, space):
    """Return the labels with a score above a threshold, or the best one."""
    sets = []
    for row in range(scores.shape[0]):
        part = slice(scores.indptr[row], scores.indptr[row + 1])
        labels, values = scores.indices[part], scores.data[part]
        chosen = labels[values > threshold]
        best = labels[values.argmax() :][:1] if values.size else labels
        sets.append([space.ids[label] for label in (chosen if chosen.size else best)])
    return sets


def measure(corpus, name):
    """Print the measurements of one method as JSON."""
    train, test = (
        [Document(d.id, d.text, counts=d.counts, labels=d.labels) for d in part]
        for part in split_documents(corpus)
    )
    answers = our_answers if name in LABELERS else omikuji_answers
    labels, scores, sets, learning, answering, size = answers(name, train, test)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    truth, learned = ([document.labels for document in part] for part in (test, train))
    row = {f"P@{k}": precision_at_k(truth, scores, k, classes=labels) for k in (1, 3, 5)}
    row |= {f"R@{k}": recall_at_k(truth, scores, k, classes=labels) for k in (5, 10, 50)}
    row["PSP@5"] = propensity_precision_at_k(truth, scores, 5, Y_train=learned, classes=labels)
    row |= {"F1": samples_f1(truth, sets), "CPU s": learning, "MB": peak}
    row |= {"ms": 1000 * answering / len(test), "file MB": size}
    print("\n" + json.dumps({name: round(value, 4) for name, value in row.items()}))


def main(corpus="tibkat-en", *methods):
    """Print a row per method."""
    print("| " + " | ".join(["", *COLUMNS]) + " |", flush=True)
    for name in methods or METHODS:
        done = subprocess.run(
            [sys.executable, __file__, "--one", corpus, name], stdout=subprocess.PIPE, check=True
        )
        row = json.loads(done.stdout.splitlines()[-1])  # after the progress of Omikuji
        cells = [f"{row[c]:.3f}" if "@" in c or c == "F1" else f"{row[c]:,.1f}" for c in COLUMNS]
        print("| " + " | ".join([name, *cells]) + " |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        measure(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
