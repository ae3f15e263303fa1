"""The time to explain a text compared with the time to label it, on real texts.

A labeler learns a corpus's training documents and processes test documents one at a time:
``predict([text])``, ``explain(text)``, and ``explain`` with the positions of the words, which are
looked up only on request. Each text is processed once before the clock starts, then by all three in
turn. The goal: explain takes less than 2 × predict + 5 ms.
"""

import argparse
import time

import numpy as np
from common import markdown, split_documents

from polytopic import Labeler

CORPORA = ("reuters21578", "debtags-en")
MODELS = ("pmm1", "pdmm")
REPEATS = 3


def goal(predict):
    """Return the most ms that explain may take."""
    return 2 * predict + 5


def measure(labeler, texts):
    """Return ms of predict, explain and explain with places (rows) for each text."""
    calls = (
        lambda text: labeler.predict([text]),
        labeler.explain,
        lambda text: labeler.explain(text).places,
    )
    for text in texts:  # compile, warm caches
        for call in calls:
            call(text)
    times = np.empty((REPEATS, len(calls), len(texts)))
    for repeat in times:
        for column, text in enumerate(texts):
            for row, call in enumerate(calls):
                start = time.perf_counter()
                call(text)
                repeat[row, column] = time.perf_counter() - start
    return np.median(times, axis=0) * 1e3


def report(corpora, n_texts):
    """Print the table."""
    rows = []
    for name in corpora:
        train, test = split_documents(name)
        chosen = np.random.default_rng(0).choice(len(test), n_texts, replace=False)
        texts = [test[d].text for d in chosen]
        for model in MODELS:
            labeler = Labeler(model=model).fit(train)
            times = measure(labeler, texts)
            predict, explain, placed = np.median(times, axis=1)
            less = (times[1:] < goal(times[0])).sum(axis=1)
            rows.append(
                (
                    name,
                    model,
                    *(f"{ms:.2f}" for ms in (predict, explain, placed, goal(predict))),
                    "yes" if explain < goal(predict) else "no",
                    *less,
                )
            )
    print(f"\n{n_texts} test documents each; medians, in ms; a text's time is that of {REPEATS}\n")
    markdown(
        [
            "corpus",
            "model",
            "predict",
            "explain",
            "with places",
            "goal",
            "explain < goal",
            "of the texts",
            "of the texts, with places",
        ],
        rows,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--texts", type=int, default=100, help="of each corpus; 100 by default")
    arguments = parser.parse_args()
    report(arguments.corpora, arguments.texts)
