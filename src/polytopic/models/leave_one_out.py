"""Leave-one-out: what a count model would say about a training document if it had not seen it.

The counts of a document are subtracted from the table, exactly. Only its own words matter, so their
rows of the word distributions are copied, corrected, and passed to the model's ordinary methods as
``theta``. Documents with the same label set change the same labels and are handled together.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.counts import LabelSetCounts, look_up_counts
from polytopic.errors import NotLearnedError
from polytopic.kernels import words as kernels
from polytopic.labels import with_fallback
from polytopic.models.checks import require_counts

BLOCK = 1 << 21  # numbers in the copied rows of word distributions
ROUNDING = 1.0 + 1e-9  # allowance for sums of fractional counts


class Group(NamedTuple):
    """Documents of one label set, each with the parameters of a model that never saw it.

    Attributes
    ----------
    docs : ndarray of int
        Rows of the documents among all that were given.
    X : csr_matrix
        Their counts, with one column per stored count.
    sets : csr_matrix
        Their label set, once per document.
    theta : ndarray
        Word distributions of the labels, one row per column of ``X``.
    table_row : int
        Row of the label set in the model's table.
    set_docs : ndarray
        Documents of each label set of the table, less the one that is left out.
    allowed : ndarray of bool
        Labels that still have documents.
    fallback : ndarray of int
        Labels of the most frequent set; empty if no document is left.
    """

    docs: np.ndarray
    X: sparse.csr_matrix
    sets: sparse.csr_matrix
    theta: np.ndarray
    table_row: int
    set_docs: np.ndarray
    allowed: np.ndarray
    fallback: np.ndarray

    @property
    def labels(self) -> np.ndarray:
        """The labels of the set."""
        return self.sets.indices[: self.sets.indptr[1]]


def log_likelihood(model, X, Y, em_steps=0) -> np.ndarray:
    """Return the log likelihood of each training document without its own counts."""
    check_scalar(em_steps, "em_steps", Integral, min_val=0)
    X, sets = _check(model, X, Y)
    out = np.full(X.shape[0], -np.inf)
    for group in groups(model, X, sets, em_steps):
        out[group.docs] = model._log_likelihood(group.X, group.sets, group.theta)
    return out


def predict(model, X, Y, em_steps=0):
    """Return the labels that each training document would get without its own counts."""
    check_scalar(em_steps, "em_steps", Integral, min_val=0)
    X, sets = _check(model, X, Y)
    answers = sparse.lil_matrix(sets.shape)
    for group in groups(model, X, sets, em_steps):
        if not group.allowed.any():
            raise ValueError("no document would be left to learn from; at least two are needed.")
        chosen = model._loo_sets(group)
        answers[group.docs] = with_fallback(group.X, chosen, group.fallback)
    answers = sparse.csr_matrix(answers)
    if model._form.kind == "single":
        return model.classes_[answers.indices]
    return model._form.convert(answers)


def groups(model, X, sets, em_steps=0) -> Iterator[Group]:
    """Yield labelled training documents in groups, each without its own counts."""
    rows = table_rows(model, X, sets)
    order = np.argsort(rows, kind="stable")
    order = order[rows[order] >= 0]
    for docs in np.split(order, np.flatnonzero(np.diff(rows[order])) + 1) if order.size else ():
        row = int(rows[docs[0]])
        set_docs = model._set_docs.copy()
        set_docs[row] = max(set_docs[row] - 1.0, 0.0)
        allowed = model._seen & (model._sets.T @ set_docs > 0)
        fallback = model._fallback[:0]
        if set_docs.any():
            fallback = model._sets[int(np.argmax(set_docs))].indices
        for block in _blocks(docs, X, model.classes_.size):
            part = X[block]
            theta = _group_theta(model, part, sets[block], row, em_steps)
            own = sparse.csr_matrix(
                (part.data, np.arange(part.nnz), part.indptr), (block.size, max(part.nnz, 1))
            )
            yield Group(block, own, sets[block], theta, row, set_docs, allowed, fallback)


def table_rows(model, X, sets) -> np.ndarray:
    """Return the row of each document's label set in the model's table, -1 without a label.

    Raises NotLearnedError for a document that cannot have been learned.
    """
    place = {labels: row for row, labels in enumerate(_as_tuples(model._sets))}
    rows = np.full(X.shape[0], -1)
    for doc, labels in enumerate(_as_tuples(sets)):
        if labels:
            rows[doc] = place.get(labels, -1)
            if rows[doc] < 0:
                raise NotLearnedError(f"document {doc} was not learned with these labels.")
    _check_learned(X, rows, model.counts_)
    return rows


def _as_tuples(sets) -> list[tuple]:
    """Return the rows of an indicator as sorted tuples."""
    labels = sets.indices.tolist()
    return [tuple(sorted(labels[a:b])) for a, b in pairwise(sets.indptr.tolist())]


def _blocks(docs, X, n_labels):
    """Split documents into blocks whose copied rows stay small."""
    work = np.cumsum(np.diff(X.indptr)[docs]) * n_labels // BLOCK
    return np.split(docs, np.flatnonzero(np.diff(work)) + 1)


def _check_learned(X, rows, counts):
    """Reject a document that cannot be among those of its row of the table."""
    used, place = np.unique(rows, return_inverse=True)
    table = counts.matrix[used]  # faster to look up in
    known = np.repeat(rows >= 0, np.diff(X.indptr))
    count = look_up_counts(table, np.repeat(place, np.diff(X.indptr)), X.indices)
    wrong = known & (X.data > count * ROUNDING)
    doc = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    unknown = np.bincount(doc, weights=wrong, minlength=X.shape[0]) > 0
    only = (rows >= 0) & (counts.set_docs[rows] <= 1)  # no word may remain
    words = counts.matrix.sum(axis=1).A1[rows]
    unknown |= only & (words > X.sum(axis=1).A1 * ROUNDING)
    if unknown.any():
        raise NotLearnedError(f"document {int(np.argmax(unknown))} was not learned.")


def _check(model, X, Y):
    check_is_fitted(model)
    X = model._check_words(X)
    sets = model._check_sets(X, Y)
    require_counts(model.counts_, "it has none to leave documents out of")
    return X, sets


def _group_theta(model, X, sets, row, em_steps):
    """Return the word distributions for each stored count, without its document's own."""
    if not X.nnz:
        return model._theta[:1]  # never read
    if em_steps:
        rows = [_theta_after_em(model, x, row, em_steps) for x in X]
        return np.ascontiguousarray(np.vstack(rows))  # the layout that kernels expect
    theta = model._theta[X.indices]
    labels = sets.indices[: sets.indptr[1]]
    theta[:, labels] = loo_theta(model, X, sets).reshape(X.nnz, -1)
    return theta


def loo_theta(model, X, sets) -> np.ndarray:
    """Return the probabilities of documents' words under their labels, without their own counts.

    One document after the other, word by word.
    """
    own = model._own_counts(X, sets)
    counts = model._label_counts.sorted_indices()
    out = np.empty(own.size)
    kernels.loo_theta(
        X.indices.astype(np.int32, copy=False),
        X.indptr.astype(np.int64),
        sets.indices.astype(np.int64),
        sets.indptr.astype(np.int64),
        own,
        (counts.data, counts.indices.astype(np.int32, copy=False), counts.indptr.astype(np.int64)),
        counts.sum(axis=1).A1,
        float(model.smoothing_),
        X.shape[1],
        out,
    )
    return out


def _theta_after_em(model, x, row, em_steps):
    """Return the distributions of one document's words after EM steps without it."""
    table: LabelSetCounts = model.counts_
    own = sparse.csr_matrix((x.data, (np.full(x.nnz, row), x.indices)), shape=table.matrix.shape)
    remaining = sparse.csr_matrix(table.matrix - own)
    remaining.eliminate_zeros()
    counts = model._continue_em(remaining, model._sets, em_steps)
    totals = counts.sum(axis=1).A1 + model.smoothing_ * counts.shape[1]
    return ((counts[:, x.indices].toarray() + model.smoothing_) / totals[:, None]).T


# Finding suspicious labels


class Audit(NamedTuple):
    """How well the labels of training documents fit them, judged without their own counts.

    Attributes
    ----------
    own : ndarray of shape (n_docs,)
        Score of the document's own labels; ``-inf`` where it is *alone*: no other document has
        one of its labels, so that nothing is known about that label without it.
    best : ndarray of shape (n_docs,)
        Score of the best label set; never less than ``own``.
    sets : csr_matrix of shape (n_docs, n_labels)
        The best label set, which is the document's own if none is better.

    Notes
    -----
    Documents without words or labels have no scores: ``own`` and ``best`` are nan, and the set is
    empty.
    """

    own: np.ndarray
    best: np.ndarray
    sets: sparse.csr_matrix

    @property
    def alone(self) -> np.ndarray:
        """Whether the document is the only one with one of its labels."""
        return np.isneginf(self.own)

    @property
    def suspicion(self) -> np.ndarray:
        """How much better the best set is, 0 if none is; nan where nothing is known."""
        return np.where(self.alone, np.nan, self.best - np.where(self.alone, 0.0, self.own))


def audit(model, X, Y) -> Audit:
    """Compare the labels of training documents with those that fit them best.

    A mixture scores label sets by their log joint probability; the best one is searched among the
    candidates of ``predict_proba``. A model that answers with one label (naive Bayes, or any model
    after a 1-D ``y``) scores a label by its log likelihood, and a set by its best label: it
    suspects a document only if none of its labels is the best one.
    """
    X, sets = _check(model, X, Y)
    own, best = np.full((2, X.shape[0]), np.nan)
    better = sparse.lil_matrix(sets.shape)
    labelled = sparse.csr_matrix(sparse.diags_array((np.diff(X.indptr) > 0) * 1.0) @ sets)
    labelled.eliminate_zeros()
    for group in groups(model, X, labelled):
        own[group.docs], best[group.docs], better[group.docs] = _audit_group(model, group)
    return Audit(own, best, sparse.csr_matrix(better))


def _audit_group(model, group):
    """Return the scores of the own and the best sets of documents, and the best sets."""
    if not group.set_docs.any():  # the only document of all
        nothing = np.full(group.docs.size, -np.inf)
        return nothing, nothing, sparse.csr_matrix(group.sets.shape)
    own, best, chosen = model._loo_audit(group)
    if not group.allowed[group.labels].all():
        return np.full_like(own, -np.inf), best, chosen
    same = (chosen != group.sets).sum(axis=1).A1 == 0
    best = np.where(same, own, best)  # equal despite rounding
    own_is_best = own >= best
    chosen = sparse.diags_array((~own_is_best).astype(float)) @ chosen
    own_sets = sparse.diags_array(own_is_best.astype(float)) @ group.sets
    return own, np.maximum(own, best), sparse.csr_matrix(chosen + own_sets)


def word_gains(model, X, Y, better) -> list[np.ndarray]:
    r"""Return how much each stored word of training documents favours better labels.

    That is :math:`x_w (\log \varphi_w - \log \varphi'_w)`, where :math:`\varphi` is the words'
    distribution under the better labels (rows of an indicator) and :math:`\varphi'` under the
    document's own, both without the document's own counts.
    """
    X, sets = _check(model, X, Y)
    gains = [np.zeros(0)] * X.shape[0]
    for group in groups(model, X, sets):
        for place, doc in enumerate(group.docs.tolist()):
            x = group.X[place]
            log_better, log_own = (
                model._log_words(x, labels, group.theta)
                for labels in (better[doc], group.sets[place])
            )
            gains[doc] = x.data * (log_better - log_own)
    return gains
