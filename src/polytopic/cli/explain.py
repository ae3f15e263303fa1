"""polytopic explain."""

import json
import sys

import click

from polytopic.cli.show import echo_json, on_terminal, table


@click.command()
@click.argument("model")
@click.argument("text", default="-")
@click.option("--labels", help="Explain these labels, with commas between, not the predicted ones.")
@click.option(
    "--words",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Words to show for each label.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON on a terminal too.")
def command(model, text, labels, words, as_json):
    """Say why TEXT (standard input by default) has its labels according to MODEL.

    TEXT may also be a JSON object with "text", "fields" or "counts". Gives each label's share of
    the text and the words that say so, with the label's share of each word and the word's
    evidence: its count times the logarithm of how much more likely the label makes it than the
    corpus as a whole does.
    """
    from polytopic.labeler import load

    labeler = load(model)
    if text == "-":
        text = _standard_input()
    wanted = [name.strip() for name in labels.split(",") if name.strip()] if labels else None
    explanation = labeler.explain(_content(text), wanted)
    if as_json or not on_terminal():
        echo_json(explanation.to_dict())
    else:
        show(explanation, words)


def _content(text):
    """Return the text, or the content of a document that is written as a JSON object."""
    from polytopic.corpus import Document

    try:
        document = json.loads(text)
    except ValueError:
        return text
    is_document = isinstance(document, dict) and {"text", "fields", "counts"} & document.keys()
    return Document.from_dict(document, id="1").content if is_document else text


def _standard_input():
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"standard input is not valid UTF-8 (byte {error.start + 1}).") from None


def show(explanation, words, title=""):
    """Write labels, their shares and their words as a table."""
    table(
        title,
        [">share", "label", "words that say so (evidence)"],
        [
            (
                f"{reason.share:.0%}",
                reason.label,
                ", ".join(
                    f"{word.term} ({word.evidence:+.1f})"
                    for word in reason.words[:words]
                    if word.evidence > 0
                ),
            )
            for reason in explanation.labels
        ],
    )
