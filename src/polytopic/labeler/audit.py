"""Audits: learned texts whose labels are doubtful, and the labels that fit better."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from polytopic.counts import RowCollector
from polytopic.labeler.held_out import calibrate, hold_out
from polytopic.labeler.state import LabelerState
from polytopic.labels import LabelSpace, Targets
from polytopic.models import leave_one_out

if TYPE_CHECKING:
    from polytopic.labeler.estimator import Labeler

WORDS = 3  # of evidence per text


@dataclass(frozen=True)
class Suspect:
    """A text with doubtful labels.

    ``index`` is its place among the texts, and ``id`` that of its document, if it is one.
    ``better`` are labels that fit better than its own ``labels``; ``missing`` are in ``better``
    only, ``extra`` in ``labels`` only. ``suspicion`` ranks the texts of one audit, see
    :meth:`polytopic.Labeler.audit`. ``words`` are the strongest evidence for ``better``.
    """

    index: int
    id: str | None
    labels: list[str]
    better: list[str]
    suspicion: float
    missing: list[str]
    extra: list[str]
    words: list[str]


class Suspects(list[Suspect]):
    """Texts with doubtful labels, most suspicious first.

    Attributes
    ----------
    audited : int
        Number of texts assessed: those with labels and a known word, except ``alone``.
    doubtful : int
        Number of texts for which other labels fit better, listed or not.
    alone : list of int
        Places of texts with a label that no other text has. Without the text, nothing is known of
        this label, so it cannot be assessed.
    """

    def __init__(
        self, suspects: Iterable[Suspect] = (), *, audited: int, doubtful: int, alone: list[int]
    ):
        super().__init__(suspects)
        self.audited, self.doubtful, self.alone = audited, doubtful, alone


class Judgement(NamedTuple):
    """How well the labels of learned texts fit, judged without them.

    Attributes
    ----------
    suspicion : ndarray of shape (n_docs,)
        0 if no other labels fit better, nan where nothing is known.
    better : csr_matrix of shape (n_docs, n_labels)
        The labels that fit best.
    alone : ndarray of bool, shape (n_docs,)
        Whether the text is the only one with one of its labels.
    word_gains : callable
        Returns how much each word of some rows favours the better labels: the rows of the counts,
        of the texts' own labels and of the better ones are its arguments.
    """

    suspicion: np.ndarray
    better: sparse.csr_matrix
    alone: np.ndarray
    word_gains: Callable[..., list[np.ndarray]]


def find_suspects(
    labeler: Labeler, state: LabelerState, texts: Sequence, ids: Sequence[str | None], Y, k: int
) -> Suspects:
    """Return the ``k`` learned texts with the most doubtful labels.

    The indicator ``Y`` (n_texts, n_labels) has the labels they were learned with.
    """
    counts, terms = state.analyzer.count(texts, labeler.fields)
    X = state.vocabulary.select(counts, terms)
    if state.model.audit_method == "leave-one-out":
        judgement = _leave_out(state, X, Y)
    else:
        judgement = _hold_out(labeler, state, counts, terms, Y)
    suspicion = np.nan_to_num(judgement.suspicion)
    top = np.argsort(-suspicion, kind="stable")[:k]
    top = top[suspicion[top] > 0]
    descriptions = _describe(state, judgement, X[top], Y[top], judgement.better[top])
    return Suspects(
        (
            Suspect(place, ids[place], labels, better, float(suspicion[place]), *reasons)
            for place, (labels, better, *reasons) in zip(top.tolist(), descriptions, strict=True)
        ),
        audited=int((~np.isnan(judgement.suspicion)).sum()),
        doubtful=int((suspicion > 0).sum()),
        alone=np.flatnonzero(judgement.alone).tolist(),
    )


def _leave_out(state: LabelerState, X, Y) -> Judgement:
    """Judge texts by the model without the counts of each."""
    model = state.model
    audit = leave_one_out.audit(model, X, Y)
    suspicion = audit.suspicion / np.sqrt(np.maximum(X.sum(axis=1).A1, 1.0))

    def word_gains(x, own, better):
        return leave_one_out.word_gains(model, x, own, better)

    return Judgement(suspicion, audit.sets, audit.alone, word_gains)


def _hold_out(labeler: Labeler, state: LabelerState, counts, terms, Y) -> Judgement:
    """Judge texts by models of those in other folds."""
    n_docs, model = Y.shape[0], state.model
    suspicion, alone = np.full(n_docs, np.nan), np.zeros(n_docs, dtype=bool)
    better = sparse.lil_matrix(Y.shape)
    labelled = np.flatnonzero(Y.getnnz(axis=1))
    if labelled.size:
        collector = RowCollector()
        collector.add(counts, terms, Targets(Y, state.space.ids))
        rows = collector.rows()
        others = None if state.documents is None else state.documents - rows
        held_out = hold_out(labeler, state, rows, others, floor=True)
        own = Y[labelled].toarray() > 0
        is_alone = (own & np.isneginf(held_out.scores)).any(axis=1)
        judged = held_out.known & ~is_alone
        alone[labelled] = held_out.known & is_alone
        suspicion[labelled[judged]] = _surprise(held_out.scores[judged], own[judged])
        fits = (held_out.sets != Y[labelled]).getnnz(axis=1) == 0
        suspicion[labelled[judged & fits]] = 0.0
        better[labelled] = held_out.sets

    def word_gains(x, own, better):
        return [
            _word_gains(model, state.weigh(x[row]), own[row], better[row])[x[row].indices]
            for row in range(x.shape[0])
        ]

    return Judgement(suspicion, sparse.csr_matrix(better), alone, word_gains)


def _surprise(scores: np.ndarray, own: np.ndarray) -> np.ndarray:
    r"""Return how much the labels of texts contradict the scores of labels.

    One rising curve turns all scores into probabilities :math:`p`. The surprise is the mean
    :math:`-\log p` of a text's labels, plus the largest :math:`-\log(1 - p)` of its other labels.
    """
    proba = calibrate(scores, own)
    of_own = -np.where(own, np.log(proba), 0.0).sum(axis=1) / own.sum(axis=1)
    return of_own - np.where(own, 0.0, np.log1p(-proba)).min(axis=1)


def _word_gains(model, x, own, better) -> np.ndarray:
    """Return how much each word of the vocabulary favours the better labels of one text."""
    gains = np.zeros(x.shape[1])
    if better.nnz:
        ours, theirs = model.explain_words(x, own), model.explain_words(x, better)
        gains[x.indices] = theirs.weights * (theirs.word_scores - ours.word_scores)
    return gains


def _describe(state: LabelerState, judgement: Judgement, X, Y, better) -> Iterator[tuple]:
    """Yield each text's labels, better labels, their differences, and the evidence."""
    if not X.shape[0]:
        return
    space, terms = LabelSpace(state.model.classes_.tolist()), state.vocabulary.terms
    gains = judgement.word_gains(X, Y, better)
    rows = zip(space.decode(Y), space.decode(better), gains, strict=True)
    for row, (labels, suggested, gain) in enumerate(rows):
        missing = [label for label in suggested if label not in labels]
        extra = [label for label in labels if label not in suggested]
        words = X[row].indices
        order = np.argsort(-gain, kind="stable")[:WORDS].tolist()
        yield labels, suggested, missing, extra, [terms[words[k]] for k in order if gain[k] > 0]
