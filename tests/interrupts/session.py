"""A session that is interrupted again and again, as in a notebook: a program of its own.

For each line of standard input, it works until it is interrupted, and says so. At the end of the
input, it works once more and says whether the result is still the same. SIGUSR1 prints the stack of
every thread.
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
ANALYZER = Analyzer("en")  # whose words are learned by many calls
COUNTS, _ = ANALYZER.count(TEXTS)
LABELS = [document.labels for document in DOCUMENTS]


def fit(model):
    """Return the probabilities of labels by a model."""
    return model.fit(COUNTS, LABELS).predict_proba(COUNTS)


def fit_few(model):
    """Return the probabilities of a few labels by a model that can learn no more."""
    Y = MultiLabelBinarizer().fit_transform(LABELS)[:60, :5]
    return model.fit(COUNTS[:60], Y).predict_proba(COUNTS)


def count(begin=0):
    """Return counts of texts that have new words each time, and of the sample's."""
    new = [f"{text} word{number}x" for number, text in enumerate(TEXTS, start=begin)]
    matrix, terms = ANALYZER.count(TEXTS)
    known = Analyzer("en").count(new)[0]
    names = np.array(terms)[matrix[:50].indices]
    return matrix.toarray().tobytes(), names.tobytes(), known.toarray().tobytes()


def learn():
    """Return the digest of a store that has learned all; documents of a batch come together."""
    store = open_store()
    for begin in range(0, len(DOCUMENTS), 20):
        known = store.info()["documents"]
        assert known % 20 == 0 or known == len(DOCUMENTS)
        store.learn(DOCUMENTS[begin : begin + 20])
    store.verify()
    digest = store.info()["digest"]
    store.forget([document.id for document in DOCUMENTS])
    return digest


@cache
def open_store():
    """Return a store that stays open: what an interrupt leaves open delays the next change."""
    return Store(Path(FOLDER.name) / "store.db", analyzer=ANALYZER)


WORK = {
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


def digest_of(found):
    """Return a digest of what work has made."""
    parts = found if isinstance(found, tuple) else (found,)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else np.ascontiguousarray(part))
    return digest.hexdigest()


def main(name):
    """Work and be interrupted, a time for each line of standard input."""
    faulthandler.register(signal.SIGUSR1)
    warnings.simplefilter("ignore")
    work = WORK[name]
    before = digest_of(work())
    for _ in sys.stdin:
        try:
            print("begun", flush=True)
            while True:
                work()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    print("same" if digest_of(work()) == before else "changed", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
