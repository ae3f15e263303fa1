"""The command ``polytopic explain``."""

import json

import click

from polytopic.cli.documents import load_labeler
from polytopic.cli.options import check_target, html_option, json_option, k_option
from polytopic.cli.output import echo_json, on_terminal, printable, table, write_file


@click.command()
@click.argument("model")
@click.argument("text", default="-")
@click.option(
    "--labels", help="Labels to explain, separated by commas; by default the predicted ones."
)
@click.option(
    "--why-not",
    multiple=True,
    metavar="LABEL",
    help="Also explain why TEXT does not have this label; repeatable.",
)
@click.option(
    "--shares",
    is_flag=True,
    help="Compute the labels' shares with a mixture model of the same counts.",
)
@click.option(
    "--mixture",
    metavar="SHARES",
    help="Shares of --labels in TEXT, in the same order, separated by commas, instead of those "
    "that the model finds. For pdmm.",
)
@click.option(
    "--order",
    type=click.Choice(["specific", "paper"]),
    default="specific",
    show_default=True,
    help="Order of the keywords: those of a single label first; or those that the labels share "
    "most evenly first, as in the paper on PDMM.",
)
@k_option(8, "Words to show for each label.")
@html_option
@json_option
def command(model, text, labels, why_not, shares, mixture, order, k, html, as_json):
    """Explain why MODEL assigns its labels to TEXT (standard input by default).

    TEXT may also be a JSON object with "text", "fields" or "counts". Prints each label's share of
    the words that the model knows and the words that support it, each with the label's share of the
    word and its part of the word's evidence. In a linear model, the evidence of a word is what it
    adds to the score; in other models, its count times the log of how much likelier it is under the
    labels than in the corpus as a whole. The evidence of all words is part of a breakdown that adds
    up to the score.
    """
    from polytopic.explain.display import with_names
    from polytopic.lines import read_text

    check_target("--html", html, model)
    labeler = load_labeler(model)
    content = _content(read_text("-") if text == "-" else text)
    names = None
    if labels is not None:
        names = [name.strip() for name in labels.split(",") if name.strip()]
    elif mixture is not None:
        raise click.UsageError("--mixture needs --labels, in the same order.")
    explanation = labeler.explain(
        content,
        names,
        why_not=why_not,
        shares=shares,
        mixture=None if mixture is None else _numbers(mixture),
        order=order,
    )
    for_display = with_names(explanation, {name: labeler.name(name) for name in labeler.classes_})
    if html:
        _write_page(html, for_display, content, labeler.analyzer_.language, k)
    if as_json or not on_terminal():
        echo_json(explanation.to_dict())
    else:
        show(for_display, content, k)
        for line in _sentences(for_display, k):
            click.echo(printable(line))


def _numbers(shares):
    """Return numbers that are separated by commas."""
    try:
        return [float(share) for share in shares.split(",")]
    except ValueError:
        raise click.UsageError(
            f"--mixture {shares} must be numbers separated by commas, such as 0.7,0.3."
        ) from None


def _content(text):
    """Return the text, or the content of a document given as a JSON object."""
    from polytopic.corpus import Document
    from polytopic.corpus.text_formats import parse_object

    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(document, dict) or not {"text", "fields", "counts"} & document.keys():
        return text
    return Document.from_dict(parse_object(text), id="1").content


def _write_page(path, explanation, content, language, k):
    from polytopic.explain import to_html

    write_file(path, to_html(explanation, content, language=language, k=k).encode())


def show(explanation, text, k):
    """Print the text with words in the colours of their labels, then a table of the labels."""
    from rich.console import Console
    from rich.text import Text

    from polytopic.explain.display import DIGITS, percent, words_to_show

    digits = DIGITS[explanation.unit]
    console = Console(highlight=False)
    for line in _colour_text(explanation, text):
        console.print(line)
    console.print()
    table(
        "",
        [">share", ">probability", "label", "supporting words (evidence)"],
        [
            (
                percent(reason.share),
                percent(reason.probability),
                Text(printable(reason.label), _style(place)),
                _join_words(_evidence(words_to_show(reason, k, digits)), digits),
            )
            for place, reason in enumerate(explanation.labels)
        ],
    )


def _colour_text(explanation, text):
    """Yield the strings of a text: strong words on their label's colour, weaker ones in it."""
    from rich.text import Text

    from polytopic.explain.display import marks
    from polytopic.explain.explanation import strings_of

    coloured = list(marks(explanation))
    for field, string in strings_of(text).items():
        if field is not None:
            yield Text(printable(field), "bold")
        line = Text("\n".join(map(printable, string.split("\n"))))
        for place, label, strength in coloured:
            if strength and place.field == field:
                line.stylize(_style(label, strength), place.start, place.end)
        yield line


def _style(label, strength=1.0):
    from polytopic.explain.display import PALETTE

    colour = PALETTE[label % len(PALETTE)]
    if strength < 0.5:
        return f"underline {colour}"
    ink = "#ffffff" if colour == PALETTE[0] else "#000000"  # the first is the darkest
    return f"bold {ink} on {colour}"


def _sentences(explanation, k):
    from polytopic.explain.display import DIGITS, breakdown_lines, objections_by_side, percent

    digits = DIGITS[explanation.unit]
    yield ""
    if explanation.warning is not None:
        yield explanation.warning
    yield f"Shares are of the known words, {percent(explanation.known)} of all words."
    keywords = ", ".join(keyword.term for keyword in explanation.keywords[:k])
    if keywords:
        yield from ("", f"Keywords for these labels: {keywords}.")
    for reason in explanation.why_not:
        lower = "lower" if reason.difference >= 0 else "higher"
        yield from (
            "",
            f"Why not {reason.label}? The best set with it is {', '.join(reason.labels)}; "
            f"its score is {abs(reason.difference):.{digits}f} {lower}.",
        )
        for side, words in objections_by_side(reason, k, digits).items():
            yield f"  {side}: {_join_words(words, digits) or 'no words'}"
    yield from ("", "Score of these labels:")
    lines = [*breakdown_lines(explanation), ("the score", explanation.breakdown.score)]
    yield from (f"{value:12,.2f}  {name}" for name, value in lines)


def _evidence(words):
    return ((word.term, word.evidence) for word in words)


def _join_words(words, digits):
    return ", ".join(f"{term} ({amount:.{digits}f})" for term, amount in words)
