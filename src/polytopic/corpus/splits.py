"""Split a corpus into train and test: at random, by time, or with equal shares of labels."""

from collections.abc import Iterable, Sequence, Sized
from datetime import date
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from polytopic.corpus.document import Document, parse_time

Array = NDArray[Any]
Pair = tuple[NDArray[np.intp], NDArray[np.intp]]


def random_split(documents: Sized | int, test_size: float = 0.25, seed: int | None = 0) -> Pair:
    """Split at random.

    Parameters
    ----------
    documents : sized or int
        The documents, or their number.
    test_size : float or int, default=0.25
        Share, or number, of test documents. Neither side is ever empty.
    seed : int, default=0
        The same seed gives the same split.

    Returns
    -------
    train, test : ndarray of int
        Sorted positions of the documents.
    """
    n_docs = documents if isinstance(documents, int) else len(documents)
    n_test = _test_count(n_docs, test_size)
    part = np.ones(n_docs, dtype=int)
    part[np.random.default_rng(seed).permutation(n_docs)[n_test:]] = 0
    return _pair(part, 1)


def time_split(
    documents: Sequence[Document],
    test_size: float = 0.25,
    *,
    at: str | date | None = None,
) -> Pair:
    """Split by time: no training document is later than a test document.

    Parameters
    ----------
    documents : sequence of Document
        Documents with times; equal times keep their order.
    test_size : float or int, default=0.25
        Share, or number, of test documents.
    at : datetime, date or ISO 8601 string, optional
        First time of the test documents; replaces ``test_size``.

    Returns
    -------
    train, test : ndarray of int
        Sorted positions of the documents.
    """
    for document in documents:
        if document.time is None:
            raise ValueError(f"document {document.id!r} has no time, must have one to split by it.")
    n_docs = len(documents)
    n_test = _test_count(n_docs, test_size) if at is None else _count_from(documents, at)
    part = np.zeros(n_docs, dtype=int)
    order = sorted(range(n_docs), key=lambda doc: documents[doc].time)  # type: ignore
    part[order[n_docs - n_test :]] = 1
    return _pair(part, 1)


def stratified_split(labels: Any, test_size: float = 0.25, seed: int | None = 0) -> Pair:
    """Split so that each label has about the same share on both sides.

    Iterative stratification [1]_, with sides of exactly the requested size. A label with two or
    more documents is on both sides, as far as the number of test documents allows.

    Parameters
    ----------
    labels : sequence or indicator
        The label names of each document, the documents themselves, or an indicator matrix.
    test_size, seed
        As for :func:`random_split`, which also describes what is returned.

    References
    ----------
    .. [1] Sechidis, Tsoumakas and Vlahavas, "On the Stratification of Multi-Label Data",
       ECML PKDD 2011.
    """
    Y = _label_matrix(labels)
    n_docs = Y.shape[0]
    n_test = _test_count(n_docs, test_size)
    sizes = np.array([n_docs - n_test, n_test])
    quotas = np.outer(Y.sum(axis=0), sizes / n_docs)
    _require_both_sides(quotas, int(sizes.argmin()), int(sizes.min()))
    return _pair(_deal(Y, quotas, sizes, seed), 1)


def folds(labels: Any, n_splits: int = 5, seed: int | None = 0) -> list[Pair]:
    """Split into test folds of equal size with equal shares of labels.

    Parameters
    ----------
    labels : sequence or indicator
        As for :func:`stratified_split`.
    n_splits : int, default=5
        Number of folds.
    seed : int, default=0
        The same seed gives the same folds.

    Returns
    -------
    list of (train, test)
        Sorted positions of the documents, for each fold.
    """
    Y = _label_matrix(labels)
    n_docs = Y.shape[0]
    if not 2 <= n_splits <= n_docs:
        raise ValueError(f"n_splits == {n_splits}, must be from 2 to {n_docs} (documents).")
    sizes = np.full(n_splits, n_docs // n_splits)
    sizes[: n_docs % n_splits] += 1
    part = _deal(Y, np.outer(Y.sum(axis=0), np.full(n_splits, 1 / n_splits)), sizes, seed)
    return [_pair(part, fold) for fold in range(n_splits)]


def _require_both_sides(quotas: Array, side: int, n_docs: int) -> None:
    """Ask for at least one document of each rare label on the smaller side, in place.

    More frequent labels come first; the extra documents take at most half of the side.
    """
    rare = np.flatnonzero(quotas[:, side] < 1)
    rare = rare[np.argsort(-quotas[rare, side], kind="stable")]
    extra = 1 - quotas[rare, side]
    chosen = np.cumsum(extra) <= n_docs / 2
    quotas[rare[chosen], side] += extra[chosen]
    quotas[rare[chosen], 1 - side] -= extra[chosen]


def _count_from(documents: Sequence[Document], at: Any) -> int:
    start = parse_time("at", at)
    n_test = sum(document.time >= start for document in documents)  # type: ignore
    if not 0 < n_test < len(documents):
        raise ValueError(f"at == {at!r}, must leave documents on both sides.")
    return n_test


def _test_count(n_docs: int, test_size: float) -> int:
    if n_docs < 2:
        raise ValueError(f"{n_docs} documents, must be at least 2.")
    if 0 < test_size < 1:
        return min(max(round(n_docs * test_size), 1), n_docs - 1)
    if 1 <= test_size < n_docs and test_size == int(test_size):
        return int(test_size)
    raise ValueError(
        f"test_size == {test_size!r}, must be a share between 0 and 1 "
        f"or a number of documents from 1 to {n_docs - 1}."
    )


def _pair(part: Array, test: int) -> Pair:
    return np.flatnonzero(part != test), np.flatnonzero(part == test)


# Iterative stratification (Sechidis, Tsoumakas and Vlahavas, 2011)


def _label_matrix(labels: Any) -> csr_array:
    """Return the indicator of the labels that at least two documents have."""
    if hasattr(labels, "tocsr") or getattr(labels, "ndim", 1) == 2:
        Y = csr_array(labels)
    else:
        items = [_names(item) for item in labels]
        are_names = all(isinstance(name, str) for item in items for name in item)
        Y = _named_matrix(items) if are_names else csr_array(np.asarray(items))
    Y = csr_array(Y != 0, dtype=float)
    return Y[:, np.flatnonzero(Y.sum(axis=0) >= 2)]


def _names(item: Any) -> Any:
    names = item.labels if isinstance(item, Document) else item
    is_collection = isinstance(names, Iterable) and not isinstance(names, str)
    return names if is_collection else (str(names),)


def _named_matrix(items: list[Any]) -> csr_array:
    number: dict[str, int] = {}
    rows = [[number.setdefault(name, len(number)) for name in sorted(set(item))] for item in items]
    indices = np.array([label for row in rows for label in row], dtype=np.int64)
    indptr = np.cumsum([0, *map(len, rows)])
    return csr_array((np.ones(len(indices)), indices, indptr), shape=(len(rows), len(number)))


def _deal(Y: csr_array, quotas: Array, sizes: Array, seed: int | None) -> Array:
    """Return the part of each document.

    Parameters
    ----------
    Y : csr_array of shape (n_docs, n_labels)
        Label indicator.
    quotas : ndarray of shape (n_labels, n_parts)
        How many documents with each label each part should get; may be fractional.
    sizes : ndarray of shape (n_parts,)
        Number of documents of each part; the sum is ``n_docs``.
    seed : int or None
        Seed of the order in which documents are dealt.
    """
    order = np.random.default_rng(seed).permutation(Y.shape[0])
    part = _deal_labelled(Y, quotas, sizes, order)
    space = sizes - np.bincount(part[part >= 0], minlength=len(sizes))
    _deal_others(part, space, order)
    _even_out(part, space, Y, quotas)
    return part


def _deal_labelled(Y: csr_array, quotas: Array, sizes: Array, order: Array) -> Array:
    """Deal the documents label by label, the one with fewest documents left first (Algorithm 1)."""
    labels_of = _lists(Y)
    docs_of = [order[docs].tolist() for docs in _lists(csr_array(Y[order].T))]
    part, needed, space = [-1] * Y.shape[0], quotas.tolist(), sizes.tolist()
    remaining = [len(docs) for docs in docs_of]
    queue = [(count, label) for label, count in enumerate(remaining)]
    heapify(queue)
    while queue:
        count, label = heappop(queue)
        if count != remaining[label]:  # outdated: another entry has the present count
            continue
        for doc in docs_of[label]:
            if part[doc] < 0:
                neediest = max(zip(needed[label], space, range(len(space)), strict=True))[2]
                part[doc] = neediest
                space[neediest] -= 1
                for other in labels_of[doc]:
                    needed[other][neediest] -= 1
                    remaining[other] -= 1
                    heappush(queue, (remaining[other], other))
    return np.array(part)


def _deal_others(part: Array, space: Array, order: Array) -> None:
    """Put documents without labels into parts that are not full, in place."""
    others = order[part[order] < 0]
    free = np.repeat(np.arange(len(space)), np.maximum(space, 0))
    part[others] = free[np.linspace(0, len(free), len(others), endpoint=False).astype(int)]
    space -= np.bincount(part[others], minlength=len(space))


def _even_out(part: Array, space: Array, Y: csr_array, quotas: Array) -> None:
    """Move documents from parts that are too large to parts that are too small, in place.

    Each step moves the document that most reduces the squared deviation from the quotas,
    relative to the frequency of its labels.
    """
    count = Y.sum(axis=0)
    needed = quotas - np.column_stack([Y[part == p].sum(axis=0) for p in range(len(space))])
    while space.min() < 0:
        source, target = space.argmin(), space.argmax()
        gain = Y @ ((needed[:, target] - needed[:, source] - 1) / count)
        doc = np.where(part == source, gain, -np.inf).argmax()
        labels = Y.indices[Y.indptr[doc] : Y.indptr[doc + 1]]
        part[doc] = target
        space[source] += 1
        space[target] -= 1
        needed[labels, source] += 1
        needed[labels, target] -= 1


def _lists(matrix: csr_array) -> list[Any]:
    return [row.tolist() for row in np.split(matrix.indices, matrix.indptr[1:-1])]
