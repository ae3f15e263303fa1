"""Tables with a header: CSV and TSV."""

import csv
from collections.abc import Iterator
from functools import partial

from polytopic.corpus.formats import REST, Columns, Record, check_distinct
from polytopic.lines import Lines


def records(lines: Lines, *, columns: Columns, delimiter: str) -> Iterator[Record | None]:
    """Return the rows under a header, each as a record."""
    csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))  # Lines holds the limit
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    header = [name.strip() for name in next(filter(None, rows), [])]
    check_distinct("column", filter(None, header))  # spreadsheets add columns without a name
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
