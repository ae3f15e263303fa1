"""polytopic store learn."""

import click

from polytopic.cli.documents import blocks, document_options, read, whole_blocks
from polytopic.cli.store.opening import open_store, show_receipts


@click.command()
@click.argument("store")
@click.argument("documents", default="-")
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Documents at most in one transaction.",
)
@click.option("--split", help="Only this part of the documents, such as train.")
@document_options
def command(store, documents, batch, split, **reading):
    """Learn DOCUMENTS (standard input by default) into STORE.

    Each document needs an id. One that is known just so is left as it is, so that trying again is
    safe; one with other labels, words or another time is corrected. Documents are learned batch by
    batch, each whole or not at all, and each gives a receipt; of standard input, what has come so
    far is a batch.
    """
    found = read(documents, split=split, line_ids=False, **reading)
    with open_store(store) as opened:
        batches = blocks(found, batch) if documents == "-" else whole_blocks(found, batch)
        show_receipts(opened.learn(block) for block in batches)
