"""polytopic suggest."""

from functools import cache

import click

from polytopic.cli.documents import engine, folder_for, report_skipped
from polytopic.cli.options import cluster_options
from polytopic.cli.documents import ahead, blocks, read
from polytopic.cli.options import document_options
from polytopic.cli.options import FiniteFloat
from polytopic.cli.output import beginning, echo_json, on_terminal, table


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
    type=FiniteFloat(0, 1),
    metavar="P",
    help="Give no labels where the probability that all are right is lower.",
)
@click.option("--split", help="Only this part of the documents, such as test.")
@click.option("--to", "target", metavar="FOLDER", help="With a cluster: where its files go.")
@cluster_options
@document_options
def command(
    model,
    documents,
    limit,
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

    Writes one JSON object a document: its id, its labels, and the best labels with score and
    probability. A stream is answered line by line. Where MODEL abstains, it has no labels, and
    "abstained" is true. Labels that have a name in the tree of MODEL are given with it, in the
    language of the texts if there is one. At a level, a probability is that of any label below
    being right, were they independent. A Dask cluster writes the same to FOLDER, a file for each
    partition of DOCUMENTS.
    """
    on_cluster = dask is not None or workers is not None
    if on_cluster:
        target = folder_for(target)
    elif target is not None:
        raise click.UsageError("--to is for --dask and --workers; results go to standard output.")
    from polytopic.cli.documents import load_labeler

    labeler = load_labeler(model)
    if abstain is not None:
        labeler.abstain = abstain
    asked = {"include": include or None, "exclude": exclude or None, "level": level}
    if on_cluster:
        from polytopic import distributed

        with engine(dask, workers, "labelling") as how:
            asked |= {"split": split, **reading}
            found = distributed.suggest(labeler, documents, target, limit, **how._asdict(), **asked)
        report_skipped(found.skipped)
        click.echo(f"Labelled {found.documents:,} documents; wrote {target}.", err=True)
        return
    name, shown = cache(labeler.name), on_terminal()

    def labelled():
        # where the answers themselves show progress, reading does not
        for block in blocks(read(documents, split=split, progress=not shown, **reading)):
            yield list(zip(block, labeler.suggest(block, limit, **asked), strict=True))

    for block in ahead(labelled()):  # the next texts are labelled while these are written
        if shown:
            for document, answer in block:
                _show(document, answer, name)
        else:
            echo_json(*({"id": d.id, **answer.to_dict(name, digits=6)} for d, answer in block))


def _show(document, answer, name):
    from polytopic.explain.drawing import with_name

    table(
        f"{document.id}  {beginning(document)}{' – abstained' if answer.abstained else ''}",
        ["", "label", ">probability", ">score"],
        [
            ("✓" if s.chosen else "", with_name(s.label, name(s.label)), s.probability, s.score)
            for s in answer
        ],
    )
