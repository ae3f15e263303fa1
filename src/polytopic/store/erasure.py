"""Leaving no trace of what was forgotten in the file of a store.

SQLite overwrites with zeros what it deletes (``secure_delete``): rows within a page, and pages that
become free. But when it balances a tree, it moves rows between pages and leaves copies of them in
the unused part of the pages they came from. These copies outlive the rows. Two rules prevent that
without writing the whole file anew:

- The ledger, which is most of the file, never moves a row. New rows are appended, for which SQLite
  begins a new page; a row that goes is blanked where it is, since a smaller row in the same place
  never makes it balance the tree.
- Every other tree that holds names is emptied, which frees and thus overwrites all its pages, and
  filled again.

The file is written anew (``VACUUM``) only when most of it is blank or free, so that its cost is
shared by all that was forgotten since the last time.

Pages as they were before are left in the write-ahead log, which is emptied last. That may have to
wait for readers, and a process may be killed before it, so the file itself says what is still to
be done (``user_version``): the next change goes on with it.

PostgreSQL deletes rows, and ``VACUUM`` gives their room free.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import IntEnum

from sqlalchemy import (
    BigInteger,
    Connection,
    LargeBinary,
    Text,
    bindparam,
    delete,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.exc import OperationalError

from polytopic.store import tables

LEDGER = tables.documents
NAMED = ("labels", "label_sets", "terms", "requests")  # tables that are filled again
NOTHING = {Text: "", LargeBinary: b"", BigInteger: 0}  # where a column must have a value
BLANK = {
    column.name: None if column.nullable else NOTHING[type(column.type)]
    for column in LEDGER.c
    if not column.primary_key
} | {"replaced": 0}  # it is no current version of anything
_is_blank = (LEDGER.c.document == "") & (LEDGER.c.replaced == 0)


class Traces(IntEnum):
    """What is to be done until no trace is left."""

    UNKNOWN = 0  # rows of the ledger may have been moved, by a release that did so
    NONE = 1
    IN_LOG = 2
    IN_FILE = 3


STATES = len(Traces)  # user_version counts what was forgotten in steps of these


def close_rows(connection: Connection, rows: Sequence[int], revision: int) -> None:
    """Note that rows of the ledger are replaced from a revision on."""
    if not rows:  # as mostly: making statements takes time
        return
    own = LEDGER.c.row == bindparam("number")
    if not _is_file(connection):
        _run(connection, update(LEDGER).where(own).values(replaced=revision), rows)
        return
    # in its place, the longer row could make others move
    columns = [column for column in LEDGER.c if column is not LEDGER.c.row]
    closed = [literal(revision) if c is LEDGER.c.replaced else c for c in columns]
    copy = insert(LEDGER).from_select([c.name for c in columns], select(*closed).where(own))
    _run(connection, copy, rows)
    remove_rows(connection, rows)


def remove_rows(connection: Connection, rows: Sequence[int]) -> None:
    """Take rows out of the ledger."""
    own = LEDGER.c.row == bindparam("number")
    gone = update(LEDGER).values(BLANK) if _is_file(connection) else delete(LEDGER)
    _run(connection, gone.where(own), rows)


def _run(connection: Connection, statement, rows: Sequence[int]) -> None:
    connection.execute(statement, [{"number": row} for row in rows])


def overwrite(connection: Connection, *, were_replaced: bool) -> bool:
    """Overwrite copies of names in all trees but the ledger's, after documents were forgotten.

    Only what was replaced has ever been in the index of former versions. Return whether the
    schema in the settings has changed.
    """
    if not _is_file(connection):
        return False
    for name in NAMED:
        _refill(connection, name)
    connection.exec_driver_sql("REINDEX polytopic_current")
    if were_replaced:
        connection.exec_driver_sql("REINDEX polytopic_former")
    state = read_traces(connection)
    if state is Traces.UNKNOWN:
        _set_schema(connection)
    if state in (Traces.UNKNOWN, Traces.IN_FILE) or _is_mostly_empty(connection):
        connection.execute(delete(LEDGER).where(_is_blank))
        note(connection, Traces.IN_FILE)
    else:
        note(connection, Traces.IN_LOG)
    return state is Traces.UNKNOWN


def _refill(connection: Connection, name: str) -> None:
    """Empty a table, by which SQLite overwrites all its pages, and fill it again."""
    if not _is_file(connection):
        return
    table = f"polytopic_{name}"
    for step in (
        f"CREATE TEMP TABLE refill AS SELECT * FROM {table}",  # noqa: S608  # our own names
        f"DELETE FROM {table}",  # noqa: S608
        f"INSERT INTO {table} SELECT * FROM temp.refill",  # noqa: S608
        "DROP TABLE temp.refill",
    ):
        connection.exec_driver_sql(step)


def read_traces(connection: Connection) -> Traces:
    """Return what is still to be done; nothing where that is not in our hands."""
    return Traces(read_version(connection) % STATES) if _is_file(connection) else Traces.NONE


def read_version(connection: Connection) -> int:
    """Return what is still to be done, with the number of times that something was."""
    return connection.exec_driver_sql("PRAGMA user_version").scalar_one()


def note(connection: Connection, traces: Traces) -> None:
    """Note what is to be done when this transaction is over."""
    if _is_file(connection):
        times = (read_version(connection) // STATES + 1) % 2**28
        connection.exec_driver_sql(f"PRAGMA user_version = {times * STATES + traces}")


def overwrite_table(connection: Connection, name: str) -> None:
    """Overwrite copies of a table's rows, after some of them were changed or deleted."""
    _refill(connection, name)
    if read_traces(connection) is Traces.NONE:
        note(connection, Traces.IN_LOG)


def is_pending(connection: Connection) -> bool:
    """Tell whether something was forgotten of which traces are left."""
    return read_traces(connection) in (Traces.IN_LOG, Traces.IN_FILE)


def take_steps(connection: Connection) -> bool:
    """Go on until no trace is left; return False where others are in the way."""
    run = connection.exec_driver_sql
    try:
        version = read_version(connection)
        if read_traces(connection) is Traces.IN_FILE:
            run("VACUUM")
            if not _note_by_itself(connection, Traces.IN_LOG, version):
                return False
            version = read_version(connection)
        busy, *_ = run("PRAGMA wal_checkpoint(TRUNCATE)").one()
        if busy or read_traces(connection) is not Traces.IN_LOG:
            return not busy
        return _note_by_itself(connection, Traces.NONE, version)
    except OperationalError as error:
        if "database is locked" in str(error.orig):
            return False
        raise


def _note_by_itself(connection: Connection, traces: Traces, version: int) -> bool:
    """Note what is to be done, in a transaction of its own, unless more was forgotten meanwhile."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    is_same = read_version(connection) == version
    if is_same:
        note(connection, traces)
    connection.exec_driver_sql("COMMIT")
    return is_same


def _is_mostly_empty(connection: Connection) -> bool:
    """Tell whether more rows are blank than not, or more pages free than not."""

    def count(condition, most=None):
        rows = select(LEDGER.c.row).where(condition).limit(most).subquery()
        return connection.execute(select(func.count()).select_from(rows)).scalar_one()

    pages, free = (
        connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
        for name in ("page_count", "freelist_count")
    )
    blank = count(_is_blank)
    return 2 * free > pages or blank > count(LEDGER.c.replaced.is_(None), most=blank)


def _set_schema(connection: Connection) -> None:
    """Keep releases out that would move rows of the ledger."""
    own = tables.settings.c.name == "schema"
    value = json.dumps(tables.SCHEMA)
    connection.execute(update(tables.settings).where(own).values(value=value))


def _is_file(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"
