"""Maximal margin labeling as in its paper: five random splits of 2000 and 3000 web pages.

The paper's MML with Dice is compared with neighbours as in the paper, all labels, and LinearSVC.
"""

import argparse
import sys
import warnings

import numpy as np
from common import bag_counts, markdown, random_halves, select_models
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from polytopic import MML
from polytopic.decision import Threshold
from polytopic.metrics import macro_f1, samples_f1, subset_accuracy
from polytopic.text import TermWeights

PAPER = {  # Kazawa et al., Table 4, column MD: F, subset accuracy, macro F1
    "arts": (0.55, 0.44, 0.30),
    "business": (0.80, 0.63, 0.25),
    "education": (0.56, 0.45, 0.25),
    "health": (0.74, 0.58, 0.35),
    "reference": (0.67, 0.60, 0.29),
    "science": (0.61, 0.52, 0.37),
}
WEIGHTS = ("tf", "tfidf")
MODELS = {
    "neighbours, Dice": MML(labels="neighbours"),
    "neighbours, cosine": MML(labels="neighbours", similarity="cosine"),
    "all labels, exact": MML(goal="exact"),
    "all labels, exact, C .5": MML(goal="exact", C=0.5),
    "all labels, exact, C .8": MML(goal="exact", C=0.8),
    "all labels, exact, C auto": MML(goal="exact", C="auto"),
    "all labels, f": MML(),
    "all labels, f, C .3": MML(C=0.3),
    "LinearSVC": None,
}
MEASURES = (samples_f1, subset_accuracy, macro_f1)


def svc_answers(X, Y, X_test):
    """Return what one-vs-rest LinearSVC answers: plain, and with the best label if none."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Label not .* is present")
        scores = OneVsRestClassifier(LinearSVC()).fit(X, Y).decision_function(X_test)
    scores[:, ~Y.any(axis=0)] = -np.inf  # scikit-learn gives an absent label 0
    return {"LinearSVC": scores > 0, "LinearSVC, or best": Threshold(0.0).decide(scores)}


def measure(models, X, Y, scheme, n_splits):
    """Return F, subset accuracy and macro F1 of each model and split."""
    scores = {}
    for seed in range(n_splits):
        train, test = random_halves(X.shape[0], seed)
        X_train, X_test = X[train], X[test]
        known = X_train.getnnz(axis=0) > 0
        weights = TermWeights(scheme, unit_length=True).fit(X_train[:, known])
        X_train, X_test = (weights.transform(part[:, known]) for part in (X_train, X_test))
        for name, model in models.items():
            if model is None:
                answers = svc_answers(X_train, Y[train], X_test)
            else:
                answers = {name: model.fit(X_train, Y[train]).predict(X_test)}
            for row, answer in answers.items():
                figures = [f(Y[test], answer) for f in MEASURES]
                scores.setdefault(row, []).append(figures)
    return {name: np.array(rows) for name, rows in scores.items()}


def report(name, models, schemes, n_splits):
    """Print the figures of a set of pages next to the paper's."""
    X, Y = bag_counts(f"yahoo-{name}-full")
    rows = [(name, "paper, MML-Dice", "", *(f"{figure:.2f}" for figure in PAPER[name]))]
    for scheme in schemes:
        for model, scores in measure(models, X, Y, scheme, n_splits).items():
            mean, std = scores.mean(axis=0), scores.std(axis=0)
            figures = (f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, std, strict=True))
            rows.append((name, model, scheme, *figures))
            print(*rows[-1], file=sys.stderr, flush=True)
    markdown(["set", "model", "weights", "F", "subset accuracy", "macro F1"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="words in the names of models; all by default")
    parser.add_argument("--sets", nargs="+", default=list(PAPER), choices=list(PAPER))
    parser.add_argument("--weights", nargs="+", default=WEIGHTS, choices=WEIGHTS)
    parser.add_argument("--splits", type=int, default=5)
    arguments = parser.parse_args()
    for pages in arguments.sets:
        report(pages, select_models(MODELS, arguments.models), arguments.weights, arguments.splits)
