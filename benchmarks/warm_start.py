"""How much a warm start differs from a cold one when a fitted labeler learns or forgets documents.

``learn`` and ``forget`` with ``warm=True`` are compared with the same calls without it, on random
documents, and with a cold fit that visits documents in another order, which approximates the same
weights. Texts are analysed beforehand; everything runs on one thread.
"""

import argparse
import os
import sys
import time
from copy import copy

os.environ["POLYTOPIC_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from common import markdown, split_documents
from sklearn.base import clone

from polytopic import MML, Labeler
from polytopic.metrics import samples_f1, subset_accuracy
from polytopic.text import Analyzer

CORPORA = ("reuters21578", "debtags-en")
CHANGES = {"learn 1 %": 0.01, "learn 10 %": 0.1, "forget 1 %": -0.01}
GOALS = ("f", "exact")
HEADER = (
    "corpus, goal",
    "change",
    "answers that differ, %",
    "F",
    "subset accuracy",
    "distance of weights, %",
    "dual, primal objective, %",
    "passes",
    "CPU s",
)


def read_bags(name):
    """Return the training and the test documents as pairs of bags of words and their labels."""
    analyzer = Analyzer("en")
    parts = []
    for documents in split_documents(name):
        documents = [d for d in documents if d.labels]
        X, terms = analyzer.count([d.text for d in documents])
        words = np.array(terms, dtype=object)
        bags = [dict(zip(words[x.indices].tolist(), x.data.tolist(), strict=True)) for x in X]
        parts.append((bags, [d.labels for d in documents]))
    return parts


def apply_change(labeler, change, part, warm):
    """Return a labeler that has learned or forgotten a part, and the CPU time it took."""
    labeler = copy(labeler)
    start = time.process_time()
    (labeler.learn if change > 0 else labeler.forget)(*part, warm=warm)
    return labeler, time.process_time() - start


def fit_labeler(model, part, seed=0):
    """Return a labeler that is fitted on bags and their labels, and the CPU time it took."""
    start = time.process_time()
    labeler = Labeler(clone(model).set_params(random_state=seed), language=None).fit(*part)
    return labeler, time.process_time() - start


def take(part, places):
    """Return some documents of a part, and their labels."""
    return tuple([column[place] for place in places] for column in part)


def compare(cold, warm, test):
    """Compare a warm or other start with a cold one; each is a labeler and a time."""
    texts, truth = test
    (one, seconds), (other, other_seconds) = cold, warm
    answers = [labeler.predict(texts) for labeler in (one, other)]
    weights = [labeler.model_.to_arrays()["weights"].ravel() for labeler in (one, other)]
    dual = [labeler.model_.objective_ for labeler in (one, other)]
    primal = [labeler.model_.objective_ + labeler.model_.dual_gap_ for labeler in (one, other)]
    return [
        100 * np.mean([a != b for a, b in zip(*answers, strict=True)]),
        *(samples_f1(truth, answer) for answer in answers),
        *(subset_accuracy(truth, answer) for answer in answers),
        100 * np.linalg.norm(weights[1] - weights[0]) / np.linalg.norm(weights[0]),
        100 * (dual[1] / dual[0] - 1),
        100 * (primal[1] / primal[0] - 1),
        *(labeler.model_.n_iter_ for labeler in (one, other)),
        *(seconds, other_seconds),
    ]


def measure(train, test, model, seed):
    """Return the figures of each change, and of another order, for one draw of documents."""
    n_docs = len(train[0])
    order = np.random.default_rng(seed).permutation(n_docs)
    figures = {}
    everything = fit_labeler(model, train)
    for name, change in CHANGES.items():
        part, rest = np.split(order, [round(abs(change) * n_docs)])
        before = fit_labeler(model, take(train, np.sort(rest))) if change > 0 else everything
        runs = [apply_change(before[0], change, take(train, part), warm) for warm in (False, True)]
        figures[name] = compare(*runs, test)
        print(model, seed, name, figures[name], file=sys.stderr, flush=True)
    figures["another order"] = compare(everything, fit_labeler(model, train, 1 + seed), test)
    return figures


def format_figures(figures):
    """Return figures as cells: cold → warm, or how far apart."""
    differ, f, f_warm, exact, exact_warm, distance, dual, primal, *cost = figures
    passes, passes_warm, seconds, seconds_warm = cost
    return (
        f"{differ:.1f}",
        f"{f:.3f} → {f_warm:.3f}",
        f"{exact:.3f} → {exact_warm:.3f}",
        f"{distance:.0f}",
        f"{dual:+.1f}, {primal:+.1f}",
        f"{passes:.1f} → {passes_warm:.1f}",
        f"{seconds:.2f} → {seconds_warm:.2f}",
    )


def report(name, models, n_draws):
    """Print the means over draws for a corpus."""
    train, test = read_bags(name)
    rows = []
    for model in models:
        small = fit_labeler(model, take(train, range(300)))[0]
        apply_change(small, 1, take(train, [301]), True)  # compile
        draws = [measure(train, test, model, seed) for seed in range(n_draws)]
        for change in draws[0]:
            mean = np.mean([draw[change] for draw in draws], axis=0)
            rows.append((f"{name}, {model.goal}", change, *format_figures(mean)))
    markdown(HEADER, rows)
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", nargs="+", default=CORPORA, choices=CORPORA)
    parser.add_argument("--goals", nargs="+", default=GOALS, choices=GOALS)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--tol", type=float, default=MML().tol)
    arguments = parser.parse_args()
    settings = {"tol": arguments.tol, "max_iter": 1000}
    for corpus in arguments.corpora:
        models = [MML(goal=goal, **settings) for goal in arguments.goals]
        report(corpus, models, arguments.draws)
