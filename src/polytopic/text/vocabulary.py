"""The terms that a model knows, in sorted order."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import repeat
from numbers import Integral

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils import check_scalar

from polytopic.array_specs import check_names
from polytopic.parameters import LARGEST_COUNT
from polytopic.text.counting import KnownColumns


class Vocabulary:
    """Distinct terms in sorted order, each the name of a column. A vocabulary is immutable.

    Parameters
    ----------
    terms : iterable of str
        The terms, in any order.

    Attributes
    ----------
    terms : tuple of str
        The terms, sorted.
    index : dict of str to int
        The column of each term.

    Examples
    --------
    >>> vocabulary = Vocabulary(["oil", "grain"])
    >>> vocabulary.terms, vocabulary.index["oil"], "gold" in vocabulary
    (('grain', 'oil'), 1, False)
    """

    def __init__(self, terms: Iterable[str]):
        if isinstance(terms, str):
            raise TypeError(f"terms == {terms!r} is one str, must be a list of terms.")
        self.terms = tuple(sorted(set(terms)))

    @classmethod
    def from_sorted(cls, terms: Sequence[str]) -> "Vocabulary":
        """Return the vocabulary of terms that are already sorted and distinct; raise otherwise."""
        check_names(terms, "the vocabulary")
        vocabulary = cls(())
        vocabulary.terms = tuple(terms)
        return vocabulary

    @classmethod
    def from_frequencies(
        cls,
        terms: Sequence[str],
        document_frequency: Sequence[int] | np.ndarray,
        *,
        min_df: int = 1,
        max_size: int | None = None,
    ) -> "Vocabulary":
        """Select the terms that occur in enough documents.

        The result does not depend on the order of the terms.

        Parameters
        ----------
        terms : sequence of str
            Distinct terms.
        document_frequency : array-like of shape (n_terms,)
            Number of documents that contain each term.
        min_df : int, default=1
            Smallest number of documents that contain a term.
        max_size : int, optional
            Largest number of terms: the most frequent are kept, ties by name.
        """
        check_scalar(min_df, "min_df", Integral, min_val=1, max_val=LARGEST_COUNT)
        frequency = np.asarray(document_frequency)
        if frequency.shape != (len(terms),):
            raise ValueError(
                f"document_frequency has shape {frequency.shape}, must have one number per term."
            )
        selected = np.flatnonzero(frequency >= min_df).tolist()
        if max_size is not None:
            check_scalar(max_size, "max_size", Integral, min_val=1)
            selected = sorted(selected, key=lambda i: (-frequency[i], terms[i]))[:max_size]
        return cls(terms[i] for i in selected)

    @cached_property
    def index(self) -> dict[str, int]:
        """The column of each term."""
        return dict(zip(self.terms, range(len(self.terms)), strict=True))

    @cached_property
    def known_columns(self) -> KnownColumns:
        """The columns in the form that counting uses."""
        return KnownColumns(self.index)

    def columns(self, terms: Iterable[str]) -> np.ndarray:
        """Return the column of each term, -1 for an unknown term."""
        return np.fromiter(map(self.index.get, terms, repeat(-1)), dtype=np.intp)

    def select(self, matrix: csr_matrix, terms: Sequence[str]) -> csr_matrix:
        """Return a matrix with named columns as one with the columns of this vocabulary.

        Parameters
        ----------
        matrix : csr_matrix of shape (n_rows, n_terms)
            Any matrix; it is not changed.
        terms : sequence of str
            Distinct names of its columns.

        Returns
        -------
        csr_matrix of shape (n_rows, len(vocabulary))
            Columns of unknown terms are dropped; terms without a column get zeros.
        """
        if len(terms) != matrix.shape[1]:
            raise ValueError(
                f"{len(terms)} terms for {matrix.shape[1]} columns, must be one term per column."
            )
        columns = self.columns(terms).astype(np.int32)[matrix.indices]
        is_known = columns >= 0
        n_before = np.zeros(is_known.size + 1, dtype=matrix.indptr.dtype)
        np.cumsum(is_known, out=n_before[1:])
        indptr = n_before[matrix.indptr]
        del n_before
        shape = (matrix.shape[0], len(self))
        selected = csr_matrix((matrix.data[is_known], columns[is_known], indptr), shape=shape)
        selected.sort_indices()
        return selected

    def __getstate__(self):
        return {"terms": self.terms}

    def __len__(self) -> int:
        return len(self.terms)

    def __contains__(self, term: object) -> bool:
        return term in self.index

    def __iter__(self) -> Iterator[str]:
        return iter(self.terms)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.terms)

    def __repr__(self) -> str:
        return f"Vocabulary of {len(self)} terms"


def resolve_min_df(min_df: int | str, n_docs: float) -> int:
    """Return the smallest number of documents that must contain a term.

    "auto" is 2 for 1000 documents or more, else 1: in a large corpus, a term of a single document
    carries little information, and mixture models are better without it.
    """
    if isinstance(min_df, str):
        if min_df != "auto":
            raise ValueError(f"min_df == {min_df!r}, must be 'auto' or a number.")
        return 2 if n_docs >= 1000 else 1
    check_scalar(min_df, "min_df", Integral, min_val=1, max_val=LARGEST_COUNT)
    return min_df
