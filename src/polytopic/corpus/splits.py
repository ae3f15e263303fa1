"""Parts of a corpus for training and testing: at random, by time, or with equal label shares."""

from collections.abc import Sequence, Sized
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytopic.corpus.document import Document, parse_time
from polytopic.corpus.stratify import deal, label_matrix

Array = NDArray[Any]
Pair = tuple[NDArray[np.intp], NDArray[np.intp]]


def random_split(documents: Sized | int, test_size: float = 0.25, seed: int | None = 0) -> Pair:
    """Split at random.

    Parameters
    ----------
    documents : sized or int
        The documents, or how many they are.
    test_size : float or int, default=0.25
        Share of the documents to test on, or their number. No side is ever empty.
    seed : int, default=0
        The same seed gives the same split.

    Returns
    -------
    train, test : ndarray of int
        Sorted places of the documents.
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
    """Split by time: no document to train on is later than one to test on.

    Parameters
    ----------
    documents : sequence of Document
        Each with its time; of those with the same time the first in the sequence count as earlier.
    test_size : float or int, default=0.25
        Share of the documents to test on, or their number.
    at : datetime, date or ISO 8601 string, optional
        Test on the documents from this time on, instead of on ``test_size``.

    Returns
    -------
    train, test : ndarray of int
        Sorted places of the documents.
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

    Iterative stratification [1]_, with sides of exactly the size asked for. A label with two
    documents or more is on both sides, as far as the documents to test on suffice.

    Parameters
    ----------
    labels : sequence or indicator
        The label names of each document, the documents themselves, or an indicator matrix.
    test_size : float or int, default=0.25
        Share of the documents to test on, or their number. No side is ever empty.
    seed : int, default=0
        The same seed gives the same split.

    Returns
    -------
    train, test : ndarray of int
        Sorted places of the documents.

    References
    ----------
    .. [1] Sechidis, Tsoumakas and Vlahavas, "On the Stratification of Multi-Label Data",
       ECML PKDD 2011.
    """
    Y = label_matrix(labels)
    n_docs = Y.shape[0]
    n_test = _test_count(n_docs, test_size)
    room = np.array([n_docs - n_test, n_test])
    wanted = np.outer(Y.sum(axis=0), room / n_docs)
    _want_both_sides(wanted, int(room.argmin()), int(room.min()))
    return _pair(deal(Y, wanted, room, seed), 1)


def folds(labels: Any, n_splits: int = 5, seed: int | None = 0) -> list[Pair]:
    """Split into folds of equal size with equal label shares, each to test on once.

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
        Sorted places of the documents, for each fold.
    """
    Y = label_matrix(labels)
    n_docs = Y.shape[0]
    if not 2 <= n_splits <= n_docs:
        raise ValueError(f"n_splits == {n_splits}, must be from 2 to the {n_docs} documents.")
    room = np.full(n_splits, n_docs // n_splits)
    room[: n_docs % n_splits] += 1
    part = deal(Y, np.outer(Y.sum(axis=0), np.full(n_splits, 1 / n_splits)), room, seed)
    return [_pair(part, fold) for fold in range(n_splits)]


def _want_both_sides(wanted: Array, side: int, n_docs: int) -> None:
    """Have each label on the smaller side once at least, in place.

    The more frequent labels first, while their extra documents take at most half of the side.
    """
    rare = np.flatnonzero(wanted[:, side] < 1)
    rare = rare[np.argsort(-wanted[rare, side], kind="stable")]
    extra = 1 - wanted[rare, side]
    chosen = np.cumsum(extra) <= n_docs / 2
    wanted[rare[chosen], side] += extra[chosen]
    wanted[rare[chosen], 1 - side] -= extra[chosen]


def _count_from(documents: Sequence[Document], at: Any) -> int:
    start = parse_time("at", at)
    n_test = sum(document.time >= start for document in documents)  # type: ignore
    if not 0 < n_test < len(documents):
        raise ValueError(f"at == {at!r}, must have documents on both sides.")
    return n_test


def _test_count(n_docs: int, test_size: float) -> int:
    if n_docs < 2:
        raise ValueError(f"{n_docs} documents, must be 2 or more to be split.")
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
