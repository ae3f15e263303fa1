"""The posterior over label sets compared with the papers' decoding, on the corpora's own splits.

Samples F1, subset accuracy, macro F1, labels per document, and the tuned temperature. Texts are
counted by TextCounts with its defaults. LinearSVC is one-vs-rest on ltc weights, tuned on a
fifth of the training documents.
"""

import argparse
import sys

from baselines import BASELINES, baseline_answers
from common import markdown, select_models
from parts import read_parts
from scipy import sparse

from polytopic import PDMM, PMM1, PMM2, NaiveBayes
from polytopic.decision import LabelDecision, WorldModel
from polytopic.metrics import macro_f1, samples_f1, subset_accuracy

PAPERS = {"prior": "uniform", "decode": "greedy"}
MODELS = {
    "NaiveBayes, best": NaiveBayes(),
    "NaiveBayes + WorldModel": LabelDecision(NaiveBayes(), WorldModel()),
    "PMM1 paper": PMM1(**PAPERS),
    "PMM2 paper": PMM2(**PAPERS),
    "PDMM paper, bound": PDMM(**PAPERS),
    "PDMM paper, Eq. (35)": PDMM(likelihood="paper", **PAPERS),
    "PMM1 default, f": PMM1(),
    "PMM1 default, map": PMM1(decode="map"),
    "PMM2 default, f": PMM2(),
    "PMM2 default, map": PMM2(decode="map"),
    "PDMM default, f": PDMM(),
    "PDMM default, map": PDMM(decode="map"),
    "PMM1 labels, f": PMM1(prior="labels"),
    "PMM1 labels, map": PMM1(prior="labels", decode="map"),
    "PMM1 default, f, smoothing auto": PMM1(smoothing="auto"),
}
CORPORA = ("reuters21578", "ohsumed20k", "cei", "medline-cf", "debtags-en", "czech-pirati")


def report(name, words):
    """Print the table of a corpus."""
    train, test = read_parts(name)
    rows = []

    def add(model, answers, temperature="–"):
        answers = sparse.csr_matrix(answers)
        scores = [f(test.Y, answers) for f in (samples_f1, subset_accuracy, macro_f1)]
        labels = f"{answers.sum() / answers.shape[0]:.2f}"
        rows.append((model, *(f"{score:.3f}" for score in scores), labels, temperature))
        print(*rows[-1], file=sys.stderr, flush=True)

    for key, model in select_models(MODELS | {"LinearSVC": None}, words).items():
        if model is None:
            for rule, (answers,) in baseline_answers(*BASELINES[key], train, test).items():
                if rule != "2 best":
                    add(f"{key}, {rule}", answers)
        else:
            model.fit(train.X, train.Y)
            temperature = getattr(model, "temperature_", 1.0)
            add(key, model.predict(test.X), "–" if temperature == 1 else f"{temperature:.1f}")
    print(
        f"\n{name}: {len(train.texts)} and {len(test.texts)} documents, {train.X.shape[1]} words, "
        f"{train.Y.shape[1]} labels, {test.Y.sum(axis=1).mean():.2f} a test document\n"
    )
    markdown(["model", "F", "subset accuracy", "macro F1", "labels", "temperature"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="words in the names of models; all by default")
    parser.add_argument("--corpora", nargs="+", default=CORPORA, choices=CORPORA)
    arguments = parser.parse_args()
    for corpus in arguments.corpora:
        report(corpus, arguments.models)
