"""BoosTexter as in the paper on maximal margin labeling, and the time that rounds take.

Quality: five random splits of 2000 and 3000 web pages, by the number of rounds, with only labels
above 0 ("threshold") and with the best label if there is none ("best"). Speed: CPU time on one core
and the memory of arrays, each corpus in its own process.
"""

import argparse
import subprocess
import sys
import time
import tracemalloc

import numpy as np
from common import bag_counts, markdown, random_halves
from parts import read_parts

from polytopic import BoosTexter
from polytopic.metrics import macro_f1, samples_f1, subset_accuracy

PAPER = {  # Kazawa et al., Table 4, column BO: F, subset accuracy, macro F1
    "arts": (0.38, 0.22, 0.22),
    "business": (0.75, 0.53, 0.20),
    "education": (0.37, 0.23, 0.16),
    "health": (0.60, 0.39, 0.26),
    "reference": (0.50, 0.41, 0.16),
    "science": (0.39, 0.28, 0.19),
}
ROUNDS = (100, 300, 1000, 2000, 4000, 6000, 8000, 10000)  # of which the paper chose 8000
MEASURES = (samples_f1, subset_accuracy, macro_f1)
CORPORA = ("reuters21578", "debtags-en")


def with_first_rules(model, n_rules, **settings):
    """Return the model that the first rounds alone would have given."""
    arrays = model.to_arrays()
    for name in ("words", "outputs", "z"):
        arrays[name] = arrays[name][:n_rules]
    shorter = BoosTexter(n_rules, **settings)
    labels = model.classes_.tolist()
    return shorter.from_arrays(arrays, labels=labels, n_words=model.n_features_in_)


def measure(X, Y, rounds, n_splits):
    """Return F, subset accuracy and macro F1 by kind of answer and rounds, for each split."""
    scores = {}
    for seed in range(n_splits):
        train, test = random_halves(X.shape[0], seed)
        model = BoosTexter(max(rounds)).fit(X[train], Y[train])
        for n_rules in rounds:
            for kind in ("threshold", "best"):
                fewer = with_first_rules(model, n_rules, best_if_none=kind == "best")
                answers = fewer.predict_indicator(X[test])
                figures = [f(Y[test], answers) for f in MEASURES]
                scores.setdefault((kind, n_rules), []).append(figures)
    return {row: np.array(figures) for row, figures in scores.items()}


def quality(sets, rounds, n_splits):
    """Print the figures of sets of pages next to the paper's."""
    for name in sets:
        X, Y = bag_counts(f"yahoo-{name}-full")
        rows = [(name, "paper", 8000, *(f"{figure:.2f}" for figure in PAPER[name]))]
        for (kind, n_rules), scores in measure(X, Y, rounds, n_splits).items():
            mean, std = scores.mean(axis=0), scores.std(axis=0)
            figures = (f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, std, strict=True))
            rows.append((name, kind, n_rules, *figures))
        markdown(["set", "answer", "rounds", "F", "subset accuracy", "macro F1"], rows)
        sys.stdout.flush()


def speed(name):
    """Print the time of rounds on a corpus, the peak of memory, and the figures of answers."""
    train, test = read_parts(name)
    BoosTexter(2).fit(train.X[:500], train.Y[:500])
    start = time.process_time()
    BoosTexter(1000).fit(train.X, train.Y)
    thousand = time.process_time() - start
    start = time.process_time()
    model = BoosTexter(10000).fit(train.X, train.Y)
    all_rounds = time.process_time() - start
    start = time.process_time()
    model.predict_indicator(test.X)
    predict = time.process_time() - start
    print(f"\n{name}: {train.X.shape[0]} documents, {train.X.shape[1]} words, ", end="")
    print(f"{train.Y.shape[1]} labels; 1000 rounds {thousand:.1f} s, 10,000 {all_rounds:.1f} s,")
    print(f"{memory(train.X, train.Y):.0f} MB of arrays at the most, ", end="")
    print(f"{predict * 1e3:.0f} ms to answer {test.X.shape[0]}\n")
    rows = []
    for n_rules in ROUNDS:
        answers = with_first_rules(model, n_rules).predict_indicator(test.X)
        rows.append((n_rules, *(f"{f(test.Y, answers):.3f}" for f in MEASURES)))
    markdown(["rounds", "F", "subset accuracy", "macro F1"], rows)


def memory(X, Y):
    """Return the most memory that arrays take in a fit, in MB."""
    tracemalloc.start()
    BoosTexter(10).fit(X, Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["quality", "speed"])
    parser.add_argument("--sets", nargs="+", default=list(PAPER), choices=list(PAPER))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--corpus", choices=CORPORA)
    arguments = parser.parse_args()
    if arguments.what == "quality":
        quality(arguments.sets, ROUNDS, arguments.splits)
    elif arguments.corpus:
        speed(arguments.corpus)
    else:
        for corpus in CORPORA:
            subprocess.run([sys.executable, __file__, "speed", "--corpus", corpus], check=True)
