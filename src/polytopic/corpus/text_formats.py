"""Formats with a document per line: JSON lines, CSV and TSV, SVMlight, plain text.

A reader returns an iterator of records, with None for a line without a document. It is a ``map``:
after an error in one line, a ``map`` goes on with the next, which a generator would not.
"""

import csv
import json
import re
from collections.abc import Iterator
from functools import partial
from reprlib import repr as short
from typing import Any

from polytopic.corpus.formats import LINE, REST, Columns, Record, check_distinct
from polytopic.lines import Lines

_surrogate = re.compile(r"\\u[dD][89a-fA-F]").search


def json_records(lines: Lines, *, columns: Columns) -> Iterator[Record | None]:
    """Return the records of JSON lines."""
    return map(partial(_json, columns=columns), lines)


def _json(line: str, columns: Columns) -> Record | None:
    if not line.strip():
        return None
    return columns.record(parse_object(line)) | {LINE: line}


def parse_object(line: str) -> Record:
    """Return the JSON object in a line; anything else, and a repeated key, raises ValueError."""
    try:
        values = _decode(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON ({error.msg} at column {error.colno})") from None
    except RecursionError:
        raise ValueError("not valid JSON (brackets are nested too deeply)") from None
    if not isinstance(values, dict):
        raise ValueError(f"{short(values)} is not a JSON object")
    if _surrogate(line):
        _check_characters(values)
    return values


def _distinct(pairs: list[tuple[str, Any]]) -> Record:
    """Return an object; JSON itself would keep the last value of a repeated key."""
    values = dict(pairs)
    if len(values) < len(pairs):
        check_distinct("key", [key for key, _ in pairs])
    return values


_decode = json.JSONDecoder(object_pairs_hook=_distinct).decode


def _check_characters(values: Record) -> None:
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("contains half of a surrogate pair, which is not a character") from None


def csv_records(lines: Lines, *, columns: Columns, delimiter: str = ",") -> Iterator[Record | None]:
    """Return the rows of a table with a header."""
    csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))  # Lines enforces our limit
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    header = [name.strip() for name in next(filter(None, rows), [])]
    check_distinct("column", filter(None, header))  # spreadsheets add columns without a name
    missing = [name for name in columns.required if name not in header]
    if header and missing:
        raise ValueError(f"column {missing[0]!r} is missing, the header has {', '.join(header)}")
    used = {*columns.texts, columns.labels, columns.id, columns.time, "split"}
    rest = [name for name in header if name not in used]
    return map(partial(_row, header=header, columns=columns, rest=rest), rows)


tsv_records = partial(csv_records, delimiter="\t")


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


def svmlight_records(lines: Lines, *, columns: Columns) -> Iterator[Record | None]:
    """Return the rows of SVMlight, without a header of the extreme classification repository."""
    return map(partial(_svmlight, lines=lines), lines)


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
        raise ValueError("a term occurs twice")
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


def text_records(lines: Lines, *, columns: Columns) -> Iterator[Record | None]:
    """Return each line that is not blank as a text."""
    return map(_text, lines)


def _text(line: str) -> Record | None:
    return {"text": line.removesuffix("\n").removesuffix("\r")} if line.strip() else None
