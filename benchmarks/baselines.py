"""Baselines: LinearSVC and fastText, tuned for samples F1 on a fifth of the documents."""

import re
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from polytopic.decision import Threshold, TopK
from polytopic.experiments.baselines import weighted_words, write_svmlight
from polytopic.metrics import samples_f1
from polytopic.text import TermWeights

HELD_OUT = 0.2


# Functions that train on a part and return the scores of labels for other parts


def svc_scores(settings, train, *others):
    """Return scores of one-vs-rest LinearSVC on ltc weights."""
    weights = TermWeights("ltc").fit(train.X)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Label not .* is present")
        model = OneVsRestClassifier(LinearSVC(**settings))
        model.fit(weights.transform(train.X), train.Y)
    scores = [model.decision_function(weights.transform(part.X)) for part in others]
    for matrix in scores:
        matrix[:, ~train.Y.any(axis=0)] = -np.inf  # scikit-learn scores an absent label with 0
    return scores


def fasttext_scores(settings, train, *others):
    """Return probabilities of fastText, one-vs-all; texts as lower-case words."""
    import fasttext

    def lines(part):
        return [" ".join(re.findall(r"\w+", text.lower())) for text in part.texts]

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        with path.open("w", encoding="utf-8") as file:
            for line, labels in zip(lines(train), train.Y, strict=True):
                file.write("".join(f"__label__{k} " for k in np.flatnonzero(labels)) + line + "\n")
        model = fasttext.train_supervised(str(path), loss="ova", thread=1, verbose=0, **settings)
    scores = []
    for part in others:
        matrix = np.full(part.Y.shape, -np.inf)  # fastText omits absent labels
        for doc, line in enumerate(lines(part)):
            # model.predict returns wrong arrays (of stride 0) with NumPy 2
            for proba, label in model.f.predict(line + "\n", -1, 0.0, "strict"):
                matrix[doc, int(label.removeprefix("__label__"))] = proba
        scores.append(matrix)
    return scores


def omikuji_scores(settings, train, *others):
    """Return scores of Omikuji's label trees on ltc weights, of the best 30 labels."""
    import omikuji

    weights = TermWeights("ltc").fit(train.X)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        write_svmlight(path, weights.transform(train.X), train.Y, header=True)
        hyper = omikuji.Model.default_hyper_param()
        for name, value in settings.items():
            setattr(hyper, name, value)
        model = omikuji.Model.train_on_data(str(path), hyper, 1)
    model.init_prediction_thread_pool(1)
    scores = []
    for part in others:
        matrix = np.full(part.Y.shape, -np.inf)
        for doc, words in enumerate(weighted_words(weights.transform(part.X))):
            for label, score in model.predict(words, beam_size=30, top_k=30):
                matrix[doc, label] = score
        scores.append(matrix)
    return scores


BASELINES = {  # function, settings and thresholds to choose from, default threshold
    "LinearSVC": (svc_scores, [{"C": c} for c in (1, 0.5, 2)], np.linspace(-1, 0.5, 76), 0.0),
    "fastText": (
        fasttext_scores,
        [
            {"lr": 0.5, "epoch": 50, "dim": 50},
            {"lr": 0.5, "epoch": 50, "dim": 100, "wordNgrams": 2, "bucket": 500_000},
            {"lr": 1.0, "epoch": 50, "dim": 100, "wordNgrams": 2, "bucket": 500_000},
        ],
        np.linspace(0.02, 0.9, 45),
        0.5,
    ),
}


def tune(scores_of, choices, grid, train):
    """Return the settings and the threshold with the best samples F1 on held-out documents."""
    order = np.random.default_rng(0).permutation(len(train.texts))
    cut = int(HELD_OUT * order.size)
    held_out, rest = train.rows(order[:cut]), train.rows(order[cut:])
    best = -1.0, None, None
    for settings in choices:
        (scores,) = scores_of(settings, rest, held_out)
        f = [samples_f1(held_out.Y, Threshold(value).decide(scores)) for value in grid]
        best = max(best, (max(f), settings, float(grid[np.argmax(f)])), key=lambda found: found[0])
    return best[1:]


def baseline_answers(scores_of, choices, grid, usual, train, *others):
    """Return the labels of each part by tuned threshold, two best, and default threshold."""
    settings, tuned = tune(scores_of, choices, grid, train)
    print(f"{scores_of.__name__}: {settings}, threshold {tuned:.2f}", file=sys.stderr)
    rules = {
        "tuned threshold": Threshold(tuned),
        "2 best": TopK(2),
        f"threshold {usual:.1f}, or best": Threshold(usual),
    }
    scores = scores_of(settings, train, *others)
    return {name: [rule.decide(s) for s in scores] for name, rule in rules.items()}
