"""Files anywhere: local paths, and URLs of any file system that fsspec knows."""

from __future__ import annotations

import glob
import gzip
import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from polytopic.corpus.writers import open_target
from polytopic.errors import CorpusError, PolytopicError
from polytopic.lines import file_error


def is_url(path: str) -> bool:
    """Return whether a path is a URL."""
    return "://" in path


def hide_password(url: str) -> str:
    """Return a URL as it may be shown.

    >>> hide_password("ftp://reader:secret@host/news.jsonl")
    'ftp://reader:***@host/news.jsonl'
    """
    return re.sub(r"(://[^/:@]*):[^/@]*@", r"\1:***@", url)


# Reading


def find_urls(source: str) -> list[str]:
    """Return the URLs of the files that a URL, a folder or a pattern stands for."""
    import fsspec

    with _readable(source):
        system, path = fsspec.core.url_to_fs(source)
        if glob.has_magic(path):
            paths = sorted(name for name in system.glob(path) if system.isfile(name))
        elif system.isdir(path):
            paths = sorted(name for name in system.find(path, maxdepth=1) if system.isfile(name))
        else:
            paths = [path] if system.exists(path) else []
    if not paths:
        raise CorpusError(f"{hide_password(source)!r} matches no file.")
    return [_url_of(system, source, path, name) for name in paths]


def _url_of(system: Any, source: str, path: str, name: str) -> str:
    """Return the URL of a file; ``path`` is the source as its file system names it.

    What precedes the path, such as host and user, is the same for all files.
    """
    if name == path:
        return source
    before = source.rstrip("/").removesuffix(path.rstrip("/"))
    is_prefix = before != source.rstrip("/")
    return f"{before}{name}" if is_prefix else str(system.unstrip_protocol(name))


def file_size(path: str) -> int:
    """Return the size of a file in bytes."""
    if is_url(path):
        import fsspec

        with _readable(path):
            system, name = fsspec.core.url_to_fs(path)
            return int(system.size(name) or 0)
    try:
        return os.path.getsize(path)
    except OSError as error:
        raise file_error(path, error) from error


def open_file(path: str, stack: ExitStack) -> Any:
    """Open a file for reading; the stack closes it."""
    if is_url(path):
        import fsspec

        with _readable(path):
            file = stack.enter_context(fsspec.open(path, "rb"))
        return stack.enter_context(io.BufferedReader(file))  # some lack readline(size)
    try:
        return stack.enter_context(open(path, "rb"))
    except OSError as error:
        raise file_error(path, error) from error


def path_or_file(path: str, stack: ExitStack) -> Any:
    """Return what a reader takes: a local path as it is, a URL as an open file."""
    return open_file(path, stack) if is_url(path) else path


@contextmanager
def _readable(url: str) -> Iterator[None]:
    """Turn the errors of file systems, which have no common class, into a CorpusError."""
    try:
        yield
    except CorpusError:
        raise
    except Exception as error:
        raise CorpusError(f"{hide_password(url)!r} cannot be read: {_reason(error)}.") from error


def _reason(error: Exception) -> str:
    return (str(error) or type(error).__name__).rstrip(".")


# Writing


def create_folder(target: str | os.PathLike[str]) -> str:
    """Create a folder for results at a path or URL; raise an error if it contains files."""
    target = os.fspath(target)
    target = target if is_url(target) else os.path.abspath(target)
    try:
        has_files = _create_remote(target) if is_url(target) else _create_local(target)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise _not_a_folder(target, reason) from error
    except Exception as error:  # file systems have no common class of errors
        raise _not_a_folder(target, _reason(error)) from error
    if has_files:
        name = hide_password(target)
        raise PolytopicError(f"{name!r} already contains files; give a new folder for the results.")
    return target.rstrip("/")


def _create_local(path: str) -> bool:
    os.makedirs(path, exist_ok=True)
    return bool(os.listdir(path))


def _create_remote(url: str) -> bool:
    import fsspec

    system, path = fsspec.core.url_to_fs(url)
    system.makedirs(path, exist_ok=True)
    return bool(system.find(path))


def _not_a_folder(target: str, reason: str) -> PolytopicError:
    return PolytopicError(f"{hide_password(target)!r} cannot hold results: {reason}.")


def part_path(folder: str, number: int, *, zipped: bool = False) -> str:
    """Return the path of the file of a partition."""
    return f"{folder}/part-{number:05}.jsonl{'.gz' if zipped else ''}"


@contextmanager
def write_file(path: str) -> Iterator[Callable[[bytes], object]]:
    """Yield a function that writes bytes to a file, which appears once it is complete."""
    if not is_url(path):
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
        with suppress(Exception):  # the first error is the one to raise
            if system.exists(hidden):
                system.rm(hidden)
        raise
