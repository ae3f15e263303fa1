"""polytopic store export."""

import json

import click

from polytopic.cli.documents import with_progress
from polytopic.cli.store.opening import open_store


@click.command()
@click.argument("store")
@click.option("--to", "target", metavar="FILE", help="Write to a file, whole or not at all.")
def command(store, target):
    """Write STORE as JSON lines, to be imported elsewhere.

    First what the store is, then each document as it is now: its counts, or its text where texts
    are kept. Earlier versions of documents and published models are left out.
    """
    from polytopic.errors import StoreError
    from polytopic.files import new_file
    from polytopic.store.transfer import export_lines

    with open_store(store) as opened:
        lines = (json.dumps(line, ensure_ascii=False) for line in export_lines(opened))
        if target is None:
            for line in lines:
                click.echo(line)
        else:
            with new_file(target, StoreError) as file:
                file.writelines(f"{line}\n".encode() for line in with_progress(lines))
