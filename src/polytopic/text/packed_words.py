"""Packed words: many words in one string of bytes, in UTF-8, with a zero after each.

Compiled loops read words in this form. The functions here work on all of them at once. `Terms`
numbers distinct words, and `TokenTable` holds the terms of known tokens; both can be read by some
threads while another one adds to them.
"""

from threading import Lock
from typing import NamedTuple

import numpy as np

from polytopic.text.kernels import (
    PADDING,
    Slots,
    add_tokens,
    are_known,
    index_tokens,
    number_tokens,
    pack_tokens,
    packed_bounds,
)
from polytopic.text.tokens import main_part

_MIN_TERM_SLOTS = 64
_MIN_TOKEN_SLOTS = 1024
_MIN_NEW = 256  # waiting tokens for which a new table is made,
_SHARE_NEW = 16  # or a sixteenth of the tokens in the table
_WORD = 8  # bytes that are compared at once
_MASKS = np.array([(1 << 64) - (1 << 8 * (_WORD - n)) for n in range(_WORD + 1)], dtype=np.uint64)


def pack(words):
    """Return words as packed words."""
    return "\0".join([*words, ""]).encode()


def unpack(packed):
    """Return packed words as a list of strings."""
    return packed.decode().split("\0")[:-1]


def byte_view(data):
    """Return bytes as an array, always read-only, so that kernels are compiled once."""
    view = np.frombuffer(data, dtype=np.uint8)
    view.flags.writeable = False
    return view


def word_view(data):
    """Return, for each position, the eight bytes that begin there, as one integer."""
    return np.ndarray((len(data) - 7,), dtype=np.int64, buffer=data, strides=(1,))


def bounds(packed):
    """Return where each word starts and where it ends."""
    n = packed.count(b"\0")
    starts, ends = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    packed_bounds(byte_view(packed), starts, ends)
    return starts[:n], ends[:n]


def cut(data, starts, ends):
    """Return the words ``data[start:end]`` as packed words."""
    out = np.empty((ends - starts).sum() + starts.size, dtype=np.uint8)
    pack_tokens(byte_view(data), starts, ends, out)
    return out.tobytes()


def distinct(data, starts, ends):
    """Return which distinct word each ``data[start:end]`` is, and the distinct words, packed.

    Distinct words are numbered in the order in which they first occur.
    """
    padded = data + bytes(PADDING)
    index = np.full(2 << starts.size.bit_length(), -1, dtype=np.int32)
    rows = np.empty((starts.size, 4), dtype=np.int64)
    own = np.empty((ends - starts).sum() + starts.size, dtype=np.uint8)
    numbers, used = np.empty(starts.size, dtype=np.int32), np.zeros(2, dtype=np.int64)
    text, words = byte_view(padded), word_view(padded)
    number_tokens(text, words, starts, ends, index, rows, own, used, numbers)
    return numbers, own[: used[1]].tobytes()


def select(packed, mask):
    """Return the words for which the mask is true."""
    starts, ends = bounds(packed)
    return cut(packed, starts[mask], ends[mask])


def replace(packed, others, mask):
    """Return the words; where the mask is true, the other words take their place, in order."""
    both = packed + others
    starts, ends = bounds(both)
    places = np.where(mask, mask.size - 1 + np.cumsum(mask), np.arange(mask.size))
    return cut(both, starts[places], ends[places])


def scatter(packed, mask):
    """Return the words, in order, where the mask is true, with empty words where it is false."""
    return replace(bytes(mask.size), packed, mask)


def are_empty(packed):
    """Return which words are empty."""
    starts, ends = bounds(packed)
    return starts == ends


def contain(packed, byte):
    """Return which words contain a byte."""
    ends = bounds(packed)[1]
    contains = np.zeros(ends.size, dtype=bool)
    contains[np.searchsorted(ends, np.flatnonzero(byte_view(packed) == ord(byte)))] = True
    return contains


def main_parts(packed):
    """Return the main part of each word, see `main_part`."""
    joined = contain(packed, b"'")
    return replace(packed, pack(map(main_part, unpack(select(packed, joined)))), joined)


class _Snapshot(NamedTuple):
    """The terms at one moment. Arrays may be longer: newer terms are appended, none is changed."""

    n: int
    size: int  # bytes in ``letters``
    starts: np.ndarray  # of each term, and of the next one
    letters: np.ndarray  # packed words


class Terms:
    """Distinct terms, numbered from 0. Terms can be added, but not changed or removed."""

    def __init__(self):
        self._index = np.full(_MIN_TERM_SLOTS, -1, dtype=np.int32)
        self._rows = np.empty((0, 4), dtype=np.int64)
        self._used = np.zeros(2, dtype=np.int64)  # rows and bytes, with those of interrupted calls
        starts, letters = np.zeros(2, np.int64), np.zeros(_MIN_TERM_SLOTS, np.uint8)
        self._now = _Snapshot(0, 0, starts, letters)  # replaced in one assignment, for readers
        self._rank = np.zeros(0, dtype=np.int32)

    def __len__(self):
        return self._now.n

    def number(self, packed):
        """Return the numbers of packed terms, -1 for an empty one; unknown terms are added.

        Only one thread may call this at a time; others may read meanwhile.
        """
        starts, ends = bounds(packed)
        full = ends > starts
        starts, ends, data = starts[full], ends[full], packed + bytes(PADDING)
        own_numbers = np.empty(starts.size, dtype=np.int32)
        now = self._reserve(starts.size, len(packed))
        text, words, table = byte_view(data), word_view(data), (self._index, self._rows)
        number_tokens(text, words, starts, ends, *table, now.letters, self._used, own_numbers)
        n, size = self._used.tolist()
        word_ends = now.size + np.flatnonzero(now.letters[now.size : size] == 0)
        now.starts[now.n + 1 : n + 1] = word_ends + 1
        self._now = now._replace(n=n, size=size)
        numbers = np.full(full.size, -1, dtype=np.int32)
        numbers[full] = own_numbers
        return numbers

    def _reserve(self, n_more, size_more):
        """Return the present snapshot in arrays that are long enough for more terms.

        Terms of an interrupted call are in the index but in no snapshot, and are dropped here.
        """
        now = self._now
        n = now.n + n_more
        self._rows = _lengthen(self._rows, n)
        if 2 * n > self._index.size or self._used[0] != now.n:
            index = np.full(1 << (4 * n).bit_length(), -1, dtype=np.int32)
            index_tokens(self._rows, now.n, index)
            self._index, self._used = index, np.array([now.n, now.size])
        starts, letters = _lengthen(now.starts, n + 1), _lengthen(now.letters, now.size + size_more)
        return now._replace(starts=starts, letters=letters)

    def contain(self, packed):
        """Return which of the packed words are terms."""
        starts, ends = bounds(packed)
        data, known = packed + bytes(PADDING), np.empty(starts.size, bool)
        table = self._index, self._rows, self._now.letters
        are_known(byte_view(data), word_view(data), starts, ends, *table, known)
        return known

    def names(self, numbers):
        """Return the terms with the given numbers."""
        _, _, starts, letters = self._now
        return unpack(cut(letters, starts[numbers], starts[numbers + 1] - 1))

    def rank(self):
        """Return the position of each term in sorted order."""
        rank, now = self._rank, self._now  # read once: another thread may replace them
        if rank.size != now.n:
            rank = np.empty(now.n, dtype=np.int32)
            rank[_sort(now)] = np.arange(now.n)
            self._rank = rank
        return rank


class TokenTable:
    """Tokens and the numbers of their terms. A table never changes; `grow` returns another one.

    Parameters
    ----------
    terms : Terms
        The terms, to which others may be added.

    Attributes
    ----------
    slots : Slots
        The tokens.
    n_tokens : int
        Number of tokens.
    n_terms : int
        One more than the largest number of a term in the table.
    """

    def __init__(self, terms):
        self.terms, self.n_terms, self.n_tokens = terms, len(terms), 0
        self._letters = b""
        index = np.full(_MIN_TOKEN_SLOTS, -1, dtype=np.int32)
        self.slots = self._make_slots(index, np.empty((0, 4), dtype=np.int64))

    @property
    def n_letters(self):
        """Number of bytes of all tokens."""
        return len(self._letters)

    def grow(self, packed, numbers):
        """Return a table that also holds these packed tokens, with the numbers of their terms."""
        table, n = object.__new__(type(self)), self.n_tokens
        table.terms, table.n_terms = self.terms, len(self.terms)
        table._letters = self._letters + packed
        rows = np.empty((n + len(numbers), 4), dtype=np.int64)
        rows[:n] = self.slots.rows[:n]
        table.slots = table._make_slots(self._index_for(rows), rows)
        starts, ends = (len(self._letters) + bound for bound in bounds(packed))
        table.n_tokens = add_tokens(table.slots, n, starts, ends, numbers)
        return table

    def _index_for(self, rows):
        """Return a copy of the slots, larger if less than half of them would stay empty."""
        old, n = self.slots.index, max(_MIN_TOKEN_SLOTS, 1 << (2 * len(rows)).bit_length())
        if n <= old.size:
            return old.copy()
        larger = np.full(n, -1, dtype=np.int32)
        index_tokens(rows, self.n_tokens, larger)
        return larger

    def _make_slots(self, index, rows):
        data = self._letters + bytes(PADDING)
        return Slots(index, rows, byte_view(data), word_view(data))


class GrowingTable:
    """The newest table of tokens, which grows while texts are read.

    `newest` never changes, so threads can read it while another one adds tokens. Each new table is
    a copy, so tokens wait until there are many; until then, the table does not have them.
    """

    def __init__(self):
        self.newest = TokenTable(Terms())
        self._waiting: dict[bytes, int] = {}  # tokens, and the numbers of their terms
        self._n_waiting_bytes = 0
        self._lock = Lock()

    def add(self, packed, terms, which, max_tokens, max_bytes):
        """Add tokens; start over with an empty table if it would become too large.

        Parameters
        ----------
        packed : bytes
            Distinct tokens, packed.
        terms : bytes
            Their terms, packed; an empty word for a token that is dropped.
        which : ndarray of int
            Which of the terms each token has.
        max_tokens, max_bytes : int
            Largest size of a table.

        Returns
        -------
        terms : Terms
            The terms that the numbers refer to.
        numbers : ndarray of int32
            The number of each token's term, -1 for none.
        """
        with self._lock:
            n_bytes = self.newest.n_letters + self._n_waiting_bytes + len(packed)
            n_tokens = self.newest.n_tokens + len(self._waiting) + which.size
            if n_tokens > max_tokens or n_bytes > max_bytes:
                self._replace(TokenTable(Terms()))
            known = self.newest.terms
            numbers = known.number(terms)[which]
            end = bounds(packed)[1][max_tokens - 1] + 1 if which.size > max_tokens else None
            if len(packed) <= max_bytes:
                self._add(packed[:end], numbers[:max_tokens])
            return known, numbers

    def _add(self, packed, numbers):
        """Let tokens wait or, if there are many, make a table with all that wait."""
        waiting = self._waiting
        n_many = max(_MIN_NEW, self.newest.n_tokens // _SHARE_NEW)
        if len(waiting) + numbers.size < n_many:
            self._n_waiting_bytes += len(packed)
            waiting.update(zip(packed.split(b"\0")[:-1], numbers.tolist(), strict=True))
            return
        earlier_numbers = np.fromiter(waiting.values(), np.int32, len(waiting))
        earlier = b"".join([token + b"\0" for token in waiting])
        self._replace(self.newest.grow(earlier + packed, np.append(earlier_numbers, numbers)))

    def _replace(self, table):
        self.newest, self._waiting, self._n_waiting_bytes = table, {}, 0


def _lengthen(array, size):
    """Return an array of at least this size that begins with the given one."""
    if size <= array.shape[0]:
        return array
    larger = np.zeros((2 * size, *array.shape[1:]), dtype=array.dtype)
    larger[: array.shape[0]] = array
    return larger


def _sort(terms):
    """Return the numbers of terms in sorted order.

    UTF-8 sorts as its characters do. The first 16 bytes are compared as two integers; only the few
    terms that agree there are compared as strings.
    """
    starts, sizes = terms.starts[: terms.n], np.diff(terms.starts[: terms.n + 1]) - 1
    data = terms.letters[: terms.size].tobytes() + bytes(2 * _WORD)
    words = np.ndarray((len(data) - 7,), dtype=">u8", buffer=data, strides=(1,))
    parts = [
        words[starts + first].astype(np.uint64) & _MASKS[np.clip(sizes - first, 0, _WORD)]
        for first in (_WORD, 0)
    ]
    order = np.lexsort(parts)
    for begin, end in _runs(*(part[order] for part in parts)):
        order[begin:end] = sorted(
            order[begin:end].tolist(), key=lambda k: data[starts[k] : starts[k] + sizes[k]]
        )
    return order


def _runs(*keys):
    """Return where each run of terms with equal keys begins and ends."""
    tied = np.flatnonzero(np.logical_and.reduce([key[1:] == key[:-1] for key in keys]))
    begins = tied[np.diff(tied, prepend=-2) > 1]
    ends = tied[np.diff(tied, append=keys[0].size + 1) > 1] + 2
    return zip(begins.tolist(), ends.tolist(), strict=True)
