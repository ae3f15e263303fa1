"""Predictions for learned documents by models that have not learned them, fold by fold.

Each fold is judged by what the labeler would have learned from the documents of the other folds,
with a vocabulary and weights of its own. What was tuned in ``fit`` is kept.
"""

from __future__ import annotations

import warnings
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from polytopic.corpus.splits import folds
from polytopic.counts import DocumentRows
from polytopic.errors import PolytopicError
from polytopic.kernels.blocks import run_tasks
from polytopic.labeler.learning import learn_counts, learn_rows
from polytopic.labeler.state import LabelerState
from polytopic.models.calibration import rising_curve
from polytopic.models.checks import require_counts

if TYPE_CHECKING:
    from polytopic.labeler.estimator import Labeler

MAX_CELLS = 20_000_000  # held-out documents × labels
BYTES_OF_CELL = 30  # of sets, scores, and what is computed from them
SURE = 1e-4  # probabilities are not nearer to 0 and 1


class HeldOut(NamedTuple):
    """Predictions for documents by models that were not fitted on them.

    Columns are the labels of the labeler.

    Attributes
    ----------
    sets : csr_matrix of shape (n_docs, n_labels)
        The predicted label sets.
    scores : ndarray of shape (n_docs, n_labels)
        The scores of labels; ``-inf`` for a label that the model had never seen.
    known : ndarray of bool, shape (n_docs,)
        Whether the model knew a word of the document.
    """

    sets: sparse.csr_matrix
    scores: np.ndarray
    known: np.ndarray


def hold_out(
    labeler: Labeler,
    state: LabelerState,
    rows: DocumentRows,
    others: DocumentRows | None = None,
    *,
    n_folds: int = 5,
    floor: bool = False,
) -> HeldOut:
    """Judge each document by a model of the documents in other folds.

    Parameters
    ----------
    labeler : Labeler
        Its parameters say what to fit.
    state : LabelerState
        What it has learned.
    rows : DocumentRows
        The documents.
    others : DocumentRows, default=None
        Documents that all models learn. A count model learns all but those of the fold.
    n_folds : int, default=5
        Number of folds, at most.
    floor : bool, default=False
        Whether labels that a model knows, but that are no candidates of a document, get a score
        below all others; ``-inf`` by default.
    """
    n_docs, shape = rows.X.shape[0], (rows.X.shape[0], len(state.space))
    if shape[0] * shape[1] > MAX_CELLS:
        raise PolytopicError(
            f"holding out {shape[0]:,} documents with {shape[1]:,} labels would take "
            f"{BYTES_OF_CELL * shape[0] * shape[1] / 2**30:,.1f} GiB, more than the "
            f"{BYTES_OF_CELL * MAX_CELLS / 2**30:.1f} GiB allowed; use fewer documents, or no "
            "guarantee."
        )
    sets, scores = np.zeros(shape, dtype=bool), np.full(shape, -np.inf)
    known = np.zeros(n_docs, dtype=bool)
    plain = copy(labeler)
    plain.rule, plain.abstain, plain.guarantee, plain.keep_documents = None, None, None, False

    def run(fold):
        train, test = fold
        part = learn_without(plain, state, rows, train, test, others)
        if part is None:
            return
        X = part.weigh(part.vocabulary.select(rows.X[test], rows.terms))
        predicted, by_label, _ = part.model.assess(X)
        if sparse.issparse(by_label):  # labels that are no candidates have no score
            by_label = dense_scores(by_label, floor=floor)
        columns = [state.space.index(label) for label in part.space.ids]
        cells = np.ix_(test, columns)
        sets[cells], scores[cells] = predicted.toarray() > 0, by_label
        known[test] = X.getnnz(axis=1) > 0

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the fit itself warns if need be
        alone = np.arange(0), np.arange(1)
        run_tasks(run, folds(rows.Y, min(n_folds, n_docs)) if n_docs > 1 else [alone])
    return HeldOut(sparse.csr_matrix(sets.astype(np.float64)), scores, known)


def dense_scores(scores, *, floor: bool) -> np.ndarray:
    """Return the scores of candidates as an array.

    Other labels have ``-inf`` or, with ``floor``, a score below all others.
    """
    absent = scores.data.min(initial=0.0) - 1.0 if floor else -np.inf
    dense = np.full(scores.shape, absent)
    dense[np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr)), scores.indices] = (
        scores.data
    )
    return dense


def calibrate(scores: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return the probabilities that held-out scores stand for, by one rising curve for all labels.

    ``own`` says which labels are right.
    """
    finite = np.isfinite(scores)
    if not finite.any():  # a model with one label, which is always right
        return np.where(scores > 0, 1 - SURE, SURE)
    curve = rising_curve(scores[finite], own[finite])
    return np.clip(np.interp(scores, *curve), SURE, 1 - SURE)


def learn_without(
    labeler: Labeler,
    state: LabelerState,
    rows: DocumentRows,
    train: np.ndarray,
    test: np.ndarray,
    others: DocumentRows | None = None,
) -> LabelerState | None:
    """Return what a labeler learns without the rows in ``test``; None if nothing is left.

    A count model learns all its other documents, a document model the rows in ``train`` and the
    ``others``. What was tuned is kept.
    """
    tuned = state.model.tuned_
    if state.model.learns_from == "documents":
        left = rows.select(train) if others is None else others + rows.select(train)
        return learn_rows(labeler, left, state.analyzer, tuned=tuned) if left.X.shape[0] else None
    counts = require_counts(state.counts) - rows.select(test).table()
    return learn_counts(labeler, counts, state.analyzer, tuned=tuned) if counts.n_docs else None
