"""Erasure: overwriting every copy of a deleted document in the file of a store.

SQLite overwrites deleted rows and freed pages with zeros (``secure_delete``). But when it
rebalances a B-tree, it moves rows between pages and leaves copies in the unused parts of the old
pages, which outlive the rows. Two rules prevent that without rewriting the whole file:

- The ledger, which is most of the file, never moves a row. New rows are appended, for which SQLite
  starts a new page. A deleted row is blanked in place: a smaller row never makes SQLite rebalance.
- Every other table that holds ids, labels or terms is emptied, which frees and so overwrites all
  its pages, and filled again.

The whole file is rewritten (``VACUUM``) only when most of it is blank or free, so the cost is
shared by all deletions since the last time.

The write-ahead log still holds earlier versions of pages, and is truncated last. That may have to
wait for readers, and the process may be killed before it, so the file itself records what is left
to do (``user_version``), and the next change completes it.

PostgreSQL deletes rows, and ``VACUUM`` makes their space reusable.
"""

from __future__ import annotations

import time
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
from sqlalchemy.exc import DBAPIError, OperationalError

from polytopic.errors import UnavailableError
from polytopic.interrupts import checkpoint, hold_interrupts
from polytopic.store import schema
from polytopic.store.database import Database

LEDGER = schema.documents
# tables that hold ids, labels or terms
NAME_TABLES = (
    "labels",
    "label_sets",
    "terms",
    "requests",
    "assignments",
    "topics",
    "articles",
    "visits",
)
POLL = 0.1  # seconds that a step of erasure waits for other connections
EMPTY = {Text: "", LargeBinary: b"", BigInteger: 0}  # values of blank columns that are not nullable
BLANK = {
    column.name: None if column.nullable else EMPTY[type(column.type)]
    for column in LEDGER.c
    if not column.primary_key
} | {"replaced": 0}  # so that it is not a current version
_is_blank = (LEDGER.c.document == "") & (LEDGER.c.replaced == 0)


class Traces(IntEnum):
    """Where copies of deleted rows are left."""

    UNKNOWN = 0  # earlier releases may have moved rows of the ledger
    NONE = 1
    IN_LOG = 2
    IN_FILE = 3


N_STATES = len(Traces)  # user_version is the number of erasures so far, times this, plus the state


# Within a change


def close_rows(connection: Connection, rows: Sequence[int], revision: int) -> None:
    """Mark rows of the ledger as replaced at a revision."""
    if not rows:  # the usual case, without the time to build statements
        return
    same_row = LEDGER.c.row == bindparam("number")
    if not _is_file(connection):
        _run(connection, update(LEDGER).where(same_row).values(replaced=revision), rows)
        return
    # a longer row in the same place could make others move, so a copy is appended
    columns = [column for column in LEDGER.c if column is not LEDGER.c.row]
    closed = [literal(revision) if c is LEDGER.c.replaced else c for c in columns]
    copy = insert(LEDGER).from_select([c.name for c in columns], select(*closed).where(same_row))
    _run(connection, copy, rows)
    remove_rows(connection, rows)


def remove_rows(connection: Connection, rows: Sequence[int]) -> None:
    """Delete rows of the ledger."""
    same_row = LEDGER.c.row == bindparam("number")
    remove = update(LEDGER).values(BLANK) if _is_file(connection) else delete(LEDGER)
    _run(connection, remove.where(same_row), rows)


def _run(connection: Connection, statement, rows: Sequence[int]) -> None:
    connection.execute(statement, [{"number": row} for row in rows])


def overwrite(connection: Connection, *, were_replaced: bool) -> None:
    """Overwrite copies of deleted documents everywhere but in the ledger.

    ``were_replaced`` says whether a deleted version is in the index of former versions.
    """
    if not _is_file(connection):
        return
    for name in NAME_TABLES:
        _refill(connection, name)
    connection.exec_driver_sql("REINDEX polytopic_current")
    if were_replaced:
        connection.exec_driver_sql("REINDEX polytopic_former")
    state = read_traces(connection)
    if state in (Traces.UNKNOWN, Traces.IN_FILE) or _is_mostly_empty(connection):
        connection.execute(delete(LEDGER).where(_is_blank))
        record_traces(connection, Traces.IN_FILE)
    else:
        record_traces(connection, Traces.IN_LOG)


def _refill(connection: Connection, name: str) -> None:
    """Empty a table, which makes SQLite overwrite all its pages, and fill it again."""
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
    """Return where copies of deleted rows are left; NONE for a server."""
    return Traces(_read_version(connection) % N_STATES) if _is_file(connection) else Traces.NONE


def _read_version(connection: Connection) -> int:
    return connection.exec_driver_sql("PRAGMA user_version").scalar_one()


def record_traces(connection: Connection, traces: Traces) -> None:
    """Record where copies of deleted rows are left after this transaction."""
    if _is_file(connection):
        n_times = (_read_version(connection) // N_STATES + 1) % 2**28
        connection.exec_driver_sql(f"PRAGMA user_version = {n_times * N_STATES + traces}")


def overwrite_table(connection: Connection, name: str) -> None:
    """Overwrite copies of changed and deleted rows of a table."""
    _refill(connection, name)
    if read_traces(connection) is Traces.NONE:
        record_traces(connection, Traces.IN_LOG)


def is_pending(connection: Connection) -> bool:
    """Return whether copies of deleted rows are left."""
    return read_traces(connection) in (Traces.IN_LOG, Traces.IN_FILE)


# After a change


def erase(database: Database, timeout: float) -> None:
    """Overwrite all copies of deleted rows that are left in the database's own files.

    An SQLite file is rewritten if necessary, and its log is truncated. Both wait for other
    connections up to ``timeout`` seconds, and let them proceed in between.
    """
    try:
        with hold_interrupts(), database.engine.connect() as connection:
            if database.is_file:
                _erase_file(database, connection, timeout)
                return
            connection.execution_options(isolation_level="AUTOCOMMIT")
            for name in (*NAME_TABLES, "documents", "models"):
                connection.exec_driver_sql(f"VACUUM polytopic_{name}")
    except DBAPIError as error:
        reason = database.explain(error).split(";")[0].rstrip(".")
        raise _not_erased(database, reason) from error


def _erase_file(database: Database, connection: Connection, timeout: float) -> None:
    connection.execution_options(polytopic_begin=None)
    run = connection.exec_driver_sql
    busy_timeout, end = run("PRAGMA busy_timeout").scalar_one(), time.monotonic() + timeout
    # a step that waits for readers blocks writers, so each step waits only briefly
    run(f"PRAGMA busy_timeout = {int(1000 * min(POLL, timeout))}")
    try:
        while not _take_steps(connection):
            checkpoint()
            if time.monotonic() >= end:
                raise _not_erased(database, f"it has been in use for {timeout:g} seconds")
            time.sleep(POLL)
    finally:
        run(f"PRAGMA busy_timeout = {busy_timeout}")


def _not_erased(database: Database, reason: str) -> UnavailableError:
    return UnavailableError(
        f"{database.name}: the documents are deleted, but copies on disk could not be overwritten "
        f"yet ({reason}); the next change tries again, or repeat the request to forget them."
    )


def _take_steps(connection: Connection) -> bool:
    """Take the steps that are left; return False if another connection prevents one."""
    run = connection.exec_driver_sql
    try:
        version = _read_version(connection)
        if read_traces(connection) is Traces.IN_FILE:
            run("VACUUM")
            if not _commit_traces(connection, Traces.IN_LOG, version):
                return False
            version = _read_version(connection)
        busy, *_ = run("PRAGMA wal_checkpoint(TRUNCATE)").one()
        if busy or read_traces(connection) is not Traces.IN_LOG:
            return not busy
        return _commit_traces(connection, Traces.NONE, version)
    except OperationalError as error:
        if "database is locked" in str(error.orig):
            return False
        raise


def _commit_traces(connection: Connection, traces: Traces, version: int) -> bool:
    """Record the traces in a separate transaction, unless more was deleted meanwhile."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    is_same = _read_version(connection) == version
    if is_same:
        record_traces(connection, traces)
    connection.exec_driver_sql("COMMIT")
    return is_same


def _is_mostly_empty(connection: Connection) -> bool:
    """Return whether more rows are blank than current, or more pages free than used."""

    def count(condition, limit=None):
        rows = select(LEDGER.c.row).where(condition).limit(limit).subquery()
        return connection.execute(select(func.count()).select_from(rows)).scalar_one()

    pages, free = (
        connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
        for name in ("page_count", "freelist_count")
    )
    blank = count(_is_blank)
    return 2 * free > pages or blank > count(LEDGER.c.replaced.is_(None), limit=blank)


def _is_file(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"
