"""Which maximal margin labeling should be the default: weights, goal and C on many corpora.

Three-fold cross-validation on at most 3000 training documents. The test documents are used only
with the best C, by samples F1 for ``goal="f"`` and by subset accuracy for "exact".
"""

import argparse
import sys
import time
import warnings

import numpy as np
from common import markdown
from parts import CORPORA, read_parts
from sklearn.exceptions import ConvergenceWarning

from polytopic import MML
from polytopic.metrics import macro_f1, samples_f1, subset_accuracy
from polytopic.text import TermWeights

MOST_DOCS, FOLDS = 3000, 3
COSTS = (0.1, 0.3, 1.0, 3.0)
GOALS = ("f", "exact")
CHOICES = [(scheme, goal) for scheme in ("ltc", "tfidf") for goal in GOALS]


def cross_validate(train, scheme, model):
    """Return F, subset accuracy and macro F1 over held-out folds of training documents."""
    order = np.random.RandomState(0).permutation(train.X.shape[0])[:MOST_DOCS]
    truth, answers = [], []
    for fold in range(FOLDS):
        held_out = np.zeros(order.size, dtype=bool)
        held_out[fold::FOLDS] = True
        rest, out = order[~held_out], order[held_out]
        weights = TermWeights(scheme).fit(train.X[rest])
        model.fit(weights.transform(train.X[rest]), train.Y[rest])
        truth.append(train.Y[out])
        answers.append(model.predict(weights.transform(train.X[out])))
    return compute_metrics(np.vstack(truth), np.vstack(answers))


def evaluate_on_test(train, test, scheme, model):
    """Return the figures on the test documents."""
    weights = TermWeights(scheme).fit(train.X)
    model.fit(weights.transform(train.X), train.Y)
    return compute_metrics(test.Y, model.predict(weights.transform(test.X)))


def compute_metrics(truth, answers):
    """Return F, subset accuracy and macro F1."""
    return [f(truth, answers) for f in (samples_f1, subset_accuracy, macro_f1)]


def format_figures(figures):
    """Return figures as in the tables."""
    return " ".join(f"{figure:.3f}".lstrip("0") for figure in figures)


def report(name):
    """Print the two tables of a corpus."""
    train, test = read_parts(name)
    rows = []
    for scheme, goal in CHOICES:
        start = time.process_time()
        figures = [cross_validate(train, scheme, MML(C=C, goal=goal)) for C in COSTS]
        C = COSTS[np.argmax([row[GOALS.index(goal)] for row in figures])]
        final = format_figures(evaluate_on_test(train, test, scheme, MML(C=C, goal=goal)))
        rows.append((name, scheme, goal, *map(format_figures, figures), f"{C:g}", final))
        seconds = time.process_time() - start
        print(*rows[-1], f"{seconds:.0f} s", sep=" | ", file=sys.stderr, flush=True)
    header = ["corpus", "weights", "goal", *(f"C {C:g}" for C in COSTS), "C chosen", "test"]
    markdown(header, rows)
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=list(CORPORA))
    warnings.simplefilter("ignore", ConvergenceWarning)
    for corpus in parser.parse_args().corpora:
        report(corpus)
