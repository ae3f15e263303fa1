"""What is measured of the answers of one method on one split."""

from __future__ import annotations

from typing import Any

import numpy as np

from polytopic.experiments.methods import Answer
from polytopic.experiments.parts import Part
from polytopic.metrics import evaluate

BINS = 10  # of probabilities
LARGEST = 6  # labels of a document from which they are counted together
FREQUENCIES = (1, 5, 20, 100, 500)  # documents to learn from at which a class of labels begins


def measured(train: Part, test: Part, answer: Answer) -> dict[str, Any]:
    """Return all measures, and what figures are drawn of."""
    Y, sets = test.Y.toarray() > 0, answer.sets.toarray() > 0
    scores = None if answer.scores is None else np.nan_to_num(answer.scores, neginf=-1e300)
    values = evaluate(test.Y, answer.sets, scores)
    return {
        "measures": {name: float(value) for name, value in values.items()},
        "documents": _documents(Y, sets),
        "by_frequency": _by_frequency(train.Y, Y, sets),
        "by_size": _by_size(Y, sets),
        "calibration": None if answer.proba is None else _calibration(Y, answer.proba),
    }


def document_f(Y: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """Return the F-measure of each document, 1 where it neither has nor gets labels."""
    both, either = (Y & sets).sum(axis=1), Y.sum(axis=1) + sets.sum(axis=1)
    return np.where(either > 0, 2 * both / np.maximum(either, 1), 1.0)


def _documents(Y: np.ndarray, sets: np.ndarray) -> dict[str, list[float]]:
    """Return what each document adds to the measures, by which methods are compared in pairs."""
    return {
        "samples_f1": np.round(document_f(Y, sets), 5).tolist(),
        "subset_accuracy": (sets == Y).all(axis=1).astype(int).tolist(),
    }


def _by_frequency(train_Y, Y: np.ndarray, sets: np.ndarray) -> list[dict[str, Any]]:
    """Return the F-measure of labels by how many documents to learn from have them."""
    n = np.asarray(train_Y.sum(axis=0)).ravel()
    hits, total = (Y & sets).sum(axis=0), Y.sum(axis=0) + sets.sum(axis=0)
    f = np.where(total > 0, 2 * hits / np.maximum(total, 1), 1.0)
    ends = [*FREQUENCIES[1:], np.inf]
    rows = []
    for low, high in zip(FREQUENCIES, ends, strict=True):
        own = (n >= low) & (n < high) & (Y.any(axis=0))
        if own.any():
            rows.append({"from": low, "labels": int(own.sum()), "f": float(f[own].mean())})
    return rows


def _by_size(Y: np.ndarray, sets: np.ndarray) -> list[dict[str, Any]]:
    """Return the F-measure of documents by how many labels they have."""
    size, f = np.minimum(Y.sum(axis=1), LARGEST), document_f(Y, sets)
    return [
        {"size": int(k), "documents": int((size == k).sum()), "f": float(f[size == k].mean())}
        for k in np.unique(size)
    ]


def _calibration(Y: np.ndarray, proba: np.ndarray) -> list[dict[str, Any]]:
    """Return how often labels of about the same probability are right."""
    places = np.minimum((proba * BINS).astype(int), BINS - 1)
    rows = []
    for k in range(BINS):
        own = places == k
        if own.any():
            rows.append(
                {
                    "pairs": int(own.sum()),
                    "probability": float(proba[own].mean()),
                    "right": float(Y[own].mean()),
                }
            )
    return rows
