"""Tokens that were met before, with their terms, in the form that compiled loops read."""

from functools import cached_property
from itertools import islice
from threading import Lock

import numpy as np

from polytopic.kernels.tokens import PADDING, PLACE, Slots, add_tokens, move_tokens

_FEWEST_SLOTS = 1024
_FEWEST_NEW = 256  # tokens that make a new table,
_SHARE_NEW = 16  # or one in so many


def words_of(data):
    """Return the eight bytes from each place on, as one number."""
    return np.ndarray((len(data) - 7,), dtype=np.int64, buffer=data, strides=(1,))


class TokenTable:
    """Tokens in UTF-8 and the numbers of their terms; it does not change.

    Attributes
    ----------
    slots : Slots
        The tokens.
    n_tokens : int
        How many there are.
    terms : list of str
        The terms by their numbers. A table that grew from this one shares the list, and may have
        put more terms at its end.
    n_terms : int
        How many of them are known here.
    """

    def __init__(self):
        self.terms, self.n_terms, self.n_tokens = [], 0, 0
        self._numbers = {}  # of the terms, shared as they are
        self._letters = b""
        self.slots = self._make_slots(np.zeros((_FEWEST_SLOTS, 4), dtype=np.int64))

    def grown(self, found):
        """Return a table with more tokens, given with their terms; one thread at a time."""
        table = object.__new__(type(self))
        table.terms, table._numbers = self.terms, self._numbers
        terms = np.fromiter(map(self._number, found.values()), np.int64, len(found))
        table.n_terms = len(self.terms)
        table._letters = self._letters + b"".join([token + b"\0" for token in found])
        table.slots = table._make_slots(self._rows_for(self.n_tokens + len(found)))
        sizes = np.fromiter(map(len, found), np.int64, len(found))
        ends = len(self._letters) + np.cumsum(sizes + 1) - 1
        table.n_tokens = self.n_tokens + add_tokens(table.slots, ends - sizes, ends, terms)
        return table

    def _rows_for(self, n_tokens):
        """Return a copy of the table, larger where less than half of it would stay empty."""
        old = self.slots.table
        n = max(_FEWEST_SLOTS, 1 << (2 * n_tokens).bit_length())
        if n <= old.shape[0]:
            return old.copy()
        larger = np.zeros((n, 4), dtype=np.int64)
        move_tokens(old[np.argsort(old[:, PLACE])], larger)  # the first are the most frequent ones
        return larger

    def _make_slots(self, rows):
        data = self._letters + bytes(PADDING)
        return Slots(rows, np.frombuffer(data, dtype=np.uint8), words_of(data))

    @cached_property
    def rank(self):
        """Where each term is among all terms in sorted order."""
        rank = np.empty(self.n_terms, dtype=np.int64)
        rank[sorted(range(self.n_terms), key=self.terms.__getitem__)] = np.arange(self.n_terms)
        return rank

    def _number(self, term):
        if term is None:
            return -1
        number = self._numbers.setdefault(term, len(self.terms))
        if number == len(self.terms):
            self.terms.append(term)
        return number


class GrowingTable:
    """The newest table of tokens.

    Who takes `newest` has a table that does not change while others learn. New tokens wait until
    they are many, since each table is a copy; meanwhile they are found to be new again.
    """

    def __init__(self):
        self.newest = TokenTable()
        self._waiting = {}
        self._lock = Lock()

    def learn(self, found, most):
        """Add tokens in UTF-8 with their terms, and begin anew rather than have too many."""
        with self._lock:
            self._waiting.update(found)
            table, n = self.newest, len(self._waiting)
            if n < max(_FEWEST_NEW, table.n_tokens // _SHARE_NEW):
                return
            if table.n_tokens + n > most:
                table, self._waiting = TokenTable(), dict(islice(self._waiting.items(), most))
            self.newest = table.grown(self._waiting)
            self._waiting = {}
