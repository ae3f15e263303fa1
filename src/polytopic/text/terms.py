"""The terms that a lexicon has met, by numbers."""

from collections import defaultdict
from itertools import count, islice

import numpy as np

_WORD = 8  # bytes that are compared at once
_MASKS = np.array([(1 << 64) - (1 << 8 * (_WORD - n)) for n in range(_WORD + 1)], dtype=np.uint64)


class Terms:
    """Distinct terms by their numbers; more may come, and none ever goes or changes.

    Attributes
    ----------
    names : list of str
        The terms.
    """

    def __init__(self):
        self.names: list[str] = []
        self._numbers = defaultdict[str | None, int](count().__next__, {None: -1})
        self._rank = np.zeros(0, dtype=np.int32)

    def __len__(self):
        return len(self.names)

    def number(self, terms):
        """Return the numbers of terms, new ones where they are new; one thread at a time."""
        numbers = np.fromiter(map(self._numbers.__getitem__, terms), np.int32, len(terms))
        n_new = len(self._numbers) - 1 - len(self.names)  # without None
        self.names.extend(reversed(list(islice(reversed(self._numbers), n_new))))
        return numbers

    def rank(self):
        """Return where each of the terms so far is among all in sorted order."""
        rank, n = self._rank, len(self.names)  # at once: another thread may put others there
        if rank.size != n:
            rank = np.empty(n, dtype=np.int32)
            rank[sorted_order(self.names[:n])] = np.arange(n)
            self._rank = rank
        return rank


def sorted_order(names):
    """Return the numbers of strings in sorted order.

    They are sorted by the first bytes of their UTF-8, whose order is that of characters; what is
    nearly sorted then takes little time.
    """
    data = "\0".join([*names, "\0" * 2 * _WORD]).encode("utf-8", "surrogatepass")
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 0)[: len(names)]
    starts = np.concatenate([[0], ends[:-1] + 1])
    if not names or starts.size != len(names):
        return sorted(range(len(names)), key=names.__getitem__)
    words = np.ndarray((len(data) - 7,), dtype=">u8", buffer=data, strides=(1,))
    parts = [
        words[starts + begin].astype(np.uint64) & _MASKS[np.clip(ends - starts - begin, 0, _WORD)]
        for begin in (_WORD, 0)
    ]
    return sorted(np.lexsort(parts).tolist(), key=names.__getitem__)
