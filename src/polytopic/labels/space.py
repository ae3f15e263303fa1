"""Label ids and display names, and indicators of label sets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from scipy import sparse

from polytopic.labels.names import name_in


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


def widen(Y: sparse.csr_matrix, labels: Sequence, space: LabelSpace) -> sparse.csr_matrix:
    """Return an indicator over ``labels`` as one over a larger space."""
    place = np.array([space.index(label) for label in labels], dtype=np.intp)
    return indicator(place[Y.indices], Y.indptr, len(space))


def merged(labels: Sequence) -> tuple[LabelSpace, sparse.csr_matrix]:
    """Return the space of new labels of columns, and the indicator (columns, labels) of them."""
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
    filled = sparse.csr_matrix((~known)[:, None].astype(np.float64))
    row = indicator(np.asarray(fallback), [0, len(fallback)], Y.shape[1])
    return sparse.csr_matrix(rest + filled @ row)


def canonical(labels: Iterable) -> list:
    """Return distinct label ids in sorted order."""
    try:
        return sorted(set(labels))
    except TypeError:
        raise TypeError(
            "label ids have several types, must be all strings or all numbers."
        ) from None
