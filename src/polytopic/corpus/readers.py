"""Documents from files, folders, standard input and lines, one at a time."""

import csv
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from typing import Any, Literal, Protocol

from polytopic.corpus.document import Document, parse_time
from polytopic.corpus.formats import LINE, REST, Columns, Record
from polytopic.corpus.parsers import find_parser
from polytopic.corpus.sources import find_sources
from polytopic.errors import CorpusError, CorpusWarning
from polytopic.lines import MAX_LINE_BYTES, Lines, Source, raw_lines, source_name

ENCODINGS = {"reuters": "latin-1"}  # of formats that are not in UTF-8

Origin = str | Record
"""The line of JSON that a document was read from; or what else the row of a table holds."""


class Place(Protocol):
    """Where the reading is: lines of a file, rows of a table, or files of a folder."""

    first: int

    @property
    def place(self) -> str:
        """What to call the record in a message."""

    def start_record(self) -> None:
        """Begin a record."""


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
        ``"-"`` is standard input; a folder or a pattern such as ``"reut2-*.sgm"`` stands for its
        files, in the order of their names. Gzipped data are known by their first bytes.
    format : str, optional
        ``"jsonl"``, ``"csv"``, ``"tsv"``, ``"svmlight"``, ``"text"``, ``"arff"``, ``"parquet"``,
        ``"reuters"``, ``"ohsumed"``, ``"medline"``, ``"pubmed"`` or ``"annif"``. By default told
        by the ending of the file name; JSON lines where there is no name. ``svmlight`` also
        reads the files of the extreme classification repository, ``text`` takes each line for a
        document; the guide tells of the others.
    split : str, optional
        Keep the documents of this split; one that names no split is of ``"train"``.
    on_error : {"stop", "skip"}, default="stop"
        What to do at a bad line: raise its CorpusError, or go on with the next.
    on_bad_line : callable, optional
        With ``on_error="skip"``, called with the CorpusError of each line passed over.
    text_column, labels_column, id_column, time_column : str
        Columns of a table, attributes of ARFF, or keys of JSON objects. Several text columns,
        with commas between, become fields. In ARFF also the labels are attributes, several with
        commas between, or the XML file that lists them.
    label_separator : str, default=","
        What stands between the labels in a column.
    line_ids : bool, default=True
        Whether the line number is the id where the source gives none, after the name of the file
        where there are several; else that is a bad line.
    encoding : str, optional
        Any encoding that extends ASCII, by default UTF-8, and Latin-1 for ``reuters``; a UTF-8
        byte order mark is passed over.
    max_line_bytes : int, default=64 MiB
        A longer line, or record of several lines, is a bad line.

    Yields
    ------
    Document
        A time that cannot be read is left out with a CorpusWarning.

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
        text_column=text_column,
        labels_column=labels_column,
        id_column=id_column,
        time_column=time_column,
        label_separator=label_separator,
        line_ids=line_ids,
        encoding=encoding,
        max_line_bytes=max_line_bytes,
    )
    return map(itemgetter(0), pairs)


def read_with_origins(
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
    id_prefix: str | None = None,
) -> Iterator[tuple[Document, Origin]]:
    """Read documents as :func:`read_documents` does, each with what it was read from.

    That is the line of JSON, or a dict of the columns of a table that are no part of a document;
    in other formats nothing is left over. ``id_prefix`` stands before the number of the line where
    that is the id, by default the name of the file where there are several.
    """
    if on_error not in ("stop", "skip"):
        raise ValueError(f"on_error == {on_error!r}, must be 'stop' or 'skip'.")
    columns = Columns(text_column, labels_column, id_column, time_column, label_separator)
    format, sources = find_sources(source, format)
    encoding = encoding or ENCODINGS.get(format, "utf-8")
    _check_encoding(encoding)
    open_one = partial(
        _opened, format=format, columns=columns, encoding=encoding, max_bytes=max_line_bytes
    )

    def documents() -> Iterator[tuple[Document, Origin]]:
        for item in _pairs_and_errors(sources, open_one, line_ids, id_prefix):
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
    open_one: Callable[[Source], Any],
    line_ids: bool,
    prefix: str | None,
) -> Iterator[tuple[Document, Origin] | CorpusError]:
    """Yield the documents of one source after the other with their origins, and the errors."""
    for source in sources:
        name = f"{os.path.basename(source_name(source))}:" if len(sources) > 1 else ""
        name = name if prefix is None else prefix
        with open_one(source) as (place, parse):
            for item in _documents_and_errors(place, parse, name if line_ids else None):
                if isinstance(item, CorpusError):
                    yield item
                else:
                    document, record = item
                    yield document, record.get(LINE) or record.get(REST, {})


@contextmanager
def _opened(
    source: Source, *, format: str, columns: Columns, encoding: str, max_bytes: int
) -> Iterator[tuple[Any, Callable[[Any], Iterator[Record | None]]]]:
    """Open a source and give where it is read and what makes records of it."""
    if format == "parquet":
        from polytopic.corpus import parquet

        with parquet.open_rows(source) as rows:
            yield rows, partial(parquet.records, columns=columns)
    elif format == "annif" and isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        from polytopic.corpus import annif

        yield annif.Folder(source, encoding=encoding, max_bytes=max_bytes), iter
    else:
        with raw_lines(source, max_bytes) as raw:
            name = source_name(source)
            before = getattr(source, "lines_before", 0)
            lines = Lines(raw, name=name, encoding=encoding, max_bytes=max_bytes, before=before)
            yield lines, find_parser(format, columns)


def _documents_and_errors(
    place: Place,
    parse: Callable[[Any], Iterator[Record | None]],
    prefix: str | None,
) -> Iterator[tuple[Document, Record] | CorpusError]:
    """Yield for each record its document and itself, or the error that says why there is none."""
    records = None
    while True:
        place.start_record()
        try:
            if records is None:
                records = parse(place)  # which takes the header, if there is one
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
            if records is None:  # without a header no row can be read
                return


def _drop_bad_time(record: Record, place: str) -> None:
    """Leave out a time that is no time, with a warning: the text is worth more than its date."""
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
