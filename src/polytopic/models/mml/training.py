"""Training: passes of dual coordinate ascent, and what is tuned on held-out documents."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from polytopic.counts.sampling import draw_documents
from polytopic.interrupts import checkpoint
from polytopic.kernels.blocks import run_tasks
from polytopic.metrics import samples_f1, subset_accuracy
from polytopic.models.base import HeldOutScores
from polytopic.models.calibration import rising_curve
from polytopic.models.checks import is_auto
from polytopic.models.mml.embedding import with_knots
from polytopic.models.mml.search_kernels import EXACT, RESCALED, SizeEmbedding, new_search
from polytopic.models.mml.training_kernels import (
    GAP,
    LINEAR,
    MISSED,
    Corpus,
    Neighbours,
    Task,
    WorkingSets,
    ascend_neighbours,
    ascend_sets,
    new_duals,
    new_workspace,
    start_weights,
)

CHUNK = 256  # documents whose dual variables are stored together

COSTS = (0.3, 1.0)
DEFAULT_COST = 1.0  # with fewer documents than MIN_DOCS
MIN_DOCS = 30  # documents to tune on
MAX_DOCS = 12000
FOLDS = 3
MANY_DOCS = 2000  # documents for which one fold is enough


class Margins(NamedTuple):
    """The required margins, see the parameters of :class:`~polytopic.MML`."""

    labels: str
    goal: str
    C: float
    tol: float

    @property
    def task(self) -> Task:
        """The margins in the form that kernels read."""
        goal = EXACT if self.goal == "exact" else RESCALED
        return Task(goal, self.C, self.goal == "f", self.tol)


@dataclass
class DualAscent:
    """The state of training.

    Attributes
    ----------
    corpus : Corpus or None
        Documents; None once they are no longer needed.
    sizes : SizeEmbedding
        The embedding of label sets.
    W : ndarray of shape (n_words, rank, n_labels)
        Weights.
    chunks, duals : list
        Documents that are visited one after another, and their dual variables.
    objectives : list of float
        The dual objective after each pass.
    gap : float
        Gap between the primal and the dual objective, measured document by document in the last
        pass.
    missed : float
        The largest violation by a label set outside the working sets in the last pass.
    converged : bool
        Whether the gap is small enough.
    """

    corpus: Corpus | None
    sizes: SizeEmbedding
    W: np.ndarray
    chunks: list
    duals: list
    objectives: list = field(default_factory=list)
    gap: float = 0.0
    missed: float = 0.0
    converged: bool = True

    @classmethod
    def begin(cls, X, Y, sizes, dtype, order) -> DualAscent:
        """Return the state before the first pass, with weights of zero.

        Documents have unit length, and labels.
        """
        corpus = Corpus(
            X.data.astype(dtype),
            X.indices.astype(np.int32, copy=False),
            X.indptr.astype(np.int64),
            Y.indices.astype(np.int64),
            Y.indptr.astype(np.int64),
        )
        docs = _canonical_order(X, Y)[order.permutation(X.shape[0])]
        chunks = [docs[begin : begin + CHUNK] for begin in range(0, docs.size, CHUNK)]
        W = np.zeros((X.shape[1], sizes.vectors.shape[1], Y.shape[1]), dtype=dtype)
        sizes = with_knots(sizes.vectors.astype(dtype, order="C"), has_empty=sizes.has_empty)
        return cls(corpus, sizes, W, chunks, [None] * len(chunks))

    def start_from(self, start, Y, margins) -> None:
        """Start from dual variables: for each document, pairs of a value and a label set."""
        task, flat_W = margins.task, self.W.reshape(len(self.W), -1)
        own, work = np.split(Y.indices, Y.indptr[1:-1]), self._new_workspace(np.float64)
        for k, chunk in enumerate(self.chunks):
            pairs = [_admissible(start[doc], own[doc], self.sizes, task) for doc in chunk.tolist()]
            self.duals[k] = _store_sets(pairs)
            start_weights(self.corpus, chunk, self.sizes, task, flat_W, self.duals[k], work)

    def run(self, margins, order, max_iter) -> None:
        """Run passes until the gap is a small part of the objective."""
        self.converged = not self.chunks
        while not self.converged and len(self.objectives) < max_iter:
            gap, missed, linear = self.run_pass(margins, order)
            weights = self.W.ravel()
            self.record(gap, missed, float(linear - np.dot(weights, weights) / 2), margins.tol)

    def run_pass(self, margins, order) -> tuple[float, float, float]:
        """Visit all chunks once; return the gap, the largest missed violation, the linear term."""
        measured = np.zeros((len(self.chunks), 3))
        if margins.labels == "all":
            visit_chunk = self._visitor_of_sets(margins.task)
        else:
            visit_chunk = self._visitor_of_neighbours(margins.C)
        for turn, chunk in enumerate(order.permutation(len(self.chunks))):
            checkpoint()
            self.duals[chunk] = visit_chunk(self.chunks[chunk], self.duals[chunk], measured[turn])
        rows = measured.tolist()  # summed one after another: NumPy takes another order
        return (
            sum(row[GAP] for row in rows),
            max(row[MISSED] for row in rows),
            sum(row[LINEAR] for row in rows),
        )

    def record(self, gap, missed, objective, tol) -> None:
        """Record what a pass has measured, and whether training has converged."""
        self.gap, self.missed = gap, missed
        self.objectives.append(objective)
        self.converged = gap <= tol * objective or gap == 0.0

    def _new_workspace(self, step_dtype):
        _, rank, n_labels = self.W.shape
        return new_workspace(rank, n_labels, self.W.dtype, step_dtype)

    def _visitor_of_sets(self, task):
        """Return a function that visits a chunk of documents, against all label sets."""
        _, rank, n_labels = self.W.shape
        flat_W, work = self.W.reshape(len(self.W), -1), self._new_workspace(np.float64)
        search = new_search(rank, n_labels, self.W.dtype)

        def visit_chunk(docs, old, measured):
            old = old or _store_sets([[]] * docs.size)
            n_sets = old.value.size + docs.size
            new = WorkingSets(
                np.empty(docs.size + 1, np.int64),
                np.empty(n_sets),
                np.empty(n_sets + 1, np.int64),
                np.empty(old.label.size + docs.size * n_labels, np.int32),
            )
            workspaces = work, new_duals(np.diff(old.start).max() + 1), search
            ascend_sets(
                self.corpus, docs, self.sizes, task, flat_W, old, new, *workspaces, measured
            )
            used = new.start[-1]
            return new._replace(
                value=new.value[:used].copy(),
                first=new.first[: used + 1].copy(),
                label=new.label[: new.first[used]].copy(),
            )

        return visit_chunk

    def _visitor_of_neighbours(self, C):
        """Return a function that visits a chunk of documents, against their neighbours."""
        n_labels, flat_W = self.W.shape[2], self.W.reshape(len(self.W), -1)
        work = self._new_workspace(self.W.dtype)
        workspaces = work, np.empty(n_labels, self.W.dtype), np.zeros(n_labels)

        def visit_chunk(docs, old, measured):
            most = docs.size * n_labels
            new = Neighbours(
                np.empty(docs.size + 1, np.int64), np.empty(most, np.int32), np.empty(most)
            )
            old = old or Neighbours(
                np.zeros(docs.size + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
            )
            ascend_neighbours(
                self.corpus, docs, self.sizes, C, flat_W, old, new, *workspaces, measured
            )
            used = new.start[-1]
            return new._replace(label=new.label[:used].copy(), value=new.value[:used].copy())

        return visit_chunk

    def working_sets(self, docs, columns) -> list:
        """Return the working sets of documents by number (-1: none), with other label columns.

        Each is a list of pairs of a dual variable and the labels. Sets with a label that has no
        column (-1) are left out.
        """
        pairs_by_doc = {}
        for chunk, sets in zip(self.chunks, self.duals, strict=True):
            for place, doc in enumerate(chunk.tolist()):
                pairs = []
                for s in range(sets.start[place], sets.start[place + 1]):
                    labels = [columns[k] for k in sets.label[sets.first[s] : sets.first[s + 1]]]
                    if min(labels, default=0) >= 0:
                        pairs.append((sets.value[s], sorted(labels)))
                pairs_by_doc[doc] = pairs
        return [pairs_by_doc.get(doc, []) for doc in docs.tolist()]


def _canonical_order(X, Y):
    """Return documents in an order that depends on their contents, not on their rows."""
    mark = np.random.RandomState(0)
    words = X @ mark.uniform(1, 2, X.shape[1])
    return np.lexsort((Y @ mark.uniform(1, 2, Y.shape[1]), words))


def _admissible(pairs, own, sizes, task):
    """Return the dual variables of a document that are admissible here, within their limit."""
    own, least = sorted(own.tolist()), 0 if sizes.has_empty else 1
    pairs = [
        (value, labels)
        for value, labels in pairs
        if labels != own and least <= len(labels) < len(sizes.vectors)
    ]
    if not task.shared:
        return [(min(value, task.C), labels) for value, labels in pairs]
    total = sum(value for value, _ in pairs)
    share = min(1.0, task.C / total) if total else 1.0
    return [(value * share, labels) for value, labels in pairs]


def _store_sets(by_doc) -> WorkingSets:
    """Return the working sets of documents, given as pairs of a dual variable and labels."""
    pairs = [pair for pairs in by_doc for pair in pairs]
    return WorkingSets(
        np.cumsum([0, *(len(pairs) for pairs in by_doc)], dtype=np.int64),
        np.array([value for value, _ in pairs], dtype=np.float64),
        np.cumsum([0, *(len(labels) for _, labels in pairs)], dtype=np.int64),
        np.array([label for _, labels in pairs for label in labels], dtype=np.int32),
    )


# Tuning: C, and curves from scores to probabilities


def sample_documents(model, n_docs: int) -> np.ndarray:
    """Return the rows of the documents to tune on, in order."""
    return draw_documents(n_docs, MAX_DOCS, model.random_state)


def tune(model, X, Y, order=None) -> dict:
    """Tune what is to be tuned on documents of unit length; return the values by name.

    ``order`` has the rows to use; by default, those of `sample_documents`.
    """
    tuned: dict[str, Any] = {}
    tune_cost = is_auto(model.C)
    calibrate = model.calibrate and model._form.kind != "single"
    if X.shape[0] < MIN_DOCS or not (tune_cost or calibrate):
        return {"C": DEFAULT_COST} if tune_cost else tuned
    order = sample_documents(model, X.shape[0]) if order is None else order
    plain = clone(model).set_params(calibrate=False)
    models = [clone(plain).set_params(C=cost) for cost in (COSTS if tune_cost else [model.C])]
    evaluations = _cross_validate(models, X, Y, order, calibrate=calibrate)
    best = int(np.argmax([np.mean([fold.value for fold in folds]) for folds in evaluations]))
    if tune_cost:
        tuned["C"] = COSTS[best]
    if calibrate:
        leads, right, margins, truth = (
            np.concatenate(column)
            for column in zip(*(fold.calibration for fold in evaluations[best]), strict=True)
        )
        tuned["set_curve"] = rising_curve(leads, right)
        if margins.size:  # a model with one label has no margins
            tuned["label_curve"] = rising_curve(margins, truth)
    return tuned


class Evaluation(NamedTuple):
    """How a model does on documents that it was not fitted on."""

    value: float  # of the metric to maximize
    calibration: tuple = ()  # leads of sets, which sets are right, margins, true labels


def _evaluate(fitted, X, Y, *, calibrate):
    metric = subset_accuracy if fitted.goal == "exact" else samples_f1
    if not calibrate:
        return Evaluation(metric(Y, fitted.predict_indicator(X)))
    sets, margins, _ = fitted.assess(X)
    known, right = np.isfinite(margins), (sets != Y).getnnz(axis=1) == 0
    truth = (Y.toarray() > 0)[known]
    return Evaluation(metric(Y, sets), (fitted.lead(X), right, margins[known], truth))


def _cross_validate(models, X, Y, order, *, calibrate):
    """Return for each model its evaluations on the documents of each fold.

    With many documents, only one fold is held out.
    """
    n_folds = FOLDS if order.size < MANY_DOCS else 1
    folds = [np.arange(order.size) % FOLDS == fold for fold in range(n_folds)]

    def run(task):
        model, out = task
        fitted = clone(model).fit(X[order[~out]], Y[order[~out]])
        return _evaluate(fitted, X[order[out]], Y[order[out]], calibrate=calibrate)

    tasks = [(model, out) for model in models for out in folds]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the final fit warns if need be
        results = run_tasks(run, tasks)
    return [results[start : start + n_folds] for start in range(0, len(results), n_folds)]


def score_held_out(model, X, Y, folds) -> HeldOutScores:
    """Return the margins of held-out documents, by the best cost if it is to be tuned."""
    tune_cost = is_auto(model.C)
    costs = COSTS if tune_cost else (model.C,)

    def run(task):
        cost, (train, test) = task
        fitted = clone(model).set_params(C=cost, calibrate=False).fit(X[train], Y[train])
        sets, margins, _ = fitted.assess(X[test])
        metric = subset_accuracy if fitted.goal == "exact" else samples_f1
        return metric(Y[test], sets), margins

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the final fit warns if need be
        results = run_tasks(run, [(cost, fold) for cost in costs for fold in folds])
    by_cost = [results[k : k + len(folds)] for k in range(0, len(results), len(folds))]
    best = int(np.argmax([np.mean([value for value, _ in folds]) for folds in by_cost]))
    margins = np.vstack([margins for _, margins in by_cost[best]])
    return HeldOutScores(margins, {"C": costs[best]} if tune_cost else {})
