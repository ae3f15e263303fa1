"""polytopic audit."""

from dataclasses import asdict

import click

from polytopic.cli.documents import read
from polytopic.cli.options import document_options, language_option
from polytopic.cli.output import beginning, echo_json, on_terminal, table
from polytopic.models.registry import DEFAULT_COUNT_MODEL, model_names
from polytopic.results import finite


@click.command()
@click.argument("corpus")
@click.option(
    "--model",
    type=click.Choice(model_names("counts")),
    default=DEFAULT_COUNT_MODEL,
    show_default=True,
    help="What judges: a mixture model or, fastest, naive Bayes.",
)
@language_option
@click.option(
    "-k",
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Documents to list.",
)
@click.option("--split", default="train", show_default=True, help="Part of the corpus to audit.")
@document_options
def command(corpus, model, language, limit, split, **reading):
    """List the documents in CORPUS whose own labels are least likely.

    A model learns the corpus and judges each document as if it had never seen it. Given are the
    labels that fit better, the words that say so, and the suspicion: the difference of the
    scores, which are logarithms, over the root of the number of words. Naive Bayes knows one
    label at a time and doubts a document only if none of its labels is the best one. A document
    that alone has one of its labels cannot be judged.
    """
    from polytopic.labeler import Labeler

    documents = list(read(corpus, split=split, **reading))
    labeler = Labeler(model, language=language)
    suspects = labeler.fit(documents).audit(documents, k=limit)
    if on_terminal():
        _show(documents, suspects)
    else:
        for suspect in suspects:
            echo_json(_as_dict(suspect))
    click.echo(
        f"Audited {suspects.audited:,} documents: other labels fit {suspects.doubtful:,} better; "
        f"not judged: {len(suspects.alone):,}, alone with a label.",
        err=True,
    )


def _as_dict(suspect):
    fields = asdict(suspect) | {"suspicion": finite(suspect.suspicion)}
    del fields["index"]  # the id tells
    return fields


def _show(documents, suspects):
    table(
        "",
        ["id", "text", "labels", "fits better", "words", ">suspicion"],
        [
            (
                suspect.id,
                beginning(documents[suspect.index], 40),
                ", ".join(suspect.labels),
                ", ".join(suspect.better),
                " ".join(suspect.words),
                suspect.suspicion,
            )
            for suspect in suspects
        ],
    )
