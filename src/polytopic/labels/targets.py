"""Labels as columns of an indicator: label ids, and the forms of a target ``Y``.

A `LabelSpace` numbers labels. Models compute with a CSR indicator that has one row per document.
`read_targets` turns each form of ``Y`` into one: an indicator, collections of names, or one label
per document.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from polytopic.array_specs import check_sparse


class LabelSpace:
    """Label ids in canonical order, separate from display names.

    Parameters
    ----------
    ids : iterable
        Label ids; stored sorted and distinct.
    names : mapping of id to name, or of id to {language: name}, default=None
        Display names. A label without a name is shown as its id.

    Examples
    --------
    >>> space = LabelSpace(["t2", "t1"], names={"t1": {"en": "Space", "cs": "Vesmír"}})
    >>> space.ids
    ('t1', 't2')
    >>> space.name("t1", "cs"), space.name("t2")
    ('Vesmír', 't2')
    """

    def __init__(self, ids: Iterable = (), names: Mapping | None = None):
        self.ids = tuple(canonical(ids))
        self.names = {
            label: dict(name) if isinstance(name, Mapping) else {"": str(name)}
            for label, name in (names or {}).items()
        }
        self._index = {label: column for column, label in enumerate(self.ids)}

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self):
        return iter(self.ids)

    def __contains__(self, label) -> bool:
        return label in self._index

    def __eq__(self, other) -> bool:
        return isinstance(other, LabelSpace) and self.ids == other.ids and self.names == other.names

    def __hash__(self) -> int:
        return hash(self.ids)

    def __repr__(self) -> str:
        return f"LabelSpace({list(self.ids)!r})"

    def index(self, label) -> int:
        """Return the column of a label."""
        try:
            return self._index[label]
        except KeyError:
            raise ValueError(f"label {label!r} is not known.") from None

    def name(self, label, language: str | None = None) -> str:
        """Return the display name in this language, else in any language, else the id."""
        return name_in(self.names.get(label, {}), language) or str(label)

    def encode(self, label_sets: Iterable[Collection]) -> sparse.csr_matrix:
        """Return the indicator of collections of label ids."""
        try:
            columns = [sorted({self._index[label] for label in labels}) for labels in label_sets]
        except KeyError as error:
            raise ValueError(f"label {error.args[0]!r} is not known.") from None
        indptr = np.cumsum([0, *map(len, columns)])
        indices = np.fromiter((c for row in columns for c in row), dtype=np.intp, count=indptr[-1])
        return indicator(indices, indptr, len(self))

    def decode(self, Y) -> list[list]:
        """Return each row's label ids, in canonical order."""
        Y = sparse.csr_matrix(Y, copy=True)
        Y.eliminate_zeros()
        Y.sort_indices()
        ids = list(map(self.ids.__getitem__, Y.indices.tolist()))
        return [ids[start:stop] for start, stop in pairwise(Y.indptr.tolist())]


def indicator(indices, indptr, n_labels: int) -> sparse.csr_matrix:
    """Return the 0/1 matrix with ones in these columns of its rows."""
    ones = np.ones(len(indices))
    return sparse.csr_matrix((ones, indices, indptr), shape=(len(indptr) - 1, n_labels))


def stack_sets(blocks, n_labels) -> sparse.csr_matrix:
    """Return the indicator of label sets that come in blocks, as pairs of sizes and labels."""
    sizes = np.concatenate([np.zeros(0, dtype=np.int64), *(size for size, _ in blocks)])
    labels = np.concatenate([np.zeros(0, dtype=np.int64), *(label for _, label in blocks)])
    return indicator(labels, np.concatenate([[0], np.cumsum(sizes)]), n_labels)


def widen(Y: sparse.csr_matrix, labels: Sequence, space: LabelSpace) -> sparse.csr_matrix:
    """Return an indicator over ``labels`` as one over a larger space."""
    place = np.array([space.index(label) for label in labels], dtype=np.intp)
    return indicator(place[Y.indices], Y.indptr, len(space))


def group_columns(labels: Sequence) -> tuple[LabelSpace, sparse.csr_matrix]:
    """Return the space of the columns' new labels, and the indicator (columns, labels) of them."""
    space = LabelSpace(labels)
    place = np.array([space.index(label) for label in labels], dtype=np.intp)
    return space, indicator(place, np.arange(place.size + 1), len(space))


def merge(Y: sparse.csr_matrix, matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return the indicator of the new labels of each row."""
    Y = sparse.csr_matrix(Y) @ matrix
    Y.data[:] = 1.0
    Y.sort_indices()
    return Y


def with_fallback(X, Y: sparse.csr_matrix, fallback) -> sparse.csr_matrix:
    """Return the label sets ``Y``, with ``fallback`` (columns) for documents without words."""
    X = X if sparse.issparse(X) and X.format == "csr" else sparse.csr_matrix(X)
    if not X.data.all():
        X = X.copy()
        X.eliminate_zeros()
    known = np.diff(X.indptr) > 0
    if known.all():
        return Y
    rest = sparse.diags_array(known.astype(np.float64)) @ Y
    empty = sparse.csr_matrix((~known)[:, None].astype(np.float64))
    row = indicator(np.asarray(fallback), [0, len(fallback)], Y.shape[1])
    return sparse.csr_matrix(rest + empty @ row)


def canonical(labels: Iterable) -> list:
    """Return distinct label ids in sorted order."""
    try:
        return sorted(set(labels))
    except TypeError:
        raise TypeError(
            "label ids have several types, must be all strings or all numbers."
        ) from None


def name_in(names: Mapping[str, str], language: str | None) -> str | None:
    """Return the name in a language, else in a variant of it, in no language, English, or any."""
    tag = (language or "").lower()
    stem = tag.partition("-")[0]
    variants = [other for other in names if other.partition("-")[0] == stem]
    languages = [key for key in (tag, *variants, "", "en", *names) if key in names]
    return names[languages[0]] if languages else None


# Targets


@dataclass(frozen=True)
class TargetForm:
    """The form of ``Y`` in `fit`, which `predict` returns.

    Attributes
    ----------
    kind : {"names", "dense", "sparse", "single"}
        Collections of names, a dense or sparse indicator, or one label per document (1-D).
    dtype : numpy dtype or type
        Type of the indicator.
    """

    kind: str = "names"
    dtype: Any = np.int64

    @property
    def is_indicator(self) -> bool:
        """Whether labels are columns without names."""
        return self.kind in ("dense", "sparse")

    def is_compatible(self, other: TargetForm) -> bool:
        """Return whether targets of both forms can be mixed."""
        return self.kind == other.kind or (self.is_indicator and other.is_indicator)

    def convert(self, Y: sparse.csr_matrix):
        """Return an indicator in this form; not for the kind ``single``."""
        Y = Y.astype(self.dtype)
        return Y if self.kind == "sparse" else Y.toarray()


@dataclass(frozen=True)
class Targets:
    """A target ``Y`` in the form that models compute with.

    Attributes
    ----------
    Y : csr_matrix of shape (n_docs, n_labels)
        Indicator with sorted indices.
    labels : tuple
        Label ids of the columns, sorted.
    form : TargetForm
        The original form.
    """

    Y: sparse.csr_matrix
    labels: tuple
    form: TargetForm = TargetForm()

    def over(self, labels: Sequence) -> sparse.csr_matrix:
        """Return the indicator over these labels, which must include all that occur."""
        return widen(self.Y, self.labels, LabelSpace(labels))

    def names(self) -> list[list]:
        """Return the labels of each document, sorted."""
        return LabelSpace(self.labels).decode(self.Y)

    def rename(self, ids: Mapping) -> Targets:
        """Return the targets with other label ids; labels that get the same id are merged."""
        space, matrix = group_columns([ids.get(label, label) for label in self.labels])
        return Targets(merge(self.Y, matrix), space.ids, self.form)


def read_targets(Y) -> Targets:
    """Return the target in any of its forms as `Targets`.

    A sequence of numbers is a row of an indicator; a 1-D target has one label per document.
    """
    if isinstance(Y, Targets):
        return Y
    if Y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    if sparse.issparse(Y):
        check_sparse(Y, "Y")
        return _from_indicator(Y.tocsr(), "sparse")
    Y = _as_rows(Y)
    if _holds_names(Y):
        return _from_names(Y)
    Y = _as_array(Y)
    if Y.ndim == 2 and (Y.shape[1] != 1 or _is_indicator(Y)):
        return _from_indicator(Y, "dense")
    return _from_single(Y)


def _as_rows(Y):
    """Return a list of rows, or an array of numbers or single labels."""
    if isinstance(Y, str | bytes | Mapping | Set) or not (
        isinstance(Y, Iterable) or hasattr(Y, "__array__")
    ):
        raise TypeError(f"Y is a {type(Y).__name__}, must have labels for each document, in order.")
    if not isinstance(Y, list | tuple):
        Y = np.asarray(Y) if hasattr(Y, "__len__") or hasattr(Y, "__array__") else list(Y)
    if isinstance(Y, np.ndarray) and Y.ndim == 2 and Y.dtype.kind in "UO":
        rows = Y.tolist()
        return rows if _holds_names(rows) else Y.astype(np.float64)
    if _is_missing_in(Y):
        raise ValueError("Y has None for a document, must be an empty collection for no labels.")
    return Y


def _is_missing_in(Y) -> bool:
    """Return whether a document has None or another missing value instead of labels."""
    if not isinstance(Y, np.ndarray):
        return any(row is None for row in Y)
    if Y.dtype != object or Y.ndim != 1:
        return False
    return any(row is None or (isinstance(row, float) and np.isnan(row)) for row in Y)


def _as_array(Y) -> np.ndarray:
    """Return numbers or single labels as an array; raise if rows are other collections."""
    try:
        array = np.asarray(Y)
    except ValueError:  # rows of different lengths
        array = np.empty(0, dtype=object)
    are_mixed = array.dtype.kind in "US" and array.ndim == 2 and not isinstance(Y, np.ndarray)
    if array.dtype == object or are_mixed:
        rows = [(doc, row) for doc, row in enumerate(Y) if _is_collection(row)]
        wrong = [(doc, label) for doc, row in rows for label in row if not isinstance(label, str)]
        for doc, value in [*wrong, *rows]:
            raise ValueError(
                f"Y has {value!r} for document {doc}, must have collections of strings for all "
                "documents, one label per document, or an indicator of 0 and 1."
            )
    return array


def _is_collection(row) -> bool:
    return isinstance(row, Collection) and not isinstance(row, str | bytes)


def _holds_names(Y) -> bool:
    """Return whether each row is a collection of strings."""
    if isinstance(Y, np.ndarray) and Y.dtype != object:
        return False
    kinds = set(map(type, Y))
    if not kinds or any(issubclass(k, str) or not issubclass(k, Collection) for k in kinds):
        return False
    return all(issubclass(kind, str) for kind in set(map(type, chain.from_iterable(Y))))


def _from_names(rows) -> Targets:
    space = LabelSpace(label for row in rows for label in row)
    return Targets(space.encode(rows), space.ids)


def _from_single(y) -> Targets:
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected.",
            DataConversionWarning,
            stacklevel=2,
        )
    y = column_or_1d(y)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity.")
    if y.dtype == object:
        canonical(y.tolist())  # raises if types differ
    check_classification_targets(y)
    labels, column = np.unique(y, return_inverse=True)
    Y = indicator(column, np.arange(y.size + 1), labels.size)
    return Targets(Y, tuple(labels.tolist()), TargetForm("single", y.dtype))


def _from_indicator(Y, kind: str) -> Targets:
    if Y.dtype.kind not in "biuf":
        raise ValueError(
            f"Y is a matrix of {Y.dtype}, must be an indicator of 0 and 1, or one collection of "
            "names per document."
        )
    dtype = Y.dtype
    Y = sparse.csr_matrix(Y, dtype=np.float64, copy=True)
    Y.sum_duplicates()
    Y.eliminate_zeros()
    if not _is_indicator(Y):
        raise ValueError(
            "Y is a matrix with values other than 0 and 1, must be an indicator of 0 and 1."
        )
    return Targets(Y, tuple(range(Y.shape[1])), TargetForm(kind, dtype))


def _is_indicator(Y) -> bool:
    values = Y.data if sparse.issparse(Y) else Y
    return values.dtype.kind in "biuf" and bool(((values == 0) | (values == 1)).all())
