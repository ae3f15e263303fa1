"""An explanation as one HTML page that stands alone: no script, no network."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from string import Template

from polytopic.explain.drawing import (
    DIGITS,
    PALETTE,
    Mark,
    ledger_lines,
    marks,
    percent,
    sides,
    spoken,
)
from polytopic.explain.explanation import Explanation, LabelReason, WhyNot
from polytopic.explain.places import strings_of

NOTES = {  # on evidence, by its unit
    "nats": "Evidence tells how much likelier the labels make a word than the corpus as a whole "
    "does: +0.7 is twice, +2.3 ten times. A word of several labels is divided among them.",
    "score": "Evidence tells how much a word adds to the score of the labels, by each of them. "
    "The labels with the highest score are chosen.",
}
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
ul.chips { list-style: none; padding: 0; margin: 0; display: grid; gap: .5rem }
.chips li { border-left: .6rem solid rgb(var(--c)); padding: .1rem .75rem }
.bar { display: block; height: .5rem; background: var(--line); border-radius: 1rem }
.bar span { display: block; height: 100%; background: rgb(var(--c)); border-radius: 1rem }
.text { white-space: pre-wrap; border: 1px solid var(--line); border-radius: .5rem;
  padding: 1rem; unicode-bidi: isolate }
mark { color: inherit; background: rgb(var(--c) / calc(var(--a) * var(--fade)));
  border-bottom: 2px solid rgb(var(--c)); border-radius: .2rem }
mark.again { border-bottom-style: dashed }
table { border-collapse: collapse; width: 100%; font-size: .95rem }
th, td { text-align: left; font-weight: normal; padding: .15rem .5rem .15rem 0;
  border-bottom: 1px solid var(--line) }
thead th { color: var(--soft); font-size: .85rem }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
.wide { width: 30% } tfoot td { font-weight: 600 }
@media print { body { margin: 0; max-width: none } mark, .bar, .bar span, .chips li {
  print-color-adjust: exact; -webkit-print-color-adjust: exact } section { break-inside: avoid } }
$colours
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


def to_html(
    explanation: Explanation,
    text=None,
    *,
    title: str = "Why these labels",
    language: str | None = None,
    words: int = 10,
) -> str:
    """Return an explanation as a page for readers who know the texts, not the theory.

    Parameters
    ----------
    explanation : Explanation
        What to show.
    text : text
        The text that was explained; a bag of words is not drawn.
    title : str
        Heading of the page.
    language : str, default=None
        ISO 639 code of the text's language, for screen readers.
    words : int, default=10
        Words to show for each label and reason.
    """
    digits = DIGITS[explanation.unit]
    sections = [
        _chips(explanation),
        *_texts(explanation, text, language),
        _words(explanation, words),
        _keywords(explanation, words),
        *(_why_not(reason, words, digits) for reason in explanation.why_not),
        _ledger(explanation),
    ]
    colours = "\n".join(
        f".l{k} {{ --c: {int(c[1:3], 16)} {int(c[3:5], 16)} {int(c[5:], 16)} }}"
        for k, c in enumerate(PALETTE)
    )
    return PAGE.substitute(
        title=_safe(title), colours=colours, sections="\n".join(filter(None, sections))
    )


def _chips(explanation: Explanation) -> str:
    chips = "\n".join(
        f'<li class="{_colour(k)}"><strong>{_safe(reason.label)}</strong> '
        f'{_safe(percent(reason.share))} of the text <span class="soft">· probability '
        f"{_safe(percent(reason.probability))}</span>{_bar(reason.share)}</li>"
        for k, reason in enumerate(explanation.labels)
    )
    return _section("Labels", f'<ul class="chips">\n{chips}\n</ul>')


def _texts(explanation: Explanation, text, language: str | None) -> Iterator[str]:
    found = list(marks(explanation))
    lang = f' lang="{_safe(language)}"' if language else ""
    for field, string in strings_of(text).items():
        own, digits = [m for m in found if m.place.field == field], DIGITS[explanation.unit]
        inside = "".join(_marked(string, own, digits))
        drawn = f'<div class="text" dir="auto"{lang}>{inside}</div>'
        yield _section("The text" if field is None else f"The text: {field}", drawn)
    if explanation.unknown:
        yield (
            f'<p class="soft">Words that the model does not know ({len(explanation.unknown)}): '
            f"{_safe(', '.join(explanation.unknown[:20]))}"
            f"{', …' if len(explanation.unknown) > 20 else '.'}</p>"
        )


def _marked(text: str, found: Iterable[Mark], digits: int) -> Iterator[str]:
    """Give the text in pieces, each known word with what it says on its title."""
    end = 0
    for place, label, strength in found:
        yield _safe(text[end : place.start])
        shares = sorted(place.shares.items(), key=lambda item: -item[1])[:4]
        says = ", ".join(f"{name} {percent(share)}" for name, share in shares)
        title = _safe(f"{place.term}: {says}; evidence {_signed(place.evidence, digits)}")
        word, end = _safe(text[place.start : place.end]), place.end
        if strength:
            again = " again" if label >= len(PALETTE) else ""
            style = f"--a: {0.25 + 0.75 * strength:.2f}"
            css = f"{_colour(label)}{again}"
            yield f'<mark class="{css}" style="{style}" title="{title}">{word}</mark>'
        else:
            yield f'<span title="{title}">{word}</span>'
    yield _safe(text[end:])


def _words(explanation: Explanation, limit: int) -> str:
    strongest = max((r.words[0].evidence for r in explanation.labels if r.words), default=0.0)
    tables = "\n".join(
        f'<div class="{_colour(k)}">\n<h3>{_safe(reason.label)}</h3>\n'
        f"{_label_table(reason, strongest, limit, DIGITS[explanation.unit])}\n</div>"
        for k, reason in enumerate(explanation.labels)
    )
    content = f'<p class="soft">{NOTES[explanation.unit]}</p>\n<div class="side">\n{tables}\n</div>'
    return _section("The words that say so", content)


def _label_table(reason: LabelReason, strongest: float, limit: int, digits: int) -> str:
    shown = spoken(reason, limit, digits)
    if not shown:
        return "<p>No word speaks for it more than for the corpus as a whole.</p>"
    rows = [
        (
            _safe(word.term if word.count == 1 else f"{word.term} ×{word.count:g}"),
            _safe(percent(word.share)),
            _signed(word.evidence, digits),
            _bar(word.evidence / strongest),
        )
        for word in shown
    ]
    return _table(["word", "share", "evidence", ""], rows)


def _keywords(explanation: Explanation, limit: int) -> str:
    if not explanation.keywords:
        return ""
    items = ", ".join(_safe(keyword.term) for keyword in explanation.keywords[:limit])
    note = "Words that belong to one of these labels alone come first; other labels give others."
    return _section("Keywords, given these labels", f'<p>{items}</p><p class="soft">{note}</p>')


def _why_not(reason: WhyNot, limit: int, digits: int) -> str:
    lower = "lower" if reason.difference >= 0 else "higher"
    best = ", ".join(reason.labels)
    lines = [
        f"<p>The best labels with it are <strong>{_safe(best)}</strong>; their score is "
        f"{abs(reason.difference):.{digits}f} {lower} than that of the labels above.</p>"
    ]
    for name, words in sides(reason, limit, digits).items():
        listed = ", ".join(f"{_safe(term)} ({amount:.{digits}f})" for term, amount in words)
        lines.append(f"<p>{name.capitalize()}: {listed or 'no word'}.</p>")
    return _section(f"Why not {reason.label}?", "\n".join(lines))


def _ledger(explanation: Explanation) -> str:
    body = [(name, _signed(value, 2)) for name, value in ledger_lines(explanation)]
    total = ("the score of these labels", _signed(explanation.ledger.score, 2))
    table = _table(["what", "logarithm" if explanation.unit == "nats" else "score"], body, total)
    return _section("How the score comes about", table)


def _table(columns: list[str], rows: Iterable[tuple[str, ...]], total=()) -> str:
    """Return a table of safe cells: a name, numbers, and a bar where a column has no name."""
    kinds = ["", *(' class="n"' if name else ' class="wide"' for name in columns[1:])]
    head = "".join(f'<th scope="col"{k}>{n}</th>' for n, k in zip(columns, kinds, strict=True))
    body = "\n".join(_row(row, kinds) for row in rows)
    foot = f"\n<tfoot>{_row(total, kinds)}</tfoot>" if total else ""
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>{foot}\n</table>"


def _row(cells: Iterable[str], kinds: list[str]) -> str:
    return "<tr>" + "".join(f"<td{k}>{c}</td>" for c, k in zip(cells, kinds, strict=True)) + "</tr>"


def _section(heading: str, content: str) -> str:
    return f"<section>\n<h2>{_safe(heading)}</h2>\n{content}\n</section>"


def _bar(part: float) -> str:
    return f'<span class="bar" aria-hidden="true"><span style="width: {part:.1%}"></span></span>'


def _colour(label: int) -> str:
    return f"l{label % len(PALETTE)}"


def _signed(number: float, digits: int) -> str:
    return f"{number:+,.{digits}f}".replace("-", "\N{MINUS SIGN}")


def _safe(text: object) -> str:
    """Return a text without markup, control characters and what UTF-8 cannot write."""
    return escape(CONTROL.sub(" ", str(text)))
