"""What makes records of lines: JSON, SVMlight and plain text; the rest have their own files."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from reprlib import repr as short
from typing import Any

from polytopic.corpus.formats import DELIMITERS, LINE, Columns, Record, check_distinct
from polytopic.lines import Lines

Parser = Callable[[Lines], Iterator[Record | None]]

_surrogate = re.compile(r"\\u[dD][89a-fA-F]").search


def find_parser(format: str, columns: Columns) -> Parser:
    """Return what makes records of lines; None stands for a line without a document."""
    # A map goes on after an error in one of its items; a generator would not.
    if format == "jsonl":
        return partial(map, partial(_json, columns=columns))
    if format == "svmlight":
        return lambda lines: map(partial(_svmlight, lines=lines), lines)
    if format == "text":
        return partial(map, _text)
    # the others are imported when they are needed: a command must start fast
    module = import_module(f"polytopic.corpus.{'tables' if format in DELIMITERS else format}")
    more = {"delimiter": DELIMITERS[format]} if format in DELIMITERS else {}
    return partial(module.records, columns=columns, **more)


def parse_object(line: str) -> Record:
    """Return the JSON object in a line; what is none, or has a key twice, raises ValueError."""
    try:
        values = _decode(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON ({error.msg} at column {error.colno})") from None
    except RecursionError:
        raise ValueError("not valid JSON (too many brackets inside brackets)") from None
    if not isinstance(values, dict):
        raise ValueError(f"{short(values)} is not a JSON object")
    if _surrogate(line):
        _check_characters(values)
    return values


def _distinct(pairs: list[tuple[str, Any]]) -> Record:
    """Return an object of its pairs; JSON itself would keep the last of two with one key."""
    values = dict(pairs)
    if len(values) < len(pairs):
        check_distinct("key", [key for key, _ in pairs])
    return values


_decode = json.JSONDecoder(object_pairs_hook=_distinct).decode


def _json(line: str, columns: Columns) -> Record | None:
    if not line.strip():
        return None
    return columns.record(parse_object(line)) | {LINE: line}


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
