"""Results as files, one for each partition."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from polytopic.corpus.writers import open_target
from polytopic.errors import PolytopicError


def new_folder(target: str | os.PathLike[str]) -> str:
    """Make the folder of results, at a path or a URL; one that holds files is refused."""
    target = os.fspath(target)
    if "://" not in target:
        target = os.path.abspath(target)
        try:
            os.makedirs(target, exist_ok=True)
            used = bool(os.listdir(target))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise PolytopicError(f"{target!r} cannot be a folder of results: {reason}.") from error
    else:
        import fsspec

        try:
            system, path = fsspec.core.url_to_fs(target)
            system.makedirs(path, exist_ok=True)
            used = bool(system.find(path))
        except Exception as error:  # each system has errors of its own
            reason = (str(error) or type(error).__name__).rstrip(".")
            raise PolytopicError(
                f"{without_password(target)!r} cannot be a folder of results: {reason}."
            ) from error
    if used:
        name = without_password(target)
        raise PolytopicError(f"{name!r} holds files already; give a new folder for the results.")
    return target.rstrip("/")


def without_password(url: str) -> str:
    """Return a URL as it may be shown.

    >>> without_password("ftp://reader:secret@host/news.jsonl")
    'ftp://reader:***@host/news.jsonl'
    """
    return re.sub(r"(://[^/:@]*):[^/@]*@", r"\1:***@", url)


def part_name(folder: str, number: int, *, zipped: bool = False) -> str:
    """Return the name of the file of a partition."""
    return f"{folder}/part-{number:05}.jsonl{'.gz' if zipped else ''}"


@contextmanager
def open_part(path: str) -> Iterator[Callable[[bytes], object]]:
    """Give what writes bytes to a file, which appears when it is whole."""
    if "://" not in path:
        with open_target(path) as write:
            yield write
        return
    import fsspec

    system, name = fsspec.core.url_to_fs(path)
    hidden = f"{name}.{os.urandom(8).hex()}.tmp"
    try:
        with system.open(hidden, "wb") as file:
            if name.endswith(".gz"):
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as zipped:
                    yield zipped.write
            else:
                yield file.write
        system.mv(hidden, name)
    except BaseException:
        with suppress(Exception):  # what went wrong first is told
            if system.exists(hidden):
                system.rm(hidden)
        raise
