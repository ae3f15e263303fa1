"""Scores of documents that the model has not learned, to choose a rule by."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from polytopic.corpus.splits import folds
from polytopic.decision.base import check_scores
from polytopic.decision.estimator import LabelDecision, holds_numbers, label_scores, takes_names
from polytopic.decision.rules import TopK
from polytopic.labels import LabelSpace, Targets, indicator, read_targets
from polytopic.models import LabelSetClassifier


@dataclass(frozen=True)
class HeldOut:
    """Held-out documents: scores, references and true labels.

    Attributes
    ----------
    scores : ndarray of shape (n_docs, n_labels)
        Scores of the labels, ``-inf`` where the model does not know one.
    reference : ndarray of shape (n_docs,) or None
        Scores under the general model, if there is one.
    Y : csr_matrix of shape (n_docs, n_labels)
        True labels.
    wordless : ndarray of bool, shape (n_docs,)
        Documents without words or scores, which get the ``fallback`` whatever the rule.
    fallback : csr_matrix of shape (n_docs, n_labels)
        Labels of these documents, nothing for others.
    classes : tuple
        Labels of the columns.
    """

    scores: np.ndarray
    reference: np.ndarray | None
    Y: sparse.csr_matrix
    wordless: np.ndarray
    fallback: sparse.csr_matrix
    classes: tuple

    def rows(self, rows) -> HeldOut:
        """Return some of the documents."""
        return HeldOut(
            self.scores[rows],
            None if self.reference is None else self.reference[rows],
            self.Y[rows],
            self.wordless[rows],
            self.fallback[rows],
            self.classes,
        )


def held_out(estimator, X, Y, cv) -> HeldOut:
    """Return the scores of held-out documents: of each fold by the others, or of all."""
    targets = read_targets(Y)
    if targets.form.kind == "single":
        raise ValueError("Y has one label a document (1-D), which leaves nothing to decide.")
    n_docs = X.shape[0] if hasattr(X, "shape") else len(X)
    n_rows = targets.Y.shape[0]
    if n_docs != n_rows:
        raise ValueError(f"X has {n_docs} documents and Y has {n_rows}; they must be as many.")
    if isinstance(cv, str):
        if cv != "prefit":
            raise ValueError(f"cv == {cv!r}, must be a number, 'prefit', a splitter or pairs.")
        return _of_fitted(estimator, X, targets)
    Y = targets.Y
    if not isinstance(estimator, LabelSetClassifier):
        Y = Y.toarray().astype(np.int64)  # what scikit-learn understands
    named = targets.form.kind == "names" and takes_names(estimator)
    given = LabelSpace(targets.labels).decode(Y) if named else Y
    parts = []
    for train, test in _splits(cv, X, Y, targets):
        decision = LabelDecision(estimator, TopK()).fit(take(X, train), take(given, train))
        parts.append(_score(decision, take(X, test), targets.Y[test], targets.labels))
    if not parts:
        raise ValueError("cv gives no split, needs at least one.")
    return _joined(parts)


def take(X, rows):
    """Return some documents of a matrix, a table or a list."""
    if sparse.issparse(X):
        return X.tocsr()[rows]
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if isinstance(X, np.ndarray) else [X[row] for row in rows]


def _splits(cv, X, Y, targets):
    if hasattr(cv, "split"):
        return cv.split(X, Y.toarray() if sparse.issparse(Y) else Y)
    if isinstance(cv, Integral):
        return folds(targets.Y, int(cv))
    return [(np.asarray(train), np.asarray(test)) for train, test in cv]


def _of_fitted(estimator, X, targets: Targets) -> HeldOut:
    """Return the scores of a fitted estimator, over its labels and those that are true."""
    known = list(range(targets.Y.shape[1]))
    known = np.asarray(getattr(estimator, "classes_", known)).tolist()
    if isinstance(targets.labels[0], str) != isinstance(known[0], str):
        raise ValueError(
            "Y and the estimator do not speak of the same labels: one knows names, the other "
            "columns; give Y in the form that it was fitted on."
        )
    space = LabelSpace([*known, *targets.labels])
    part = _score(estimator, X, targets.over(space.ids), space.ids)
    if part.scores.shape[1] != len(known):
        raise ValueError(f"{part.scores.shape[1]} scores for the {len(known)} labels in classes_.")
    scores = np.full((part.scores.shape[0], len(space)), -np.inf, part.scores.dtype)
    columns = [space.index(label) for label in known]
    scores[:, columns] = part.scores
    fallback = indicator(
        np.array(columns, dtype=np.int64)[part.fallback.indices], part.fallback.indptr, len(space)
    )
    return HeldOut(scores, part.reference, part.Y, part.wordless, fallback, space.ids)


def _score(fitted, X, Y, classes) -> HeldOut:
    """Return what a fitted estimator, by itself or in a decision, says of documents."""
    decision = fitted if isinstance(fitted, LabelDecision) else None
    model = fitted if decision is None else decision.estimator_
    known = {} if decision is None else {"unseen": decision._unseen, "n_labels": len(classes)}
    scores = check_scores(label_scores(model, X, **known))
    labels: Any = getattr(fitted, "fallback", ()) if decision is None else decision._fallback
    wordless = np.full(scores.shape[0], holds_numbers(X) and len(labels) > 0)
    if wordless.any():
        wordless[sparse.csr_matrix(X).nonzero()[0]] = False
    if len(labels):
        wordless |= ~(scores > -np.inf).any(axis=1)
    ends = np.cumsum([0, *(wordless * len(labels))])
    return HeldOut(
        scores,
        model.world_score(X) if hasattr(model, "world_score") else None,
        Y,
        wordless,
        indicator(np.tile(labels, wordless.sum()).astype(np.int64), ends, scores.shape[1]),
        tuple(classes),
    )


def _joined(parts: list[HeldOut]) -> HeldOut:
    references = [part.reference for part in parts if part.reference is not None]
    return HeldOut(
        np.concatenate([part.scores for part in parts]),
        np.concatenate(references) if references else None,
        sparse.vstack([part.Y for part in parts], format="csr"),
        np.concatenate([part.wordless for part in parts]),
        sparse.vstack([part.fallback for part in parts], format="csr"),
        parts[0].classes,
    )
