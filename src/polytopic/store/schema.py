"""The schema of a store: its tables, its settings, its state and its tree of labels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from reprlib import repr as short
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    Table,
    Text,
    delete,
    insert,
    inspect,
    select,
    update,
)

from polytopic.errors import ContentError, DamagedError, StoreError
from polytopic.labeler import Labeler
from polytopic.labeler.learning import new_model
from polytopic.labeler.tuned_rule import check_rule_name, named_rule
from polytopic.labels import LabelTree
from polytopic.models.registry import DEFAULT_COUNT_MODEL, find_model
from polytopic.store.database import can_store, fetch, is_one_of
from polytopic.store.encoding import MultisetDigest, read_json
from polytopic.text import Analyzer
from polytopic.text.counting import check_fields

SCHEMA = 3  # schemas 1 and 2 have no topics; Store upgrades them
SCHEMAS = (1, 2, SCHEMA)  # that this release opens
metadata = MetaData()


def _table(name, *columns, **options):
    return Table(f"polytopic_{name}", metadata, *columns, **options)


def _texts(*names):
    """Return columns of text that is never null."""
    return [Column(name, Text, nullable=False) for name in names]


# The schema, the analyzer and the other settings. Values are JSON.
settings = _table(
    "settings", Column("name", Text, primary_key=True), Column("value", Text, nullable=False)
)

# One row: the number of changes so far, the digest of the counted documents, how many models were
# ever published, and the current one. A writer locks this row.
state = _table(
    "state",
    Column("id", Integer, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("published", BigInteger, nullable=False),
    Column("current_model", BigInteger),
)

# Labels with the number of their documents; "about" is the label's node in the tree, JSON.
labels = _table(
    "labels",
    Column("label", Text, primary_key=True),
    Column("documents", BigInteger, nullable=False),
    Column("about", Text),
)

# Terms by number, many per page: a JSON list of terms (null for a deleted one), and for each the
# number of labelled documents and the number of ledger rows that contain it, four bytes each.
terms = _table(
    "terms",
    Column("page", BigInteger, primary_key=True, autoincrement=False),
    Column("names", Text, nullable=False),
    Column("documents", LargeBinary, nullable=False),
    Column("uses", LargeBinary, nullable=False),
)

# Label sets (a JSON list, with its digest as the key), the number of their documents, and their
# term counts.
label_sets = _table(
    "label_sets",
    Column("key", Text, primary_key=True),
    Column("labels", Text, nullable=False),
    Column("documents", BigInteger, nullable=False),
    Column("terms", LargeBinary, nullable=False),
    Column("counts", LargeBinary, nullable=False),
)

# The ledger. Each version of a document has a row, which is valid from the revision "learned" until
# "replaced"; "first" is when the document was first learned. Terms are numbers, in the order of the
# names. In SQLite, a deleted row is blank, and its "learned" is 0.
documents = _table(
    "documents",
    Column("row", Integer().with_variant(BigInteger, "postgresql"), primary_key=True),
    Column("document", Text, nullable=False),
    Column("labels", Text, nullable=False),
    Column("time", Text),
    Column("first", BigInteger, nullable=False),
    Column("learned", BigInteger, nullable=False),
    Column("replaced", BigInteger),
    Column("terms", LargeBinary, nullable=False),
    Column("counts", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("text", Text),
)
_is_current = documents.c.replaced.is_(None)
Index(
    "polytopic_current",
    documents.c.document,
    unique=True,
    sqlite_where=_is_current,
    postgresql_where=_is_current,
)
Index(
    "polytopic_former",
    documents.c.document,
    sqlite_where=~_is_current,
    postgresql_where=~_is_current,
)

# What models have assigned to documents: a JSON list of label, score and probability; the share of
# the words that the model knew; the number of the model, null if none was published, and the
# revision of its documents. An assignment is current until "replaced", which is a time.
assignments = _table(
    "assignments",
    Column("id", Integer().with_variant(BigInteger, "postgresql"), primary_key=True),
    *_texts("document", "topics"),
    Column("known", Double, nullable=False),
    Column("model", BigInteger),
    Column("revision", BigInteger),
    Column("time", Text, nullable=False),
    Column("replaced", Text),
)
_is_assigned = assignments.c.replaced.is_(None)
Index(
    "polytopic_assigned",
    assignments.c.document,
    unique=True,
    sqlite_where=_is_assigned,
    postgresql_where=_is_assigned,
)
Index(
    "polytopic_reassigned",
    assignments.c.document,
    sqlite_where=~_is_assigned,
    postgresql_where=~_is_assigned,
)

# The topics of the documents, by row of the ledger: their own labels, with probability 1, or those
# that are assigned to documents without labels. Each document also has the label "", so that one
# index finds documents by topic and time, or by time alone.
topics = _table(
    "topics",
    Column("label", Text, primary_key=True),
    Column("time", Text, primary_key=True),
    Column("row", BigInteger, primary_key=True, autoincrement=False),
    Column("probability", Double, nullable=False),
    sqlite_with_rowid=False,  # the key is the table, which halves it
)

# What is known about documents that the news desk has acquired: MinHash signatures mark copies.
articles = _table(
    "articles",
    Column("document", Text, primary_key=True),
    Column("address", Text),
    Column("author", Text),
    Column("language", Text),
    Column("duplicate_of", Text),
    Column("signature", LargeBinary),
    sqlite_with_rowid=False,
)

# Addresses that the news desk has fetched, and what servers gave to ask for changes; the document
# is null for a list of articles, and for a page without one.
visits = _table(
    "visits",
    Column("address", Text, primary_key=True),
    Column("document", Text),
    Column("etag", Text),
    Column("modified", Text),
    Column("time", Text, nullable=False),
    sqlite_with_rowid=False,
)

# The log of changes: receipts, JSON with counts instead of ids and labels.
revisions = _table(
    "revisions",
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    *_texts("time", "receipt"),
)

# How many documents first learned at one revision were deleted at another.
forgotten = _table(
    "forgotten",
    Column("learned", BigInteger, primary_key=True, autoincrement=False),
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("documents", BigInteger, nullable=False),
)

# Published models: safetensors with their manifest, the selection that they were fitted on (JSON),
# and the revision at which one of their documents was deleted.
models = _table(
    "models",
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    *_texts("time", "name", "origin"),
    Column("note", Text),
    Column("marked", BigInteger),
    Column("content", LargeBinary, nullable=False),
)

# Access tokens for the service: their digests only.
tokens = _table(
    "tokens",
    Column("digest", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("role", Text, nullable=False),
    Column("time", Text, nullable=False),
)

# Seals: digests of the contents of tables at a revision. Stores of earlier releases have none yet.
seals = _table(
    "seals",
    Column("name", Text, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False),
)

# Requests with an idempotency key, so that a repeated request gets the same receipt: a digest of
# the key, one of the request, and the receipt without ids and labels (see receipts.py).
requests = _table(
    "requests",
    Column("key", Text, primary_key=True),
    *_texts("request", "receipt", "time"),
)


# Settings


@dataclass(frozen=True)
class Settings:
    """The settings of a store. Stores with equal analyzers and fields count texts alike."""

    analyzer: Analyzer
    fields: Mapping[str, float] | None
    model: str
    keep_texts: bool
    rule: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        return {
            "analyzer": self.analyzer.to_dict(),
            "fields": self.fields and dict(self.fields),
            "model": self.model,
            "keep_texts": self.keep_texts,
            "rule": self.rule,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """Return the settings that :meth:`to_dict` describes."""
        stored = cls(**dict(values) | {"analyzer": Analyzer.from_dict(values["analyzer"])})
        _check_fields(stored.fields)
        for name, kind in (("model", str), ("keep_texts", bool)):
            if not isinstance(values[name], kind):
                raise TypeError(f"{name} == {values[name]!r}, must be of type {kind.__name__}")
        if stored.rule is not None:
            check_rule_name(stored.rule)
        return stored

    @classmethod
    def new(cls, *, language, analyzer, fields, model, keep_texts, rule=None) -> Settings:
        """Return the settings of a new store; None stands for the default."""
        model = find_model(model or DEFAULT_COUNT_MODEL).name
        if analyzer is None:
            analyzer = Analyzer(language or "en")
        if not isinstance(analyzer, Analyzer):
            raise TypeError(f"analyzer == {analyzer!r}, must be an Analyzer.")
        analyzer.terms("")  # raises if the analyzer is misconfigured
        _check_fields(fields)
        if rule is not None:
            new_model(Labeler(model, rule=named_rule(rule), tree=LabelTree({})))  # raises if unfit
        return cls(analyzer, fields, model, bool(keep_texts), rule)

    def check(self, name: str, *, language, analyzer, fields, model, keep_texts, rule=None) -> None:
        """Raise if one of these settings is given and the store ``name`` has another value."""
        pairs = {
            "language": (language, self.analyzer.language),
            "analyzer": (analyzer, self.analyzer),
            "fields": (fields, self.fields),
            "model": (model, self.model),
            "keep_texts": (keep_texts, self.keep_texts),
            "rule": (rule, self.rule),
        }
        for setting, (value, current) in pairs.items():
            if value is not None and value != current:
                raise StoreError(
                    f"{name} has {setting} == {current!r}, not {value!r}; leave {setting} out, or "
                    "create a new store."
                )


def _check_fields(fields: Mapping[str, float] | None) -> None:
    if fields is None:
        return
    check_fields(fields)
    for name, weight in fields.items():
        if weight % 1:
            raise ValueError(
                f"fields[{name!r}] == {weight}, must be a whole number, because a store counts "
                "exactly."
            )


def create_tables(connection: Connection, new: Settings) -> None:
    """Create the tables of a new store."""
    metadata.create_all(connection)
    values = new.to_dict() | {"schema": SCHEMA}
    rows = [{"name": name, "value": json.dumps(value)} for name, value in values.items()]
    connection.execute(insert(settings), rows)
    start = {"id": 1, "revision": 0, "digest": MultisetDigest().sums, "published": 0}
    connection.execute(insert(state), start | {"current_model": None})


def read_settings(connection: Connection, name: str) -> Settings | None:
    """Return the settings of the store in a database, None if the database has no store."""
    existing = inspect(connection).get_table_names()
    if settings.name not in existing:
        if connection.dialect.name == "sqlite" and existing:
            raise StoreError(f"{name} is a database of another program, not a polytopic store.")
        return None
    rows = fetch(connection, select(settings))
    values = {row.name: read_json(row.value, f"the setting {row.name!r}") for row in rows}
    schema = values.pop("schema", None)
    if not isinstance(schema, int):
        raise DamagedError("its settings do not say which schema it has")
    if schema not in SCHEMAS:
        newer = schema > SCHEMA
        raise StoreError(
            f"{name} was created by {'a newer' if newer else 'an older'} polytopic (schema "
            f"{schema}, this release supports {SCHEMA}); "
            f"{'install a newer release' if newer else 'export it with the older release'}."
        )
    try:
        return Settings.from_dict(values)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedError(f"its settings cannot be read ({error})") from error


def read_schema(connection: Connection) -> int:
    """Return the number of the schema of a store."""
    query = select(settings.c.value).where(settings.c.name == "schema")
    ((value,),) = fetch(connection, query)
    return read_json(value, "the number of the schema")


def upgrade_tables(connection: Connection) -> None:
    """Create the tables and settings that earlier schemas lack."""
    metadata.create_all(connection, tables=[assignments, topics, articles, visits])
    is_schema = settings.c.name == "schema"
    connection.execute(update(settings).where(is_schema).values(value=json.dumps(SCHEMA)))
    connection.execute(delete(settings).where(settings.c.name == "rule"))
    connection.execute(insert(settings), {"name": "rule", "value": json.dumps(None)})


# State


_READ_STATE = select(state)


def read_state(connection: Connection, *, for_update: bool = False) -> Row:
    """Return the row of the state; ``for_update`` locks it until the transaction ends."""
    rows = fetch(connection, _READ_STATE.with_for_update() if for_update else _READ_STATE)
    if len(rows) != 1:
        raise DamagedError(f"its state has {len(rows)} rows, must have 1")
    return rows[0]


def last_revision(connection: Connection) -> int:
    """Return the revision of the store."""
    return read_state(connection).revision


# The tree of labels


def read_tree(connection: Connection) -> LabelTree | None:
    """Return the tree of labels, None if the store has none."""
    columns = labels.c
    rows = fetch(connection, select(columns.label, columns.about).where(columns.about.is_not(None)))
    if not rows:
        return None
    nodes = {label: read_json(text, "the tree of labels") for label, text in rows}
    parts = ("parents", "names", "alternatives", "notations")
    try:
        return LabelTree.from_dict(
            {
                part: {label: node[part] for label, node in nodes.items() if part in node}
                for part in parts
            }
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedError(f"the tree of labels cannot be read ({error})") from error


def write_tree(connection: Connection, tree: LabelTree) -> None:
    """Replace the tree of labels."""
    for label in tree.nodes:
        if not can_store(label):
            raise ContentError(f"the tree has the label {short(label)}, must be valid text.")
    connection.execute(update(labels).values(about=None))
    parts = tree.to_dict()
    nodes = {
        label: json.dumps(
            {part: values[label] for part, values in parts.items() if label in values}
        )
        for label in tree.nodes
    }
    is_node = is_one_of(connection, labels.c.label, list(nodes))
    present = {label for (label,) in fetch(connection, select(labels.c.label).where(is_node))}
    for label, text in nodes.items():
        if label in present:
            connection.execute(update(labels).where(labels.c.label == label).values(about=text))
        else:
            row = {"label": label, "documents": 0, "about": text}
            connection.execute(insert(labels), row)
    delete_unused_labels(connection)


_DELETE_UNUSED_LABELS = delete(labels).where(labels.c.documents == 0, labels.c.about.is_(None))


def delete_unused_labels(connection: Connection) -> None:
    """Delete the labels that neither a document nor the tree has."""
    connection.execute(_DELETE_UNUSED_LABELS)
