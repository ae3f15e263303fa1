"""Reasons by word: which label says how much of a text, and with which words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from polytopic.models import CountModel


@dataclass(frozen=True, slots=True)
class Word:
    """A term that speaks for a label.

    ``share`` is the label's part of the term, ``evidence`` how much more likely the label makes
    its occurrences than the corpus as a whole does, in nats.
    """

    term: str
    count: float
    share: float
    evidence: float


@dataclass(frozen=True, slots=True)
class Place:
    """A word in the text, ``text[start:end]``, and the share of each label in it."""

    start: int
    end: int
    term: str
    shares: dict[str, float]


@dataclass(frozen=True)
class LabelReason:
    """A label of a text: its share of the words, and the words that say so, strongest first."""

    label: str
    share: float
    evidence: float
    words: list[Word]


@dataclass(frozen=True)
class Explanation:
    """Why a text has its labels.

    Attributes
    ----------
    labels : list of LabelReason
        The labels, largest share first; shares sum to one.
    places : list of Place
        The known words where they stand in the text; empty unless the text is one string.
    unknown : list of str
        Terms that the model does not know.
    """

    labels: list[LabelReason]
    places: list[Place]
    unknown: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation in a form for JSON."""
        return asdict(self)


def explain_counts(model: CountModel, terms, x: sparse.csr_matrix, labels) -> list[LabelReason]:
    """Return the reasons for each of the labels of one document (one row of counts)."""
    column = {label: place for place, label in enumerate(model.classes_.tolist())}
    said = model.word_labels(x, [labels])
    shares = np.zeros((len(labels), x.nnz))
    shares[:] = said.share.reshape(x.nnz, len(labels)).T if x.nnz else 0.0
    total = x.data.sum()
    reasons = []
    for label, share in zip(sorted(labels), shares, strict=True):
        log_proba = np.log(model.word_proba_[column[label]][x.indices])
        evidence = x.data * (log_proba - model.world_log_proba_[x.indices])
        order = np.argsort(-(share * evidence), kind="stable")
        words = [
            Word(terms[x.indices[k]], float(x.data[k]), float(share[k]), float(evidence[k]))
            for k in order
        ]
        whole = float(share @ x.data / total) if total else 1 / len(labels)
        reasons.append(LabelReason(label, whole, float(evidence.sum()), words))
    return sorted(reasons, key=lambda reason: (-reason.share, reason.label))


def places_of(reasons: list[LabelReason], spans) -> list[Place]:
    """Return the places of known terms, each with its shares."""
    shares: dict[str, dict[str, float]] = {}
    for reason in reasons:
        for word in reason.words:
            shares.setdefault(word.term, {})[reason.label] = word.share
    return [Place(s.start, s.end, s.term, shares[s.term]) for s in spans if s.term in shares]
