"""Label ids, their names in one or several languages, and indicators of label sets."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from scipy import sparse

Name = str | Mapping[str, str]
"""A name without a language, or names by language."""
Alternatives = Iterable[str] | Mapping[str, Iterable[str]]
"""Alternative names without a language, or by language."""

Value = TypeVar("Value")

_LANGUAGE = re.compile(r"[a-z]{1,8}(-[a-z0-9]{1,8})*")


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


# Names


def read_name(name: Name) -> Mapping[str, str]:
    """Return names by language, sorted and read-only; ``""`` means no language."""
    named = name if isinstance(name, Mapping) else {"": name}
    return _by_language({language: one_line(text) for language, text in named.items()})


def read_alternatives(names: Alternatives) -> Mapping[str, tuple[str, ...]]:
    """Return alternative names by language, sorted, distinct and read-only."""
    if isinstance(names, str):
        raise TypeError(f"alternatives == {names!r} is one string, must be a list of names.")
    named = names if isinstance(names, Mapping) else {"": names}
    return _by_language(
        {
            language: tuple(sorted({line for text in texts if (line := one_line(text))}))
            for language, texts in named.items()
        }
    )


def name_in(names: Mapping[str, str], language: str | None) -> str | None:
    """Return the name in a language, else in a variant of it, in no language, English, or any."""
    wanted = (language or "").lower()
    stem = wanted.partition("-")[0]
    variants = [other for other in names if other.partition("-")[0] == stem]
    found = [key for key in (wanted, *variants, "", "en", *names) if key in names]
    return names[found[0]] if found else None


def one_line(text: str) -> str:
    """Return a name with single spaces."""
    return " ".join(str(text).split())


def _by_language(values: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return values by language, in lower case and sorted, without empty values."""
    found = {_tag(language): value for language, value in values.items() if value}
    return MappingProxyType({language: found[language] for language in sorted(found)})


@lru_cache
def _tag(language: str) -> str:
    """Return a language tag in lower case; the empty tag is allowed."""
    tag = language.lower()
    if tag and not _LANGUAGE.fullmatch(tag):
        raise ValueError(f"language == {language!r}, must be a tag such as 'en' or 'pt-br'.")
    return tag
