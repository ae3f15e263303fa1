"""The formats of corpora: the registry of readers, files and folders, and the columns of tables."""

import glob
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from reprlib import repr as short
from typing import Any

from polytopic.errors import CorpusError
from polytopic.lines import Source, file_error, source_name

Record = dict[str, Any]
REST = "columns that are not part of a document"  # their key in a record
LINE = "the line of JSON"  # its key in a record


@dataclass(frozen=True)
class Format:
    """A format that documents are read from.

    Parameters
    ----------
    reader : str
        Module in this package, and function in it that turns an open source into records.
    extensions : tuple of str
        File extensions, each also with ``.gz``.
    opener : str
        Module and function that opens a source: lines, by default.
    encoding : str
        Usual encoding.
    list_of_labels : str, optional
        Format that a file of labels next to such files seems to have, by its extension.
    """

    reader: str
    extensions: tuple[str, ...] = ()
    opener: str = "polytopic.lines:open_lines"
    encoding: str = "utf-8"
    list_of_labels: str | None = None

    def load_reader(self) -> Callable[..., Any]:
        """Import the function that turns an open source into records."""
        return _load(f"polytopic.corpus.{self.reader}")

    def load_opener(self) -> Callable[..., Any]:
        """Import the context manager that opens a source."""
        return _load(self.opener)


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


FORMATS = {
    "jsonl": Format("text_formats:json_records", (".jsonl", ".ndjson", ".json")),
    "csv": Format("text_formats:csv_records", (".csv",)),
    "tsv": Format("text_formats:tsv_records", (".tsv",)),
    "svmlight": Format("text_formats:svmlight_records", (".svm", ".svmlight", ".libsvm")),
    "text": Format("text_formats:text_records", (".txt",)),
    "arff": Format("arff:records", (".arff",), list_of_labels="pubmed"),
    "parquet": Format(
        "parquet:records", (".parquet", ".pq"), opener="polytopic.corpus.parquet:open_rows"
    ),
    "reuters": Format("references:reuters_records", (".sgm", ".sgml"), encoding="latin-1"),
    "ohsumed": Format("references:ohsumed_records"),
    "medline": Format("references:medline_records", (".medline", ".nbib")),
    "pubmed": Format("references:pubmed_records", (".xml",)),
    "annif": Format(
        "text_formats:annif_records",
        opener="polytopic.corpus.text_formats:open_annif",
        list_of_labels="tsv",
    ),
}


def find_format(
    format: str | None,
    name: str,
    *,
    default: str | None = None,
    known: Collection[str] = tuple(FORMATS),
) -> str:
    """Return the given format, else the one of the file extension, else the default."""
    if format is not None:
        if format not in known:
            raise ValueError(f"format == {format!r}, must be one of {', '.join(known)}.")
        return format
    guess = _format_of(name)
    if guess is not None and guess in known:
        return guess
    if default is None:
        raise CorpusError(
            f"{name!r} has no known file extension ({_extensions(known)}, each also with .gz). "
            f"Give the format: {', '.join(known)}."
        )
    return default


def _format_of(name: str) -> str | None:
    """Return the format that a file extension stands for."""
    base = name.lower().removesuffix(".gz")
    return next((key for key, format in FORMATS.items() if base.endswith(format.extensions)), None)


def _extensions(formats: Iterable[str]) -> str:
    return ", ".join(extension for format in formats for extension in FORMATS[format].extensions)


def find_sources(source: Source, format: str | None) -> tuple[str, Sequence[Source]]:
    """Return the format, and the files or the source to read, in order."""
    name = source_name(source)
    if not isinstance(source, (str, os.PathLike)) or source == "-":
        return find_format(format, name, default="jsonl"), [source]
    if os.path.isdir(source):
        format = find_format(format or _format_of_folder(name), name)
        return format, [source] if format == "annif" else _files_of_folder(name, format)
    if glob.has_magic(name) and not os.path.exists(name):
        return find_format(format, name), _matches(name)
    return find_format(format, name), [source]


def _format_of_folder(folder: str) -> str:
    formats = {_format_of(name) for name in _names(folder)} - {None}
    if "text" in formats:  # a folder with a file per document is Annif's
        formats = formats - {"text"} | {"annif"}
    formats -= {FORMATS[format].list_of_labels for format in formats if format}
    if not formats:
        raise CorpusError(
            f"{folder!r} is a folder without files of a known extension ({_extensions(FORMATS)}). "
            f"Give the format: {', '.join(FORMATS)}."
        )
    if len(formats) > 1:
        several = ", ".join(sorted(map(str, formats)))
        raise CorpusError(
            f"{folder!r} contains files of several formats ({several}). Give the format."
        )
    return str(formats.pop())


def _files_of_folder(folder: str, format: str) -> list[str]:
    """Return the files with an extension of the format; all files if it has none."""
    extensions = FORMATS[format].extensions
    names = [name for name in _names(folder) if not extensions or _format_of(name) == format]
    if not names:
        raise CorpusError(
            f"{folder!r} contains no {format} files (extensions: {', '.join(extensions) or 'any'})."
        )
    return [os.path.join(folder, name) for name in names]


def _names(folder: str) -> list[str]:
    """Return the names of the files in a folder, sorted, without hidden ones."""
    try:
        with os.scandir(folder) as entries:
            return sorted(e.name for e in entries if e.is_file() and not e.name.startswith("."))
    except OSError as error:
        raise file_error(folder, error) from error


def _matches(pattern: str) -> list[str]:
    paths = sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))
    if not paths:
        raise CorpusError(f"{pattern!r} matches no file.")
    return paths


def check_distinct(what: str, names: Iterable[str]) -> None:
    """Raise ValueError if a name occurs twice: it would be ambiguous."""
    distinct: set[str] = set()
    for name in names:
        if name in distinct:
            raise ValueError(f"{what} {short(name)} occurs twice, must occur once")
        distinct.add(name)


COLUMN_OPTIONS = {  # options of read_documents, and the fields of Columns that they set
    "text_column": "text",
    "labels_column": "labels",
    "id_column": "id",
    "time_column": "time",
    "label_separator": "separator",
}


@dataclass(frozen=True)
class Columns:
    """The columns of a table, or keys of a JSON object, that hold the parts of a document.

    Parameters
    ----------
    text : str
        Name of the column, or several names separated by commas, which become fields.
    labels, id, time : str
        Names of the columns.
    separator : str
        Separates the labels in a cell.
    """

    text: str = "text"
    labels: str = "labels"
    id: str = "id"
    time: str = "time"
    separator: str = ","

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "Columns":
        """Return the columns that options of :func:`read_documents` name."""
        return cls(
            **{field: options[name] for name, field in COLUMN_OPTIONS.items() if name in options}
        )

    def __post_init__(self) -> None:
        if not self.separator:
            raise ValueError("label_separator == '', must not be empty.")
        if not all(self.texts):
            raise ValueError(f"text_column == {self.text!r}, must be names separated by commas.")

    @property
    def texts(self) -> list[str]:
        """Names of the text columns."""
        return [name.strip() for name in self.text.split(",")]

    @property
    def required(self) -> list[str]:
        """Names that a table must have: the text, and whatever the caller named."""
        usual = Columns()
        pairs = [(self.labels, usual.labels), (self.id, usual.id), (self.time, usual.time)]
        return self.texts + [name for name, default in pairs if name != default]

    def record(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return a JSON object with the keys of a Document."""
        keys = {"labels": self.labels, "id": self.id, "time": self.time}
        record = values | {key: values.get(column) for key, column in keys.items()}
        if self.text != "text":
            record |= {"text": None, "counts": None, "fields": None} | self.content(values)
        return record

    def content(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the text, or the fields if there are several text columns."""
        missing = [name for name in self.texts if name not in values]
        if missing:
            raise ValueError(f"{missing[0]!r} is missing")
        if len(self.texts) == 1:
            return {"text": values[self.texts[0]]}
        return {"fields": {name: values[name] for name in self.texts}}

    def split_labels(self, cell: str) -> list[str]:
        """Return the labels in a cell, without surrounding space."""
        labels = (label.strip() for label in cell.split(self.separator))
        return [label for label in labels if label]
