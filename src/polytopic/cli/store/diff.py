"""polytopic store diff."""

import click

from polytopic.cli.show import echo_json, on_terminal, table, words_option
from polytopic.cli.store.opening import open_store


@click.command("diff")
@click.argument("store")
@click.argument("before")
@click.argument("after", required=False)
@words_option(10)
@click.option("--label", "labels", multiple=True, help="A label to show, with those below it.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON on a terminal too.")
def command(store, before, after, words, labels, as_json):
    """Show which labels of STORE changed between two moments, and in which words.

    BEFORE and AFTER are revisions or times (2024-05-31); AFTER is now by default. The labels that
    changed most come first, by the Jensen-Shannon divergence of their words (0: the same words in
    the same shares, 1: no word in common) times their documents. Documents that were forgotten
    since are in neither moment.
    """
    with open_store(store) as opened:
        found = opened.diff(before, after, n_terms=words, labels=labels)
    if as_json or not on_terminal():
        for difference in found:
            echo_json(difference.to_dict())
    elif not found:
        click.echo("No label changed.")
    else:
        columns = ["label", ">documents", ">words", ">divergence", "growing", "falling"]
        table("", columns, map(_row, found))


def _row(difference):
    return (
        difference.label,
        _step(difference.documents_before, difference.documents_after),
        _step(difference.words_before, difference.words_after),
        difference.divergence,
        ", ".join(change.term for change in difference.growing),
        ", ".join(change.term for change in difference.falling),
    )


def _step(before, after):
    return f"{before:,} → {after:,}" if before != after else f"{before:,}"
