"""polytopic store import."""

import click

from polytopic.cli.documents import read_objects, with_progress
from polytopic.cli.store.opening import show_receipts


@click.command(name="import")
@click.argument("store")
@click.argument("source", default="-")
def command(store, source):
    """Learn what was exported (standard input by default) into STORE, which is made if need be.

    A store that is there must have the same settings, and no other tree of labels. Documents are
    learned batch by batch, each whole or not at all; trying again is safe.
    """
    from polytopic.store.transfer import import_lines

    show_receipts(import_lines(store, with_progress(read_objects(source))))
