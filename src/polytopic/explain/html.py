"""An explanation as one HTML page that stands alone: no script, no network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from polytopic.explain.drawing import (
    DIGITS,
    PALETTE,
    Mark,
    breakdown_lines,
    marks,
    percent,
    sides,
    spoken,
)
from polytopic.explain.explanation import Explanation, LabelReason, WhyNot
from polytopic.explain.page import bar, safe, section, signed, table, whole_page
from polytopic.explain.places import strings_of

NOTES = {  # on evidence, by its unit
    "nats": "Evidence tells how much likelier the labels make a word than the corpus as a whole "
    "does: +0.7 is twice, +2.3 ten times. A word of several labels is divided among them.",
    "score": "Evidence tells how much a word adds to the score of the labels, by each of them. "
    "The labels with the highest score are chosen.",
}
STYLE = """ul.chips { list-style: none; padding: 0; margin: 0; display: grid; gap: .5rem }
.chips li { border-left: .6rem solid rgb(var(--c)); padding: .1rem .75rem }
.text { white-space: pre-wrap; border: 1px solid var(--line); border-radius: .5rem;
  padding: 1rem; unicode-bidi: isolate }
mark { color: inherit; background: rgb(var(--c) / calc(var(--a) * var(--fade)));
  border-bottom: 2px solid rgb(var(--c)); border-radius: .2rem }
mark.again { border-bottom-style: dashed }
@media print { mark, .chips li { print-color-adjust: exact; -webkit-print-color-adjust: exact } }
"""


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
        _breakdown(explanation),
    ]
    return whole_page(title, sections, STYLE)


def _chips(explanation: Explanation) -> str:
    chips = "\n".join(
        f'<li class="{_colour(k)}"><strong>{safe(reason.label)}</strong> '
        f'{safe(percent(reason.share))} of the text <span class="soft">· probability '
        f"{safe(percent(reason.probability))}</span>{bar(reason.share)}</li>"
        for k, reason in enumerate(explanation.labels)
    )
    return section("Labels", f'<ul class="chips">\n{chips}\n</ul>')


def _texts(explanation: Explanation, text, language: str | None) -> Iterator[str]:
    found = list(marks(explanation))
    lang = f' lang="{safe(language)}"' if language else ""
    for field, string in strings_of(text).items():
        own, digits = [m for m in found if m.place.field == field], DIGITS[explanation.unit]
        inside = "".join(_marked(string, own, digits))
        drawn = f'<div class="text" dir="auto"{lang}>{inside}</div>'
        yield section("The text" if field is None else f"The text: {field}", drawn)
    if explanation.unknown:
        yield (
            f'<p class="soft">Words that the model does not know ({len(explanation.unknown)}): '
            f"{safe(', '.join(explanation.unknown[:20]))}"
            f"{', …' if len(explanation.unknown) > 20 else '.'}</p>"
        )


def _marked(text: str, found: Iterable[Mark], digits: int) -> Iterator[str]:
    """Give the text in pieces, each known word with what it says on its title."""
    end = 0
    for place, label, strength in found:
        yield safe(text[end : place.start])
        shares = sorted(place.shares.items(), key=lambda item: -item[1])[:4]
        says = ", ".join(f"{name} {percent(share)}" for name, share in shares)
        title = safe(f"{place.term}: {says}; evidence {signed(place.evidence, digits)}")
        word, end = safe(text[place.start : place.end]), place.end
        if strength:
            again = " again" if label >= len(PALETTE) else ""
            style = f"--a: {0.25 + 0.75 * strength:.2f}"
            css = f"{_colour(label)}{again}"
            yield f'<mark class="{css}" style="{style}" title="{title}">{word}</mark>'
        else:
            yield f'<span title="{title}">{word}</span>'
    yield safe(text[end:])


def _words(explanation: Explanation, limit: int) -> str:
    strongest = max((r.words[0].evidence for r in explanation.labels if r.words), default=0.0)
    tables = "\n".join(
        f'<div class="{_colour(k)}">\n<h3>{safe(reason.label)}</h3>\n'
        f"{_label_table(reason, strongest, limit, DIGITS[explanation.unit])}\n</div>"
        for k, reason in enumerate(explanation.labels)
    )
    content = f'<p class="soft">{NOTES[explanation.unit]}</p>\n<div class="side">\n{tables}\n</div>'
    return section("The words that say so", content)


def _label_table(reason: LabelReason, strongest: float, limit: int, digits: int) -> str:
    shown = spoken(reason, limit, digits)
    if not shown:
        return "<p>No word speaks for it more than for the corpus as a whole.</p>"
    rows = [
        (
            safe(word.term if word.count == 1 else f"{word.term} ×{word.count:g}"),
            safe(percent(word.share)),
            signed(word.evidence, digits),
            bar(word.evidence / strongest),
        )
        for word in shown
    ]
    return table(["word", ">share", ">evidence", ""], rows)


def _keywords(explanation: Explanation, limit: int) -> str:
    if not explanation.keywords:
        return ""
    items = ", ".join(safe(keyword.term) for keyword in explanation.keywords[:limit])
    note = "Words that belong to one of these labels alone come first; other labels give others."
    return section("Keywords, given these labels", f'<p>{items}</p><p class="soft">{note}</p>')


def _why_not(reason: WhyNot, limit: int, digits: int) -> str:
    lower = "lower" if reason.difference >= 0 else "higher"
    best = ", ".join(reason.labels)
    lines = [
        f"<p>The best labels with it are <strong>{safe(best)}</strong>; their score is "
        f"{abs(reason.difference):.{digits}f} {lower} than that of the labels above.</p>"
    ]
    for name, words in sides(reason, limit, digits).items():
        listed = ", ".join(f"{safe(term)} ({amount:.{digits}f})" for term, amount in words)
        lines.append(f"<p>{name.capitalize()}: {listed or 'no word'}.</p>")
    return section(f"Why not {reason.label}?", "\n".join(lines))


def _breakdown(explanation: Explanation) -> str:
    body = [(name, signed(value, 2)) for name, value in breakdown_lines(explanation)]
    total = ("the score of these labels", signed(explanation.breakdown.score, 2))
    unit = ">logarithm" if explanation.unit == "nats" else ">score"
    return section("How the score comes about", table(["what", unit], body, total))


def _colour(label: int) -> str:
    return f"l{label % len(PALETTE)}"
