"""What the commands on stores share: opening one, showing receipts, and moments."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from polytopic.cli.show import echo_json, on_terminal, table


def open_store(url: str):
    """Open a store that is there."""
    from polytopic.store import Store

    return Store(url, create=False)


def show_receipt(receipt) -> None:
    """Write a receipt: JSON, or on a terminal what changed."""
    if not on_terminal():
        echo_json(receipt.to_dict())
        return
    facts = receipt.to_dict()
    shown = [(name.replace("_", " "), _plain(value)) for name, value in facts.items() if value]
    table("", ["", ""], shown)


def show_receipts(receipts: Iterable) -> None:
    """Write the receipt of each batch; if that fails, learn the rest before failing."""
    failure = None
    for receipt in receipts:
        try:
            show_receipt(receipt)
        except OSError as error:
            failure = error
    if failure is not None:
        raise failure


def _plain(value) -> str:
    if isinstance(value, list):
        more = f" and {len(value) - 10:,} more" if len(value) > 10 else ""
        return ", ".join(map(str, value[:10])) + more
    return f"{value:,}" if isinstance(value, int) else str(value)


def read_moment(text: str | None) -> int | str | None:
    """Return a revision by its number, or a time as it is."""
    return int(text) if text is not None and text.isdecimal() else text


def selection_options(command: Callable) -> Callable:
    """Add the options that tell which documents are meant."""
    options = [
        click.option(
            "--as-of",
            metavar="MOMENT",
            help="As it was at a revision or a time, less what was forgotten since.",
        ),
        click.option("--since", metavar="TIME", help="Only documents of this time or later."),
        click.option("--until", metavar="TIME", help="Only documents of an earlier time."),
        click.option(
            "--label",
            "labels",
            multiple=True,
            help="Only documents with this label or one below it; may be repeated.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


keep_option = click.option(
    "--keep",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Published models to keep; the oldest go first.",
)


def read_selection(as_of, since, until, labels) -> dict:
    """Return these options as the library takes them."""
    return {
        "as_of": read_moment(as_of),
        "since": since,
        "until": until,
        "labels": list(labels) or None,
    }
