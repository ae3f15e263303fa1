"""Labelled documents as rows of counts, for models that are fitted on documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from scipy import sparse

from polytopic.array_specs import DOUBLE, WHOLE, ArraySpec, check_arrays, check_rows
from polytopic.counts.table import LARGEST, SMALLEST, LabelSetCounts, canonical_counts
from polytopic.labels import Targets, indicator

ARRAYS = {
    "data": ArraySpec(DOUBLE, ("n_counts",), SMALLEST, LARGEST),
    "indices": ArraySpec(WHOLE, ("n_counts",), 0, below="n_terms"),
    "indptr": ArraySpec(WHOLE, ("n_docs+1",), 0),
    "label_indices": ArraySpec(WHOLE, ("n_members",), 0, below="n_labels"),
    "label_indptr": ArraySpec(WHOLE, ("n_docs+1",), 0),
}
PACKING = {  # in files, see polytopic.modelfile
    "data": "counts",
    "indices": "columns",
    "indptr": "sizes",
    "label_indices": "whole",
    "label_indptr": "sizes",
}


class DocumentRows:
    """Labelled documents in the order in which they were added.

    The columns are the terms and labels that occur, sorted, so that rows depend on the documents
    alone: adding and removing documents leaves no trace.

    Attributes
    ----------
    X : csr_matrix of shape (n_docs, n_terms)
        Counts of all terms.
    Y : csr_matrix of shape (n_docs, n_labels)
        Indicator of the label sets, none of them empty.
    terms, labels : tuple of str
        Names of the columns.
    previous_rows : ndarray of shape (n_docs,) or None
        After a sum or difference, the row of each document in the first operand; -1 for a new
        document.
    """

    def __init__(self, X: sparse.csr_matrix, Y: sparse.csr_matrix, terms, labels):
        self.X, self.Y = X, Y
        self.terms, self.labels = tuple(terms), tuple(labels)
        self.previous_rows: np.ndarray | None = None

    @property
    def targets(self) -> Targets:
        """The labels, in the form that models compute with."""
        return Targets(self.Y, self.labels)

    @property
    def label_names(self) -> list[list[str]]:
        """The labels of each document."""
        return self.targets.names()

    def table(self) -> LabelSetCounts:
        """Return the table of counts by label set."""
        return LabelSetCounts.from_matrix(self.X, self.targets, terms=self.terms)

    def __add__(self, other: DocumentRows) -> DocumentRows:
        """Return these documents, followed by the others."""
        collector = RowCollector()
        for rows in (self, other):
            collector.add(rows.X, rows.terms, rows.targets)
        new = np.full(other.X.shape[0], -1)
        return collector.rows(previous_rows=np.concatenate([np.arange(self.X.shape[0]), new]))

    def __sub__(self, other: DocumentRows) -> DocumentRows:
        """Return the documents without the others; of equal ones, the last is removed first.

        This makes adding and removing documents exact.
        """
        to_remove = Counter(other._keys(range(other.X.shape[0]), self.terms, self.labels))
        keep = np.ones(self.X.shape[0], dtype=bool)
        backwards = range(self.X.shape[0] - 1, -1, -1)
        for row, key in zip(backwards, self._keys(backwards, self.terms, self.labels), strict=True):
            if to_remove[key]:
                to_remove[key] -= 1
                keep[row] = False
        if to_remove.total():
            raise ValueError(
                "these documents with these labels were not learned, so they cannot be removed; "
                "nothing was changed."
            )
        return self.select(np.flatnonzero(keep))

    def select(self, rows: np.ndarray) -> DocumentRows:
        """Return some of the documents, under the terms and labels that they have."""
        collector = RowCollector()
        collector.add(self.X[rows], self.terms, Targets(self.Y[rows], self.labels))
        return collector.rows(previous_rows=rows)

    def _keys(self, rows: Sequence[int], terms, labels) -> Iterator[tuple]:
        """Yield keys that are equal for equal documents, over the given terms and labels."""
        columns, places = _columns(self.terms, terms), _columns(self.labels, labels)
        for row in rows:
            words = slice(*self.X.indptr[row : row + 2])
            names = slice(*self.Y.indptr[row : row + 2])
            yield (
                columns[self.X.indices[words]].tobytes(),
                self.X.data[words].tobytes(),
                places[self.Y.indices[names]].tobytes(),
            )

    def __sizeof__(self) -> int:
        return sum(a.nbytes for a in self.to_arrays().values()) + sum(map(len, self.terms))

    # Arrays for files

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the rows as plain arrays, without the names of terms and labels."""
        return {
            "data": self.X.data,
            "indices": self.X.indices,
            "indptr": self.X.indptr,
            "label_indices": self.Y.indices,
            "label_indptr": self.Y.indptr,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], *, terms, labels) -> DocumentRows:
        """Restore what :meth:`to_arrays` returned; other arrays raise ValueError."""
        check_arrays(arrays, ARRAYS, n_labels=len(labels), n_terms=len(terms))
        check_rows("documents", arrays["indices"], arrays["indptr"])
        check_rows("labels", arrays["label_indices"], arrays["label_indptr"], empty=False)
        Y = indicator(arrays["label_indices"], arrays["label_indptr"], len(labels))
        X = sparse.csr_matrix(
            (arrays["data"], arrays["indices"], arrays["indptr"]), shape=(Y.shape[0], len(terms))
        )
        for matrix, what in ((X, "term"), (Y, "label")):
            if not np.bincount(matrix.indices, minlength=matrix.shape[1]).all():
                raise ValueError(f"a {what} occurs in no document")
        return cls(X, Y, terms, labels)


class RowCollector:
    """Collects documents block by block; each block has its own terms and labels."""

    def __init__(self):
        self._terms, self._labels = {}, {}  # numbers in order of appearance
        self._X, self._Y = [], []

    def add(self, X, terms: Sequence[str], targets: Targets) -> None:
        """Add the documents that have a label."""
        used = np.diff(targets.Y.indptr) > 0
        X, Y = canonical_counts(X), targets.Y
        if not used.all():
            X, Y = X[used], Y[used]
        self._X.append(_renumber(X, _numbers(terms, self._terms)))
        self._Y.append(_renumber(Y, _numbers(targets.labels, self._labels)))

    def rows(self, previous_rows=None) -> DocumentRows:
        """Return all documents, under the terms and labels that occur."""
        X, terms = _stack(self._X, self._terms)
        Y, labels = _stack(self._Y, self._labels)
        rows = DocumentRows(X, Y, terms, labels)
        rows.previous_rows = previous_rows
        return rows


def _columns(names: Sequence[str], all_names: Sequence[str]) -> np.ndarray:
    """Return the place of each name in ``all_names``, or -1."""
    index = {name: place for place, name in enumerate(all_names)}
    return np.fromiter((index.get(name, -1) for name in names), dtype=np.int64, count=len(names))


def _numbers(names: Sequence[str], known: dict[str, int]) -> np.ndarray:
    """Return the number of each name; a new name gets the next number."""
    numbers = (known.setdefault(name, len(known)) for name in names)
    return np.fromiter(numbers, dtype=np.int32, count=len(names))


def _renumber(matrix, numbers):
    """Return the parts of a matrix, with the numbers of its columns."""
    return matrix.data, numbers[matrix.indices], np.diff(matrix.indptr)


def _stack(blocks, known: dict[str, int]):
    """Return the matrix of all blocks, with the columns that occur in sorted order; their names."""
    if len(blocks) == 1:
        data, indices, sizes = blocks[0]
    else:
        data, indices, sizes = (
            np.concatenate([np.zeros(0, dtype), *(block[part] for block in blocks)])
            for part, dtype in enumerate((np.float64, np.int32, np.int64))
        )
    occurs = np.bincount(indices, minlength=len(known)) > 0
    names = sorted(name for name, number in known.items() if occurs[number])
    place = np.zeros(len(known), dtype=np.int32)
    place[[known[name] for name in names]] = np.arange(len(names))
    shape = (sizes.size, len(names))
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    matrix = sparse.csr_matrix((data, place[indices], indptr), shape=shape)
    if not matrix.has_sorted_indices:
        matrix.data = matrix.data.copy()  # a single block shares it with the matrix that was added
        matrix.sort_indices()
    return matrix, tuple(names)
