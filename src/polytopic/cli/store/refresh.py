"""polytopic store refresh."""

import click

from polytopic.cli.show import echo_json
from polytopic.cli.store.opening import keep_option, open_store


@click.command()
@click.argument("store")
@keep_option
def command(store, keep):
    """Publish the model of STORE afresh, if something was learned or forgotten since.

    It is fitted from nothing, with what was chosen when it was first published. A model that was
    rolled back to, or published as of an earlier moment, goes on answering; if it has seen what
    was forgotten since, it is fitted afresh without that.
    """
    with open_store(store) as opened:
        number = opened.refresh(keep=keep)
        if number is None:
            click.echo("Nothing to refresh.", err=True)
        else:
            echo_json(next(m.to_dict() for m in opened.history() if m.id == number))
