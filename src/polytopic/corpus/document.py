"""A document: its content, labels and time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from numbers import Real
from reprlib import repr as short
from typing import Any

from polytopic.parameters import LARGEST_COUNT


@dataclass(frozen=True, slots=True)
class Document:
    """A document, with exactly one of ``text``, ``counts`` and ``fields`` as its content.

    Parameters
    ----------
    id : str
        Id of the document; an integer becomes a string.
    text : str, optional
        The text; it may be empty.
    counts : mapping of str to number, optional
        Terms and their counts, each a number > 0 and <= 2**53.
    labels : iterable of str
        Stored sorted, without duplicates.
    time : datetime, date or ISO 8601 string, optional
        Stored as a datetime with a time zone, so that any two can be compared: UTC if none is
        given, and midnight if only a date is.
    split : str, optional
        Part of the corpus, such as ``"train"`` or ``"test"``.
    fields : mapping of str to str, optional
        Texts by name, such as title and body.

    Examples
    --------
    >>> Document("1", text="Wheat rose.", labels=["wheat", "grain"], time="1987-02-26").to_dict()
    {'id': '1', 'text': 'Wheat rose.', 'labels': ['grain', 'wheat'],
     'time': '1987-02-26T00:00:00+00:00'}
    """

    id: str
    text: str | None = None
    counts: Mapping[str, float] | None = None
    labels: tuple[str, ...] = ()
    time: datetime | None = None
    split: str | None = None
    fields: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        _check_one_content(self)
        values = {
            "id": _id(self.id),
            "text": _string("text", self.text),
            "counts": _counts(self.counts),
            "labels": _labels(self.labels),
            "time": None if self.time is None else parse_time("time", self.time),
            "split": _string("split", self.split) or None,
            "fields": _fields(self.fields),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def content(self) -> str | Mapping[str, float] | Mapping[str, str]:
        """What an analyzer reads: the counts, the fields or the text."""
        if self.counts is not None:
            return self.counts
        return self.fields if self.fields is not None else self.text or ""

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any], *, id: str | None = None) -> "Document":
        """Return the document of a JSON object; ``id`` is the default for its id.

        Unknown keys are ignored. A value of the wrong type raises ValueError with its key.
        """
        given_id = mapping.get("id")
        labels = mapping.get("labels")
        return cls(
            id=id if given_id is None else given_id,  # type: ignore[arg-type]  # checked by the constructor
            text=mapping.get("text"),
            counts=mapping.get("counts"),
            labels=() if labels is None else labels,
            time=mapping.get("time"),
            split=mapping.get("split"),
            fields=mapping.get("fields"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return this document as a JSON object, without keys that are not set."""
        values = {
            "id": self.id,
            "text": self.text,
            "counts": self.counts,
            "fields": self.fields,
            "labels": list(self.labels),
            "time": self.time and self.time.isoformat(),
            "split": self.split,
        }
        return {name: value for name, value in values.items() if value is not None}


def parse_time(name: str, value: Any) -> datetime:
    """Return a datetime with a time zone from a datetime, a date or an ISO 8601 string."""
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        elif not isinstance(value, datetime):
            value = datetime.combine(value, time())
    except (TypeError, ValueError):
        raise _invalid(name, value, "an ISO 8601 time, such as '2024-05-31T12:00:00Z'") from None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _check_one_content(document: Document) -> None:
    contents = {"text": document.text, "counts": document.counts, "fields": document.fields}
    names = [name for name, content in contents.items() if content is not None]
    if not names:
        raise ValueError("text is missing, a document must have one of text, counts and fields.")
    if len(names) > 1:
        raise ValueError(
            f"{' and '.join(names)} are given, must be only one of text, counts and fields."
        )


def _id(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise _invalid("id", value, "a non-empty string or an integer")
    return value


def _string(name: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise _invalid(name, value, "a string")
    return value


def _labels(value: Any) -> tuple[str, ...]:
    if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
        raise _invalid("labels", value, "a list of strings")
    labels = list(value)
    if not all(isinstance(label, str) and label for label in labels):
        raise _invalid("labels", labels, "a list of non-empty strings")
    return tuple(sorted(set(labels)))


def _counts(value: Any) -> dict[str, float] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise _invalid("counts", value, "an object of terms and numbers")
    if _plain(value):
        return dict(value)
    return {_name("counts", term): _count(term, count) for term, count in value.items()}


def _plain(counts: Mapping[Any, Any]) -> bool:
    """Return whether all counts are valid integers; otherwise each one is checked."""
    numbers = counts.values()
    if set(map(type, numbers)) != {int} or set(map(type, counts)) != {str}:
        return False
    return min(numbers) > 0 and max(numbers) <= LARGEST_COUNT


def _count(term: str, value: Any) -> float:
    number = isinstance(value, Real) and not isinstance(value, bool)
    count = value if type(value) is int or not number else float(value)
    if not number or not 0 < count <= LARGEST_COUNT:  # false for NaN as well
        raise _invalid(f"counts[{short(term)}]", value, "a number > 0 and <= 2**53")
    return count


def _fields(value: Any) -> dict[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise _invalid("fields", value, "an object of names and strings")
    for name, text in value.items():
        if not isinstance(text, str):
            raise _invalid(f"fields[{short(_name('fields', name))}]", text, "a string")
    return {_name("fields", name): text for name, text in value.items()}


def _name(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{where} has the key {short(value)}, must be a string.")
    return value


def _invalid(name: str, value: Any, needed: str) -> ValueError:
    return ValueError(f"{name} == {short(value)}, must be {needed}.")
