"""Decision rules on the scores of other models: samples F1 and subset accuracy on two corpora.

``tune_decision`` tunes every rule for samples F1 with five folds of the training documents, which
are fitted once per model for all rules; the test documents are those of the corpus's own split. The
smoothing of NaiveBayes and the C of LogisticRegression are tuned too. LinearSVC (C = 1) and
LogisticRegression are one-vs-rest on ltc weights. "Its own" is the model's own prediction; for
one-vs-rest, that is all labels that score above zero, or else the best one. ``TreeCohort`` needs a
tree, which debtags-en has in its names. ``UnconstrainedCohort`` has a row for each kind of cohort.
The rule that tuning selects is bold.
"""

import argparse
import sys
import time
import warnings

from common import markdown, split_documents
from parts import read_parts
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from polytopic import PMM1, LabelSpace, LabelTree, NaiveBayes
from polytopic.decision import (
    DecisionSurface,
    LabelDecision,
    Threshold,
    UnconstrainedCohort,
    tune_decision,
)
from polytopic.metrics import samples_f1, subset_accuracy
from polytopic.models import LabelSetClassifier
from polytopic.text import TermWeights

SMOOTHINGS, COSTS = (0.1, 0.3, 1.0), (1.0, 10.0, 100.0)
RULES = (
    "its own",
    "TopK",
    "Threshold",
    "MeanPlusStd",
    "WorldModel",
    "UnconstrainedCohort, next",
    "UnconstrainedCohort, best",
    "TreeCohort",
    "TNorm",
)


def one_vs_rest(model):
    """Return a model for each label on ltc weights."""
    return make_pipeline(TermWeights("ltc"), OneVsRestClassifier(model))


MODELS = {
    "NaiveBayes": [NaiveBayes(smoothing=smoothing) for smoothing in SMOOTHINGS],
    "PMM1": [PMM1()],
    "LinearSVC": [one_vs_rest(LinearSVC())],
    "LogisticRegression": [
        one_vs_rest(LogisticRegression(C=cost, solver="liblinear")) for cost in COSTS
    ],
}


def read(corpus):
    """Return counts and label names of both parts, and the tree if the names show one."""
    parts = read_parts(corpus)
    documents = [document for part in split_documents(corpus) for document in part]
    space = LabelSpace(label for document in documents for label in document.labels)
    if parts[0].Y.shape[1] != len(space):
        raise SystemExit(f"{corpus} is read without some of its labels.")
    tree = LabelTree.from_names(space.ids, "::") if "::" in space.ids[0] else None
    return [(part.X, space.decode(part.Y)) for part in parts], tree


def answers(estimator, rules, train, X):
    """Yield the answers for documents: the model's own, then by each rule."""
    fitted = LabelDecision(estimator, Threshold(0.0)).fit(*train)
    space = LabelSpace(fitted.classes_.tolist())
    ours = isinstance(estimator, LabelSetClassifier)
    yield "its own", space.decode(fitted.estimator_.predict(X) if ours else fitted.predict(X))
    for name, rule in rules.items():
        yield name, space.decode(fitted.set_params(rule=rule).predict(X))


def best_rules(tuned):
    """Return the best rules by name, with one for each kind of cohort."""
    rules = dict(tuned.best_rules)
    del rules["UnconstrainedCohort"]
    for kind in UnconstrainedCohort.variants["cohort"]:
        points = [
            (UnconstrainedCohort(point["size"], point["ratio"], kind), point)
            for point in tuned.surface
            if point["cohort"] == kind
        ]
        found = DecisionSurface.from_points(points, ["size", "ratio"], tuned.metric, tuned.n_docs)
        rules[f"UnconstrainedCohort, {kind}"] = found.best_rule
    return rules


def report(corpus, models):
    """Print the table of a corpus."""
    (train, test), tree = read(corpus)
    cells = {rule: {} for rule in RULES}
    for model in models:
        start = time.process_time()
        found = [(e, tune_decision(e, *train, tree=tree)) for e in MODELS[model]]
        estimator, tuned = max(found, key=lambda pair: pair[1].best_score)
        print(f"\n{corpus}, {estimator}\n{tuned}", file=sys.stderr)
        chosen = type(tuned.best_rule).__name__
        if isinstance(tuned.best_rule, UnconstrainedCohort):
            chosen += f", {tuned.best_rule.cohort}"
        for name, predicted in answers(estimator, best_rules(tuned), train, test[0]):
            figures = [measure(test[1], predicted) for measure in (samples_f1, subset_accuracy)]
            shown = " ".join(f"{figure:.3f}".lstrip("0") for figure in figures)
            cells[name][model] = f"**{shown}**" if name == chosen else shown
            print(name, shown, file=sys.stderr, flush=True)
        print(f"{time.process_time() - start:.0f} s", file=sys.stderr, flush=True)
    n_docs = [len(labels) for _, labels in (train, test)]
    print(f"\n{corpus}: {n_docs[0]} and {n_docs[1]} documents\n")
    rows = [
        (f"`{rule}`" if rule[0].isupper() else rule, *(row.get(model, "–") for model in models))
        for rule, row in cells.items()
        if row
    ]
    markdown(["rule", *models], rows)
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", nargs="+", default=["reuters21578", "debtags-en"])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", "Label not .* is present")
    for corpus in arguments.corpora:
        report(corpus, arguments.models)
