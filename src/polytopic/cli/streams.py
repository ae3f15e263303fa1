"""Standard streams for a command: lost results are a failure, lost messages are not."""

import io
import os
import sys
from typing import TextIO

OUTPUT = "standard output"  # what an OSError calls it


class _Results(io.FileIO):
    """Standard output. The first write that fails names it, and what follows is dropped.

    So a failure is reported once, and not again when Python flushes its streams at the end.
    """

    _lost = False

    def write(self, data, /):
        """Write bytes; return how many."""
        if self._lost:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            self._lost = True
            raise OSError(error.errno, error.strerror, OUTPUT) from None


class _Messages(io.FileIO):
    """Standard error. What cannot be written is dropped: no message decides about results."""

    def write(self, data, /):
        """Write bytes; return how many."""
        try:
            return super().write(data)
        except OSError:
            return len(data)


def prepare_streams() -> None:
    """Make standard output and standard error behave as described above.

    A stream that is closed gets a place holder, or else the next file that is opened, such as a
    database, would take its number and receive what is written to the stream.
    """
    # in the order of their numbers, since the lowest free one is taken
    if sys.stdin is None:
        os.open(os.devnull, os.O_WRONLY)  # reading it fails, as from a closed stream
    if sys.stdout is None:
        sys.stdout = _text(_Results(os.open(os.devnull, os.O_RDONLY), "w"))  # writing fails
    elif (number := _number(sys.stdout)) is not None:
        results = _Results(number, "w", closefd=False)
        sys.stdout = _text(results, sys.stdout.encoding, sys.stdout.errors)
    if sys.stderr is None:
        sys.stderr = _text(_Messages(os.devnull, "w"))
    elif (number := _number(sys.stderr)) is not None:
        messages = _Messages(number, "w", closefd=False)
        sys.stderr = _text(messages, sys.stderr.encoding, sys.stderr.errors)


def _number(stream: TextIO) -> int | None:
    """Return the number of a stream's file; None if it has none, as when a caller captures it."""
    try:
        return stream.fileno()
    except OSError:
        return None


def _text(
    raw: io.FileIO, encoding: str | None = "utf-8", errors: str | None = "backslashreplace"
) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors=errors, line_buffering=True
    )
