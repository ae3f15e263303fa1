"""polytopic store history."""

import click

from polytopic.cli.show import echo_json, on_terminal, table
from polytopic.cli.store.opening import open_store


@click.command()
@click.argument("store")
def command(store):
    """List the published models of STORE, the newest first."""
    with open_store(store) as opened:
        models = opened.history()
    if not on_terminal():
        for model in models:
            echo_json(model.to_dict())
        return
    if not models:
        click.echo("No model is published.")
        return
    rows = [
        (
            "✓" if model.current else "",
            model.id,
            model.time[:16].replace("T", " "),
            model.name,
            "" if model.origin.revision is None else model.origin.revision,
            "" if model.marked is None else f"saw what was forgotten at {model.marked}",
            model.note or "",
        )
        for model in models
    ]
    table("", ["", ">number", "published", "model", ">revision", "", "note"], rows)
