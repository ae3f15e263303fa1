"""MEDLINE's text format, as PubMed saves its references (also .nbib)."""

import re
from collections import defaultdict
from collections.abc import Iterator
from reprlib import repr as short

from polytopic.corpus.blocks import Blocks
from polytopic.corpus.formats import Columns, Record
from polytopic.corpus.mesh import headings, publication_time, title_and_abstract
from polytopic.lines import Lines

_field = re.compile(r"([A-Z][A-Z0-9]{1,3}) *-(?: (.*)|$)")


def records(lines: Lines, *, columns: Columns) -> Iterator[Record | None]:
    """Return the references of a file; the columns say nothing about them."""
    return map(_record, Blocks(lines, "PMID *-"))


def _record(block: list[str]) -> Record:
    fields = _fields(block)
    title, abstract = (" ".join(fields[name]) for name in ("TI", "AB"))
    return {
        "id": " ".join(fields["PMID"]) or None,
        "text": title_and_abstract(title or " ".join(fields["BTI"]), abstract),
        "labels": headings(fields["MH"]),
        "time": publication_time(" ".join(fields["DP"][:1])),
    }


def _fields(block: list[str]) -> defaultdict[str, list[str]]:
    """Return the values of each field, lines that go on joined."""
    fields: defaultdict[str, list[str]] = defaultdict(list)
    name = ""
    for line in block:
        found = _field.match(line.rstrip())
        if found:
            name = found[1]
            fields[name].append((found[2] or "").strip())
        elif line.strip() and not line[0].isspace():
            needed = "a field such as 'TI  - ' or, after spaces, go on with one"
            raise ValueError(f"{short(line.strip())} must begin with {needed}")
        elif line.strip():
            fields[name][-1] = f"{fields[name][-1]} {line.strip()}".strip()
    return fields
