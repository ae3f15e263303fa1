"""Which column each term gets."""

import numpy as np

from polytopic.kernels.rows import number_columns
from polytopic.text.terms import Terms

_NOT_YET = -2
_NONE = np.zeros(0, dtype=np.int32)


class NewColumns:
    """Columns for all terms, in the order in which they come.

    A term may get several columns, from names and from numbers; the order makes them one.
    """

    def __init__(self):
        self._n = 0
        self._named: dict[str, int] = {}  # the columns of terms that came by name
        self._numbered: list[tuple[Terms, np.ndarray, int]] = []  # those that came by numbers
        self._columns: np.ndarray | None = None  # of all terms of the last of these

    def of_terms(self, terms):
        """Return the columns of terms by name."""
        new = [term for term in dict.fromkeys(terms) if term not in self._named]
        self._named.update(zip(new, range(self._n, self._n + len(new)), strict=True))
        self._n += len(new)
        return list(map(self._named.__getitem__, terms))

    def of_scan(self, scan):
        """Return the columns of the terms that were found in strings, -1 where they are new."""
        return self.of_numbers(scan.table.terms, scan.numbers)

    def of_numbers(self, terms, numbers):
        """Return the columns of terms by their numbers, -1 for -1."""
        if self._numbered and self._numbered[-1][0] is not terms:
            self._columns = None
        found, new = np.empty(numbers.size, np.int32), np.empty(numbers.size, np.int32)
        n_new = number_columns(numbers, self._of_all(len(terms), numbers), self._n, found, new)
        new = new[:n_new]
        self._numbered.append((terms, new, self._n))
        self._n += new.size
        return found

    def _of_all(self, n_terms, numbers):
        """Return the columns of all terms so far, right for these numbers."""
        if self._columns is None and 8 * numbers.size < n_terms:  # too few to prepare all
            columns = np.empty(n_terms, dtype=np.int32)
            columns[numbers] = _NOT_YET
            return columns
        known = _NONE if self._columns is None else self._columns
        if self._columns is None or known.size < n_terms:
            more = np.full(n_terms + n_terms // 2 - known.size, _NOT_YET, dtype=np.int32)
            self._columns = np.concatenate([known, more])
        return self._columns

    def sorted(self):
        """Return the terms in sorted order, and which of them each column is."""
        sources = {id(terms): terms for terms, *_ in self._numbered}
        if len(sources) == 1 and not self._named:
            (terms,) = sources.values()
            if 4 * self._n > len(terms):
                return _in_order(terms, np.concatenate([new for _, new, _ in self._numbered]))
        names = [""] * self._n
        for name, column in self._named.items():
            names[column] = name
        for terms, new, first in self._numbered:
            names[first : first + new.size] = terms.names(new)
        distinct = sorted(set(names))
        places = dict(zip(distinct, range(len(distinct)), strict=True))
        return distinct, np.fromiter(map(places.__getitem__, names), np.int32, len(names))


def _in_order(terms, numbers):
    """Return terms that have numbers in sorted order, and which of them each number is."""
    ranks = terms.rank()[numbers]
    by_rank = np.full(len(terms), -1, dtype=np.int32)
    by_rank[ranks] = numbers
    used = by_rank >= 0
    return terms.names(by_rank[used]), (np.cumsum(used, dtype=np.int32) - 1)[ranks]


class KnownColumns:
    """The columns of a vocabulary, -1 for all other terms.

    The columns of a table's terms are looked up once.
    """

    def __init__(self, index):
        self.index = index
        self._last: tuple[Terms | None, np.ndarray] = None, np.full(1, -1, dtype=np.int32)

    def of_terms(self, terms):
        """Return the columns of terms, -1 for those that are not known."""
        get = self.index.get
        return [get(term, -1) for term in terms]

    def of_scan(self, scan):
        """Return the columns of the terms that were found in strings, -1 where they are new."""
        return self._of_table(scan.table)[scan.numbers]

    def of_numbers(self, terms, numbers):
        """Return the columns of terms by their numbers, -1 for those that are not known."""
        columns = np.full(numbers.size, -1, dtype=np.int32)
        columns[numbers >= 0] = self.of_terms(terms.names(numbers[numbers >= 0]))
        return columns

    def _of_table(self, table):
        """Return the columns of a table's terms, and -1 as the last."""
        terms, columns = self._last  # at once: another thread may put others there
        n_known = columns.size - 1 if terms is table.terms else 0
        if n_known < table.n_terms or terms is not table.terms:
            more = self.of_terms(table.terms.names(np.arange(n_known, table.n_terms)))
            columns = np.concatenate([columns[:n_known], np.array([*more, -1], dtype=np.int32)])
            self._last = table.terms, columns
        return columns
