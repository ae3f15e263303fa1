"""The table of counts per label set, through which count models see a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy

import numpy as np
from scipy import sparse

from polytopic.array_specs import (
    DOUBLE,
    WHOLE,
    ArraySpec,
    check_arrays,
    check_rows,
    check_sparse,
)
from polytopic.corpus.document import Document
from polytopic.labels import LabelSpace, Targets, canonical, indicator, read_targets

LARGEST_EXACT = 2.0**53
SMALLEST, LARGEST = float(np.nextafter(0, 1)), 1e100  # of counts: sums and products stay finite
ARRAYS = {
    "set_indices": ArraySpec(WHOLE, ("n_members",), 0, below="n_labels"),
    "set_indptr": ArraySpec(WHOLE, ("n_sets+1",), 0),
    "set_docs": ArraySpec(DOUBLE, ("n_sets",), SMALLEST, LARGEST),
    "data": ArraySpec(DOUBLE, ("n_counts",), SMALLEST, LARGEST),
    "indices": ArraySpec(WHOLE, ("n_counts",), 0, below="n_terms"),
    "indptr": ArraySpec(WHOLE, ("n_sets+1",), 0),
    "document_frequency": ArraySpec(DOUBLE, ("n_terms",), SMALLEST, LARGEST),
}
PACKING = {  # in files, see polytopic.modelfile
    "data": "counts",
    "indices": "columns",
    "indptr": "sizes",
    "set_indices": "whole",
    "set_indptr": "sizes",
    "set_docs": "whole",
    "document_frequency": "whole",
}


class LabelSetCounts:
    """Word counts summed over the documents with the same label set.

    Everything in the table is a sum over documents, so adding, removing and merging corpora
    are sums and differences of tables. Integers are exact: what was added can be removed
    without a trace. Label sets, labels and terms are in sorted order; documents without
    a label are ignored.

    Parameters
    ----------
    documents : iterable, default=None
        Documents to add, see :meth:`add`.

    Attributes
    ----------
    labels : tuple
        Label ids that occur, sorted.
    terms : tuple of str, or range
        Names of the columns: the terms that occur, sorted, or fixed column numbers.
    indicator : csr_matrix of shape (n_label_sets, n_labels)
        The label sets, in sorted order.
    set_docs : ndarray of shape (n_label_sets,)
        Number of documents of each label set.
    matrix : csr_matrix of shape (n_label_sets, n_terms)
        Word counts of each label set.
    document_frequency : ndarray of shape (n_terms,)
        Number of documents with each term.
    exact : bool
        Whether all counts are integers below 2^53, so that removing is the inverse of adding.

    Examples
    --------
    >>> counts = LabelSetCounts([({"goal": 2}, ["sport"]), ({"goal": 1}, ["film", "sport"])])
    >>> counts.label_sets
    [('film', 'sport'), ('sport',)]
    >>> counts.remove([({"goal": 1}, ["film", "sport"])])
    >>> counts.label_sets, counts.matrix.toarray()
    ([('sport',)], array([[2.]]))
    """

    def __init__(self, documents: Iterable | None = None):
        self.labels: tuple = ()
        self.terms: Sequence = ()
        self.indicator = sparse.csr_matrix((0, 0))
        self.set_docs: np.ndarray = np.zeros(0)
        self.matrix = sparse.csr_matrix((0, 0))
        self.document_frequency: np.ndarray = np.zeros(0)
        self.exact = True
        if documents is not None:
            self.add(documents)

    @classmethod
    def from_matrix(cls, X, targets: Targets, *, terms=None, sample_weight=None) -> LabelSetCounts:
        """Count the rows of a matrix: documents as (n_docs, n_terms) and their targets.

        ``terms`` names the columns (distinct strings); without it they are numbered.
        """
        check_sparse(X)
        X = canonical_counts(X)
        _check_counts(X.data)
        if X.shape[0] != targets.Y.shape[0]:
            raise ValueError(
                f"X has {X.shape[0]} documents and Y has {targets.Y.shape[0]}; "
                "the numbers must be equal."
            )
        weight = np.ones(X.shape[0])
        if sample_weight is not None:
            weight = np.asarray(sample_weight, dtype=np.float64)
            _check_counts(weight)
            if weight.shape != (X.shape[0],):
                raise ValueError(
                    f"sample_weight has the shape {weight.shape}, needs one number for each of "
                    f"{X.shape[0]} documents."
                )
        used = (np.diff(targets.Y.indptr) > 0) & (weight != 0)
        Y = targets.Y
        if not used.all():
            X, Y, weight = X[used], Y[used], weight[used]
        table = cls()
        table.labels, table.indicator, table.set_docs = targets.labels, Y, weight
        table.terms = range(X.shape[1]) if terms is None else tuple(terms)
        table.matrix = X if sample_weight is None else sparse.diags_array(weight) @ X
        each = None if sample_weight is None else np.repeat(weight, np.diff(X.indptr))
        frequency = np.bincount(X.indices, weights=each, minlength=X.shape[1])
        table.document_frequency = frequency.astype(np.float64, copy=False)
        table.exact = bool((weight % 1 == 0).all() and (X.data % 1 == 0).all())
        return table._sort_terms()._group()

    # Contents

    @property
    def label_sets(self) -> list[tuple]:
        """The label sets that occur, as sorted tuples of label ids, in sorted order."""
        return [tuple(labels) for labels in LabelSpace(self.labels).decode(self.indicator)]

    @property
    def n_docs(self):
        """Number of documents, or the sum of their weights if these are fractional."""
        total = float(self.set_docs.sum())
        return int(total) if total.is_integer() else total

    @property
    def most_frequent(self) -> int:
        """Row of the label set with the most documents; the first one in a tie."""
        return int(np.argmax(self.set_docs))

    def select(self, columns, terms: Sequence) -> LabelSetCounts:
        """Return the table of some columns, with new names."""
        view = copy(self)
        view.matrix = self.matrix[:, columns]
        view.matrix.sort_indices()
        view.document_frequency = self.document_frequency[columns]
        view.terms = terms
        return view

    # Adding and removing

    def add(self, documents, labels=None, *, sample_weight=None) -> None:
        """Add documents.

        Parameters
        ----------
        documents : iterable
            Documents with counts, or pairs of a mapping from terms to counts and a collection of
            labels; or, with ``labels``, mappings alone or a matrix (n_docs, n_terms) whose
            columns are numbered.
        labels : any form of ``Y``, default=None
            The documents' labels.
        sample_weight : array of shape (n_docs,), default=None
            How many times each document counts.
        """
        vars(self).update(vars(self + _read_table(documents, labels, sample_weight)))

    def remove(self, documents, labels=None, *, sample_weight=None) -> None:
        """Remove documents; raise if they cannot have been added."""
        vars(self).update(vars(self - _read_table(documents, labels, sample_weight)))

    def __add__(self, other: LabelSetCounts) -> LabelSetCounts:
        """Return the table of both corpora together."""
        return self._stack(other, 1)._group()

    def __sub__(self, other: LabelSetCounts) -> LabelSetCounts:
        """Return the table without the documents of the other; raise if they cannot be in it."""
        if not (self.exact and other.exact):
            raise ValueError(
                "counts are not all integers, so removing would not be exact; fit again instead."
            )
        return self._stack(other, -1)._group()._check_consistent()._prune()

    def copy(self) -> LabelSetCounts:
        """Return an independent copy."""
        return self + LabelSetCounts()

    def __eq__(self, other) -> bool:
        return (
            isinstance(other, LabelSetCounts)
            and self.labels == other.labels
            and self.terms == other.terms
            and self.exact == other.exact
            and _equal(self.indicator, other.indicator)
            and _equal(self.matrix, other.matrix)
            and np.array_equal(self.set_docs, other.set_docs)
            and np.array_equal(self.document_frequency, other.document_frequency)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        sets, terms = self.matrix.shape
        return f"<LabelSetCounts: {self.n_docs} documents, {sets} label sets, {terms} terms>"

    def __sizeof__(self) -> int:
        names = () if isinstance(self.terms, range) else self.terms
        return sum(a.nbytes for a in self.to_arrays().values()) + sum(map(len, names))

    # Arrays for files and stores

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the table as plain arrays, without ``labels`` and ``terms``."""
        return {
            "set_indices": self.indicator.indices.astype(np.int64),
            "set_indptr": self.indicator.indptr.astype(np.int64),
            "set_docs": self.set_docs,
            "data": self.matrix.data,
            "indices": self.matrix.indices.astype(np.int64),
            "indptr": self.matrix.indptr.astype(np.int64),
            "document_frequency": self.document_frequency,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping, *, labels, terms, exact: bool) -> LabelSetCounts:
        """Restore what :meth:`to_arrays` returned; other arrays raise ValueError."""
        check_arrays(arrays, ARRAYS, n_labels=len(labels), n_terms=len(terms))
        check_rows("counts", arrays["indices"], arrays["indptr"])
        check_rows("label sets", arrays["set_indices"], arrays["set_indptr"], empty=False)
        table = cls()
        table.labels, table.terms, table.exact = tuple(labels), terms, exact
        table.indicator = indicator(arrays["set_indices"], arrays["set_indptr"], len(labels))
        table.set_docs = arrays["set_docs"]
        table.matrix = sparse.csr_matrix(
            (arrays["data"], arrays["indices"], arrays["indptr"]),
            shape=(table.set_docs.size, len(terms)),
        )
        table.document_frequency = arrays["document_frequency"]
        table._check_order()
        return table

    def _check_order(self) -> None:
        """Raise unless the table is in canonical order, and exact if it claims to be."""
        if not np.array_equal(group_rows(self.indicator), np.arange(self.set_docs.size)):
            raise ValueError("label sets must be sorted and distinct")
        if not np.bincount(self.indicator.indices, minlength=len(self.labels)).all():
            raise ValueError("a label has no label set")
        if self.document_frequency.max(initial=0) > self.set_docs.sum():
            raise ValueError("a term is in more documents than there are")
        if self.exact:
            counts = self.matrix.data, self.set_docs, self.document_frequency
            if any((np.floor(a) != a).any() or a.sum() >= LARGEST_EXACT for a in counts):
                raise ValueError("counts are not all integers, although the table claims so")
            self._check_consistent()

    # Canonical form

    def _stack(self, other: LabelSetCounts, sign: int) -> LabelSetCounts:
        """Stack the rows of both tables, the other's times ``sign``, over common columns."""
        stacked = LabelSetCounts()
        stacked.labels = self.labels
        if other.labels != self.labels:
            stacked.labels = tuple(canonical([*self.labels, *other.labels]))
        stacked.terms = _common_terms(self, other)
        stacked.indicator = sparse.vstack(
            [_widen(t.indicator, t.labels, stacked.labels) for t in (self, other)], format="csr"
        )
        stacked.matrix = sparse.vstack(
            [
                _widen(self.matrix, self.terms, stacked.terms),
                _widen(other.matrix, other.terms, stacked.terms) * sign,
            ],
            format="csr",
        )
        stacked.set_docs = np.concatenate([self.set_docs, sign * other.set_docs])
        stacked.document_frequency = np.zeros(len(stacked.terms))
        for table, factor in ((self, 1), (other, sign)):
            place = _places(table.terms, stacked.terms)
            stacked.document_frequency[place] += factor * table.document_frequency
        stacked.exact = self.exact and other.exact
        return stacked

    def _sort_terms(self) -> LabelSetCounts:
        """Sort the columns by term, and drop labels and terms that do not occur."""
        if not isinstance(self.terms, range):
            order = sorted(range(len(self.terms)), key=self.terms.__getitem__)
            if order != list(range(len(order))):
                self.matrix = self.matrix[:, order]
                self.document_frequency = self.document_frequency[order]
                self.terms = tuple(self.terms[column] for column in order)
        return self._prune()

    def _group(self) -> LabelSetCounts:
        """Sum the rows with the same label set."""
        group = group_rows(self.indicator)
        n_sets = int(group.max(initial=-1)) + 1
        first = np.zeros(n_sets, dtype=np.intp)
        first[group[::-1]] = np.arange(group.size)[::-1]
        rows = sparse.csr_matrix(
            (np.ones(group.size), (group, np.arange(group.size))), shape=(n_sets, group.size)
        )
        self.indicator = self.indicator[first]
        self.matrix = sparse.csr_matrix(rows @ self.matrix)
        self.matrix.eliminate_zeros()
        self.matrix.sort_indices()
        # bincount returns integers if there is no document
        docs = np.bincount(group, weights=self.set_docs, minlength=n_sets)
        self.set_docs = docs.astype(np.float64, copy=False)
        total = max(self.matrix.sum(), self.set_docs.sum())
        self.exact = self.exact and bool(total < LARGEST_EXACT)
        return self

    def _check_consistent(self) -> LabelSetCounts:
        """Raise if the removed documents cannot have been in the table."""
        words, terms = self.matrix.sum(axis=1).A1, self.matrix.sum(axis=0).A1
        if (
            (self.set_docs < 0).any()
            or (self.matrix.data < 0).any()
            or (self.document_frequency < 0).any()
            or words[self.set_docs == 0].any()
            or terms[self.document_frequency == 0].any()
            or (terms < self.document_frequency).any()
        ):
            raise ValueError(
                "these documents with these labels were not counted here, "
                "so they cannot be removed; nothing was changed."
            )
        return self

    def _prune(self) -> LabelSetCounts:
        """Drop label sets without documents, then labels and terms that do not occur."""
        keep = self.set_docs != 0
        if not keep.all():
            self.indicator, self.matrix = self.indicator[keep], self.matrix[keep]
            self.set_docs = self.set_docs[keep]
        used = np.bincount(self.indicator.indices, minlength=len(self.labels)) > 0
        if not used.all():
            self.indicator = self.indicator[:, used]
            self.labels = tuple(np.array(self.labels, dtype=object)[used].tolist())
        if not isinstance(self.terms, range) or not self.set_docs.size:
            used = self.document_frequency > 0
            if not used.all():
                self.matrix = self.matrix[:, used]
                self.document_frequency = self.document_frequency[used]
                self.terms = tuple(np.array(self.terms, dtype=object)[used].tolist())
        return self


def group_rows(Y: sparse.csr_matrix) -> np.ndarray:
    """Return a number for each row of an indicator: equal rows share one, in sorted order.

    Equivalent to::

        [sorted(set(map(tuple, rows))).index(tuple(row)) for row in rows]

    Several labels at once are read as the digits of one number in base ``n_labels + 1``.
    """
    n_rows, n_labels = Y.shape
    sizes = np.diff(Y.indptr)
    digits = max(1, int((62 - np.log2(n_rows + 1)) / np.log2(n_labels + 2)))
    group = np.zeros(n_rows, dtype=np.int64)
    largest = int(sizes.max(initial=0))
    for position in range(0, largest, digits):
        for k in range(position, min(position + digits, largest)):
            longer = np.flatnonzero(sizes > k)
            group *= n_labels + 1
            group[longer] += Y.indices[Y.indptr[longer] + k] + 1
        group = np.unique(group, return_inverse=True)[1]
    return group


def _read_table(documents, labels, sample_weight) -> LabelSetCounts:
    """Return the table of documents in any form that :meth:`LabelSetCounts.add` accepts."""
    if labels is not None and (sparse.issparse(documents) or isinstance(documents, np.ndarray)):
        return LabelSetCounts.from_matrix(
            documents, read_targets(labels), sample_weight=sample_weight
        )
    documents = list(documents)
    if labels is None:
        pairs = [_pair(document) for document in documents]
        documents, labels = [bag for bag, _ in pairs], [names for _, names in pairs]
    if not documents:
        return LabelSetCounts()
    columns: dict = {}
    entries = [
        (row, columns.setdefault(term, len(columns)), count)
        for row, bag in enumerate(documents)
        for term, count in bag.items()
    ]
    row, column, count = np.array(entries, dtype=np.float64).reshape(-1, 3).T
    _check_counts(count)
    X = sparse.csr_matrix(
        (count, (row.astype(np.intp), column.astype(np.intp))),
        shape=(len(documents), len(columns)),
    )
    X.eliminate_zeros()
    return LabelSetCounts.from_matrix(
        X, read_targets(labels), terms=columns, sample_weight=sample_weight
    )


def canonical_counts(X) -> sparse.csr_matrix:
    """Return counts as a CSR matrix of floats in canonical form, without changing the argument."""
    clean = sparse.csr_matrix(X, dtype=np.float64)
    if not clean.has_canonical_format or not clean.data.all():
        clean = clean.copy()
        clean.sum_duplicates()
        clean.eliminate_zeros()
    return clean


def look_up_counts(matrix: sparse.csr_matrix, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the counts at these places of a CSR matrix, 0 where it has none."""
    if not rows.size:
        return np.zeros(0)
    return np.asarray(matrix[rows, columns]).ravel()


def _check_counts(counts) -> None:
    if counts.size and not (counts.min() >= 0 and counts.max() <= LARGEST):  # false for NaN, too
        raise ValueError(f"counts and weights must be numbers from 0 to {LARGEST}.")


def _pair(document):
    """Return a document's bag of words and labels."""
    if not isinstance(document, Document):
        return document
    if document.counts is None:
        raise ValueError(f"document {document.id!r} has no counts; an Analyzer counts its text.")
    return document.counts, document.labels


def _common_terms(one: LabelSetCounts, other: LabelSetCounts) -> Sequence:
    """Return the columns that hold the terms of both tables."""
    if one.terms == other.terms or not len(other.terms):
        return one.terms
    if not len(one.terms):
        return other.terms
    if isinstance(one.terms, range) or isinstance(other.terms, range):
        raise ValueError(
            f"tables with {len(one.terms)} and {len(other.terms)} columns do not fit together; "
            "numbered columns must be equally many, and named columns need names on both sides."
        )
    new = set(other.terms).difference(one.terms)
    return tuple(sorted([*one.terms, *sorted(new)])) if new else one.terms


def _places(names: Sequence, all_names: Sequence) -> np.ndarray:
    """Return the place of each name in ``all_names``."""
    if len(names) == len(all_names):
        return np.arange(len(names))
    index = {name: place for place, name in enumerate(all_names)}
    return np.fromiter((index[name] for name in names), dtype=np.intp, count=len(names))


def _widen(matrix, names: Sequence, all_names: Sequence) -> sparse.csr_matrix:
    """Return a matrix with columns ``names`` as one with a column for each of ``all_names``."""
    if len(names) == len(all_names):
        return matrix
    return sparse.csr_matrix(
        (matrix.data, _places(names, all_names)[matrix.indices], matrix.indptr),
        shape=(matrix.shape[0], len(all_names)),
    )


def _equal(one: sparse.csr_matrix, other: sparse.csr_matrix) -> bool:
    return (
        one.shape == other.shape
        and np.array_equal(one.indptr, other.indptr)
        and np.array_equal(one.indices, other.indices)
        and np.array_equal(one.data, other.data)
    )
