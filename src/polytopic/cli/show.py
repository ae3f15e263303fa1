"""Showing results: JSON lines for programs, tables for people."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from typing import Any

import click


def on_terminal() -> bool:
    """Tell whether a person reads the results."""
    return sys.stdout.isatty()


def echo_json(value: Any) -> None:
    """Write one result as a line of JSON."""
    click.echo(json.dumps(value, ensure_ascii=False, allow_nan=False))


def finite(number: float, digits: int = 6) -> float | None:
    """Return a rounded number for JSON, which has no infinity."""
    return round(number, digits) if math.isfinite(number) else None


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable]) -> None:
    """Write a table; columns whose name starts with ``>`` are set to the right."""
    from rich.console import Console
    from rich.table import Table

    drawn = Table(box=None)
    for name in columns:
        right = name.startswith(">")
        drawn.add_column(name.removeprefix(">"), justify="right" if right else "left")
    for row in rows:
        drawn.add_row(*(escaped(cell) for cell in row))
    console = Console(highlight=False)
    if title:
        console.print(escaped(title), style="bold")
    console.print(drawn)


def escaped(cell: Any) -> str:
    """Return a cell's text with rich's markup and control characters made harmless."""
    from rich.markup import escape

    text = f"{cell:.3f}" if isinstance(cell, float) else str(cell)
    return escape("".join(c if c.isprintable() else " " for c in text))


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
