"""Documents from files, standard input and lines, one at a time."""

import csv
import json
import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from reprlib import repr as short
from typing import Any, Literal

from polytopic.corpus.document import Document, parse_time
from polytopic.corpus.formats import DELIMITERS, Columns, find_format
from polytopic.corpus.lines import Lines, Source, raw_lines, source_name
from polytopic.errors import CorpusError, CorpusWarning

MAX_LINE_BYTES = 64 * 2**20

Record = dict[str, Any]
Origin = str | Record
"""The line of JSON that a document was read from; or what else the row of a table holds."""
REST = "columns that are no part of a document"  # their key in a record

_surrogate = re.compile(r"\\u[dD][89a-fA-F]").search


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
    encoding: str = "utf-8",
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Document]:
    r"""Read documents one at a time, in constant memory.

    Parameters
    ----------
    source : path, file object or iterable of lines
        ``"-"`` is standard input. Gzipped data are known by their first bytes.
    format : {"jsonl", "csv", "tsv", "svmlight", "text"}, optional
        By default told by the ending of the file name; JSON lines where there is no name.
        ``svmlight`` also reads the files of the extreme classification repository, ``text`` takes
        each line for a document.
    split : str, optional
        Keep the documents of this split; one that names no split is of ``"train"``.
    on_error : {"stop", "skip"}, default="stop"
        What to do at a bad line: raise its CorpusError, or go on with the next.
    on_bad_line : callable, optional
        With ``on_error="skip"``, called with the CorpusError of each line passed over.
    text_column, labels_column, id_column, time_column : str
        Columns of a table, or keys of JSON objects. Several text columns, with commas between,
        become fields.
    label_separator : str, default=","
        What stands between the labels in a column.
    line_ids : bool, default=True
        Whether the line number is the id where the source gives none; else that is a bad line.
    encoding : str, default="utf-8"
        Any encoding that extends ASCII; a UTF-8 byte order mark is passed over.
    max_line_bytes : int, default=64 MiB
        A longer line is a bad line.

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
    encoding: str = "utf-8",
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[tuple[Document, Origin]]:
    """Read documents as :func:`read_documents` does, each with what it was read from.

    That is the line of JSON, or a dict of the columns of a table that are no part of a document;
    in other formats nothing is left over.
    """
    if on_error not in ("stop", "skip"):
        raise ValueError(f"on_error == {on_error!r}, must be 'stop' or 'skip'.")
    _check_encoding(encoding)
    columns = Columns(text_column, labels_column, id_column, time_column, label_separator)
    name = source_name(source)
    format = find_format(format, name, default=_default_format(source))
    parse = _parser(format, columns)

    def documents() -> Iterator[tuple[Document, Origin]]:
        with raw_lines(source, max_line_bytes) as raw:
            lines = Lines(raw, encoding=encoding, max_bytes=max_line_bytes)
            for item in _documents_and_errors(lines, parse, name, line_ids):
                if isinstance(item, tuple):
                    document, record = item
                    if split is None or (document.split or "train") == split:
                        yield document, lines.last if format == "jsonl" else record.get(REST, {})
                elif on_error == "stop":
                    raise item
                elif on_bad_line:
                    on_bad_line(item)

    return documents()


def _documents_and_errors(
    lines: Lines,
    parse: Callable[[Lines], Iterator[Record | None]],
    name: str,
    line_ids: bool,
) -> Iterator[tuple[Document, Record] | CorpusError]:
    """Yield for each record its document and itself, or the error that says why there is none."""
    records = None
    while True:
        number = lines.start_record()
        try:
            if records is None:
                records = parse(lines)  # which takes the header, if there is one
                continue
            record = next(records)
            if record is not None:
                _drop_bad_time(record, f"{name}, line {number}")
                yield Document.from_dict(record, id=str(number) if line_ids else None), record
        except StopIteration:
            return
        except (ValueError, csv.Error, RecursionError) as error:
            reason = str(error).rstrip(".")
            yield CorpusError(f"{name}, line {number}: {reason}.")
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


def _parser(format: str, columns: Columns) -> Callable[[Lines], Iterator[Record | None]]:
    """Return what makes records of lines; None stands for a line without a document."""
    # A map goes on after an error in one of its items; a generator would not.
    if format in DELIMITERS:
        return partial(_table, columns=columns, delimiter=DELIMITERS[format])
    if format == "svmlight":
        return lambda lines: map(partial(_svmlight, lines=lines), lines)
    if format == "text":
        return partial(map, _text)
    return partial(map, partial(_json, columns=columns))


def _json(line: str, columns: Columns) -> Record | None:
    if not line.strip():
        return None
    try:
        values = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON ({error.msg} at column {error.colno})") from None
    except RecursionError:
        raise ValueError("not valid JSON (too many brackets inside brackets)") from None
    if not isinstance(values, dict):
        raise ValueError(f"{short(values)} is not a JSON object")
    if _surrogate(line):
        _check_characters(values)
    return columns.record(values)


def _check_characters(values: Record) -> None:
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("holds half of a surrogate pair, which is no character") from None


def _text(line: str) -> Record | None:
    return {"text": line.removesuffix("\n").removesuffix("\r")} if line.strip() else None


def _svmlight(line: str, lines: Lines) -> Record | None:
    line = line.partition("#")[0]
    words = line.split()
    header = lines.number == 1 and len(words) == 3 and all(word.isdecimal() for word in words)
    if header or not words:
        return None
    labelled = not line[0].isspace() and ":" not in words[0]
    labels = words.pop(0) if labelled else ""
    pairs = [_pair(word) for word in words]
    counts = {term: count for term, count in pairs if count != 0}
    if len(dict(pairs)) < len(pairs):
        raise ValueError("holds a term twice")
    return {"labels": Columns().split_labels(labels), "counts": counts}


def _pair(word: str) -> tuple[str, float]:
    term, _, count = word.rpartition(":")
    try:
        number = int(count) if count.isdecimal() else float(count)
    except ValueError:
        term = ""
    if not term:
        raise ValueError(f"{short(word)} is not a pair 'term:count'")
    return term, number


def _table(lines: Lines, columns: Columns, delimiter: str) -> Iterator[Record | None]:
    csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))  # Lines holds the limit
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    header = [name.strip() for name in next(filter(None, rows), [])]
    missing = [name for name in columns.required if name not in header]
    if header and missing:
        raise ValueError(f"column {missing[0]!r} is missing, the header has {', '.join(header)}")
    used = {*columns.texts, columns.labels, columns.id, columns.time, "split"}
    rest = [name for name in header if name not in used]
    return map(partial(_row, header=header, columns=columns, rest=rest), rows)


def _row(cells: list[str], header: list[str], columns: Columns, rest: list[str]) -> Record | None:
    if not cells:
        return None
    if len(cells) != len(header):
        raise ValueError(f"{len(cells)} columns, must be {len(header)} as in the header")
    values = dict(zip(header, cells, strict=True))
    record = columns.content(values)
    record["labels"] = columns.split_labels(values.get(columns.labels, ""))
    keys = {"id": columns.id, "time": columns.time, "split": "split"}
    record |= {key: values.get(column) or None for key, column in keys.items()}
    return record | {REST: {name: values[name] for name in rest}} if rest else record


def _default_format(source: Source) -> str | None:
    """Return the format of a source without a telling name; a path must tell its own."""
    named = isinstance(source, str) and source != "-"
    return None if named or hasattr(source, "__fspath__") else "jsonl"


def _check_encoding(encoding: str) -> None:
    try:
        fits = b"\n".decode(encoding) == "\n"
    except (LookupError, UnicodeDecodeError):
        fits = False
    if not fits:
        raise ValueError(f"encoding == {encoding!r}, must be one that extends ASCII.")
