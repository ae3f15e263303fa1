"""Partitions: parts of a corpus, each of which a worker reads by itself."""

from __future__ import annotations

import glob
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from polytopic.corpus.document import Document
from polytopic.corpus.formats import Columns, find_format, find_sources
from polytopic.corpus.parquet import RowGroups, group_sizes
from polytopic.corpus.readers import Origin, read_with_origins
from polytopic.distributed.engine import require_dask, run, tasks
from polytopic.distributed.outputs import without_password
from polytopic.errors import CorpusError
from polytopic.lines import GZIP_MAGIC, MAX_LINE_BYTES, Piece, count_lines, file_error

BLOCKSIZE = 16 * 2**20
BY_LINES = ("jsonl", "text")  # formats whose files are cut at the ends of lines
COLUMNS = ("text_column", "labels_column", "id_column", "time_column", "label_separator")


@dataclass(frozen=True)
class FilePart:
    """A file, or a part of it.

    Attributes
    ----------
    path : str
        Path or URL.
    format : str
        How documents are written.
    prefix : str
        What stands before the number of a line where that is the id.
    start, stop : int or None
        The bytes that its lines begin in.
    lines_before : int or None
        Lines before it, None if these were not counted.
    groups : tuple of int
        Groups of rows, in Parquet.
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
    """Documents in partitions; what the functions of this package take.

    Attributes
    ----------
    parts : list
        Parts of files, or tasks of Dask that give documents.
    reading : dict
        How documents are read, as for :func:`polytopic.corpus.read_documents`.
    """

    parts: list[Any]
    reading: dict[str, Any] = field(default_factory=dict)

    def reading_only(self, **changes: Any) -> Corpus:
        """Return the corpus read in another way, such as another ``split``."""
        return replace(self, reading=self.reading | changes)


def read(source: Any, *, blocksize: int = BLOCKSIZE, **reading: Any) -> Corpus:
    """Find the partitions of a corpus; nothing but the sizes of files is read here.

    Parameters
    ----------
    source : path, URL, dask bag or dask dataframe, or a list of paths and URLs
        A folder or a pattern stands for its files, on any file system that fsspec knows
        (``"s3://bucket/news-*.jsonl"``); workers must be able to read them. Items of a bag are
        documents, mappings or lines of JSON. A :class:`Corpus` is returned as it is.
    blocksize : int, default=16 MiB
        Plain JSON lines and text are cut into parts of so many bytes, at the ends of lines, and
        Parquet into groups of rows. Each file of any other format, and each gzipped file, is one
        partition.
    **reading
        As for :func:`polytopic.corpus.read_documents`.
    """
    require_dask()
    if isinstance(source, Corpus):
        return source.reading_only(**reading) if reading else source
    if blocksize < 1:
        raise ValueError(f"blocksize == {blocksize}, must be > 0.")
    if hasattr(source, "to_delayed"):
        reading.pop("format", None)
        return Corpus(list(source.to_delayed()), reading)
    format = reading.pop("format", None)
    sources = source if isinstance(source, list | tuple) else [source]
    files = [pair for each in sources for pair in _files(os.fspath(each), format)]
    prefixes = [f"{os.path.basename(path)}:" if len(files) > 1 else "" for path, _ in files]
    parts = [
        part
        for (path, own), prefix in zip(files, prefixes, strict=True)
        for part in _cut(FilePart(path, own, prefix), blocksize)
    ]
    return Corpus(parts, reading)


def _files(source: str, format: str | None) -> list[tuple[str, str]]:
    """Return the files of a source and their format."""
    if source == "-":
        raise CorpusError("standard input cannot be read by several workers; give files.")
    if not _is_url(source):
        format, found = find_sources(source, format)
        return [(os.path.abspath(str(path)), format) for path in found]
    import fsspec

    with reaching(source):
        system, path = fsspec.core.url_to_fs(source)
        if glob.has_magic(path):
            paths = sorted(name for name in system.glob(path) if system.isfile(name))
        elif system.isdir(path):
            paths = sorted(name for name in system.find(path, maxdepth=1) if system.isfile(name))
        else:
            paths = [path] if system.exists(path) else []
    if not paths:
        raise CorpusError(f"{without_password(source)!r} matches no file.")
    return [(_url(system, source, path, name), find_format(format, name)) for name in paths]


def _url(system: Any, source: str, path: str, name: str) -> str:
    """Return the URL of a file; ``path`` is what its system calls the source.

    What stands before the path, such as host and user, is the same for all files.
    """
    if name == path:
        return source
    before = source.rstrip("/").removesuffix(path.rstrip("/"))
    known = before != source.rstrip("/")
    return f"{before}{name}" if known else str(system.unstrip_protocol(name))


def _cut(part: FilePart, blocksize: int) -> list[FilePart]:
    """Return the parts of a file that can be read by themselves."""
    if part.format == "parquet":
        return _cut_groups(part, blocksize)
    size = _size(part.path)
    if part.format not in BY_LINES or size <= blocksize:
        return [part]
    with ExitStack() as stack:
        if _open(part.path, stack).read(2) == GZIP_MAGIC:
            return [part]
    n_blocks = -(-size // blocksize)
    borders = [size * block // n_blocks for block in range(n_blocks + 1)]
    return [
        replace(part, start=start, stop=stop, lines_before=None if start else 0)
        for start, stop in pairwise(borders)
    ]


def _cut_groups(part: FilePart, blocksize: int) -> list[FilePart]:
    with ExitStack() as stack:
        sizes = group_sizes(_source(part.path, stack))
    if len(sizes) < 2:
        return [part]
    step = max(1, len(sizes) * blocksize // max(1, _size(part.path)))
    starts = range(0, len(sizes), step)
    return [
        replace(
            part,
            groups=tuple(range(start, min(start + step, len(sizes)))),
            lines_before=sum(sizes[:start]),
        )
        for start in starts
    ]


def number_lines(corpus: Corpus, client: Any) -> Corpus:
    """Count the lines before each part, where they tell the ids of documents."""
    unknown = [part for part in corpus.parts if getattr(part, "lines_before", 0) is None]
    cut = {part.path for part in unknown}
    asked = [part for part in corpus.parts if getattr(part, "path", None) in cut]
    if not asked:
        return corpus
    leaves = tasks(_lines_of, asked, name="lines")
    counts = run(client, leaves, _listed(leaves))
    before, numbered = dict.fromkeys(cut, 0), {}
    for part, count in zip(asked, counts, strict=True):
        numbered[part] = replace(part, lines_before=before[part.path])
        before[part.path] += count
    return replace(corpus, parts=[numbered.get(part, part) for part in corpus.parts])


def _listed(leaves: Sequence) -> Any:
    import dask

    return dask.delayed(list)(list(leaves))


def _lines_of(part: FilePart) -> int:
    """Return how many lines begin in a part of a file, but for the first of the file."""
    with ExitStack() as stack:
        # a line begins in [start, stop) if the one before ends in [start - 1, stop - 1)
        start, stop = max(part.start - 1, 0), (part.stop or 0) - 1
        return count_lines(_open(part.path, stack), start, stop) + (part.start == 0)


# On a worker


def documents(
    part: Any, reading: Mapping[str, Any], bad: list[str]
) -> Iterator[tuple[Document, Origin]]:
    """Read the documents of a part one at a time, each with what it was read from.

    Sentences of lines that were passed over go to ``bad``.
    """
    if isinstance(part, FilePart):
        yield from _of_file(part, reading, bad)
    elif hasattr(part, "columns"):
        yield from _of_items(_rows_of_frame(part, _columns(reading)), reading, bad)
    else:
        yield from _of_items(map(_record, part), reading, bad)


def _of_file(
    part: FilePart, reading: Mapping[str, Any], bad: list[str]
) -> Iterator[tuple[Document, Origin]]:
    with ExitStack() as stack:
        source: Any = _source(part.path, stack)
        if part.groups:
            source = RowGroups(source, list(part.groups), part.lines_before or 0)
        elif part.stop is not None:
            name = without_password(part.path)
            if part.lines_before is None:
                name += f" after byte {part.start}"
            source = Piece(
                _open(part.path, stack),
                name,
                part.start,
                part.stop,
                lines_before=part.lines_before or 0,
                max_bytes=reading.get("max_line_bytes", MAX_LINE_BYTES),
            )
        yield from read_with_origins(
            source,
            format=part.format,
            id_prefix=part.prefix,
            on_bad_line=lambda error: bad.append(str(error)),
            **reading,
        )


def _of_items(
    items: Iterator[Any], reading: Mapping[str, Any], bad: list[str]
) -> Iterator[tuple[Document, Origin]]:
    """Make documents of the items of a bag, or of the rows of a table."""
    columns, split = _columns(reading), reading.get("split")
    for number, item in enumerate(items, start=1):
        try:
            if isinstance(item, Mapping):
                item = Document.from_dict(columns.record(dict(item)), id=str(number))
            elif not isinstance(item, Document):
                raise ValueError(f"it is a {type(item).__name__}, must be a document")
        except ValueError as error:
            sentence = f"item {number} of a partition: {str(error).rstrip('.')}."
            if reading.get("on_error", "stop") == "stop":
                raise CorpusError(sentence) from None
            bad.append(sentence)
            continue
        if split is None or (item.split or "train") == split:
            yield item, {}


def _record(item: Any) -> Any:
    """Return an item of a bag, a line of JSON as a mapping."""
    import json

    if isinstance(item, str | bytes):
        return json.loads(item)
    return item


def _rows_of_frame(frame: Any, columns: Columns) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table with keys of documents."""
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


def _columns(reading: Mapping[str, Any]) -> Columns:
    usual = Columns()
    names = ("text", "labels", "id", "time", "separator")
    return Columns(
        *(reading.get(key, getattr(usual, name)) for key, name in zip(COLUMNS, names, strict=True))
    )


# Files anywhere


def _is_url(path: str) -> bool:
    return "://" in path


@contextmanager
def reaching(url: str) -> Iterator[None]:
    """Say in a sentence what is wrong with a file elsewhere; each system has errors of its own."""
    try:
        yield
    except CorpusError:
        raise
    except Exception as error:
        reason = (str(error) or type(error).__name__).rstrip(".")
        raise CorpusError(f"{without_password(url)!r} cannot be read: {reason}.") from error


def _size(path: str) -> int:
    if _is_url(path):
        import fsspec

        with reaching(path):
            system, name = fsspec.core.url_to_fs(path)
            return int(system.size(name) or 0)
    try:
        return os.path.getsize(path)
    except OSError as error:
        raise file_error(path, error) from error


def _open(path: str, stack: ExitStack) -> Any:
    """Open a file that is closed with the stack."""
    if _is_url(path):
        import fsspec

        with reaching(path):
            file = stack.enter_context(fsspec.open(path, "rb"))
        return stack.enter_context(io.BufferedReader(file))  # some have no readline(size)
    try:
        return stack.enter_context(open(path, "rb"))
    except OSError as error:
        raise file_error(path, error) from error


def _source(path: str, stack: ExitStack) -> Any:
    """Return what a reader takes: a path as it is, and what is elsewhere as a file."""
    return _open(path, stack) if _is_url(path) else path
