"""polytopic store publish."""

import click

from polytopic.cli.show import echo_json
from polytopic.cli.store.opening import (
    keep_option,
    open_store,
    read_selection,
    selection_options,
)


@click.command()
@click.argument("store")
@click.argument("model", required=False)
@click.option(
    "--fit",
    "name",
    type=click.Choice(["mml", "pmm1", "pmm2", "pdmm", "nb", "col", "boostexter"]),
    help="The model to fit; the store's own by default.",
)
@selection_options
@click.option("--note", help="What to say of it in the history.")
@keep_option
def command(store, model, name, as_of, since, until, labels, note, keep):
    """Fit a model on STORE, or take one from the file MODEL, and let it answer."""
    from polytopic.labeler import load

    chosen = read_selection(as_of, since, until, labels)
    if model is not None and (name is not None or any(chosen.values())):
        raise click.UsageError("a model from a file is not fitted; leave out what it is to be of.")
    with open_store(store) as opened:
        labeler = load(model) if model is not None else opened.fit(name, **chosen)
        number = opened.publish(labeler, note=note, keep=keep)
        echo_json(next(m.to_dict() for m in opened.history() if m.id == number))
