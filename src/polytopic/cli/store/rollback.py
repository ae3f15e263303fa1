"""polytopic store rollback."""

import click

from polytopic.cli.show import echo_json
from polytopic.cli.store.opening import open_store


@click.command()
@click.argument("store")
@click.argument("number", type=click.IntRange(1, 2**63 - 1), required=False)
def command(store, number):
    """Let an earlier published model of STORE answer: the one before, or that of NUMBER.

    It answers until another is published. One that has seen a document that was forgotten since
    is refused.
    """
    with open_store(store) as opened:
        current = opened.rollback(number)
        echo_json(next(m.to_dict() for m in opened.history() if m.id == current))
