"""The head of an ARFF file: its attributes, and which of them are labels."""

import os
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from reprlib import repr as short

from polytopic.corpus.formats import Columns, check_distinct
from polytopic.errors import CorpusError
from polytopic.lines import Lines, read_bytes

QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
KINDS = {"numeric": "number", "real": "number", "integer": "number"}

_attribute = re.compile(rf"@attribute\s+({QUOTED}|[^\s'\"]\S*)\s+(.+)", re.IGNORECASE)
_cell = re.compile(rf"\s*({QUOTED}|(?:[^\s,'\"][^,]*?)?)\s*(,|$)")
_meka = re.compile(r":.*?-C\s+(-?\d+)\b")
_escape = re.compile(r"\\(.)")
_part = re.compile("[-_.](?:train|test)$", re.IGNORECASE)


@dataclass(frozen=True)
class Attribute:
    """An attribute: its name, its kind ("number", "nominal", "string", "date"), its values."""

    name: str
    kind: str
    values: tuple[str, ...] = ()


def read_header(lines: Lines) -> tuple[str, list[Attribute]] | None:
    """Read up to ``@data``; return relation and attributes, or None if there is nothing at all."""
    relation, attributes, begun = "", [], False
    for line in lines:
        lines.start_here()
        line = line.strip()
        word = line.partition(" ")[0].partition("\t")[0].lower()
        if not line or line.startswith("%"):
            continue
        begun = True
        if word == "@relation":
            relation = unquoted(line[len(word) :].strip())
        elif word == "@attribute":
            attributes.append(_read_attribute(line))
        elif word == "@data":
            check_distinct("attribute", (attribute.name for attribute in attributes))
            return relation, attributes
        else:
            raise ValueError(f"{short(line)} must begin with @relation, @attribute or @data")
    if begun:
        raise ValueError("the file ends without @data")
    return None


def _read_attribute(line: str) -> Attribute:
    found = _attribute.fullmatch(line)
    if not found:
        raise ValueError(f"{short(line)} must be '@attribute name type'")
    name, type = unquoted(found[1]), found[2].strip()
    if type.startswith("{") and type.endswith("}"):
        values = tuple(value or "?" for value in cells(type[1:-1]))
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


def cells(text: str) -> list[str | None]:
    """Return the values between commas, None for one that is missing."""
    if "'" not in text and '"' not in text:
        return [None if cell == "?" else cell for cell in map(str.strip, text.split(","))]
    found, end = [], 0
    while match := _cell.match(text, end):
        found.append(None if match[1] == "?" else unquoted(match[1]))
        end = match.end()
        if not match[2]:
            return found
    raise ValueError(f"{short(text[end:])} is no value, or a quote is not closed")


def unquoted(text: str) -> str:
    """Return a value without its quotes, with the characters for its escapes."""
    if text[:1] not in ("'", '"') or len(text) < 2:
        return text
    controls = {"n": "\n", "r": "\r", "t": "\t"}
    return _escape.sub(lambda match: controls.get(match[1], match[1]), text[1:-1])


def find_labels(name: str, relation: str, attributes: list[Attribute], columns: Columns) -> set:
    """Return the names of the attributes that are labels.

    They are those given; else the first ones that MEKA's ``-C 6`` in the relation tells, or the
    last ones, if negative; else those in Mulan's XML beside the file, which has the same name,
    but for "-train" or "-test" at its end; else the attribute called "labels".
    """
    names = [attribute.name for attribute in attributes]
    meka = _meka.search(relation)
    if columns.labels != Columns.labels:
        given = columns.labels
        if given.lower().endswith(".xml"):
            return _known(_mulan(given), names, given)
        wanted = {given} if given in names else {part.strip() for part in given.split(",")}
        return _known(wanted - {""}, names, "labels_column")
    if meka:
        number = int(meka[1])
        if not 0 < abs(number) <= len(names):
            raise ValueError(f"-C {number} in @relation, but there are {len(names)} attributes")
        return set(names[:number] if number > 0 else names[number:])
    stem = os.path.splitext(name.removesuffix(".gz"))[0]
    for path in (f"{stem}.xml", f"{_part.sub('', stem)}.xml"):
        if os.path.isfile(path):
            return _known(_mulan(path), names, path)
    if Columns.labels not in names and all(each.kind != "string" for each in attributes):
        raise ValueError(
            f"nothing tells which attributes are labels; needs {stem + '.xml'!r}, -C in @relation, "
            "or their names as the labels column ('' for none)"
        )
    return {Columns.labels} & set(names)


def _known(labels: set[str], names: list[str], place: str) -> set[str]:
    unknown = sorted(labels - set(names))
    if unknown:
        raise ValueError(f"label {unknown[0]!r} of {place} is not an attribute")
    return labels


def _mulan(path: str) -> set[str]:
    """Return the names in Mulan's list of labels, which may be a tree."""
    try:
        content = read_bytes(path)
        if b"<!ENTITY" in content:
            raise ValueError(f"{path!r} declares an entity, must not")
        elements = ET.fromstring(content).iter()  # noqa: S314  # no entities
    except CorpusError as error:
        raise ValueError(str(error)) from error
    except ET.ParseError as error:
        raise ValueError(f"{path!r} is not valid XML ({error})") from None
    found = [element.get("name") for element in elements if element.tag.split("}")[-1] == "label"]
    return {name for name in found if name}
