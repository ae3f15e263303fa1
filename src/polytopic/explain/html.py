"""Explanations and label maps as self-contained HTML pages, without scripts or network access."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from html import escape
from string import Template
from typing import TYPE_CHECKING

from polytopic.explain.correlations import LabelPair
from polytopic.explain.display import (
    DIGITS,
    PALETTE,
    Mark,
    breakdown_lines,
    marks,
    objections_by_side,
    percent,
    words_to_show,
)
from polytopic.explain.explanation import Explanation, LabelReason, WhyNot, strings_of
from polytopic.explain.label_map import LabelMap, MapLabel

if TYPE_CHECKING:
    from polytopic.explain.dendrogram import Dendrogram

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>
:root { color-scheme: light dark; --ink: #1b1b1b; --soft: #595959; --line: #d9d9d9; --ground: #fff;
  --fade: .55 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececec; --soft: #a8a8a8; --line: #444; --ground: #161616; --fade: .38 } }
body { font: 1rem/1.6 system-ui, sans-serif; color: var(--ink); background: var(--ground);
  max-width: 46rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere }
h1 { font-size: 1.4rem; line-height: 1.3 } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
h3 { font-size: 1rem; margin: 1rem 0 .25rem; border-left: .6rem solid rgb(var(--c));
  padding-left: .5rem }
.side { display: grid; gap: 0 2rem; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)) }
p { margin: .5rem 0 } .soft { color: var(--soft); font-size: .9rem }
.bar { display: block; height: .5rem; background: var(--line); border-radius: 1rem }
.bar span { display: block; height: 100%; background: rgb(var(--c)); border-radius: 1rem }
table { border-collapse: collapse; width: 100%; font-size: .95rem }
th, td { text-align: left; font-weight: normal; padding: .15rem .5rem .15rem 0;
  border-bottom: 1px solid var(--line) }
thead th { color: var(--soft); font-size: .85rem }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
.wide { width: 30% } tfoot td { font-weight: 600 }
@media print { body { margin: 0; max-width: none } .bar, .bar span {
  print-color-adjust: exact; -webkit-print-color-adjust: exact } section { break-inside: avoid } }
$style
</style>
</head>
<body>
<main>
<h1>$title</h1>
$sections
</main>
</body>
</html>
""")
COLOURS = "\n".join(
    f".l{k} {{ --c: {int(c[1:3], 16)} {int(c[3:5], 16)} {int(c[5:], 16)} }}"
    for k, c in enumerate(PALETTE)
)


def whole_page(title: object, sections: Iterable[str], style: str = "") -> str:
    """Return a page of escaped sections, without the empty ones, and with this additional style."""
    return PAGE.substitute(
        title=safe(title), style=f"{style}{COLOURS}", sections="\n".join(filter(None, sections))
    )


def section(heading: object, content: str) -> str:
    """Return a section with a heading; its content must be escaped."""
    return f"<section>\n<h2>{safe(heading)}</h2>\n{content}\n</section>"


def table(columns: Iterable[str], rows: Iterable[Iterable[str]], total: Iterable[str] = ()) -> str:
    """Return a table of escaped cells.

    Columns whose name starts with ``>`` are aligned to the right; one without a name has bars.
    """
    columns = list(columns)
    kinds = [' class="n"' if c[:1] == ">" else "" if c else ' class="wide"' for c in columns]
    head = "".join(
        f'<th scope="col"{kind}>{name.removeprefix(">")}</th>'
        for name, kind in zip(columns, kinds, strict=True)
    )
    body = "\n".join(_row(row, kinds) for row in rows)
    foot = f"\n<tfoot>{_row(total, kinds)}</tfoot>" if total else ""
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>{foot}\n</table>"


def _row(cells: Iterable[str], kinds: list[str]) -> str:
    return "<tr>" + "".join(f"<td{k}>{c}</td>" for c, k in zip(cells, kinds, strict=True)) + "</tr>"


def bar(part: float) -> str:
    """Return a bar of which this part is filled."""
    return f'<span class="bar" aria-hidden="true"><span style="width: {part:.1%}"></span></span>'


def format_signed(number: float, digits: int) -> str:
    """Return a number with its sign."""
    return f"{number:+,.{digits}f}".replace("-", "\N{MINUS SIGN}")


def safe(text: object) -> str:
    """Return an escaped text without control characters and surrogates."""
    return escape(CONTROL.sub(" ", str(text)))


EVIDENCE_NOTES = {  # on evidence, by its unit
    "nats": "Evidence is how much likelier a word is under the labels than in the whole corpus: "
    "+0.7 means twice as likely, +2.3 ten times. It is divided among the labels of the word.",
    "score": "Evidence is what a word adds to the score of each label. The labels with the "
    "highest score are predicted.",
}
EXPLANATION_STYLE = """
ul.chips { list-style: none; padding: 0; margin: 0; display: grid; gap: .5rem }
.chips li { border-left: .6rem solid rgb(var(--c)); padding: .1rem .75rem }
.text { white-space: pre-wrap; border: 1px solid var(--line); border-radius: .5rem;
  padding: 1rem; unicode-bidi: isolate }
mark { color: inherit; background: rgb(var(--c) / calc(var(--a) * var(--fade)));
  border-bottom: 2px solid rgb(var(--c)); border-radius: .2rem }
mark.again { border-bottom-style: dashed }
@media print { mark, .chips li { print-color-adjust: exact; -webkit-print-color-adjust: exact } }
"""


def explanation_to_html(
    explanation: Explanation,
    text=None,
    *,
    title: str = "Why these labels",
    language: str | None = None,
    k: int = 10,
) -> str:
    """Return an explanation as a page for readers who know the texts, not the theory.

    Parameters
    ----------
    explanation : Explanation
        The explanation.
    text : text
        The explained text; a bag of words is not shown.
    title : str
        The heading of the page.
    language : str, default=None
        ISO 639 code of the text's language, for screen readers.
    k : int, default=10
        Number of words per label and reason.
    """
    digits = DIGITS[explanation.unit]
    sections = [
        _chips(explanation),
        *_texts(explanation, text, language),
        _evidence(explanation, k),
        _keywords(explanation, k),
        *(_why_not(reason, k, digits) for reason in explanation.why_not),
        _breakdown(explanation),
    ]
    return whole_page(title, sections, EXPLANATION_STYLE)


def _chips(explanation: Explanation) -> str:
    chips = "\n".join(
        f'<li class="{_colour(place)}"><strong>{safe(reason.label)}</strong> '
        f'{safe(percent(reason.share))} of the known words <span class="soft">· '
        f"probability {safe(percent(reason.probability))}</span>{bar(reason.share)}</li>"
        for place, reason in enumerate(explanation.labels)
    )
    note = "" if explanation.warning is None else f"<p>{safe(explanation.warning)}</p>\n"
    return section("Labels", f'{note}<ul class="chips">\n{chips}\n</ul>')


def _texts(explanation: Explanation, text, language: str | None) -> Iterator[str]:
    word_marks = list(marks(explanation))
    lang = f' lang="{safe(language)}"' if language else ""
    for field, string in strings_of(text).items():
        own, digits = [m for m in word_marks if m.place.field == field], DIGITS[explanation.unit]
        inside = "".join(_mark_words(string, own, digits))
        drawn = f'<div class="text" dir="auto"{lang}>{inside}</div>'
        yield section("The text" if field is None else f"The text: {field}", drawn)
    if explanation.unknown:
        yield (
            f'<p class="soft">Words that the model does not know ({len(explanation.unknown)}): '
            f"{safe(', '.join(explanation.unknown[:20]))}"
            f"{', …' if len(explanation.unknown) > 20 else '.'}</p>"
        )


def _mark_words(text: str, word_marks: Iterable[Mark], digits: int) -> Iterator[str]:
    """Yield the text in pieces, each known word with its evidence as a title."""
    end = 0
    for place, label, strength in word_marks:
        start = max(place.start, end)  # terms without spaces between them may overlap
        yield safe(text[end:start])
        shares = sorted(place.shares.items(), key=lambda item: -item[1])[:4]
        share_list = ", ".join(f"{name} {percent(share)}" for name, share in shares)
        evidence = format_signed(place.evidence, digits)
        title = safe(f"{place.term}: {share_list}; evidence {evidence}")
        word, end = safe(text[start : place.end]), place.end
        if strength:
            again = " again" if label >= len(PALETTE) else ""
            style = f"--a: {0.25 + 0.75 * strength:.2f}"
            css = f"{_colour(label)}{again}"
            yield f'<mark class="{css}" style="{style}" title="{title}">{word}</mark>'
        else:
            yield f'<span title="{title}">{word}</span>'
    yield safe(text[end:])


def _evidence(explanation: Explanation, k: int) -> str:
    strongest = max((r.words[0].evidence for r in explanation.labels if r.words), default=0.0)
    tables = "\n".join(
        f'<div class="{_colour(place)}">\n<h3>{safe(reason.label)}</h3>\n'
        f"{_label_table(reason, strongest, k, DIGITS[explanation.unit])}\n</div>"
        for place, reason in enumerate(explanation.labels)
    )
    note = f'<p class="soft">{EVIDENCE_NOTES[explanation.unit]}</p>'
    return section("Evidence by word", f'{note}\n<div class="side">\n{tables}\n</div>')


def _label_table(reason: LabelReason, strongest: float, k: int, digits: int) -> str:
    words = words_to_show(reason, k, digits)
    if not words:
        return "<p>No word is likelier under this label than in the whole corpus.</p>"
    rows = [
        (
            safe(word.term if word.count == 1 else f"{word.term} ×{word.count:g}"),
            safe(percent(word.share)),
            format_signed(word.evidence, digits),
            bar(word.evidence / strongest),
        )
        for word in words
    ]
    return table(["word", ">share", ">evidence", ""], rows)


def _keywords(explanation: Explanation, k: int) -> str:
    if not explanation.keywords:
        return ""
    items = ", ".join(safe(keyword.term) for keyword in explanation.keywords[:k])
    note = "Words that belong to one label alone come first. They depend on the labels."
    return section("Keywords, given these labels", f'<p>{items}</p><p class="soft">{note}</p>')


def _why_not(reason: WhyNot, k: int, digits: int) -> str:
    lower = "lower" if reason.difference >= 0 else "higher"
    best = ", ".join(reason.labels)
    lines = [
        f"<p>The best labels with it are <strong>{safe(best)}</strong>; their score is "
        f"{abs(reason.difference):.{digits}f} {lower} than that of the labels above.</p>"
    ]
    for name, words in objections_by_side(reason, k, digits).items():
        listed = ", ".join(f"{safe(term)} ({amount:.{digits}f})" for term, amount in words)
        lines.append(f"<p>{name.capitalize()}: {listed or 'no words'}.</p>")
    return section(f"Why not {reason.label}?", "\n".join(lines))


def _breakdown(explanation: Explanation) -> str:
    body = [(safe(name), format_signed(value, 2)) for name, value in breakdown_lines(explanation)]
    total = ("the score of these labels", format_signed(explanation.breakdown.score, 2))
    unit = ">logarithm" if explanation.unit == "nats" else ">score"
    return section("What the score is made of", table(["what", unit], body, total))


def _colour(label: int) -> str:
    return f"l{label % len(PALETTE)}"


WIDTH = 1000  # of the drawing, in its own units
LONGEST = 36  # characters of a label next to the drawing
CORRELATION_NOTES = {  # on correlations, by what they are of
    "phi": "A correlation of +1 means that two labels always occur together, 0 that they do so as "
    "often as by chance, and below 0 less often.",
    "covariance": "Correlations are those of the labels' weights in the model: above 0, a text "
    "with much of one label has more of the other; below 0, less.",
}
MAP_STYLE = """body { max-width: 68rem }
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


def map_to_html(label_map: LabelMap, *, title: str = "Label map") -> str:
    """Return a map as a page for readers who know the labels, not the theory."""
    parts = (_summary, _clusters, _pairs, _topics, _terms)
    return whole_page(title, [part(label_map) for part in parts], MAP_STYLE)


def _summary(label_map: LabelMap) -> str:
    counts = f"{len(label_map.labels):,} labels of {label_map.documents:,} documents."
    agreement = math.nan if label_map.tree is None else label_map.agreement()
    if math.isnan(agreement):
        return f"<p>{counts}</p>"
    return (
        f"<p>{counts} The clusters below agree with the tree of labels with a "
        f"cophenetic correlation of {format_signed(agreement, 2)}.</p>"
    )


def _clusters(label_map: LabelMap) -> str:
    note = (
        "The further to the right two labels are joined, the more similar their words are. Each "
        "label is shown with its number of documents and its most relevant words."
    )
    width = min(LONGEST, max(len(label.display_name) for label in label_map.labels))
    leaves = "\n".join(map(_leaf, label_map.in_order))
    content = (
        f'<p class="soft">{note}</p>\n<div class="map">\n{_drawing(label_map.dendrogram)}\n'
        f'<ol class="leaves" style="--names: {width}ch">\n{leaves}\n</ol>\n</div>'
    )
    return section("Labels by their words", content)


def _leaf(label: MapLabel) -> str:
    name, terms = safe(label.display_name), safe(_list_terms(label.terms))
    return (
        f'<li><strong title="{name}">{name}</strong> <span class="n">{label.documents:,}</span> '
        f'<span class="soft" title="{terms}">{terms}</span></li>'
    )


def _drawing(dendrogram: Dendrogram) -> str:
    """Return the joins as one path; each row is one unit high, with its label in the middle."""
    n_rows, path = len(dendrogram.labels), " ".join(strokes(dendrogram))
    return (
        f'<svg viewBox="0 0 {WIDTH} {n_rows}" preserveAspectRatio="none" role="img" '
        f'aria-label="Dendrogram of the labels" style="height: {1.75 * n_rows:g}rem">'
        f'<path d="{path}" vector-effect="non-scaling-stroke"/></svg>'
    )


def strokes(dendrogram: Dendrogram) -> Iterator[str]:
    """Yield the SVG path of each join, :data:`WIDTH` wide and one unit high per row."""

    def across(height):
        return round(10 + (WIDTH - 10) * dendrogram.depth(height))

    for height, (top, above), (bottom, below) in dendrogram.joins():
        yield (
            f"M{across(above)} {top + 0.5:.4g}H{across(height)}V{bottom + 0.5:.4g}H{across(below)}"
        )


def _pairs(label_map: LabelMap) -> str:
    all_pairs = [*label_map.positive, *label_map.negative]
    strongest = max((abs(pair.correlation) for pair in all_pairs), default=1.0)
    names = label_map.display_names
    sides = [
        ("Positive correlation", "l0", label_map.positive),
        ("Negative correlation", "l5", label_map.negative),
    ]
    tables = "\n".join(
        f'<div class="{css}">\n<h3>{heading}</h3>\n{_pair_table(pairs, names, strongest)}\n</div>'
        for heading, css, pairs in sides
    )
    note = (
        f"{CORRELATION_NOTES[label_map.measure]} The documents are those with both labels; pairs "
        "that never occur together are not listed."
    )
    content = f'<p class="soft">{note}</p>\n<div class="side">\n{tables}\n</div>'
    return section("Labels that occur together", content)


def _pair_table(pairs: list[LabelPair], names: dict[str, str], strongest: float) -> str:
    if not pairs:
        return "<p>No pairs.</p>"
    rows = (
        (
            f"{safe(names[pair.first])}<br>{safe(names[pair.second])}",
            format_signed(pair.correlation, 2),
            f"{pair.documents:,}",
            bar(abs(pair.correlation) / strongest),
        )
        for pair in pairs
    )
    return table(["labels", ">correlation", ">documents", ""], rows)


def _topics(label_map: LabelMap) -> str:
    if not label_map.topics:
        return ""
    names = label_map.display_names
    rows = (
        (
            safe(_list_terms(topic.terms)),
            safe(", ".join(f"{names[u.label]} {percent(u.share)}" for u in topic.labels)),
            f"{topic.documents:,.0f}",
        )
        for topic in label_map.topics
    )
    note = (
        "The most relevant words of each topic, the labels that use it most with its share of "
        "their words, and the number of documents that it amounts to."
    )
    columns = ["words", "labels that use it most", ">documents"]
    return section("Topics", f'<p class="soft">{note}</p>\n{table(columns, rows)}')


def _terms(label_map: LabelMap) -> str:
    rows = (
        (safe(label.display_name), safe(_list_terms(label.terms)), f"{label.documents:,}")
        for label in label_map.labels
    )
    return section("All labels", table(["label", "most relevant words", ">documents"], rows))


def _list_terms(terms) -> str:
    return ", ".join(term.term for term in terms)
