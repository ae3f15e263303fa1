"""Annif's corpora: short texts in TSV, and folders of whole documents."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from polytopic.corpus.formats import Columns, Record
from polytopic.lines import Lines, Source, file_error, open_lines, raw_lines

ENDINGS = (".txt", ".txt.gz")
SUBJECTS = (".tsv", ".key")  # the first that exists lists the labels


@contextmanager
def open_source(source: Source, *, encoding: str, max_bytes: int) -> Iterator["Lines | Folder"]:
    """Open a TSV file or a folder of documents."""
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        yield Folder(source, encoding=encoding, max_bytes=max_bytes)
    else:
        with open_lines(source, encoding=encoding, max_bytes=max_bytes) as lines:
            yield lines


def records(place: "Lines | Folder", *, columns: Columns) -> Iterator[Record | None]:
    """Return the documents of a folder, or the texts of a TSV file with their URIs."""
    return place if isinstance(place, Folder) else map(_record, place)


def _record(line: str) -> Record | None:
    if not line.strip():
        return None
    text, tab, uris = line.rstrip("\r\n").partition("\t")
    if not tab:
        raise ValueError("has no tab, must be a text, a tab, and URIs separated by spaces")
    return {"text": text, "labels": [_label(uri) for uri in uris.split()]}


def _label(value: str) -> str:
    return value[1:-1] if value[:1] == "<" and value[-1:] == ">" else value


class Folder:
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
        return [name for name in names if name.endswith(ENDINGS) and not name.startswith(".")]

    @property
    def place(self) -> str:
        """The current file."""
        return os.path.join(self._path, self._name)

    def start_record(self) -> None:
        """Start with the next file."""
        self.first += 1

    def __iter__(self) -> "Folder":
        return self

    def __next__(self) -> Record:
        self._name = next(self._names)
        text = "".join(self._read(self._name))
        stem = self._name.removesuffix(".gz").removesuffix(".txt")
        return {"id": stem, "text": text, "labels": self._labels(stem)}

    def _labels(self, stem: str) -> list[str]:
        for ending in SUBJECTS:
            if os.path.exists(os.path.join(self._path, stem + ending)):
                self._name = stem + ending  # named if it is invalid
                cells = (line.partition("\t")[0].strip() for line in self._read(stem + ending))
                return [_label(cell) for cell in cells if cell]
        return []

    def _read(self, name: str) -> list[str]:
        with raw_lines(os.path.join(self._path, name), self._max_bytes) as raw:
            lines = self._lines(raw)
            try:
                return list(lines)
            except ValueError as error:
                raise ValueError(f"{error} in line {lines.number}") from None
