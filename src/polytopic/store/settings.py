"""What a store is: its analyzer, fields, tree and model, kept in the database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, inspect, select, update

from polytopic.errors import DamagedError, StoreError
from polytopic.labels import LabelTree
from polytopic.parameters import LARGEST_COUNT, check_number
from polytopic.store import erasure, tables
from polytopic.store.database import among, fetch
from polytopic.store.packing import MultisetDigest, read_json
from polytopic.store.seals import seal
from polytopic.text import Analyzer


@dataclass(frozen=True)
class Settings:
    """The settings of a store; equal analyzers and fields make equal terms of texts."""

    analyzer: Analyzer
    fields: Mapping[str, float] | None
    model: str
    keep_texts: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        return {
            "analyzer": self.analyzer.to_dict(),
            "fields": self.fields and dict(self.fields),
            "model": self.model,
            "keep_texts": self.keep_texts,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """Return what :meth:`to_dict` gave."""
        return cls(**dict(values) | {"analyzer": Analyzer.from_dict(values["analyzer"])})

    @classmethod
    def new(cls, *, language, analyzer, fields, model, keep_texts) -> Settings:
        """Return the settings of a new store, with defaults for what is None."""
        from polytopic.labeler.learning import named_model  # here: it loads all models

        named_model(model or "pmm1")
        analyzer = analyzer or Analyzer(language or "en")
        analyzer.terms("")  # refuses settings that make no sense
        for name, weight in (fields or {}).items():
            check_number(weight, f"fields[{name!r}]", min_val=0, max_val=LARGEST_COUNT)
            if weight % 1:
                raise ValueError(
                    f"fields[{name!r}] == {weight}, must be a whole number: a store counts exactly."
                )
        return cls(analyzer, fields, model or "pmm1", bool(keep_texts))

    def check(self, name: str, *, language, analyzer, fields, model, keep_texts) -> None:
        """Refuse settings that are given and are not those of the store."""
        given = {
            "language": (language, self.analyzer.language),
            "analyzer": (analyzer, self.analyzer),
            "fields": (fields, self.fields),
            "model": (model, self.model),
            "keep_texts": (keep_texts, self.keep_texts),
        }
        for what, (value, own) in given.items():
            if value is not None and value != own:
                raise StoreError(
                    f"{name} has {what} == {own!r}, not {value!r}; leave it out, or make a new "
                    "store."
                )


def create(connection: Connection, settings: Settings) -> None:
    """Make the tables of a new store."""
    tables.metadata.create_all(connection)
    values = settings.to_dict() | {"schema": tables.SCHEMA}
    rows = [{"name": name, "value": json.dumps(value)} for name, value in values.items()]
    connection.execute(insert(tables.settings), rows)
    start = {"id": 1, "revision": 0, "digest": MultisetDigest().sums, "published": 0}
    connection.execute(insert(tables.state), start | {"current_model": None})
    erasure.note(connection, erasure.Traces.NONE)
    seal(connection, "settings")


def read(connection: Connection, name: str) -> Settings | None:
    """Return the settings of the store in a database; None if there is none."""
    found = inspect(connection).get_table_names()
    if tables.settings.name not in found:
        if connection.dialect.name == "sqlite" and found:
            raise StoreError(f"{name} is a database of something else, not a polytopic store.")
        return None
    rows = fetch(connection, select(tables.settings))
    values = {row.name: read_json(row.value, f"its setting {row.name!r}") for row in rows}
    schema = values.pop("schema", None)
    if not isinstance(schema, int):
        raise DamagedError("its settings do not say which schema it has")
    if schema not in tables.SCHEMAS:
        newer = schema > tables.SCHEMA
        raise StoreError(
            f"{name} was made by {'a newer' if newer else 'an older'} polytopic (schema {schema}, "
            f"this release works with {tables.SCHEMA}); "
            f"{'install a newer release' if newer else 'export it with the release it is of'}."
        )
    try:
        return Settings.from_dict(values)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedError(f"its settings cannot be read ({error})") from error


# The tree of labels


def read_tree(connection: Connection) -> LabelTree | None:
    """Return the tree of labels, if there is one."""
    columns = tables.labels.c
    rows = fetch(connection, select(columns.label, columns.about).where(columns.about.is_not(None)))
    if not rows:
        return None
    about = {label: read_json(text, "the tree of labels") for label, text in rows}
    parts = ("parents", "names", "alternatives", "notations")
    try:
        return LabelTree.from_dict(
            {
                part: {label: told[part] for label, told in about.items() if part in told}
                for part in parts
            }
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedError(f"the tree of labels cannot be read ({error})") from error


def write_tree(connection: Connection, tree: LabelTree | None) -> None:
    """Put another tree in the place of the one there is."""
    table, parts = tables.labels, {} if tree is None else tree.to_dict()
    connection.execute(update(table).values(about=None))
    nodes = () if tree is None else tree.nodes
    about = {
        label: json.dumps({part: told[label] for part, told in parts.items() if label in told})
        for label in nodes
    }
    known = among(connection, table.c.label, list(about))
    present = {label for (label,) in fetch(connection, select(table.c.label).where(known))}
    for label, text in about.items():
        if label in present:
            connection.execute(update(table).where(table.c.label == label).values(about=text))
        else:
            row = {"label": label, "documents": 0, "about": text}
            connection.execute(insert(table), row)
    unused = (table.c.documents == 0) & table.c.about.is_(None)
    connection.execute(delete(table).where(unused))
    seal(connection, "tree")
