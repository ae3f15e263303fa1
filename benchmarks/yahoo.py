"""PMM1 and PMM2 as in their paper on its own data: five random splits of 2000 and 3000 pages.

Usage: yahoo.py [PMM1|PMM2 ...] [number of splits]
"""

import sys

import numpy as np
from common import bag_counts, markdown, random_halves

import polytopic
from polytopic.metrics import macro_f1, samples_f1, subset_accuracy

# F of Ueda & Saito, Table 1; F, subset accuracy and macro F1 of Kazawa et al., Table 4, column PM
PAPERS = {
    "PMM1": {
        "arts": (0.506, 0.50, 0.21, 0.24),
        "business": (0.755, 0.75, 0.48, 0.20),
        "education": (0.513, 0.51, 0.19, 0.21),
        "health": (0.662, 0.66, 0.34, 0.23),
        "reference": (0.611, 0.63, 0.39, 0.24),
        "science": (0.514, 0.52, 0.22, 0.28),
    },
    "PMM2": {
        "arts": (0.486, "–", "–", "–"),
        "business": (0.721, "–", "–", "–"),
        "education": (0.483, "–", "–", "–"),
        "health": (0.651, "–", "–", "–"),
        "reference": (0.601, "–", "–", "–"),
        "science": (0.499, "–", "–", "–"),
    },
}


def measure(make, name, n_splits=5):
    """Return samples F1, subset accuracy and macro F1 of each split."""
    X, Y = bag_counts(f"yahoo-{name}-full")
    scores = []
    for seed in range(n_splits):
        train, test = random_halves(X.shape[0], seed)
        model = make(smoothing=1.0, prior="uniform", decode="greedy")
        answers = model.fit(X[train], Y[train]).predict(X[test])
        scores.append([f(Y[test], answers) for f in (samples_f1, subset_accuracy, macro_f1)])
    return np.array(scores)


def report(model, n_splits):
    """Print the figures of a model next to the papers'."""
    rows = []
    for name, (f_000, f_001, ex_001, fr_001) in PAPERS[model].items():
        scores = measure(getattr(polytopic, model), name, n_splits)
        mean, std = scores.mean(axis=0), scores.std(axis=0)
        f, ex, fr = (f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, std, strict=True))
        rows.append((name, f, f_000, f_001, ex, ex_001, fr, fr_001))
    print(f"\n{model}\n")
    markdown(
        ["set", "F", "[1]", "[2]", "subset accuracy", "[2]", "macro F1", "[2]"],
        rows,
    )


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    names = [word for word in sys.argv[1:] if not word.isdigit()]
    for model in names or PAPERS:
        report(model, numbers[0] if numbers else 5)
