"""Input: models, and documents from files and streams."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import click

from polytopic.cli.output import with_progress
from polytopic.files import is_database

BLOCK = 1024
END = object()


def load_labeler(source: str):
    """Return the labeler of a model file, or the one that a store answers with now."""
    from polytopic.labeler import load

    if not is_database(source):
        return load(source)
    from polytopic.store import Store

    with Store(source, create=False) as store:
        return store.labeler()


def read(
    source: str,
    *,
    split: str | None = None,
    progress: bool = True,
    origins: bool = False,
    **reading: Any,
) -> Iterator:
    """Yield documents, with progress on a terminal; report skipped lines on stderr.

    With ``origins``, each document comes with its origin.
    """
    from polytopic.corpus.formats import COLUMN_OPTIONS, Columns
    from polytopic.corpus.readers import read_documents, read_with_origins

    n_skipped = 0

    def report(error) -> None:
        nonlocal n_skipped
        n_skipped += 1
        click.echo(f"skipped: {error}", err=True)

    if origins:
        columns = Columns.from_options(reading)
        options = {name: value for name, value in reading.items() if name not in COLUMN_OPTIONS}
        documents: Iterator = read_with_origins(
            source, split=split, on_bad_line=report, columns=columns, **options
        )
    else:
        documents = read_documents(source, split=split, on_bad_line=report, **reading)
    yield from with_progress(documents) if progress else documents
    if n_skipped:
        click.echo(f"{n_skipped} lines were skipped.", err=True)


def read_objects(source: str, required: Iterable[str] = ()) -> Iterator[dict[str, Any]]:
    """Yield the JSON object of each line that is not blank; raise if a required key is missing."""
    from polytopic.corpus.text_formats import parse_object
    from polytopic.lines import read_lines

    for place, line in read_lines(source):
        if not line.strip():
            continue
        try:
            values = parse_object(line)
        except ValueError as error:
            raise ValueError(f"{place}: {str(error).rstrip('.')}.") from error
        missing = [name for name in required if name not in values]
        if missing:
            raise ValueError(f"{place}: {missing[0]!r} is missing.")
        yield values


def blocks(documents: Iterable, size: int = BLOCK) -> Iterator[list]:
    """Yield what has been read so far, so that a slow stream is answered line by line."""
    buffer = _Queue(2 * size)
    _fill(documents, buffer.put)
    while True:
        block = buffer.take(size)
        last = block.pop() if _is_end(block[-1]) else None
        if block:
            yield block
        if isinstance(last, BaseException):
            raise last
        if last is END:
            return


class _Queue:
    """A queue from which a thread takes all items at once."""

    def __init__(self, size: int):
        self._items: list = []
        self._size = size
        self._changed = threading.Condition()

    def put(self, item: Any) -> None:
        """Add an item as soon as the queue is not full."""
        with self._changed:
            while len(self._items) >= self._size:
                self._changed.wait()
            self._items.append(item)
            if len(self._items) == 1:
                self._changed.notify()

    def take(self, size: int) -> list:
        """Take the items in the queue: at least one, at most ``size``."""
        with self._changed:
            while not self._items:
                self._changed.wait()
            items, self._items = self._items[:size], self._items[size:]
            self._changed.notify()
            return items


def batches(documents: Iterable, size: int) -> Iterator[list]:
    """Yield blocks of this size, and a last one with the rest."""
    documents = iter(documents)
    while block := list(islice(documents, size)):
        yield block


def prefetch(items: Iterable) -> Iterator:
    """Yield items that another thread computes, one item ahead."""
    buffer: queue.Queue = queue.Queue(maxsize=1)
    _fill(items, buffer.put)
    while not _is_end(item := buffer.get()):
        yield item
    if isinstance(item, BaseException):
        raise item


def _fill(items: Iterable, put: Callable) -> None:
    """Start a thread that puts items one by one, then END or the error."""

    def fill() -> None:
        try:
            for item in items:
                put(item)
            put(END)
        except BaseException as error:  # raised again by the reader
            put(error)

    threading.Thread(target=fill, daemon=True).start()


def _is_end(item: Any) -> bool:
    return item is END or isinstance(item, BaseException)
