"""The time of every decision rule relative to the plain ratio rule on the same scores.

100,000 documents, 450 labels, and scores like those of naive Bayes: the scores of a long document
are low and far apart; it has one to four true labels. One thread. The plain rule compares the
scores themselves (``WorldModel`` with a reference of zero). Each repeat runs all rules; ratios are
paired by repeat, with their range. The goal: at most 4.

A second table has ``UnconstrainedCohort`` on the test documents of three corpora, on the log
likelihoods of naive Bayes (smoothing .1) and on its probabilities: the lowest time of either rule
and the ratio of these.
"""

import argparse
import os
import time

os.environ["POLYTOPIC_NUM_THREADS"] = "1"

import numpy as np
from common import markdown, split_counts

from polytopic import LabelTree, NaiveBayes
from polytopic.decision import (
    MeanPlusStd,
    Threshold,
    TNorm,
    TopK,
    TreeCohort,
    UnconstrainedCohort,
    WorldModel,
)

REPEATS = 7
CALLS = 3_000_000  # scores of a corpus that each repeat decides on, in several calls
CORPORA = ("reuters21578", "debtags-en", "czech-pirati")
COHORTS = (UnconstrainedCohort(), UnconstrainedCohort(80, 0.8))
NODES = 45  # parents in the tree


def random_scores(n_docs, n_labels, dtype, seed=0):
    """Return log likelihoods of random documents."""
    rng = np.random.default_rng(seed)
    scores = np.empty((n_docs, n_labels), dtype)
    for start in range(0, n_docs, 1000):
        block = scores[start : start + 1000]
        words = rng.lognormal(4.5, 0.8, (len(block), 1))
        block[:] = -8.0 * words + np.sqrt(words) * rng.normal(0, 1.5, block.shape)
        own = rng.integers(0, n_labels, (len(block), 4))
        own[:, 1:] = np.where(rng.random((len(block), 3)) < 0.5, own[:, 1:], own[:, :1])
        bonus = rng.uniform(0.3, 0.8, own.shape) * words
        np.put_along_axis(block, own, -8.0 * words + bonus, axis=1)
    return scores


def measure(n_docs, n_labels, dtype):
    """Return for each rule the seconds of each repeat, and the labels per document."""
    scores = random_scores(n_docs, n_labels, dtype)
    reference = np.median(scores, axis=1).astype(np.float64)
    labels = [f"{place % NODES}/{place}" for place in range(n_labels)]
    tree = TreeCohort(LabelTree.from_names(labels)).fit(classes=labels)
    rules = {
        "the plain ratio, `WorldModel` of zero": (WorldModel(0.99), np.zeros(n_docs)),
        "`TopK(1)`": (TopK(1), None),
        "`TopK(3)`": (TopK(3), None),
        "`Threshold(…)`": (Threshold(float(np.quantile(scores[:1000], 1 - 2 / n_labels))), None),
        "`MeanPlusStd()`": (MeanPlusStd(), None),
        "`WorldModel()`": (WorldModel(), reference),
        "`UnconstrainedCohort()`": (UnconstrainedCohort(), None),
        "`UnconstrainedCohort(80, 0.8)`": (UnconstrainedCohort(80, 0.8), None),
        '`UnconstrainedCohort(cohort="best")`': (UnconstrainedCohort(cohort="best"), None),
        '`UnconstrainedCohort(80, 0.8, "best")`': (UnconstrainedCohort(80, 0.8, "best"), None),
        "`TreeCohort(tree)`": (tree, None),
        "`TNorm()`": (TNorm(), None),
    }
    times, sizes = {name: [] for name in rules}, {}
    for repeat in range(REPEATS + 1):  # the first compiles
        for name, (rule, own) in rules.items():
            start = time.process_time()
            decided = rule.decide(scores, reference=own)
            if repeat:
                times[name].append(time.process_time() - start)
            sizes[name] = decided.nnz / n_docs
    return {name: np.array(t) for name, t in times.items()}, sizes


def report(n_docs, n_labels, dtype):
    """Print the table."""
    times, sizes = measure(n_docs, n_labels, dtype)
    plain = next(iter(times.values()))
    rows = []
    for name, seconds in times.items():
        ratios = seconds / plain
        shown = f"{np.median(ratios):.2f} ({ratios.min():.2f}–{ratios.max():.2f})"
        rows.append((name, f"{1e3 * np.median(seconds):.0f}", shown, f"{sizes[name]:.2f}"))
    print(f"\n{n_docs:,} documents, {n_labels} labels, {dtype}\n")
    markdown(["rule", "CPU ms", "times the plain ratio", "labels per document"], rows)


def lowest_times(rules, scores, calls):
    """Return the lowest CPU time per document of each rule, in ns; the rules alternate."""
    times = []
    for _ in range(REPEATS + 1):
        times.append([])
        for rule in rules:
            start = time.process_time()
            for _ in range(calls):
                rule.decide(scores, reference=np.zeros(len(scores)))
            times[-1].append(1e9 * (time.process_time() - start) / calls / len(scores))
    return np.min(times[1:], axis=0)  # the first compiles


def report_corpora(corpora, dtypes):
    """Print the table of real scores."""
    rows = []
    for corpus in corpora:
        X, Y, X_test, _ = split_counts(corpus)
        model = NaiveBayes(smoothing=0.1).fit(X, Y)
        for kind in ("decision_function", "predict_proba"):
            for dtype in dtypes:
                scores = getattr(model, kind)(X_test).astype(dtype)
                calls = -(-CALLS // scores.size)
                plain, *cohorts = lowest_times((WorldModel(0.99), *COHORTS), scores, calls)
                shown = [f"{cohort:.0f}, {cohort / plain:.2f}" for cohort in cohorts]
                name = f"{corpus}, {scores.shape[1]} labels"
                rows.append((name, f"`{kind}`", dtype, f"{plain:.0f}", *shown))
    cohorts = [f"`{rule}`, times the plain ratio" for rule in COHORTS]
    print()
    markdown(["corpus", "scores", "type", "plain ratio, ns per document", *cohorts], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=100_000, help="0: no random scores")
    parser.add_argument("--labels", type=int, default=450)
    parser.add_argument("--types", nargs="+", default=["float32", "float64"])
    parser.add_argument("--corpora", nargs="*", default=CORPORA)
    arguments = parser.parse_args()
    for dtype in arguments.types if arguments.documents else ():
        report(arguments.documents, arguments.labels, dtype)
    report_corpora(arguments.corpora, arguments.types)
