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
        self._names: list[str] = []  # of the columns
        self._named: dict[str, int] = {}  # the columns of terms that came by name
        self._numbers: list[np.ndarray] = []  # those of the columns' terms, as they came,
        self._numbered: list[Terms] = []  # and whose numbers they are
        self._columns: np.ndarray | None = None  # of all terms of the last of these

    def of_terms(self, terms):
        """Return the columns of terms by name."""
        known, n = self._named, len(self._names)
        new = [term for term in dict.fromkeys(terms) if term not in known]
        known.update(zip(new, range(n, n + len(new)), strict=True))
        self._names += new
        return list(map(known.__getitem__, terms))

    def of_scan(self, scan):
        """Return the columns of the terms that were found in strings, -1 where they are new."""
        return self.of_numbers(scan.table.terms, scan.numbers)

    def of_numbers(self, terms, numbers):
        """Return the columns of terms by their numbers, -1 for -1."""
        if not self._numbered or self._numbered[-1] is not terms:
            self._numbered.append(terms)
            self._columns = None
        columns = self._of_all(len(terms), numbers)
        found, new = number_columns(numbers, columns, len(self._names))
        self._numbers.append(new)
        self._names += map(terms.names.__getitem__, new.tolist())
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
        names, numbers = self._names, np.concatenate([_NONE, *self._numbers])
        if not self._named and len(self._numbered) == 1:
            (terms,) = self._numbered
            if 4 * numbers.size > len(terms):
                return _in_order(terms, numbers)
        distinct = sorted(set(names))
        places = dict(zip(distinct, range(len(distinct)), strict=True))
        return distinct, np.fromiter(map(places.__getitem__, names), np.int32, len(names))


def _in_order(terms, numbers):
    """Return terms that have numbers in sorted order, and which of them each number is."""
    ranks = terms.rank()[numbers]
    by_rank = np.full(len(terms), -1, dtype=np.int32)
    by_rank[ranks] = numbers
    used = by_rank >= 0
    names = map(terms.names.__getitem__, by_rank[used].tolist())
    return list(names), (np.cumsum(used, dtype=np.int32) - 1)[ranks]


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
        names = [terms.names[number] if number >= 0 else None for number in numbers.tolist()]
        return np.array(self.of_terms(names), dtype=np.int32)

    def _of_table(self, table):
        """Return the columns of a table's terms, and -1 as the last."""
        terms, columns = self._last  # at once: another thread may put others there
        n_known = columns.size - 1 if terms is table.terms else 0
        if n_known < table.n_terms or terms is not table.terms:
            more = self.of_terms(table.terms.names[n_known : table.n_terms])
            columns = np.concatenate([columns[:n_known], np.array([*more, -1], dtype=np.int32)])
            self._last = table.terms, columns
        return columns
