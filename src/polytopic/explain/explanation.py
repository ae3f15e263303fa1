"""Explanations: what the score of a label set is made of, word by word.

The evidence of a probabilistic model is in nats, the unit of natural logarithms: 0.7 means that a
word is twice as likely, 2.3 ten times. The evidence of a linear model (MML) is what a word adds to
the score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse, special

from polytopic.models import ScoreBreakdown, WordScores
from polytopic.models.checks import check_name
from polytopic.text import Analyzer

ORDERS = ("specific", "paper")  # of keywords


class Word(NamedTuple):
    """A term with its evidence for a label; evidence against the label is negative.

    ``share`` is the label's share of the term. ``evidence`` is the label's part of how much
    likelier the term is under the labels than in the whole corpus or, in a linear model, what the
    term adds to the score through this label.
    """

    term: str
    count: float  # type: ignore[assignment]  # replaces the method of tuples
    share: float
    evidence: float


class Place(NamedTuple):
    """A word in the text, ``text[start:end]``.

    ``shares`` maps each label to its share of the word, ``evidence`` is that of this occurrence for
    all labels together, and ``field`` is the name of the field, if the text has fields.
    """

    start: int
    end: int
    term: str
    shares: dict[str, float]
    evidence: float
    field: str | None = None


@dataclass(frozen=True, slots=True)
class LabelReason:
    """A label of a text: its share of the known words, and these, strongest evidence first.

    ``score`` and ``probability`` (to about three digits) are those of a suggestion; ``evidence`` is
    the sum over the words. ``features`` has the evidence of each block of features that the model
    reads beside the words.
    """

    label: str
    share: float
    score: float
    probability: float
    evidence: float
    words: list[Word]
    features: dict[str, float] = field(default_factory=dict)


class Keyword(NamedTuple):
    """A word that distinguishes the labels of a text.

    ``entropy`` is that of its shares: 0 if it belongs to one label alone. ``label`` has the largest
    ``share``; ``evidence`` is that for all labels together.
    """

    term: str
    entropy: float
    label: str
    share: float
    evidence: float


class Objection(NamedTuple):
    """The evidence of a term against another label set; negative if it supports the set."""

    term: str
    amount: float


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a text does not have a label.

    ``labels`` is the best set that contains it, and ``difference`` how much lower its score is than
    that of the explained set (negative if it is higher). The amounts of all ``words``, strongest
    objection first, of the ``features``, ``mixing`` and ``prior`` add up to the difference.
    """

    label: str
    labels: list[str]
    difference: float
    words: list[Objection]
    mixing: float
    prior: float
    features: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Explanation:
    """The explanation of a text's labels.

    Attributes
    ----------
    labels : list of LabelReason
        The labels, largest share first. Shares are of the words that the model knows, and sum to
        one.
    keywords : list of Keyword
        Words with positive evidence, those of a single label first: by ascending entropy, then
        descending evidence. They depend on the labels and on their mixture. Another order can be
        asked for, see :meth:`polytopic.Labeler.keywords`.
    breakdown : ScoreBreakdown
        What the score of the label set is made of.
    why_not : list of WhyNot
        Why the text does not have the labels that were asked about.
    unknown : list of str
        Terms that the model does not know.
    places : list of Place
        The known words in the text, found on first use; empty for a bag of words.
    unit : {"nats", "score"}
        The unit of the evidence: nats, or the score of a linear model.
    known : float
        The share of the text's words that the model knows.
    warning : str or None
        Why the labels may be of little use, see :class:`~polytopic.labeler.Answer`.
    """

    labels: list[LabelReason]
    keywords: list[Keyword]
    breakdown: ScoreBreakdown
    why_not: list[WhyNot]
    unknown: list[str]
    find_places: Callable[[], list[Place]] = field(repr=False, compare=False)
    unit: str = "nats"
    known: float = 1.0
    warning: str | None = None

    @cached_property
    def places(self) -> list[Place]:
        """The known words in the text."""
        return self.find_places()

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation in a form for strict JSON: None stands for infinity."""
        names = [f.name for f in fields(self) if f.name != "find_places"] + ["places"]
        return {name: to_plain(getattr(self, name)) for name in names}


def to_plain(value: Any) -> Any:
    """Return a value in a form for strict JSON: None stands for infinity."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, list):
        return [to_plain(item) for item in value]
    if isinstance(value, tuple):  # a named one
        return to_plain(value._asdict())  # type: ignore[attr-defined]
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    return value


@dataclass(frozen=True)
class PlaceFinder:
    """Finds the known words of a text on demand.

    Parameters
    ----------
    analyzer : Analyzer
        The analyzer of the text.
    strings : dict
        The strings of the text, see :func:`strings_of`.
    weights : mapping of str to float
        Weights of fields; the default weight is 1.
    terms, labels : sequence of str
        The known terms, and the labels.
    shares : ndarray of shape (n_terms, n_labels)
        Share of each label in each term.
    evidence : ndarray of shape (n_terms,)
        Evidence of one occurrence of each term.
    """

    analyzer: Analyzer
    strings: dict[str | None, str]
    weights: Mapping[str | None, float]
    terms: Sequence[str]
    labels: Sequence[str]
    shares: np.ndarray = field(repr=False)
    evidence: np.ndarray = field(repr=False)

    def __call__(self) -> list[Place]:
        """Return the places, in order."""
        return [
            place for name, text in self.strings.items() for place in self._in_string(name, text)
        ]

    def _in_string(self, name, text):
        weight = self.weights.get(name, 1.0)
        if not weight:
            return []
        shares = (dict(zip(self.labels, row, strict=True)) for row in self.shares.tolist())
        evidence = (weight * self.evidence).tolist()
        known = dict(zip(self.terms, zip(shares, evidence, strict=True), strict=True))
        return [
            Place(start, end, term, *known[term], name)
            for term, start, end in self.analyzer.spans(text)
            if term in known
        ]


def strings_of(text) -> dict[str | None, str]:
    """Return the strings of a text by field: one named None, several, or none for a bag."""
    content = getattr(text, "content", text)
    if isinstance(content, str):
        return {None: content}
    if isinstance(content, Mapping) and any(isinstance(v, str) for v in content.values()):
        return dict(content)
    return {}


class Reasons:
    r"""The evidence in one document for a label set, according to a model.

    In a probabilistic model, the evidence of a word :math:`w` is
    :math:`x_w (\log \varphi_w - \log g_w)`, where :math:`\varphi` is the word distribution of
    the label set and :math:`g` that of the corpus; a label's part is its share of the word. In a
    linear model (MML), a label's part is what the word adds to the score through this label, and
    the evidence is their sum; a word of weight 0, such as one in every document, adds 0.

    Parameters
    ----------
    model : model
        A fitted model.
    terms : sequence of str
        Names of the model's words.
    x : csr_matrix of shape (1, n_words)
        The document as the model reads it: counts, or weights.
    y : csr_matrix of shape (1, n_labels)
        Indicator of the label set.
    counts : csr_matrix of shape (1, n_words)
        Word counts of the document; ``x`` itself if the model reads counts.
    mixture_model : mixture model, default=None
        Divides words among labels in place of the model.
    mixture : ndarray of shape (1, n_labels), default=None
        Shares of the labels in the document, in place of those that the model finds.
    features : mapping of str to slice, default=None
        The columns of ``x`` beside the words, by the name of their block; for linear models.
    """

    def __init__(
        self,
        model,
        terms: Sequence[str],
        x: sparse.csr_matrix,
        y,
        *,
        counts,
        mixture_model=None,
        mixture: np.ndarray | None = None,
        features: Mapping[str, slice] | None = None,
    ):
        self.features = features or {}
        self.is_word = x.indices < len(terms)
        self.model, self.x, self.y = model, x, y
        self.counts, self.mixture_model = counts, mixture_model
        self.mixture = {} if mixture is None else {"mixture": mixture}
        self.terms = [terms[w] for w in counts.indices.tolist()]
        self.labels = [str(label) for label in model.classes_[y.indices]]
        self.scores, self.blocks = self._word_scores(y, **self.mixture)
        self.evidence = self.scores.evidence
        self.shares = self._word_shares()
        self.contributions = self._contributions()

    def _spread(self, values, rest=0.0):
        """Return values of the words of ``x`` over all words of ``counts``."""
        spread = np.full((self.counts.nnz, *values.shape[1:]), rest)
        words = self.x.indices[self.is_word]
        spread[np.searchsorted(self.counts.indices, words)] = values[self.is_word]
        return spread

    def _word_scores(self, y, **mixture) -> tuple[WordScores, dict[str, np.ndarray]]:
        """Return what each word of ``counts`` adds to the score of a label set.

        Also return what each block of features adds through each of its labels.
        """
        scores = self.model.explain_words(self.x, y, **mixture)
        if self.is_word.all() and self.x.nnz == self.counts.nnz:
            return scores, {name: np.zeros(y.nnz) for name in self.features}
        by_label, blocks = scores.by_label, {}
        for name, columns in self.features.items():
            inside = (self.x.indices >= columns.start) & (self.x.indices < columns.stop)
            blocks[name] = scores.weights[inside] @ by_label[inside]
        return self._spread_scores(scores, blocks), blocks

    def _spread_scores(self, scores, blocks):
        by_label = scores.by_label
        return replace(
            scores,
            weights=self._spread(scores.weights),
            word_scores=self._spread(scores.word_scores),
            corpus_scores=self._spread(scores.corpus_scores),
            by_label=None if by_label is None else self._spread(by_label),
            features=float(sum(part.sum() for part in blocks.values())),
        )

    def label_reasons(self, scores: np.ndarray, proba: np.ndarray) -> list[LabelReason]:
        """Return the labels with their evidence, given the model's scores and probabilities."""
        shares = self._label_shares()
        reasons = [
            LabelReason(
                label=label,
                share=float(shares[k]),
                score=float(scores[column]),
                probability=float(proba[column]),
                evidence=float(self.contributions[:, k].sum()),
                words=self._words(self.shares[:, k], self.contributions[:, k]),
                features={name: float(part[k]) for name, part in self.blocks.items()},
            )
            for k, (label, column) in enumerate(zip(self.labels, self.y.indices, strict=True))
        ]
        return sorted(reasons, key=lambda reason: (-reason.share, reason.label))

    def _word_shares(self):
        """Return the share of each label in each word; equal shares if a word has no weight."""
        n_labels = self.y.nnz
        if self.mixture_model is not None:
            words = self.mixture_model.word_labels(self.counts, self.y, **self.mixture)
            return words.share.reshape(-1, n_labels)
        words = self.model.word_labels(self.x, self.y, **self.mixture)
        return self._spread(words.share.reshape(-1, n_labels), 1 / n_labels)

    def _contributions(self):
        """Return each label's part of the evidence of each word: exact, or by its share."""
        if self.scores.by_label is None:
            return self.shares * self.evidence[:, None]
        return self.scores.weights[:, None] * self.scores.by_label

    def _label_shares(self):
        """Return each label's share of the document: that of the mixture, or of the words."""
        if self.mixture:
            return self.mixture["mixture"][0, self.y.indices]
        if self.mixture_model is not None:
            return self.mixture_model.mixture(self.counts, self.y)[0, self.y.indices]
        words = self.counts.data @ self.shares  # of each label
        if self.model.has_mixture:
            of_all = np.zeros(self.y.shape)
            of_all[0, self.y.indices] = words
            return self.model.proportions(of_all, self.y.toarray())[0, self.y.indices]
        return words / words.sum() if words.any() else np.full(words.size, 1 / words.size)

    def _words(self, share, part):
        order = np.argsort(-part, kind="stable")
        terms = [self.terms[k] for k in order.tolist()]
        columns = (values[order].tolist() for values in (self.counts.data, share, part))
        return list(map(Word._make, zip(terms, *columns, strict=True)))

    def keywords(self, order: str = "specific") -> list[Keyword]:
        r"""Return the words by the entropy of their label shares.

        It is :math:`-\sum_l p_l \log p_l`.

        Parameters
        ----------
        order : {"specific", "paper"}, default="specific"
            "specific": lowest entropy first; ties, such as all words of a single label, by
            evidence, then by term. Words without positive evidence are left out. "paper": all
            words by ascending :math:`\sum_l p_l \log p_l`, as Sato and Nakagawa (section 5.3) print
            them, then by term. Without the minus sign, the words that labels share most evenly come
            first, and those of a single label last.
        """
        check_name(order, "order", ORDERS)
        entropy = -special.xlogy(self.shares, self.shares).sum(axis=1) + 0.0  # no -0.0
        if order == "paper":
            return self._as_keywords(np.argsort(-entropy, kind="stable"), entropy)
        ranked = np.lexsort((-self.evidence, entropy))
        return self._as_keywords(ranked[self.evidence[ranked] > 0], entropy)

    def _as_keywords(self, order, entropy):
        owner = self.shares.argmax(axis=1)
        columns = (
            [self.terms[k] for k in order.tolist()],
            entropy[order].tolist(),
            [self.labels[k] for k in owner[order].tolist()],
            self.shares[order, owner[order]].tolist(),
            self.evidence[order].tolist(),
        )
        return list(map(Keyword._make, zip(*columns, strict=True)))

    def why_not(self, columns: Iterable[int]) -> list[WhyNot]:
        """Return why the document does not have these labels."""
        return [self._why_not(column) for column in columns]

    def _why_not(self, column):
        model, own = self.model, self.scores
        best = model.best_with(self.x, column)
        other, blocks = self._word_scores(best)
        amount = own.weights * (own.word_scores - other.word_scores) / own.temperature
        order = np.argsort(-amount, kind="stable")
        terms = [self.terms[k] for k in order.tolist()]
        return WhyNot(
            label=str(model.classes_[column]),
            labels=[str(label) for label in model.classes_[np.sort(best.indices)]],
            difference=own.breakdown.score - other.breakdown.score,
            words=list(map(Objection, terms, amount[order].tolist())),
            mixing=(own.mixing - other.mixing) / own.temperature,
            prior=own.log_prior - other.log_prior,
            features={
                name: float(part.sum() - blocks[name].sum()) / own.temperature
                for name, part in self.blocks.items()
            },
        )

    def place_finder(self, analyzer: Analyzer, text, weights) -> PlaceFinder:
        """Return a finder of the counted words in the text."""
        evidence = self.evidence / self.counts.data  # of one occurrence
        return PlaceFinder(
            analyzer, strings_of(text), weights, self.terms, self.labels, self.shares, evidence
        )
