"""Showing results: JSON lines for programs, tables for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def on_terminal() -> bool:
    """Tell whether a person reads the results."""
    return sys.stdout.isatty()


def echo_json(*values: Any) -> None:
    """Write results, each as a line of JSON."""
    click.echo("\n".join(map(_ENCODER.encode, values)))


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable]) -> None:
    """Write a table; columns whose name starts with ``>`` are set to the right.

    A cell may be a rich text that has been made printable, with its own colours.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None)
    for name in columns:
        right = name.startswith(">")
        drawn.add_column(name.removeprefix(">"), justify="right" if right else "left")
    for row in rows:
        drawn.add_row(*(cell if isinstance(cell, Text) else escaped(cell) for cell in row))
    console = Console(highlight=False)
    if title:
        console.print(escaped(title), style="bold")
    console.print(drawn)


def escaped(cell: Any) -> str:
    """Return a cell's text with rich's markup and control characters made harmless."""
    from rich.markup import escape

    text = f"{cell:.3f}" if isinstance(cell, float) else str(cell)
    return escape(printable(text))


def printable(text: str) -> str:
    """Return a text with a space for each character that could control the terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def words_option(default: int):
    """Return the option that tells how many words to show."""
    return click.option(
        "--words",
        type=click.IntRange(min=1),
        default=default,
        show_default=True,
        help="Words to show for each label.",
    )


def shortened(text: str, width: int = 60) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def beginning(document: Any, width: int = 60) -> str:
    """Return the beginning of what a document says, on one line."""
    if document.counts is not None:
        return shortened(" ".join(document.counts), width)
    return shortened(document.text or " ".join((document.fields or {}).values()), width)


def write_file(path: str, content: bytes) -> None:
    """Write a file that was asked for, whole or not at all, and say so."""
    from polytopic.errors import PolytopicError
    from polytopic.files import new_file

    with new_file(path, PolytopicError) as file:
        file.write(content)
    click.echo(f"Wrote {path}.", err=True)


def image_of(figure: Any, path: str) -> bytes:
    """Return a figure of matplotlib in the format that a file's ending tells."""
    from io import BytesIO

    image = BytesIO()
    figure.savefig(image, format=Path(path).suffix[1:].lower() or "png")
    return image.getvalue()
