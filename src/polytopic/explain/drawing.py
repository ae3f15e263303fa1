"""What pages, terminals and figures show of explanations and label maps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from polytopic.errors import PolytopicError
from polytopic.explain.explanation import Explanation, LabelReason, Place, WhyNot, Word

if TYPE_CHECKING:
    from polytopic.explain.dendrogram import Dendrogram
    from polytopic.explain.label_map import LabelMap

PALETTE = (  # Okabe and Ito: distinguishable by colour-blind readers
    "#0072b2",  # blue
    "#e69f00",  # orange
    "#009e73",  # green
    "#cc79a7",  # purple
    "#56b4e9",  # sky blue
    "#d55e00",  # vermilion
    "#f0e442",  # yellow
)
FAINT = 0.12  # strength below which a word is not marked
DIGITS = {"nats": 1, "score": 2}  # of evidence, by its unit


class Mark(NamedTuple):
    """A known word in the text: the label whose colour it has, and the strength from 0 to 1."""

    place: Place
    label: int  # place in the explanation's labels
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
    """Return the words to show for a label, without those whose evidence rounds to zero."""
    return [word for word in reason.words[:limit] if word.evidence >= _least(digits)]


def sides(reason: WhyNot, limit: int, digits: int) -> dict[str, list[tuple[str, float]]]:
    """Return the words to show against and for another label, each with its evidence."""
    least, words = _least(digits), reason.words
    return {
        "against it": [(term, a) for term, a in words[:limit] if a >= least],
        "for it": [(term, -a) for term, a in reversed(words[-limit:]) if -a >= least],
    }


def percent(part: float) -> str:
    """Return a share or probability in percent; only 0 is 0%, and only 1 is 100%."""
    shown = f"{part:.0%}"
    if shown == "0%" and part > 0:
        return "<1%"
    return ">99%" if shown == "100%" and part < 1 else shown


def _least(digits: int) -> float:
    return 0.5 * 10.0**-digits


def breakdown_lines(explanation: Explanation) -> list[tuple[str, float]]:
    """Return the parts of the score with their descriptions, without parts that are zero."""
    breakdown = explanation.breakdown
    if explanation.unit == "score":
        return [("evidence of the words for the labels", breakdown.words)]
    cooled = breakdown.log_likelihood / breakdown.temperature - breakdown.log_likelihood
    lines = [
        ("log likelihood of the words in the whole corpus", breakdown.corpus),
        ("evidence of the words for the labels", breakdown.words),
        ("cost of mixing the labels", breakdown.mixing),
        (f"temperature: words divided by {breakdown.temperature:.3g}", cooled),
        ("log prior of these labels", breakdown.log_prior),
    ]
    return lines[:2] + [line for line in lines[2:] if line[1]]


ROW = 0.17  # height of a label in inches
LARGEST_SIDE = 60  # of the correlations in inches: labels get smaller beyond
LONGEST_NAME = 40  # characters of a label that are drawn
TICKS = 4  # on the axis of heights
LINE, EMPTY = "#333333", "#e6e6e6"  # lines, and pairs without a correlation


def draw_map(found: LabelMap):
    """Return a figure with the dendrogram and, in its order, the correlations."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PolytopicError(
            "matplotlib is not installed. Install it with: pip install 'polytopic[plots]'"
        ) from error
    names = [_drawable(label.shown) for label in found.in_order]
    row = min(ROW, LARGEST_SIDE / len(names))
    side, tree = max(2.0, row * len(names)), min(6.0, 2.0 + 0.02 * len(names))
    beside = 0.55 * row * max(map(len, names)) + 0.3
    figure = Figure(figsize=(tree + beside + side + 1.2, side + beside + 0.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[tree, side])
    _draw_tree(left, found.dendrogram)
    image = _draw_correlations(right, found)
    _write_names(right, names, 72 * row * 0.7)
    figure.colorbar(image, ax=right, label="correlation; grey: none", shrink=min(1, 4 / side))
    return figure


def _draw_tree(axes, dendrogram: Dendrogram) -> None:
    from matplotlib.collections import LineCollection

    depth = dendrogram.depth
    lines = [
        [(depth(above), top), (depth(height), top), (depth(height), bottom), (depth(below), bottom)]
        for height, (top, above), (bottom, below) in dendrogram.joints()
    ]
    axes.add_collection(LineCollection(lines, colors=LINE, linewidths=1.0))
    heights = np.unique(np.linspace(*dendrogram.span, TICKS)).tolist()
    axes.set_xticks([depth(height) for height in heights], [f"{height:.2f}" for height in heights])
    axes.set(xlim=(-0.02, 1.0), xlabel="distance of words")
    axes.spines[["left", "top", "right"]].set_visible(False)
    axes.tick_params(left=False, labelleft=False)


def _draw_correlations(axes, found: LabelMap):
    order = found.dendrogram.order
    values = found.correlations[np.ix_(order, order)]
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
    plain = {"fontsize": size, "parse_math": False}
    axes.set_yticks(places, names, **plain)
    axes.set_xticks(places, names, rotation=90, **plain)
    axes.tick_params(labelleft=True)


def _drawable(name: str) -> str:
    """Return a name on one short line."""
    line = "".join(c if c.isprintable() else " " for c in name)
    half = (LONGEST_NAME - 1) // 2  # of paths the ends tell most
    return (
        line if len(line) <= LONGEST_NAME else f"{line[: LONGEST_NAME - 1 - half]}…{line[-half:]}"
    )
