"""Lines, and records of several lines, of any source, in constant memory."""

import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from reprlib import repr as short
from typing import IO, Any

from polytopic.errors import CorpusError

Source = str | os.PathLike[str] | IO[Any] | Iterable[str | bytes]

GZIP_MAGIC = b"\x1f\x8b"
MAX_LINE_BYTES = 64 * 2**20
SKIP_BYTES = 1 << 20  # read at once, to skip or count lines


class Lines:
    """Iterator of decoded lines, with their line ends.

    An invalid line raises ValueError; the next call continues with the line after it.

    Attributes
    ----------
    name : str
        Name of the source, for messages.
    number : int
        Number of the line read last, from 1 on. In a piece of a file, the ``before`` lines that
        precede it are counted.
    first : int
        Number of the first line of the record.
    last : str
        The line read last.
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
        self._n_bytes = 0
        self._is_unread = False

    @property
    def place(self) -> str:
        """The position of the record, for messages."""
        return f"{self.name}, line {self.first}"

    def start_record(self) -> None:
        """Start a record, which may have several lines, with the next line."""
        self._n_bytes = 0
        self.first = self.number + 1

    def start_here(self) -> None:
        """Start a record with the line just read."""
        self._n_bytes = len(self.last)
        self.first = self.number

    def unread(self) -> None:
        """Put back the line just read, so that it is returned once more."""
        self._is_unread = True
        self.number -= 1

    def __iter__(self) -> "Lines":
        return self

    def __next__(self) -> str:
        if self._is_unread:
            self._is_unread = False
            self.number += 1
            self._n_bytes += len(self.last)
            return self.last
        raw = next(self._raw)
        if not isinstance(raw, (str, bytes)):
            raise TypeError(f"a line is of type {type(raw).__name__}, must be str or bytes.")
        self.number += 1
        self._n_bytes += len(raw)
        if self._n_bytes > self._max_bytes:
            raise ValueError(f"longer than {self._max_bytes:,} bytes")
        line = self._decode(raw)
        if "\0" in line:
            raise ValueError("contains a NUL byte")
        self.last = line.removeprefix("\ufeff") if self.number == 1 else line
        return self.last

    def _decode(self, raw: str | bytes) -> str:
        if isinstance(raw, str):
            return raw
        try:
            return raw.decode(self._encoding)
        except UnicodeDecodeError as error:
            wrong = f"byte 0x{raw[error.start]:02x} at position {error.start + 1}"
            raise ValueError(f"not valid {self._encoding.upper()} ({wrong})") from None


class Blocks:
    """Iterator of records of several lines, each a list of lines.

    An invalid line raises ValueError; the next call continues with the record after it.

    Parameters
    ----------
    lines : Lines
        The lines.
    begins : str
        Pattern of the first line of a record.
    ends : str, optional
        Pattern of its last line; without it, a record ends where the next one begins.
    between : str, optional
        Pattern of lines that may occur between records, besides blank ones.
    """

    def __init__(self, lines: Lines, begins: str, *, ends: str = "(?!)", between: str = "(?!)"):
        self._lines = lines
        self._begins = re.compile(begins).match
        self._ends = re.compile(ends).search
        self._between = re.compile(between).match
        self._is_skipping = False  # whether to skip to the next record, after an invalid line

    def __iter__(self) -> "Blocks":
        return self

    def __next__(self) -> list[str]:
        try:
            return self._block(self._first())
        except ValueError:
            self._is_skipping = True
            raise

    def _first(self) -> str:
        for line in self._lines:
            self._lines.start_here()
            if self._begins(line):
                self._is_skipping = False
                return line
            if line.strip() and not self._is_skipping and not self._between(line):
                raise ValueError(f"{short(line.strip())} is outside of a record")
        raise StopIteration

    def _block(self, first: str) -> list[str]:
        block = [first]
        if self._ends(first):
            return block
        for line in self._lines:
            if self._begins(line):
                self._lines.unread()
                break
            block.append(line)
            if self._ends(line):
                break
        return block


class Piece:
    """The lines of a file that begin in a range of bytes, as the source of a reader.

    Pieces of adjacent ranges contain each line of the file exactly once.

    Parameters
    ----------
    file : binary file
        A seekable file.
    name : str
        Its name, for messages.
    start, stop : int
        The range of bytes.
    lines_before : int, default=0
        Number of lines before the piece, to number its lines.
    max_bytes : int
        Only the beginning of a longer line is read, one byte more than this.
    """

    def __init__(
        self,
        file: IO[bytes],
        name: str,
        start: int,
        stop: int,
        *,
        lines_before: int = 0,
        max_bytes: int,
    ):
        self.name, self.lines_before = name, lines_before
        self._file, self._start, self._stop, self._max_bytes = file, start, stop, max_bytes

    def __iter__(self) -> Iterator[bytes]:
        file, place = self._file, max(self._start - 1, 0)
        file.seek(place)
        if self._start:  # the line of the preceding byte belongs to another piece
            place += self._skip_line()
        while place < self._stop and (line := file.readline(self._max_bytes + 1)):
            yield line
            place += len(line)
            if line[-1:] != b"\n":
                place += self._skip_line()

    def _skip_line(self) -> int:
        """Skip the rest of the line; return its number of bytes."""
        skipped = 0
        while part := self._file.readline(SKIP_BYTES):
            skipped += len(part)
            if part[-1:] == b"\n":
                break
        return skipped


def count_lines(file: IO[bytes], start: int, stop: int) -> int:
    """Return the number of lines that end in a range of bytes."""
    file.seek(start)
    n_lines, n_bytes = 0, stop - start
    while n_bytes > 0 and (part := file.read(min(SKIP_BYTES, n_bytes))):
        n_lines += part.count(b"\n")
        n_bytes -= len(part)
    return n_lines


def read_lines(source: Source, *, max_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[str, str]]:
    """Yield the position, for messages, and the text of each line in UTF-8.

    An invalid line raises ValueError with its position.
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
    """Return a whole text in UTF-8, no longer than one line may be."""
    with _open_source(source) as file:
        try:
            with _read_errors():
                content = _decompress(file).read(max_bytes + 1)
            return "".join(Lines(iter([content]), encoding="utf-8", max_bytes=max_bytes))
        except ValueError as error:
            raise ValueError(f"{source_name(source)}: {error}.") from error


def read_bytes(path: str | os.PathLike[str], *, max_bytes: int = MAX_LINE_BYTES) -> bytes:
    """Return the content of a file, unzipped; a line that is too long raises ValueError."""
    lines: list[bytes] = []
    with raw_lines(path, max_bytes) as raw:
        try:
            for line in raw:
                if len(line) > max_bytes:
                    raise ValueError(f"line {len(lines) + 1} is longer than {max_bytes:,} bytes")
                lines.append(line)  # type: ignore[arg-type]  # files opened here are binary
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)!r}: {error}.") from error
    return b"".join(lines)


@contextmanager
def open_lines(source: Source, *, encoding: str, max_bytes: int) -> Iterator[Lines]:
    """Open a source as decoded lines."""
    before = source.lines_before if isinstance(source, Piece) else 0
    with raw_lines(source, max_bytes) as raw:
        name = source_name(source)
        yield Lines(raw, name=name, encoding=encoding, max_bytes=max_bytes, before=before)


@contextmanager
def raw_lines(source: Source, max_bytes: int) -> Iterator[Iterator[str | bytes]]:
    """Open a source as an iterator of raw lines; close it afterwards if it was opened here.

    ``"-"`` is standard input. Gzipped data are recognized by their first bytes, not by the name.
    """
    if isinstance(source, (str, os.PathLike)):
        with _open_source(source) as file:
            yield _file_lines(file, max_bytes)
    elif hasattr(source, "readline"):
        yield _file_lines(source, max_bytes)
    else:
        yield iter(source)


@contextmanager
def _open_source(source: str | os.PathLike[str]) -> Iterator[Any]:
    """Open a file, which is closed afterwards, or standard input, which is not."""
    if isinstance(source, str) and source == "-":
        yield _standard_input()
    else:
        with _open_file(source) as file:
            yield file


def _open_file(path: str | os.PathLike[str]) -> IO[bytes]:
    try:
        return open(path, "rb")
    except OSError as error:
        raise file_error(path, error) from error


def _standard_input() -> Any:
    """Return standard input, opened once more.

    Python cannot exit while a thread waits for ``sys.stdin`` itself.
    """
    if sys.stdin is None:
        raise CorpusError("standard input is closed.")
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (AttributeError, OSError, ValueError):  # replaced by something that is not a file
        return getattr(sys.stdin, "buffer", sys.stdin)


def source_name(source: Source) -> str:
    """Return the name of a source, for messages."""
    if isinstance(source, str) and source == "-":
        return "standard input"
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "input"


def file_error(path: str | os.PathLike[str], error: OSError) -> CorpusError:
    """Return an error that says why a file cannot be read."""
    name = os.fspath(path)
    if isinstance(error, FileNotFoundError):
        return CorpusError(f"{name!r} does not exist.")
    if isinstance(error, IsADirectoryError):
        return CorpusError(f"{name!r} is a folder, must be a file.")
    return CorpusError(f"{name!r} cannot be read: {(error.strerror or str(error)).lower()}.")


def _file_lines(file: Any, max_bytes: int) -> Iterator[str | bytes]:
    """Yield lines; of a line that is too long, yield the beginning and skip the rest."""
    with _read_errors():
        file = _decompress(file)
        while line := file.readline(max_bytes + 1):
            yield line
            while len(line) > max_bytes and line[-1:] not in ("\n", b"\n"):
                line = file.readline(max_bytes + 1) or line[:0]


@contextmanager
def _read_errors() -> Iterator[None]:
    """Raise ValueError for all errors while a file is read."""
    try:
        yield
    except EOFError:
        raise ValueError("the gzip data end too early") from None
    except (OSError, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"cannot be read further ({error})") from error


def _decompress(file: Any) -> Any:
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
