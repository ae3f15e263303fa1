"""Showing results: JSON lines for programs, tables for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

import click


def on_terminal() -> bool:
    """Tell whether a person reads the results."""
    return sys.stdout.isatty()


def echo_json(value: Any) -> None:
    """Write one result as a line of JSON."""
    click.echo(json.dumps(value, ensure_ascii=False))


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable]) -> None:
    """Write a table; columns whose name starts with ``>`` are set to the right."""
    from rich.console import Console
    from rich.table import Table

    drawn = Table(title=title or None, title_justify="left", title_style="bold", box=None)
    for name in columns:
        right = name.startswith(">")
        drawn.add_column(name.removeprefix(">"), justify="right" if right else "left")
    for row in rows:
        drawn.add_row(*(escaped(cell) for cell in row))
    Console(highlight=False).print(drawn)


def escaped(cell: Any) -> str:
    """Return a cell's text with rich's markup and control characters made harmless."""
    from rich.markup import escape

    text = f"{cell:.3f}" if isinstance(cell, float) else str(cell)
    return escape("".join(c if c.isprintable() else " " for c in text))


def shortened(text: str, width: int = 60) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"
