"""Where the words of a text stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from polytopic.explain.explanation import Place
from polytopic.text import Analyzer


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
