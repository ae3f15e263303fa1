"""The label map: which labels occur together, which are similar, and their words and topics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import check_scalar

from polytopic.errors import PolytopicError
from polytopic.explain.correlations import (
    LabelPair,
    documents_together,
    phi,
    strongest_pairs,
    to_count,
    weight_correlations,
)
from polytopic.explain.display import with_name
from polytopic.explain.explanation import to_plain
from polytopic.labels import LabelTree

if TYPE_CHECKING:
    from polytopic.explain.dendrogram import Dendrogram

GENERIC = 0.3  # power of a term's probability in the corpus that relevance is divided by
NOTICEABLE = 0.05  # smallest share of a topic in a label that is listed
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
    the corpus. These terms are less generic than those with the highest :math:`p(w \mid c)`, and
    less rare than those with the highest lift :math:`p(w \mid c) / p(w)`. Terms with the smallest
    probability are left out, because it comes from smoothing alone.
    """
    used = np.flatnonzero((proba > proba.min()) & (world_proba > 0))
    if not used.size:  # all terms have the same probability
        used = np.flatnonzero(world_proba > 0)
    relevance = proba[used] / world_proba[used] ** GENERIC
    best = used[np.argsort(-relevance, kind="stable")[:n_terms]]
    lift = proba[best] / world_proba[best]
    rows = zip(best.tolist(), proba[best].tolist(), lift.tolist(), strict=True)
    return [RelevantTerm(terms[word], *values) for word, *values in rows]


def topic_shares(label_topics, docs: np.ndarray) -> np.ndarray:
    """Return the shares of topics in labels; rows sum to 1, or 0 for labels without documents."""
    weights = np.asarray(label_topics, dtype=np.float64)
    weights = np.where(docs[:, None] > 0, weights, 0.0)
    total = weights.sum(axis=1, keepdims=True)
    return weights / np.where(total > 0, total, 1.0)


def label_topics(shares: np.ndarray) -> list[LabelTopic]:
    """Return the topics with a noticeable share in a label, largest first."""
    best = np.argsort(-shares, kind="stable").tolist()
    return [LabelTopic(t, float(shares[t])) for t in best if shares[t] >= NOTICEABLE]


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

    The number of documents of a topic is the sum over labels of their documents times its share.
    """
    usage = docs @ shares
    noticeable = np.flatnonzero(shares.max(axis=0) >= NOTICEABLE)
    proba = np.asarray(topic_word_proba, dtype=np.float64)
    return [
        Topic(
            topic=topic,
            documents=float(usage[topic]),
            terms=relevant_terms(proba[topic], world_proba, terms, n_terms),
            labels=_users(shares[:, topic], labels),
        )
        for topic in noticeable[np.argsort(-usage[noticeable], kind="stable")].tolist()
    ]


def _users(shares: np.ndarray, labels: Sequence[str]) -> list[TopicShare]:
    """Return the labels with a noticeable share of a topic, largest first."""
    best = np.argsort(-shares, kind="stable")[:LABELS].tolist()
    return [TopicShare(labels[c], float(shares[c])) for c in best if shares[c] >= NOTICEABLE]


class MapLabel(NamedTuple):
    """A label on the map: its name, number of documents, most relevant terms, and topics.

    The topics are those with a noticeable share in the label, if the model has topics.
    """

    label: str
    name: str
    documents: float
    terms: list[RelevantTerm]
    topics: list[LabelTopic]

    @property
    def display_name(self) -> str:
        """The label with its name, if it has one."""
        return with_name(self.label, self.name)


@dataclass(frozen=True, eq=False, repr=False)
class LabelMap:
    """How labels relate to each other, from :func:`label_map` or ``Labeler.map``.

    Attributes
    ----------
    labels : list of MapLabel
        The labels with their most relevant terms, in the order in which they were given.
    documents : float
        Number of documents.
    positive, negative : list of LabelPair
        The pairs of labels with the strongest positive and negative correlations, strongest first.
    correlations : ndarray of shape (n_labels, n_labels)
        The correlations of all pairs; NaN for labels that never occur together.
    measure : {"phi", "covariance"}
        What is correlated: the labels of documents, or the label weights of a model.
    dendrogram : Dendrogram
        The labels clustered by their words.
    topics : list of Topic
        The topics that labels consist of, most used first, if the model has topics.
    tree : LabelTree or None
        The known tree of the labels.
    n_labels : int
        Number of labels of the model; the map may show only the most frequent ones.
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
    def display_names(self) -> dict[str, str]:
        """The labels with their names, by label."""
        return {label.label: label.display_name for label in self.labels}

    def agreement(self, tree: LabelTree | None = None) -> float:
        """Return how well the clusters agree with a tree, by default the known one.

        See :meth:`polytopic.explain.dendrogram.Dendrogram.agreement`.
        """
        tree = self.tree if tree is None else tree
        if tree is None:
            raise ValueError("tree is None, and the labels have no tree of their own. Pass a tree.")
        return self.dendrogram.agreement(tree)

    def to_dict(self) -> dict[str, Any]:
        """Return the map in a form for strict JSON, with the dendrogram as nested joins.

        ``agreement`` is that with the known tree, None if there is no tree or nothing to compare.
        """
        agreement = math.nan if self.tree is None else self.agreement()
        names = ("documents", "measure", "positive", "negative", "labels", "topics")
        values = {name: to_plain(getattr(self, name)) for name in names}
        return values | {"dendrogram": self.dendrogram.to_dict(), "agreement": to_plain(agreement)}

    def newick(self) -> str:
        """Return the dendrogram in the Newick format, with label ids.

        See :meth:`polytopic.explain.dendrogram.Dendrogram.newick`.
        """
        return self.dendrogram.newick()

    def to_html(self, *, title: str = "Label map") -> str:
        """Return the map as a self-contained HTML page, without scripts or network access."""
        from polytopic.explain.html import map_to_html  # here: pages import maps

        return map_to_html(self, title=title)

    def plot(self):
        """Draw the dendrogram and, next to it, the correlations in the same order.

        Needs matplotlib; returns its figure, which grows with the number of labels.
        """
        return _draw_map(self)


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
    """Return the map of labels from the parameters of a model and the label sets of its corpus.

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
        Names for display; by default, the labels themselves.
    covariance : array of shape (n_labels, n_labels), default=None
        A model's covariance of label weights; correlations are then those of the weights.
    topics : tuple of two arrays, default=None
        A model's word distributions of topics, (n_topics, n_words), and the shares of topics in
        each label, (n_labels, n_topics).
    tree : LabelTree, default=None
        The known tree of the labels.
    n_pairs : int, default=20
        Number of pairs with positive, and of those with negative correlation.
    n_terms : int, default=10
        Number of terms for each label and topic.
    n_labels : int, default=None
        Number of labels of the model, if these are not all.

    Examples
    --------
    >>> news_map = label_map(
    ...     ["film", "space", "sport"],
    ...     [[0.8, 0.1, 0.1], [0.1, 0.6, 0.3], [0.1, 0.2, 0.7]],
    ...     [0.4, 0.3, 0.3],
    ...     ["actor", "orbit", "goal"],
    ...     sets=[[1, 0, 0], [0, 1, 1], [0, 0, 1]],
    ...     set_docs=[4, 3, 1],
    ... )
    >>> news_map.positive
    [LabelPair(first='space', second='sport', correlation=0.774..., documents=3)]
    >>> [round(height, 3) for height in news_map.dendrogram.linkage[:, 2].tolist()]
    [0.431, 1.0]
    """
    from polytopic.explain.dendrogram import Dendrogram  # here: clustering is slow to load

    check_scalar(n_pairs, "n_pairs", Integral, min_val=1)
    check_scalar(n_terms, "n_terms", Integral, min_val=1)
    if not len(labels):
        raise ValueError("labels is empty, must have at least one label.")
    word_proba, world_proba = np.asarray(word_proba), np.asarray(world_proba)
    together, n_docs = documents_together(sets, set_docs), float(np.sum(set_docs))
    docs, by_counts = together.diagonal(), covariance is None
    correlations = (
        phi(together, n_docs) if by_counts else weight_correlations(covariance, together, n_docs)
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
                to_count(n),
                relevant_terms(p, world_proba, terms, n_terms) if n else [],
                label_topics(share),
            )
            for label, name, n, p, share in zip(
                labels, names or labels, docs, word_proba, shares, strict=True
            )
        ],
        documents=to_count(n_docs),
        positive=strongest_pairs(labels, correlations, together, n_pairs),
        negative=[pair._replace(correlation=-pair.correlation) for pair in below],
        correlations=correlations,
        measure="phi" if by_counts else "covariance",
        dendrogram=Dendrogram.from_words(labels, word_proba),
        topics=used_topics(topic_words, shares, labels, docs, world_proba, terms, n_terms),
        tree=tree,
        n_labels=len(labels) if n_labels is None else n_labels,
    )


# The figure

ROW = 0.17  # height of a label in inches
LARGEST_SIDE = 60  # of the correlations in inches; with more labels, rows get smaller
LONGEST_NAME = 40  # characters of a label that are drawn
TICKS = 4  # on the axis of heights
LINE, EMPTY = "#333333", "#e6e6e6"  # lines, and pairs without a correlation


def _draw_map(label_map: LabelMap):
    """Return a figure with the dendrogram and the correlations in its order."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PolytopicError(
            "matplotlib is not installed. Install it with: pip install 'polytopic[plots]'"
        ) from error
    names = [_drawable(label.display_name) for label in label_map.in_order]
    row = min(ROW, LARGEST_SIDE / len(names))
    side, tree = max(2.0, row * len(names)), min(6.0, 2.0 + 0.02 * len(names))
    beside = 0.55 * row * max(map(len, names)) + 0.3
    figure = Figure(figsize=(tree + beside + side + 1.2, side + beside + 0.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[tree, side])
    _draw_tree(left, label_map.dendrogram)
    image = _draw_correlations(right, label_map)
    _write_names(right, names, 72 * row * 0.7)
    figure.colorbar(image, ax=right, label="correlation; grey: none", shrink=min(1, 4 / side))
    return figure


def _draw_tree(axes, dendrogram: Dendrogram) -> None:
    from matplotlib.collections import LineCollection

    depth = dendrogram.depth
    lines = [
        [(depth(above), top), (depth(height), top), (depth(height), bottom), (depth(below), bottom)]
        for height, (top, above), (bottom, below) in dendrogram.joins()
    ]
    axes.add_collection(LineCollection(lines, colors=LINE, linewidths=1.0))
    heights = np.unique(np.linspace(*dendrogram.span, TICKS)).tolist()
    axes.set_xticks([depth(height) for height in heights], [f"{height:.2f}" for height in heights])
    axes.set(xlim=(-0.02, 1.0), xlabel="distance of words")
    axes.spines[["left", "top", "right"]].set_visible(False)
    axes.tick_params(left=False, labelleft=False)


def _draw_correlations(axes, label_map: LabelMap):
    order = label_map.dendrogram.order
    values = label_map.correlations[np.ix_(order, order)]
    strongest = np.nanmax(np.abs(values)) if np.isfinite(values).any() else 1.0
    diagonal = np.where(np.eye(len(values), dtype=bool), 0.0, np.nan)
    axes.set_facecolor(EMPTY)
    axes.imshow(diagonal, cmap="Greys", vmin=-1, vmax=1, aspect="auto")
    image = axes.imshow(values, cmap="RdBu_r", vmin=-strongest, vmax=strongest, aspect="auto")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return image


def _write_names(axes, names: list[str], size: float) -> None:
    """Write names next to rows and below columns, without interpreting them as formulas."""
    places = range(len(names))
    style = {"fontsize": size, "parse_math": False}
    axes.set_yticks(places, names, **style)
    axes.set_xticks(places, names, rotation=90, **style)
    axes.tick_params(labelleft=True)


def _drawable(name: str) -> str:
    """Return a name on one short line."""
    line = "".join(c if c.isprintable() else " " for c in name)
    half = (LONGEST_NAME - 1) // 2  # both ends: the end of a path says most
    return (
        line if len(line) <= LONGEST_NAME else f"{line[: LONGEST_NAME - 1 - half]}…{line[-half:]}"
    )
