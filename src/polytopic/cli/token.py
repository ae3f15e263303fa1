"""The command ``polytopic token``."""

import click

from polytopic.cli.output import echo_json, on_terminal, table
from polytopic.cli.store import open_store, store_argument


@click.group()
def command():
    """Create, list and revoke the tokens that give programs access to a store over HTTP."""


@command.command()
@store_argument
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["read", "write", "admin"]),
    default="write",
    show_default=True,
    help="read: labels and explanations; write: also learn, relabel, forget; admin: also publish.",
)
def create(url, name, role):
    """Create a token for STORE with a NAME, and print it; STORE keeps only its digest."""
    with open_store(url) as store:
        token = store.tokens.create(name, role)
        try:
            click.echo(token)
        except OSError:
            store.tokens.revoke(name)  # nobody has seen it
            raise


@command.command(name="list")
@store_argument
def show(url):
    """List the tokens of STORE with their names, roles and creation times."""
    with open_store(url) as store:
        tokens = store.tokens.all()
    if on_terminal():
        table("", ["name", "role", "created"], [list(token.values()) for token in tokens])
    else:
        for token in tokens:
            echo_json(token)


@command.command()
@store_argument
@click.argument("name")
def revoke(url, name):
    """Revoke the token with this NAME."""
    with open_store(url) as store:
        store.tokens.revoke(name)
