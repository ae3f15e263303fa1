"""What an explanation consists of.

Evidence of a model with likelihoods is in nats, the unit of natural logarithms: 0.7 makes the
labels twice as likely, 2.3 ten times. That of a linear model (MML) is what a word adds to the
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
    """A term that speaks for a label, or against it.

    ``share`` is the label's part of the term. ``evidence`` is this part of the term's evidence:
    of how much more likely the labels make its occurrences than the corpus as a whole does; or
    by a linear model what the term adds to the score by this label.
    """

    term: str
    count: float  # type: ignore[assignment]  # a tuple's own count is of no use here
    share: float
    evidence: float


class Place(NamedTuple):
    """A word in the text, ``text[start:end]``.

    ``shares`` has the share of each label in it, ``evidence`` is that of this one occurrence for
    all labels together, and ``field`` the name of the field that it stands in, if there are fields.
    """

    start: int
    end: int
    term: str
    shares: dict[str, float]
    evidence: float
    field: str | None = None


@dataclass(frozen=True, slots=True)
class LabelReason:
    """A label of a text: how much of the text it says, and with which words, strongest first.

    ``score`` and ``probability`` (to about the third digit) are the model's, as in a suggestion;
    ``evidence`` is the sum of that of the words.
    """

    label: str
    share: float
    score: float
    probability: float
    evidence: float
    words: list[Word]


class Keyword(NamedTuple):
    """A word that tells the labels of a text apart.

    ``entropy`` is that of its label shares: 0 if one label says the word alone. ``label`` has the
    largest ``share`` of it; ``evidence`` is that for all labels together.
    """

    term: str
    entropy: float
    label: str
    share: float
    evidence: float


class Objection(NamedTuple):
    """What a term says against another label set; below zero it speaks for it."""

    term: str
    amount: float


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a text does not have a label.

    ``labels`` is the best set that holds it, and ``difference`` how much lower its score is than
    that of the explained set (below zero: the explained set is the worse one). All amounts of
    ``words``, strongest objection first, and ``mixing`` and ``prior`` add up to it.
    """

    label: str
    labels: list[str]
    difference: float
    words: list[Objection]
    mixing: float
    prior: float


@dataclass(frozen=True)
class Explanation:
    """Why a text has its labels.

    Attributes
    ----------
    labels : list of LabelReason
        The labels, largest share first; shares sum to one.
    keywords : list of Keyword
        The words that the labels make likelier than the corpus does, those of one label before
        those of several: by rising entropy, then falling evidence. Other labels give others.
    breakdown : ScoreBreakdown
        What the score of the label set is made of.
    why_not : list of WhyNot
        Reasons against the labels that were asked for.
    unknown : list of str
        Terms that the model does not know.
    places : list of Place
        The known words where they stand in the text, found when first asked for; empty for a bag
        of words.
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
        """The known words where they stand in the text."""
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
    """Finds the known words of a text when it is asked to, as not everyone wants to know.

    Parameters
    ----------
    analyzer : Analyzer
        What the text was analysed with.
    strings : dict
        The strings of the text, see :func:`strings_of`.
    weights : mapping of str to float
        Weights of fields; 1 for those not named.
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
    """Return the strings of a text by field: one without a name, several, or none of a bag."""
    content = getattr(text, "content", text)
    if isinstance(content, str):
        return {None: content}
    if isinstance(content, Mapping) and any(isinstance(v, str) for v in content.values()):
        return dict(content)
    return {}
