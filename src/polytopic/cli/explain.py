"""polytopic explain."""

import json

import click

from polytopic.cli.options import k_option
from polytopic.cli.output import echo_json, on_terminal, printable, table


@click.command()
@click.argument("model")
@click.argument("text", default="-")
@click.option("--labels", help="Explain these labels, with commas between, not the predicted ones.")
@click.option(
    "--why-not",
    multiple=True,
    metavar="LABEL",
    help="Say also why TEXT does not have this label; may be repeated.",
)
@click.option(
    "--shares",
    is_flag=True,
    help="Let a mixture model of the same counts say how much each label has of the words.",
)
@words_option(8)
@click.option("--html", metavar="FILE", help="Write a page for a browser, which stands alone.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON on a terminal too.")
def command(model, text, labels, why_not, shares, words, html, as_json):
    """Say why TEXT (standard input by default) has its labels according to MODEL.

    TEXT may also be a JSON object with "text", "fields" or "counts". Gives each label's share of
    the text and the words that say so, with the label's share of each word and its part of the
    word's evidence: by mml what the word adds to the score; by other models its count times the
    logarithm of how much more likely the labels make it than the corpus as a whole does. All
    evidence is part of a breakdown that adds up to the model's score.
    """
    from polytopic.cli.documents import load_labeler
    from polytopic.explain.drawing import with_names
    from polytopic.lines import read_text

    labeler = load_labeler(model)
    content = _content(read_text("-") if text == "-" else text)
    wanted = None
    if labels is not None:
        wanted = [name.strip() for name in labels.split(",") if name.strip()]
    explanation = labeler.explain(content, wanted, why_not=why_not, shares=shares)
    named = with_names(explanation, {name: labeler.name(name) for name in labeler.classes_})
    if html:
        _write_page(html, named, content, labeler.analyzer_.language, words)
    if as_json or not on_terminal():
        echo_json(explanation.to_dict())
    else:
        show(named, content, words)
        for line in _sentences(named, words):
            click.echo(printable(line))


def _content(text):
    """Return the text, or the content of a document that is written as a JSON object."""
    from polytopic.corpus import Document
    from polytopic.corpus.text_formats import parse_object

    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(document, dict) or not {"text", "fields", "counts"} & document.keys():
        return text
    return Document.from_dict(parse_object(text), id="1").content


def _write_page(path, explanation, content, language, words):
    from polytopic.errors import PolytopicError
    from polytopic.explain import to_html
    from polytopic.files import new_file

    page = to_html(explanation, content, language=language, words=words)
    with new_file(path, PolytopicError) as file:
        file.write(page.encode())
    click.echo(f"Wrote {path}.", err=True)


def show(explanation, text, words):
    """Write the text with its words in the colours of their labels, then a table of these."""
    from rich.console import Console
    from rich.text import Text

    from polytopic.explain.drawing import DIGITS, percent, spoken

    digits = DIGITS[explanation.unit]
    console = Console(highlight=False)
    for line in _coloured(explanation, text):
        console.print(line)
    console.print()
    table(
        "",
        [">share", ">probability", "label", "words that say so (evidence)"],
        [
            (
                percent(reason.share),
                percent(reason.probability),
                Text(printable(reason.label), _style(k)),
                _listed(_evidence(spoken(reason, words, digits)), digits),
            )
            for k, reason in enumerate(explanation.labels)
        ],
    )


def _coloured(explanation, text):
    """Give each string of a text, its strong words on their label's colour, weaker ones in it."""
    from rich.text import Text

    from polytopic.explain.drawing import marks
    from polytopic.explain.explanation import strings_of

    found = list(marks(explanation))
    for field, string in strings_of(text).items():
        if field is not None:
            yield Text(printable(field), "bold")
        drawn = Text("\n".join(map(printable, string.split("\n"))))
        for place, label, strength in found:
            if strength and place.field == field:
                drawn.stylize(_style(label, strength), place.start, place.end)
        yield drawn


def _style(label, strength=1.0):
    from polytopic.explain.drawing import PALETTE

    colour = PALETTE[label % len(PALETTE)]
    if strength < 0.5:
        return f"underline {colour}"
    ink = "#ffffff" if colour == PALETTE[0] else "#000000"  # the first is the darkest
    return f"bold {ink} on {colour}"


def _sentences(explanation, words):
    from polytopic.explain.drawing import DIGITS, breakdown_lines, sides

    digits = DIGITS[explanation.unit]
    keywords = ", ".join(keyword.term for keyword in explanation.keywords[:words])
    if keywords:
        yield from ("", f"Keywords, given these labels: {keywords}.")
    for reason in explanation.why_not:
        lower = "lower" if reason.difference >= 0 else "higher"
        yield from (
            "",
            f"Why not {reason.label}? The best labels with it are {', '.join(reason.labels)}; "
            f"their score is {abs(reason.difference):.{digits}f} {lower}.",
        )
        for side, said in sides(reason, words, digits).items():
            yield f"  {side}: {_listed(said, digits) or 'no word'}"
    yield from ("", "The score of these labels:")
    lines = [*breakdown_lines(explanation), ("the score", explanation.breakdown.score)]
    yield from (f"{value:12,.2f}  {name}" for name, value in lines)


def _evidence(words):
    return ((word.term, word.evidence) for word in words)


def _listed(words, digits):
    return ", ".join(f"{term} ({amount:.{digits}f})" for term, amount in words)
