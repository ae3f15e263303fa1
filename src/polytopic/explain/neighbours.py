"""The neighbours of one label, from its own column: in time and memory linear in the counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from polytopic.explain.correlations import LabelPair, centred_row, correlate, whole

BLOCK = 1024  # labels whose words are compared at once


class Neighbours(NamedTuple):
    """The labels around one label.

    ``together`` has the labels that it is given with more often than by chance, strongest
    correlation first, and then those with which it is given less often; ``alike`` has the labels
    whose documents use the most similar words.
    """

    together: list[LabelPair]
    alike: list[str]


def labels_together(
    labels, column: int, sets: sparse.csr_matrix, set_docs, *, covariance=None, n_pairs: int
) -> list[LabelPair]:
    """Return the labels that go with a label, ``n_pairs`` above and below zero at most.

    The values are those of :func:`~polytopic.explain.correlations.phi`, or of
    :func:`~polytopic.explain.correlations.of_covariance` if a model has a covariance of labels.
    """
    n_docs, docs = float(set_docs.sum()), sets.T @ set_docs
    rows = sets[:, [column]].nonzero()[0]
    together = sets[rows].T @ set_docs[rows]
    together[column] = 0  # a label is no neighbour of itself
    excess = n_docs * together - docs[column] * docs
    if covariance is None:
        values = correlate(excess, docs * (n_docs - docs), column, together)
    else:
        values = correlate(*centred_row(covariance, column), column, together)
        values = np.where(values * excess >= 0, values, np.nan)
    found = []
    for sign in (1, -1):
        seen = np.flatnonzero(sign * values > 0)
        best = seen[np.lexsort((seen, -together[seen], -sign * values[seen]))[:n_pairs]]
        found += [
            LabelPair(labels[column], labels[other], float(values[other]), whole(together[other]))
            for other in best.tolist()
        ]
    return found


def labels_alike(
    labels, column: int, sets: sparse.csr_matrix, matrix: sparse.csr_matrix, *, n_labels: int
) -> list[str]:
    r"""Return the labels whose documents have the most similar words.

    Of two labels with the word distributions :math:`p` and :math:`q`, that is
    :math:`\sum_w \sqrt{p_w q_w}`, which is 1 less the square of their Hellinger distance. Labels
    without a common word are left out.
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
