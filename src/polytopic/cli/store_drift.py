"""polytopic store drift."""

from pathlib import Path

import click

from polytopic.cli.show import echo_json, on_terminal, table

SHOWN = 5  # labels of a trend


@click.command("drift")
@click.argument("store")
@click.option(
    "--by",
    type=click.Choice(["day", "week", "month"]),
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

    Each day, week or month is judged by a model of all documents before it: the perplexity of its
    words (higher: more surprising), the share of words that are unknown, and the labels that are
    new, or have more or fewer documents than their earlier share lets expect. Days are those of
    UTC; a document without a time has that at which it was first learned. There is a model for
    each period, so long streams are faster by week or month.
    """
    from polytopic import Store
    from polytopic.store.drift import drift

    with Store(store, create=False) as opened:
        found = drift(opened, by=by, since=since, until=until, labels=labels)
    if plot:
        _draw(found, plot)
    if as_json or not on_terminal():
        for period in found.periods:
            echo_json(period.to_dict())
    elif not found.periods:
        click.echo("No documents.")
    else:
        columns = [by, ">documents", ">perplexity", ">unknown", "growing", "vanishing", "new"]
        table("", columns, map(_row, found.periods))


def _row(period):
    return (
        period.start,
        f"{period.documents:,}",
        "-" if period.perplexity is None else f"{period.perplexity:,.0f}",
        "-" if period.unknown is None else f"{period.unknown:.1%}",
        *(_names(period.trending(trend)) for trend in ("growing", "vanishing", "new")),
    )


def _names(labels):
    more = [f"and {len(labels) - SHOWN} more"] if len(labels) > SHOWN else []
    return ", ".join([label.label for label in labels[:SHOWN]] + more)


def _draw(found, path):
    from io import BytesIO

    from polytopic.errors import PolytopicError
    from polytopic.files import new_file

    image = BytesIO()
    found.plot().savefig(image, format=Path(path).suffix[1:].lower() or "png")
    with new_file(path, PolytopicError) as file:
        file.write(image.getvalue())
    click.echo(f"Wrote {path}.", err=True)
