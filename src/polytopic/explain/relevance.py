"""The terms that are most relevant to a label or a topic, and the topics of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

GENERIC = 0.3  # power of a term's probability in the corpus that relevance is divided by
NOTICED = 0.05  # share of a topic in a label from which on it is worth telling
LABELS = 5  # that are told of a topic


class RelevantTerm(NamedTuple):
    """A term with its probability in a label or topic, and how much more that is than elsewhere.

    ``lift`` is the probability divided by that in the corpus as a whole.
    """

    term: str
    probability: float
    lift: float


class TopicShare(NamedTuple):
    """A label that uses a topic, and the share of its words that the topic is expected to say."""

    label: str
    share: float


class LabelTopic(NamedTuple):
    """A topic that a label uses, and the share of its words that the topic is expected to say."""

    topic: int
    share: float


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a model: how many documents' worth it says, its terms, and who uses it most."""

    topic: int
    documents: float
    terms: list[RelevantTerm]
    labels: list[TopicShare]


def relevant_terms(
    proba: np.ndarray, world_proba: np.ndarray, terms: Sequence[str], n_terms: int
) -> list[RelevantTerm]:
    r"""Return the most relevant terms of a distribution.

    They have the highest :math:`p(w \mid c) / p(w)^{0.3}`, with :math:`p(w)` the probability in
    the corpus. This ranks less generic terms than :math:`p(w \mid c)` does, and less rare ones
    than the lift :math:`p(w \mid c) / p(w)`. Terms with no more than the smallest probability are
    left out: smoothing alone gives it.
    """
    said = np.flatnonzero((proba > proba.min()) & (world_proba > 0))
    if not said.size:  # all terms are the same to it
        said = np.flatnonzero(world_proba > 0)
    relevance = proba[said] / world_proba[said] ** GENERIC
    best = said[np.argsort(-relevance, kind="stable")[:n_terms]]
    lift = proba[best] / world_proba[best]
    rows = zip(best.tolist(), proba[best].tolist(), lift.tolist(), strict=True)
    return [RelevantTerm(terms[word], p, more) for word, p, more in rows]


def topic_shares(label_topics, docs: np.ndarray) -> np.ndarray:
    """Return labels in topic space: shares that add up to 1, and 0 of labels without documents."""
    weights = np.asarray(label_topics, dtype=np.float64)
    weights = np.where(docs[:, None] > 0, weights, 0.0)
    total = weights.sum(axis=1, keepdims=True)
    return weights / np.where(total > 0, total, 1.0)


def label_topics(shares: np.ndarray) -> list[LabelTopic]:
    """Return the topics that a label uses noticeably, most used first."""
    best = np.argsort(-shares, kind="stable").tolist()
    return [LabelTopic(topic, float(shares[topic])) for topic in best if shares[topic] >= NOTICED]


def used_topics(
    topic_word_proba,
    shares: np.ndarray,
    labels: Sequence[str],
    docs: np.ndarray,
    world_proba: np.ndarray,
    terms: Sequence[str],
    n_terms: int,
) -> list[Topic]:
    """Return the topics that a label uses noticeably, most used first.

    A topic says the sum of the labels' documents times its shares in them.
    """
    used = docs @ shares
    noticed = np.flatnonzero(shares.max(axis=0) >= NOTICED)
    proba = np.asarray(topic_word_proba, dtype=np.float64)
    return [
        Topic(
            topic=topic,
            documents=float(used[topic]),
            terms=relevant_terms(proba[topic], world_proba, terms, n_terms),
            labels=_users(shares[:, topic], labels),
        )
        for topic in noticed[np.argsort(-used[noticed], kind="stable")].tolist()
    ]


def _users(shares: np.ndarray, labels: Sequence[str]) -> list[TopicShare]:
    """Return the labels that use a topic noticeably, most of all first."""
    best = np.argsort(-shares, kind="stable")[:LABELS]
    return [TopicShare(labels[c], float(shares[c])) for c in best.tolist() if shares[c] >= NOTICED]
