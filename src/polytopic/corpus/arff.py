"""ARFF, dense or sparse, as written by Weka, Mulan and MEKA."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from reprlib import repr as short
from typing import Any
from xml.parsers import expat

from polytopic.corpus.formats import Columns, Record, check_distinct
from polytopic.errors import CorpusError
from polytopic.lines import Lines, read_bytes

KINDS = {"numeric": "number", "real": "number", "integer": "number"}
BOOLEANS = {"1": True, "1.0": True, "true": True, "yes": True}
BOOLEANS |= {"0": False, "0.0": False, "false": False, "no": False}

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_attribute = re.compile(rf"@attribute\s+({_QUOTED}|[^\s'\"]\S*)\s+(.+)", re.IGNORECASE)
_cell = re.compile(rf"\s*(?:({_QUOTED})\s*|([^\s,'\"][^,]*)?)(,|$)")
_meka = re.compile(r"-C\s+(-?\d+)\b")
_escape = re.compile(r"\\(.)")
_part = re.compile("[-_.](?:train|test)$", re.IGNORECASE)
_pair = re.compile(rf"\s*(\d+)\s+({_QUOTED}|[^\s,'\"][^,]*)\s*(?:,|$)")

Setter = Callable[[Record, str], Any]
"""A function that stores the value of an attribute in a record."""


@dataclass(frozen=True)
class Attribute:
    """An attribute: its name, kind ("number", "nominal", "string", "date") and nominal values."""

    name: str
    kind: str
    values: tuple[str, ...] = ()


def records(lines: Lines, *, columns: Columns) -> Iterator[Record | None]:
    """Return the rows below the header as records."""
    header = _read_header(lines)
    if header is None:
        return iter(())
    relation, attributes = header
    labels = _find_labels(lines.name, relation, attributes, columns)
    texts = _texts(attributes, labels, columns)
    setters = [_setter(attribute, labels, texts, columns) for attribute in attributes]
    return map(partial(_record, setters=setters, texts=texts), lines)


def _record(line: str, setters: list[Setter], texts: list[str]) -> Record | None:
    line = line.strip()
    if not line or line.startswith("%"):
        return None
    record: Record = {"labels": []}
    record |= {"fields": dict.fromkeys(texts, "")} if texts else {"counts": {}}
    pairs = _sparse(line, len(setters)) if line.startswith("{") else _dense(line, len(setters))
    for index, value in pairs:
        if value is not None:
            setters[index](record, value)
    if len(texts) == 1:
        record["text"] = record.pop("fields")[texts[0]]
    return record


def _dense(line: str, size: int) -> Iterable[tuple[int, str | None]]:
    cells = _cells(line)
    if len(cells) != size:
        raise ValueError(f"{len(cells)} values, must be {size}, one per attribute")
    return enumerate(cells)


def _sparse(line: str, size: int) -> Iterable[tuple[int, str | None]]:
    """Return the attributes that a row in braces lists; the others are zero."""
    if not line.endswith("}"):
        raise ValueError("begins with {, must end with }")
    text, end = line[1:-1].strip(), 0
    values: dict[int, str | None] = {}
    while end < len(text):
        match = _pair.match(text, end)
        if not match:
            raise ValueError(f"{short(text[end:])} is not a pair 'attribute value'")
        index, value = int(match[1]), match[2].strip()
        if index >= size or index in values:
            reason = "occurs twice" if index in values else f"must be below {size}"
            raise ValueError(f"attribute {index} {reason}")
        values[index] = None if value == "?" else _unquote(value)
        end = match.end()
    return values.items()


def _texts(attributes: list[Attribute], labels: set[str], columns: Columns) -> list[str]:
    """Return the text attributes: those given, else all remaining strings."""
    strings = [attribute.name for attribute in attributes if attribute.kind == "string"]
    chosen_texts = columns.texts if columns.text != Columns.text else []
    required = columns.required if chosen_texts else columns.required[len(columns.texts) :]
    names = {attribute.name for attribute in attributes}
    for name in required:
        if name not in names and name != columns.labels:  # may be several attributes, or a file
            raise ValueError(f"attribute {name!r} is missing")
        if name in chosen_texts and name not in strings:
            raise ValueError(f"attribute {name!r} is the text, must be of type string")
    used = {*labels, columns.id, columns.time, "split"}
    return chosen_texts or [name for name in strings if name not in used]


def _setter(attribute: Attribute, labels: set[str], texts: list[str], columns: Columns) -> Setter:
    """Return the function that stores the value of an attribute in a record."""
    name, kind = attribute.name, attribute.kind
    keys = {columns.id: "id", columns.time: "time", "split": "split"}
    if name in labels:
        whole = name == columns.labels and kind in ("string", "nominal")
        if whole and not {value.lower() for value in attribute.values} & set(BOOLEANS):
            return lambda record, value: record["labels"].extend(columns.split_labels(value))
        return partial(_set_label, name)
    # a numeric attribute called id or time counts that word, unless the caller named it
    if name in keys and (kind != "number" or name not in (Columns.id, Columns.time, "split")):
        return lambda record, value: record.update({keys[name]: value or None})
    if texts:
        return partial(_set_text, name) if name in texts else _ignore
    return {"number": partial(_set_count, name), "nominal": partial(_set_value, name)}.get(
        kind, _ignore
    )


def _ignore(record: Record, value: str) -> None:
    """Ignore a value that is not part of a document."""


def _set_text(name: str, record: Record, value: str) -> None:
    record["fields"][name] = value


def _set_label(name: str, record: Record, value: str) -> None:
    has_label = BOOLEANS.get(value.lower())
    if has_label is None:
        raise ValueError(f"label {name!r} is {short(value)}, must be 0 or 1")
    if has_label:
        record["labels"].append(name)


def _set_count(name: str, record: Record, value: str) -> None:
    try:
        number = int(value) if value.isdecimal() else float(value)
    except ValueError:
        raise ValueError(f"{name!r} is {short(value)}, must be a number") from None
    if number < 0:
        raise ValueError(f"{name!r} is {value}, must be >= 0: numbers are counts of terms")
    if number != 0:
        record["counts"][name] = number


def _set_value(name: str, record: Record, value: str) -> None:
    record["counts"][f"{name}={value}"] = 1


# The header


def _read_header(lines: Lines) -> tuple[str, list[Attribute]] | None:
    """Read up to ``@data``; return relation and attributes, or None for an empty file."""
    relation, attributes, is_empty = "", [], True
    for line in lines:
        lines.start_here()
        line = line.strip()
        word = line.partition(" ")[0].partition("\t")[0].lower()
        if not line or line.startswith("%"):
            continue
        is_empty = False
        if word == "@relation":
            relation = _unquote(line[len(word) :].strip())
        elif word == "@attribute":
            attributes.append(_read_attribute(line))
        elif word == "@data":
            check_distinct("attribute", (attribute.name for attribute in attributes))
            return relation, attributes
        else:
            raise ValueError(f"{short(line)} must begin with @relation, @attribute or @data")
    if not is_empty:
        raise ValueError("the file ends without @data")
    return None


def _read_attribute(line: str) -> Attribute:
    match = _attribute.fullmatch(line)
    if not match:
        raise ValueError(f"{short(line)} must be '@attribute name type'")
    name, type = _unquote(match[1]), match[2].strip()
    if type.startswith("{") and type.endswith("}"):
        values = tuple(value or "?" for value in _cells(type[1:-1]))
        return Attribute(name, "number" if all(map(_is_number, values)) else "nominal", values)
    kind = type.split()[0].lower()
    if kind not in {*KINDS, "string", "date"}:
        raise ValueError(f"attribute {name!r} is of type {short(type)}, which cannot be read")
    return Attribute(name, KINDS.get(kind, kind))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _cells(text: str) -> list[str | None]:
    """Return the values between commas, None for a missing one."""
    if "'" not in text and '"' not in text:
        return [None if cell == "?" else cell for cell in map(str.strip, text.split(","))]
    cells, end = [], 0
    while match := _cell.match(text, end):
        value = match[1] or (match[2] or "").rstrip()
        cells.append(None if value == "?" else _unquote(value))
        end = match.end()
        if not match[3]:
            return cells
    raise ValueError(f"{short(text[end:])} is not a value, or a quote is not closed")


def _unquote(text: str) -> str:
    """Return a value without quotes and escapes."""
    if text[:1] not in ("'", '"') or len(text) < 2:
        return text
    controls = {"n": "\n", "r": "\r", "t": "\t"}
    return _escape.sub(lambda match: controls.get(match[1], match[1]), text[1:-1])


def _find_labels(name: str, relation: str, attributes: list[Attribute], columns: Columns) -> set:
    """Return the names of the attributes that are labels.

    They are, in this order: those that the caller gave; those of MEKA's ``-C 6`` in the relation,
    the first six, or with a negative number the last; those in Mulan's XML file, which has the name
    of the ARFF file without "-train" or "-test"; the attribute "labels".
    """
    names = [attribute.name for attribute in attributes]
    meka = _meka.search(relation.partition(":")[2])
    if columns.labels != Columns.labels:
        column = columns.labels
        if column.lower().endswith(".xml"):
            return _check_labels(_mulan(column), names, column)
        labels = {column} if column in names else {part.strip() for part in column.split(",")}
        return _check_labels(labels - {""}, names, "labels_column")
    if meka:
        number = int(meka[1])
        if not 0 < abs(number) <= len(names):
            raise ValueError(f"-C {number} in @relation, but there are {len(names)} attributes")
        return set(names[:number] if number > 0 else names[number:])
    stem = os.path.splitext(name.removesuffix(".gz"))[0]
    for path in (f"{stem}.xml", f"{_part.sub('', stem)}.xml"):
        if os.path.isfile(path):
            return _check_labels(_mulan(path), names, path)
    if Columns.labels not in names and all(attribute.kind != "string" for attribute in attributes):
        raise ValueError(
            f"no labels are declared; add {stem + '.xml'!r} or -C in @relation, "
            "or give their names as the labels column ('' for none)"
        )
    return {Columns.labels} & set(names)


def _check_labels(labels: set[str], names: list[str], place: str) -> set[str]:
    """Return labels; raise ValueError if one of them is not an attribute."""
    unknown = sorted(labels - set(names))
    if unknown:
        raise ValueError(f"label {unknown[0]!r} of {place} is not an attribute")
    return labels


def _mulan(path: str) -> set[str]:
    """Return the names in Mulan's list, or tree, of labels."""
    parser, names = expat.ParserCreate(namespace_separator="}"), set()

    def on_entity(*_: Any) -> None:
        raise ValueError(f"{path!r} declares an entity, which is not allowed")

    def on_element(name: str, attributes: dict[str, str]) -> None:
        if name.split("}")[-1] == "label":
            names.add(attributes.get("name", ""))

    parser.EntityDeclHandler, parser.StartElementHandler = on_entity, on_element
    try:
        parser.Parse(read_bytes(path), True)
    except CorpusError as error:
        raise ValueError(str(error)) from error
    except expat.ExpatError as error:
        raise ValueError(f"{path!r} is not valid XML ({error})") from None
    return names - {""}
