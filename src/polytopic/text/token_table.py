"""Tokens that were met before, with their terms, in the form that compiled loops read."""

from threading import Lock

import numpy as np

from polytopic.kernels.tokens import PADDING, Slots, add_tokens, index_tokens
from polytopic.text.letters import borders_of, bytes_of, words_of
from polytopic.text.terms import Terms

_FEWEST_SLOTS = 1024
_FEWEST_NEW = 256  # tokens that make a new table,
_SHARE_NEW = 16  # or one in so many


class TokenTable:
    """Tokens in UTF-8 and the numbers of their terms; it does not change.

    Parameters
    ----------
    terms : Terms
        What numbers the terms; more may come.

    Attributes
    ----------
    slots : Slots
        The tokens.
    n_tokens : int
        How many there are.
    n_terms : int
        One more than the largest number here.
    """

    def __init__(self, terms):
        self.terms, self.n_terms, self.n_tokens = terms, len(terms), 0
        self._letters = b""
        index = np.full(_FEWEST_SLOTS, -1, dtype=np.int32)
        self.slots = self._make_slots(index, np.empty((0, 4), dtype=np.int64))

    @property
    def n_letters(self):
        """How many bytes all tokens have."""
        return len(self._letters)

    def grown(self, letters, numbers):
        """Return a table with more tokens, a zero after each, given with their terms' numbers."""
        table, n = object.__new__(type(self)), self.n_tokens
        table.terms, table.n_terms = self.terms, len(self.terms)
        table._letters = self._letters + letters
        rows = np.empty((n + len(numbers), 4), dtype=np.int64)
        rows[:n] = self.slots.rows[:n]
        table.slots = table._make_slots(self._index_for(rows), rows)
        starts, ends = (len(self._letters) + border for border in borders_of(letters))
        table.n_tokens = add_tokens(table.slots, n, starts, ends, numbers)
        return table

    def _index_for(self, rows):
        """Return a copy of the slots, more where less than half of them would stay empty."""
        old, n = self.slots.index, max(_FEWEST_SLOTS, 1 << (2 * len(rows)).bit_length())
        if n <= old.size:
            return old.copy()
        larger = np.full(n, -1, dtype=np.int32)
        index_tokens(rows, self.n_tokens, larger)
        return larger

    def _make_slots(self, index, rows):
        data = self._letters + bytes(PADDING)
        return Slots(index, rows, bytes_of(data), words_of(data))


class GrowingTable:
    """The newest table of tokens.

    Who takes `newest` has a table that does not change while others learn. New tokens wait until
    they are many, since each table is a copy; meanwhile they are found to be new again.
    """

    def __init__(self):
        self.newest = TokenTable(Terms())
        self._waiting: dict[bytes, int] = {}  # tokens, and the numbers of their terms
        self._n_waiting = 0  # bytes of them
        self._lock = Lock()

    def learn(self, letters, terms, which, most, most_letters):
        """Add tokens, and begin anew rather than have too many.

        Parameters
        ----------
        letters : bytes
            Distinct tokens in UTF-8, with a zero after each.
        terms : bytes
            The terms they have as letters, empty for none.
        which : ndarray of int
            Which of them each token has.
        most : int
            How many tokens to know at most.
        most_letters : int
            How many bytes they may have together.

        Returns
        -------
        terms : Terms
            What has numbered the terms.
        numbers : ndarray of int32
            The number of each token's term, -1 for none.
        """
        with self._lock:
            n_letters = self.newest.n_letters + self._n_waiting + len(letters)
            n_tokens = self.newest.n_tokens + len(self._waiting) + which.size
            if n_tokens > most or n_letters > most_letters:
                self.newest, self._waiting, self._n_waiting = TokenTable(Terms()), {}, 0
            known = self.newest.terms
            numbers = known.number(terms)[which]
            end = borders_of(letters)[1][most - 1] + 1 if which.size > most else None
            if len(letters) <= most_letters:
                self._add(letters[:end], numbers[:most])
            return known, numbers

    def _add(self, letters, numbers):
        """Let tokens wait, or make a table of them and of those that waited."""
        waiting = self._waiting
        n_many = max(_FEWEST_NEW, self.newest.n_tokens // _SHARE_NEW)
        if len(waiting) + numbers.size < n_many:
            self._n_waiting += len(letters)
            waiting.update(zip(letters.split(b"\0")[:-1], numbers.tolist(), strict=True))
            return
        waited = np.fromiter(waiting.values(), np.int32, len(waiting))
        before = b"".join([token + b"\0" for token in waiting])
        self.newest = self.newest.grown(before + letters, np.concatenate([waited, numbers]))
        self._waiting, self._n_waiting = {}, 0
