"""What the words of documents say: the likelihood of single labels, and who said each word.

Word distributions are word-major here, (n_words, n_labels), as the kernels read them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polytopic.kernels import mixture
from polytopic.kernels.blocks import map_rows, map_sets
from polytopic.labels import indicator


class WordLabels(NamedTuple):
    """Who said each word: parallel arrays, one entry for each word and label of a document.

    ``label`` is a column of ``classes_``. The shares of a document's word sum to one.
    """

    doc: np.ndarray
    word: np.ndarray
    label: np.ndarray
    share: np.ndarray


class Account(NamedTuple):
    """What a document's log likelihood is made of: ``counts @ words + rest``.

    ``words`` has the log probability of each stored word under the label set, ``rest`` what no
    word pays for, such as the price of a mixture. A linear model adds up scores instead, and
    tells in ``by_label`` what each label of the set adds to ``words``.
    """

    words: np.ndarray
    rest: float
    by_label: np.ndarray | None = None  # (n_words, n_set_labels)


def label_scores(X, log_theta):
    """Return the log likelihood of each document under each single label."""
    return np.vstack(
        map_rows(
            lambda data, indices, indptr, rows: _block_scores(data, indices, indptr, log_theta),
            X,
            log_theta.shape[1],
        )
    )


def best_labels(X, log_theta, allowed):
    """Return the single best of the allowed labels of each document as an indicator."""

    def block(data, indices, indptr, rows):
        scores = _block_scores(data, indices, indptr, log_theta)
        scores[:, ~allowed] = -np.inf
        return np.argmax(scores, axis=1)

    blocks = map_rows(block, X, allowed.size)
    return indicator(np.concatenate(blocks), np.arange(X.shape[0] + 1), allowed.size)


def _block_scores(data, indices, indptr, log_theta):
    scores = np.zeros((indptr.size - 1, log_theta.shape[1]))
    mixture.add_scores(data, indices, indptr, log_theta, scores)
    return scores


def word_labels(X, sets, weights, theta) -> WordLabels:
    """Share each word among the labels of its document's set, whose words are so weighted."""
    n_labels, offsets = np.diff(sets.indptr), _offsets(X, sets)
    share = shares(X, sets, weights, theta)
    doc = np.repeat(np.arange(X.shape[0]), np.diff(offsets))
    place = np.arange(share.size) - offsets[doc]
    word = X.indices[X.indptr[doc] + place // n_labels[doc]]
    label = sets.indices[sets.indptr[doc] + place % n_labels[doc]]
    return WordLabels(doc, word, label, share)


def shares(X, sets, weights, theta) -> np.ndarray:
    """Return the shares of :func:`word_labels` alone: by document, word by word."""
    offsets = _offsets(X, sets)
    share = np.empty(offsets[-1])

    def block(data, indices, indptr, labels, ends, rows):
        out = share[offsets[rows.start] : offsets[rows.stop]]
        mixture.word_shares(indices, indptr, labels, ends, weights, theta, out)

    map_sets(block, X, sets)
    return share


def _offsets(X, sets):
    """Return where the shares of each document begin, and where the last one's end."""
    return np.concatenate([[0], np.cumsum(np.diff(X.indptr) * np.diff(sets.indptr))])


def softmax(scores):
    """Return ``exp(scores)``, each row normalised."""
    proba = np.exp(scores - scores.max(axis=1, keepdims=True))
    return proba / proba.sum(axis=1, keepdims=True)


def smoothed(label_counts, smoothing):
    """Return the word distributions of counts (n_labels, n_words), and their logarithms."""
    total = label_counts.sum(axis=1).A1 + smoothing * label_counts.shape[1]
    by_word = label_counts.tocsc()
    proba = (by_word.data + smoothing) / total[by_word.indices]
    theta = _filled(smoothing / total, proba, by_word)
    return theta, _filled(np.log(smoothing / total), np.log(proba), by_word)


def _filled(background, values, by_word):
    """Return a word-major array: these values at the entries of ``by_word`` (CSC)."""
    dense = np.empty((by_word.shape[1], by_word.shape[0]))
    dense[:] = background
    word = np.repeat(np.arange(by_word.shape[1]), np.diff(by_word.indptr))
    dense[word, by_word.indices] = values
    return dense
