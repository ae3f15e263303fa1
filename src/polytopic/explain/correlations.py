"""Correlations of labels: which labels occur together more or less often than by chance.

They are computed for all pairs of labels, or for one label in time and memory linear in the counts.
"""

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
    """Return the number of documents with each pair of labels, and on the diagonal each label.

    ``sets`` is the indicator (n_label_sets, n_labels), ``set_docs`` the number of documents of each
    label set.
    """
    sets = sparse.csr_matrix(sets, dtype=np.float64)
    return (sets.T @ sparse.diags_array(np.asarray(set_docs, dtype=np.float64)) @ sets).toarray()


def phi(together: np.ndarray, n_docs: float) -> np.ndarray:
    r"""Return the Pearson correlations of the label indicators over all documents.

    With :math:`n_{cd}` documents that have both labels, of :math:`n`:

    .. math:: \frac{n\, n_{cd} - n_c n_d}{\sqrt{n_c (n - n_c)\, n_d (n - n_d)}}

    NaN if undefined: for pairs that never occur together, for labels of all or no documents, and
    on the diagonal.
    """
    docs = together.diagonal()
    covariance = n_docs * together - np.outer(docs, docs)
    return _correlations(covariance, docs * (n_docs - docs), together)


def weight_correlations(covariance, together: np.ndarray, n_docs: float) -> np.ndarray:
    r"""Return the correlations of label weights in a model with covariance :math:`\Sigma`.

    A softmax does not change when all weights rise together, so only :math:`P \Sigma P` with
    :math:`P = I - 11^\top / C` is known, and its correlations are returned.

    NaN if undefined: for pairs that never occur together, on the diagonal, and if there are only
    two labels, whose correlation is always -1. Also NaN if the sign contradicts the documents: for
    pairs with a negative correlation that occur together more often than by chance, and for those
    with a positive one that do so less often. This happens if both labels are frequent.
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
    """Return correlations; NaN if undefined, or if labels never occur together."""
    deviation = np.sqrt(np.clip(variance, 0.0, None))
    scale = np.outer(deviation, deviation)
    known = (scale > 0) & (together > 0) & ~np.eye(len(scale), dtype=bool)
    return np.divide(covariance, scale, out=np.full(scale.shape, np.nan), where=known)


def correlate(covariance, variance, column: int, together) -> np.ndarray:
    """Return the correlations of one label: a row of :func:`phi` or `weight_correlations`."""
    deviation = np.sqrt(np.clip(variance, 0.0, None))
    scale = deviation[column] * deviation
    known = (scale > 0) & (together > 0)
    return np.divide(covariance, scale, out=np.full(scale.shape, np.nan), where=known)


def centred_row(covariance, column: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Return one row of :math:`P \Sigma P`, see :func:`weight_correlations`, and its diagonal."""
    covariance = np.asarray(covariance, dtype=np.float64)
    mean = covariance.mean(axis=0)
    row = covariance[column] - mean - mean[column] + mean.mean()
    diagonal = covariance.diagonal() - 2 * mean + mean.mean()
    return row, diagonal if len(mean) > 2 else np.zeros(len(mean))


def strongest_pairs(
    labels: Sequence, correlations: np.ndarray, together: np.ndarray, n_pairs: int
) -> list[LabelPair]:
    """Return the pairs with the highest positive correlation; ties are ordered by documents."""
    first, second = np.nonzero(np.triu(correlations > 0, 1))
    values, docs = correlations[first, second], together[first, second]
    best = np.lexsort((second, first, -docs, -values))[:n_pairs]
    rows = zip(first[best], second[best], values[best].tolist(), docs[best].tolist(), strict=True)
    return [LabelPair(labels[c], labels[d], value, to_count(n)) for c, d, value, n in rows]


def to_count(number: float) -> float:
    """Return a number of documents: an integer, unless documents have fractional weights."""
    return int(number) if float(number).is_integer() else float(number)


BLOCK = 1024  # labels whose words are compared at once


class Neighbours(NamedTuple):
    """The neighbours of a label.

    ``together`` lists the labels that occur with it more often than by chance, strongest
    correlation first, then those that do so less often. ``alike`` lists the labels with the most
    similar words.
    """

    together: list[LabelPair]
    alike: list[str]


def labels_together(
    labels, column: int, sets: sparse.csr_matrix, set_docs, *, covariance=None, n_pairs: int
) -> list[LabelPair]:
    """Return labels correlated with a label, at most ``n_pairs`` positively and negatively.

    The correlations are those of :func:`phi`, or of :func:`weight_correlations` if a covariance is
    given.
    """
    n_docs, docs = float(set_docs.sum()), sets.T @ set_docs
    rows = sets[:, [column]].nonzero()[0]
    together = sets[rows].T @ set_docs[rows]
    together[column] = 0  # a label is not its own neighbour
    excess = n_docs * together - docs[column] * docs
    if covariance is None:
        values = correlate(excess, docs * (n_docs - docs), column, together)
    else:
        values = correlate(*centred_row(covariance, column), column, together)
        values = np.where(values * excess >= 0, values, np.nan)
    pairs = []
    for sign in (1, -1):
        candidates = np.flatnonzero(sign * values > 0)
        order = np.lexsort((candidates, -together[candidates], -sign * values[candidates]))
        pairs += [
            LabelPair(labels[column], labels[c], float(values[c]), to_count(together[c]))
            for c in candidates[order[:n_pairs]].tolist()
        ]
    return pairs


def labels_alike(
    labels, column: int, sets: sparse.csr_matrix, matrix: sparse.csr_matrix, *, n_labels: int
) -> list[str]:
    r"""Return the labels whose documents have the most similar words.

    The similarity of two labels with the word distributions :math:`p` and :math:`q` is
    :math:`\sum_w \sqrt{p_w q_w}`, one minus the square of their Hellinger distance. Labels without
    a common word are left out.
    """
    own = sets[:, [column]].T @ matrix
    if not own.sum():
        return []
    root = np.sqrt(own.toarray()[0] / own.sum())
    by_label = sets.tocsc()
    alike = np.zeros(len(labels))
    for start in range(0, len(labels), BLOCK):
        words = sparse.csr_matrix(by_label[:, start : start + BLOCK].T @ matrix)
        total = np.asarray(words.sum(axis=1)).ravel()
        words.data = np.sqrt(words.data)
        alike[start : start + BLOCK] = (words @ root) / np.sqrt(np.where(total > 0, total, 1.0))
    alike[column] = 0
    best = np.argsort(-alike, kind="stable")[:n_labels]
    return [labels[other] for other in best.tolist() if alike[other] > 0]
