"""How rules of one word are boosted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from polytopic.kernels import boosting

REFRESH = 200  # rounds after which sums of weights are added up again
AT_ONCE = 10  # rounds of one call, which cannot be interrupted
FULL = 4  # a word that meets this part of the labels keeps a pair with each: faster to add to


class Rules(NamedTuple):
    """Rules in the order in which they were found."""

    words: np.ndarray  # (n_rules,)
    outputs: np.ndarray  # (n_rules, n_labels)
    z: np.ndarray  # (n_rules,)


def train(X, Y, n_rounds, smoothing) -> Rules:
    """Boost rules of one word, by documents that all have a label.

    Parameters
    ----------
    X, Y : csr_matrix of shape (n_docs, n_words) and (n_docs, n_labels)
        Which words and labels documents have: all entries stored are not zero.
    n_rounds : int
        Rules to find, at most.
    smoothing : float
        What is added to weights, as a part of their total.
    """
    n_labels, found = Y.shape[1], [_no_rules(0, Y.shape[1])]
    documents = _documents(X, Y)
    pairs = _pairs(X, Y, documents)
    D = np.full(Y.shape, 1.0)
    sums = boosting.Sums(*(np.empty(n) for n in (*[pairs.label.size] * 2, *[X.shape[1]] * 2)))
    left = n_rounds if D.size else 0
    while left:
        boosting.add_up(documents, pairs, D, sums)
        rules = _no_rules(min(left, REFRESH), n_labels)
        n_rules = _boost(documents, pairs, D, sums, smoothing, rules)
        if not n_rules:
            break
        found.append(Rules(*(part[:n_rules] for part in rules)))
        left -= n_rules
    return Rules(*map(np.concatenate, zip(*found, strict=True)))


def _boost(documents, pairs, D, sums, smoothing, rules):
    """Find rules from weights whose total is 1; return how many were found."""
    total, n_rules = np.ones(1), 0
    for begin in range(0, rules.words.size, AT_ONCE):
        some = Rules(*(part[begin : begin + AT_ONCE] for part in rules))
        n_some = boosting.boost(documents, pairs, D, sums, smoothing, total, *some)
        n_rules += n_some
        if n_some < some.words.size:
            break
    return n_rules


def _no_rules(n_rules, n_labels):
    """Return room for rules."""
    return Rules(np.zeros(n_rules, np.int64), np.zeros((n_rules, n_labels)), np.zeros(n_rules))


def _documents(X, Y):
    by_word, Y = X.tocsc(), Y.sorted_indices()
    return boosting.Documents(
        X.indices.astype(np.int32, copy=False),
        X.indptr.astype(np.int64),
        Y.indices.astype(np.int64),
        Y.indptr.astype(np.int64),
        by_word.indices.astype(np.int32, copy=False),
        by_word.indptr.astype(np.int64),
    )


def _pairs(X, Y, documents):
    """Return the pairs of words and labels that meet; all of a word that meets many labels."""
    n_labels = Y.shape[1]
    met = sparse.csr_matrix(X.T @ Y)
    met.sort_indices()
    sizes = np.diff(met.indptr)
    full = sizes * FULL >= n_labels
    sizes = np.where(full, n_labels * (sizes > 0), sizes)
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    word = np.repeat(np.arange(sizes.size), sizes)
    label = (np.arange(ends[-1]) - ends[word]).astype(np.int32)  # of words with all labels
    label[~full[word]] = met.indices[~np.repeat(full, np.diff(met.indptr))]
    starts = np.concatenate([[0], np.cumsum(np.diff(X.indptr) * np.diff(Y.indptr))])
    place = np.empty(starts[-1], np.int64)
    boosting.find_places(documents, label, ends, starts, place)
    return boosting.Pairs(label, ends, place, starts)
