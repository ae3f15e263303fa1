"""Partitions: parts of a corpus, each of which a worker reads on its own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import Any

from polytopic.corpus.document import Document
from polytopic.corpus.formats import COLUMN_OPTIONS, Columns, find_format, find_sources
from polytopic.corpus.parquet import RowGroups, group_sizes
from polytopic.corpus.readers import Origin, read_with_origins
from polytopic.distributed.engine import delayed, map_tasks, require_dask, run
from polytopic.distributed.files import (
    file_size,
    find_urls,
    hide_password,
    is_url,
    open_file,
    path_or_file,
)
from polytopic.errors import CorpusError
from polytopic.lines import GZIP_MAGIC, MAX_LINE_BYTES, Piece, count_lines

BLOCKSIZE = 16 * 2**20
SPLITTABLE = ("jsonl", "text")  # formats whose files can be cut at line ends
MAX_MESSAGES = 20  # about skipped lines, per partition


@dataclass(frozen=True)
class FilePart:
    """A file, or a part of it.

    Attributes
    ----------
    path : str
        Path or URL.
    format : str
        Format of the documents.
    prefix : str
        Precedes line numbers in the ids of documents.
    start, stop : int or None
        Range of bytes in which its lines begin.
    lines_before : int or None
        Number of lines before it; None if they were not counted.
    groups : tuple of int
        Row groups, in Parquet.
    """

    path: str
    format: str
    prefix: str = ""
    start: int = 0
    stop: int | None = None
    lines_before: int | None = 0
    groups: tuple[int, ...] = ()


@dataclass(frozen=True)
class Corpus:
    """Documents in partitions; all functions of this package accept one.

    Attributes
    ----------
    parts : list
        Parts of files, or Dask tasks that return documents.
    reading : dict
        How to read documents, as for :func:`polytopic.corpus.read_documents`.
    """

    parts: list[Any]
    reading: dict[str, Any] = field(default_factory=dict)

    def with_reading(self, **changes: Any) -> Corpus:
        """Return the corpus with other ways of reading, such as another ``split``."""
        return replace(self, reading=self.reading | changes)


def read(source: Any, *, blocksize: int = BLOCKSIZE, **reading: Any) -> Corpus:
    """Find the partitions of a corpus; of files, only sizes are read.

    Parameters
    ----------
    source : path, URL, dask bag or dask dataframe, or a list of paths and URLs
        A folder or a pattern stands for its files, on any file system that fsspec knows
        (``"s3://bucket/news-*.jsonl"``); workers must be able to read them. Items of a bag are
        documents, mappings or lines of JSON. A :class:`Corpus` is returned as it is.
    blocksize : int, default=16 MiB
        Plain JSON lines and text are cut at line ends into parts of this many bytes, and Parquet
        into row groups. A gzipped file, or a file of any other format, is one partition.
    **reading
        As for :func:`polytopic.corpus.read_documents`.
    """
    require_dask()
    if isinstance(source, Corpus):
        return source.with_reading(**reading) if reading else source
    if blocksize < 1:
        raise ValueError(f"blocksize == {blocksize}, must be > 0.")
    format = reading.pop("format", None)
    if hasattr(source, "to_delayed"):
        return Corpus(list(source.to_delayed()), reading)
    sources = source if isinstance(source, list | tuple) else [source]
    files = [pair for path in sources for pair in _find_files(os.fspath(path), format)]
    parts = [
        part
        for path, file_format in files
        for prefix in [f"{os.path.basename(path)}:" if len(files) > 1 else ""]
        for part in _cut(FilePart(path, file_format, prefix), blocksize)
    ]
    return Corpus(parts, reading)


def _find_files(source: str, format: str | None) -> list[tuple[str, str]]:
    """Return the files of a source and their formats."""
    if source == "-":
        raise CorpusError("standard input cannot be read by several workers; give files.")
    if is_url(source):
        return [(url, find_format(format, url)) for url in find_urls(source)]
    format, paths = find_sources(source, format)
    return [(os.path.abspath(str(path)), format) for path in paths]


def _cut(part: FilePart, blocksize: int) -> list[FilePart]:
    """Return the parts of a file that can be read on their own."""
    if part.format == "parquet":
        return _cut_groups(part, blocksize)
    size = file_size(part.path)
    if part.format not in SPLITTABLE or size <= blocksize:
        return [part]
    with ExitStack() as stack:
        if open_file(part.path, stack).read(2) == GZIP_MAGIC:
            return [part]
    n_blocks = -(-size // blocksize)
    borders = [size * block // n_blocks for block in range(n_blocks + 1)]
    return [
        replace(part, start=start, stop=stop, lines_before=None if start else 0)
        for start, stop in pairwise(borders)
    ]


def _cut_groups(part: FilePart, blocksize: int) -> list[FilePart]:
    with ExitStack() as stack:
        sizes = group_sizes(path_or_file(part.path, stack))
    if len(sizes) < 2:
        return [part]
    step = max(1, len(sizes) * blocksize // max(1, file_size(part.path)))
    return [
        replace(
            part,
            groups=tuple(range(start, min(start + step, len(sizes)))),
            lines_before=sum(sizes[:start]),
        )
        for start in range(0, len(sizes), step)
    ]


def number_lines(corpus: Corpus, client: Any) -> Corpus:
    """Count the lines before each part, which the ids of its documents contain."""
    files = [part for part in corpus.parts if isinstance(part, FilePart)]
    cut = {part.path for part in files if part.lines_before is None}
    if not cut:
        return corpus
    cut_parts = [part for part in files if part.path in cut]
    leaves = map_tasks(_count_lines, cut_parts)
    counts = run(client, leaves, delayed(list)(leaves))
    before, numbered = dict.fromkeys(cut, 0), {}
    for part, count in zip(cut_parts, counts, strict=True):
        numbered[part] = replace(part, lines_before=before[part.path])
        before[part.path] += count
    parts = [numbered.get(p, p) if isinstance(p, FilePart) else p for p in corpus.parts]
    return replace(corpus, parts=parts)


def _count_lines(part: FilePart) -> int:
    """Return how many lines begin in a part of a file, except the first line of the file."""
    with ExitStack() as stack:
        # a line begins in [start, stop) if the line before ends in [start - 1, stop - 1)
        start, stop = max(part.start - 1, 0), (part.stop or 0) - 1
        return count_lines(open_file(part.path, stack), start, stop) + (part.start == 0)


# On a worker


@dataclass
class SkippedLines:
    """Lines that could not be read: their number, and messages about the first of them."""

    n_lines: int = 0
    messages: list[str] = field(default_factory=list)

    def __add__(self, other: SkippedLines) -> SkippedLines:
        return SkippedLines(self.n_lines + other.n_lines, [*self.messages, *other.messages])


class PartReader:
    """Reads the documents of a part one at a time, and notes the lines that it skips.

    Iterating gives pairs of a document and its origin, as for
    :func:`polytopic.corpus.readers.read_with_origins`.
    """

    def __init__(self, part: Any, reading: Mapping[str, Any]):
        self.part, self.reading = part, reading
        self._columns = Columns.from_options(reading)
        self._messages: list[str] = []

    @property
    def skipped(self) -> SkippedLines:
        """The lines skipped so far."""
        return SkippedLines(len(self._messages), self._messages[:MAX_MESSAGES])

    def __iter__(self) -> Iterator[tuple[Document, Origin]]:
        if isinstance(self.part, FilePart):
            return self._read_file()
        if hasattr(self.part, "columns"):
            return self._read_items(_frame_rows(self.part, self._columns))
        return self._read_items(map(_parse_item, self.part))

    def documents(self) -> Iterator[Document]:
        """Yield the documents."""
        return (document for document, _ in self)

    def blocks(self, size: int, keep=lambda document: True) -> Iterator[list]:
        """Yield lists of at most ``size`` documents with their origins."""
        pairs = (pair for pair in self if keep(pair[0]))
        while block := list(islice(pairs, size)):
            yield block

    def _read_file(self) -> Iterator[tuple[Document, Origin]]:
        part = self.part
        with ExitStack() as stack:
            source: Any = path_or_file(part.path, stack)
            if part.groups:
                source = RowGroups(source, list(part.groups), part.lines_before or 0)
            elif part.stop is not None:
                name = hide_password(part.path)
                if part.lines_before is None:
                    name += f" after byte {part.start}"
                source = Piece(
                    open_file(part.path, stack),
                    name,
                    part.start,
                    part.stop,
                    lines_before=part.lines_before or 0,
                    max_bytes=self.reading.get("max_line_bytes", MAX_LINE_BYTES),
                )
            yield from read_with_origins(
                source,
                format=part.format,
                id_prefix=part.prefix,
                on_bad_line=lambda error: self._messages.append(str(error)),
                columns=self._columns,
                **{k: v for k, v in self.reading.items() if k not in COLUMN_OPTIONS},
            )

    def _read_items(self, items: Iterator[Any]) -> Iterator[tuple[Document, Origin]]:
        """Yield the documents of a bag, or of the rows of a table."""
        split = self.reading.get("split")
        for number, item in enumerate(items, start=1):
            try:
                if isinstance(item, Mapping):
                    item = Document.from_dict(self._columns.record(dict(item)), id=str(number))
                elif not isinstance(item, Document):
                    raise ValueError(f"it is a {type(item).__name__}, must be a document")
            except ValueError as error:
                message = f"item {number} of a partition: {str(error).rstrip('.')}."
                if self.reading.get("on_error", "stop") == "stop":
                    raise CorpusError(message) from None
                self._messages.append(message)
                continue
            if split is None or (item.split or "train") == split:
                yield item, {}


def _parse_item(item: Any) -> Any:
    """Return an item of a bag; a line of JSON as a mapping."""
    return json.loads(item) if isinstance(item, str | bytes) else item


def _frame_rows(frame: Any, columns: Columns) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table as mappings."""
    missing = [name for name in columns.required if name not in frame.columns]
    if missing:
        names = ", ".join(map(str, frame.columns))
        raise CorpusError(f"column {missing[0]!r} is missing, the dataframe has {names}.")
    used = [*columns.texts, columns.labels, columns.id, columns.time, "split"]
    frame = frame[[name for name in dict.fromkeys(used) if name in frame.columns]].astype(object)
    for row in frame.where(frame.notna(), None).to_dict("records"):
        labels = row.get(columns.labels)
        if isinstance(labels, str):
            row[columns.labels] = columns.split_labels(labels)
        elif hasattr(labels, "tolist"):
            row[columns.labels] = labels.tolist()
        yield row
