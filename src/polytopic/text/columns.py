"""Which column each term gets."""

from collections import defaultdict

import numpy as np

from polytopic.text.token_table import TokenTable

_NOT_YET = -2


class NewColumns:
    """Columns for all terms, in the order in which they come."""

    def __init__(self):
        self.index: defaultdict[str, int] = defaultdict()
        self.index.default_factory = self.index.__len__
        self._table: TokenTable | None = None  # the last of those with many terms here
        self._columns = np.zeros(0, dtype=np.int32)  # of its terms

    def of_terms(self, terms):
        """Return the columns of terms, -1 for None."""
        return [-1 if term is None else self.index[term] for term in terms]

    def of_scan(self, scan):
        """Return the columns of the terms that were found in strings, -1 where they are new."""
        table, numbers = scan.table, scan.numbers
        columns = self._of_table(table, numbers)
        found = columns[numbers]
        unseen = found == _NOT_YET
        if unseen.any():
            new = np.unique(numbers[unseen])
            names = map(table.terms.__getitem__, new.tolist())
            columns[new] = list(map(self.index.__getitem__, names))
            found = columns[numbers]
        return found

    def _of_table(self, table, numbers):
        """Return the columns of a table's terms so far, right for these numbers; -1 is the last."""
        last = self._table
        if last is not None and last.terms is table.terms and last.n_terms >= table.n_terms:
            return self._columns
        if 8 * numbers.size < table.n_terms:  # too few to prepare all
            columns = np.empty(table.n_terms + 1, dtype=np.int32)
            columns[numbers] = _NOT_YET
        else:
            columns = np.full(table.n_terms + 1, _NOT_YET, dtype=np.int32)
            self._table, self._columns = table, columns
        columns[-1] = -1
        return columns

    def sorted(self):
        """Return the terms in sorted order, and which of them each column is."""
        names = list(self.index)
        columns = sorted(self._nearly_sorted(), key=names.__getitem__)
        order = np.empty(len(names), dtype=np.int32)
        order[columns] = np.arange(len(names))
        return [names[column] for column in columns], order

    def _nearly_sorted(self):
        """Return the columns, those of a table's terms in sorted order if most are there."""
        table, n = self._table, len(self.index)
        if table is None or 4 * n < table.n_terms:
            return range(n)
        used = np.flatnonzero(self._columns >= 0)
        place = np.full(n, table.n_terms)
        place[self._columns[used]] = table.rank[used]
        return np.argsort(place, kind="stable").tolist()


class KnownColumns:
    """The columns of a vocabulary, -1 for all other terms.

    The columns of a table's terms are looked up once.
    """

    def __init__(self, index):
        self.index = index
        self._last: tuple[list[str], np.ndarray] = [], np.full(1, -1, dtype=np.int32)

    def of_terms(self, terms):
        """Return the columns of terms, -1 for those that are not known."""
        get = self.index.get
        return [get(term, -1) for term in terms]

    def of_scan(self, scan):
        """Return the columns of the terms that were found in strings, -1 where they are new."""
        return self._of_table(scan.table)[scan.numbers]

    def _of_table(self, table):
        """Return the columns of a table's terms, and -1 as the last."""
        terms, columns = self._last  # at once: another thread may put others there
        n_known = columns.size - 1 if terms is table.terms else 0
        if n_known < table.n_terms or terms is not table.terms:
            more = self.of_terms(table.terms[n_known : table.n_terms])
            columns = np.array([*columns[:n_known].tolist(), *more, -1], dtype=np.int32)
            self._last = table.terms, columns
        return columns
