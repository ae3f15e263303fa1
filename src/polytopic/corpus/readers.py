"""Read documents from files, folders, standard input and lines, one at a time."""

import csv
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Literal, Protocol

from polytopic.corpus.document import Document, parse_time
from polytopic.corpus.formats import FORMATS, LINE, REST, Columns, Record, find_sources
from polytopic.errors import CorpusError, CorpusWarning
from polytopic.lines import MAX_LINE_BYTES, Source, source_name

Origin = str | Record
"""The line of JSON that a document was read from, or the other columns of its row."""


class Place(Protocol):
    """An open source and the position in it: lines, rows of a table, or files of a folder."""

    first: int

    @property
    def place(self) -> str:
        """Name of the current record, for messages."""

    def start_record(self) -> None:
        """Start a record."""


def read_documents(
    source: Source,
    *,
    format: str | None = None,
    split: str | None = None,
    on_error: Literal["stop", "skip"] = "stop",
    on_bad_line: Callable[[CorpusError], object] | None = None,
    text_column: str = "text",
    labels_column: str = "labels",
    id_column: str = "id",
    time_column: str = "time",
    label_separator: str = ",",
    line_ids: bool = True,
    encoding: str | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Document]:
    r"""Read documents one at a time, in constant memory.

    Parameters
    ----------
    source : path, file object or iterable of lines
        ``"-"`` is standard input. A folder, or a pattern such as ``"reut2-*.sgm"``, stands for its
        files, sorted by name. Gzipped data are recognized by their first bytes.
    format : str, optional
        ``"jsonl"``, ``"csv"``, ``"tsv"``, ``"svmlight"``, ``"text"``, ``"arff"``, ``"parquet"``,
        ``"reuters"``, ``"ohsumed"``, ``"medline"``, ``"pubmed"`` or ``"annif"``. By default, it
        is inferred from the file extension; without a name, it is JSON lines. ``svmlight`` also
        reads files of the extreme classification repository, and ``text`` has a document per line.
        The guide describes the others.
    split : str, optional
        Read only the documents of this split. Documents without a split belong to ``"train"``.
    on_error : {"stop", "skip"}, default="stop"
        Whether to raise CorpusError at an invalid line, or to skip it.
    on_bad_line : callable, optional
        With ``on_error="skip"``, called with the CorpusError of each skipped line.
    text_column, labels_column, id_column, time_column : str
        Columns of a table, attributes of ARFF, or keys of JSON objects. Several text columns,
        separated by commas, become fields. In ARFF, labels are attributes, separated by commas, or
        the XML file that lists them.
    label_separator : str, default=","
        Separates the labels in a column.
    line_ids : bool, default=True
        Whether a document without an id gets its line number, with the name of the file if there
        are several. Otherwise its line is invalid.
    encoding : str, optional
        Any encoding that extends ASCII; UTF-8 by default, Latin-1 for ``reuters``. A UTF-8 byte
        order mark is skipped.
    max_line_bytes : int, default=64 MiB
        A longer line, or a longer record of several lines, is invalid.

    Yields
    ------
    Document
        An invalid time is dropped with a CorpusWarning.

    Examples
    --------
    >>> [document.text for document in read_documents(['{"text": "Wheat rose."}'])]
    ['Wheat rose.']
    """
    pairs = read_with_origins(
        source,
        format=format,
        split=split,
        on_error=on_error,
        on_bad_line=on_bad_line,
        columns=Columns(text_column, labels_column, id_column, time_column, label_separator),
        line_ids=line_ids,
        encoding=encoding,
        max_line_bytes=max_line_bytes,
    )
    return map(itemgetter(0), pairs)


def read_with_origins(
    source: Source,
    *,
    columns: Columns | None = None,
    id_prefix: str | None = None,
    format: str | None = None,
    split: str | None = None,
    on_error: Literal["stop", "skip"] = "stop",
    on_bad_line: Callable[[CorpusError], object] | None = None,
    line_ids: bool = True,
    encoding: str | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[tuple[Document, Origin]]:
    """Read documents as :func:`read_documents` does, each with its origin.

    The origin is the line of JSON, or a dict of the columns of a table that are not part of the
    document; in other formats it is empty. ``columns`` holds the options that name columns.
    ``id_prefix`` goes before a line number that serves as id; by default it is the name of the file
    if there are several.
    """
    if on_error not in ("stop", "skip"):
        raise ValueError(f"on_error == {on_error!r}, must be 'stop' or 'skip'.")
    format, sources = find_sources(source, format)
    encoding = encoding or FORMATS[format].encoding
    _check_encoding(encoding)
    parse = partial(FORMATS[format].load_reader(), columns=columns or Columns())
    open_source = partial(
        FORMATS[format].load_opener(), encoding=encoding, max_bytes=max_line_bytes
    )

    def documents() -> Iterator[tuple[Document, Origin]]:
        for item in _pairs_and_errors(sources, open_source, parse, line_ids, id_prefix):
            if isinstance(item, tuple):
                if split is None or (item[0].split or "train") == split:
                    yield item
            elif on_error == "stop":
                raise item
            elif on_bad_line:
                on_bad_line(item)

    return documents()


def _pairs_and_errors(
    sources: Sequence[Source],
    open_source: Callable[[Source], Any],
    parse: Callable[[Any], Iterator[Record | None]],
    line_ids: bool,
    prefix: str | None,
) -> Iterator[tuple[Document, Origin] | CorpusError]:
    """Yield the documents of all sources with their origins, or an error for an invalid record."""
    for source in sources:
        name = f"{os.path.basename(source_name(source))}:" if len(sources) > 1 else ""
        name = name if prefix is None else prefix
        with open_source(source) as place:
            for item in _documents_and_errors(place, parse, name if line_ids else None):
                if isinstance(item, CorpusError):
                    yield item
                else:
                    document, record = item
                    yield document, record.get(LINE) or record.get(REST, {})


def _documents_and_errors(
    place: Place,
    parse: Callable[[Any], Iterator[Record | None]],
    prefix: str | None,
) -> Iterator[tuple[Document, Record] | CorpusError]:
    """Yield the document and the record, or an error, for each record of a source."""
    records = None
    while True:
        place.start_record()
        try:
            if records is None:
                records = parse(place)  # reads the header, if there is one
                continue
            record = next(records)
            if record is not None:
                _drop_bad_time(record, place.place)
                id = None if prefix is None else f"{prefix}{place.first}"
                yield Document.from_dict(record, id=id), record
        except StopIteration:
            return
        except (ValueError, csv.Error, RecursionError) as error:
            reason = str(error).rstrip(".")
            yield CorpusError(f"{place.place}: {reason}.")
            if records is None:  # without a header, no row can be read
                return


def _drop_bad_time(record: Record, place: str) -> None:
    """Drop an invalid time with a warning: the text is worth more than its date."""
    if record.get("time") is None:
        return
    try:
        record["time"] = parse_time("time", record["time"])
    except ValueError as error:
        record["time"] = None
        sentence = f"{place}: {str(error).rstrip('.')}; the document is kept without it."
        warnings.warn(sentence, CorpusWarning, stacklevel=2)


def _check_encoding(encoding: str) -> None:
    try:
        fits = b"\n".decode(encoding) == "\n"
    except (LookupError, UnicodeDecodeError):
        fits = False
    if not fits:
        raise ValueError(f"encoding == {encoding!r}, must be one that extends ASCII.")


def load_sample() -> list[Document]:
    """Return the bundled sample: short news items with labels and times."""
    from importlib.resources import files  # slow to import

    with files("polytopic.corpus").joinpath("data/news.jsonl").open("rb") as file:
        return list(read_documents(file, format="jsonl"))
