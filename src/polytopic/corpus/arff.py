"""ARFF, dense or sparse, as Weka, Mulan and MEKA write it."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from reprlib import repr as short
from typing import Any

from polytopic.corpus.arff_header import (
    QUOTED,
    Attribute,
    cells,
    find_labels,
    read_header,
    unquoted,
)
from polytopic.corpus.formats import Columns, Record
from polytopic.lines import Lines

ANSWERS = {"1": True, "1.0": True, "true": True, "yes": True}
ANSWERS |= {"0": False, "0.0": False, "false": False, "no": False}

Put = Callable[[Record, str], Any]
"""Puts the value of an attribute into a record."""

_pair = re.compile(rf"\s*(\d+)\s+({QUOTED}|[^\s,'\"][^,]*)\s*(?:,|$)")


def records(lines: Lines, *, columns: Columns) -> Iterator[Record | None]:
    """Return the rows under the header, each as a record."""
    header = read_header(lines)
    if header is None:
        return iter(())
    relation, attributes = header
    labels = find_labels(lines.name, relation, attributes, columns)
    texts = _texts(attributes, labels, columns)
    puts = [_put(attribute, labels, texts, columns) for attribute in attributes]
    return map(partial(_record, puts=puts, texts=texts), lines)


def _record(line: str, puts: list[Put], texts: list[str]) -> Record | None:
    line = line.strip()
    if not line or line.startswith("%"):
        return None
    record: Record = {"labels": []}
    record |= {"fields": dict.fromkeys(texts, "")} if texts else {"counts": {}}
    pairs = _sparse(line, len(puts)) if line.startswith("{") else _dense(line, len(puts))
    for index, value in pairs:
        if value is not None:
            puts[index](record, value)
    if len(texts) == 1:
        record["text"] = record.pop("fields")[texts[0]]
    return record


def _dense(line: str, size: int) -> Iterable[tuple[int, str | None]]:
    found = cells(line)
    if len(found) != size:
        raise ValueError(f"{len(found)} values, must be {size} as there are attributes")
    return enumerate(found)


def _sparse(line: str, size: int) -> Iterable[tuple[int, str | None]]:
    """Return the attributes that a row in braces tells; the others are zero."""
    if not line.endswith("}"):
        raise ValueError("begins with {, must end with }")
    text, end = line[1:-1].strip(), 0
    found: dict[int, str | None] = {}
    while end < len(text):
        match = _pair.match(text, end)
        if not match:
            raise ValueError(f"{short(text[end:])} is not a pair 'attribute value'")
        index, value = int(match[1]), match[2].strip()
        if index >= size or index in found:
            reason = "comes twice" if index in found else f"must be below {size}"
            raise ValueError(f"attribute {index} {reason}")
        found[index] = None if value == "?" else unquoted(value)
        end = match.end()
    return found.items()


def _texts(attributes: list[Attribute], labels: set[str], columns: Columns) -> list[str]:
    """Return the attributes that are the text: those given, else all strings that are left."""
    strings = [attribute.name for attribute in attributes if attribute.kind == "string"]
    wanted = columns.texts if columns.text != Columns.text else []
    needed = columns.required if wanted else columns.required[len(columns.texts) :]
    names = {attribute.name for attribute in attributes}
    for name in needed:
        if name not in names and name != columns.labels:  # which may be several, or a file
            raise ValueError(f"attribute {name!r} is missing")
        if name in wanted and name not in strings:
            raise ValueError(f"attribute {name!r} is the text, must be of type string")
    others = {*labels, columns.id, columns.time, "split"}
    return wanted or [name for name in strings if name not in others]


def _put(attribute: Attribute, labels: set[str], texts: list[str], columns: Columns) -> Put:
    """Return what puts the value of an attribute where it belongs."""
    name, kind = attribute.name, attribute.kind
    own = {columns.id: "id", columns.time: "time", "split": "split"}
    if name in labels:
        whole = name == columns.labels and kind in ("string", "nominal")
        if whole and not {value.lower() for value in attribute.values} & set(ANSWERS):
            return lambda record, value: record["labels"].extend(columns.split_labels(value))
        return partial(_put_label, name)
    # words may be called id or time, too: a number is one only where it was named on purpose
    if name in own and (kind != "number" or name not in (Columns.id, Columns.time, "split")):
        return lambda record, value: record.update({own[name]: value or None})
    if texts:
        return partial(_put_text, name) if name in texts else _pass
    return {"number": partial(_put_count, name), "nominal": partial(_put_value, name)}.get(
        kind, _pass
    )


def _pass(record: Record, value: str) -> None:
    """Leave out what is no part of a document."""


def _put_text(name: str, record: Record, value: str) -> None:
    record["fields"][name] = value


def _put_label(name: str, record: Record, value: str) -> None:
    answer = ANSWERS.get(value.lower())
    if answer is None:
        raise ValueError(f"label {name!r} is {short(value)}, must be 0 or 1")
    if answer:
        record["labels"].append(name)


def _put_count(name: str, record: Record, value: str) -> None:
    try:
        number = int(value) if value.isdecimal() else float(value)
    except ValueError:
        raise ValueError(f"{name!r} is {short(value)}, must be a number") from None
    if number < 0:
        raise ValueError(f"{name!r} is {value}, must not be negative: numbers are counts of terms")
    if number != 0:
        record["counts"][name] = number


def _put_value(name: str, record: Record, value: str) -> None:
    record["counts"][f"{name}={value}"] = 1
