"""Formats of corpora: their names, endings and columns."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from reprlib import repr as short
from typing import Any

from polytopic.errors import CorpusError

FORMATS = {
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "csv": (".csv",),
    "tsv": (".tsv",),
    "svmlight": (".svm", ".svmlight", ".libsvm"),
    "text": (".txt",),
    "arff": (".arff",),
    "parquet": (".parquet", ".pq"),
    "reuters": (".sgm", ".sgml"),
    "ohsumed": (),
    "medline": (".medline", ".nbib"),
    "pubmed": (".xml",),
    "annif": (),
}
WRITTEN = ("jsonl", "csv", "tsv", "svmlight", "text", "annif")
DELIMITERS = {"csv": ",", "tsv": "\t"}

Record = dict[str, Any]
REST = "columns that are no part of a document"  # their key in a record
LINE = "the line that it was read from"


def find_format(
    format: str | None,
    name: str,
    *,
    default: str | None = None,
    known: Collection[str] = tuple(FORMATS),
) -> str:
    """Return the format asked for, else the one of the name's ending, else the default."""
    if format is not None:
        if format not in known:
            raise ValueError(f"format == {format!r}, must be one of {', '.join(known)}.")
        return format
    found = format_of(name)
    if found is not None and found in known:
        return found
    if default is None:
        endings = tuple(ending for each in known for ending in FORMATS[each])
        raise CorpusError(
            f"{name!r} has no known ending ({', '.join(endings)}, each also with .gz). "
            f"Give the format: {', '.join(known)}."
        )
    return default


def format_of(name: str) -> str | None:
    """Return the format that the ending of a name tells."""
    base = name.lower().removesuffix(".gz")
    return next((each for each, endings in FORMATS.items() if base.endswith(endings)), None)


def check_distinct(what: str, names: Iterable[str]) -> None:
    """Refuse names of which one occurs twice: nobody could tell which of the two is meant."""
    known: set[str] = set()
    for name in names:
        if name in known:
            raise ValueError(f"{what} {short(name)} occurs twice, must occur once")
        known.add(name)


@dataclass(frozen=True)
class Columns:
    """Where the parts of a document are in a table, or in a JSON object.

    Parameters
    ----------
    text : str
        Name of the column, or several names with commas between: these become fields.
    labels, id, time : str
        Names of the columns.
    separator : str
        What stands between two labels.
    """

    text: str = "text"
    labels: str = "labels"
    id: str = "id"
    time: str = "time"
    separator: str = ","

    def __post_init__(self) -> None:
        if not self.separator:
            raise ValueError("label_separator == '', must not be empty.")
        if not all(self.texts):
            raise ValueError(f"text_column == {self.text!r}, must be names with commas between.")

    @property
    def texts(self) -> list[str]:
        """Names of the columns that hold text."""
        return [name.strip() for name in self.text.split(",")]

    @property
    def required(self) -> list[str]:
        """Names that a table must have: the text, and whatever was named on purpose."""
        usual = Columns()
        pairs = [(self.labels, usual.labels), (self.id, usual.id), (self.time, usual.time)]
        return self.texts + [name for name, default in pairs if name != default]

    def record(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return a JSON object with the keys that a Document has for its parts."""
        own = values | {name: values.get(getattr(self, name)) for name in ("labels", "id", "time")}
        if self.text != "text":
            own |= {"text": None, "counts": None, "fields": None} | self.content(values)
        return own

    def content(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the text, or the fields where there are several columns of text."""
        missing = [name for name in self.texts if name not in values]
        if missing:
            raise ValueError(f"{missing[0]!r} is missing")
        if len(self.texts) == 1:
            return {"text": values[self.texts[0]]}
        return {"fields": {name: values[name] for name in self.texts}}

    def split_labels(self, cell: str) -> list[str]:
        """Return the labels in a cell, without the space around them."""
        labels = (label.strip() for label in cell.split(self.separator))
        return [label for label in labels if label]
