"""Learning topics from labelled documents: start, EM on all documents or on batches, Dirichlets.

``alpha`` and ``beta`` are those of :class:`~polytopic.models.col.topics.Topics`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse
from scipy.special import digamma, gammaln, polygamma
from sklearn.exceptions import ConvergenceWarning

from polytopic.models.col.label_prior import distinct_sets
from polytopic.models.col.topics import Topics, WordIndex

# Start: alpha of a label's own topics together, of each other topic, and of each topic that a
# label without own topics may use
OWN, OTHERS, SHARED = 1.0, 1e-3, 0.02
RANDOM = 10.0  # alpha of all topics of a label together, if topics start at random
DOCUMENT, CORPUS = 0.2, 0.01  # shares of one document and of the corpus in a topic at the start
DELAY, DECAY = 2.0, 0.6  # batch t of stepwise EM has the weight (t + DELAY) ** -DECAY
BLOCK = 1 << 20  # entries of beta whose logarithms are taken at once
SMALLEST, LARGEST = 1e-6, 1e6  # alpha
MAX_LOG_STEP = 3.0  # of log(alpha) in a Newton step
MAX_HALVINGS = 20


@dataclass
class TrainingTrace:
    """Topics, the bound after each step, and the mean topic shares of each label's documents."""

    topics: Topics
    label_topics: np.ndarray | None = None
    elbo: list[float] = field(default_factory=list)
    converged: bool = False

    def record(self, value: float, tol: float) -> None:
        """Append the bound; EM has converged if it rose by less than ``tol`` of its size."""
        gain = value - self.elbo[-1] if self.elbo else np.inf
        self.elbo.append(value)
        self.converged = gain < tol * abs(value)

    def warn_unless_converged(self, max_iter: int) -> None:
        """Warn if EM stopped because of ``max_iter``."""
        if not self.converged:
            warnings.warn(
                f"CoL stopped after max_iter == {max_iter} steps, the last of which raised the "
                f"bound by {self.elbo[-1] - self.elbo[-2]:.3g} to {self.elbo[-1]:.6g}; raise "
                "max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )


class TopicDocuments:
    """Labelled documents to learn topics from.

    :class:`polytopic.distributed.topics.TopicParts` offers the same methods for documents that
    are spread over a cluster.

    Parameters
    ----------
    X : csr_matrix of shape (n_docs, n_words)
        Word counts.
    Y : csr_matrix of shape (n_docs, n_labels)
        Labels; every document has at least one.
    """

    def __init__(self, X: sparse.csr_matrix, Y: sparse.csr_matrix):
        self.X, self.Y = X, Y

    @property
    def label_docs(self) -> np.ndarray:
        """Number of documents of each label."""
        return self.Y.getnnz(axis=0)

    def nonempty(self) -> np.ndarray:
        """Return the rows of documents that have words."""
        return np.flatnonzero(self.X.getnnz(axis=1))

    def rows(self, rows):
        """Return the word counts and labels of some documents."""
        return self.X[rows], self.Y[rows]

    def take(self, rows) -> TopicDocuments:
        """Return some of the documents; rows are in ascending order."""
        return TopicDocuments(*self.rows(rows))

    def with_labels(self, columns) -> TopicDocuments:
        """Return the documents with these label columns, in this order."""
        return TopicDocuments(self.X, self.Y[:, columns].sorted_indices())

    def label_sums(self, first: int = 0) -> np.ndarray:
        """Return four sums over each label's documents that tell labels apart.

        The rows are the numbers of documents, words and labels, and a sum of random numbers, one
        per document; ``first`` is the position of the first document among all.
        """
        random = np.random.Generator(np.random.PCG64(0).advance(first))
        return np.array(
            [
                self.label_docs,
                self.Y.T @ self.X.sum(axis=1).A1,
                self.Y.T @ self.Y.getnnz(axis=1),
                self.Y.T @ random.random(self.Y.shape[0]),
            ]
        )

    def word_sums(self) -> np.ndarray:
        """Return the total count of each word."""
        return self.X.sum(axis=0).A1

    def label_words(self) -> sparse.csr_matrix:
        """Return the word counts of each label; a document's words are split among its labels."""
        weights = sparse.diags(1.0 / np.maximum(self.Y.getnnz(axis=1), 1)) @ self.Y
        return (weights.T @ self.X).tocsr()

    def members(self, labels, positions) -> sparse.csr_matrix:
        """Return the words of documents: of each label, the one at this position among its own."""
        by_label = self.Y.tocsc()
        by_label.sort_indices()
        return self.X[by_label.indices[by_label.indptr[labels] + positions]]

    def label_sets(self) -> tuple[sparse.csr_matrix, np.ndarray]:
        """Return the distinct label sets, and the number of documents of each."""
        return distinct_sets(self.Y)

    def fit(self, topics: Topics, *, smoothing, max_iter, tol) -> TrainingTrace:
        r"""Run variational EM on all documents.

        ``elbo`` holds the bound before each step and after the last one, including the log prior
        :math:`s \sum_{jw} \log \beta_{jw}` of the smoothing :math:`s`.
        """
        trace, index, docs = TrainingTrace(topics), WordIndex(self.X), self.label_docs
        inference = topics.infer(self.X, self.Y)
        while True:
            trace.record(penalized_bound(trace.topics, inference.bounds.sum(), smoothing), tol)
            if trace.converged or len(trace.elbo) > max_iter:
                break
            trace.topics = maximize(
                trace.topics, docs, inference.log_shares(), inference.word_counts(index), smoothing
            )
            inference = trace.topics.infer(self.X, self.Y, known=inference)
        if topics.family == "factored":  # what Eq. (4) to (6) give, whatever the steps before
            inference = trace.topics.infer(self.X, self.Y, topics.scoring)
        trace.label_topics = label_means(inference.topic_shares(), docs)
        return trace

    def fit_stepwise(self, topics: Topics, *, smoothing, max_iter, batch_size, random):
        """Run stepwise EM: ``max_iter`` passes over the documents, in random batches.

        ``elbo`` holds one bound per pass, in which each batch is scored by the topics before it.
        """
        trace, n_docs = TrainingTrace(topics, converged=True), self.X.shape[0]
        counts = log_sums = share_sums = label_docs = np.zeros(1)
        batch = 0
        for _ in range(max_iter):
            order, bound = random.permutation(n_docs), 0.0
            for rows in np.array_split(order, -(-n_docs // batch_size)):
                X, Y = self.X[rows], self.Y[rows]
                inference = trace.topics.infer(X, Y)
                bound += inference.bounds.sum()
                weight, batch = (batch + DELAY) ** -DECAY if batch else 1.0, batch + 1
                batch_counts = inference.word_counts(WordIndex(X)) * (n_docs / rows.size)
                counts = counts + weight * (batch_counts - counts)
                log_sums = log_sums + weight * (inference.log_shares() - log_sums)
                share_sums = share_sums + weight * (inference.topic_shares() - share_sums)
                label_docs = label_docs + weight * (Y.getnnz(axis=0) - label_docs)
                log_means = label_means(log_sums, label_docs)
                trace.topics = replace(
                    trace.topics,
                    alpha=fit_dirichlets(trace.topics.alpha, label_docs, log_means, n_steps=1),
                    beta=_normalize(counts.copy(), smoothing),
                )
            trace.elbo.append(penalized_bound(trace.topics, bound, smoothing))
        trace.label_topics = label_means(share_sums, label_docs)
        return trace


# Start


def random_topics(documents, n_topics: int, random) -> Topics:
    """Return topics to start from that all labels share: the corpus's words, at random weights."""
    corpus = documents.word_sums() + 1.0
    start = corpus[:, None] * random.exponential(size=(corpus.size, n_topics))
    alpha = np.full((documents.label_docs.size, n_topics), RANDOM / n_topics)
    return Topics(alpha, (start / start.sum(axis=0)).astype(np.float32))


def label_topics(documents, n_topics: int, random) -> Topics:
    """Return topics to start from, made of each label's words and of single documents.

    The number of topics of a label grows with the square root of its number of documents. With
    fewer topics than labels, the most frequent labels get one each, and every other label uses
    the topic of the label whose words are most similar.
    """
    docs, means = documents.label_docs, _distributions(documents.label_words())
    if n_topics < docs.size:
        owners, alpha = _shared_topics(means, docs, n_topics)
        start = means[owners].toarray()
    else:
        owners, is_first = _own_topics(docs, n_topics)
        alpha = np.full((docs.size, n_topics), OTHERS)
        alpha[owners, np.arange(n_topics)] += OWN / np.bincount(owners)[owners]
        start = means[owners].toarray()
        positions = (random.uniform(size=owners.size) * docs[owners]).astype(np.int64)
        if not is_first.all():
            single = documents.members(owners[~is_first], positions[~is_first])
            start[~is_first] *= 1 - DOCUMENT
            start[~is_first] += DOCUMENT * _distributions(single).toarray()
    corpus = documents.word_sums() + 1.0
    start = (1 - CORPUS) * start + CORPUS * corpus / corpus.sum()
    return Topics(alpha, np.ascontiguousarray((start.T / start.sum(axis=1)), dtype=np.float32))


def _distributions(counts):
    """Return rows of counts, each divided by its sum."""
    total = counts.sum(axis=1).A1
    return sparse.csr_matrix(sparse.diags(1.0 / np.where(total > 0, total, 1.0)) @ counts)


def _own_topics(docs, n_topics):
    """Return the label of each topic, and which topics are the first of their label."""
    shares = np.sqrt(docs) / np.sqrt(docs).sum() * (n_topics - docs.size)
    topics = 1 + np.floor(shares).astype(np.int64)
    n_remaining = n_topics - topics.sum()
    topics[np.argsort(-(shares % 1), kind="stable")[:n_remaining]] += 1
    owners = np.repeat(np.arange(docs.size), topics)
    return owners, np.concatenate([[True], owners[1:] != owners[:-1]])


def _shared_topics(means, docs, n_topics):
    """Return the label whose words each topic starts from, and alpha."""
    owners = np.sort(np.argsort(-docs, kind="stable")[:n_topics])
    roots = means.sqrt()
    nearest = np.asarray((roots @ roots[owners].T).todense()).argmax(axis=1)
    nearest[owners] = np.arange(n_topics)
    alpha = np.full((docs.size, n_topics), SHARED)
    alpha[np.arange(docs.size), nearest] += OWN
    return owners, alpha


# The M step


def maximize(topics, docs, log_shares, word_counts, smoothing) -> Topics:
    """Return the topics that fit the expectations of documents best.

    ``log_shares`` and ``word_counts`` are sums over documents, of which each label has ``docs``;
    ``word_counts`` is overwritten.
    """
    return replace(
        topics,
        alpha=fit_dirichlets(topics.alpha, docs, label_means(log_shares, docs)),
        beta=_normalize(word_counts, smoothing),
    )


def penalized_bound(topics, bound, smoothing) -> float:
    """Return the bound of all documents plus the log prior of the topics."""
    beta, step = topics.beta, max(1, BLOCK // topics.beta.shape[1])
    starts = range(0, beta.shape[0], step)
    log_beta = sum(np.log(beta[k : k + step], dtype=np.float64).sum() for k in starts)
    return float(bound + smoothing * log_beta)


def label_means(sums, docs) -> np.ndarray:
    """Return sums over each label's documents as means; 0 for a label without documents."""
    return sums / np.where(docs > 0, docs, 1.0)[:, None]


def _normalize(counts, smoothing):
    """Return word-major counts, which are overwritten, as one distribution per topic."""
    counts += smoothing
    counts /= counts.sum(axis=0)
    return np.maximum(counts.astype(np.float32), np.finfo(np.float32).tiny)


def fit_dirichlets(alpha, docs, log_means, n_steps=5) -> np.ndarray:
    r"""Return better Dirichlet parameters for each label, by Newton's method.

    The objective per document is :math:`\log\Gamma(\sum_j \alpha_j) - \sum_j \log\Gamma(\alpha_j)
    + \sum_j \alpha_j \overline{\log\theta_j}` (Wang, Huang and Zhu, Eq. (12) and (13)). Steps are
    taken on :math:`\log\alpha` and halved until the objective does not fall. The Hessian is a
    diagonal plus a matrix of rank one, so a step takes linear time.

    Parameters
    ----------
    alpha : ndarray of shape (n_labels, n_topics)
        Where to start.
    docs : ndarray of shape (n_labels,)
        Number of documents of each label; parameters of a label without any do not change.
    log_means : ndarray of shape (n_labels, n_topics)
        Mean expected log topic shares.
    n_steps : int, default=5
        Largest number of steps.
    """
    alpha, rows = alpha.copy(), np.flatnonzero(docs > 0)
    if alpha.shape[1] == 1:  # the only topic has all words, whatever alpha is
        return alpha
    for _ in range(n_steps):
        if not rows.size:
            break
        moved = _climb(alpha[rows], log_means[rows])
        change = np.abs(np.log(moved / alpha[rows])).max(axis=1)
        alpha[rows] = moved
        rows = rows[change > 1e-6]
    return alpha


def dirichlet_objective(alpha, log_means) -> np.ndarray:
    """Return the objective of :func:`fit_dirichlets` for each label, per document."""
    value = gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1)
    return value + (alpha * log_means).sum(axis=1)


def _climb(alpha, log_means):
    """Return the parameters after one step."""
    step = np.clip(_newton_step(alpha, log_means), -MAX_LOG_STEP, MAX_LOG_STEP)
    before, after = dirichlet_objective(alpha, log_means), alpha.copy()
    remaining = np.arange(alpha.shape[0])
    for _ in range(MAX_HALVINGS):
        candidate = np.clip(alpha[remaining] * np.exp(step[remaining]), SMALLEST, LARGEST)
        better = dirichlet_objective(candidate, log_means[remaining]) >= before[remaining]
        after[remaining[better]] = candidate[better]
        remaining = remaining[~better]
        if not remaining.size:
            break
        step[remaining] /= 2
    return after


def _newton_step(alpha, log_means):
    """Return the step of log(alpha): ``-inv(H) @ g`` with ``H = diag(h) + z * outer(v, v)``."""
    total = alpha.sum(axis=1, keepdims=True)
    g = alpha * (digamma(total) - digamma(alpha) + log_means)
    h = np.minimum(g, 0.0) - alpha**2 * polygamma(1, alpha)
    z, v = polygamma(1, total), alpha
    correction = (v * g / h).sum(axis=1, keepdims=True)
    correction /= 1 / z + (v * v / h).sum(axis=1, keepdims=True)
    return -(g - v * correction) / h
