"""The command ``polytopic audit``."""

from dataclasses import asdict

import click

from polytopic.cli.documents import read
from polytopic.cli.options import document_options, k_option, language_option
from polytopic.cli.output import echo_json, excerpt, on_terminal, round_finite, table
from polytopic.models.registry import DEFAULT_COUNT_MODEL, model_names


@click.command()
@click.argument("corpus")
@click.option(
    "--model",
    type=click.Choice(model_names()),
    default=DEFAULT_COUNT_MODEL,
    show_default=True,
    help="The model to check the labels with; stack takes longest, and finds most.",
)
@language_option
@k_option(20, "Documents to list.")
@click.option("--split", default="train", show_default=True, help="Part of the corpus to audit.")
@document_options
def command(corpus, model, language, k, split, **reading):
    """List the documents in CORPUS whose labels are most likely wrong.

    A model learns the corpus, and scores each document as if it had not seen it: a count model
    (naive Bayes, mixtures) without its counts, all others in five folds. Prints the labels that fit
    better, the words that support them, and the suspicion, by which documents are ranked. Naive
    Bayes predicts one label, so it suspects a document only if none of its labels is the best one.
    A document that is the only one with a label cannot be checked.
    """
    from polytopic.labeler import Labeler

    documents = list(read(corpus, split=split, **reading))
    labeler = Labeler(model, language=language)
    suspects = labeler.fit(documents).audit(documents, k=k)
    if on_terminal():
        _show(documents, suspects)
    else:
        for suspect in suspects:
            echo_json(_as_dict(suspect))
    click.echo(
        f"Checked {suspects.audited:,} documents: other labels fit {suspects.doubtful:,} of them "
        f"better. {len(suspects.alone):,} could not be checked, because no other document has one "
        "of their labels.",
        err=True,
    )


def _as_dict(suspect):
    fields = asdict(suspect) | {"suspicion": round_finite(suspect.suspicion)}
    del fields["index"]  # the id is enough
    return fields


def _show(documents, suspects):
    table(
        "",
        ["id", "text", "labels", "fits better", "words", ">suspicion"],
        [
            (
                suspect.id,
                excerpt(documents[suspect.index], 40),
                ", ".join(suspect.labels),
                ", ".join(suspect.better),
                " ".join(suspect.words),
                suspect.suspicion,
            )
            for suspect in suspects
        ],
    )
