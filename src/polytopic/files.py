"""Files that are written completely or not at all, and how to recognize databases."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO

from polytopic.errors import PolytopicError

SMALLEST_DATABASE = 512  # bytes: the smallest page of SQLite


@contextmanager
def new_file(target: str | os.PathLike[str], failure: type[PolytopicError]) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces the target when it is complete, and vanishes otherwise.

    A pipe or a device cannot be replaced, and is written to directly. Errors raise ``failure``.
    """
    path = Path(os.path.realpath(target))
    # ask about the target itself: a link to a pipe, such as /dev/stdout, has no real path
    special = os.path.exists(target) and not os.path.isfile(target)
    place = Path(target) if special else path.with_name(f".{os.urandom(8).hex()}.tmp")
    try:
        with open(place, "wb") as file:
            yield file
            file.flush()
            if not special:
                os.fsync(file.fileno())
        if not special:
            os.replace(place, path)
    except OSError as error:
        if error.filename not in (None, str(place)):  # about a file that the caller reads
            raise
        raise failure(_sentence(path, error)) from error
    finally:
        if not special:
            with suppress(OSError):
                place.unlink()


def is_database(source: str | os.PathLike[str]) -> bool:
    """Return whether this is the URL of a database, or an SQLite file that can be read."""
    if "://" in str(source):
        return True
    path = Path(source).absolute()
    try:
        if not path.is_file() or path.stat().st_size < SMALLEST_DATABASE:
            return False
        # Let SQLite open it: if we closed the file ourselves, this process would lose all its locks
        # on it, and another process could delete the write-ahead log under us
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute("PRAGMA schema_version").fetchone()
    except (OSError, ValueError):
        return False
    except sqlite3.Error as error:  # a locked or damaged database is still one
        return error.sqlite_errorcode not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN)
    return True


def _sentence(path: Path, error: OSError) -> str:
    """Return a sentence that says why a file cannot be written."""
    if not path.parent.is_dir():
        return f"{str(path.parent)!r} does not exist."
    if isinstance(error, IsADirectoryError):
        return f"{str(path)!r} is a folder, must be a file."
    return f"{str(path)!r} cannot be written: {(error.strerror or str(error)).lower()}."
