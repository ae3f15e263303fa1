"""polytopic store relabel."""

import json

import click

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
    with click.open_file(source, encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                wanted[str(row["id"])] = row["labels"]
            except (ValueError, KeyError, TypeError):
                raise ValueError(
                    f'{source}, line {number}: must be a JSON object with "id" and "labels".'
                ) from None
    return wanted
