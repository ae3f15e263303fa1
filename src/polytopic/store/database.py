"""The database of a store: an SQLite file, or a PostgreSQL server."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from reprlib import repr as short
from typing import Any

from sqlalchemy import (
    JSON,
    Column,
    Connection,
    Row,
    Select,
    Text,
    Transaction,
    bindparam,
    cast,
    create_engine,
    event,
    func,
    literal,
    select,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    OperationalError,
    SQLAlchemyError,
)

from polytopic.errors import ContentError, DamagedError, StoreError, UnavailableError
from polytopic.files import is_database
from polytopic.interrupts import checkpoint, hold_interrupts
from polytopic.parameters import check_number

TIMEOUT = 60.0  # seconds that a writer waits for other writers
CONNECT_TIMEOUT = 10  # seconds that a server may take to accept a connection
FILE_POLL, SERVER_POLL = 0.1, 1.0  # seconds between looks at Ctrl+C; a server has a fair queue
LOCK_NOT_AVAILABLE = "55P03"  # a code of PostgreSQL
LARGEST_INTEGER = 2**63 - 1  # that databases accept
SMALL_BATCH = 50  # rows up to which SQLAlchemy's own statement cache is faster
MAX_PROBLEMS = 5  # that SQLite reports of a damaged file
WRITE_LOCK = int.from_bytes(b"polytopi", "big")  # the advisory lock of writers in PostgreSQL


class Database:
    """The database of a store. There is one writer at a time, and readers see one snapshot."""

    def __init__(self, url: str | Path, timeout: float = TIMEOUT):
        check_number(timeout, "timeout", min_val=0)
        self.url, self.timeout = _read_url(url), timeout
        self.place = str(self.url.database)
        if not self.is_file:
            self.place = self.url.render_as_string(hide_password=True)
        self.name = repr(self.place)
        defaults = {"timeout": timeout} if self.is_file else {"connect_timeout": CONNECT_TIMEOUT}
        options = {name: value for name, value in defaults.items() if name not in self.url.query}
        try:
            self.engine = create_engine(
                self.url,
                pool_pre_ping=not self.is_file,
                connect_args=options,
                hide_parameters=True,  # error logs must not hold documents
            )
        except ModuleNotFoundError as error:
            raise StoreError(
                f"{error.name}, which PostgreSQL needs, is not installed. Install it with: "
                "pip install 'polytopic[postgres]'"
            ) from error
        if self.is_file:
            event.listen(self.engine, "connect", _set_up_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)

    @property
    def is_file(self) -> bool:
        """Whether it is an SQLite file."""
        return self.url.get_backend_name() == "sqlite"

    def exists(self) -> bool:
        """Return whether the file exists; True for a server, which is not contacted yet.

        A link whose target does not exist does not count: reading it would create the target.
        """
        if not self.is_file:
            return True
        # SQLite would accept any short file as a new database
        path = Path(self.place)
        filled = os.access(path, os.R_OK) and path.is_file() and path.stat().st_size
        if filled and not is_database(path):
            raise StoreError(f"{self.name} is not an SQLite database.")
        try:
            return path.exists()
        except OSError:  # no permission for the folder, say: SQLite cannot open it, and reports why
            return True

    def close(self) -> None:
        """Close all connections."""
        with hold_interrupts():
            self.engine.dispose()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Yield a connection; Ctrl+C waits for its end, or for the next statement."""
        with hold_interrupts(), self._translating_errors(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection for a transaction that sees one snapshot of the database."""
        options = {} if self.is_file else {"isolation_level": "REPEATABLE READ"}
        with self.connection() as connection:
            connection.execution_options(**options)
            with connection.begin():
                yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a connection for a transaction that changes everything or nothing."""
        with self.connection() as connection:
            connection.execution_options(polytopic_begin="BEGIN IMMEDIATE")
            with self._begin_writing(connection):
                yield connection

    def _begin_writing(self, connection: Connection) -> Transaction:
        """Begin a transaction when no one else is writing; Ctrl+C ends the waiting."""
        end = time.monotonic() + self.timeout
        while True:
            checkpoint()
            try:
                if self.is_file:
                    return _begin_in_file(connection, self.timeout)
                return _begin_in_server(connection)
            except OperationalError as error:
                if not _is_locked(error) or time.monotonic() >= end:
                    raise

    def check(self, connection: Connection) -> list[str]:
        """Return the problems that SQLite finds in its file; a server checks itself."""
        if not self.is_file:
            return []
        check = f"PRAGMA integrity_check({MAX_PROBLEMS})"
        problems = connection.exec_driver_sql(check).scalars().all()
        return [
            f"SQLite reports that the file is damaged ({_first_line(problem)})."
            for problem in problems
            if problem != "ok"
        ]

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """Turn errors of the database into a :class:`StoreError` with one sentence."""
        try:
            yield
        except (DataError, IntegrityError) as error:
            raise StoreError(f"{self.name}: {self.explain(error)}") from error
        except DBAPIError as error:
            raise UnavailableError(f"{self.name}: {self.explain(error)}") from error
        except SQLAlchemyError as error:
            raise UnavailableError(f"{self.name}: {_first_line(error)}.") from error

    def explain(self, error: DBAPIError) -> str:
        """Return the reason of an error of the database, and what to do about it."""
        message = str(error.orig)
        if _is_locked(error):
            return f"another process has been writing for {self.timeout:g} seconds; try again."
        for part, reason in REASONS.items():
            if part in message:
                return reason
        if error.connection_invalidated or type(error.orig).__name__ == "OperationalError":
            # the connection may be lost between the commit and its confirmation
            return f"the database does not answer ({_first_line(error.orig)}); {SAFE_TO_RETRY}."
        return f"{_first_line(error.orig)}; nothing was changed."


def can_store(text: str) -> bool:
    """Return whether databases accept a text."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False


def check_text(name: str, value: Any) -> None:
    """Raise unless a value is a string that databases accept."""
    if not isinstance(value, str):
        raise TypeError(f"{name} == {short(value)}, must be a string.")
    if not can_store(value):
        raise ContentError(f"{name} == {short(value)}, must be valid text without NUL.")


def is_one_of(connection: Connection, column, values: Iterable[str]):
    """Return the condition that a column has one of any number of values."""
    return _is_listed(connection.dialect.name, column, literal(_to_list(values)))


def fetch_where_in(
    connection: Connection, query: Select, column, values: Iterable[str]
) -> list[Row]:
    """Return the rows of a query in which a column has one of any number of values.

    The query must be a constant: its statement is built once, which takes longer than running it.
    """
    statement = _query_where_in(connection.dialect.name, query, column)
    return fetch(connection, statement, {"listed": _to_list(values)})


@lru_cache(maxsize=32)
def _query_where_in(dialect: str, query: Select, column) -> Select:
    return query.where(_is_listed(dialect, column, bindparam("listed", type_=Text)))


def _is_listed(dialect: str, column, values):
    """Return the condition that a column has one of the values in a JSON array."""
    if dialect == "sqlite":
        elements = func.json_each(values).table_valued("value")
    else:
        elements = func.json_array_elements_text(cast(values, JSON)).table_valued("value")
    return column.in_(select(elements.c.value))


def _to_list(values: Iterable[str]) -> str:
    return json.dumps([value for value in values if can_store(value)])


def fetch(
    connection: Connection, query: Select, parameters: Mapping[str, Any] | None = None
) -> list[Row]:
    """Return all rows of a query, after checking the types of their values.

    SQLite does not enforce types, so a damaged file may hold any value in any column.
    """
    checkpoint()
    try:
        rows = list(connection.execute(query, parameters).all())
    except TypeError as error:  # some releases of SQLAlchemy convert values, others do not
        raise DamagedError("a column holds a value of the wrong type") from error
    if not rows:
        return rows
    columns: Iterable[Any] = query.inner_columns
    for column, values in zip(columns, zip(*rows, strict=True), strict=True):
        wrong = set(map(type, values)) - _types_of(column)
        if wrong:
            raise DamagedError(
                f"column {column.name!r} holds a value of type {wrong.pop().__name__}"
            )
    return rows


@lru_cache(maxsize=256)
def _types_of(column) -> set[type]:
    """Return the types that values of a column or an expression may have."""
    may_be_null = not isinstance(column, Column) or column.nullable
    return {column.type.python_type, *([type(None)] if may_be_null else [])}


def run_many(connection: Connection, statement, names: Sequence[str], rows: Sequence[tuple]):
    """Run a statement once for each row; ``names`` are the parameters that a row gives.

    Many rows go directly to the driver; for few, SQLAlchemy's statement cache is faster.
    """
    if not rows:
        return
    checkpoint()
    if len(rows) <= SMALL_BATCH:
        connection.execute(statement, [dict(zip(names, row, strict=True)) for row in rows])
        return
    compiled = statement.compile(dialect=connection.dialect, column_keys=list(names))
    values: list[Any]
    if compiled.positional:
        order = [names.index(name) for name in compiled.positiontup]
        values = [tuple(row[k] for k in order) for row in rows]
    else:
        values = [dict(zip(names, row, strict=True)) for row in rows]
    connection.exec_driver_sql(compiled.string, values)


def _read_url(url: str | Path) -> URL:
    if not isinstance(url, str | os.PathLike):
        raise TypeError(f"url == {short(url)}, must be a file or the URL of a database.")
    text = os.fspath(url)
    if not text:
        raise StoreError("url == '', must be a file or the URL of a database.")
    try:
        parsed = make_url(text) if "://" in text else URL.create("sqlite", database=text)
    except (ArgumentError, ValueError) as error:  # ValueError: its port
        raise StoreError(f"url == {text!r}, must be a file or the URL of a database.") from error
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in ("sqlite", "postgresql+psycopg"):
        raise StoreError(
            f"url == {parsed.render_as_string()!r}, must be a file, or begin with sqlite:/// or "
            "postgresql+psycopg://."
        )
    if parsed.drivername == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise StoreError(f"url == {text!r}, must name a file; a store in memory would be lost.")
    return parsed


def _set_up_sqlite(connection, _) -> None:
    """Allow reading while another connection writes, and overwrite deleted rows."""
    connection.isolation_level = None  # transactions begin in _begin_sqlite
    pragmas = ["synchronous = FULL", "secure_delete = ON"]
    if not connection.execute("PRAGMA page_count").fetchone()[0]:  # a new file
        pragmas.insert(0, "journal_mode = WAL")
    for pragma in pragmas:
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    statement = connection.get_execution_options().get("polytopic_begin", "BEGIN")
    if statement is not None:
        connection.exec_driver_sql(statement)


def _begin_in_file(connection: Connection, timeout: float) -> Transaction:
    """Begin a transaction that writes, after waiting briefly for other writers."""
    run = connection.connection.driver_connection.execute  # type: ignore[union-attr]
    run(f"PRAGMA busy_timeout = {int(1000 * min(FILE_POLL, timeout))}")
    try:
        return connection.begin()
    finally:
        run(f"PRAGMA busy_timeout = {int(1000 * timeout)}")


def _begin_in_server(connection: Connection) -> Transaction:
    """Do the same in PostgreSQL: take the lock of writers, which needs no table."""
    transaction = connection.begin()
    try:
        connection.exec_driver_sql(
            f"SET LOCAL lock_timeout = {int(1000 * SERVER_POLL)}; "
            f"SELECT pg_advisory_xact_lock({WRITE_LOCK}); SET LOCAL lock_timeout = 0"
        )
    except BaseException:
        transaction.rollback()
        raise
    return transaction


def _is_locked(error: DBAPIError) -> bool:
    """Return whether a statement has timed out while waiting for another writer."""
    code = getattr(error.orig, "sqlstate", None)
    return code == LOCK_NOT_AVAILABLE or "database is locked" in str(error.orig)


DAMAGED = "the database is damaged; restore a backup, or import an export."
SAFE_TO_RETRY = "trying again is safe: a change is made completely or not at all, and never twice"
REASONS = {  # parts of the databases' messages, and what we say instead
    "readonly database": "it cannot be written; nothing was changed.",
    "disk is full": "the disk is full; nothing was changed.",
    # it may fail between the commit and its confirmation
    "disk I/O error": f"the disk cannot be read or written; {SAFE_TO_RETRY}.",
    "unable to open database file": "it cannot be opened; its folder must exist, and you need "
    "permission to read and write both.",
    "not a database": "it is not an SQLite database.",
    "malformed": DAMAGED,
    "Could not decode": DAMAGED,
    "no such table": DAMAGED,
    "no such column": DAMAGED,
    "has no column": DAMAGED,
    "UNIQUE constraint failed": DAMAGED,
    "NOT NULL constraint failed": DAMAGED,
}


def _first_line(error) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
