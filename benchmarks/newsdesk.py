"""A news desk: naive Bayes with every rule, tuned on later documents and tested on the last.

The protocol of Skorkovská et al.: the model learns from the earliest articles; ratio, size and
smoothing are tuned on the next ones by F1 (the F of average precision and average recall); the last
are for testing. A corpus with dates is split by time (70, 15 and 15 %); otherwise, a sixth of the
training part is held out for tuning. Words as they are and as lemmas. "Within .01" is the range of
ratios, or sizes, whose F1 on the tuning documents is less than .01 below the best. The second table
is about the paper's Figures 1 and 2: what size and ratio of either cohort matter on the tuning
documents. ``--smoothings 1`` is the paper's smoothing.
"""

import argparse
import sys

import numpy as np
from common import corpus_path, markdown

from polytopic import LabelSpace, LabelTree, NaiveBayes
from polytopic.corpus import read_documents
from polytopic.decision import (
    LabelDecision,
    MeanPlusStd,
    TNorm,
    TopK,
    TreeCohort,
    UnconstrainedCohort,
    WorldModel,
    tune_decision,
)
from polytopic.metrics import document_f1, samples_precision, samples_recall
from polytopic.text import Analyzer, TextCounts

CORPORA = {  # language, and where its tree is
    "czech-pirati": ("cs", None),
    "fi-makupalat": ("fi", "file"),
    "debtags-cs": ("cs", "names"),
    "debtags-en": ("en", "names"),
}
SMOOTHINGS = (0.01, 0.03, 0.1, 0.3, 1.0)
SETTINGS = {  # rows of the paper's Table 1: a rule, and what is tuned of it
    "1 topic": (TopK(1), {"k": [1]}),
    "3 topics": (TopK(3), {"k": [3]}),
    "mean plus deviation": (MeanPlusStd(), {}),
    "world model": (WorldModel(), {}),
    "cohort by tree": (TreeCohort(), {}),
    "next labels, size 15": (UnconstrainedCohort(), {"size": [15]}),
    "next labels, ratio .8": (UnconstrainedCohort(), {"ratio": [0.8]}),
    "next labels": (UnconstrainedCohort(), {}),
    "best labels, size 15": (UnconstrainedCohort(cohort="best"), {"size": [15]}),
    "best labels, ratio .8": (UnconstrainedCohort(cohort="best"), {"ratio": [0.8]}),
    "best labels": (UnconstrainedCohort(cohort="best"), {}),
    "T-norm": (TNorm(), {}),
}
COHORTS = ("next", "best")
MEASURES = (samples_precision, samples_recall, document_f1)


def read(name):
    """Return documents to learn from, to tune on and to test on, and the tree of labels."""
    documents = [d for d in read_documents(corpus_path(name)) if d.labels]
    if all(d.time is None for d in documents):
        train = [d for d in documents if d.split == "train"]
        order = np.random.default_rng(0).permutation(len(train))
        cut = len(train) * 5 // 6
        parts = [[train[k] for k in np.sort(order[:cut])], [train[k] for k in np.sort(order[cut:])]]
        parts.append([d for d in documents if d.split == "test"])
    else:
        dated = sorted((d for d in documents if d.time is not None), key=lambda d: str(d.time))
        first, second = len(dated) * 70 // 100, len(dated) * 85 // 100
        parts = [dated[:first], dated[first:second], dated[second:]]
    kind = CORPORA[name][1]
    if kind == "file":
        tree = LabelTree.from_file(corpus_path(name).parent / f"{name}.hierarchy.tsv")
    else:
        labels = {label for d in documents for label in d.labels}
        tree = LabelTree.from_names(labels, "::") if kind == "names" else None
    return parts, tree


def tuned_model(train, tune, tree, smoothings):
    """Return the fitted model and the rules that are best on the documents to tune on.

    The smoothing is that with which the best rule is best.
    """
    found = []
    for smoothing in smoothings:
        model = LabelDecision(NaiveBayes(smoothing=smoothing), TopK()).fit(*train)
        surfaces = {}
        for row, (rule, grid) in SETTINGS.items():
            if isinstance(rule, TreeCohort) and tree is None:
                continue
            surfaces[row] = tune_decision(
                model.estimator_,
                *tune,
                rules=[rule],
                metric="document_f1",
                cv="prefit",
                grid=grid,
                tree=tree,
            )
        found.append((max(s.best_score for s in surfaces.values()), smoothing, model, surfaces))
    return max(found, key=lambda entry: entry[0])[1:]


def run(name, normalize, smoothings, figure=None):
    """Return precision, recall and F1 of each row on the last documents, and its settings."""
    parts, tree = read(name)
    counts = TextCounts(analyzer=Analyzer(CORPORA[name][0], normalize=normalize))
    X = [counts.fit_transform([d.text for d in parts[0]])]
    X += [counts.transform([d.text for d in part]) for part in parts[1:]]
    train, tune, test = ((x, [d.labels for d in p]) for x, p in zip(X, parts, strict=True))
    smoothing, model, surfaces = tuned_model(train, tune, tree, smoothings)
    space = LabelSpace(model.classes_.tolist())
    rows = {}
    for row, surface in surfaces.items():
        rule = surface.best_rule
        if isinstance(rule, TreeCohort):
            rule.set_params(tree=tree)
        predicted = space.decode(model.set_params(rule=rule).predict(test[0]))
        figures = [measure(test[1], predicted) for measure in MEASURES]
        rows[row] = figures, rule, near_best(surface, rule)
        print(name, normalize, smoothing, rule, *rows[row][0], file=sys.stderr, flush=True)
    if figure:
        surface = tune_decision(
            model.estimator_, *tune, metric="document_f1", cv="prefit", tree=tree
        )
        surface.plot().savefig(figure, dpi=80)
    labels = np.mean([len(d.labels) for d in parts[2]])
    title = f"{name}: {' / '.join(str(len(p)) for p in parts)} documents, {labels:.2f} labels each"
    return title, smoothing, rows, [size_and_ratio(surfaces, kind) for kind in COHORTS]


def size_and_ratio(surfaces, kind):
    """Return a row of the second table, on the tuning documents, for a kind of cohort."""
    points = surfaces[f"{kind} labels"].surface
    by_size = {
        ratio: [p["document_f1"] for p in points if p["ratio"] == ratio and p["size"] >= 5]
        for ratio in (0.7, 0.8)
    }
    best = {
        size: max((p for p in points if p["size"] == size), key=lambda p: p["document_f1"])
        for size in (5, 15, 80)
    }
    near = {
        size: [
            p["ratio"]
            for p in points
            if p["size"] == size and p["document_f1"] > best[size]["document_f1"] - 0.01
        ]
        for size in best
    }
    return (
        f'`cohort="{kind}"`',
        *(f"{format_value(max(f))}, {format_value(max(f) - min(f))}" for f in by_size.values()),
        *(
            f"{format_value(best[size]['document_f1'])} at {best[size]['ratio']:g}, "
            f"{max(near[size]) - min(near[size]):.2f}"
            for size in best
        ),
    )


def near_best(surface, rule):
    """Return the parameters that are nearly as good as the best, but for the other of two."""
    swept = "size" if len({point["ratio"] for point in surface.surface}) == 1 else "ratio"
    if len({point[swept] for point in surface.surface}) < 2:
        return ""
    fixed = "ratio" if swept == "size" else "size"
    good = [
        point[swept]
        for point in surface.surface
        if point["document_f1"] > surface.best_score - 0.01
        and point[fixed] == getattr(rule, fixed, None)
    ]
    return f"{swept} {min(good):g}–{max(good):g}"


def format_value(value):
    """Return a measure without its leading zero."""
    return f"{value:.3f}".lstrip("0")


def report(name, smoothings, figure):
    """Print the table of a corpus."""
    forms = {"words": None, "lemmas": "lemma"}
    found = {form: run(name, by, smoothings, figure if by else None) for form, by in forms.items()}
    title = found["lemmas"][0]
    print(f"\n{title}; smoothing {', '.join(f'{found[f][1]} ({f})' for f in forms)}\n")
    markdown(
        ["rule", "settings (lemmas)", "within .01", *(f"P R F1, {form}" for form in forms)],
        [
            (
                row,
                ", ".join(
                    f"{key} {getattr(found['lemmas'][2][row][1], key):.3g}"
                    for key in ("ratio", "size")
                    if hasattr(found["lemmas"][2][row][1], key)
                ),
                found["lemmas"][2][row][2],
                *(" ".join(map(format_value, found[form][2][row][0])) for form in forms),
            )
            for row in found["lemmas"][2]
        ],
    )
    print(
        "\nTuning documents, lemmas: best F1 and its range over sizes from 5 on; for each size, the"
    )
    print("best F1, its ratio, and the width of the ratios within .01 of it\n")
    header = ["ratio .7", "ratio .8", "size 5", "size 15", "size 80"]
    markdown(["cohort", *header], found["lemmas"][3])
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=list(CORPORA))
    parser.add_argument(
        "--figures", metavar="PREFIX", help="draw the surfaces to PREFIX-corpus.png"
    )
    parser.add_argument("--smoothings", nargs="+", type=float, default=SMOOTHINGS)
    arguments = parser.parse_args()
    for corpus in arguments.corpora:
        drawn = arguments.figures and f"{arguments.figures}-{corpus}.png"
        report(corpus, arguments.smoothings, drawn)
