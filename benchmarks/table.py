"""All methods on all corpora, each cell in a process of its own; finished results are stored.

Usage: table.py run FOLDER [CORPUS ...] [--tiers 0 1]   continue where the last run stopped
       table.py write FOLDER FILE                         write the tables in Markdown

Cheap methods run on all corpora first. A method that took too long on two corpora is not tried on
the larger ones after them, and the table says so.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from annif_methods import ANNIF
from common import corpus_path
from scipy import stats

from polytopic.corpus import read_documents
from polytopic.experiments import Protocol, all_methods, compare
from polytopic.experiments.protocols import read_json, write_json

METHODS = all_methods() | {method.name: method for method in ANNIF}
CORPORA = {  # with the languages of their texts, the smallest work first
    "medical": "en",
    "langlog": "en",
    "slashdot": "en",
    "enron": "en",
    "stackex-chess": "en",
    "debtags-cs": "cs",
    "yahoo-arts": "en",
    "yahoo-business": "en",
    "yahoo-health": "en",
    "yahoo-science": "en",
    "cei": "en",
    "reuters21578": "en",
    "medline-cf": "en",
    "ohsumed20k": "en",
    "czech-pirati": "cs",
    "bibtex": "en",
    "cooking": "en",
    "debtags-en": "en",
    "stackex-cs": "en",
    "tmc2007-500": "en",
    "goemotions": "en",
    "arxiv-cs": "en",
    "delicious": "en",
}
TWELVE = list(CORPORA)[:12]  # of earlier runs
SAMPLED = {"arxiv-cs": 16000}  # documents that are drawn from corpora with more
TIERS = (
    "mml svm-threshold stack-balanced stack-best stack-exact stack-macro",
    "mml-exact mml-dice mml-cosine pmm1 pmm1-paper nb nb-rule svm "
    "nb-one-vs-rest-threshold knn-threshold mlknn-threshold omikuji napkinxc",
    "fasttext annif-omikuji boostexter pmm2 boostexter-threshold",
    "annif-tfidf annif-svc annif-fasttext plda network-threshold svm-plain pmm2-paper",
    "mccallum col pdmm",
)
SECONDS = 1800
SPLITS = 3  # of corpora without a test part
OURS = "stack-balanced"
TIE = 0.005  # difference in samples F1 that counts as none
SHORTEST = 1e-3  # seconds; less is shown as no time
QUALITY = (
    ("samples_f1", "Samples F1"),
    ("subset_accuracy", "Subset accuracy"),
    ("macro_f1", "Macro F1"),
    ("precision_at_1", "P@1"),
    ("precision_at_3", "P@3"),
    ("ndcg_at_5", "nDCG@5"),
)
TIMES = (
    ("fit_seconds", "CPU seconds to train"),
    ("tune_seconds", "CPU seconds to choose settings"),
    ("predict_micros", "CPU microseconds to predict, per document"),
)
ERROR = "calibration_error", "Calibration error of labels"
INTRODUCTION = f"""# The default and others on many corpora

The default of a `Labeler` (a stack of `mml`, `svm` and `knn`), the other qualities and goals,
and a tuned linear SVM, on the same documents. [methods.md](methods.md) has 29 methods on twelve
of these corpora, from an earlier run. To run this comparison, use `python benchmarks/table.py
run FOLDER --tiers 0`, then `write FOLDER docs/comparison.md`.

A corpus with a test part keeps its split; the others are split {SPLITS} times at random, three
to one, and figures are means. Of arxiv-cs, {SAMPLED["arxiv-cs"]:,} documents are used. All
methods get the same terms, as ltc weights (logarithmic tf-idf). Nothing was chosen on the
corpora after reuters21578, except in part on debtags-en, goemotions, arxiv-cs and tmc2007-500
that nearest neighbours keep at most 8,000 documents.

Of the SVM (one `LinearSVC` per label), C and class weights are chosen by samples F1 on a quarter
of the training documents (on each quarter in turn if there are fewer than 1,000), and so is a
threshold for each fit, among forty. If no label passes the threshold, the best one is predicted.
Our models choose their settings within their own `fit`.

Times are CPU seconds on one thread, from counts to label sets, on a busy machine: compare them
only roughly, and within a column. Prediction includes label sets, the scores of all labels and,
for our models, their probabilities. A dot means not measured; `late` marks a method that took
more than {SECONDS} seconds. Calibration error is the mean difference between the probability of
labels and how often they are right, in ten bins.
"""


class Table:
    """The results so far, in a file."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.path = self.folder / "table.json"
        self.corpora = read_json(self.path) if self.path.exists() else {}

    def late(self, method, corpus):
        """Return the corpora before this one on which a method took too long."""
        before = list(CORPORA)[: list(CORPORA).index(corpus)]
        rows = {name: self.corpora.get(name, {"rows": {}})["rows"].get(method) for name in before}
        return [name for name, row in rows.items() if row and "took more" in row.get("failure", "")]

    def run(self, corpus, methods):
        """Run methods that have neither results nor failures."""
        known = self.corpora.get(corpus, {"rows": {}})["rows"]
        chosen = [method for method in methods if method not in known]
        able = [method for method in chosen if len(self.late(method, corpus)) < 2]
        rows = dict(known)
        for method in set(chosen) - set(able):
            late = " and ".join(self.late(method, corpus)[:2])
            rows[method] = {"failure": f"not run: more than {SECONDS} seconds on {late}."}
        about = self.corpora.get(corpus, {}).get("about")
        if able:
            documents = read_sample(corpus)
            named = any(document.split == "test" for document in documents)
            found = compare(
                documents,
                [METHODS[method] for method in able],
                protocol=Protocol("given" if named else "random", repeats=SPLITS),
                name=corpus,
                language=CORPORA[corpus],
                folder=self.folder,
                timeout=SECONDS,
                progress=lambda sentence: print(corpus, sentence, flush=True),
            )
            about = (about or {}) | found.about
            for row in found.rows:
                rows[row.method] = _row(row)
                if row.results:
                    one = row.results[0]
                    about = about | {"train": one["n_train"], "test": one["n_test"]}
        self.corpora[corpus] = {"about": about, "rows": rows}
        write_json(self.path, self.corpora)


def read_sample(corpus):
    """Return the documents of a corpus, or some of them drawn at random."""
    documents = [d for d in read_documents(corpus_path(corpus)) if d.labels]
    n = SAMPLED.get(corpus, len(documents))
    return [documents[k] for k in np.sort(np.random.RandomState(0).permutation(len(documents))[:n])]


def _row(row):
    if row.failure:
        return {"failure": row.failure}
    names = (*(name for name, _ in QUALITY), "fit_seconds", "tune_seconds", "predict_seconds")
    errors = [_calibration_error(one["calibration"]) for one in row.results]
    return (
        {name: row.mean(name) for name in names}
        | ({} if None in errors else {"calibration_error": float(np.mean(errors))})
        | {"splits": len(row.results), "settings": row.results[0]["settings"]}
    )


def _calibration_error(bins):
    """Return the mean difference between probabilities and how often they are right."""
    if not bins:
        return None
    n = sum(one["pairs"] for one in bins)
    return sum(one["pairs"] * abs(one["probability"] - one["right"]) for one in bins) / n


def ranks(table, corpora, methods, measure):
    """Return the mean rank of methods, the best 1, over corpora where all have results."""
    rows = []
    for corpus in corpora:
        values = [table[corpus]["rows"][method].get(measure) for method in methods]
        if None not in values:
            values = np.round(values, 3)
            higher = (values[None, :] > values[:, None]).sum(axis=1)
            same = (values[None, :] == values[:, None]).sum(axis=1)
            rows.append(higher + (same + 1) / 2)
    return np.mean(rows, axis=0), len(rows)


def write_tables(table):
    """Return all tables in Markdown."""
    for one in table.values():
        for row in one["rows"].values():
            if "predict_seconds" in row:
                row["predict_micros"] = 1e6 * row["predict_seconds"] / one["about"]["test"]
    corpora = [corpus for corpus in CORPORA if corpus in table]
    methods = [name for tier in TIERS for name in tier.split()]
    known = {method for corpus in corpora for method in table[corpus]["rows"]}
    methods = [m for m in METHODS if m in methods and m in known]
    lines = [INTRODUCTION, _about(table, corpora)]
    everywhere = [
        m for m in methods if all("samples_f1" in table[c]["rows"].get(m, {}) for c in corpora)
    ]
    lines.append(_ranked(table, corpora, everywhere))
    lines.append(_means(table, corpora, methods))
    lines.append(_paired(table, corpora, methods))
    lines += [_table(table, corpora, methods, *column, higher=True) for column in QUALITY]
    lines += [_table(table, corpora, methods, *column, higher=False) for column in TIMES]
    calibrated = [m for m in methods if "calibration_error" in table[corpora[0]]["rows"].get(m, {})]
    lines.append(_table(table, corpora, calibrated, *ERROR, higher=False))
    lines.append(_failures(table, corpora, methods))
    return "\n".join(lines)


def _about(table, corpora):
    head = ["corpus", "training", "test", "labels", "labels per document", "terms"]
    names = ("train", "test", "labels", "labels_per_document", "terms")
    rows = []
    for corpus in corpora:
        values = [table[corpus]["about"][name] for name in names]
        rows.append([corpus, *(f"{v:,.2f}" if isinstance(v, float) else f"{v:,}" for v in values)])
    return "## Corpora\n\n" + _markdown(head, rows)


def _ranked(table, corpora, methods):
    columns = [ranks(table, corpora, methods, measure) for measure, _ in QUALITY]
    n = columns[0][1]
    means = np.array([column for column, _ in columns]).T
    mean_of = {
        measure: [np.mean([table[c]["rows"][m][measure] for c in corpora]) for m in methods]
        for measure, _ in QUALITY
    }
    order = np.argsort(means[:, 0], kind="stable")
    rows = []
    for k in order:
        shown = []
        for column, (measure, _) in enumerate(QUALITY):
            best, top = means[:, column].min() == means[k, column], max(mean_of[measure])
            shown.append(_bold(f"{means[k, column]:.1f}", best))
            shown.append(_bold(f"{mean_of[measure][k]:.3f}", mean_of[measure][k] == top))
        rows.append([METHODS[methods[k]].title, *shown])
    head = ["method", *(f"{t}: {w}" for _, t in QUALITY for w in ("mean rank", "mean"))]
    return (
        f"## Ranks\n\nOf the {len(methods)} methods that have results on all {n} corpora.\n\n"
        + _markdown(head, rows)
    )


def _means(table, corpora, methods):
    """Return means over the twelve corpora of earlier runs, and over the others."""
    groups = [c for c in corpora if c in TWELVE], [c for c in corpora if c not in TWELVE]
    rows = []
    for method in methods:
        cells = []
        for group in groups:
            for measure, _ in QUALITY[:3]:
                values = [table[c]["rows"].get(method, {}).get(measure) for c in group]
                cells.append("·" if None in values or not values else _f(np.mean(values)))
        rows.append([METHODS[method].title, *cells])
    head = ["method", *(f"{name}: {t}" for name in ("twelve", "others") for _, t in QUALITY[:3])]
    return (
        "## Means\n\nOver the twelve corpora of [methods.md](methods.md), and over the "
        f"{len(groups[1])} others.\n\n" + _markdown(head, rows)
    )


def _paired(table, corpora, methods):
    """Compare our default with each method, corpus by corpus."""
    rows = []
    for method in methods:
        if method == OURS:
            continue
        pairs = [
            (table[c]["rows"][OURS]["samples_f1"], table[c]["rows"][method]["samples_f1"])
            for c in corpora
            if all("samples_f1" in table[c]["rows"].get(one, {}) for one in (OURS, method))
        ]
        if not pairs:
            continue
        gains = np.array([ours - theirs for ours, theirs in pairs])
        p = stats.wilcoxon(gains).pvalue if gains.any() else 1.0
        wins, losses = (gains > TIE).sum(), (gains < -TIE).sum()
        numbers = [len(pairs), wins, gains.size - wins - losses, losses]
        rows.append([METHODS[method].title, *map(str, numbers), f"{gains.mean():+.3f}", f"{p:.2g}"])
    head = ["compared with", "corpora", "better", f"within {TIE}", "worse", "mean difference", "p"]
    return (
        f"## The default compared with each method\n\nSamples F1 of {METHODS[OURS].title}: the "
        "number of corpora on which it is better or worse, and the p-value of the\ndifferences "
        "(Wilcoxon's signed-rank test over the corpora, two-sided).\n\n" + _markdown(head, rows)
    )


def _bold(text, best):
    return f"**{text}**" if best else text


def _table(table, corpora, methods, measure, title, *, higher):
    values = {c: [table[c]["rows"].get(m, {}).get(measure) for m in methods] for c in corpora}
    best = {c: max((v for v in own if v is not None), default=None) for c, own in values.items()}
    rows = []
    for k, method in enumerate(methods):
        cells = []
        for corpus in corpora:
            value = values[corpus][k]
            if value is None:
                why = table[corpus]["rows"].get(method, {}).get("failure")
                cells.append("·" if why is None else "late" if "seconds" in why else "fails")
            elif higher:
                cells.append(_bold(_f(value), _f(value) == _f(best[corpus])))
            else:
                shown = f"{value:.2g}" if value < 10 else f"{value:,.0f}"
                shown = "–" if value < SHORTEST else shown
                cells.append(f"{value:.4f}"[1:] if measure == ERROR[0] else shown)
        rows.append([METHODS[method].title, *cells])
    return f"## {title}\n\n" + _markdown(["method", *corpora], rows)


def _f(value):
    return f"{value:.3f}".removeprefix("0")


def _failures(table, corpora, methods):
    failures = {}
    for method in methods:
        for corpus in corpora:
            row = table[corpus]["rows"].get(method, {})
            if "failure" in row:
                failures.setdefault((METHODS[method].title, row["failure"]), []).append(corpus)
    rows = [[title, ", ".join(names), why] for (title, why), names in failures.items()]
    if not rows:
        return "No method failed or was late.\n"
    return "## Methods without results\n\n" + _markdown(["method", "corpora", "why"], rows)


def _markdown(head, rows):
    lines = ["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("do", choices=("run", "write"))
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--tiers", type=int, nargs="*", default=range(len(TIERS)))
    arguments = parser.parse_args()
    table = Table(arguments.folder)
    if arguments.do == "write":
        Path(arguments.names[0]).write_text(write_tables(table.corpora), encoding="utf-8")
    else:
        for tier in arguments.tiers:
            for name in arguments.names or CORPORA:
                table.run(name, TIERS[tier].split())
        print(json.dumps({name: len(one["rows"]) for name, one in table.corpora.items()}))
