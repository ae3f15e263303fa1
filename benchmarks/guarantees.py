"""How well a promised recall is kept, on random splits of corpora.

    python benchmarks/guarantees.py enron medical slashdot --recall 0.9 --splits 10

Each corpus is divided at random: half of at most 4000 documents is learned, and the recall of the
predicted sets is measured on the other half.
"""

import argparse

import numpy as np
from common import corpus_path, markdown

from polytopic import Labeler
from polytopic.corpus import random_split, read_documents
from polytopic.metrics import samples_precision, samples_recall

MOST = 4000


def main():
    """Print a table of corpora."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--model", help="by default, that of a labeler")
    parser.add_argument("--recall", type=float, default=0.9)
    parser.add_argument("--splits", type=int, default=10)
    arguments = parser.parse_args()
    rows, promise = [], {"recall": arguments.recall}
    for name in arguments.corpora:
        documents = [d for d in read_documents(corpus_path(name)) if d.labels]
        documents = [documents[k] for k in np.random.default_rng(0).permutation(len(documents))]
        documents = documents[:MOST]
        language, values = None if documents[0].counts else "en", []
        for split in range(arguments.splits):
            train, test = (
                [documents[k] for k in part] for part in random_split(documents, 0.5, split)
            )
            labeler = Labeler(arguments.model, language=language, guarantee=promise).fit(train)
            true, predicted = [d.labels for d in test], labeler.predict(test)
            own = labeler.set_params(guarantee=None).predict(test)
            values.append(
                (
                    samples_recall(true, predicted),
                    samples_precision(true, predicted),
                    np.mean([len(labels) for labels in predicted]),
                    samples_recall(true, own),
                    np.mean([len(labels) for labels in own]),
                )
            )
        mean, std = np.mean(values, axis=0), np.std(values, axis=0)
        rows.append(
            (name, len(train), f"{mean[0]:.4f} ± {std[0]:.3f}", *map("{:.3f}".format, mean[1:]))
        )
        print(*rows[-1], flush=True)
    header = ["corpus", "documents", "recall", "precision", "labels"]
    markdown([*header, "recall without a promise", "labels without"], rows)


if __name__ == "__main__":
    main()
