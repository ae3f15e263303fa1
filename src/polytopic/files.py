"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from polytopic.errors import PolytopicError

SQLITE = b"SQLite format 3\0"  # what its files begin with


@contextmanager
def new_file(target: str | os.PathLike[str], failure: type[PolytopicError]) -> Iterator[IO[bytes]]:
    """Open a file under another name, to be renamed when it is whole, else to vanish.

    A pipe or a device cannot be replaced and is written as it is. What fails raises ``failure``.
    """
    path = Path(os.path.realpath(target))
    # asked of the target itself: that of a link to a pipe, as /dev/stdout, has no path
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
        if error.filename not in (None, str(place)):  # it came from what the caller reads
            raise
        raise failure(_sentence(path, error)) from error
    finally:
        if not special:
            with suppress(OSError):
                place.unlink()


def is_database(source: str | os.PathLike[str]) -> bool:
    """Tell whether something is the URL of a database, or an SQLite file that can be read."""
    if "://" in str(source):
        return True
    if not os.path.isfile(source):  # a pipe would be waited for
        return False
    try:
        with open(source, "rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError:
        return False


def _sentence(path: Path, error: OSError) -> str:
    """Tell in a sentence why a file cannot be written."""
    if not path.parent.is_dir():
        return f"{str(path.parent)!r} does not exist."
    if isinstance(error, IsADirectoryError):
        return f"{str(path)!r} is a folder, must be a file."
    return f"{str(path)!r} cannot be written: {(error.strerror or str(error)).lower()}."
