"""What a page and a terminal draw: coloured words, and the score breakdown in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from polytopic.explain.explanation import Explanation, LabelReason, Place, WhyNot, Word

PALETTE = (  # Okabe and Ito: told apart by colour-blind readers, too
    "#0072b2",  # blue
    "#e69f00",  # orange
    "#009e73",  # green
    "#cc79a7",  # purple
    "#56b4e9",  # sky blue
    "#d55e00",  # vermilion
    "#f0e442",  # yellow
)
FAINT = 0.12  # strength below which a word says too little to be marked
DIGITS = {"nats": 1, "score": 2}  # of evidence that are shown, by its unit


class Mark(NamedTuple):
    """A known word in the text: whose colour it takes, and how strongly, from 0 to 1."""

    place: Place
    label: int  # place in the explanation's labels
    strength: float


def marks(explanation: Explanation) -> Iterator[Mark]:
    """Give the marks of all known words in order; a strength of 0 stands for no colour.

    The strength is the label's share of the word times its evidence, in parts of the strongest
    word's; words that say next to nothing, or speak against the labels, have none.
    """
    order = {reason.label: k for k, reason in enumerate(explanation.labels)}
    strongest = max((max(p.shares.values()) * p.evidence for p in explanation.places), default=0.0)
    for place in explanation.places:
        label = max(place.shares, key=lambda name: (place.shares[name], -order[name]))
        part = place.shares[label] * place.evidence
        strength = part / strongest if part > 0 else 0.0
        yield Mark(place, order[label], strength if strength >= FAINT else 0.0)


def with_name(label: str, name: str) -> str:
    """Return a label for people: with its name beside it, if it has one."""
    return f"{label} · {name}" if name != label else label


def with_names(explanation: Explanation, names: Mapping[str, str]) -> Explanation:
    """Return the explanation for people: labels that have a name show it beside their id."""

    def shown(label):
        return with_name(label, names.get(label, label))

    places = [
        place._replace(shares={shown(label): share for label, share in place.shares.items()})
        for place in explanation.places
    ]
    return replace(
        explanation,
        labels=[replace(reason, label=shown(reason.label)) for reason in explanation.labels],
        keywords=[word._replace(label=shown(word.label)) for word in explanation.keywords],
        why_not=[
            replace(reason, label=shown(reason.label), labels=[*map(shown, reason.labels)])
            for reason in explanation.why_not
        ],
        find_places=lambda: places,
    )


def spoken(reason: LabelReason, limit: int, digits: int) -> list[Word]:
    """Return the words to show for a label: not those that would be shown as zero."""
    return [word for word in reason.words[:limit] if word.evidence >= _least(digits)]


def sides(reason: WhyNot, limit: int, digits: int) -> dict[str, list[tuple[str, float]]]:
    """Return the words to show against another label and for it, each with how much it says."""
    least, words = _least(digits), reason.words
    return {
        "against it": [(term, a) for term, a in words[:limit] if a >= least],
        "for it": [(term, -a) for term, a in reversed(words[-limit:]) if -a >= least],
    }


def percent(part: float) -> str:
    """Return a share or probability in percent; only nothing is 0%, and only all is 100%."""
    shown = f"{part:.0%}"
    if shown == "0%" and part > 0:
        return "<1%"
    return ">99%" if shown == "100%" and part < 1 else shown


def _least(digits: int) -> float:
    return 0.5 * 10.0**-digits


def breakdown_lines(explanation: Explanation) -> list[tuple[str, float]]:
    """Return in plain words what adds up to the score, without what adds nothing."""
    breakdown = explanation.breakdown
    if explanation.unit == "score":
        return [("what the words say for the labels, all evidence", breakdown.words)]
    cooled = breakdown.log_likelihood / breakdown.temperature - breakdown.log_likelihood
    lines = [
        ("how likely the corpus as a whole makes these words", breakdown.corpus),
        ("what the labels add to it, the evidence of all words", breakdown.words),
        ("what it costs to mix the labels", breakdown.mixing),
        (f"words count less, divided by {breakdown.temperature:.3g}", cooled),
        ("how common these labels are", breakdown.log_prior),
    ]
    return lines[:2] + [line for line in lines[2:] if line[1]]
