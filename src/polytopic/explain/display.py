"""How pages and terminals display an explanation: colours, marked words, rounded numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from polytopic.explain.explanation import Explanation, LabelReason, Place, WhyNot, Word

PALETTE = (  # Okabe and Ito: distinguishable by colour-blind readers
    "#0072b2",  # blue
    "#e69f00",  # orange
    "#009e73",  # green
    "#cc79a7",  # purple
    "#56b4e9",  # sky blue
    "#d55e00",  # vermilion
    "#f0e442",  # yellow
)
FAINT = 0.12  # words with less strength are not marked
DIGITS = {"nats": 1, "score": 2}  # decimal places of evidence, by its unit


class Mark(NamedTuple):
    """A known word in the text: the label whose colour it has, and the strength from 0 to 1."""

    place: Place
    label: int  # index into the explanation's labels
    strength: float


def marks(explanation: Explanation) -> Iterator[Mark]:
    """Yield the marks of all known words in order; a strength of 0 means no colour.

    The strength is the label's share of the word times its evidence, relative to the strongest
    word; words with little or negative evidence have strength 0.
    """
    order = {reason.label: k for k, reason in enumerate(explanation.labels)}
    strongest = max((max(p.shares.values()) * p.evidence for p in explanation.places), default=0.0)
    for place in explanation.places:
        label = max(place.shares, key=lambda name: (place.shares[name], -order[name]))
        part = place.shares[label] * place.evidence
        strength = part / strongest if part > 0 else 0.0
        yield Mark(place, order[label], strength if strength >= FAINT else 0.0)


def with_name(label: str, name: str) -> str:
    """Return a label for display, with its name if it has one."""
    return f"{label} · {name}" if name != label else label


def with_names(explanation: Explanation, names: Mapping[str, str]) -> Explanation:
    """Return the explanation for display, with the names of labels next to their ids."""

    def add_name(label):
        return with_name(label, names.get(label, label))

    places = [
        place._replace(shares={add_name(label): share for label, share in place.shares.items()})
        for place in explanation.places
    ]
    return replace(
        explanation,
        labels=[replace(reason, label=add_name(reason.label)) for reason in explanation.labels],
        keywords=[word._replace(label=add_name(word.label)) for word in explanation.keywords],
        why_not=[
            replace(reason, label=add_name(reason.label), labels=[*map(add_name, reason.labels)])
            for reason in explanation.why_not
        ],
        find_places=lambda: places,
    )


def words_to_show(reason: LabelReason, k: int, digits: int) -> list[Word]:
    """Return the words to show for a label, without those whose evidence rounds to zero."""
    return [word for word in reason.words[:k] if word.evidence >= _least(digits)]


def objections_by_side(reason: WhyNot, k: int, digits: int) -> dict[str, list[tuple[str, float]]]:
    """Return the words to show against and for another label, each with its evidence."""
    least, words = _least(digits), reason.words
    return {
        "against it": [(term, a) for term, a in words[:k] if a >= least],
        "for it": [(term, -a) for term, a in reversed(words[-k:]) if -a >= least],
    }


def percent(part: float) -> str:
    """Return a share or probability in percent; only 0 is 0%, and only 1 is 100%."""
    text = f"{part:.0%}"
    if text == "0%" and part > 0:
        return "<1%"
    return ">99%" if text == "100%" and part < 1 else text


def _least(digits: int) -> float:
    return 0.5 * 10.0**-digits


def breakdown_lines(explanation: Explanation) -> list[tuple[str, float]]:
    """Return each part of the score with its description; only words and corpus may be zero."""
    breakdown = explanation.breakdown
    if explanation.unit == "score":
        return [("evidence of the words for the labels", breakdown.words)]
    scaling = breakdown.log_likelihood / breakdown.temperature - breakdown.log_likelihood
    lines = [
        ("log likelihood of the words in the whole corpus", breakdown.corpus),
        ("evidence of the words for the labels", breakdown.words),
        ("cost of mixing the labels", breakdown.mixing),
        (f"temperature: words divided by {breakdown.temperature:.3g}", scaling),
        ("log prior of these labels", breakdown.log_prior),
    ]
    return lines[:2] + [line for line in lines[2:] if line[1]]
