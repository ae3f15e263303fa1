"""Audits: learned texts whose labels are doubtful, and the labels that fit better."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from polytopic.labels import LabelSpace
from polytopic.models import CountModel, leave_one_out

WORDS = 3  # of evidence per text


@dataclass(frozen=True)
class Suspect:
    """A text with doubtful labels.

    ``index`` is its place among the texts, and ``id`` that of its document, if it is one.
    ``better`` are labels that fit better than its own ``labels``; ``missing`` are in ``better``
    only, ``extra`` in ``labels`` only. ``suspicion`` is the difference of their scores, which are
    logarithms, divided by the square root of the number of words, because differences grow with
    the text. ``words`` are the strongest evidence for ``better``.
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


def find_suspects(
    model: CountModel, terms: Sequence[str], ids: Sequence[str | None], X, Y, k: int
) -> Suspects:
    """Return the ``k`` learned documents with the most doubtful labels.

    ``X`` (n_docs, n_words) has their counts of ``terms``, and the indicator ``Y`` (n_docs,
    n_labels) the labels they were learned with.
    """
    audit = leave_one_out.audit(model, X, Y)
    suspicion = np.nan_to_num(audit.suspicion) / np.sqrt(np.maximum(X.sum(axis=1).A1, 1.0))
    top = np.argsort(-suspicion, kind="stable")[:k]
    top = top[suspicion[top] > 0]
    rows = X[top], Y[top], audit.sets[top]
    descriptions = _describe(model, terms, *rows) if top.size else ()
    return Suspects(
        (
            Suspect(place, ids[place], labels, better, float(suspicion[place]), *reasons)
            for place, (labels, better, *reasons) in zip(top.tolist(), descriptions, strict=True)
        ),
        audited=int((~np.isnan(audit.suspicion)).sum()),
        doubtful=int((suspicion > 0).sum()),
        alone=np.flatnonzero(audit.alone).tolist(),
    )


def _describe(
    model: CountModel, terms: Sequence[str], X: sparse.csr_matrix, Y, better
) -> Iterator[tuple]:
    """Yield each document's labels, better labels, their differences, and the evidence."""
    space = LabelSpace(model.classes_.tolist())
    gains = leave_one_out.word_gains(model, X, Y, better)
    rows = zip(space.decode(Y), space.decode(better), gains, strict=True)
    for row, (labels, suggested, gain) in enumerate(rows):
        missing = [label for label in suggested if label not in labels]
        extra = [label for label in labels if label not in suggested]
        words = X[row].indices
        order = np.argsort(-gain, kind="stable")[:WORDS].tolist()
        yield labels, suggested, missing, extra, [terms[words[k]] for k in order if gain[k] > 0]
