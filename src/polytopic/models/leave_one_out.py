"""Leaving a learned document out: its own counts are taken from the table before it is judged.

Documents with the same label set share the labels that change, so they are judged together. Only a
document's own words matter to it: its rows of the word distributions are copied, changed, and given
to the same kernels as rows of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.counts import LabelSetCounts
from polytopic.kernels import left_out as kernels
from polytopic.labels import with_fallback
from polytopic.models.arrays import lookup
from polytopic.models.checks import require_counts
from polytopic.models.prior import SetPrior, as_tuples

BLOCK = 1 << 21  # numbers in the copied rows
ROUNDING = 1.0 + 1e-9  # of sums of counts that are no integers


class LeftOut(NamedTuple):
    """Documents of one label set, each with the model that never saw it.

    ``rows`` are their places among all, ``X`` their counts with a column for each stored count,
    ``theta`` the rows of these columns; ``allowed`` labels, ``prior`` and ``fallback`` are the
    same for all.
    """

    rows: np.ndarray
    X: sparse.csr_matrix
    sets: sparse.csr_matrix
    theta: np.ndarray
    allowed: np.ndarray
    prior: SetPrior
    fallback: np.ndarray

    @property
    def labels(self) -> np.ndarray:
        """The labels of the set."""
        return self.sets.indices[: self.sets.indptr[1]]


def log_likelihood(model, X, Y, em_steps=0) -> np.ndarray:
    """Return the log likelihood of each learned document without its own counts."""
    check_scalar(em_steps, "em_steps", Integral, min_val=0)
    X, sets = _check(model, X, Y)
    out = np.full(X.shape[0], -np.inf)
    for part in left_out(model, X, sets, em_steps):
        out[part.rows] = model._log_likelihood(part.X, part.sets, part.theta)
    return out


def predict(model, X, Y, em_steps=0):
    """Return the labels that each learned document would get without its own counts."""
    check_scalar(em_steps, "em_steps", Integral, min_val=0)
    X, sets = _check(model, X, Y)
    answers = sparse.lil_matrix(sets.shape)
    for part in left_out(model, X, sets, em_steps):
        if not part.allowed.any():
            raise ValueError("no document would be left to learn from; at least two are needed.")
        chosen = model._choose_left_out(part)
        answers[part.rows] = with_fallback(part.X, chosen, part.fallback)
    answers = sparse.csr_matrix(answers)
    if model._form.kind == "single":
        return model.classes_[answers.indices]
    return model._form.give_back(answers)


def left_out(model, X, sets, em_steps=0) -> Iterator[LeftOut]:
    """Yield labelled documents in groups, each without its own counts."""
    everything = SetPrior(model._prior_kind, model._sets, model._set_docs)
    learned = learned_rows(model, X, sets)
    order = np.argsort(learned, kind="stable")
    order = order[learned[order] >= 0]
    for docs in np.split(order, np.flatnonzero(np.diff(learned[order])) + 1) if order.size else ():
        row = int(learned[docs[0]])
        prior = everything.without(row)
        allowed = model._seen & (prior.sets.T @ prior.set_docs > 0)
        fallback = model._fallback[:0]
        if prior.set_docs.any():
            fallback = prior.sets[int(np.argmax(prior.set_docs))].indices
        for rows in _blocks(docs, X, model.classes_.size):
            part = X[rows]
            theta = _theta(model, part, sets[rows], row, em_steps)
            own = sparse.csr_matrix(
                (part.data, np.arange(part.nnz), part.indptr), (rows.size, max(part.nnz, 1))
            )
            yield LeftOut(rows, own, sets[rows], theta, allowed, prior, fallback)


def learned_rows(model, X, sets) -> np.ndarray:
    """Return the row of each document's label set in the model's table, -1 without a label.

    A document that cannot have been learned is refused.
    """
    place = {labels: row for row, labels in enumerate(as_tuples(model._sets))}
    rows = np.full(X.shape[0], -1)
    for doc, labels in enumerate(as_tuples(sets)):
        if labels:
            rows[doc] = place.get(labels, -1)
            if rows[doc] < 0:
                raise ValueError(f"document {doc} was not learned with these labels.")
    _check_learned(X, rows, model.counts_)
    return rows


def _blocks(docs, X, n_labels):
    """Yield documents in blocks whose copied rows are not too large."""
    work = np.cumsum(np.diff(X.indptr)[docs]) * n_labels // BLOCK
    return np.split(docs, np.flatnonzero(np.diff(work)) + 1)


def _check_learned(X, rows, counts):
    """Refuse a document that cannot be among those of its row of the table."""
    used, place = np.unique(rows, return_inverse=True)
    table = counts.matrix[used]  # much less to look through
    known = np.repeat(rows >= 0, np.diff(X.indptr))
    count = lookup(table, np.repeat(place, np.diff(X.indptr)), X.indices)
    wrong = known & (X.data > count * ROUNDING)
    doc = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    strange = np.bincount(doc, weights=wrong, minlength=X.shape[0]) > 0
    only = (rows >= 0) & (counts.set_docs[rows] <= 1)  # no word may be left
    words = counts.matrix.sum(axis=1).A1[rows]
    strange |= only & (words > X.sum(axis=1).A1 * ROUNDING)
    if strange.any():
        raise ValueError(f"document {int(np.argmax(strange))} was not learned.")


def _check(model, X, Y):
    check_is_fitted(model)
    X = model._check_words(X)
    sets = model._check_sets(X, Y)
    require_counts(model.counts_, "it has none to leave documents out of")
    return X, sets


def _theta(model, X, sets, row, em_steps):
    """Return the word distributions for each stored count, without its document's own."""
    if not X.nnz:
        return model._theta[:1]  # no word will look
    if em_steps:
        relearned = [_relearned(model, x, row, em_steps) for x in X]
        return np.ascontiguousarray(np.vstack(relearned))  # what the kernels are compiled for
    theta = model._theta[X.indices]
    labels = sets.indices[: sets.indptr[1]]
    theta[:, labels] = own_theta(model, X, sets).reshape(X.nnz, -1)
    return theta


def own_theta(model, X, sets) -> np.ndarray:
    """Return the probabilities of documents' words under their labels, without their own counts.

    One document after the other, word by word.
    """
    own = model._own_counts(X, sets)
    counts = model._label_counts.sorted_indices()
    out = np.empty(own.size)
    kernels.own_theta(
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


def _relearned(model, x, row, em_steps):
    """Return the distributions of one document's words after EM steps without it."""
    table: LabelSetCounts = model.counts_
    gone = sparse.csr_matrix((x.data, (np.full(x.nnz, row), x.indices)), shape=table.matrix.shape)
    left = sparse.csr_matrix(table.matrix - gone)
    left.eliminate_zeros()
    counts = model._relearned(left, model._sets, em_steps)
    totals = counts.sum(axis=1).A1 + model.smoothing_ * counts.shape[1]
    return ((counts[:, x.indices].toarray() + model.smoothing_) / totals[:, None]).T


# Finding suspicious labels


class Audit(NamedTuple):
    """How well the labels of learned documents suit them, each judged without its own counts.

    Attributes
    ----------
    own : ndarray of shape (n_docs,)
        How well the document's own labels suit it; ``-inf`` where it is *alone*: a label of its
        own has no other document, so that nothing is known of the label without it.
    best : ndarray of shape (n_docs,)
        How well the best label set does; never less than ``own``.
    sets : csr_matrix of shape (n_docs, n_labels)
        The best label set, the document's own if none is better.

    Notes
    -----
    Documents without words or labels are not judged: ``own`` and ``best`` are nan, and the set is
    empty.
    """

    own: np.ndarray
    best: np.ndarray
    sets: sparse.csr_matrix

    @property
    def alone(self) -> np.ndarray:
        """Whether a label of the document has no other document."""
        return np.isneginf(self.own)

    @property
    def suspicion(self) -> np.ndarray:
        """How much better the best set is, 0 if none is; nan where that cannot be told."""
        return np.where(self.alone, np.nan, self.best - np.where(self.alone, 0.0, self.own))


def audit(model, X, Y) -> Audit:
    """Compare the labels of learned documents with those that suit them best.

    A mixture model judges label sets by their log joint; the best one is looked for among the
    candidates of ``predict_proba``. A model that answers with one label (naive Bayes, or any
    after a 1-D ``y``) judges a label by its log likelihood and a set by the best of its labels:
    it doubts a document only if none of its labels is the best one.
    """
    X, sets = _check(model, X, Y)
    own, best = np.full((2, X.shape[0]), np.nan)
    better = sparse.lil_matrix(sets.shape)
    worded = sparse.csr_matrix(sparse.diags_array((np.diff(X.indptr) > 0) * 1.0) @ sets)
    worded.eliminate_zeros()
    for part in left_out(model, X, worded):
        own[part.rows], best[part.rows], better[part.rows] = _judged(model, part)
    return Audit(own, best, sparse.csr_matrix(better))


def _judged(model, part):
    """Return how well the own and the best sets of documents suit them, and the best sets."""
    if not part.prior.set_docs.any():  # no other document at all
        nothing = np.full(part.rows.size, -np.inf)
        return nothing, nothing, sparse.csr_matrix(part.sets.shape)
    own, best, chosen = model._judge_left_out(part)
    if not part.allowed[part.labels].all():
        return np.full_like(own, -np.inf), best, chosen
    same = (chosen != part.sets).sum(axis=1).A1 == 0
    best = np.where(same, own, best)  # whatever the rounding
    keep = own >= best
    chosen = sparse.diags_array((~keep).astype(float)) @ chosen
    kept = sparse.diags_array(keep.astype(float)) @ part.sets
    return own, np.maximum(own, best), sparse.csr_matrix(chosen + kept)


def word_gains(model, X, Y, better) -> list[np.ndarray]:
    r"""Return how much each stored word of learned documents speaks for better labels.

    That is :math:`x_w (\log \varphi_w - \log \varphi'_w)`, with :math:`\varphi` the words'
    distribution under the better labels (rows of an indicator) and :math:`\varphi'` that under
    the document's own, without the document's own counts.
    """
    X, sets = _check(model, X, Y)
    gains = [np.zeros(0)] * X.shape[0]
    for part in left_out(model, X, sets):
        for doc, row in enumerate(part.rows.tolist()):
            x = part.X[doc]
            fits, own = (
                model._log_words(x, sets, part.theta) for sets in (better[row], part.sets[doc])
            )
            gains[row] = x.data * (fits - own)
    return gains
