"""Measures of scores: how early the true labels come, and how probable they are."""

from functools import partial
from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_scalar

from polytopic.metrics.reading import check_between, check_scored

BLOCK_DOCS = 2**16  # documents ranked at once: their numbers fit 16 bits
BLOCK_CELLS = 2**20  # and, with dense scores, about so many cells


def precision_at_k(Y_true, scores, k, *, classes=None):
    r"""Mean share of true labels among the k with the best scores.

    .. math:: P@k = \frac1n \sum_i \frac1k \sum_{r=1}^{k} y_i[r]

    :math:`y_i[r]` is 1 if the label at rank r is true; tied labels share their ranks evenly. The
    sum is divided by k even if the document has fewer true labels, or the model fewer labels.

    Parameters
    ----------
    Y_true : array or sparse matrix of shape (n_docs, n_labels), or label names
        True labels.
    scores : array or sparse matrix of shape (n_docs, n_labels)
        Score of each label, not NaN.
    k : int
        Labels listed for each document.
    classes : sequence of str, optional
        Label of each column; needed with names.

    Returns
    -------
    float

    Examples
    --------
    >>> precision_at_k([[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.1], [0.2, 0.7, 0.3]], k=2)
    0.5
    """
    return score_means(Y_true, scores, classes, [at_k(precision, k)])[0]


def ndcg_at_k(Y_true, scores, k, *, classes=None):
    r"""Mean discounted gain of the k best labels, relative to the best possible.

    .. math:: nDCG@k = \frac1n \sum_i \frac{\sum_{r=1}^{k} y_i[r] / \log_2(r + 1)}
        {\sum_{r=1}^{\min(k, |L_i|)} 1 / \log_2(r + 1)}

    :math:`y_i[r]` is 1 if the label at rank r is true; tied labels share their ranks evenly, as in
    :func:`sklearn.metrics.ndcg_score`. A document without true labels counts 0, as there.

    Parameters
    ----------
    Y_true : array or sparse matrix of shape (n_docs, n_labels), or label names
        True labels.
    scores : array or sparse matrix of shape (n_docs, n_labels)
        Score of each label, not NaN.
    k : int
        Labels listed for each document.
    classes : sequence of str, optional
        Label of each column; needed with names.

    Returns
    -------
    float

    Examples
    --------
    >>> ndcg_at_k([[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.1], [0.2, 0.7, 0.3]], k=2)
    0.806...
    """
    return score_means(Y_true, scores, classes, [at_k(ndcg, k)])[0]


def coverage(Y_true, scores, *, classes=None):
    r"""Mean number of labels to list, best first, until all true ones are there.

    .. math:: \frac1n \sum_i |\{j : s_i[j] \ge \min_{m \in L_i} s_i[m]\}|

    Ties count in full and a document without true labels counts 0, as in
    :func:`sklearn.metrics.coverage_error`. Lower is better; the mean number of true labels is best.
    (Schapire and Singer subtract 1.)

    Parameters
    ----------
    Y_true : array or sparse matrix of shape (n_docs, n_labels), or label names
        True labels.
    scores : array or sparse matrix of shape (n_docs, n_labels)
        Score of each label, not NaN.
    classes : sequence of str, optional
        Label of each column; needed with names.

    Returns
    -------
    float

    Examples
    --------
    >>> coverage([[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.1], [0.2, 0.7, 0.3]])
    2.0
    """
    return score_means(Y_true, scores, classes, [covered])[0]


def class_perplexity(Y_true, proba, *, classes=None):
    r"""Inverse of the geometric mean probability of the true labels (Wang et al., Eq. (15)).

    .. math:: \exp \left( -\frac{\sum_d \sum_{m=1}^{M_d} \log p(c_m | w_d)}{\sum_d M_d} \right)

    Lower is better, 1 is best. A true label of probability 0 makes it infinite.

    Parameters
    ----------
    Y_true : array or sparse matrix of shape (n_docs, n_labels), or label names
        True labels, at least one in all.
    proba : array or sparse matrix of shape (n_docs, n_labels)
        Probability of each label.
    classes : sequence of str, optional
        Label of each column; needed with names. Other true labels have probability 0.

    Returns
    -------
    float

    Examples
    --------
    >>> class_perplexity([[1, 1], [0, 1]], [[0.5, 0.5], [0.75, 0.25]])
    2.519...
    """
    true, proba = check_scored(Y_true, proba, classes, "proba")
    if not true.nnz:
        raise ValueError("Y_true has no label, needs at least 1.")
    total = 0.0
    for true_block, proba_block in _blocks(true, proba):
        check_between(proba_block.data, 0, 1 + 1e-9)
        score, hit = _cells(true_block, proba_block)[2:]
        with np.errstate(divide="ignore"):
            total += np.log(np.maximum(score[hit == 1], 0)).sum()  # a label unseen has -inf
    return float(np.exp(-total / true.nnz))


class _Ranking(NamedTuple):
    """Groups of tied labels that hold a true one, by document; ranks count from 0."""

    doc: np.ndarray
    start: np.ndarray  # rank of the first label of the group
    end: np.ndarray  # rank after its last
    hits: np.ndarray  # true labels in the group
    listed: np.ndarray  # false for a score of -inf
    n_true: np.ndarray  # true labels of each document, not of each group
    n_labels: int


def score_means(Y_true, scores, classes, measures):
    """Return the mean over documents of each measure of a ranking."""
    totals, n_docs = np.zeros(len(measures)), 0
    for values in score_values(Y_true, scores, classes, measures):
        totals += [each.sum() for each in values]
        n_docs += values[0].size
    return (totals / n_docs).tolist()


def score_values(Y_true, scores, classes, measures):
    """Yield the values of each measure of a ranking, of some documents at a time."""
    true, scores = check_scored(Y_true, scores, classes, "scores")
    for true_block, score_block in _blocks(true, scores):
        ranking = _rank(true_block, score_block)
        yield [measure(ranking) for measure in measures]


def _blocks(true, scores):
    """Yield both as CSR, some documents at a time."""
    n_docs, n_labels = scores.shape
    step = BLOCK_DOCS if issparse(scores) else min(BLOCK_DOCS, max(1, BLOCK_CELLS // n_labels))
    for start in range(0, n_docs, step):
        stop = start + step
        yield true[start:stop], csr_array(scores[start:stop], dtype=np.float64)


def _cells(true, scores):
    """Return document, column, score and truth of the cells that are true or hold a score."""
    ones = np.ones(scores.nnz, dtype=np.int64)
    stored = csr_array((ones, scores.indices, scores.indptr), shape=true.shape)
    union = stored + 2 * true  # 1: a score is stored, 2: true, 3: both
    doc = np.repeat(np.arange(true.shape[0]), np.diff(union.indptr))
    score = np.where(union.indices < scores.shape[1], 0.0, -np.inf)
    score[union.data % 2 == 1] = scores.data  # both are sorted by document and column
    return doc, union.indices, score, union.data // 2


def _with_rest(cells, shape, n_scored):
    """Add to each document one entry for all other scored labels, one for all others unseen."""
    doc, column, score, hit = cells
    n_docs, n_labels = shape
    scored = np.bincount(doc[column < n_scored], minlength=n_docs)
    unseen = np.bincount(doc, minlength=n_docs) - scored
    size = np.r_[np.ones_like(doc), n_scored - scored, n_labels - n_scored - unseen]
    doc = np.r_[doc, np.arange(n_docs), np.arange(n_docs)]
    score = np.r_[score, np.zeros(n_docs), np.full(n_docs, -np.inf)]
    hit = np.r_[hit, np.zeros(2 * n_docs, dtype=hit.dtype)]
    return [array[size > 0] for array in (doc, score, hit, size)]


def _rank(true, scores):
    """Sort the labels of each document, best first, and join ties."""
    doc, score, hit, size = _with_rest(_cells(true, scores), true.shape, scores.shape[1])
    order = np.argsort(-score)
    order = order[np.argsort(doc[order].astype(np.uint16), kind="stable")]  # a radix sort
    doc, score = doc[order], score[order]
    first = np.flatnonzero(np.r_[True, (doc[1:] != doc[:-1]) | (score[1:] != score[:-1])])
    size, hits = np.add.reduceat(size[order], first), np.add.reduceat(hit[order], first)
    end = np.cumsum(size) - doc[first] * true.shape[1]  # the groups of a document hold all labels
    keep = hits > 0
    return _Ranking(
        doc=doc[first][keep],
        start=(end - size)[keep],
        end=end[keep],
        hits=hits[keep],
        listed=score[first][keep] > -np.inf,
        n_true=true.sum(axis=1),
        n_labels=true.shape[1],
    )


def at_k(measure, k):
    """Return a measure of a ranking for k labels."""
    check_scalar(k, "k", Integral, min_val=1)
    return partial(measure, k=k)


def precision(ranking, k):
    """Return the precision at k of each document."""
    return _gain(ranking, np.arange(min(k, ranking.n_labels) + 1)) / k


def ndcg(ranking, k):
    """Return the normalized discounted gain at k of each document."""
    ranks = np.arange(min(k, ranking.n_labels))
    discounts = np.r_[0, np.cumsum(1 / np.log2(ranks + 2))]
    best = discounts[np.minimum(ranking.n_true, ranks.size)]
    return _gain(ranking, discounts) / np.where(best > 0, best, 1)


def covered(ranking):
    """Return how many labels of each document reach the last true one."""
    reached = np.zeros_like(ranking.n_true)
    np.maximum.at(reached, ranking.doc, ranking.end)
    return reached


def _gain(ranking, cumulative):
    """Return the gain of each document; ``cumulative[r]`` is the worth of the first r ranks."""
    last = cumulative.size - 1
    worth = cumulative[np.minimum(ranking.end, last)] - cumulative[np.minimum(ranking.start, last)]
    mean_hit = ranking.hits * ranking.listed / (ranking.end - ranking.start)
    return np.bincount(ranking.doc, worth * mean_hit, minlength=ranking.n_true.size)
