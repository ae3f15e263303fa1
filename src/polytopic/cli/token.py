"""polytopic token."""

import click

from polytopic.cli.show import echo_json, on_terminal, table
from polytopic.cli.store.opening import open_store


@click.group()
def command():
    """Make, list and revoke the tokens by which programs may change a store over HTTP."""


@command.command()
@click.argument("store")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["read", "write", "admin"]),
    default="write",
    show_default=True,
    help="read: labels and reasons; write: learn, relabel and forget too; admin: publish too.",
)
def create(store, name, role):
    """Make a token for STORE under a NAME, and show it this once: the store keeps its digest."""
    from polytopic.store.tokens import new_token, token_digest

    token = new_token()
    with open_store(store) as opened:
        opened.add_token(name, role, token_digest(token))
        try:
            click.echo(token)
        except OSError:
            opened.revoke_token(name)  # nobody has seen it, and the name stays free
            raise


@command.command(name="list")
@click.argument("store")
def show(store):
    """List the tokens of STORE: names, roles and when they were made."""
    with open_store(store) as opened:
        tokens = opened.tokens()
    if on_terminal():
        table("", ["name", "role", "made"], [list(token.values()) for token in tokens])
    else:
        for token in tokens:
            echo_json(token)


@command.command()
@click.argument("store")
@click.argument("name")
def revoke(store, name):
    """Let the token of a NAME be worth nothing from now on."""
    with open_store(store) as opened:
        opened.revoke_token(name)
