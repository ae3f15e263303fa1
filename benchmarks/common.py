"""What the benchmarks share: corpora, clocks, tables."""

import os
import time
from pathlib import Path

import numpy as np
from sklearn.preprocessing import MultiLabelBinarizer

from polytopic.corpus import read_documents
from polytopic.text import Analyzer, TextCounts

SHARED = Path(__file__).parents[2] / "shared" / "data"


def corpus_path(name):
    """Return the file of a shared corpus."""
    folder = Path(os.environ.get("POLYTOPIC_DATA", SHARED))
    path = folder / f"{name}.jsonl.gz"
    if not path.exists():
        raise SystemExit(f"corpus {name} is not in {folder}; set POLYTOPIC_DATA to its folder.")
    return path


def split_documents(name):
    """Return the training and the test documents of a corpus by its own split."""
    return [list(read_documents(corpus_path(name), split=part)) for part in ("train", "test")]


def split_counts(name):
    """Return counts and indicators of a corpus of texts, by its own split."""
    train, test = split_documents(name)
    counts, labels = TextCounts(), MultiLabelBinarizer()
    X = counts.fit_transform([d.text for d in train])
    Y = labels.fit_transform([d.labels for d in train])
    return (
        X,
        Y,
        counts.transform([d.text for d in test]),
        labels.transform([d.labels for d in test]),
    )


def bag_counts(name):
    """Return counts and indicators of a corpus of bags of words."""
    documents = list(read_documents(corpus_path(name)))
    X, _ = Analyzer(None).count([d.counts for d in documents])
    return X, MultiLabelBinarizer().fit_transform([d.labels for d in documents])


def random_halves(n_docs, seed, n_train=2000, n_test=3000):
    """Return the papers' random split."""
    order = np.random.default_rng(seed).permutation(n_docs)
    return order[:n_train], order[n_train : n_train + n_test]


def select_models(models, words):
    """Return the models whose name holds one of the words; all if there are no words."""
    found = {name: m for name, m in models.items() if any(word in name for word in words)}
    if words and not found:
        raise SystemExit(f"no model matches {' '.join(words)}; there are {'; '.join(models)}.")
    return found if words else dict(models)


def time_calls(function, repeats):
    """Return the shortest and the median time of a call, and its last result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times), float(np.median(times)), result


def markdown(header, rows):
    """Print a table in Markdown."""
    print("| " + " | ".join(header) + " |")
    print("|" + " --- |" * len(header))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
