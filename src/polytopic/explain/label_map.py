"""The map of labels: which occur together, which are similar, and their words and topics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import check_scalar

from polytopic.explain.correlations import (
    LabelPair,
    documents_together,
    of_covariance,
    phi,
    strongest_pairs,
    whole,
)
from polytopic.explain.drawing import with_name
from polytopic.explain.explanation import plain
from polytopic.labels import LabelTree

if TYPE_CHECKING:
    from polytopic.explain.dendrogram import Dendrogram

GENERIC = 0.3  # power of a term's probability in the corpus that relevance is divided by
NOTICED = 0.05  # smallest share of a topic in a label that is listed
LABELS = 5  # listed per topic


class RelevantTerm(NamedTuple):
    """A term with its probability in a label or topic, and its lift.

    ``lift`` is the probability divided by that in the corpus as a whole.
    """

    term: str
    probability: float
    lift: float


class TopicShare(NamedTuple):
    """A label that uses a topic, and the expected share of its words from the topic."""

    label: str
    share: float


class LabelTopic(NamedTuple):
    """A topic that a label uses, and the expected share of the label's words from it."""

    topic: int
    share: float


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic: the number of documents it amounts to, its terms, and the labels that use it."""

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
    """Return the shares of topics in labels; rows sum to 1, or 0 for labels without documents."""
    weights = np.asarray(label_topics, dtype=np.float64)
    weights = np.where(docs[:, None] > 0, weights, 0.0)
    total = weights.sum(axis=1, keepdims=True)
    return weights / np.where(total > 0, total, 1.0)


def label_topics(shares: np.ndarray) -> list[LabelTopic]:
    """Return the topics with a noticeable share in a label, largest first."""
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
    """Return the topics with a noticeable share in some label, most used first.

    The documents of a topic are those of the labels, times its shares in them.
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
    """Return the labels with a noticeable share of a topic, largest first."""
    best = np.argsort(-shares, kind="stable")[:LABELS]
    return [TopicShare(labels[c], float(shares[c])) for c in best.tolist() if shares[c] >= NOTICED]


class MapLabel(NamedTuple):
    """A label on the map: its name, its documents, its most relevant terms, and its topics.

    The topics are those that it uses noticeably, where the model has topics.
    """

    label: str
    name: str
    documents: float
    terms: list[RelevantTerm]
    topics: list[LabelTopic]

    @property
    def shown(self) -> str:
        """The label for people: with its name beside it, if it has one."""
        return with_name(self.label, self.name)


@dataclass(frozen=True, eq=False, repr=False)
class LabelMap:
    """How labels lie to each other, from :func:`label_map` or ``Labeler.map``.

    Attributes
    ----------
    labels : list of MapLabel
        The labels with their most relevant terms, in the order in which they were given.
    documents : float
        Number of documents.
    positive, negative : list of LabelPair
        The pairs of labels with the strongest correlations above and below zero, strongest first.
    correlations : ndarray of shape (n_labels, n_labels)
        All of them; NaN for pairs that never occur together, which mean nothing.
    measure : {"phi", "covariance"}
        What correlations are of: the labels of documents, or label weights by a model.
    dendrogram : Dendrogram
        The labels clustered by their words.
    topics : list of Topic
        The topics that labels are made of, most used first, where the model has topics.
    tree : LabelTree or None
        The known tree of the labels.
    n_labels : int
        Labels that there are; those on the map may be the most frequent of them.
    """

    labels: list[MapLabel]
    documents: float
    positive: list[LabelPair]
    negative: list[LabelPair]
    correlations: np.ndarray
    measure: str
    dendrogram: Dendrogram
    topics: list[Topic] = field(default_factory=list)
    tree: LabelTree | None = None
    n_labels: int = 0

    def __repr__(self) -> str:
        return f"<LabelMap: {len(self.labels):,} labels of {self.documents:,} documents>"

    @property
    def in_order(self) -> list[MapLabel]:
        """The labels from top to bottom of the dendrogram."""
        return [self.labels[place] for place in self.dendrogram.order]

    @property
    def shown(self) -> dict[str, str]:
        """The labels for people: with their names beside them."""
        return {label.label: label.shown for label in self.labels}

    def agreement(self, tree: LabelTree | None = None) -> float:
        """Return how well the clusters agree with a tree, by default the known one.

        See :meth:`polytopic.explain.dendrogram.Dendrogram.agreement`.
        """
        tree = self.tree if tree is None else tree
        if tree is None:
            raise ValueError("tree is None, and the map knows no tree of its labels; give one.")
        return self.dendrogram.agreement(tree)

    def to_dict(self) -> dict[str, Any]:
        """Return the map in a form for strict JSON, with the dendrogram as nested joins.

        ``agreement`` is with the known tree; None where there is none, or nothing to compare.
        """
        agreement = math.nan if self.tree is None else self.agreement()
        names = ("documents", "measure", "positive", "negative", "labels", "topics")
        found = {name: plain(getattr(self, name)) for name in names}
        return found | {"dendrogram": self.dendrogram.to_dict(), "agreement": plain(agreement)}

    def newick(self) -> str:
        """Return the dendrogram in the Newick format, with labels by their ids.

        See :meth:`polytopic.explain.dendrogram.Dendrogram.newick`.
        """
        return self.dendrogram.newick()

    def to_html(self, *, title: str = "The map of labels") -> str:
        """Return the map as one page that stands alone: no script, no network."""
        from polytopic.explain.html import map_to_html  # here: pages import maps

        return map_to_html(self, title=title)

    def plot(self):
        """Draw the dendrogram and, beside it, the correlations in its order.

        Needs matplotlib; returns its figure, which grows with the labels.
        """
        from polytopic.explain.drawing import draw_map  # here: drawings import maps

        return draw_map(self)


def label_map(
    labels: Sequence[str],
    word_proba,
    world_proba,
    terms: Sequence[str],
    *,
    sets,
    set_docs,
    names: Sequence[str] | None = None,
    covariance=None,
    topics: tuple[Any, Any] | None = None,
    tree: LabelTree | None = None,
    n_pairs: int = 20,
    n_terms: int = 10,
    n_labels: int | None = None,
) -> LabelMap:
    """Draw the map of labels from what a model and its corpus say of them.

    Parameters
    ----------
    labels : sequence of str
        The labels.
    word_proba : array of shape (n_labels, n_words)
        Word distribution of each label.
    world_proba : array of shape (n_words,)
        Word distribution of the corpus.
    terms : sequence of str
        The words.
    sets : sparse matrix of shape (n_label_sets, n_labels)
        The label sets that occur, as an indicator.
    set_docs : array of shape (n_label_sets,)
        Number of documents of each label set.
    names : sequence of str, default=None
        Names that people are shown, the labels themselves by default.
    covariance : array of shape (n_labels, n_labels), default=None
        A model's covariance of label weights, to take correlations from instead of the label sets.
    topics : tuple of two arrays, default=None
        A model's word distributions of topics, (n_topics, n_words), and each label's shares of
        them, (n_labels, n_topics).
    tree : LabelTree, default=None
        The known tree of the labels.
    n_pairs : int, default=20
        Pairs to give, of positive and of negative correlation each.
    n_terms : int, default=10
        Terms to give for each label and topic.
    n_labels : int, default=None
        Labels that there are, where these are not all.

    Examples
    --------
    >>> found = label_map(
    ...     ["film", "space", "sport"],
    ...     [[0.8, 0.1, 0.1], [0.1, 0.6, 0.3], [0.1, 0.2, 0.7]],
    ...     [0.4, 0.3, 0.3],
    ...     ["actor", "orbit", "goal"],
    ...     sets=[[1, 0, 0], [0, 1, 1], [0, 0, 1]],
    ...     set_docs=[4, 3, 1],
    ... )
    >>> found.positive
    [LabelPair(first='space', second='sport', correlation=0.774..., documents=3)]
    >>> [round(height, 3) for height in found.dendrogram.linkage[:, 2].tolist()]
    [0.431, 1.0]
    """
    from polytopic.explain.dendrogram import Dendrogram  # here: clustering is slow to load

    check_scalar(n_pairs, "n_pairs", Integral, min_val=1)
    check_scalar(n_terms, "n_terms", Integral, min_val=1)
    if not len(labels):
        raise ValueError("labels is empty, a map needs at least one label.")
    word_proba, world_proba = np.asarray(word_proba), np.asarray(world_proba)
    together, n_docs = documents_together(sets, set_docs), float(np.sum(set_docs))
    docs, by_counts = together.diagonal(), covariance is None
    correlations = (
        phi(together, n_docs) if by_counts else of_covariance(covariance, together, n_docs)
    )
    below = strongest_pairs(labels, -correlations, together, n_pairs)
    topic_words, shares = (
        topics if topics else (np.empty((0, len(terms))), np.empty((len(docs), 0)))
    )
    shares = topic_shares(shares, docs)
    return LabelMap(
        labels=[
            MapLabel(
                label,
                name,
                whole(n),
                relevant_terms(p, world_proba, terms, n_terms) if n else [],
                label_topics(share),
            )
            for label, name, n, p, share in zip(
                labels, names or labels, docs, word_proba, shares, strict=True
            )
        ],
        documents=whole(n_docs),
        positive=strongest_pairs(labels, correlations, together, n_pairs),
        negative=[pair._replace(correlation=-pair.correlation) for pair in below],
        correlations=correlations,
        measure="phi" if by_counts else "covariance",
        dendrogram=Dendrogram.of_words(labels, word_proba),
        topics=used_topics(topic_words, shares, labels, docs, world_proba, terms, n_terms),
        tree=tree,
        n_labels=len(labels) if n_labels is None else n_labels,
    )
