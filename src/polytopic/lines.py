"""Lines of any source, one at a time, in constant memory."""

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from polytopic.errors import CorpusError

Source = str | os.PathLike[str] | IO[Any] | Iterable[str | bytes]

GZIP_MAGIC = b"\x1f\x8b"
MAX_LINE_BYTES = 64 * 2**20


class Lines:
    """Iterator of decoded lines, with their line ends.

    A bad line raises ValueError, and the next call goes on with the line after it.

    Attributes
    ----------
    name : str
        What the source is called in a message.
    number : int
        Number of the last line read; the first is 1, or follows the ``before`` lines that there
        are before a piece of a file.
    first : int
        Number of the first line of the record.
    last : str
        The last line read.
    """

    def __init__(
        self,
        raw: Iterator[str | bytes],
        *,
        name: str = "input",
        encoding: str,
        max_bytes: int,
        before: int = 0,
    ):
        self.name = name
        self.number = before
        self.first = before + 1
        self.last = ""
        self._raw = raw
        self._encoding = encoding
        self._max_bytes = max_bytes
        self._used = 0
        self._again = False

    @property
    def place(self) -> str:
        """Where the record is, for a message."""
        return f"{self.name}, line {self.first}"

    def start_record(self) -> None:
        """Begin a record, which may take several lines, with the next line."""
        self._used = 0
        self.first = self.number + 1

    def start_here(self) -> None:
        """Begin a record with the line just read."""
        self._used = len(self.last)
        self.first = self.number

    def unread(self) -> None:
        """Let the next line be the last one again."""
        self._again = True
        self.number -= 1

    def __iter__(self) -> "Lines":
        return self

    def __next__(self) -> str:
        if self._again:
            self._again = False
            self.number += 1
            self._used += len(self.last)
            return self.last
        raw = next(self._raw)
        if not isinstance(raw, (str, bytes)):
            raise TypeError(f"a line is of type {type(raw).__name__}, must be str or bytes.")
        self.number += 1
        self._used += len(raw)
        if self._used > self._max_bytes:
            raise ValueError(f"longer than {self._max_bytes:,} bytes")
        line = self._decode(raw)
        if "\0" in line:
            raise ValueError("holds a NUL byte")
        self.last = line.removeprefix("\ufeff") if self.number == 1 else line
        return self.last

    def _decode(self, raw: str | bytes) -> str:
        if isinstance(raw, str):
            return raw
        try:
            return raw.decode(self._encoding)
        except UnicodeDecodeError as error:
            wrong = f"byte 0x{raw[error.start]:02x} at place {error.start + 1}"
            raise ValueError(f"not valid {self._encoding.upper()} ({wrong})") from None


def read_lines(source: Source, *, max_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[str, str]]:
    """Yield each line in UTF-8 with its place, for a message.

    A bad line raises ValueError and names its place.
    """
    with raw_lines(source, max_bytes) as raw:
        lines = Lines(raw, name=source_name(source), encoding="utf-8", max_bytes=max_bytes)
        while True:
            lines.start_record()
            try:
                line = next(lines)
            except StopIteration:
                return
            except ValueError as error:
                raise ValueError(f"{lines.place}: {error}.") from error
            yield lines.place, line


def read_text(source: str | os.PathLike[str], *, max_bytes: int = MAX_LINE_BYTES) -> str:
    """Return a whole text in UTF-8, which is held to the limit of one line."""
    with _opened(source) as file:
        try:
            with _one_kind_of_error():
                content = _unzipped(file).read(max_bytes + 1)
            return "".join(Lines(iter([content]), encoding="utf-8", max_bytes=max_bytes))
        except ValueError as error:
            raise ValueError(f"{source_name(source)}: {error}.") from error


def read_bytes(path: str | os.PathLike[str], *, max_bytes: int = MAX_LINE_BYTES) -> bytes:
    """Return what a file of lines holds, unzipped; a line that is too long raises ValueError."""
    lines: list[bytes] = []
    with raw_lines(path, max_bytes) as raw:
        try:
            for line in raw:
                if len(line) > max_bytes:
                    raise ValueError(f"line {len(lines) + 1} is longer than {max_bytes:,} bytes")
                lines.append(line)  # type: ignore[arg-type]  # a file of its own is binary
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)!r}: {error}.") from error
    return b"".join(lines)


@contextmanager
def raw_lines(source: Source, max_bytes: int) -> Iterator[Iterator[str | bytes]]:
    """Open a source and give its lines; what was opened here is closed at the end.

    ``"-"`` is standard input. A gzipped file is known by its first bytes, not by its name.
    """
    if isinstance(source, (str, os.PathLike)):
        with _opened(source) as file:
            yield _file_lines(file, max_bytes)
    elif hasattr(source, "readline"):
        yield _file_lines(source, max_bytes)
    else:
        yield iter(source)


@contextmanager
def _opened(source: str | os.PathLike[str]) -> Iterator[Any]:
    """Open a file, which is closed at the end, or standard input, which is not."""
    if isinstance(source, str) and source == "-":
        yield _standard_input()
    else:
        with _open(source) as file:
            yield file


def _open(path: str | os.PathLike[str]) -> IO[bytes]:
    try:
        return open(path, "rb")
    except OSError as error:
        raise file_error(path, error) from error


def _standard_input() -> Any:
    """Return standard input as a file of its own.

    Python cannot end while a thread waits in ``sys.stdin`` itself.
    """
    if sys.stdin is None:
        raise CorpusError("standard input is closed.")
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (AttributeError, OSError, ValueError):  # it was replaced by something without a file
        return getattr(sys.stdin, "buffer", sys.stdin)


def source_name(source: Source) -> str:
    """Return what to call a source in a message."""
    if isinstance(source, str) and source == "-":
        return "standard input"
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "input"


def file_error(path: str | os.PathLike[str], error: OSError) -> CorpusError:
    """Tell in a sentence why a file cannot be read."""
    name = os.fspath(path)
    if isinstance(error, FileNotFoundError):
        return CorpusError(f"{name!r} does not exist.")
    if isinstance(error, IsADirectoryError):
        return CorpusError(f"{name!r} is a folder, must be a file.")
    return CorpusError(f"{name!r} cannot be read: {(error.strerror or str(error)).lower()}.")


def _file_lines(file: Any, max_bytes: int) -> Iterator[str | bytes]:
    """Read lines; of one that is too long, give the beginning and pass over the rest."""
    with _one_kind_of_error():
        file = _unzipped(file)
        while line := file.readline(max_bytes + 1):
            yield line
            while len(line) > max_bytes and line[-1:] not in ("\n", b"\n"):
                line = file.readline(max_bytes + 1) or line[:0]


@contextmanager
def _one_kind_of_error() -> Iterator[None]:
    """Raise ValueError for whatever keeps a file from being read."""
    try:
        yield
    except EOFError:
        raise ValueError("the gzip data end too early") from None
    except (OSError, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"cannot be read further ({error})") from error


def _unzipped(file: Any) -> Any:
    if isinstance(file, io.TextIOBase) or _first_bytes(file) != GZIP_MAGIC:
        return file
    return gzip.GzipFile(fileobj=file)


def _first_bytes(file: Any) -> bytes:
    if hasattr(file, "peek"):
        return file.peek(2)[:2]
    if not file.seekable():
        return b""
    place = file.tell()
    first = file.read(2)
    file.seek(place)
    return first
