"""The database of a store: SQLite in one file, or PostgreSQL."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    Column,
    Connection,
    Row,
    Select,
    Text,
    bindparam,
    cast,
    create_engine,
    event,
    func,
    literal,
    select,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, SQLAlchemyError

from polytopic.errors import DamagedError, StoreError, UnavailableError
from polytopic.files import is_database
from polytopic.store import erasure

PATIENCE = 60.0  # seconds that a writer waits for others
BRIEF = 0.1  # seconds that a step of erasing waits for others
CONNECTING = 10  # seconds that a server may take to answer a call
FEW = 50  # rows that SQLAlchemy writes
MOST_TOLD = 5  # things that SQLite tells of a damaged file
LOCK = int.from_bytes(b"polytopi", "big")  # of those who write to PostgreSQL


class Database:
    """Where a store lives. Whoever writes is alone, and what is read is of one moment."""

    def __init__(self, url: str | Path, patience: float = PATIENCE):
        self.url, self.patience = _read_url(url), patience
        self.place = str(self.url.database)
        if not self.is_file:
            self.place = self.url.render_as_string(hide_password=True)
        self.name = repr(self.place)
        own = {"timeout": patience} if self.is_file else {"connect_timeout": CONNECTING}
        options = {name: value for name, value in own.items() if name not in self.url.query}
        try:
            self.engine = create_engine(
                self.url,
                pool_pre_ping=not self.is_file,
                connect_args=options,
                hide_parameters=True,  # a log of failures must not hold what is forgotten later
            )
        except ModuleNotFoundError as error:
            raise StoreError(
                f"{error.name} is not installed, which PostgreSQL needs: "
                "pip install 'polytopic[postgres]'."
            ) from error
        if self.is_file:
            event.listen(self.engine, "connect", _set_up_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)

    @property
    def is_file(self) -> bool:
        """Whether it is SQLite."""
        return self.url.get_backend_name() == "sqlite"

    def exists(self) -> bool:
        """Tell whether there is a database; a server is asked only when it is read."""
        if not self.is_file:
            return True
        # SQLite would take a short file of anything for a new database
        path = Path(self.place)
        filled = os.access(path, os.R_OK) and path.is_file() and path.stat().st_size
        if filled and not is_database(path):
            raise StoreError(f"{self.name}: it is no SQLite database.")
        return os.path.lexists(path)

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection that sees the database as it is at one moment."""
        options = {} if self.is_file else {"isolation_level": "REPEATABLE READ"}
        with self._telling(), self.engine.connect() as connection:
            connection.execution_options(**options)
            with connection.begin():
                yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection whose changes come together, when all is done, or not at all."""
        with self._telling(), self.engine.connect() as connection:
            connection.execution_options(polytopic_begin="BEGIN IMMEDIATE")
            with connection.begin():
                if not self.is_file:  # also alone before there is a table that could be locked
                    connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
                yield connection

    def erase(self, patience: float) -> None:
        """Leave nothing of deleted rows in the database's own files, as far as it is in our hands.

        SQLite's file is written anew where that is needed, and its log is emptied. Both wait for
        others as long as ``patience`` lasts, and let them through in between. PostgreSQL gives the
        room of deleted rows free.
        """
        try:
            with self.engine.connect() as connection:
                if self.is_file:
                    self._erase_traces(connection, patience)
                    return
                connection.execution_options(isolation_level="AUTOCOMMIT")
                for name in (*erasure.NAMED, "documents", "models"):
                    connection.exec_driver_sql(f"VACUUM polytopic_{name}")
        except DBAPIError as error:
            raise self._not_erased(self._reason(error).split(";")[0].rstrip(".")) from error

    def _erase_traces(self, connection: Connection, patience: float) -> None:
        """Take the steps that are left until no trace is in an SQLite file."""
        connection.execution_options(polytopic_begin=None)
        run = connection.exec_driver_sql
        usual, end = run("PRAGMA busy_timeout").scalar_one(), time.monotonic() + patience
        # a step that waits for readers keeps writers waiting, so each waits but briefly
        run(f"PRAGMA busy_timeout = {int(1000 * min(BRIEF, patience))}")
        try:
            while not erasure.take_steps(connection):
                if time.monotonic() >= end:
                    raise self._not_erased(f"others have used it for {patience:g} seconds")
                time.sleep(BRIEF)
        finally:
            run(f"PRAGMA busy_timeout = {usual}")

    def _not_erased(self, reason: str) -> UnavailableError:
        return UnavailableError(
            f"{self.name}: it is forgotten, but traces of it could not be overwritten yet "
            f"({reason}); the next change tries again, or forget it again."
        )

    def check(self, connection: Connection) -> list[str]:
        """Return what SQLite itself finds wrong with its file; a server sees to that alone."""
        if not self.is_file:
            return []
        found = connection.exec_driver_sql(f"PRAGMA integrity_check({MOST_TOLD})").scalars().all()
        return [
            f"SQLite finds the file damaged ({_first_line(said)})."
            for said in found
            if said != "ok"
        ]

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Tell failures of the database in one sentence."""
        try:
            yield
        except Exception as error:
            if _follows_an_interrupt(error):
                raise KeyboardInterrupt from error
            if isinstance(error, DataError | IntegrityError):
                raise StoreError(f"{self.name}: {self._reason(error)}") from error
            if isinstance(error, DBAPIError):
                raise UnavailableError(f"{self.name}: {self._reason(error)}") from error
            if isinstance(error, SQLAlchemyError):
                raise UnavailableError(f"{self.name}: {_first_line(error)}.") from error
            raise

    def _reason(self, error: DBAPIError) -> str:
        message = str(error.orig)
        if "database is locked" in message:
            return f"another process has been writing for {self.patience:g} seconds; try again."
        for sign, sentence in REASONS.items():
            if sign in message:
                return sentence
        if error.connection_invalidated or type(error.orig).__name__ == "OperationalError":
            # it may be lost after a change is done, and before that is told
            safe = "trying again is safe, since nothing is done by halves or twice"
            return f"the database does not answer ({_first_line(error.orig)}); {safe}."
        return f"{_first_line(error.orig)}; nothing was changed."


def can_hold(name: str) -> bool:
    """Tell whether databases can hold a name."""
    try:
        return b"\0" not in name.encode()
    except UnicodeEncodeError:  # half of a character
        return False


def among(connection: Connection, column, values: Iterable[str]):
    """Return the condition that a column has one of these values, however many."""
    return _is_listed(connection.dialect.name, column, literal(_to_list(values)))


def fetch_among(connection: Connection, query: Select, column, values: Iterable[str]) -> list[Row]:
    """Return the rows of a query whose column has one of these values, however many.

    The query is a constant: its statement is built once, which takes longer than running it.
    """
    statement = _query_among(connection.dialect.name, query, column)
    return fetch(connection, statement, {"listed": _to_list(values)})


@lru_cache(maxsize=32)
def _query_among(dialect: str, query: Select, column) -> Select:
    return query.where(_is_listed(dialect, column, bindparam("listed", type_=Text)))


def _is_listed(dialect: str, column, values):
    """Return the condition that a column has one of the values in a JSON array."""
    if dialect == "sqlite":
        elements = func.json_each(values).table_valued("value")
    else:
        elements = func.json_array_elements_text(cast(values, JSON)).table_valued("value")
    return column.in_(select(elements.c.value))


def _to_list(values: Iterable[str]) -> str:
    return json.dumps([value for value in values if can_hold(value)])


def fetch(
    connection: Connection, query: Select, parameters: Mapping[str, Any] | None = None
) -> list[Row]:
    """Return all rows of a query; their values are of the types that the columns have.

    SQLite does not see to that by itself, so that a damaged file may hold anything anywhere.
    """
    try:
        rows = list(connection.execute(query, parameters).all())
    except TypeError as error:  # some releases of SQLAlchemy convert values, others do not
        raise DamagedError("a column holds a value of another type") from error
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
    """Return the types that values of a column, or of a function of columns, may have."""
    may_be_null = not isinstance(column, Column) or column.nullable
    return {column.type.python_type, *([type(None)] if may_be_null else [])}


def run_many(connection: Connection, statement, names: Sequence[str], rows: Sequence[tuple]):
    """Run a statement for each row of values of these names.

    Many go to the driver as it takes them; for few, what SQLAlchemy remembers of the statement is
    faster.
    """
    if not rows:
        return
    if len(rows) <= FEW:
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
    text = str(url)
    if not text:
        raise StoreError("url is empty, must be a file or the URL of a database.")
    try:
        found = make_url(text) if "://" in text else URL.create("sqlite", database=text)
    except (ArgumentError, ValueError) as error:  # ValueError: its port
        raise StoreError(f"url == {text!r} is no URL of a database.") from error
    if found.drivername in ("postgresql", "postgres"):
        found = found.set(drivername="postgresql+psycopg")
    if found.drivername not in ("sqlite", "postgresql+psycopg"):
        raise StoreError(
            f"url == {found.render_as_string()!r}, must be a file, or begin with sqlite:/// or "
            "postgresql+psycopg://."
        )
    if found.drivername == "sqlite" and found.database in (None, "", ":memory:"):
        raise StoreError(f"url == {text!r} names no file, and a store in memory would be lost.")
    return found


def _set_up_sqlite(connection, _) -> None:
    """Set a connection up: others may read while one writes, and what is deleted is overwritten."""
    connection.isolation_level = None  # transactions begin where we say so
    pragmas = ["synchronous = FULL", "secure_delete = ON"]
    if not connection.execute("PRAGMA page_count").fetchone()[0]:  # it is new, and ours
        pragmas.insert(0, "journal_mode = WAL")
    for pragma in pragmas:
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    how = connection.get_execution_options().get("polytopic_begin", "BEGIN")
    if how is not None:
        connection.exec_driver_sql(how)


DAMAGED = "the database is damaged; restore a backup, or import an export."
REASONS = {  # what databases say, and what to tell
    "readonly database": "it cannot be written; nothing was changed.",
    "disk is full": "the disk is full; nothing was changed.",
    # it may fail after a change is written, and before that is known to be safe
    "disk I/O error": "the disk cannot be written or read; trying again is safe, since nothing is "
    "done by halves or twice.",
    "unable to open database file": "it cannot be opened; its folder must be there, and both must "
    "be open to you, for writing too.",
    "not a database": "it is no SQLite database.",
    "malformed": DAMAGED,
    "Could not decode": DAMAGED,
    "no such table": DAMAGED,
    "no such column": DAMAGED,
    "has no column": DAMAGED,
    "UNIQUE constraint failed": DAMAGED,
    "NOT NULL constraint failed": DAMAGED,
}


def _follows_an_interrupt(error: BaseException) -> bool:
    """Tell whether an error was raised while an interrupt was handled.

    SQLAlchemy does not expect one in the middle of a commit, and fails with an assertion then.
    """
    while error.__context__ is not None:
        error = error.__context__
        if isinstance(error, KeyboardInterrupt):
            return True
    return False


def _first_line(error) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
