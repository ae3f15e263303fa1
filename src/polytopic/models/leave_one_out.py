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
from polytopic.kernels import posterior
from polytopic.kernels.blocks import map_rows
from polytopic.labels import with_fallback
from polytopic.models.checks import require_counts
from polytopic.models.prior import SetPrior

BLOCK = 1 << 21  # numbers in the copied rows
TEMPERATURES = tuple(2.0 ** (k / 2) for k in range(-2, 11))  # 0.5 to 32
SMOOTHINGS = (0.1, 0.3, 1.0)
ROUNDING = 1.0 + 1e-9  # of sums of counts that are no integers
TIE = 1e-12
TUNING_DOCS = 1000
TUNING_SETS = 100


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
        out[part.rows] = model._score(part.X, part.sets, part.theta)
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
    everything = SetPrior(getattr(model, "prior", "uniform"), model._sets, model._set_docs)
    seen = everything.tuples()[: model._set_docs.size]
    place = {labels: row for row, labels in enumerate(seen)}
    groups: dict[tuple, list] = {}
    for doc, labels in enumerate(everything.tuples(sets)):
        if labels:
            groups.setdefault(labels, []).append(doc)
    for labels, docs in groups.items():
        row = place.get(labels)
        if row is None:
            raise ValueError(f"document {docs[0]} was not learned with these labels.")
        prior = everything.without(row)
        allowed = model._seen & (prior.sets.T @ prior.set_docs > 0)
        fallback = model._fallback[:0]
        if prior.set_docs.any():
            fallback = prior.sets[int(np.argmax(prior.set_docs))].indices
        _check_learned(X, docs, model.counts_, row)
        for rows in _blocks(np.array(docs), X, model.classes_.size):
            part = X[rows]
            theta = _theta(model, part, sets[rows], row, em_steps)
            own = sparse.csr_matrix(
                (part.data, np.arange(part.nnz), part.indptr), (rows.size, max(part.nnz, 1))
            )
            yield LeftOut(rows, own, sets[rows], theta, allowed, prior, fallback)


def _blocks(docs, X, n_labels):
    """Yield documents in blocks whose copied rows are not too large."""
    work = np.cumsum(np.diff(X.indptr)[docs]) * n_labels // BLOCK
    return np.split(docs, np.flatnonzero(np.diff(work)) + 1)


def _check_learned(X, docs, counts, row):
    """Refuse a document that cannot be among those of a row of the table."""
    part, learned = X[docs], counts.matrix[[row]]
    count = learned.toarray()[0]
    wrong = part.data > count[part.indices] * ROUNDING
    doc = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
    strange = np.bincount(doc, weights=wrong, minlength=part.shape[0]) > 0
    if counts.set_docs[row] <= 1:  # the only one: no word may be left
        strange |= count.sum() > part.sum(axis=1).A1 * ROUNDING
    if strange.any():
        raise ValueError(f"document {docs[int(np.argmax(strange))]} was not learned.")


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
    own = model._own_counts(X, sets)
    doc = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    smoothing = model.smoothing_
    totals = model._label_counts.sum(axis=1).A1
    for column, label in enumerate(labels):
        counts = model._label_counts[[label]].toarray()[0][X.indices] - own[:, column]
        said = np.bincount(doc, weights=own[:, column], minlength=X.shape[0])
        left = np.maximum(totals[label] - said, 0.0) + smoothing * X.shape[1]
        theta[:, label] = (np.maximum(counts, 0.0) + smoothing) / left[doc]
    return theta


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


# Choosing by documents


def tune(model, X, Y, wanted) -> None:
    """Choose temperature and smoothing by the answers to documents that are left out.

    The model's ``chosen_`` gets those that are best in the mean: by F or, where the most probable
    set is the answer, by exact match; of equally good temperatures the one nearest to 1.
    At most ``TUNING_DOCS`` documents are judged, picked by
    their contents; candidates are the ``TUNING_SETS`` seen label sets with the highest bounds.
    """
    docs = sample(X, Y)
    if not docs.size:
        return
    X, Y = X[docs], Y[docs]
    fits: list[tuple] = []
    for smoothing in SMOOTHINGS if "smoothing" in wanted else (model.smoothing_,):
        if smoothing != model.smoothing_:
            model.chosen_["smoothing"] = smoothing
            model._learn(model.classes_.tolist(), model._sets)
        temperatures = TEMPERATURES if "temperature" in wanted else (model.temperature_,)
        quality = _quality(model, X, Y, np.array(temperatures))
        best = quality.max()
        equal = [t for t, q in zip(temperatures, quality, strict=True) if q >= best - TIE]
        plainest = min(equal, key=lambda t: abs(np.log(t)))
        fits.append((best, -len(fits), smoothing, plainest))
    _, _, smoothing, temperature = max(fits)
    if "smoothing" in wanted:
        model.chosen_["smoothing"] = smoothing
        model._learn(model.classes_.tolist(), model._sets)
    if "temperature" in wanted:
        model.chosen_["temperature"] = temperature


def _quality(model, X, Y, temperatures) -> np.ndarray:
    """Return how good the answers are in the mean at each temperature."""
    total = np.zeros(temperatures.size)
    for part in left_out(model, X, Y):
        if part.prior.set_docs.any():
            total += _answers(model, part, temperatures).sum(axis=0)
    return total / max(X.shape[0], 1)


def _answers(model, part, temperatures):
    problem = model._pose(part.theta, part.allowed, part.prior)
    own = part.labels.astype(np.int64)
    out = np.empty((part.rows.size, temperatures.size))
    map_rows(
        lambda data, indices, indptr, rows: posterior.answers_by_temperature(
            data,
            indices,
            indptr,
            problem,
            own,
            temperatures,
            TUNING_SETS,
            model.decode == "f",
            model.decode == "map",
            out[rows],
        ),
        part.X,
    )
    return out


def sample(X, Y, n_docs=TUNING_DOCS) -> np.ndarray:
    """Return rows of labelled documents with words, picked by their contents, not their order."""
    rng = np.random.default_rng(0)
    words = rng.random(X.shape[1])
    labels = rng.random(Y.shape[1])
    mark = (X @ words + np.sqrt(2.0) * (Y @ labels)) * 1e4 % 1.0
    fit = np.flatnonzero((np.diff(X.indptr) > 0) & (np.diff(Y.indptr) > 0))
    order = fit[np.lexsort((fit, mark[fit]))]
    return order[:n_docs]
