"""polytopic store merge."""

import click

from polytopic.cli.store.opening import open_store, show_receipt


@click.command()
@click.argument("store")
@click.argument("other")
def command(store, other):
    """Learn into STORE what OTHER knows: counts, labels and times of its documents, no texts.

    Both must make the same terms of texts. A document that is in both must be the same, else
    nothing is merged.
    """
    with open_store(store) as opened, open_store(other) as second:
        show_receipt(opened.merge(second))
