"""Reads and checks what measures are given."""

from collections.abc import Iterable
from itertools import chain

import numpy as np
from scipy.sparse import csr_array, issparse


def check_pair(Y_true, Y_pred, classes=None):
    """Return both as CSR of ones over the same labels."""
    return align(Y_true, Y_pred, classes)[:2]


def align(Y_true, Y_pred, classes):
    """Return both as CSR of ones over the same labels, and the labels if they are known."""
    true, pred = _read(Y_true, "Y_true"), _read(Y_pred, "Y_pred")
    classes = None if classes is None else _check_classes(classes)
    if isinstance(true, list) != isinstance(pred, list):
        raise ValueError("Y_true and Y_pred must both hold label names or both be indicators.")
    if isinstance(true, list):
        classes = all_labels(classes or [], true, pred)
        true, pred = from_names(true, classes), from_names(pred, classes)
    _check_shapes(true, pred, "Y_pred")
    if classes is not None:
        _check_length(classes, true)
    return true, pred, classes


def check_scored(Y_true, scores, classes, name):
    """Return true labels as CSR of ones, scored labels first, and the scores."""
    true, scores = _read(Y_true, "Y_true"), _check_scores(scores, name)
    if isinstance(true, list) and classes is None:
        raise ValueError(f"Y_true holds names: give the label of each column of {name} as classes.")
    if classes is not None:
        _check_length(_check_classes(classes), scores)
    if isinstance(true, list):
        true = from_names(true, all_labels(list(classes), true))
        _check_shapes(true[:, : scores.shape[1]], scores, name)
    else:
        _check_shapes(true, scores, name)
    if not scores.shape[1]:
        raise ValueError(f"{name} has 0 labels (columns), needs at least 1.")
    return true, scores


def _read(Y, name):
    """Return an indicator as CSR of ones, label names as a list of collections."""
    if hasattr(Y, "__array__") and not issparse(Y):
        Y = np.asarray(Y)
    if issparse(Y) or (isinstance(Y, np.ndarray) and Y.dtype.kind in "biuf"):
        return _indicator(Y, name)
    rows = list(Y)
    if not all(isinstance(row, Iterable) and not isinstance(row, str) for row in rows):
        raise ValueError(f"{name} has 1 dimension, needs a row or a set of labels a document.")
    if all(isinstance(label, str) for row in rows for label in row):
        return rows
    return _indicator(_dense(rows, name, "0 and 1, or label names that are strings"), name)


def _dense(rows, name, wanted):
    """Return rows of numbers as an array."""
    try:
        array = np.asarray(rows)
    except ValueError:
        raise ValueError(f"{name} has rows of different lengths.") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold {wanted}.")
    return array


def _indicator(Y, name):
    """Return an indicator as CSR of ones."""
    _check_2d(Y, name)
    Y = csr_array(Y, copy=True)
    Y.sum_duplicates()
    for value in Y.data[(Y.data != 0) & (Y.data != 1)][:1]:
        raise ValueError(f"{name} holds {value:g}, must be 0 or 1.")
    return ones(Y)


def ones(Y):
    """Return 1 where a CSR matrix is not 0."""
    Y.eliminate_zeros()
    return csr_array((np.ones(Y.nnz, dtype=np.int64), Y.indices, Y.indptr), shape=Y.shape)


def from_names(rows, labels):
    """Return the indicator of collections of names."""
    column = {label: place for place, label in enumerate(labels)}
    places = [sorted({column[label] for label in row}) for row in rows]
    indptr = np.cumsum([0, *map(len, places)])
    indices = np.fromiter(chain.from_iterable(places), dtype=np.int64, count=indptr[-1])
    ones = np.ones(indices.size, dtype=np.int64)
    return csr_array((ones, indices, indptr), shape=(len(rows), len(labels)))


def all_labels(first, *sides):
    """Return the first labels and, sorted, all others that occur."""
    found = set().union(*(chain.from_iterable(rows) for rows in sides))
    return [*first, *sorted(found.difference(first))]


def _check_scores(scores, name):
    """Return scores as an array or as canonical CSR."""
    scores = scores if issparse(scores) else _dense(scores, name, "numbers")
    _check_2d(scores, name)
    if issparse(scores):
        scores = csr_array(scores, copy=True)
        scores.sum_duplicates()
    if np.isnan(scores.data if issparse(scores) else scores).any():
        raise ValueError(f"{name} holds NaN, must be numbers.")
    return scores


def _check_2d(array, name):
    """Refuse what is no table."""
    if array.ndim != 2:
        raise ValueError(f"{name} has shape {array.shape}, needs (n_docs, n_labels).")


def check_between(values, low, high):
    """Refuse probabilities outside the bounds."""
    for value in values[(values < low) | (values > high)][:1]:
        raise ValueError(f"proba holds {value:g}, must be between 0 and 1.")


def _check_shapes(true, other, name):
    """Refuse no documents, and other documents or labels than the true ones."""
    for axis, what in enumerate(["documents", "labels (columns)"]):
        if true.shape[axis] != other.shape[axis]:
            raise ValueError(
                f"Y_true has {true.shape[axis]} {what} and {name} {other.shape[axis]}, "
                "must be the same."
            )
    if not true.shape[0]:
        raise ValueError("Y_true has 0 documents, needs at least 1.")


def _check_classes(classes):
    """Return classes as a list without repetition."""
    classes = list(classes)
    if len(set(classes)) != len(classes):
        raise ValueError("classes holds a label twice, needs each once.")
    return classes


def _check_length(classes, matrix):
    """Refuse classes that do not fit the columns."""
    if len(classes) != matrix.shape[1]:
        raise ValueError(f"classes has {len(classes)} labels for {matrix.shape[1]} columns.")
