"""Metrics of scores: how high true labels rank, and how well probabilities are calibrated."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_scalar

from polytopic.metrics.inputs import check_probabilities, count_documents, read_scores

BLOCK_DOCS = 2**16  # documents ranked at once: their numbers fit into 16 bits
BLOCK_CELLS = 2**20  # cells ranked at once, if scores are dense


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
        Number of labels listed for each document.
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
    return _mean(_at(k, _precision), Y_true, scores, classes)


def recall_at_k(Y_true, scores, k, *, classes=None):
    r"""Mean share of the true labels that are among the k with the best scores.

    .. math:: R@k = \frac1n \sum_i \frac1{|L_i|} \sum_{r=1}^{k} y_i[r]

    A document without true labels counts 0. The parameters are those of :func:`precision_at_k`.

    Examples
    --------
    >>> recall_at_k([[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.1], [0.2, 0.7, 0.3]], k=2)
    0.75
    """
    return _mean(_at(k, _recall), Y_true, scores, classes)


def ndcg_at_k(Y_true, scores, k, *, classes=None):
    r"""Mean discounted gain of the k best labels, relative to the best possible.

    .. math:: nDCG@k = \frac1n \sum_i \frac{\sum_{r=1}^{k} y_i[r] / \log_2(r + 1)}
        {\sum_{r=1}^{\min(k, |L_i|)} 1 / \log_2(r + 1)}

    Tied labels share their ranks evenly and a document without true labels counts 0, as in
    :func:`sklearn.metrics.ndcg_score`. The parameters are those of :func:`precision_at_k`.

    Examples
    --------
    >>> ndcg_at_k([[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.1], [0.2, 0.7, 0.3]], k=2)
    0.806...
    """
    return _mean(_at(k, _ndcg), Y_true, scores, classes)


def coverage(Y_true, scores, *, classes=None):
    r"""Mean number of labels to list, best first, until all true ones are included.

    .. math:: \frac1n \sum_i |\{j : s_i[j] \ge \min_{m \in L_i} s_i[m]\}|

    Ties count in full and a document without true labels counts 0, as in
    :func:`sklearn.metrics.coverage_error`. Lower is better; the mean number of true labels is the
    best value. (Schapire and Singer subtract 1.) The parameters are those of
    :func:`precision_at_k`.

    Examples
    --------
    >>> coverage([[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.1], [0.2, 0.7, 0.3]])
    2.0
    """
    return _mean(_coverage, Y_true, scores, classes)


def propensity_precision_at_k(Y_true, scores, k, *, Y_train, classes=None, a=0.55, b=1.5):
    r"""Precision at k that weights rare labels more: PSP@k of Jain et al.

    .. math:: PSP@k = \frac{\sum_i \sum_{r=1}^{k} y_i[r] / p_{i[r]}}
        {\sum_i \max_{|S| = k} \sum_{j \in S} y_i[j] / p_j}

    :math:`p_j` is the propensity of label j: how likely it is that somebody assigns it to a
    document it belongs to (:func:`label_propensities`). The denominator is what a perfect ranking
    reaches, so 1 is best. Without any true label it is 0.

    Parameters
    ----------
    Y_true, scores, k, classes
        See :func:`precision_at_k`.
    Y_train : array or sparse matrix of shape (n_train_docs, n_labels), or label names
        Labels of the training documents, from which propensities are estimated.
    a : float, default=0.55
        See :func:`label_propensities`.
    b : float, default=1.5
        See :func:`label_propensities`.

    Returns
    -------
    float

    Examples
    --------
    >>> Y_train = [["a"], ["a"], ["a"], ["a", "b"]]
    >>> Y, scores = [["a"], ["b"]], [[2, 1], [2, 1]]
    >>> precision_at_k(Y, scores, 1, classes=["a", "b"])
    0.5
    >>> propensity_precision_at_k(Y, scores, 1, classes=["a", "b"], Y_train=Y_train)
    0.474...
    """
    check_scalar(k, "k", Integral, min_val=1)
    true, scores, labels = read_scores(Y_true, scores, classes, "scores")
    n_docs, label_docs = count_documents(Y_train, labels, true.shape[1], "Y_train")
    gain = 1 / label_propensities(label_docs, n_docs, a=a, b=b)
    reached = best = 0.0
    for true_block, score_block in _blocks(true, scores):
        ranking = _rank(true_block, score_block, gain)
        reached += _gain(ranking, np.arange(k + 1)).sum()
        best += _best_gain(true_block, gain, k)
    return float(reached / best) if best else 0.0


def label_propensities(label_docs, n_docs, *, a=0.55, b=1.5):
    r"""Estimate how likely each label is to be assigned where it applies (Jain et al.).

    .. math:: p_j = \frac1{1 + C e^{-a \log(N_j + b)}}, \quad C = (\log N - 1) (b + 1)^a

    Parameters
    ----------
    label_docs : array of shape (n_labels,)
        Training documents with each label, :math:`N_j`.
    n_docs : int
        Training documents, :math:`N`. For fewer than 3, all propensities are 1.
    a : float, default=0.55
        The higher, the lower the propensity of rare labels. Jain et al. use .5 for Wikipedia and
        .6 for Amazon's products.
    b : float, default=1.5
        Added to the number of documents of each label. Jain et al. use .4 and 2.6 for the same.

    Returns
    -------
    ndarray of shape (n_labels,)

    Examples
    --------
    >>> label_propensities([1, 10, 1000], 1000).round(2)
    array([0.14, 0.28, 0.82])
    """
    check_scalar(n_docs, "n_docs", Integral, min_val=1)
    check_scalar(a, "a", Real, min_val=0)
    check_scalar(b, "b", Real, min_val=0, include_boundaries="neither")
    scale = max(0.0, np.log(n_docs) - 1) * (b + 1) ** a
    return 1 / (1 + scale * (np.asarray(label_docs) + b) ** -a)


def class_perplexity(Y_true, proba, *, classes=None):
    r"""Inverse of the geometric mean probability of the true labels (Wang et al., Eq. (15)).

    .. math:: \exp \left( -\frac{\sum_d \sum_{m=1}^{M_d} \log p(c_m | w_d)}{\sum_d M_d} \right)

    Lower is better, 1 is best. A true label with probability 0 makes it infinite.

    Parameters
    ----------
    Y_true : array or sparse matrix of shape (n_docs, n_labels), or label names
        True labels, at least one in total.
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
    true, proba, _ = read_scores(Y_true, proba, classes, "proba")
    if not true.nnz:
        raise ValueError("Y_true has no label, needs at least 1.")
    total = 0.0
    for true_block, proba_block in _blocks(true, proba):
        p, hit = _probabilities(true_block, proba_block)
        with np.errstate(divide="ignore"):
            total += np.log(p[hit == 1]).sum()
    return float(np.exp(-total / true.nnz))


def expected_calibration_error(Y_true, proba, *, n_bins=15, classes=None):
    r"""Mean distance between probabilities and how often they come true (Guo et al., Eq. (3)).

    .. math:: ECE = \sum_b \frac{|B_b|}{N} |\mathrm{right}(B_b) - \mathrm{mean}(B_b)|

    All N pairs of document and label fall into bins of equal width by their probability. Lower is
    better, 0 is best.

    Parameters
    ----------
    Y_true, proba, classes
        See :func:`class_perplexity`; there may be no label at all.
    n_bins : int, default=15
        Number of bins.

    Returns
    -------
    float

    Examples
    --------
    >>> expected_calibration_error([[1, 0], [1, 0]], [[0.75, 0.25], [0.75, 0.25]], n_bins=2)
    0.25
    """
    n_pairs, p, right = calibration_bins(Y_true, proba, n_bins=n_bins, classes=classes)
    return float(np.abs(right - p).sum() / n_pairs.sum())


def calibration_bins(Y_true, proba, *, n_bins, classes=None):
    """Return the number of pairs, the sum of probabilities and the number of hits of each bin.

    A bin holds its upper border, as in :func:`sklearn.calibration.calibration_curve`.
    """
    check_scalar(n_bins, "n_bins", Integral, min_val=1)
    true, proba, _ = read_scores(Y_true, proba, classes, "proba")
    borders = np.linspace(0, 1, n_bins + 1)[1:-1]
    sums = np.zeros((3, n_bins))
    for true_block, proba_block in _blocks(true, proba):
        p, hit = _probabilities(true_block, proba_block)
        place = np.searchsorted(borders, p)
        sums += [np.bincount(place, weight, minlength=n_bins) for weight in (None, p, hit)]
    sums[0, 0] += true.shape[0] * true.shape[1] - sums[0].sum()  # neither true nor stored
    return sums


class ScoreTally:
    """Sums of ranking metrics over documents; two tallies can be added.

    Parameters
    ----------
    sums : ndarray
        Sums of the metrics in ``RANKED``, then of :func:`coverage` for documents whose true labels
        are all listed.
    n_docs : int
        Documents counted.
    n_unlisted : int
        Documents with a true label that has no score; such a document is covered by all labels,
        whose number is known only when all documents are counted.
    """

    def __init__(self, sums, n_docs, n_unlisted):
        self.sums, self.n_docs, self.n_unlisted = sums, n_docs, n_unlisted

    @classmethod
    def count(cls, Y_true, scores, classes=None) -> ScoreTally:
        """Rank the scores of documents, and count their true labels."""
        true, scores, _ = read_scores(Y_true, scores, classes, "scores")
        sums, n_unlisted = np.zeros(len(RANKED) + 1), 0
        for true_block, score_block in _blocks(true, scores):
            ranking = _rank(true_block, score_block)
            listed = np.ones(ranking.n_true.size, dtype=bool)
            listed[ranking.doc[~ranking.listed]] = False
            values = [metric(ranking) for metric in RANKED.values()]
            sums += [value.sum() for value in (*values, _coverage(ranking)[listed])]
            n_unlisted += int((~listed).sum())
        return cls(sums, true.shape[0], n_unlisted)

    def __add__(self, other: ScoreTally) -> ScoreTally:
        return ScoreTally(
            self.sums + other.sums,
            self.n_docs + other.n_docs,
            self.n_unlisted + other.n_unlisted,
        )

    def metrics(self, n_labels: int) -> dict[str, float]:
        """Return the means by name, in a fixed order; ``n_labels`` is the number of all labels."""
        sums = self.sums.copy()
        sums[-1] += self.n_unlisted * n_labels
        return dict(zip((*RANKED, "coverage"), (sums / self.n_docs).tolist(), strict=True))


class _Ranking(NamedTuple):
    """Groups of tied labels that include a true one, by document; ranks count from 0."""

    doc: np.ndarray
    start: np.ndarray  # rank of the first label of the group
    end: np.ndarray  # rank after its last
    gain: np.ndarray  # of the true labels in the group: their number, or the sum of their weights
    listed: np.ndarray  # false for a score of -inf
    n_true: np.ndarray  # true labels of each document, not of each group
    n_labels: int


def _mean(metric, Y_true, scores, classes):
    """Return the mean over documents of a metric of rankings."""
    true, scores, _ = read_scores(Y_true, scores, classes, "scores")
    total = sum(metric(_rank(*block)).sum() for block in _blocks(true, scores))
    return float(total / true.shape[0])


def _at(k, metric):
    check_scalar(k, "k", Integral, min_val=1)
    return partial(metric, k=k)


def _precision(ranking, k):
    return _gain(ranking, np.arange(min(k, ranking.n_labels) + 1)) / k


def _recall(ranking, k):
    return _precision(ranking, k) * k / np.maximum(ranking.n_true, 1)


def _ndcg(ranking, k):
    ranks = np.arange(min(k, ranking.n_labels))
    discounts = np.r_[0, np.cumsum(1 / np.log2(ranks + 2))]
    best = discounts[np.minimum(ranking.n_true, ranks.size)]
    return _gain(ranking, discounts) / np.where(best > 0, best, 1)


def _coverage(ranking):
    reached = np.zeros_like(ranking.n_true)
    np.maximum.at(reached, ranking.doc, ranking.end)
    return reached


RANKED = {
    "precision_at_1": _at(1, _precision),
    "precision_at_3": _at(3, _precision),
    "precision_at_5": _at(5, _precision),
    "recall_at_5": _at(5, _recall),
    "recall_at_10": _at(10, _recall),
    "ndcg_at_3": _at(3, _ndcg),
    "ndcg_at_5": _at(5, _ndcg),
    "ndcg_at_10": _at(10, _ndcg),
}


def _gain(ranking, cumulative):
    """Return the gain of each document; ``cumulative[r]`` is the value of the first r ranks."""
    last = cumulative.size - 1
    value = cumulative[np.minimum(ranking.end, last)] - cumulative[np.minimum(ranking.start, last)]
    mean_gain = ranking.gain * ranking.listed / (ranking.end - ranking.start)
    return np.bincount(ranking.doc, value * mean_gain, minlength=ranking.n_true.size)


def _best_gain(true, gain, k):
    """Return the gain of all documents when their best true labels come first."""
    doc = np.repeat(np.arange(true.shape[0]), np.diff(true.indptr))
    gains = gain[true.indices]
    order = np.lexsort((-gains, doc))
    rank = np.arange(doc.size) - true.indptr[doc]
    return gains[order][rank < k].sum()


def above_absent(scores):
    """Return sparse scores moved above 0, so that absent labels come last; dense ones unchanged.

    In the scores of a model of thousands of labels, an absent label is not a candidate.

    >>> above_absent(csr_array([[-3.0, 0.0, 1.5]])).toarray()
    array([[1. , 0. , 5.5]])
    """
    if not issparse(scores) or not scores.nnz:
        return scores
    moved = csr_array(scores, dtype=np.float64, copy=True)
    moved.data += 1.0 - moved.data.min()
    return moved


def _blocks(true, scores):
    """Yield both as CSR matrices, some documents at a time."""
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


def _probabilities(true, proba):
    """Return probability and truth of the cells that are true or hold a probability."""
    check_probabilities(proba.data)
    score, hit = _cells(true, proba)[2:]
    return np.maximum(score, 0), hit  # a label outside classes has the score -inf


def _rank(true, scores, gain=None):
    """Sort the labels of each document, best first, and join ties."""
    n_labels = true.shape[1]
    doc, column, score, hit = _cells(true, scores)
    hit = hit if gain is None else hit * gain[column]
    doc, score, hit, size = _with_rest(doc, column, score, hit, true.shape, scores.shape[1])
    order = np.argsort(-score)
    order = order[np.argsort(doc[order].astype(np.uint16), kind="stable")]  # a radix sort
    doc, score = doc[order], score[order]
    first = np.flatnonzero(np.r_[True, (doc[1:] != doc[:-1]) | (score[1:] != score[:-1])])
    size, hits = np.add.reduceat(size[order], first), np.add.reduceat(hit[order], first)
    end = np.cumsum(size) - doc[first] * n_labels  # the groups of a document hold all labels
    keep = hits > 0
    return _Ranking(
        doc=doc[first][keep],
        start=(end - size)[keep],
        end=end[keep],
        gain=hits[keep],
        listed=score[first][keep] > -np.inf,
        n_true=true.sum(axis=1),
        n_labels=n_labels,
    )


def _with_rest(doc, column, score, hit, shape, n_scored):
    """Add to each document one entry for all other scored labels, one for all without a score.

    Return document, score, gain and number of labels of all entries.
    """
    n_docs, n_labels = shape
    scored = np.bincount(doc[column < n_scored], minlength=n_docs)
    unseen = np.bincount(doc, minlength=n_docs) - scored
    size = np.r_[np.ones_like(doc), n_scored - scored, n_labels - n_scored - unseen]
    doc = np.r_[doc, np.arange(n_docs), np.arange(n_docs)]
    score = np.r_[score, np.zeros(n_docs), np.full(n_docs, -np.inf)]
    hit = np.r_[hit, np.zeros(2 * n_docs, dtype=hit.dtype)]
    return [array[size > 0] for array in (doc, score, hit, size)]
