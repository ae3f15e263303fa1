"""polytopic store verify."""

import click

from polytopic.cli.show import echo_json, on_terminal
from polytopic.cli.store.opening import open_store


@click.command()
@click.argument("store")
def command(store):
    """Count the ledger of STORE afresh, and tell whether its tables and digests agree with it."""
    with open_store(store) as opened:
        found = opened.verify()
    if on_terminal():
        click.echo(f"Revision {found.revision}: {found.documents:,} documents, {found.digest}.")
        click.echo("\n".join(found.problems) if found.problems else "All agrees.")
    else:
        echo_json(found.to_dict())
    if not found.ok:
        raise click.ClickException("the store does not agree with its ledger.")
