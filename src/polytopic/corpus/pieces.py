"""A piece of a file of lines: what begins in a range of its bytes."""

from collections.abc import Iterator
from typing import IO

READ = 1 << 20  # bytes that are passed over at once


class Piece:
    """The lines of a file that begin in a range of bytes; the source of a reader.

    The pieces of ranges that follow each other hold each line of the file once.

    Parameters
    ----------
    file : binary file
        It must be seekable.
    name : str
        What it is called in a message.
    start, stop : int
        The range of bytes.
    lines_before : int, default=0
        Lines of the file before the piece, for the numbers of lines.
    max_bytes : int
        Of a longer line, only the beginning is read, one byte more than this.
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
        if self._start:  # the line that the byte before belongs to is another piece's
            place += self._pass_over()
        while place < self._stop and (line := file.readline(self._max_bytes + 1)):
            yield line
            place += len(line)
            if line[-1:] != b"\n":
                place += self._pass_over()

    def _pass_over(self) -> int:
        """Read to the end of the line; return how many bytes that were."""
        passed = 0
        while part := self._file.readline(READ):
            passed += len(part)
            if part[-1:] == b"\n":
                break
        return passed


def count_lines(file: IO[bytes], start: int, stop: int) -> int:
    """Return how many lines end in a range of bytes."""
    file.seek(start)
    found, left = 0, stop - start
    while left > 0 and (part := file.read(min(READ, left))):
        found += part.count(b"\n")
        left -= len(part)
    return found
