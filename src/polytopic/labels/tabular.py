"""Trees of labels as tables: CSV and TSV."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polytopic.errors import LabelWarning, PolytopicError
from polytopic.files import new_file
from polytopic.lines import read_bytes

if TYPE_CHECKING:
    from polytopic.labels.tree import LabelTree

URI = re.compile(r"(?:https?://|urn:)[^\x00-\x20<>\"{}|\\^`\x7f-\xa0]+")
NEEDED = "needs id, parent[, name]"


class Column(NamedTuple):
    """The kind of a column and, for names, the language."""

    kind: str
    language: str = ""


ID, PARENT, NAME, NOTATION = map(Column, ("id", "parent", "name", "notation"))
IDS = ("uri", "id", "child", "label")  # the first of them in a header
PLAIN, SUBJECTS = (ID, PARENT, NAME), (ID, NAME, NOTATION)  # without a header


def read(path: Path) -> dict[str, dict[str, Any]]:
    """Return the parts of a tree: parents, names, alternatives and notations."""
    parents: dict[str, str | None] = {}
    names: dict[str, dict[str, str]] = {}
    alternatives: dict[str, dict[str, list[str]]] = {}
    notations: dict[str, str] = {}
    for line, row in _rows(path):
        label, parent = row.pop(ID, ""), row.pop(PARENT, "") or None
        if not label:
            raise ValueError(f"{str(path)!r} has no label in line {line}.")
        if parents.setdefault(label, parent) != parent:
            raise ValueError(
                f"label {label!r} has two parents in {str(path)!r}, {parents[label] or ''!r} "
                f"and {parent or ''!r} (line {line}); a tree allows one."
            )
        if notation := row.pop(NOTATION, ""):
            notations[label] = notation
        for (kind, language), cell in row.items():
            if kind == "name" and cell:
                names.setdefault(label, {})[language] = cell
            elif kind == "alt":
                alternatives.setdefault(label, {})[language] = _split(cell)
    return {
        "parents": parents,
        "names": names,
        "alternatives": alternatives,
        "notations": notations,
    }


def write(tree: LabelTree, path: Path) -> None:
    """Write a tree as a table with a header."""
    tabs = path.suffix.lower() == ".tsv"
    if not tabs and path.suffix.lower() != ".csv":
        raise ValueError(f"{str(path)!r} must end in .ttl, .rdf, .nt, .csv or .tsv.")
    columns = _columns(tree)
    uris = all(URI.fullmatch(label) for label in tree.nodes)
    rows = [[_title(column, uris) for column in columns]]
    for label in tree.nodes:
        _check(label, tabs)
        rows.append([_cell(tree, label, column) for column in columns])
    text = io.StringIO(newline="")
    if tabs:
        text.writelines("\t".join(row) + "\n" for row in rows)
    else:
        csv.writer(text).writerows(rows)
    with new_file(path, PolytopicError) as file:
        file.write(text.getvalue().encode())


# Reading


def _rows(path: Path) -> Iterator[tuple[int, dict[Column, str]]]:
    """Yield the line number and the cells by column of each row below the header."""
    lines = _read_cells(path)
    if not lines:
        return
    columns = _read_header(path, lines[0][1])
    if columns is not None:
        del lines[0]
    elif lines[0][1][0] != _bare(lines[0][1][0]):
        columns = list(SUBJECTS)
    else:
        columns = list(PLAIN)
    for line, cells in lines:
        if len(cells) > len(columns):
            raise ValueError(f"{str(path)!r} has {len(cells)} columns in line {line}, {NEEDED}.")
        row = {column: cell for column, cell in zip(columns, cells, strict=False) if column}
        yield line, row | {key: _bare(row[key]) for key in (ID, PARENT) if key in row}


def _read_cells(path: Path) -> list[tuple[int, list[str]]]:
    """Return line number and cells of each row that is not blank."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{str(path)!r} is not valid UTF-8 (byte {error.start + 1}).") from None
    lines, ending = io.StringIO(text, newline=""), path.suffix.lower()
    if ending == ".tsv" or (ending != ".csv" and "\t" in text):
        reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(lines, strict=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise ValueError(
            f"{str(path)!r} is not valid CSV: line {reader.line_num}, {error}."
        ) from None
    return [(line, row) for line, row in rows if any(row)]


def _read_header(path: Path, cells: list[str]) -> list[Column | None] | None:
    """Return the columns, None for an unknown one; None if this is not a header."""
    titles = [cell.lower() for cell in cells]
    known = all(title in IDS or _meaning(title) for title in titles)
    if titles[0] not in IDS and "uri" not in titles and not (known and set(titles) & set(IDS)):
        return None
    label = next(title for title in IDS if title in titles)
    columns = [ID if title == label else _meaning(title) for title in titles]
    said = [column for column in columns if column]
    twice = next((column for column in said if said.count(column) > 1), None)
    if twice:
        same = [cell for cell, column in zip(cells, columns, strict=True) if column == twice]
        raise ValueError(
            f"{str(path)!r} has the columns {' and '.join(same)}, which mean the same; keep one."
        )
    if len(columns) > 1 and not any(column not in (ID, None) for column in columns):
        raise ValueError(f"{str(path)!r} has the header {', '.join(cells)}; {NEEDED}.")
    ignored = [cell for cell, column in zip(cells, columns, strict=True) if column is None]
    if ignored:
        sentence = f"{str(path)!r}: the columns {', '.join(ignored)} are ignored."
        warnings.warn(sentence, LabelWarning, stacklevel=2)
    return columns


def _meaning(title: str) -> Column | None:
    """Return the column with this title, None if it is unknown."""
    kind, _, language = title.partition("_")
    if kind in ("parent", "broader"):
        return PARENT
    kind = {"label": "name", "preflabel": "name", "altlabel": "alt"}.get(kind, kind)
    if kind in ("name", "alt"):
        return Column(kind, language.replace("_", "-"))
    return NOTATION if title == "notation" else None


def _bare(label: str) -> str:
    """Return a URI without the angle brackets around it."""
    inner = label.removeprefix("<").removesuffix(">")
    return inner if len(inner) == len(label) - 2 and URI.fullmatch(inner) else label


def _split(cell: str) -> list[str]:
    r"""Return the names in a cell; ``\`` escapes ``|`` and itself."""
    parts = re.findall(r"(?:[^|\\]|\\.?)+", cell, flags=re.DOTALL)
    return [re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL) for part in parts]


# Writing


def _columns(tree: LabelTree) -> list[Column]:
    """Return the columns of a tree."""
    names = {language for found in tree.names.values() for language in found}
    others = {language for found in tree.alternatives.values() for language in found}
    columns = [ID, PARENT, *(Column("name", language) for language in sorted(names))]
    columns += [Column("alt", language) for language in sorted(others)]
    return [*columns, NOTATION] if tree.notations else columns


def _title(column: Column, uris: bool) -> str:
    kind = {"id": "uri" if uris else "id", "name": "label"}.get(column.kind, column.kind)
    return f"{kind}_{column.language}" if column.language else kind


def _cell(tree: LabelTree, label: str, column: Column) -> str:
    kind, language = column
    if kind == "id":
        return label
    if kind == "parent":
        return tree.parent(label) or ""
    if kind == "notation":
        return tree.notations.get(label, "")
    if kind == "name":
        return tree.names.get(label, {}).get(language, "")
    others = tree.alternatives.get(label, {}).get(language, ())
    return "|".join(re.sub(r"([|\\])", r"\\\1", name) for name in others)


def _check(label: str, tabs: bool) -> None:
    """Raise if a label would be read as another one."""
    if label != label.strip() or label != _bare(label):
        raise ValueError(
            f"label {label!r} has space or angle brackets around it, which a table cannot "
            "represent; write SKOS (.ttl)."
        )
    if tabs and re.search(r"[\t\r\n]", label):
        raise ValueError(
            f"label {label!r} contains a tab or line end, which TSV cannot represent; write CSV."
        )
