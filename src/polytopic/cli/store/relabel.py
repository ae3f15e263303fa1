"""polytopic store relabel."""

import click

from polytopic.cli.documents import read_objects
from polytopic.cli.store.opening import open_store, show_receipt


@click.command()
@click.argument("store")
@click.argument("document", required=False)
@click.argument("labels", nargs=-1)
@click.option(
    "--from",
    "source",
    metavar="FILE",
    help='JSON lines with "id" and "labels" instead; - for standard input.',
)
def command(store, document, labels, source):
    """Give DOCUMENT in STORE these LABELS instead of those it has; none if none are given.

    Documents that STORE does not know are told as missing; if none is known, that is a failure.
    """
    if (document is None) == (source is None):
        raise click.UsageError("give a document and its labels, or a file of them by --from.")
    wanted = {document: list(labels)} if source is None else _read(source)
    with open_store(store) as opened:
        receipt = opened.relabel(wanted)
    show_receipt(receipt)
    if wanted and len(receipt.missing) == len(wanted):
        raise click.ClickException("none of these documents is in the store.")


def _read(source):
    wanted = {}
    for row in read_objects(source, needed=("id", "labels")):
        wanted[str(row["id"])] = row["labels"]
    return wanted
