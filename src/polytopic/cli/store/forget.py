"""polytopic store forget."""

import click

from polytopic.cli.store.opening import open_store, show_receipt


@click.command()
@click.argument("store")
@click.argument("ids", nargs=-1)
@click.option("--from", "source", metavar="FILE", help="Ids from a file, one a line; - for input.")
@click.option(
    "--purge",
    is_flag=True,
    help="Delete the published models that saw them, instead of marking them, and those marked "
    "before.",
)
def command(store, ids, source, purge):
    """Forget the documents with these IDS in STORE, without a trace.

    All at once, or none. Ids that STORE does not know are told as missing; if none is known, that
    is a failure.
    """
    if source is not None:
        from polytopic.lines import read_lines

        ids = [*ids, *filter(None, (line.strip() for _, line in read_lines(source)))]
    if not ids:
        raise click.UsageError("no ids are given; name them, or a file of them by --from.")
    with open_store(store) as opened:
        receipt = opened.forget(ids, purge=purge)
    show_receipt(receipt)
    if receipt.missing and not (receipt.forgotten or receipt.purged_models):
        raise click.ClickException("none of these documents is in the store.")
