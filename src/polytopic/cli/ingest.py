"""The command ``polytopic ingest``."""

from __future__ import annotations

import signal
import threading

import click

from polytopic.cli.options import FiniteFloat, count_option
from polytopic.cli.output import echo_json


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE…")
@click.option("--store", "url", required=True, metavar="STORE", help="Store that learns them.")
@click.option(
    "--labels-from",
    type=click.Choice(["category", "section"]),
    help="Give new articles the labels that --map lists for their categories, or for the sections "
    "in their addresses (sport/football of /sport/football/4711).",
)
@click.option(
    "--map",
    "map_file",
    metavar="FILE",
    help="Labels of categories or sections: CSV or TSV (a category, then its labels), or a JSON "
    "object.",
)
@count_option("--max-articles", 1000, "Articles that a feed or a sitemap may list.")
@click.option(
    "--delay",
    type=FiniteFloat(0),
    default=1.0,
    show_default=True,
    help="Seconds between two requests to a host; robots.txt may ask for more.",
)
@click.option(
    "--timeout",
    type=FiniteFloat(0, min_open=True),
    default=30.0,
    show_default=True,
    help="Seconds that a response may take.",
)
@click.option(
    "--megabytes",
    type=FiniteFloat(0, min_open=True),
    default=5.0,
    show_default=True,
    help="Size that a response may have.",
)
@click.option("--allow-private", is_flag=True, help="Visit private and loopback addresses as well.")
def command(
    sources, url, labels_from, map_file, max_articles, delay, timeout, megabytes, allow_private
):
    """Learn the articles of feeds, sitemaps, pages, folders of HTML, WARC and JSON lines.

    Each SOURCE is an http or https address, a folder, or a file (.html, .warc, .warc.gz, .jsonl).
    Articles that STORE has already are left alone, changed ones are corrected, and near-duplicates
    are marked. Prints a receipt. A source that fails is reported and does not stop the others; the
    command then fails at the end. SIGTERM stores what was read, and stops.
    """
    if (labels_from is None) != (map_file is None):
        raise click.UsageError("--labels-from and --map belong together.")
    from polytopic.desk import FetchLimits, LabelMapping, ingest
    from polytopic.store import Store

    mapping = labels_from and LabelMapping.from_file(labels_from, map_file)
    limits = FetchLimits(
        delay=delay,
        seconds=timeout,
        max_bytes=int(megabytes * (1 << 20)),
        allow_private=allow_private,
    )
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    with Store(url, create=False) as store:
        receipt = ingest(
            sources,
            store,
            limits=limits,
            mapping=mapping,
            max_articles=max_articles,
            stopped=stopped,
        )
    echo_json(receipt.to_dict())
    for report in receipt.sources:
        if report.failed is not None:
            click.echo(f"{report.source}: {report.failed}", err=True)
    if receipt.failed:
        raise click.ClickException(
            f"{len(receipt.failed)} of {len(receipt.sources)} sources could not be read."
        )
