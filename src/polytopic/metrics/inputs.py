"""Read and check the labels and scores that metrics are given."""

from collections.abc import Iterable
from itertools import chain

import numpy as np
from scipy.sparse import csr_array, issparse


def read_pair(Y_true, Y_pred, classes=None):
    """Return both as CSR matrices of ones over the same labels, and these labels or None."""
    true, pred = _read_labels(Y_true, "Y_true"), _read_labels(Y_pred, "Y_pred")
    classes = None if classes is None else _check_classes(classes)
    if isinstance(true, list) != isinstance(pred, list):
        raise ValueError("Y_true and Y_pred must both hold label names or both be indicators.")
    if isinstance(true, list):
        classes = all_labels(classes or [], true, pred)
        true, pred = names_to_indicator(true, classes), names_to_indicator(pred, classes)
    _check_shapes(true, pred, "Y_pred")
    if classes is not None:
        _check_length(classes, true)
    return true, pred, classes


def read_named_pair(Y_true, Y_pred, classes):
    """Return what :func:`read_pair` returns, but require the labels of the columns."""
    true, pred, labels = read_pair(Y_true, Y_pred, classes)
    if labels is None:
        raise ValueError("Y_true is an indicator: give the label of each column as classes.")
    return true, pred, labels


def read_scores(Y_true, scores, classes, name):
    """Return true labels as a CSR matrix of ones, the scores, and the labels or None.

    Scored labels come first; true labels without a column of scores follow.
    """
    true, scores = _read_labels(Y_true, "Y_true"), _read_matrix(scores, name)
    if isinstance(true, list) and classes is None:
        raise ValueError(f"Y_true holds names: give the label of each column of {name} as classes.")
    if classes is not None:
        _check_length(_check_classes(classes), scores)
    labels = None
    if isinstance(true, list):
        labels = all_labels(list(classes), true)
        true = names_to_indicator(true, labels)
        _check_shapes(true[:, : scores.shape[1]], scores, name)
    else:
        _check_shapes(true, scores, name)
    if not scores.shape[1]:
        raise ValueError(f"{name} has 0 labels (columns), needs at least 1.")
    return true, scores, labels


def count_documents(Y, labels, n_labels, name):
    """Return the number of documents in ``Y``, and how many of them have each label.

    The columns are ``labels``, or ``n_labels`` columns without names if ``labels`` is None.
    """
    rows = _read_labels(Y, name)
    if isinstance(rows, list) != (labels is not None):
        raise ValueError(f"Y_true and {name} must both hold label names or both be indicators.")
    if isinstance(rows, list):
        rows = names_to_indicator(rows, all_labels(labels, rows))[:, :n_labels]
    if rows.shape[1] != n_labels:
        raise ValueError(
            f"Y_true has {n_labels} labels (columns) and {name} has {rows.shape[1]}; the numbers "
            "must be equal."
        )
    return rows.shape[0], np.bincount(rows.indices, minlength=n_labels)


def ones(Y):
    """Return 1 where a CSR matrix is not 0."""
    Y.eliminate_zeros()
    return csr_array((np.ones(Y.nnz, dtype=np.int64), Y.indices, Y.indptr), shape=Y.shape)


def names_to_indicator(rows, labels):
    """Return the indicator of collections of names."""
    column = {label: place for place, label in enumerate(labels)}
    places = [sorted({column[label] for label in row}) for row in rows]
    indptr = np.cumsum([0, *map(len, places)])
    indices = np.fromiter(chain.from_iterable(places), dtype=np.int64, count=indptr[-1])
    values = np.ones(indices.size, dtype=np.int64)
    return csr_array((values, indices, indptr), shape=(len(rows), len(labels)))


def all_labels(first, *sides):
    """Return the first labels followed by all others that occur, sorted."""
    labels = set().union(*(chain.from_iterable(rows) for rows in sides))
    return [*first, *sorted(labels.difference(first))]


def check_probabilities(values):
    """Raise if a probability is outside [0, 1], rounding aside."""
    for value in values[(values < 0) | (values > 1 + 1e-9)][:1]:
        raise ValueError(f"proba holds {value:g}, must be between 0 and 1.")


def _read_labels(Y, name):
    """Return an indicator as a CSR matrix of ones, label names as a list of collections."""
    if hasattr(Y, "__array__") and not issparse(Y):
        Y = np.asarray(Y)
    if issparse(Y) or (isinstance(Y, np.ndarray) and Y.dtype.kind in "biuf"):
        return _read_indicator(Y, name)
    rows = list(Y)
    if not all(isinstance(row, Iterable) and not isinstance(row, str) for row in rows):
        raise ValueError(f"{name} has 1 dimension, needs a row or a set of labels per document.")
    if all(isinstance(label, str) for row in rows for label in row):
        return rows
    return _read_indicator(_to_array(rows, name, "0 and 1, or label names that are strings"), name)


def _read_indicator(Y, name):
    _check_2d(Y, name)
    Y = csr_array(Y, copy=True)
    Y.sum_duplicates()
    for value in Y.data[(Y.data != 0) & (Y.data != 1)][:1]:
        raise ValueError(f"{name} holds {value:g}, must be 0 or 1.")
    return ones(Y)


def _read_matrix(scores, name):
    """Return scores as an array or as a canonical CSR matrix."""
    scores = scores if issparse(scores) else _to_array(scores, name, "numbers")
    _check_2d(scores, name)
    if issparse(scores):
        scores = csr_array(scores, copy=True)
        scores.sum_duplicates()
    if np.isnan(scores.data if issparse(scores) else scores).any():
        raise ValueError(f"{name} holds NaN, must be numbers.")
    return scores


def _to_array(rows, name, wanted):
    try:
        array = np.asarray(rows)
    except ValueError:
        raise ValueError(f"{name} has rows of different lengths.") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold {wanted}.")
    return array


def _check_2d(array, name):
    if array.ndim != 2:
        raise ValueError(f"{name} has shape {array.shape}, needs (n_docs, n_labels).")


def _check_shapes(true, other, name):
    for axis, what in enumerate(["documents", "labels (columns)"]):
        if true.shape[axis] != other.shape[axis]:
            raise ValueError(
                f"Y_true has {true.shape[axis]} {what} and {name} has {other.shape[axis]}; "
                "the numbers must be equal."
            )
    if not true.shape[0]:
        raise ValueError("Y_true has 0 documents, needs at least 1.")


def _check_classes(classes):
    classes = list(classes)
    if len(set(classes)) != len(classes):
        raise ValueError("classes contains a label twice, must be distinct labels.")
    return classes


def _check_length(classes, matrix):
    if len(classes) != matrix.shape[1]:
        raise ValueError(f"classes has {len(classes)} labels for {matrix.shape[1]} columns.")
