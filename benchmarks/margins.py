"""Maximal margin labeling as in its paper: Tables 3 and 4, Figure 2, and what is better here.

- ``margins.py run FOLDER``, then ``margins.py show FOLDER [FIGURE.png]``: Table 3, where settings
  are chosen on development pages, and Table 4 and Figure 2, five methods on eleven sets of pages.
  The folder stores a file for each method, set, split and number of training pages; finished ones
  are not run again.
- ``margins.py compare``: neighbours as in the paper, all labels, and LinearSVC.

Six sets have all their words. Of the other five there is a reduced version: 5000 pages, and the 2 %
most frequent words.
"""

import argparse
import sys
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import papers_methods as methods
from common import bag_counts, markdown, random_halves, select_models
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from polytopic import MML, PMM1, PMM2, BoosTexter
from polytopic.decision import Threshold
from polytopic.experiments.protocols import read_json, write_json
from polytopic.metrics import macro_f1, samples_f1, subset_accuracy
from polytopic.text import TermWeights

FULL = ("arts", "business", "education", "health", "reference", "science")
REDUCED = ("computers", "entertainment", "recreation", "social", "society")
SETS = tuple(sorted(FULL + REDUCED))  # in the order of the paper
TABLE_4 = {  # samples F1, subset accuracy and macro F1 of the sets
    "MD": (
        (0.55, 0.80, 0.62, 0.56, 0.64, 0.74, 0.63, 0.67, 0.61, 0.73, 0.60),
        (0.44, 0.63, 0.51, 0.45, 0.55, 0.58, 0.54, 0.60, 0.52, 0.65, 0.44),
        (0.30, 0.25, 0.27, 0.25, 0.37, 0.35, 0.47, 0.29, 0.37, 0.36, 0.29),
    ),
    "MC": (
        (0.44, 0.81, 0.59, 0.43, 0.52, 0.74, 0.46, 0.58, 0.54, 0.71, 0.55),
        (0.32, 0.62, 0.46, 0.34, 0.44, 0.53, 0.38, 0.51, 0.43, 0.60, 0.40),
        (0.26, 0.27, 0.25, 0.23, 0.33, 0.35, 0.39, 0.25, 0.35, 0.35, 0.28),
    ),
    "PM": (
        (0.50, 0.75, 0.61, 0.51, 0.61, 0.66, 0.55, 0.63, 0.52, 0.66, 0.54),
        (0.21, 0.48, 0.35, 0.19, 0.31, 0.34, 0.25, 0.39, 0.22, 0.45, 0.21),
        (0.24, 0.20, 0.19, 0.21, 0.30, 0.23, 0.36, 0.24, 0.28, 0.18, 0.25),
    ),
    "SV": (
        (0.46, 0.76, 0.55, 0.48, 0.54, 0.67, 0.49, 0.56, 0.47, 0.64, 0.49),
        (0.29, 0.57, 0.41, 0.30, 0.42, 0.47, 0.37, 0.49, 0.36, 0.55, 0.32),
        (0.29, 0.29, 0.30, 0.25, 0.35, 0.35, 0.40, 0.25, 0.31, 0.31, 0.26),
    ),
    "BO": (
        (0.38, 0.75, 0.47, 0.37, 0.49, 0.60, 0.44, 0.50, 0.39, 0.59, 0.44),
        (0.22, 0.53, 0.34, 0.23, 0.36, 0.39, 0.33, 0.41, 0.28, 0.49, 0.27),
        (0.22, 0.20, 0.17, 0.16, 0.29, 0.26, 0.33, 0.16, 0.19, 0.15, 0.20),
    ),
}
CURVE = (2000, 250, 500, 1000)
VARIANTS = {  # the nearest to the paper's methods
    "MD": "tfidf",
    "MC": "tfidf, answer",
    "PM": "PMM1",
    "SV": "tf, C 1, J balanced",
    "BO": "above 0",
}
MEASURES = {
    "Samples F1": samples_f1,
    "Subset accuracy": subset_accuracy,
    "Macro F1": macro_f1,
}
NEAR = 0.03  # within which a number counts as reproduced

pages = cache(bag_counts)


def corpus_of(name):
    """Return the corpus of a set of pages."""
    return f"yahoo-{name}-full" if name in FULL else f"yahoo-{name}"


# Table 3: what was tried on development pages

DEVELOPMENT = 5  # the split after those of Table 4
PAPER_COSTS, ROUNDS = (0.1, 1.0, 10.0), (2000, 4000, 6000, 8000, 10_000)
CHOSEN = {  # in the paper
    "MD": "tf and tfidf, C 1",
    "MC": "tf and tfidf, C 1",
    "PM": "tf, PMM1",
    "SV": "tf, C 1",
    "BO": "binary, R 8000",
}


def try_margins(X, Y, X_test, **settings):
    """Answer by maximal margin labeling with each weight and C."""
    for scheme in ("tf", "tfidf"):
        train, test = methods.weigh(X, X_test, scheme)
        for C in PAPER_COSTS:
            model = MML(C, labels="neighbours", max_iter=1000, **settings)
            yield f"{scheme}, C {C:g}", model.fit(train, Y).predict(test)


def try_mixtures(X, Y, X_test):
    """Answer by both mixtures."""
    for make in (PMM1, PMM2):
        model = make(smoothing=1.0, prior="uniform", decode="greedy")
        yield f"tf, {make.__name__}", model.fit(X, Y).predict(X_test)


def try_svms(X, Y, X_test):
    """Answer by one SVM for each label with each weight and C; labels above 0."""
    for scheme in ("tf", "tfidf"):
        weights = methods.weigh(X, X_test, scheme)
        found = methods.svms(*weights, Y, [(C, 1) for C in PAPER_COSTS])
        for C, scores in zip(PAPER_COSTS, found, strict=True):
            yield f"{scheme}, C {C:g}", scores > 0


def try_rules(X, Y, X_test):
    """Answer by the first rules of BoosTexter, of which each number is a model of its own."""
    arrays = BoosTexter(max(ROUNDS)).fit(X, Y).to_arrays()
    for n in ROUNDS:
        first = {**arrays, **{name: arrays[name][:n] for name in ("words", "outputs", "z")}}
        model = BoosTexter(n, best_if_none=False)
        model.from_arrays(first, labels=list(range(Y.shape[1])), n_words=X.shape[1])
        yield f"binary, R {n}", model.predict_indicator(X_test).toarray()


TABLE_3 = {
    "MD": try_margins,
    "MC": lambda *pages: try_margins(*pages, similarity="cosine", empty="answer"),
    "PM": try_mixtures,
    "SV": try_svms,
    "BO": try_rules,
}

# Running

JOBS = {
    "MD": methods.dice,
    "MC": methods.cosine,
    "MCs": methods.cosine_near,
    "PM": methods.pmm1,
    "SV": methods.margins,
    "BO": methods.rules,
}


def run(folder, tables, jobs, sets, sizes, n_splits):
    """Run what is not yet in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tasks = [("3", job, 2000, DEVELOPMENT, name) for job in TABLE_3 for name in sets]
    tasks += [
        ("4", job, n_train, split, name)
        for split in range(n_splits)
        for job in JOBS
        for n_train in (CURVE[:1] if job == "MCs" else sizes)
        for name in sets
    ]
    for table, job, n_train, split, name in tasks:
        path = folder / f"{table}-{job}-{name}-{n_train}-{split}.json"
        if table in tables and job in jobs and not path.exists():
            start = time.process_time()
            write_json(path, measure(table, job, name, n_train, split))
            print(path.stem, f"{time.process_time() - start:.1f} s", file=sys.stderr, flush=True)


def measure(table, job, name, n_train, split):
    """Return F, subset accuracy, macro F1 and the labels per page, by variant."""
    X, Y = pages(corpus_of(name))
    train, test = random_halves(X.shape[0], split)
    train = train[:n_train]
    if table == "3":
        answers = dict(TABLE_3[job](X[train], Y[train], X[test]))
    else:
        answers = JOBS[job](X[train], Y[train], X[test], Y[test])
    return {
        variant: [*(float(f(Y[test], s)) for f in MEASURES.values()), float(s.sum() / len(test))]
        for variant, s in answers.items()
    }


# Tables


def load_results(folder):
    """Return what is in the folder: table, job, set, training pages, split and its figures."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        table, job, name, n_train, split = path.stem.split("-")
        found[table, job, name, int(n_train), int(split)] = read_json(path)
    return found


def figures(found, table, job, name, n_train, variant):
    """Return the figures of a variant, (n_splits, 4): three measures, and labels per page."""
    splits = [k for k in found if k[:4] == (table, job, name, n_train) and variant in found[k]]
    return np.array([found[k][variant] for k in splits]).reshape(-1, 4)


def variants(found, table, job):
    """Return the names of a method's variants."""
    return list(dict.fromkeys(v for key in found if key[:2] == (table, job) for v in found[key]))


def mean_over(found, table, job, n_train, variant, sets):
    """Return the mean figures over sets, nothing if one has not been run."""
    own = [figures(found, table, job, name, n_train, variant) for name in sets]
    return np.mean([f.mean(axis=0) for f in own], axis=0) if all(f.size for f in own) else None


def number(value):
    """Return a figure as text."""
    return "–" if value is None else f"{value:.3f}".removeprefix("0")


def marked(name):
    """Return the name of a set, with a mark if it is reduced."""
    return name if name in FULL else f"{name}*"


def show_table_3(found):
    """Print F on development pages by what was tried, the best of each set in bold."""
    rows = []
    for job, chosen in CHOSEN.items():
        tried = variants(found, "3", job)
        shown = {v: [figures(found, "3", job, s, 2000, v)[:, 0] for s in SETS] for v in tried}
        for variant, values in shown.items():
            best = [
                max(shown[v][k].mean() for v in tried if shown[v][k].size)
                if values[k].size
                else None
                for k in range(len(SETS))
            ]
            cells = [
                "–"
                if not own.size
                else f"**{number(own.mean())}**"
                if own.mean() == top
                else number(own.mean())
                for own, top in zip(values, best, strict=True)
            ]
            means = (mean_over(found, "3", job, 2000, variant, part) for part in (FULL, SETS))
            rows.append(
                (job, variant, *cells, *(number(None if m is None else m[0]) for m in means))
            )
        print(f"{job}: the paper chose {chosen}")
    markdown(["", "tried", *map(marked, SETS), "full", "all"], rows)


def with_paper(own, paper):
    """Return the mean over splits with the paper's number, bold where they are not near."""
    paper_text = f"({number(paper)[:-1]})"
    if not own.size:
        return f"– {paper_text}"
    text = f"{number(own.mean())} {paper_text}"
    return text if abs(round(own.mean(), 3) - paper) <= NEAR + 1e-9 else f"**{text}**"


def show_table_4(found):
    """Print the three measures of five methods next to the paper's."""
    near = {part: [0, 0] for part in ("full", "reduced")}
    for place, title in enumerate(MEASURES):
        rows = []
        for k, name in enumerate(SETS):
            row = [marked(name)]
            for job, paper in TABLE_4.items():
                own = figures(found, "4", job, name, 2000, VARIANTS[job])[:, place]
                row.append(with_paper(own, paper[place][k]))
                count = near["full" if name in FULL else "reduced"]
                count[0] += own.size > 0 and "**" not in row[-1]
                count[1] += own.size > 0
            rows.append(row)
        for label, part in (("mean, full", FULL), ("mean, reduced", REDUCED), ("mean", SETS)):
            row = [label]
            for job, paper in TABLE_4.items():
                mean = mean_over(found, "4", job, 2000, VARIANTS[job], part)
                value = np.mean([paper[place][SETS.index(name)] for name in part])
                row.append(f"{number(None if mean is None else mean[place])} ({number(value)})")
            rows.append(row)
        print(f"\n{title}:\n")
        markdown(["set", *TABLE_4], rows)
    for part, (n_near, n) in near.items():
        print(f"\n{part} sets: {n_near} of {n} numbers within {NEAR}")


def show_variants(found):
    """Print how far each variant is from the paper: mean, mean distance, largest distance."""
    for part, names in (("full", FULL), ("reduced", REDUCED)):
        rows = []
        for job in JOBS:
            papers = TABLE_4[job.removesuffix("s")]
            for variant in variants(found, "4", job):
                own = [figures(found, "4", job, name, 2000, variant) for name in names]
                if all(values.size for values in own):
                    means = np.array([values.mean(axis=0) for values in own])
                    row = [job, variant]
                    for place, paper in enumerate(papers):
                        away = means[:, place] - [paper[SETS.index(name)] for name in names]
                        mean, largest = means[:, place].mean(), np.abs(away).max()
                        row.append(f"{number(mean)} {away.mean():+.3f} {number(largest)}")
                    rows.append([*row, f"{means[:, 3].mean():.2f}"])
        print(f"\nVariants, {part} sets:\n")
        markdown(["method", "variant", *MEASURES, "labels"], rows)


def curves(found, sets):
    """Return the mean over sets of each method's measures by the number of training pages."""
    lines = {}
    for job, variant in VARIANTS.items():
        means = [mean_over(found, "4", job, n, variant, sets) for n in sorted(CURVE)]
        lines[job] = np.array([np.full(4, np.nan) if mean is None else mean for mean in means])
    return lines


def show_figure_2(found, path):
    """Print the learning curves, and draw them if a path is given."""
    for part, sets in (("full", FULL), ("reduced", REDUCED), ("all", SETS)):
        print(f"\nFigure 2, {part} sets:\n")
        heads = [f"{title}, {n}" for title in MEASURES for n in sorted(CURVE)]
        rows = [
            [job, *(number(None if np.isnan(x) else x) for x in lines[:, :3].T.ravel())]
            for job, lines in curves(found, sets).items()
        ]
        markdown(["method", *heads], rows)
    if path:
        draw(path, {"full": curves(found, FULL), "reduced": curves(found, REDUCED)})


def draw(path, parts):
    """Draw learning curves, with the paper's numbers for 2000 pages."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7), layout="constrained")
    axes = figure.subplots(len(parts), len(MEASURES), squeeze=False)
    for row, (part, lines) in enumerate(parts.items()):
        places = [SETS.index(name) for name in (FULL if part == "full" else REDUCED)]
        for place, title in enumerate(MEASURES):
            own = axes[row, place]
            for (job, values), mark in zip(lines.items(), "osv^D", strict=True):
                (line,) = own.plot(sorted(CURVE), values[:, place], marker=mark, label=job, lw=1.3)
                paper = np.mean(np.array(TABLE_4[job][place])[places])
                own.plot(2080, paper, marker="_", color=line.get_color(), markersize=14, mew=2)
            own.set(title=f"{title}, {part} sets", xlabel="training pages", xticks=sorted(CURVE))
            own.tick_params(axis="x", labelsize="small")
            own.grid(alpha=0.3)
    axes[0, 0].legend(fontsize="small")
    figure.savefig(path, dpi=110)


def show(found, path):
    """Print all tables and how many splits they rest on."""
    print("Table 3\n")
    show_table_3(found)
    print("\nTable 4")
    show_table_4(found)
    show_variants(found)
    show_figure_2(found, path)
    print("\nSplits of the sets by the number of training pages (least and most):\n")
    for job in JOBS:
        for n in CURVE:
            counts = [sum(k[:4] == ("4", job, name, n) for k in found) for name in SETS]
            if any(counts):
                by_set = ", ".join(f"{s} {c}" for s, c in zip(SETS, counts, strict=True))
                print(f"{job}, {n}: {by_set}")


# What is better here

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


def svc_answers(X, Y, X_test):
    """Return what one-vs-rest LinearSVC answers: plain, and with the best label if none."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Label not .* is present")
        scores = OneVsRestClassifier(LinearSVC()).fit(X, Y).decision_function(X_test)
    scores[:, ~Y.any(axis=0)] = -np.inf  # scikit-learn gives an absent label 0
    return {"LinearSVC": scores > 0, "LinearSVC, or best": Threshold(0.0).decide(scores)}


def compare(models, name, scheme, n_splits):
    """Return F, subset accuracy and macro F1 of each model and split."""
    X, Y = pages(corpus_of(name))
    scores = {}
    for seed in range(n_splits):
        train, test = random_halves(X.shape[0], seed)
        X_train, X_test = X[train], X[test]
        known = X_train.getnnz(axis=0) > 0
        weights = TermWeights(scheme, unit_length=True).fit(X_train[:, known])
        X_train, X_test = (weights.transform(part[:, known]) for part in (X_train, X_test))
        for model_name, model in models.items():
            if model is None:
                answers = svc_answers(X_train, Y[train], X_test)
            else:
                answers = {model_name: model.fit(X_train, Y[train]).predict(X_test)}
            for row, answer in answers.items():
                found = [f(Y[test], answer) for f in MEASURES.values()]
                scores.setdefault(row, []).append(found)
    return {model_name: np.array(rows) for model_name, rows in scores.items()}


def report(name, models, schemes, n_splits):
    """Print the figures of a set of pages next to the paper's."""
    paper = (numbers[SETS.index(name)] for numbers in TABLE_4["MD"])
    rows = [(marked(name), "paper, MML-Dice", "", *(f"{value:.2f}" for value in paper))]
    for scheme in schemes:
        for model, scores in compare(models, name, scheme, n_splits).items():
            mean, std = scores.mean(axis=0), scores.std(axis=0)
            cells = (f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, std, strict=True))
            rows.append((marked(name), model, scheme, *cells))
            print(*rows[-1], file=sys.stderr, flush=True)
    markdown(["set", "model", "weights", "F", "subset accuracy", "macro F1"], rows)


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run what a folder lacks")
    running.add_argument("folder", type=Path)
    running.add_argument("--tables", nargs="+", default=["3", "4"], choices=["3", "4"])
    running.add_argument("--jobs", nargs="+", default=list(JOBS), choices=list(JOBS))
    running.add_argument("--sizes", nargs="+", type=int, default=CURVE)
    showing = commands.add_parser("show", help="print the tables of a folder")
    showing.add_argument("folder", type=Path)
    showing.add_argument("figure", type=Path, nargs="?")
    comparing = commands.add_parser("compare", help="compare models")
    comparing.add_argument("models", nargs="*", help="words in the names of models; all by default")
    comparing.add_argument("--weights", nargs="+", default=WEIGHTS, choices=WEIGHTS)
    for command, sets in ((running, SETS), (comparing, FULL)):
        command.add_argument("--sets", nargs="+", default=list(sets), choices=SETS)
        command.add_argument("--splits", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(
            arguments.folder,
            arguments.tables,
            arguments.jobs,
            arguments.sets,
            arguments.sizes,
            arguments.splits,
        )
    elif arguments.command == "show":
        show(load_results(arguments.folder), arguments.figure)
    else:
        for name in arguments.sets:
            report(
                name, select_models(MODELS, arguments.models), arguments.weights, arguments.splits
            )


if __name__ == "__main__":
    main()
