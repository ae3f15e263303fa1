"""Reading documents for a command: options, progress, and bad lines."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import click

BLOCK = 1024


def document_options(command: Callable) -> Callable:
    """Add the options that tell how documents are read; they come as ``reading``."""

    def column(name, default, what):
        return click.option(f"--{name}", default=default, show_default=True, help=what)

    options = [
        click.option(
            "--format",
            type=click.Choice(["jsonl", "csv", "tsv", "svmlight", "text"]),
            help="How documents are written; by default the file's ending tells.",
        ),
        column("text-column", "text", "Column or key of the text; several with commas: fields."),
        column("labels-column", "labels", "Column or key of the labels."),
        column("id-column", "id", "Column or key of the document's id."),
        column("time-column", "time", "Column or key of the document's time."),
        column("label-separator", ",", "What stands between labels in a column."),
        click.option(
            "--on-error",
            type=click.Choice(["stop", "skip"]),
            default="stop",
            show_default=True,
            help="What to do at a line that cannot be read.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def read(
    source: str, *, split: str | None = None, progress: bool = True, **reading: Any
) -> Iterator:
    """Yield documents, with progress on a terminal; report lines passed over on stderr."""
    from polytopic.corpus import read_documents

    bad: list[str] = []

    def report(error) -> None:
        bad.append(str(error))
        click.echo(f"skipped: {error}", err=True)

    documents = read_documents(source, split=split, on_bad_line=report, **reading)
    yield from with_progress(documents) if progress and sys.stderr.isatty() else documents
    if bad:
        click.echo(f"{len(bad)} lines were skipped.", err=True)


def with_progress(documents: Iterable) -> Iterator:
    """Pass documents on and show on the terminal how many have been read."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.completed:,.0f} documents"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        for document in documents:
            progress.advance(task)
            yield document


def blocks(documents: Iterable, size: int = BLOCK) -> Iterator[list]:
    """Yield what has been read so far, so that a slow stream is answered line by line."""
    waiting: queue.Queue = queue.Queue(maxsize=2 * size)
    end = object()

    def fill() -> None:
        try:
            for document in documents:
                waiting.put(document)
            waiting.put(end)
        except BaseException as error:  # passed on to the reader, below
            waiting.put(error)

    threading.Thread(target=fill, daemon=True).start()
    while True:
        block = [waiting.get()]
        while len(block) < size and not waiting.empty():
            block.append(waiting.get())
        last = block[-1] if block[-1] is end or isinstance(block[-1], BaseException) else None
        if last is not None:
            block.pop()
        if block:
            yield block
        if isinstance(last, BaseException):
            raise last
        if last is end:
            return
