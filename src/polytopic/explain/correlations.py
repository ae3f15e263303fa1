"""Correlations of labels: which are given together more or less often than chance would have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse


class LabelPair(NamedTuple):
    """Two labels, their correlation, and the number of documents with both."""

    first: str
    second: str
    correlation: float
    documents: float


def documents_together(sets, set_docs) -> np.ndarray:
    """Return the documents that have each two labels, and on the diagonal each label.

    ``sets`` is the indicator (n_label_sets, n_labels), ``set_docs`` has their documents.
    """
    sets = sparse.csr_matrix(sets, dtype=np.float64)
    return (sets.T @ sparse.diags_array(np.asarray(set_docs, dtype=np.float64)) @ sets).toarray()


def phi(together: np.ndarray, n_docs: float) -> np.ndarray:
    r"""Return the Pearson correlations of the label indicators over all documents.

    With :math:`n_{cd}` documents that have both labels, of :math:`n`:

    .. math:: \frac{n\, n_{cd} - n_c n_d}{\sqrt{n_c (n - n_c)\, n_d (n - n_d)}}

    NaN where that means nothing: for pairs that never occur together, for labels that all
    documents have or none, and on the diagonal.
    """
    docs = together.diagonal()
    covariance = n_docs * together - np.outer(docs, docs)
    return _correlations(covariance, docs * (n_docs - docs), together)


def of_covariance(covariance, together: np.ndarray, n_docs: float) -> np.ndarray:
    r"""Return the correlations of label weights by a model's covariance :math:`\Sigma`.

    A softmax does not change when all weights rise together, so only :math:`P \Sigma P` is known,
    :math:`P = I - 11^\top / C`, and the correlations are those of it. NaN for pairs that never
    occur together, on the diagonal, and where there are two labels: -1 is then all there can be;
    and for pairs that occur together more often than chance would have it but have a correlation
    below zero, or less often and above, as two labels have that are both frequent.
    """
    docs = together.diagonal()
    by_chance = np.outer(docs, docs) / max(n_docs, 1.0)
    centred = np.asarray(covariance, dtype=np.float64)
    centred = centred - centred.mean(axis=0, keepdims=True)
    centred = centred - centred.mean(axis=1, keepdims=True)
    variance = centred.diagonal() if len(centred) > 2 else np.zeros(len(centred))
    values = _correlations(centred, variance, together)
    return np.where(values * (together - by_chance) >= 0, values, np.nan)


def _correlations(covariance, variance, together) -> np.ndarray:
    """Return correlations, NaN where they are not defined or nothing was seen together."""
    deviation = np.sqrt(np.clip(variance, 0.0, None))
    scale = np.outer(deviation, deviation)
    known = (scale > 0) & (together > 0) & ~np.eye(len(scale), dtype=bool)
    return np.divide(covariance, scale, out=np.full(scale.shape, np.nan), where=known)


def correlate(covariance, variance, column: int, together) -> np.ndarray:
    """Return one row of :func:`phi` or :func:`of_covariance`: the correlations of one label."""
    deviation = np.sqrt(np.clip(variance, 0.0, None))
    scale = deviation[column] * deviation
    known = (scale > 0) & (together > 0)
    return np.divide(covariance, scale, out=np.full(scale.shape, np.nan), where=known)


def centred_row(covariance, column: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Return one row of :math:`P \Sigma P`, see :func:`of_covariance`, and its diagonal."""
    covariance = np.asarray(covariance, dtype=np.float64)
    mean = covariance.mean(axis=0)
    row = covariance[column] - mean - mean[column] + mean.mean()
    diagonal = covariance.diagonal() - 2 * mean + mean.mean()
    return row, diagonal if len(mean) > 2 else np.zeros(len(mean))


def strongest_pairs(
    labels: Sequence, correlations: np.ndarray, together: np.ndarray, n_pairs: int
) -> list[LabelPair]:
    """Return the pairs with the highest correlation above zero; equal ones by their documents."""
    first, second = np.nonzero(np.triu(correlations > 0, 1))
    values, docs = correlations[first, second], together[first, second]
    best = np.lexsort((second, first, -docs, -values))[:n_pairs]
    rows = zip(first[best], second[best], values[best].tolist(), docs[best].tolist(), strict=True)
    return [LabelPair(labels[c], labels[d], value, whole(n)) for c, d, value, n in rows]


def whole(number: float) -> float:
    """Return a number of documents, which is an integer where documents have no weights."""
    return int(number) if float(number).is_integer() else float(number)
