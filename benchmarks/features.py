"""What n-grams of characters and words bring beside the words, on texts.

    python benchmarks/features.py [CORPUS ...]

Each corpus is divided by its own split, of which at most 3000 training and 1500 test documents are
drawn at random, and each labeler is fitted once.
"""

import sys
import time

import numpy as np
from common import split_documents

from polytopic import Labeler
from polytopic.metrics import macro_f1, samples_f1
from polytopic.text import CharacterNGrams, WordNGrams

CORPORA = {"debtags-cs": "cs", "cei": "en", "goemotions": "en"}
N_TRAIN, N_TEST = 3000, 1500
FEATURES = {
    "words": None,
    "words, character 3–5-grams": [CharacterNGrams(3, 5)],
    "words, word pairs": [WordNGrams(2)],
    "words and both": [CharacterNGrams(3, 5), WordNGrams(2)],
}


def draw(documents, most, seed=0):
    """Return at most so many of the documents."""
    order = np.random.default_rng(seed).permutation(len(documents))[:most]
    return [documents[k] for k in order]


def run(name, language):
    """Print a row per set of features."""
    train, test = (
        draw(part, n) for part, n in zip(split_documents(name), (N_TRAIN, N_TEST), strict=True)
    )
    truth = [document.labels for document in test]
    for title, features in FEATURES.items():
        labeler = Labeler("mml", language=language, features=features)
        begin = time.perf_counter()
        labeler.fit(train)
        learning = time.perf_counter() - begin
        answers = labeler.predict(test)
        weights = ", ".join(f"{block.weight:g}" for block in labeler.features_) or "–"
        f1 = samples_f1(truth, answers), macro_f1(truth, answers)
        cells = f"{title} | {weights} | {f1[0]:.3f} | {f1[1]:.3f} | {learning:.1f} s"
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or CORPORA:
        run(name, CORPORA[name])
