"""polytopic suggest."""

import click

from polytopic.cli.documents import blocks, document_options, read
from polytopic.cli.show import beginning, echo_json, finite, on_terminal, table


@click.command()
@click.argument("model")
@click.argument("documents", default="-")
@click.option(
    "-k",
    "--limit",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Labels to give each document.",
)
@click.option(
    "--include",
    multiple=True,
    metavar="LABEL",
    help="Allow only this label and those below it in the tree; may be repeated.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="LABEL",
    help="Do not allow this label and those below it; may be repeated.",
)
@click.option(
    "--level",
    type=click.IntRange(min=0),
    metavar="N",
    help="Roll labels up to this level of the tree, 0 for the roots.",
)
@click.option(
    "--abstain",
    type=click.FloatRange(0, 1),
    metavar="P",
    help="Give no labels where the probability that all are right is lower.",
)
@click.option("--split", help="Only this part of the documents, such as test.")
@document_options
def command(model, documents, limit, include, exclude, level, abstain, split, **reading):
    """Label each document in DOCUMENTS (standard input by default) with MODEL.

    Writes one JSON object a document: its id, its labels, and the best labels with score and
    probability. A stream is answered line by line. Where MODEL abstains, it has no labels, and
    "abstained" is true. Labels that have a name in the tree of MODEL are given with it, in the
    language of the texts if there is one. At a level, a probability is that of any label below
    being right, were they independent.
    """
    from polytopic.cli.models import load_labeler

    labeler = load_labeler(model)
    if abstain is not None:
        labeler.abstain = abstain
    asked = {"include": include or None, "exclude": exclude or None, "level": level}
    quiet = on_terminal()  # where the answers themselves show progress
    for block in blocks(read(documents, split=split, progress=not quiet, **reading)):
        answers = labeler.suggest(block, limit, **asked)
        for document, suggestions in zip(block, answers, strict=True):
            abstained = labeler.abstain is not None and not any(s.chosen for s in suggestions)
            if on_terminal():
                _show(document, suggestions, abstained, labeler.name)
            else:
                echo_json(_as_dict(document, suggestions, abstained, labeler.name))


def _as_dict(document, suggestions, abstained, name):
    answer = {
        "id": document.id,
        "labels": sorted(s.label for s in suggestions if s.chosen),
        "suggestions": [
            {
                "label": s.label,
                **({"name": name(s.label)} if name(s.label) != s.label else {}),
                "score": finite(s.score),
                "probability": finite(s.probability),
            }
            for s in suggestions
        ],
    }
    return answer | {"abstained": True} if abstained else answer


def _show(document, suggestions, abstained, name):
    from polytopic.explain.drawing import with_name

    table(
        f"{document.id}  {beginning(document)}{' – abstained' if abstained else ''}",
        ["", "label", ">probability", ">score"],
        [
            ("✓" if s.chosen else "", with_name(s.label, name(s.label)), s.probability, s.score)
            for s in suggestions
        ],
    )
