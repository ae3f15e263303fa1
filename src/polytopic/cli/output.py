"""Output: results as JSON lines or tables, progress, files, and the standard streams."""

from __future__ import annotations

import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import click

OUTPUT = "standard output"  # its name in an OSError

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def on_terminal() -> bool:
    """Return whether a person reads the results."""
    return sys.stdout.isatty()


def round_finite(number: float, digits: int = 6) -> float | None:
    """Return a rounded number, None if it is infinite or NaN: JSON has neither."""
    return round(number, digits) if math.isfinite(number) else None


def echo_json(*values: Any) -> None:
    """Write each result as a line of JSON."""
    click.echo("\n".join(map(_ENCODER.encode, values)))


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable]) -> None:
    """Write a table; columns whose name starts with ``>`` are right-aligned.

    A cell may be a rich text with its own colours, made of printable characters.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None)
    for name in columns:
        right = name.startswith(">")
        grid.add_column(name.removeprefix(">"), justify="right" if right else "left")
    for row in rows:
        grid.add_row(*(cell if isinstance(cell, Text) else escape_cell(cell) for cell in row))
    console = Console(highlight=False)
    if title:
        console.print(escape_cell(title), style="bold")
    console.print(grid)


def escape_cell(cell: Any) -> str:
    """Return the text of a cell without rich markup and control characters."""
    from rich.markup import escape

    text = f"{cell:.3f}" if isinstance(cell, float) else str(cell)
    return escape(printable(text))


def printable(text: str) -> str:
    """Return a text with spaces instead of characters that could control the terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def shorten(text: str, width: int = 60) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def excerpt(document: Any, width: int = 60) -> str:
    """Return the beginning of a document's content on one line."""
    if document.counts is not None:
        return shorten(" ".join(document.counts), width)
    return shorten(document.text or " ".join((document.fields or {}).values()), width)


def write_file(path: str, content: bytes) -> None:
    """Write a file, completely or not at all, and report it."""
    from polytopic.errors import PolytopicError
    from polytopic.files import new_file

    with new_file(path, PolytopicError) as file:
        file.write(content)
    click.echo(f"Wrote {path}.", err=True)


def image_of(figure: Any, path: str) -> bytes:
    """Return a matplotlib figure in the format that the file extension names."""
    from io import BytesIO

    image = BytesIO()
    figure.savefig(image, format=Path(path).suffix[1:].lower() or "png")
    return image.getvalue()


# Progress


def with_progress(documents: Iterable) -> Iterator:
    """Yield the documents, and show on a terminal how many have been read."""
    with show_progress() as show:
        for document in documents:
            show(1)
            yield document


@contextmanager
def show_progress() -> Iterator[Callable]:
    """Yield a function to call with a number of new documents and, optionally, a text to show.

    On a terminal, it shows the number of documents and their speed.
    """
    if not sys.stderr.isatty():
        yield lambda n_docs, text="": None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Speed(TextColumn):
        def render(self, task):
            text = f"{task.completed:,.0f} documents"
            text += f", {task.description}" if task.description else ""
            return Text(text + (f", {task.speed:,.0f} per second" if task.speed else ""))

    columns = SpinnerColumn(), Speed(""), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)

        def show(n_docs: int, text: str = "") -> None:
            progress.advance(task, n_docs)
            if text:
                progress.update(task, description=text)

        yield show


@contextmanager
def show_partitions(task: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function to call with the number of finished partitions, and of all."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task_id = progress.add_task(task, total=None)

        def show(done: int, total: int) -> None:
            progress.update(task_id, completed=done, total=total)

        yield show


# Standard streams: losing results is a failure, losing messages is not


class _Results(io.FileIO):
    """Standard output. The first failed write raises an error; later writes are dropped.

    So a failure is reported once, and not again when Python flushes its streams at exit.
    """

    _has_failed = False

    def write(self, data, /):
        """Write bytes; return their number."""
        if self._has_failed:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            self._has_failed = True
            raise OSError(error.errno, error.strerror, OUTPUT) from None


class _Messages(io.FileIO):
    """Standard error. What cannot be written is dropped: messages never affect results."""

    def write(self, data, /):
        """Write bytes; return their number."""
        try:
            return super().write(data)
        except OSError:
            return len(data)


def prepare_streams() -> None:
    """Replace standard output and standard error with streams that fail as described above.

    A closed stream gets a placeholder; otherwise the next file to be opened, such as a database,
    would take its descriptor and receive what is written to the stream.
    """
    # in the order of their descriptors: the lowest free one is taken
    if sys.stdin is None:
        os.open(os.devnull, os.O_WRONLY)  # reading fails, as from a closed stream
    if sys.stdout is None:
        sys.stdout = _text(_Results(os.open(os.devnull, os.O_RDONLY), "w"))  # writing fails
    elif (descriptor := _descriptor(sys.stdout)) is not None:
        results = _Results(descriptor, "w", closefd=False)
        sys.stdout = _text(results, sys.stdout.encoding, sys.stdout.errors)
    if sys.stderr is None:
        sys.stderr = _text(_Messages(os.devnull, "w"))
    elif (descriptor := _descriptor(sys.stderr)) is not None:
        messages = _Messages(descriptor, "w", closefd=False)
        sys.stderr = _text(messages, sys.stderr.encoding, sys.stderr.errors)


def _descriptor(stream: TextIO) -> int | None:
    """Return the file descriptor of a stream; None if it has none, such as when captured."""
    try:
        return stream.fileno()
    except OSError:
        return None


def _text(
    raw: io.FileIO, encoding: str | None = "utf-8", errors: str | None = "backslashreplace"
) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors=errors, line_buffering=True
    )
