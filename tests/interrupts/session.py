"""A program that is interrupted repeatedly, like a session in a notebook.

For each line of standard input, it repeats a task until it is interrupted, and reports that. At the
end of the input, it runs the task once more, and prints whether the result is still the same.
SIGUSR1 prints the stack of every thread.
"""

import faulthandler
import hashlib
import signal
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.preprocessing import MultiLabelBinarizer

from polytopic import (
    MML,
    PMM1,
    BoosTexter,
    CoL,
    LinearSVM,
    NearestNeighbours,
    RandomForest,
    Stack,
)
from polytopic.corpus import load_sample
from polytopic.store import Store
from polytopic.text import Analyzer

DOCUMENTS = load_sample()
TEXTS = [document.text for document in DOCUMENTS]
FOLDER = tempfile.TemporaryDirectory()
ANALYZER = Analyzer("en")  # shared by all calls, which add words to its cache
COUNTS, _ = ANALYZER.count(TEXTS)
LABELS = [document.labels for document in DOCUMENTS]


def fit(model):
    """Fit a model on the sample; return the probabilities of labels."""
    return model.fit(COUNTS, LABELS).predict_proba(COUNTS)


def fit_few(model):
    """Fit a model that is too slow for the sample on a small part of it, as :func:`fit` does."""
    Y = MultiLabelBinarizer().fit_transform(LABELS)[:60, :5]
    return model.fit(COUNTS[:60], Y).predict_proba(COUNTS)


def count(begin=0):
    """Return the counts of the sample, and of the same texts with words that are new each time."""
    new_texts = [f"{text} word{number}x" for number, text in enumerate(TEXTS, start=begin)]
    matrix, terms = ANALYZER.count(TEXTS)
    new_matrix = Analyzer("en").count(new_texts)[0]
    names = np.array(terms)[matrix[:50].indices]
    return matrix.toarray().tobytes(), names.tobytes(), new_matrix.toarray().tobytes()


def learn():
    """Let a store learn the sample and forget it; return the digest in between.

    Documents of a batch are learned together, so an interrupt never leaves a part of a batch.
    """
    store = open_store()
    for begin in range(0, len(DOCUMENTS), 20):
        n_docs = store.info()["documents"]
        assert n_docs % 20 == 0 or n_docs == len(DOCUMENTS)
        store.learn(DOCUMENTS[begin : begin + 20])
    store.verify()
    digest = store.info()["digest"]
    store.forget([document.id for document in DOCUMENTS])
    return digest


@cache
def open_store():
    """Return a store that stays open, so that a lock left by an interrupt would be noticed."""
    return Store(Path(FOLDER.name) / "store.db", analyzer=ANALYZER)


TASKS = {
    "mml": lambda: fit(MML()),
    "mml-neighbours": lambda: fit(MML(labels="neighbours", C=1.0)),
    "pmm1": lambda: fit(PMM1()),
    "col": lambda: fit(CoL(5, max_iter=3)),
    "mml-exact": lambda: fit_few(MML(C=1.0, solver="exact")),
    "boostexter": lambda: fit(BoosTexter(30)),
    "svm": lambda: fit(LinearSVM()),
    "knn": lambda: fit(NearestNeighbours()),
    "forest": lambda: fit(RandomForest()),
    "stack": lambda: fit(Stack()),
    "count": count,
    "store": learn,
}


def digest_of(result):
    """Return a digest of the result of a task."""
    parts = result if isinstance(result, tuple) else (result,)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else np.ascontiguousarray(part))
    return digest.hexdigest()


def main(name):
    """Run a task and wait for an interrupt, once for each line of standard input."""
    faulthandler.register(signal.SIGUSR1)
    warnings.simplefilter("ignore")
    task = TASKS[name]
    before = digest_of(task())
    for _ in sys.stdin:
        try:
            print("begun", flush=True)
            while True:
                task()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    print("same" if digest_of(task()) == before else "changed", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
