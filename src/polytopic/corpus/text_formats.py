"""Formats with a document per line: JSON lines, CSV and TSV, SVMlight, plain text, Annif's.

A reader returns an iterator of records, with None for a line without a document. It is a ``map``:
after an error in one line, a ``map`` continues with the next, which a generator would not.
"""

import csv
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from reprlib import repr as short
from typing import Any

from polytopic.corpus.formats import LINE, REST, Columns, Record, check_distinct
from polytopic.lines import Lines, Source, file_error, open_lines, raw_lines

ANNIF_TEXTS = (".txt", ".txt.gz")
ANNIF_LABELS = (".tsv", ".key")  # the first that exists lists the labels

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


# Annif's corpora: short texts in TSV, and folders of whole documents


@contextmanager
def open_annif(source: Source, *, encoding: str, max_bytes: int) -> Iterator["Lines | AnnifFolder"]:
    """Open a TSV file or a folder of documents."""
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        yield AnnifFolder(source, encoding=encoding, max_bytes=max_bytes)
    else:
        with open_lines(source, encoding=encoding, max_bytes=max_bytes) as lines:
            yield lines


def annif_records(place: "Lines | AnnifFolder", *, columns: Columns) -> Iterator[Record | None]:
    """Return the documents of a folder, or the texts of a TSV file with their URIs."""
    return place if isinstance(place, AnnifFolder) else map(_annif, place)


def _annif(line: str) -> Record | None:
    if not line.strip():
        return None
    text, tab, uris = line.rstrip("\r\n").partition("\t")
    if not tab:
        raise ValueError("has no tab, must be a text, a tab, and URIs separated by spaces")
    return {"text": text, "labels": [_without_brackets(uri) for uri in uris.split()]}


def _without_brackets(value: str) -> str:
    return value[1:-1] if value[:1] == "<" and value[-1:] == ">" else value


class AnnifFolder:
    """Iterator of the documents of a folder: ``name.txt`` with ``name.tsv`` or ``name.key``.

    The first column of that file lists the labels, without the brackets of a URI. A document with
    neither file has no labels.
    """

    def __init__(self, path: str | os.PathLike[str], *, encoding: str, max_bytes: int):
        self._path = os.fspath(path)
        self._lines = partial(Lines, encoding=encoding, max_bytes=max_bytes)
        self._max_bytes = max_bytes
        self._names = iter(self._sorted())
        self._name = ""
        self.first = 0

    def _sorted(self) -> list[str]:
        try:
            names = sorted(os.listdir(self._path))
        except OSError as error:
            raise file_error(self._path, error) from error
        return [name for name in names if name.endswith(ANNIF_TEXTS) and not name.startswith(".")]

    @property
    def place(self) -> str:
        """The current file."""
        return os.path.join(self._path, self._name)

    def start_record(self) -> None:
        """Start with the next file."""
        self.first += 1

    def __iter__(self) -> "AnnifFolder":
        return self

    def __next__(self) -> Record:
        self._name = next(self._names)
        text = "".join(self._read(self._name))
        stem = self._name.removesuffix(".gz").removesuffix(".txt")
        return {"id": stem, "text": text, "labels": self._labels(stem)}

    def _labels(self, stem: str) -> list[str]:
        for ending in ANNIF_LABELS:
            if os.path.exists(os.path.join(self._path, stem + ending)):
                self._name = stem + ending  # named if it is invalid
                cells = (line.partition("\t")[0].strip() for line in self._read(stem + ending))
                return [_without_brackets(cell) for cell in cells if cell]
        return []

    def _read(self, name: str) -> list[str]:
        with raw_lines(os.path.join(self._path, name), self._max_bytes) as raw:
            lines = self._lines(raw)
            try:
                return list(lines)
            except ValueError as error:
                raise ValueError(f"{error} in line {lines.number}") from None
