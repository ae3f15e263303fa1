"""Speed compared with scikit-learn's one-vs-rest LinearSVC on Reuters, in one run.

Both start from the same count matrix; LinearSVC gets it as ltc weights, on which it is accurate and
fast. Each repeat runs all models, one after the other; a predict time is the median of five. Also:
peak memory of fit and predict for growing numbers of documents.
"""

import tracemalloc
import warnings

import numpy as np
from common import markdown, split_counts, time_calls
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from polytopic import PDMM, PMM1, PMM2, NaiveBayes
from polytopic.decision import LabelDecision, WorldModel
from polytopic.metrics import samples_f1, subset_accuracy
from polytopic.text import TermWeights

REPEATS = 7
warnings.filterwarnings("ignore", "Label not .* is present")  # in the small warm-up fit


def speed(X, Y, X_test, Y_test):
    """Print fit and predict times, their ratios and the quality of each model."""
    weights = TermWeights("ltc").fit(X)
    weighted = (weights.transform(X), weights.transform(X_test))
    models = {
        "LinearSVC, one-vs-rest": (OneVsRestClassifier(LinearSVC()), weighted),
        "NaiveBayes": (NaiveBayes(), (X, X_test)),
        "NaiveBayes + WorldModel": (LabelDecision(NaiveBayes(), WorldModel()), (X, X_test)),
        "PMM1, as in its paper": (PMM1(prior="uniform", decode="greedy"), (X, X_test)),
        "PMM1": (PMM1(), (X, X_test)),
        "PMM1, temperature 4": (PMM1(temperature=4.0), (X, X_test)),
        "PMM2": (PMM2(), (X, X_test)),
        "PDMM": (PDMM(), (X, X_test)),
    }
    for model, (train, test) in models.values():  # compile, warm caches
        model.fit(train[:500], Y[:500]).predict(test[:50])
    fits = {name: [] for name in models}
    predicts = {name: [] for name in models}
    answers = {}
    for _ in range(REPEATS):
        for name, (model, (train, test)) in models.items():
            fits[name].append(time_calls(lambda m=model, x=train: m.fit(x, Y), 1)[0])
            answers[name] = model.predict(test)
            predicts[name].append(time_calls(lambda m=model, x=test: m.predict(x), 5)[1])
    slow_fit, slow_predict = (np.array(t["LinearSVC, one-vs-rest"]) for t in (fits, predicts))
    markdown(
        ["model", "fit ms", "times faster", "predict ms", "times faster", "F", "subset accuracy"],
        [
            (
                name,
                f"{np.median(fits[name]) * 1e3:.0f}",
                _ratio(slow_fit, fits[name]),
                f"{np.median(predicts[name]) * 1e3:.1f}",
                _ratio(slow_predict, predicts[name]),
                f"{samples_f1(Y_test, answers[name]):.3f}",
                f"{subset_accuracy(Y_test, answers[name]):.3f}",
            )
            for name in models
        ],
    )


def _ratio(slow, fast):
    """Return the median ratio of paired times and its range."""
    ratios = slow / np.array(fast)
    return f"{np.median(ratios):.1f} ({ratios.min():.1f}–{ratios.max():.1f})"


def memory(X, Y):
    """Print the peak memory that fit and predict need beyond their input."""
    rows = []
    for n_docs in (1000, 2000, 4000, X.shape[0]):
        part, labels = X[:n_docs], Y[:n_docs]
        model = PMM1()
        sizes = [_peak(lambda m=model, x=part, y=labels: m.fit(x, y))]
        sizes.append(_peak(lambda m=model, x=part: m.predict(x)))
        words = part.shape[1] * labels.shape[1] * 8 / 2**20
        rows.append((n_docs, f"{part.nnz:,}", f"{words:.1f}", *(f"{size:.1f}" for size in sizes)))
    markdown(["documents", "non-zeros", "words × labels MB", "fit MB", "predict MB"], rows)


def _peak(call):
    """Return the most memory, in MB, that a call holds at once."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


if __name__ == "__main__":
    X, Y, X_test, Y_test = split_counts("reuters21578")
    print(
        f"\nReuters: {X.shape[0]} and {X_test.shape[0]} documents, {X.shape[1]} words, "
        f"{Y.shape[1]} labels; median of {REPEATS} repeats, ratios paired by repeat (range)\n"
    )
    speed(X, Y, X_test, Y_test)
    print()
    memory(X, Y)
