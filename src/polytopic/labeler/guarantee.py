r"""Guarantees: label sets that keep a promised recall.

Labels are predicted if their score reaches a threshold, and the best one in any case. Conformal
risk control [1]_ chooses the threshold on :math:`n` held-out documents: the highest one with

.. math:: \sum_i R_i \ge (n + 1) \, r

where :math:`R_i` is the recall of a document's labels, and :math:`r` the promised recall. For one
fixed model, and documents that are exchangeable with the held-out ones, the expected recall is at
least :math:`r`. Here this is an approximation: ten models that each lack a tenth of the documents
stand in for the final one, and its settings were tuned on the same documents.

References
----------
.. [1] Angelopoulos, Bates, Fisch, Lei and Schuster, "Conformal Risk Control", ICLR 2024.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from polytopic.counts import DocumentRows
from polytopic.counts.sampling import sample_rows
from polytopic.labeler.answers import NO_THRESHOLD
from polytopic.labeler.held_out import hold_out
from polytopic.labeler.state import LabelerState

if TYPE_CHECKING:
    from polytopic.labeler.estimator import Labeler

MAX_DOCS = 4000  # documents to hold out
FOLDS = 10  # each model then has nearly all documents, and scores like the final one


def guaranteed_threshold(labeler: Labeler, state: LabelerState, rows: DocumentRows | None) -> float:
    """Return the highest score from which on labels must be predicted to keep the promise."""
    if rows is None:
        raise ValueError(NO_THRESHOLD)
    others = None
    if rows.X.shape[0] > MAX_DOCS:
        chosen = np.sort(sample_rows(rows.X, rows.Y, MAX_DOCS))
        others = rows.select(np.setdiff1d(np.arange(rows.X.shape[0]), chosen))
        rows = rows.select(chosen)
    held_out = hold_out(labeler, state, rows, others, n_folds=FOLDS)
    own = state.space.encode(rows.label_names).toarray() > 0
    scores = certain_scores(held_out.scores, held_out.sets.toarray() > 0, held_out.known)
    return threshold_for_recall(scores, own, float(labeler.guarantee["recall"]))


def certain_scores(scores, sets, known) -> np.ndarray:
    """Return scores that are infinite where a threshold changes nothing.

    The best label is always predicted; a document without known words gets the same set anyway.
    """
    scores = scores.copy()
    docs = np.arange(len(scores))
    scores[docs, scores.argmax(axis=1)] = np.inf
    scores[~known] = np.where(sets[~known], np.inf, -np.inf)
    return scores


def threshold_for_recall(scores: np.ndarray, own: np.ndarray, level: float) -> float:
    """Return the highest threshold that keeps a promised recall.

    Parameters
    ----------
    scores : ndarray of shape (n_docs, n_labels)
        Scores of labels by models that have not seen the documents; ``inf`` for labels that are
        always predicted, ``-inf`` for those that never are.
    own : ndarray of bool, shape (n_docs, n_labels)
        The labels of the documents; each has one.
    level : float
        The promised recall.
    """
    n_docs = len(own)
    doc, label = np.nonzero(own)
    by_label = scores[doc, label]
    parts = 1.0 / own.sum(axis=1)[doc]
    order = np.argsort(-by_label, kind="stable")
    by_label, recall = by_label[order], np.cumsum(parts[order])
    possible = by_label > -np.inf
    least = (n_docs + 1) * level
    reached = recall[possible] >= least * (1 - 1e-12)  # sums are rounded
    if not reached.any():
        best = recall[possible].max(initial=0.0) / (n_docs + 1)
        raise ValueError(
            f"guarantee == {{'recall': {level}}} cannot be kept: {n_docs} held-out documents allow "
            f"at most {np.floor(best * 1000) / 1000:.3f}. Some of their labels may be in no other "
            "document. Promise less, or learn more documents."
        )
    value = by_label[possible][np.argmax(reached)]
    finite = by_label[np.isfinite(by_label)]
    return float(min(value, finite.max(initial=-np.inf))) if finite.size else 0.0
