"""Training of maximal margin labeling: passes of dual coordinate ascent over the documents."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from polytopic.kernels.blocks import checkpoint
from polytopic.kernels.margins import GAP, LINEAR, MISSED, Corpus, Neighbours, ascend_neighbours
from polytopic.kernels.sizes import EXACT, RESCALED, Sizes
from polytopic.kernels.working_sets import Task, WorkingSets, ascend_sets, start_weights
from polytopic.models.label_embedding import by_vectors

CHUNK = 256  # documents whose dual variables are kept together
GOALS = {"exact": EXACT, "f": RESCALED}


@dataclass
class Ascent:
    """The state of training.

    Attributes
    ----------
    W : ndarray of shape (n_words, rank, n_labels)
        Weights.
    chunks, duals : list
        Documents that are visited one after the other, and their dual variables.
    objectives : list of float
        The dual objective after each pass.
    gap : float
        Between the primal and the dual objective, as the last pass saw it document by document.
    missed : float
        The largest violation by a label set outside the working sets in the last pass.
    converged : bool
        Whether the gap is small enough.
    """

    corpus: Corpus | None
    sizes: Sizes
    W: np.ndarray
    chunks: list
    duals: list
    objectives: list = field(default_factory=list)
    gap: float = 0.0
    missed: float = 0.0
    converged: bool = True

    def run(self, visit, order, tol, max_iter) -> None:
        """Make passes until the gap is a small part of the objective."""
        self.converged = not self.chunks
        while not self.converged and len(self.objectives) < max_iter:
            self.reach(*self.pass_over(visit, order), tol)

    def pass_over(self, visit, order) -> tuple[float, float, float]:
        """Visit all chunks once; return the gap, what was missed and the linear term."""
        measured = np.zeros((len(self.chunks), 3))
        for turn, chunk in enumerate(order.permutation(len(self.chunks))):
            checkpoint()
            self.duals[chunk] = visit(self.chunks[chunk], self.duals[chunk], measured[turn])
        seen = measured.tolist()  # summed one after the other: NumPy takes another order
        return (
            sum(each[GAP] for each in seen),
            max(each[MISSED] for each in seen),
            sum(each[LINEAR] for each in seen),
        )

    def reach(self, gap, missed, linear, tol) -> None:
        """Note what a pass has seen, and whether it is enough."""
        self.gap, self.missed, weights = gap, missed, self.W.ravel()
        self.objectives.append(float(linear - np.dot(weights, weights) / 2))
        self.converged = self.gap <= tol * self.objectives[-1] or self.gap == 0.0

    def visit(self, labels, goal, C, tol):
        """Return what visits a chunk of documents to keep them apart from other label sets."""
        if labels == "neighbours":
            return self.visit_neighbours(C)
        return self.visit_all(Task(GOALS[goal], C, goal == "f", tol))

    def visit_neighbours(self, C):
        """Return what visits a chunk of documents to keep them apart from their neighbours."""

        def visit(docs, old, measured):
            most = docs.size * self.W.shape[2]
            new = Neighbours(
                np.empty(docs.size + 1, np.int64), np.empty(most, np.int32), np.empty(most)
            )
            old = old or no_neighbours(docs.size)
            ascend_neighbours(self.corpus, docs, self.sizes, C, self.W, old, new, measured)
            used = new.start[-1]
            return new._replace(label=new.label[:used].copy(), value=new.value[:used].copy())

        return visit

    def visit_all(self, task):
        """Return what visits a chunk of documents to keep them apart from all label sets."""

        def visit(docs, old, measured):
            old = old or no_sets(docs.size)
            n_sets, n_labels = old.value.size + docs.size, self.W.shape[2]
            new = WorkingSets(
                np.empty(docs.size + 1, np.int64),
                np.empty(n_sets),
                np.empty(n_sets + 1, np.int64),
                np.empty(old.label.size + docs.size * n_labels, np.int32),
            )
            ascend_sets(self.corpus, docs, self.sizes, task, self.W, old, new, measured)
            used = new.start[-1]
            return new._replace(
                value=new.value[:used].copy(),
                first=new.first[: used + 1].copy(),
                label=new.label[: new.first[used]].copy(),
            )

        return visit

    def sets_of(self, docs, columns) -> list:
        """Return the working sets of documents by number (-1: none), over other columns.

        Each is a list of pairs of a dual variable and the labels; sets with a label that has no
        column are left out.
        """
        found = {}
        for chunk, sets in zip(self.chunks, self.duals, strict=True):
            for place, doc in enumerate(chunk.tolist()):
                pairs = []
                for s in range(sets.start[place], sets.start[place + 1]):
                    labels = [columns[k] for k in sets.label[sets.first[s] : sets.first[s + 1]]]
                    if min(labels, default=0) >= 0:
                        pairs.append((sets.value[s], sorted(labels)))
                found[doc] = pairs
        return [found.get(doc, []) for doc in docs.tolist()]


def train(X, Y, sizes, dtype, *, labels, goal, C, tol, max_iter, order, start=None) -> Ascent:
    """Find the weights with the largest margins; documents have unit length, and labels."""
    ascent = new_ascent(X, Y, sizes, dtype, order)
    if start is not None:
        task, own = Task(GOALS[goal], C, goal == "f", tol), np.split(Y.indices, Y.indptr[1:-1])
        for k, chunk in enumerate(ascent.chunks):
            ascent.duals[k] = _stored_sets(
                [_allowed(start[doc], own[doc], ascent.sizes, task) for doc in chunk.tolist()]
            )
            start_weights(ascent.corpus, chunk, ascent.sizes, task, ascent.W, ascent.duals[k])
    ascent.run(ascent.visit(labels, goal, C, tol), order, tol, max_iter)
    return ascent


def new_ascent(X, Y, sizes, dtype, order) -> Ascent:
    """Return the state of training at its beginning, with weights of zero."""
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
    sizes = by_vectors(sizes.vectors.astype(dtype, order="C"), empty=sizes.empty)  # compiled once
    return Ascent(corpus, sizes, W, chunks, [None] * len(chunks))


def _canonical_order(X, Y):
    """Return the documents in an order that depends on what they hold, not on where they stand."""
    mark = np.random.RandomState(0)
    words = X @ mark.uniform(1, 2, X.shape[1])
    return np.lexsort((Y @ mark.uniform(1, 2, Y.shape[1]), words))


def no_neighbours(n_docs):
    """Return dual variables that are all zero."""
    return Neighbours(np.zeros(n_docs + 1, np.int64), np.zeros(0, np.int32), np.zeros(0))


def no_sets(n_docs):
    """Return working sets that are all empty."""
    return _stored_sets([[]] * n_docs)


def _allowed(pairs, own, sizes, task):
    """Return dual variables of a document from elsewhere, as far as it may have them here."""
    own, least = sorted(own.tolist()), 0 if sizes.empty else 1
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


def _stored_sets(by_doc) -> WorkingSets:
    """Return the working sets of documents, from pairs of a dual variable and labels."""
    pairs = [pair for pairs in by_doc for pair in pairs]
    return WorkingSets(
        np.cumsum([0, *(len(pairs) for pairs in by_doc)], dtype=np.int64),
        np.array([value for value, _ in pairs], dtype=np.float64),
        np.cumsum([0, *(len(labels) for _, labels in pairs)], dtype=np.int64),
        np.array([label for _, labels in pairs for label in labels], dtype=np.int32),
    )
