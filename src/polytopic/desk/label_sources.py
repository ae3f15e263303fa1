"""Labels from news servers: from the categories of an article, or the section in its address."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from polytopic.desk.articles import Article
from polytopic.desk.errors import AcquisitionError

SOURCES = ("category", "section")


@dataclass(frozen=True)
class LabelMapping:
    """Which labels categories or sections stand for; those that it does not list give none.

    Parameters
    ----------
    source : {"category", "section"}
        Whether the categories of an article count, or the beginnings of the path of its address:
        of ``/sport/football/4711``, the sections are sport/football and sport.
    labels : mapping of str to list of str
        The labels of each category or section; upper and lower case are the same.
    """

    source: str
    labels: Mapping[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise ValueError(f"source == {self.source!r}, must be category or section.")

    @classmethod
    def from_file(cls, source: str, path: str | Path) -> LabelMapping:
        """Read a mapping: a JSON object, or lines of a category and its labels (CSV or TSV)."""
        path, labels = Path(path), dict[str, list[str]]()
        try:
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".json":
                pairs = _json_pairs(json.loads(text))
            else:
                separator = "\t" if path.suffix in (".tsv", ".tab") else ","
                rows = csv.reader(text.splitlines(), delimiter=separator, strict=True)
                pairs = [(row[0], row[1:]) for row in rows if row]
        except (OSError, UnicodeDecodeError, ValueError, csv.Error) as error:
            raise AcquisitionError(
                f"the mapping {str(path)!r} cannot be read ({error})."
            ) from error
        for name, own in pairs:
            labels.setdefault(_key(name), []).extend(filter(None, (one.strip() for one in own)))
        return cls(source, labels)

    def labels_of(self, article: Article) -> tuple[str, ...]:
        """Return the labels of an article."""
        names = article.categories if self.source == "category" else sections(article.address)
        own = {label for name in names for label in self.labels.get(_key(name), ())}
        return tuple(sorted(own))


def sections(address: str | None) -> list[str]:
    """Return the sections in the path of an address, the longest first."""
    parts = [part for part in unquote(urlsplit(address or "").path).split("/")[:-1] if part]
    return ["/".join(parts[:n]) for n in range(len(parts), 0, -1)]


def _key(name: str) -> str:
    return " ".join(name.casefold().split())


def _json_pairs(values) -> Iterable[tuple[str, list[str]]]:
    if not isinstance(values, dict):
        raise ValueError("it must be an object of categories and labels")
    pairs = [(name, [own] if isinstance(own, str) else own) for name, own in values.items()]
    for name, own in pairs:
        if not isinstance(own, list) or not all(isinstance(label, str) for label in own):
            raise ValueError(f"{name!r} must have a label or a list of labels")
    return pairs
