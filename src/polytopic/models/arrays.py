"""What models have learned, as plain arrays for files and stores."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from polytopic.counts import LARGEST
from polytopic.labels import indicator

OTHER_SIZES = "arrays of the model have other sizes than its labels and words"


def pack(label_counts, sets, set_docs, world_counts):
    """Return word counts of labels and of all, and label sets with their documents, by name."""
    return {
        "data": label_counts.data,
        "indices": label_counts.indices.astype(np.int64),
        "indptr": label_counts.indptr.astype(np.int64),
        "set_indices": sets.indices.astype(np.int64),
        "set_indptr": sets.indptr.astype(np.int64),
        "set_docs": set_docs,
        "world_counts": world_counts,
    }


def unpack(arrays, n_labels, n_words):
    """Return what was packed, by the names of its parts, after a check."""
    label_counts = sparse.csr_matrix(
        (arrays["data"], arrays["indices"], arrays["indptr"]), shape=(n_labels, n_words)
    )
    sets = indicator(arrays["set_indices"], arrays["set_indptr"], n_labels)
    label_counts.check_format(full_check=True)
    sets.check_format(full_check=True)
    set_docs, world_counts = arrays["set_docs"], arrays["world_counts"]
    if (
        set_docs.shape != (sets.shape[0],)
        or world_counts.shape != (n_words,)
        or not np.diff(sets.indptr).all()
        or not sets.shape[0]
    ):
        raise ValueError(OTHER_SIZES)
    counted = label_counts.data, set_docs, world_counts
    if not all((array >= 0).all() and (array <= LARGEST).all() for array in counted):
        raise ValueError("arrays of the model hold negative or infinite counts")
    return {
        "label_counts": label_counts,
        "sets": sets,
        "set_docs": set_docs,
        "world_counts": world_counts,
    }


def check_weights(arrays, n_labels, n_words):
    """Refuse arrays that are no weights of these labels and words."""
    weights, vectors, columns = (arrays[name] for name in ("weights", "vectors", "columns"))
    if (
        weights.shape != (n_words, vectors.shape[1], columns.size)
        or len(vectors) > columns.size + 1
    ):
        raise ValueError(OTHER_SIZES)
    _check_labels(arrays, n_labels)
    if not all(np.isfinite(array).all() for array in (weights, vectors)):
        raise ValueError("arrays of the model hold infinite weights")


def check_rules(arrays, n_labels, n_words):
    """Refuse arrays that are no rules of these labels and words."""
    words, outputs, z, columns = (arrays[name] for name in ("words", "outputs", "z", "columns"))
    if (
        words.ndim != 1
        or outputs.shape != (words.size, columns.size)
        or z.shape != words.shape
        or not ((words >= 0) & (words < n_words)).all()
    ):
        raise ValueError(OTHER_SIZES)
    _check_labels(arrays, n_labels)
    if not all(np.isfinite(array).all() for array in (outputs, z)):
        raise ValueError("arrays of the model hold infinite weights")


def check_topics(arrays, n_labels, n_words):
    """Refuse arrays that are no topics of these labels and words."""
    alpha, beta, columns, words = (arrays[name] for name in ("alpha", "beta", "columns", "words"))
    if (
        alpha.shape != (columns.size, beta.shape[1])
        or arrays["label_topics"].shape != alpha.shape
        or beta.shape[0] != n_words
        or words.shape != (n_words,)
        or arrays["mean"].shape != columns.shape
        or arrays["covariance"].shape != (columns.size, columns.size)
        or not arrays["size_proba"].ndim == 1 < arrays["size_proba"].size
    ):
        raise ValueError(OTHER_SIZES)
    _check_labels(arrays, n_labels)
    positive = all(np.isfinite(array).all() and (array > 0).all() for array in (alpha, beta))
    if not positive or not (words >= 0).all():
        raise ValueError("arrays of the model hold topics that are no distributions")


def _check_labels(arrays, n_labels):
    columns, fallback = arrays["columns"], arrays["fallback"]
    if (
        arrays["label_docs"].shape != (n_labels,)
        or arrays["docs"].shape != (2,)
        or not fallback.size
        or not min(columns.min(), fallback.min()) >= 0
        or not max(columns.max(), fallback.max()) < n_labels
    ):
        raise ValueError(OTHER_SIZES)


def lookup(matrix, row, column):
    """Return the values of a CSR matrix at these places, 0 where it has none."""
    if not row.size:
        return np.zeros(0)
    return np.asarray(matrix[row, column]).ravel()
