"""Tables 1 and 2 of Ueda and Saito on web pages: six methods, eleven sets, 2000 and 500 pages.

Usage: yahoo.py run FOLDER, then yahoo.py show FOLDER. The folder stores a file for each method,
set, number of training pages and split; finished ones are not run again. Settings are chosen on
training pages.

Six sets have all their words. Of the others there is a reduced version: 5000 pages, with the 2 %
most frequent words. Its first split is the given one.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from common import bag_counts, corpus_path, markdown, random_halves
from scipy import sparse

from polytopic import PMM1, PMM2
from polytopic.corpus import read_documents
from polytopic.experiments import all_methods
from polytopic.experiments.methods import Prediction, apply_threshold, tune_settings
from polytopic.experiments.protocols import Part, read_json, write_json
from polytopic.metrics import macro_f1, samples_f1, subset_accuracy

FULL = ("arts", "business", "education", "health", "reference", "science")
REDUCED = ("computers", "entertainment", "recreation", "social", "society")
SETS = tuple(sorted(FULL + REDUCED))  # in the order of the paper
TWINS = tuple(f"{name}:reduced" for name in FULL)  # to see what the reduction changes
METHODS = ("NB", "SVM", "kNN", "NN", "PMM1", "PMM2")
OTHERS = ("NB, training words", "SVM, C 100, J 5")  # to see what two choices change
TUNED = {"NB": "nb-ueda", "SVM": "svm-ueda", "kNN": "knn-ueda", "NN": "network-ueda"}
MIXTURES = {"PMM1": PMM1, "PMM2": PMM2}
MEASURES = (samples_f1, subset_accuracy, macro_f1)
NEAR = (0.01, 0.02, 0.03, 0.05)
THRESHOLDS = {"NB": 0.0, "SVM": 0.0, "kNN": 0.5, "NN": 0.5}
PAPER = {
    2000: {  # Table 1
        "NB": (0.416, 0.750, 0.565, 0.393, 0.545, 0.664, 0.518, 0.526, 0.424, 0.417, 0.472),
        "SVM": (0.471, 0.745, 0.562, 0.478, 0.569, 0.671, 0.521, 0.554, 0.492, 0.650, 0.514),
        "kNN": (0.400, 0.784, 0.511, 0.429, 0.476, 0.604, 0.444, 0.533, 0.439, 0.595, 0.464),
        "NN": (0.433, 0.774, 0.538, 0.441, 0.549, 0.660, 0.496, 0.550, 0.458, 0.622, 0.505),
        "PMM1": (0.506, 0.755, 0.610, 0.513, 0.597, 0.662, 0.552, 0.611, 0.514, 0.620, 0.542),
        "PMM2": (0.486, 0.721, 0.599, 0.483, 0.584, 0.651, 0.524, 0.601, 0.499, 0.564, 0.525),
    },
    500: {  # Table 2
        "NB": (0.212, 0.739, 0.461, 0.152, 0.341, 0.502, 0.221, 0.327, 0.176, 0.406, 0.342),
        "SVM": (0.325, 0.738, 0.449, 0.336, 0.427, 0.560, 0.321, 0.388, 0.325, 0.550, 0.383),
        "kNN": (0.347, 0.756, 0.441, 0.371, 0.439, 0.544, 0.374, 0.481, 0.353, 0.537, 0.402),
        "NN": (0.338, 0.748, 0.451, 0.338, 0.453, 0.572, 0.339, 0.431, 0.316, 0.558, 0.409),
        "PMM1": (0.439, 0.752, 0.564, 0.418, 0.530, 0.589, 0.465, 0.541, 0.403, 0.578, 0.497),
        "PMM2": (0.432, 0.697, 0.554, 0.419, 0.531, 0.594, 0.455, 0.535, 0.410, 0.579, 0.490),
    },
}

# Running


@cache
def pages(name):
    """Return counts and indicators of a set, and the rows of its given split, if it has one."""
    if name in FULL:
        return *bag_counts(f"yahoo-{name}-full"), None
    corpus = "yahoo-" + name.removesuffix(":reduced")
    X, Y = bag_counts(corpus)
    parts = np.array([document.split for document in read_documents(corpus_path(corpus))])
    return X, Y, [np.flatnonzero(parts == part) for part in ("train", "test")]


def split_pages(name, n_train, split):
    """Return the training and the test pages as parts; their texts are the numbers of pages."""
    X, Y, given = pages(name)
    train, test = random_halves(X.shape[0], split)
    if given is not None and split == 0:
        train, test = np.random.default_rng(0).permutation(given[0]), given[1]
    return [
        Part(X[rows], sparse.csr_matrix(Y[rows]), [str(row) for row in rows])
        for rows in (train[:n_train], test)
    ]


def remember(fit) -> Callable:
    """Return a fit that runs once for the same pages and settings."""
    known = {}

    def fit_once(part, settings, seed):
        key = tuple(part.texts), tuple(settings.items()), seed
        if key not in known:
            known[key] = fit(part, settings, seed)
        return known[key]

    return fit_once


def measure(job, name, n_train, split):
    """Return figures and settings by reading: "plain" or, where no label passes, "best"."""
    train, test = split_pages(name, n_train, split)
    if job in MIXTURES:
        model = MIXTURES[job](smoothing=1.0, prior="uniform", decode="greedy")
        sets = model.fit(train.X, train.Y).predict_indicator(test.X)
        return {"plain": {"figures": figures_of(test.Y, sets)}}
    job, _, variant = job.partition(", ")
    plain = all_methods()[TUNED[job]]
    if variant == "training words":
        known = np.flatnonzero(train.X.getnnz(axis=0))
        train, test = (replace(part, X=part.X[:, known]) for part in (train, test))
    elif variant:
        plain = replace(plain, settings={"costs": ((100, 5),)})
    fit = remember(plain.fit)
    answers = {}
    for reading in ("plain", "best"):

        def fit_reading(part, settings, seed, *, best=reading == "best"):
            predict = fit(part, settings, seed)

            def predict_reading(part):
                scores = predict(part).scores
                sets = apply_threshold(scores, THRESHOLDS[job], best_if_none=best)
                return Prediction(sets, scores)

            return predict_reading

        method = replace(plain, fit=fit_reading)
        settings = tune_settings(method, train, split, None)
        sets = method.fit(train, settings, split)(test).sets
        answers[reading] = {"figures": figures_of(test.Y, sets), "settings": settings}
    return answers


def figures_of(Y, sets):
    """Return F, subset accuracy, macro F1, labels per page and the share of empty predictions."""
    sizes = np.asarray(sets.sum(axis=1)).ravel()
    values = [*(f(Y, sets) for f in MEASURES), sizes.mean(), (sizes == 0).mean()]
    return [float(value) for value in values]


def run(folder, jobs, sets, splits, sizes):
    """Run what is not yet in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tasks = [(j, s, n, k) for k in splits for j in jobs for n in sizes for s in sets]
    for job, name, n_train, split in tasks:
        path = folder / f"{job}-{name}-{n_train}-{split}.json"
        if not path.exists():
            start = time.process_time()
            write_json(path, measure(job, name, n_train, split))
            print(path.stem, f"{time.process_time() - start:.1f} s", file=sys.stderr, flush=True)


# Showing


class Results:
    """What is in a folder."""

    def __init__(self, folder):
        self.cells = {}
        for path in sorted(folder.glob("*.json")):
            job, name, n_train, split = path.stem.rsplit("-", 3)
            self.cells[job, name, int(n_train), int(split)] = read_json(path)

    def answers(self, job, name, n_train, reading="plain"):
        """Return what a method has on each split of a set; mixtures have one reading."""
        reading = "plain" if job in MIXTURES else reading
        keys = [key for key in self.cells if key[:3] == (job, name, n_train)]
        return [self.cells[key][reading] for key in keys]

    def figures(self, *cell):
        """Return the figures by split, (n_splits, 5)."""
        return np.array([answer["figures"] for answer in self.answers(*cell)]).reshape(-1, 5)

    def f(self, *cell):
        """Return the mean F over splits; NaN if there is none."""
        figures = self.figures(*cell)
        return round(figures[:, 0].mean(), 3) if figures.size else np.nan

    def mean_f(self, job, sets, n_train, reading="plain"):
        """Return the mean F over sets as text."""
        value = np.mean([self.f(job, name, n_train, reading) for name in sets])
        return "–" if np.isnan(value) else f"{value:.3f}"

    def mean_labels(self, job, sets, n_train):
        """Return the mean number of labels per page as text."""
        figures = [self.figures(job, name, n_train)[:, 3] for name in sets]
        known = all(own.size for own in figures)
        return f"{np.mean([own.mean() for own in figures]):.2f}" if known else "–"

    def n_splits(self, job, n_train, sets=SETS):
        """Return the number of splits as text, a range if sets differ."""
        numbers = [len(self.figures(job, name, n_train)) for name in sets]
        low, high = min(numbers), max(numbers)
        return str(low) if low == high else f"{low} to {high}"


def show_table(results, n_train):
    """Print our mean and standard deviation, and the paper's number; heads count splits."""
    rows = []
    for place, name in enumerate(SETS):
        row = [name if name in FULL else f"{name}, reduced"]
        for job in METHODS:
            paper, own = PAPER[n_train][job][place], results.figures(job, name, n_train)[:, 0]
            if not own.size:
                row.append(f"– ({paper:.3f})")
                continue
            spread = f" ± {own.std():.3f}" if own.size > 1 else ""
            text = f"{own.mean():.3f}{spread} ({paper:.3f})"
            near = abs(round(own.mean(), 3) - paper) <= NEAR[-2] + 1e-9
            row.append(text if near else f"**{text}**")
        rows.append(row)
    markdown(["set", *(f"{job}: {results.n_splits(job, n_train)}" for job in METHODS)], rows)


def show_distances(results, n_train):
    """Print how many numbers are how near to the paper's, and the mean and largest distance."""
    rows = []
    for title, sets in (("all words", FULL), ("reduced", REDUCED)):
        every = []
        for job in METHODS:
            paper = dict(zip(SETS, PAPER[n_train][job], strict=True))
            away = np.array([results.f(job, name, n_train) - paper[name] for name in sets])
            away = away[~np.isnan(away)]
            every.append(away)
            rows.append((title, job, *_distances(away)))
        rows.append((title, "all", *_distances(np.concatenate(every))))
    heads = [f"within {limit:g}" for limit in NEAR]
    markdown(["sets", "method", "numbers", *heads, "mean", "largest"], rows)


def _distances(away):
    near = [(np.abs(away) <= limit + 1e-9).sum() for limit in NEAR]
    largest = f"{np.abs(away).max():.3f}" if away.size else "–"
    return away.size, *near, f"{away.mean():+.3f}" if away.size else "–", largest


def show_readings(results, n_train):
    """Print the mean F of both readings, empty predictions, and where PMM1 is ahead of six."""
    rows, first = [], dict(zip(SETS, PAPER[n_train]["PMM1"], strict=True))
    for job in METHODS:
        paper = dict(zip(SETS, PAPER[n_train][job], strict=True))
        row = [job]
        for sets in (FULL, REDUCED):
            row.append(f"{np.mean([paper[name] for name in sets]):.3f}")
            row += [results.mean_f(job, sets, n_train, reading) for reading in ("plain", "best")]
        known = [results.figures(job, name, n_train) for name in SETS]
        empty = [own[:, 4].mean() for own in known if own.size]
        row.append(f"{np.mean(empty):.2f}" if empty else "–")
        row.append(sum(a > paper[name] for name, a in first.items() if name in FULL))
        for reading in ("plain", "best"):
            ahead = [
                results.f("PMM1", name, n_train) > results.f(job, name, n_train, reading)
                for name in FULL
            ]
            row.append(sum(ahead))
        rows.append(row)
    heads = [f"{sets}: {what}" for sets in ("six", "five") for what in ("[1]", "plain", "best")]
    heads += ["empty", "PMM1 ahead in [1]", "of plain", "of best"]
    markdown(["method", *heads], rows)


def show_settings(results, n_train):
    """Print how often each setting was chosen, over sets and splits."""
    for job in ("kNN", "NN"):
        for reading in ("plain", "best"):
            chosen = [
                str(answer["settings"])
                for name in SETS
                for answer in results.answers(job, name, n_train, reading)
            ]
            print(f"{job}, {reading}: {dict(Counter(chosen).most_common())}")


def show_others(results, n_train):
    """Print the mean F over sets of variants, and of the reduced version of the six sets."""
    rows = []
    for job in (*METHODS, *OTHERS):
        sets = [name for name in FULL if results.figures(job, f"{name}:reduced", n_train).size]
        pair = [results.mean_f(job, s, n_train) for s in (FULL, TWINS)]
        away = [results.f(job, f"{s}:reduced", n_train) - results.f(job, s, n_train) for s in sets]
        ends = [f"{value:+.3f}" for value in (min(away), max(away))] if away else ["–", "–"]
        own = [results.mean_labels(job, s, n_train) for s in (FULL, TWINS)]
        rows.append((job, *pair, *ends, *own, results.mean_f(job, FULL, n_train, "best")))
    heads = ["six sets", "reduced", "lowest", "highest difference"]
    heads += ["labels", "labels, reduced", "six sets, best"]
    markdown(["method", *heads], rows)


def show_mixtures(results):
    """Print F, subset accuracy and macro F1 of the mixtures after 2000 pages."""
    for job in MIXTURES:
        rows = []
        for name in SETS:
            own = results.figures(job, name, 2000)[:, :3]
            pairs = zip(own.mean(axis=0), own.std(axis=0), strict=True)
            rows.append((name, *(f"{mean:.3f} ± {std:.3f}" for mean, std in pairs)))
        print(f"\n{job}\n")
        markdown(["set", "F", "subset accuracy", "macro F1"], rows)


def show(results):
    """Print all tables."""
    for table, n_train in ((1, 2000), (2, 500)):
        print(f"\nTable {table}, {n_train} pages: F, and [1]\n")
        show_table(results, n_train)
        print("\nDistances\n")
        show_distances(results, n_train)
        print("\nReadings, mean over sets\n")
        show_readings(results, n_train)
        print("\nChosen settings\n")
        show_settings(results, n_train)
        print("\nVariants, mean over sets\n")
        show_others(results, n_train)
    show_mixtures(results)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "show"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS + OTHERS)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS + TWINS)
    parser.add_argument("--splits", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--sizes", nargs="+", type=int, default=[2000, 500])
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(
            arguments.folder,
            arguments.methods,
            arguments.sets,
            arguments.splits,
            arguments.sizes,
        )
    else:
        show(Results(arguments.folder))
