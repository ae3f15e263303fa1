"""OHSUMED, references of MEDLINE from 1987 to 1991 as they came for retrieval."""

import re
from collections.abc import Iterator

from polytopic.corpus.blocks import Blocks
from polytopic.corpus.formats import Columns, Record
from polytopic.corpus.mesh import headings, title_and_abstract
from polytopic.lines import Lines

_field = re.compile(r"\.([A-Z])(?:\s+(.*))?$")
_issue = re.compile(r"\b(\d\d)(0[1-9]|1[0-2]);")  # such as 8703; in the source


def records(lines: Lines, *, columns: Columns) -> Iterator[Record | None]:
    """Return the references of a file; the columns say nothing about them."""
    return map(_record, Blocks(lines, r"\.I\b"))


def _record(block: list[str]) -> Record:
    fields: dict[str, list[str]] = {}
    name = ""
    for line in map(str.strip, block):
        found = _field.match(line)
        if found:
            name, line = found[1], found[2] or ""
        fields.setdefault(name, []).append(line)
    values = {name: " ".join(filter(None, parts)) for name, parts in fields.items()}
    if "T" not in values and "W" not in values:
        raise ValueError("has neither .T (title) nor .W (abstract)")
    return {
        "id": values.get("U") or values.get("I") or None,
        "text": title_and_abstract(values.get("T", ""), values.get("W", "")),
        "labels": headings(values.get("M", "").removesuffix(".").split(";")),
        "time": _time(values.get("S", "")),
    }


def _time(source: str) -> str | None:
    """Return the month of the issue."""
    found = _issue.search(source)
    return f"19{found[1]}-{found[2]}-01" if found else None
