"""polytopic store drift."""

import click

from polytopic.cli.show import echo_json, image_of, on_terminal, table, write_file
from polytopic.cli.store.opening import open_store

SHOWN = 5  # labels of a trend


@click.command("drift")
@click.argument("store")
@click.option(
    "--by",
    type=click.Choice(["day", "week", "month", "year"]),
    default="day",
    show_default=True,
    help="How long a period is.",
)
@click.option("--since", metavar="TIME", help="The time from which periods are shown.")
@click.option("--until", metavar="TIME", help="The time before which they are.")
@click.option("--label", "labels", multiple=True, help="A label to show, with those below it.")
@click.option("--plot", metavar="FILE", help="Draw it: .png, .svg or .pdf; needs matplotlib.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON on a terminal too.")
def command(store, by, since, until, labels, plot, as_json):
    """Show how the documents of STORE depart over time from those before them.

    Each period is judged by a model of all documents before it: the perplexity of its words
    (higher: more surprising), the share of words that are unknown, the samples F1 of the labels
    that the model gives, and the labels that are new, or have more or fewer documents than their
    earlier share lets expect. Days are those of
    UTC; a document without a time has that at which it was first learned. There is a model for
    each period, so long streams are faster by week or month.
    """
    with open_store(store) as opened:
        found = opened.drift(by=by, since=since, until=until, labels=labels)
    if plot:
        write_file(plot, image_of(found.plot(), plot))  # first: the reader of the rest may leave
    if as_json or not on_terminal():
        for period in found.periods:
            echo_json(period.to_dict())
    elif not found.periods:
        click.echo("No documents.")
    else:
        columns = [by, ">documents", ">perplexity", ">unknown", ">F", "growing", "vanishing", "new"]
        table("", columns, map(_row, found.periods))


def _row(period):
    return (
        period.start,
        f"{period.documents:,}",
        "-" if period.perplexity is None else f"{period.perplexity:,.0f}",
        "-" if period.unknown is None else f"{period.unknown:.1%}",
        "-" if period.f is None else f"{period.f:.2f}",
        *(_names(period.trending(trend)) for trend in ("growing", "vanishing", "new")),
    )


def _names(labels):
    more = [f"and {len(labels) - SHOWN} more"] if len(labels) > SHOWN else []
    return ", ".join([label.label for label in labels[:SHOWN]] + more)
