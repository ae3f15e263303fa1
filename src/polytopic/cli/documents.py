"""Reading documents for a command: options, progress, and bad lines."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import click

BLOCK = 1024
FORMATS = [  # as in polytopic.corpus.formats, which takes time to import
    *("jsonl", "csv", "tsv", "svmlight", "text", "arff", "parquet", "reuters", "ohsumed"),
    *("medline", "pubmed", "annif"),
]
END = object()


language_option = click.option(
    "--language",
    callback=lambda context, option, value: None if value == "none" else value,
    default="en",
    show_default=True,
    help="Language of the texts (en, cs, de, …); none takes words as they are.",
)


def document_options(command: Callable) -> Callable:
    """Add the options that tell how documents are read; they come as ``reading``."""

    def column(name, default, what):
        return click.option(f"--{name}", default=default, show_default=True, help=what)

    options = [
        click.option(
            "--format",
            type=click.Choice(FORMATS),
            metavar="FORMAT",
            help=f"How documents are written: {', '.join(FORMATS)}; by default the file's "
            "ending tells. A folder or a pattern stands for its files.",
        ),
        column("text-column", "text", "Column or key of the text; several with commas: fields."),
        column(
            "labels-column",
            "labels",
            "Column or key of the labels; in ARFF the attributes or their XML.",
        ),
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
    source: str,
    *,
    split: str | None = None,
    progress: bool = True,
    origins: bool = False,
    **reading: Any,
) -> Iterator:
    """Yield documents, with progress on a terminal; report lines passed over on stderr.

    With ``origins``, each comes with what it was read from.
    """
    from polytopic.corpus.readers import read_documents, read_with_origins

    bad: list[str] = []

    def report(error) -> None:
        bad.append(str(error))
        click.echo(f"skipped: {error}", err=True)

    reader = read_with_origins if origins else read_documents
    documents = reader(source, split=split, on_bad_line=report, **reading)
    yield from with_progress(documents) if progress else documents
    if bad:
        click.echo(f"{len(bad)} lines were skipped.", err=True)


def read_objects(source: str, needed: Iterable[str] = ()) -> Iterator[dict[str, Any]]:
    """Yield the JSON object of each line that is not blank, with the keys that it needs."""
    from polytopic.corpus.text_formats import parse_object
    from polytopic.lines import read_lines

    for place, line in read_lines(source):
        if not line.strip():
            continue
        try:
            values = parse_object(line)
        except ValueError as error:
            raise ValueError(f"{place}: {str(error).rstrip('.')}.") from error
        missing = [name for name in needed if name not in values]
        if missing:
            raise ValueError(f"{place}: {missing[0]!r} is missing.")
        yield values


def with_progress(documents: Iterable) -> Iterator:
    """Pass documents on and show on a terminal how many have been read."""
    with shown_progress() as show:
        for document in documents:
            show(1)
            yield document


@contextmanager
def shown_progress() -> Iterator[Callable]:
    """Give what is called with how many documents have come and, if there is, what else to tell.

    A terminal shows how many they are and how fast they come.
    """
    if not sys.stderr.isatty():
        yield lambda more, text="": None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Speed(TextColumn):
        def render(self, task):
            text = f"{task.completed:,.0f} documents"
            text += f", {task.description}" if task.description else ""
            return Text(text + (f", {task.speed:,.0f} a second" if task.speed else ""))

    columns = SpinnerColumn(), Speed(""), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)

        def show(more: int, text: str = "") -> None:
            progress.advance(task, more)
            if text:
                progress.update(task, description=text)

        yield show


def blocks(documents: Iterable, size: int = BLOCK) -> Iterator[list]:
    """Yield what has been read so far, so that a slow stream is answered line by line."""
    waiting = _Waiting(2 * size)
    _fill(documents, waiting.put)
    while True:
        block = waiting.take(size)
        last = block.pop() if _is_end(block[-1]) else None
        if block:
            yield block
        if isinstance(last, BaseException):
            raise last
        if last is END:
            return


class _Waiting:
    """Items that one thread puts here, and another takes all at once."""

    def __init__(self, most: int):
        self._items: list = []
        self._most = most
        self._changed = threading.Condition()

    def put(self, item: Any) -> None:
        """Add an item, as soon as there is room."""
        with self._changed:
            while len(self._items) >= self._most:
                self._changed.wait()
            self._items.append(item)
            if len(self._items) == 1:
                self._changed.notify()

    def take(self, size: int) -> list:
        """Take the items there are, so many at most and one at least."""
        with self._changed:
            while not self._items:
                self._changed.wait()
            taken, self._items = self._items[:size], self._items[size:]
            self._changed.notify()
            return taken


def whole_blocks(documents: Iterable, size: int) -> Iterator[list]:
    """Yield blocks of this size, and the rest."""
    documents = iter(documents)
    while block := list(islice(documents, size)):
        yield block


def ahead(items: Iterable) -> Iterator:
    """Yield items that another thread makes, one ahead."""
    waiting: queue.Queue = queue.Queue(maxsize=1)
    _fill(items, waiting.put)
    while not _is_end(item := waiting.get()):
        yield item
    if isinstance(item, BaseException):
        raise item


def _fill(items: Iterable, put: Callable) -> None:
    """Let a thread put items one by one, and then END or what went wrong."""

    def fill() -> None:
        try:
            for item in items:
                put(item)
            put(END)
        except BaseException as error:  # passed on to the reader
            put(error)

    threading.Thread(target=fill, daemon=True).start()


def _is_end(item: Any) -> bool:
    return item is END or isinstance(item, BaseException)
