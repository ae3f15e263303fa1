"""The parts of an explanation, and the places of words in the text.

The evidence of a probabilistic model is in nats, the unit of natural logarithms: 0.7 means that a
word is twice as likely, 2.3 ten times. That of a linear model (MML) is what a word adds to the
score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from polytopic.models import ScoreBreakdown
from polytopic.text import Analyzer


class Word(NamedTuple):
    """A term with its evidence for a label, negative if it is against it.

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

    ``shares`` has the share of each label, ``evidence`` is that of this occurrence for all labels
    together, and ``field`` is the name of the field, if the text has fields.
    """

    start: int
    end: int
    term: str
    shares: dict[str, float]
    evidence: float
    field: str | None = None


@dataclass(frozen=True, slots=True)
class LabelReason:
    """A label of a text: its share of the text, and its words, strongest evidence first.

    ``score`` and ``probability`` (to about three digits) are those of a suggestion; ``evidence`` is
    the sum over the words.
    """

    label: str
    share: float
    score: float
    probability: float
    evidence: float
    words: list[Word]


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
    """The evidence of a term against another label set; negative if it is for it."""

    term: str
    amount: float


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a text does not have a label.

    ``labels`` is the best set that contains it, and ``difference`` how much lower its score is than
    that of the explained set (negative if it is higher). The amounts of all ``words``, strongest
    objection first, ``mixing`` and ``prior`` add up to the difference.
    """

    label: str
    labels: list[str]
    difference: float
    words: list[Objection]
    mixing: float
    prior: float


@dataclass(frozen=True)
class Explanation:
    """The explanation of a text's labels.

    Attributes
    ----------
    labels : list of LabelReason
        The labels, largest share first; shares sum to one.
    keywords : list of Keyword
        Words with positive evidence, those of a single label first: by ascending entropy, then
        descending evidence. They depend on the labels.
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
    """

    labels: list[LabelReason]
    keywords: list[Keyword]
    breakdown: ScoreBreakdown
    why_not: list[WhyNot]
    unknown: list[str]
    find_places: Callable[[], list[Place]] = field(repr=False, compare=False)
    unit: str = "nats"

    @cached_property
    def places(self) -> list[Place]:
        """The known words in the text."""
        return self.find_places()

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation in a form for strict JSON: None stands for infinity."""
        names = ("labels", "keywords", "breakdown", "why_not", "places", "unknown", "unit")
        return {name: plain(getattr(self, name)) for name in names}


def plain(value: Any) -> Any:
    """Return a value in a form for strict JSON: None stands for infinity."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, tuple):  # a named one
        return plain(value._asdict())  # type: ignore[attr-defined]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
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
