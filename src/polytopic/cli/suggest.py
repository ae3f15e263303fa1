"""The command ``polytopic suggest``."""

from functools import cache

import click

from polytopic.cli.documents import blocks, load_labeler, prefetch, read
from polytopic.cli.options import (
    FiniteFloat,
    cluster_options,
    document_options,
    folder_for,
    k_option,
    open_cluster,
    report_skipped,
)
from polytopic.cli.output import echo_json, excerpt, on_terminal, table


@click.command()
@click.argument("model")
@click.argument("documents", default="-")
@k_option(5, "Labels to suggest for each document.")
@click.option(
    "--include",
    multiple=True,
    metavar="LABEL",
    help="Suggest only this label and those below it in the tree; repeatable.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="LABEL",
    help="Do not suggest this label or those below it; repeatable.",
)
@click.option(
    "--level",
    type=click.IntRange(min=0),
    metavar="N",
    help="Roll labels up to this level of the tree; 0 means the roots.",
)
@click.option(
    "--abstain",
    type=FiniteFloat(0, 1),
    metavar="P",
    help="Assign no labels if the probability that all are right is below P.",
)
@click.option("--split", help="Read only this part of the documents, such as test.")
@click.option("--to", "target", metavar="FOLDER", help="Folder for the results of a cluster.")
@cluster_options
@document_options
def command(
    model,
    documents,
    k,
    include,
    exclude,
    level,
    abstain,
    split,
    target,
    dask,
    workers,
    **reading,
):
    """Label each document in DOCUMENTS (standard input by default) with MODEL.

    Prints one JSON object per document: its id, its labels, and the best labels with score and
    probability. A stream is answered line by line. If the model abstains, there are no labels and
    "abstained" is true. "known" is the share of the words that the model knows, and "warning" says
    if it is low, or if the document is in another language. Labels with a name in the model's tree
    are printed with that name, in the language of the texts if possible. With --level, the
    probability is that of any label below, as if they were independent. A Dask cluster writes the
    same to FOLDER, one file per partition.
    """
    on_cluster = dask is not None or workers is not None
    if on_cluster:
        target = folder_for(target)
    elif target is not None:
        raise click.UsageError("--to needs --dask or --workers; results go to standard output.")
    labeler = load_labeler(model)
    if abstain is not None:
        labeler.abstain = abstain
    options = {"include": include or None, "exclude": exclude or None, "level": level}
    if on_cluster:
        from polytopic import distributed

        with open_cluster(dask, workers, "labelling") as cluster:
            options |= {"split": split, **cluster._asdict(), **reading}
            summary = distributed.suggest(labeler, documents, target, k, **options)
        report_skipped(summary.skipped)
        click.echo(f"Labelled {summary.documents:,} documents; wrote {target}.", err=True)
        return
    name, as_table = cache(labeler.name), on_terminal()

    def labelled():
        # on a terminal, the answers themselves show the progress
        for block in blocks(read(documents, split=split, progress=not as_table, **reading)):
            yield list(zip(block, labeler.suggest(block, k, **options), strict=True))

    for block in prefetch(labelled()):  # the next texts are labelled while these are written
        if as_table:
            for document, answer in block:
                _show(document, answer, name)
        else:
            echo_json(*({"id": d.id, **answer.to_dict(name, digits=6)} for d, answer in block))


def _show(document, answer, name):
    from polytopic.explain.display import with_name

    table(
        f"{document.id}  {excerpt(document)}{' – abstained' if answer.abstained else ''}",
        ["", "label", ">probability", ">score"],
        [
            ("✓" if s.chosen else "", with_name(s.label, name(s.label)), s.probability, s.score)
            for s in answer
        ],
    )
    if answer.warning is not None:
        click.echo(answer.warning)
