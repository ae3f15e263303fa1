"""Check that a change keeps every weight and prediction, to the bit.

Record before the change and compare after it, on one machine:

    python benchmarks/same_answers.py record before.json
    python benchmarks/same_answers.py compare before.json

Every model is trained on Reuters-21578 and debtags-en. The file holds digests of the arrays that a
model file would hold, and of what the model's methods return. Digests differ between machines,
because compilers use the instructions of their processor.
"""

import argparse
import hashlib
import json
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
from common import split_documents
from scipy import sparse

import polytopic
from polytopic.text import TextCounts

CORPORA = ("reuters21578", "debtags-en")
TEST_DOCS = 300  # documents of each corpus to label
SLOW_DOCS = 1500  # training documents of slow models
MODELS = {
    "naive Bayes": polytopic.NaiveBayes(),
    "PMM1": polytopic.PMM1(),
    "PMM1, best set": polytopic.PMM1(decode="map", smoothing=0.1),
    "PMM2": polytopic.PMM2(),
    "PDMM": polytopic.PDMM(),
    "PDMM, as in the paper": polytopic.PDMM(likelihood="paper"),
    "MML": polytopic.MML(),
    "MML, neighbours": polytopic.MML(labels="neighbours"),
    "MML, exact match": polytopic.MML(goal="exact"),
    "CoL": polytopic.CoL(n_topics=20, random_state=0),
    "BoosTexter": polytopic.BoosTexter(n_rounds=100),
    "linear SVM": polytopic.LinearSVM(),
    "nearest neighbours": polytopic.NearestNeighbours(),
    "random forest": polytopic.RandomForest(10),
}
SLOW = {"CoL", "BoosTexter", "PDMM", "PDMM, as in the paper", "random forest"}
METHODS = {  # and whether a model has them
    "predict": lambda model: True,
    "decision_function": lambda model: True,
    "predict_proba": lambda model: True,
    "predict_sets": lambda model: model.has_set_posterior,
    "mixture": lambda model: model.has_mixture,
}


def digest(value):
    """Return a digest of arrays and plain values, however they are nested."""
    sha = hashlib.sha256()
    _add(sha, value)
    return sha.hexdigest()[:16]


def _add(sha, value):
    if sparse.issparse(value):
        value = value.tocsr()
        value.sort_indices()
        _add(sha, [value.shape, value.data, value.indices.astype(np.int64), value.indptr.tolist()])
    elif isinstance(value, np.ndarray) and value.dtype != object:
        sha.update(f"{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value):
        _add(sha, [getattr(value, field.name) for field in fields(value)])
    elif isinstance(value, dict):
        _add(sha, sorted(value.items()))
    elif isinstance(value, list | tuple | np.ndarray):
        sha.update(f"{len(value)}".encode())
        for part in value:
            _add(sha, part)
    else:
        sha.update(repr(float(value) if isinstance(value, float) else value).encode())


def learned(corpus):
    """Yield the name and the digest of everything that models learn and predict on a corpus."""
    train, test = split_documents(corpus)
    counts = TextCounts()
    X = counts.fit_transform([d.text for d in train])
    X_test = counts.transform([d.text for d in test[:TEST_DOCS]])
    labels = [d.labels for d in train]
    yield f"{corpus}: counts", digest([X, X_test])
    for name, model in MODELS.items():
        n_docs = SLOW_DOCS if name in SLOW else len(train)
        model.fit(X[:n_docs], labels[:n_docs])
        for array, value in model.to_arrays().items():
            yield f"{corpus}: {name}: {array}", digest(value)
        for method, is_available in METHODS.items():
            if is_available(model):
                yield f"{corpus}: {name}: {method}", digest(getattr(model, method)(X_test))
    labeler = polytopic.Labeler("mml").fit([d.text for d in train], labels)
    texts = [d.text for d in test[:TEST_DOCS]]
    suggested = [[(s.label, s.score, s.probability) for s in row] for row in labeler.suggest(texts)]
    yield f"{corpus}: Labeler: predict", digest(labeler.predict(texts))
    yield f"{corpus}: Labeler: suggest", digest(suggested)
    labeler.learn(texts[:50], [d.labels for d in test[:50]])
    yield f"{corpus}: Labeler: learn", digest(labeler.predict(texts))


def main():
    """Record, or compare and exit with 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    digests = {}
    for corpus in CORPORA:
        for name, value in learned(corpus):
            digests[name] = value
            print(name, value, flush=True)
    if arguments.action == "record":
        arguments.file.write_text(json.dumps(digests, indent=1))
        return
    before = json.loads(arguments.file.read_text())
    different = [name for name in before | digests if before.get(name) != digests.get(name)]
    print("\n".join(f"differs: {name}" for name in different) or "All weights and answers agree.")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
