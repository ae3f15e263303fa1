"""Parquet, a batch of rows at a time."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from polytopic.corpus.formats import Columns, Record, check_distinct
from polytopic.errors import CorpusError
from polytopic.lines import GZIP_MAGIC, Source, file_error, source_name

BATCH = 256


class Rows:
    """Iterator of the rows of a file, each as a dict of the chosen columns.

    Attributes
    ----------
    first : int
        Number of the row; the first is 1.
    """

    def __init__(self, file: Any, name: str, groups: list[int] | None = None, before: int = 0):
        self.first = before
        self._file = file
        self._groups = groups
        self._name = name
        self._batches: Iterator[Any] = iter(())
        self._rows: Iterator[Record] = iter(())

    def choose(self, columns: Columns) -> "Rows":
        """Read the columns of a document; raise ValueError if a required one is missing."""
        names = _used_columns(self._file.schema_arrow.names, columns)
        self._batches = self._file.iter_batches(
            batch_size=BATCH, row_groups=self._groups, columns=names
        )
        return self

    @property
    def place(self) -> str:
        """The current row, for messages."""
        return f"{self._name}, row {max(self.first, 1)}"

    def start_record(self) -> None:
        """Do nothing: a row is a record."""

    def __iter__(self) -> "Rows":
        return self

    def __next__(self) -> Record:
        self.first += 1
        while (row := next(self._rows, None)) is None:
            self._rows = iter(self._batch())
        return row

    def _batch(self) -> list[Record]:
        try:
            return _without_nanoseconds(next(self._batches)).to_pylist()
        except (OSError, ValueError) as error:  # Arrow's errors are among them
            self._batches = iter(())
            reason = " ".join(str(error).split()).rstrip(".")
            raise ValueError(f"cannot be read further ({reason})") from error


class RowGroups:
    """Some row groups of a file, as the source of a reader.

    Parameters
    ----------
    source : path or binary file
        The file.
    groups : list of int or None
        Numbers of the row groups; None for all.
    rows_before : int
        Number of rows before the first of these groups, to number rows.
    """

    def __init__(self, source: Source, groups: list[int] | None, rows_before: int):
        self.source, self.groups, self.rows_before = source, groups, rows_before
        self.name = source_name(source)


def group_sizes(source: Source) -> list[int]:
    """Return the number of rows of each row group of a file."""
    with _open_file(source) as file:
        groups = range(file.metadata.num_row_groups)
        return [file.metadata.row_group(group).num_rows for group in groups]


def records(rows: Rows, *, columns: Columns) -> Iterator[Record | None]:
    """Return the rows as records."""
    return map(partial(_record, columns=columns), rows.choose(columns))


@contextmanager
def open_rows(source: Source | RowGroups, **_: Any) -> Iterator[Rows]:
    """Open a file, or some of its row groups; Parquet needs neither encoding nor limits."""
    part = source if isinstance(source, RowGroups) else RowGroups(source, None, 0)
    with _open_file(part.source) as file:
        yield Rows(file, part.name, part.groups, part.rows_before)


def _open_file(source: Source) -> Any:
    """Open a file."""
    parquet, name = _pyarrow(), source_name(source)
    _check_source(source, name)
    try:
        return parquet.ParquetFile(source, memory_map=False)
    except FileNotFoundError as error:
        raise file_error(name, error) from error
    except (OSError, ValueError) as error:  # Arrow's errors are among them
        if isinstance(error, OSError) and error.errno:
            raise file_error(name, error) from error
        raise CorpusError(f"{name!r} is not a Parquet file, or is damaged.") from error


def _check_source(source: Any, name: str) -> None:
    """Raise for a source that cannot be read from its end, where Parquet lists the columns."""
    if isinstance(source, (str, os.PathLike)) and source != "-":
        try:
            with open(source, "rb") as file:
                zipped = file.read(2) == GZIP_MAGIC
        except OSError as error:
            raise file_error(source, error) from error
        if zipped:
            raise CorpusError(f"{name!r} is gzipped, must be a plain Parquet file.")
    elif not (hasattr(source, "seekable") and source.seekable()):
        raise CorpusError(f"{name}: Parquet cannot be read from a stream, must be a file.")


def _pyarrow() -> Any:
    """Import pyarrow, an optional dependency."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise CorpusError(
            "pyarrow is not installed. Install it with: pip install 'polytopic[formats]'"
        ) from None
    return parquet


def _used_columns(names: list[str], columns: Columns) -> list[str]:
    check_distinct("column", names)
    missing = [name for name in columns.required if name not in names]
    if missing:
        raise ValueError(f"column {missing[0]!r} is missing, the file has {', '.join(names)}")
    used = [*columns.texts, columns.labels, columns.id, columns.time, "split"]
    return [name for name in dict.fromkeys(used) if name in names]


def _without_nanoseconds(batch: Any) -> Any:
    """Return a batch with times that Python can represent."""
    import pyarrow

    fields = [
        field.with_type(pyarrow.timestamp("us", tz=field.type.tz))
        if pyarrow.types.is_timestamp(field.type)
        else field
        for field in batch.schema
    ]
    return pyarrow.Table.from_batches([batch]).cast(pyarrow.schema(fields), safe=False)


def _record(row: Record, columns: Columns) -> Record:
    labels = row.get(columns.labels)
    if isinstance(labels, str):
        labels = columns.split_labels(labels)
    time = row.get(columns.time)
    return columns.content(row) | {
        "labels": labels,
        "id": row.get(columns.id),
        "time": None if time == "" else time,
        "split": row.get("split"),
    }
