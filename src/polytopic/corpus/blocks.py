"""Records of several lines, in constant memory."""

import re
from reprlib import repr as short

from polytopic.lines import Lines


class Blocks:
    """Iterator of the lines of each record.

    A bad line raises ValueError, and the next call goes on with the record after it.

    Parameters
    ----------
    lines : Lines
        The lines.
    begins : str
        Pattern of the first line of a record.
    ends : str, optional
        Pattern of its last line; without it, a record goes on until the next begins.
    between : str, optional
        Pattern of lines that may stand between records, besides blank ones.
    """

    def __init__(self, lines: Lines, begins: str, *, ends: str = "(?!)", between: str = "(?!)"):
        self._lines = lines
        self._begins = re.compile(begins).match
        self._ends = re.compile(ends).search
        self._between = re.compile(between).match
        self._lost = False  # after a bad line the rest of its record is no record of its own

    def __iter__(self) -> "Blocks":
        return self

    def __next__(self) -> list[str]:
        try:
            return self._block(self._first())
        except ValueError:
            self._lost = True
            raise

    def _first(self) -> str:
        for line in self._lines:
            self._lines.start_here()
            if self._begins(line):
                self._lost = False
                return line
            if line.strip() and not self._lost and not self._between(line):
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
