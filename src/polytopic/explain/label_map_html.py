"""The map of labels as one HTML page that stands alone: no script, no network."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from polytopic.explain.correlations import LabelPair
from polytopic.explain.drawing import percent
from polytopic.explain.label_map import LabelMap, MapLabel
from polytopic.explain.page import bar, safe, section, signed, table, whole_page

if TYPE_CHECKING:
    from polytopic.explain.dendrogram import Dendrogram

WIDTH = 1000  # of the drawing, in units of its own
LONGEST = 36  # characters of a label beside the drawing
NOTES = {  # on correlations, by what they are of
    "phi": "A correlation of +1 tells that two labels are always given together, 0 that they meet "
    "as often as chance would have it, and less than 0 that they meet less often.",
    "covariance": "Correlations are those of the labels' weights in the model: above 0 a text with "
    "much of one label has more of the other, below 0 less.",
}
STYLE = """body { max-width: 68rem }
.map { display: flex; margin: 1rem 0 }
.map svg { flex: none; width: 14rem; stroke: var(--soft); fill: none }
.leaves { list-style: none; margin: 0; padding: 0; flex: 1; min-width: 0 }
.leaves li { height: 1.75rem; line-height: 1.75rem; display: grid; gap: 0 .75rem;
  grid-template-columns: minmax(6rem, var(--names)) 3.5rem minmax(0, 1fr); padding-left: .5rem }
.leaves li > * { white-space: nowrap; overflow: hidden; text-overflow: ellipsis }
td:first-child { padding-right: 1rem } .side td:first-child { width: 55% } .wide { width: 20% }
@media (max-width: 44rem) { .map svg { width: 7rem } .leaves .soft { display: none }
  .leaves li { grid-template-columns: minmax(0, 1fr) 3rem } }
@media print { .map { break-inside: auto } }
"""


def to_html(found: LabelMap, *, title: str = "The map of labels") -> str:
    """Return a map as a page for readers who know the labels, not the theory."""
    sections = [_summary(found), _clusters(found), _pairs(found), _topics(found), _terms(found)]
    return whole_page(title, sections, STYLE)


def _summary(found: LabelMap) -> str:
    counts = f"{len(found.labels):,} labels of {found.documents:,} documents."
    agreement = math.nan if found.tree is None else found.agreement()
    if math.isnan(agreement):
        return f"<p>{counts}</p>"
    return (
        f"<p>{counts} The clusters of labels below agree with the known tree of labels with a "
        f"cophenetic correlation of {signed(agreement, 2)}.</p>"
    )


def _clusters(found: LabelMap) -> str:
    note = (
        "The further to the right two labels are joined, the more alike are their words. Beside "
        "each label stand its documents and its most relevant words."
    )
    width = min(LONGEST, max(len(label.shown) for label in found.labels))
    leaves = "\n".join(map(_leaf, found.in_order))
    content = (
        f'<p class="soft">{note}</p>\n<div class="map">\n{_drawing(found.dendrogram)}\n'
        f'<ol class="leaves" style="--names: {width}ch">\n{leaves}\n</ol>\n</div>'
    )
    return section("Labels by their words", content)


def _leaf(label: MapLabel) -> str:
    shown, words = safe(label.shown), safe(_words(label.terms))
    return (
        f'<li><strong title="{shown}">{shown}</strong> <span class="n">{label.documents:,}</span> '
        f'<span class="soft" title="{words}">{words}</span></li>'
    )


def _drawing(dendrogram: Dendrogram) -> str:
    """Return the joins as one path: a row is one unit high, its middle a label's place."""
    n_rows, path = len(dendrogram.labels), " ".join(strokes(dendrogram))
    return (
        f'<svg viewBox="0 0 {WIDTH} {n_rows}" preserveAspectRatio="none" role="img" '
        f'aria-label="Dendrogram of the labels" style="height: {1.75 * n_rows:g}rem">'
        f'<path d="{path}" vector-effect="non-scaling-stroke"/></svg>'
    )


def strokes(dendrogram: Dendrogram) -> Iterator[str]:
    """Yield what a pen does to draw the joins, :data:`WIDTH` wide and a unit high for each row."""

    def across(height):
        return round(10 + (WIDTH - 10) * dendrogram.depth(height))

    for height, (top, above), (bottom, below) in dendrogram.joints():
        yield (
            f"M{across(above)} {top + 0.5:.4g}H{across(height)}V{bottom + 0.5:.4g}H{across(below)}"
        )


def _pairs(found: LabelMap) -> str:
    strongest = max((abs(p.correlation) for p in (*found.positive, *found.negative)), default=1.0)
    sides = [
        ("Positive correlation", "l0", found.positive),
        ("Negative correlation", "l5", found.negative),
    ]
    tables = "\n".join(
        f'<div class="{css}">\n<h3>{heading}</h3>\n{_pair_table(pairs, found, strongest)}\n</div>'
        for heading, css, pairs in sides
    )
    note = (
        f"{NOTES[found.measure]} Documents are those with both labels; pairs that are never given "
        "together are not listed."
    )
    content = f'<p class="soft">{note}</p>\n<div class="side">\n{tables}\n</div>'
    return section("Labels that go together", content)


def _pair_table(pairs: list[LabelPair], found: LabelMap, strongest: float) -> str:
    if not pairs:
        return "<p>No pair.</p>"
    shown = found.shown
    rows = (
        (
            f"{safe(shown[pair.first])}<br>{safe(shown[pair.second])}",
            signed(pair.correlation, 2),
            f"{pair.documents:,}",
            bar(abs(pair.correlation) / strongest),
        )
        for pair in pairs
    )
    return table(["labels", ">correlation", ">documents", ""], rows)


def _topics(found: LabelMap) -> str:
    if not found.topics:
        return ""
    shown = found.shown
    rows = (
        (
            safe(_words(topic.terms)),
            safe(", ".join(f"{shown[u.label]} {percent(u.share)}" for u in topic.labels)),
            f"{topic.documents:,.0f}",
        )
        for topic in found.topics
    )
    note = (
        "Beside the most relevant words of a topic stand the labels that use "
        "it most, with its share of their words, and how many documents’ worth it says in all."
    )
    columns = ["words", "labels that use it most", ">documents"]
    return section("Topics", f'<p class="soft">{note}</p>\n{table(columns, rows)}')


def _terms(found: LabelMap) -> str:
    rows = (
        (safe(label.shown), safe(_words(label.terms)), f"{label.documents:,}")
        for label in found.labels
    )
    return section("All labels", table(["label", "most relevant words", ">documents"], rows))


def _words(terms) -> str:
    return ", ".join(term.term for term in terms)
