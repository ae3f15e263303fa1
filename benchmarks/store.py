"""A store compared with its lower bounds: analysing the texts, and reading arrays from a file.

changes: learning and forgetting batches of 1,000 documents of Reuters, compared with counting the
terms of the same texts; reading: the table of counts of Reuters, compared with reading the same
arrays, labels and terms from a model file; fresh: learning one document, then labelling another
with a model that includes it; size: a store of arxiv-cs without texts, compared with the gzipped
corpus.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from common import corpus_path, markdown

from polytopic import Analyzer, Document, LabelSetCounts, Store
from polytopic.corpus import read_documents
from polytopic.modelfile import read_model, write_model

BATCH = 1000


def time_call(function):
    """Return the time of a call, and its result."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def batches(documents):
    """Return documents in batches."""
    return [documents[k : k + BATCH] for k in range(0, len(documents), BATCH)]


def changes(url, documents):
    """Print what learning and forgetting cost."""
    analyzer, parts = Analyzer("en"), batches(documents)
    store = Store(url)
    spent = [
        (
            time_call(lambda p=part: analyzer.count(p))[0],
            time_call(lambda p=part: store.learn(p))[0],
        )
        for part in parts
    ]
    analysis, learning = np.array(spent).sum(axis=0)
    forgetting = sum(time_call(lambda p=part: store.forget([d.id for d in p]))[0] for part in parts)
    rows = [
        ("analysis", f"{analysis:.2f}", "1"),
        ("learning", f"{learning:.2f}", f"{learning / analysis:.2f}"),
        ("forgetting", f"{forgetting:.2f}", f"{forgetting / analysis:.2f}"),
    ]
    markdown(["batches of 1,000", "s", "ratio"], rows)


def reading(url, documents, repeats):
    """Print what reading the table of counts costs."""
    store = Store(url)
    store.learn(documents)
    counts = store.counts()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "counts"
        names = {"labels": list(counts.labels), "terms": list(counts.terms)}
        write_model(path, names, counts.to_arrays())

        def from_file():
            manifest, arrays = read_model(path)
            terms = tuple(manifest["terms"])
            return LabelSetCounts.from_arrays(
                arrays, labels=manifest["labels"], terms=terms, exact=True
            )

        times = [(time_call(store.counts)[0], time_call(from_file)[0]) for _ in range(repeats)]
    ratio = np.median([one / other for one, other in times])
    own, file = 1e3 * np.median(times, axis=0)
    markdown(
        ["store, ms", "safetensors, ms", "ratio"], [(f"{own:.1f}", f"{file:.1f}", f"{ratio:.2f}")]
    )
    return store


def fresh(store, repeats):
    """Print how soon a document that was learned is in the answers."""
    store.publish()
    spent = []
    for k in range(repeats):
        new = Document(f"new {k}", "Wheat and maize were shipped from Rouen.", labels=["grain"])
        start = time.perf_counter()
        store.learn([new])
        store.labeler().suggest(["Maize is shipped."])
        spent.append(time.perf_counter() - start)
    print(f"\nOne document learned, and an answer that knows it: {np.median(spent):.2f} s")


def size():
    """Print how large a store is."""
    path = corpus_path("arxiv-cs")
    documents = list(read_documents(path))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "store.db"
        with Store(file) as store:
            spent = sum(time_call(lambda p=part: store.learn(p))[0] for part in batches(documents))
            table, _ = time_call(store.counts)
        own, gzipped = (p.stat().st_size / 1e6 for p in (file, path))
    row = f"{own:.1f}", f"{gzipped:.1f}", f"{own / gzipped:.2f}", f"{spent:.0f}", f"{table:.2f}"
    markdown(["store, MB", "corpus, MB", "ratio", "learning, s", "table, s"], [row])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["changes", "reading", "size"])
    parser.add_argument("--url", help="of an empty PostgreSQL database for changes, or for reading")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    found = list(read_documents(corpus_path("reuters21578")))
    with tempfile.TemporaryDirectory() as folder:
        for part in arguments.parts:
            print(f"\n## {part}\n")
            url = arguments.url or Path(folder) / f"{part}.db"
            if part == "changes":
                changes(url, found)
            elif part == "reading":
                fresh(reading(url, found, arguments.repeats), arguments.repeats)
            else:
                size()
