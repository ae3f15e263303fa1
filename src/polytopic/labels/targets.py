"""The forms of a target ``Y``: indicators, collections of names, one label per document."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from polytopic.labels.space import LabelSpace, indicator, merge, merged, widen


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

    def fits(self, other: TargetForm) -> bool:
        """Return whether targets of both forms can be mixed."""
        return self.kind == other.kind or (self.is_indicator and other.is_indicator)

    def give_back(self, Y: sparse.csr_matrix):
        """Return an indicator in this form (not for ``single``)."""
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

    def renamed(self, ids: Mapping) -> Targets:
        """Return the targets with other label ids; labels that get the same id are merged."""
        space, matrix = merged([ids.get(label, label) for label in self.labels])
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
        return _from_indicator(Y.tocsr(), "sparse")
    Y = _as_rows(Y)
    if _holds_names(Y):
        return _from_names(Y)
    Y = np.asarray(Y)
    if Y.ndim == 2 and (Y.shape[1] != 1 or _is_indicator(Y)):
        return _from_indicator(Y, "dense")
    return _from_single(Y)


def _as_rows(Y):
    """Return a list of rows, or an array of numbers or single labels."""
    if not isinstance(Y, list | tuple):
        Y = np.asarray(Y) if hasattr(Y, "__len__") or hasattr(Y, "__array__") else list(Y)
    if isinstance(Y, np.ndarray) and Y.ndim == 2 and Y.dtype.kind in "UO":
        rows = Y.tolist()
        return rows if _holds_names(rows) else Y.astype(np.float64)
    if isinstance(Y, list | tuple) and any(row is None for row in Y):
        raise ValueError("Y has None for a document, must be an empty collection for no labels.")
    return Y


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
