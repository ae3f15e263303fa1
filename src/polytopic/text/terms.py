"""The terms that a lexicon has met, by numbers."""

from typing import NamedTuple

import numpy as np

from polytopic.kernels.tokens import (
    PADDING,
    index_tokens,
    known_tokens,
    number_tokens,
)
from polytopic.text.letters import borders_of, bytes_of, packed, split, words_of

_FEWEST_SLOTS = 64
_WORD = 8  # bytes that are compared at once
_MASKS = np.array([(1 << 64) - (1 << 8 * (_WORD - n)) for n in range(_WORD + 1)], dtype=np.uint64)


class _Known(NamedTuple):
    """Terms that are known. What their arrays have of them stays; later ones come behind."""

    n: int
    size: int  # of the letters
    starts: np.ndarray  # of each term, and of the next one
    letters: np.ndarray


class Terms:
    """Distinct terms by their numbers; more may come, and none ever goes or changes."""

    def __init__(self):
        self._index = np.full(_FEWEST_SLOTS, -1, dtype=np.int32)
        self._rows = np.empty((0, 4), dtype=np.int64)
        self._filled = np.zeros(2, dtype=np.int64)  # how much of these is used, also by an attempt
        starts, letters = np.zeros(_FEWEST_SLOTS, np.int64), np.zeros(_FEWEST_SLOTS, np.uint8)
        self._known = _Known(0, 0, starts, letters)  # at once, for threads that only read
        self._rank = np.zeros(0, dtype=np.int32)

    def __len__(self):
        return self._known.n

    def number(self, letters):
        """Return the numbers of terms, new ones where they are new; one thread at a time.

        -1 for an empty one.
        """
        starts, ends = borders_of(letters)
        full, data = ends > starts, letters + bytes(PADDING)
        known = self._reserved(int(np.count_nonzero(full)), len(letters))
        numbers = np.full(ends.size, -1, dtype=np.int32)
        own = np.empty(np.count_nonzero(full), dtype=np.int32)
        number_tokens(
            bytes_of(data),
            words_of(data),
            starts[full],
            ends[full],
            self._index,
            self._rows,
            known.letters,
            self._filled,
            own,
        )
        numbers[full], (n, size) = own, self._filled.tolist()
        known.starts[known.n + 1 : n + 1] = (
            known.size + 1 + np.flatnonzero(known.letters[known.size : size] == 0)
        )
        self._known = known._replace(n=n, size=size)
        return numbers

    def _reserved(self, n_more, size_more):
        """Return what is known, in arrays that have place for more.

        Where numbering was interrupted, its terms are in the index without being known, and leave
        it again.
        """
        known = self._known
        n = known.n + n_more
        self._rows = _with_place(self._rows, n)
        if 2 * n > self._index.size or self._filled[0] != known.n:
            index = np.full(1 << (4 * n).bit_length(), -1, dtype=np.int32)
            index_tokens(self._rows, known.n, index)
            self._index, self._filled = index, np.array([known.n, known.size])
        starts = _with_place(known.starts, n + 1)
        return known._replace(
            starts=starts, letters=_with_place(known.letters, known.size + size_more)
        )

    def has(self, letters):
        """Return which terms are known."""
        starts, ends = borders_of(letters)
        data = letters + bytes(PADDING)
        own, known = (self._index, self._rows, self._known.letters), np.empty(starts.size, bool)
        known_tokens(bytes_of(data), words_of(data), starts, ends, *own, known)
        return known

    def names(self, numbers):
        """Return terms by their numbers."""
        _, _, starts, letters = self._known
        return split(packed(letters, starts[numbers], starts[numbers + 1] - 1))

    def rank(self):
        """Return where each of the terms so far is among all in sorted order."""
        rank, known = self._rank, self._known  # at once: another thread may put others there
        if rank.size != known.n:
            rank = np.empty(known.n, dtype=np.int32)
            rank[_sorted_order(known)] = np.arange(known.n)
            self._rank = rank
        return rank


def _with_place(array, size):
    """Return an array that has at least this size, and begins with what was there."""
    if size <= array.shape[0]:
        return array
    larger = np.zeros((2 * size, *array.shape[1:]), dtype=array.dtype)
    larger[: array.shape[0]] = array
    return larger


def _sorted_order(known):
    """Return the numbers of terms in sorted order.

    That of UTF-8 is that of characters. The first bytes are compared as numbers; few terms have
    the same there.
    """
    starts, sizes = known.starts[: known.n], np.diff(known.starts[: known.n + 1]) - 1
    data = known.letters[: known.size].tobytes() + bytes(2 * _WORD)
    words = np.ndarray((len(data) - 7,), dtype=">u8", buffer=data, strides=(1,))
    parts = [
        words[starts + begin].astype(np.uint64) & _MASKS[np.clip(sizes - begin, 0, _WORD)]
        for begin in (_WORD, 0)
    ]
    order = np.lexsort(parts)
    for begin, end in _runs(*(part[order] for part in parts)):
        order[begin:end] = sorted(
            order[begin:end].tolist(), key=lambda k: data[starts[k] : starts[k] + sizes[k]]
        )
    return order


def _runs(*keys):
    """Return where runs of terms that are equal by all keys begin and end."""
    tied = np.flatnonzero(np.logical_and.reduce([key[1:] == key[:-1] for key in keys]))
    begins = tied[np.diff(tied, prepend=-2) > 1]
    ends = tied[np.diff(tied, append=keys[0].size + 1) > 1] + 2
    return zip(begins.tolist(), ends.tolist(), strict=True)
