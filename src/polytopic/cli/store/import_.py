"""polytopic store import."""

import json

import click

from polytopic.cli.documents import with_progress
from polytopic.cli.store.opening import show_receipt


@click.command(name="import")
@click.argument("store")
@click.argument("source", default="-")
def command(store, source):
    """Learn what was exported (standard input by default) into STORE, which is made if need be.

    A store that is there must have the same settings, and no other tree of labels. Documents are
    learned batch by batch, each whole or not at all; trying again is safe.
    """
    from polytopic.store.transfer import import_lines

    with click.open_file(source, encoding="utf-8") as lines:
        for receipt in import_lines(store, with_progress(_parsed(source, lines))):
            show_receipt(receipt)


def _parsed(source, lines):
    for number, line in enumerate(lines, start=1):
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise ValueError(f"{source}, line {number}: must be a JSON object.")
        yield value
