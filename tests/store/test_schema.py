"""The tables of a store: other releases, and whoever reads the database, rely on each column."""

import sqlite3

import pytest
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from polytopic.store import Store, schema

# "key": a part of the primary key; "or null": may be missing; "counted": numbered by the database.
TABLES = {
    "settings": {"name": "text key", "value": "text"},
    "state": {
        "id": "integer key counted",
        "revision": "bigint",
        "digest": "bytes",
        "published": "bigint",
        "current_model": "bigint or null",
    },
    "labels": {"label": "text key", "documents": "bigint", "about": "text or null"},
    "terms": {"page": "bigint key", "names": "text", "documents": "bytes", "uses": "bytes"},
    "label_sets": {
        "key": "text key",
        "labels": "text",
        "documents": "bigint",
        "terms": "bytes",
        "counts": "bytes",
    },
    "documents": {
        "row": "rowid key counted",
        "document": "text",
        "labels": "text",
        "time": "text or null",
        "first": "bigint",
        "learned": "bigint",
        "replaced": "bigint or null",
        "terms": "bytes",
        "counts": "bytes",
        "digest": "bytes",
        "text": "text or null",
    },
    "assignments": {
        "id": "rowid key counted",
        "document": "text",
        "topics": "text",
        "known": "double",
        "model": "bigint or null",
        "revision": "bigint or null",
        "time": "text",
        "replaced": "text or null",
    },
    "topics": {
        "label": "text key",
        "time": "text key",
        "row": "bigint key",
        "probability": "double",
    },
    "articles": {
        "document": "text key",
        "address": "text or null",
        "author": "text or null",
        "language": "text or null",
        "duplicate_of": "text or null",
        "signature": "bytes or null",
    },
    "visits": {
        "address": "text key",
        "document": "text or null",
        "etag": "text or null",
        "modified": "text or null",
        "time": "text",
    },
    "revisions": {"revision": "bigint key", "time": "text", "receipt": "text"},
    "forgotten": {"learned": "bigint key", "revision": "bigint key", "documents": "bigint"},
    "models": {
        "id": "bigint key",
        "time": "text",
        "name": "text",
        "origin": "text",
        "note": "text or null",
        "marked": "bigint or null",
        "content": "bytes",
    },
    "tokens": {"digest": "text key", "name": "text unique", "role": "text", "time": "text"},
    "seals": {"name": "text key", "revision": "bigint", "digest": "bytes"},
    "requests": {"key": "text key", "request": "text", "receipt": "text", "time": "text"},
}
SQLITE = {
    "TEXT": "text",
    "BIGINT": "bigint",
    "INTEGER": "integer",
    "BLOB": "bytes",
    "DOUBLE": "double",
}
POSTGRES = {
    "TEXT": "text",
    "BIGINT": "bigint",
    "BYTEA": "bytes",
    "DOUBLE": "double",
    "SERIAL": "integer counted",
    "BIGSERIAL": "bigint counted",
}


@pytest.fixture
def connection(path):
    """Return a connection to the file of a new store."""
    Store(path).close()
    opened = sqlite3.connect(path)
    yield opened
    opened.close()


def _expected(rowid, *, counted):
    """Return the listing, with the type of the ledger's rows and with or without "counted"."""
    return {
        f"polytopic_{table}": [
            (name, set(about.replace("rowid", rowid).split()) - (set() if counted else {"counted"}))
            for name, about in columns.items()
        ]
        for table, columns in TABLES.items()
    }


def _about(kind, *, key, nullable, unique):
    words = f"{kind}{' key' if key else ''}{' or null' if nullable else ''}"
    return set(f"{words}{' unique' if unique else ''}".split())


def test_tables_in_sqlite(connection):
    """A new file has these tables with these columns in this order, which seals rely on."""
    names = [
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    ]

    tables = {}
    for table in names:
        unique = {
            connection.execute(f"PRAGMA index_info({index})").fetchall()[0][2]
            for _, index, is_unique, origin, _ in connection.execute(f"PRAGMA index_list({table})")
            if is_unique and origin == "u"
        }
        tables[table] = [
            (
                name,
                _about(
                    SQLITE[kind], key=key, nullable=not required and not key, unique=name in unique
                ),
            )
            for _, name, kind, required, _, key in connection.execute(f"PRAGMA table_info({table})")
        ]

    assert tables == _expected("integer", counted=False)


def test_tables_as_declared_for_postgresql():
    """A server gets the same columns; it numbers only the state and the rows of the ledger."""
    tables = {}
    for table in schema.metadata.sorted_tables:
        created = str(CreateTable(table).compile(dialect=postgresql.dialect()))
        lines = [line.split() for line in created.splitlines() if line.startswith("\t")]
        columns = {words[0].strip('"'): [w.rstrip(",") for w in words[1:]] for words in lines}
        tables[table.name] = [
            (
                column.name,
                _about(
                    POSTGRES[columns[column.name][0]],
                    key=column.primary_key,
                    nullable="NULL" not in columns[column.name],
                    unique=f"UNIQUE ({column.name})" in created,
                ),
            )
            for column in table.columns
        ]

    assert tables == _expected("bigint", counted=True)


def test_indexes_in_sqlite(connection):
    """One index finds the current version of a document or its topics, another the former ones."""
    query = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"

    indexes = {name: " ".join(sql.split()) for name, sql in connection.execute(query)}

    assert indexes == {
        "polytopic_current": "CREATE UNIQUE INDEX polytopic_current ON polytopic_documents "
        "(document) WHERE replaced IS NULL",
        "polytopic_former": "CREATE INDEX polytopic_former ON polytopic_documents (document) "
        "WHERE replaced IS NOT NULL",
        "polytopic_assigned": "CREATE UNIQUE INDEX polytopic_assigned ON polytopic_assignments "
        "(document) WHERE replaced IS NULL",
        "polytopic_reassigned": "CREATE INDEX polytopic_reassigned ON polytopic_assignments "
        "(document) WHERE replaced IS NOT NULL",
    }


def test_indexes_are_the_same_for_both_databases():
    """PostgreSQL gets the indexes of SQLite."""
    declared = [
        [
            " ".join(str(CreateIndex(index).compile(dialect=dialect)).split())
            for table in (schema.documents, schema.assignments)
            for index in sorted(table.indexes, key=lambda index: index.name)
        ]
        for dialect in (sqlite.dialect(), postgresql.dialect())
    ]

    assert declared[0] == declared[1]
    assert len(declared[0]) == 4
