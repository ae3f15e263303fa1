"""Maximal margin labeling compared with LinearSVC, Omikuji and fastText, in one run.

All choose their settings, and the baselines one threshold for all labels, by the same three folds
of the same training documents, at most 3000: once for samples F1, once for subset accuracy. Where
no label passes the threshold, the best one is predicted. Omikuji and fastText are skipped if they
are not installed. CPU times are those of the last fit and the predictions, on one thread, without
the choice of settings.
"""

import argparse
import os
import sys
import time
from importlib.util import find_spec

os.environ["POLYTOPIC_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from baselines import BASELINES, omikuji_scores
from common import markdown
from parts import read_parts

from polytopic import MML
from polytopic.decision import Threshold
from polytopic.metrics import macro_f1, samples_f1, subset_accuracy
from polytopic.text import TermWeights

NAMES = ("reuters21578", "debtags-en", "ohsumed20k", "czech-pirati", "arxiv-cs")
MOST_DOCS, FOLDS = 3000, 3
GOALS = {"f": samples_f1, "exact": subset_accuracy}
COMPETITORS = {
    "LinearSVC": (  # the dual solver has the same answers, faster where documents are many
        BASELINES["LinearSVC"][0],
        [{"C": C, "dual": True} for C in (1, 0.5, 2)],
        *BASELINES["LinearSVC"][2:],
    ),
    "Omikuji": (
        omikuji_scores,
        [{}, {"collapse_every_n_layers": 5}],
        np.linspace(0.02, 0.9, 45),
        0.5,
    ),
    "fastText": (
        BASELINES["fastText"][0],
        BASELINES["fastText"][1][:1],
        *BASELINES["fastText"][2:],
    ),
}


def folds(train):
    """Return the documents of each fold and the others, as MML takes them."""
    order = np.random.RandomState(0).permutation(train.X.shape[0])[:MOST_DOCS]
    for fold in range(FOLDS):
        held_out = np.zeros(order.size, dtype=bool)
        held_out[fold::FOLDS] = True
        yield train.rows(order[held_out]), train.rows(order[~held_out])


def tune_for_goals(scores_of, choices, grid, train):
    """Return the best settings and threshold for each goal by held-out folds."""
    best = dict.fromkeys(GOALS, (-1.0, None, None))
    for settings in choices:
        parts = [(out, scores_of(settings, rest, out)[0]) for out, rest in folds(train)]
        for value in grid:
            answers = [(out.Y, Threshold(value).decide(scores)) for out, scores in parts]
            for goal, measure in GOALS.items():
                mean = float(np.mean([measure(*pair) for pair in answers]))
                found = mean, settings, float(value)
                best[goal] = max(best[goal], found, key=lambda row: row[0])
    return {goal: row[1:] for goal, row in best.items()}


def competitor_answers(name, train, test, *, usual_too):
    """Yield the name, the predictions and the CPU seconds of a baseline."""
    scores_of, choices, grid, usual = COMPETITORS[name]
    chosen = tune_for_goals(scores_of, choices, grid, train)
    fitted = []
    rules = {f"{name}, tuned for {goal}": pair for goal, pair in chosen.items()}
    if usual_too:
        rules[f"{name}, threshold {usual:g} or best"] = (choices[0], usual)
    for row, (settings, value) in rules.items():
        known = [found for found in fitted if found[0] == settings]
        if not known:
            start = time.process_time()
            (scores,) = scores_of(settings, train, test)
            known = [(settings, scores, time.process_time() - start)]
            fitted += known
        _, scores, seconds = known[0]
        print(f"{row}: {settings}, threshold {value:.2f}", file=sys.stderr)
        yield row, Threshold(value).decide(scores), seconds


def our_answers(train, test):
    """Yield the same of maximal margin labeling for each goal."""
    weights = TermWeights("ltc").fit(train.X)
    for goal in GOALS:
        model = MML(C="auto", goal=goal).fit(weights.transform(train.X), train.Y)
        again = MML(C=model.tuned_["C"], goal=goal)
        start = time.process_time()
        answers = again.fit(weights.transform(train.X), train.Y).predict(weights.transform(test.X))
        yield f"MML, goal {goal}, C {again.C:g}", answers, time.process_time() - start


def report(name, competitors, *, usual_too):
    """Print the table of a corpus."""
    train, test = read_parts(name)
    rows = []

    def add(found):
        for row, answers, seconds in found:
            figures = (f(test.Y, answers) for f in (samples_f1, subset_accuracy, macro_f1))
            rows.append((name, row, *(f"{figure:.3f}" for figure in figures), f"{seconds:.1f}"))
            print(*rows[-1], file=sys.stderr, flush=True)

    add(our_answers(train, test))
    for competitor in competitors:
        add(competitor_answers(competitor, train, test, usual_too=usual_too))
    markdown(["corpus", "model", "F", "subset accuracy", "macro F1", "CPU s"], rows)
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument(
        "--competitors", nargs="+", default=list(COMPETITORS), choices=list(COMPETITORS)
    )
    parser.add_argument("--tuned-only", action="store_true", help="no usual thresholds")
    arguments = parser.parse_args()
    modules = {"LinearSVC": "sklearn", "Omikuji": "omikuji", "fastText": "fasttext"}
    present = [competitor for competitor in arguments.competitors if find_spec(modules[competitor])]
    for corpus in arguments.corpora:
        report(corpus, present, usual_too=not arguments.tuned_only)
