"""Learning topics from documents with labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from polytopic.models.dirichlet import fit_dirichlets
from polytopic.models.topics import Topics, WordIndex

OWN, OTHERS = 1.0, 1e-3  # alpha at the start: of a label's own topics together, of each other one
SHARED = 0.02  # the latter for labels that have no topic to themselves
DOCUMENT, CORPUS = 0.2, 0.01  # parts of a document and of all words in a topic at the start
ROOM = 1 << 20  # numbers in an array of words × topics that is needed for a moment
SOFTENING, FORGETTING = 2.0, 0.6  # of stepwise learning: batch t counts (t + 2) ** -0.6


@dataclass
class Course:
    """Topics, what led to them, and each label's mean posterior shares of them."""

    topics: Topics
    label_topics: np.ndarray | None = None
    elbo: list[float] = field(default_factory=list)
    converged: bool = False

    def reach(self, value: float, tol: float) -> None:
        """Note the bound, and whether it has risen too little to go on."""
        gain = value - self.elbo[-1] if self.elbo else np.inf
        self.elbo.append(value)
        self.converged = gain < tol * abs(value)


def start_topics(label_words, docs, words, n_topics, random, members) -> Topics:
    """Return topics made of the mean of each label's documents, and of single ones.

    Labels have as many as the roots of their numbers of documents ask for. Where there are fewer
    topics than labels, the most frequent labels have one each, and the others that of the label
    whose words are most like theirs.

    Parameters
    ----------
    label_words : csr_matrix of shape (n_labels, n_words)
        Words of each label's documents.
    docs : ndarray of shape (n_labels,)
        How many these are.
    words : ndarray of shape (n_words,)
        How often each word occurs.
    n_topics : int
        Topics to make.
    random : RandomState
        Which single documents are taken.
    members : callable
        Given labels, and places among the documents of each, it returns their word counts.
    """
    means = _distributions(label_words)
    if n_topics < docs.size:
        owners, alpha = _shared_topics(means, docs, n_topics)
        start = means[owners].toarray()
    else:
        owners, first = _own_topics(docs, n_topics)
        alpha = np.full((docs.size, n_topics), OTHERS)
        alpha[owners, np.arange(n_topics)] += OWN / np.bincount(owners)[owners]
        start = means[owners].toarray()
        places = (random.uniform(size=owners.size) * docs[owners]).astype(np.int64)
        start[~first] *= 1 - DOCUMENT
        own = members(owners[~first], places[~first])
        start[~first] += DOCUMENT * _distributions(own).toarray()
    corpus = words + 1.0
    start = (1 - CORPUS) * start + CORPUS * corpus / corpus.sum()
    return Topics(alpha, np.ascontiguousarray((start.T / start.sum(axis=1)), dtype=np.float32))


def _distributions(counts):
    """Return rows of counts, each divided by its sum."""
    total = counts.sum(axis=1).A1
    return sparse.csr_matrix(sparse.diags(1.0 / np.where(total > 0, total, 1.0)) @ counts)


def _own_topics(docs, n_topics):
    """Return the label of each topic, and which are the first of a label."""
    wanted = np.sqrt(docs) / np.sqrt(docs).sum() * (n_topics - docs.size)
    topics = 1 + np.floor(wanted).astype(np.int64)
    left = n_topics - topics.sum()
    topics[np.argsort(-(wanted % 1), kind="stable")[:left]] += 1
    owners = np.repeat(np.arange(docs.size), topics)
    return owners, np.concatenate([[True], owners[1:] != owners[:-1]])


def _shared_topics(means, docs, n_topics):
    """Return the label that each topic is made of, and alpha."""
    owners = np.sort(np.argsort(-docs, kind="stable")[:n_topics])
    roots = means.sqrt()
    nearest = np.asarray((roots @ roots[owners].T).todense()).argmax(axis=1)
    nearest[owners] = np.arange(n_topics)
    alpha = np.full((docs.size, n_topics), SHARED)
    alpha[np.arange(docs.size), nearest] += OWN
    return owners, alpha


def learn_in_turns(X, Y, topics, *, smoothing, max_iter, tol) -> Course:
    r"""Climb the bound by variational EM over all documents.

    ``elbo`` has the bound before each step, with :math:`s \sum_{jw} \log \beta_{jw}` for the
    smoothing :math:`s`, and that after the last one.
    """
    course, index, docs = Course(topics), WordIndex(X), Y.getnnz(axis=0)
    inference = None
    for step in range(max_iter + 1):
        inference = course.topics.infer(X, Y, known=inference)
        course.reach(objective(course.topics, inference.bounds.sum(), smoothing), tol)
        if course.converged or step == max_iter:
            course.label_topics = means_of(inference.topic_shares(), docs)
            return course
        course.topics = maximised(
            course.topics, docs, inference.log_shares(), inference.word_counts(index), smoothing
        )
    return course


def objective(topics, bound, smoothing) -> float:
    """Return the bound of the documents with the log prior of the topics."""
    return float(bound + smoothing * _log_beta(topics.beta))


def maximised(topics, docs, log_shares, word_counts, smoothing) -> Topics:
    """Return the topics that suit what was expected of documents best: the M step.

    ``log_shares`` and ``word_counts``, which are overwritten, are sums over documents, and
    ``docs`` how many of these each label has.
    """
    return Topics(
        fit_dirichlets(topics.alpha, docs, means_of(log_shares, docs)),
        _normalised(word_counts, smoothing),
    )


def learn_stepwise(X, Y, topics, *, smoothing, max_iter, batch_size, random) -> Course:
    """Follow the bound by batches of documents, ``max_iter`` times over all of them.

    ``elbo`` has the bound of all documents in each pass, each by the topics it met.
    """
    course, n_docs = Course(topics, converged=True), X.shape[0]
    counts = log_sums = share_sums = label_docs = np.zeros(1)
    batch = 0
    for _ in range(max_iter):
        order, bound = random.permutation(n_docs), 0.0
        for rows in np.array_split(order, -(-n_docs // batch_size)):
            own, labels = X[rows], Y[rows]
            inference = course.topics.infer(own, labels)
            bound += inference.bounds.sum()
            step, batch = (batch + SOFTENING) ** -FORGETTING if batch else 1.0, batch + 1
            said = inference.word_counts(WordIndex(own)) * (n_docs / rows.size)
            counts = counts + step * (said - counts)
            log_sums = log_sums + step * (inference.log_shares() - log_sums)
            share_sums = share_sums + step * (inference.topic_shares() - share_sums)
            label_docs = label_docs + step * (labels.getnnz(axis=0) - label_docs)
            means = means_of(log_sums, label_docs)
            course.topics = Topics(
                fit_dirichlets(course.topics.alpha, label_docs, means, n_steps=1),
                _normalised(counts.copy(), smoothing),
            )
        log_beta = _log_beta(course.topics.beta)
        course.elbo.append(float(bound + smoothing * log_beta))
    course.label_topics = means_of(share_sums, label_docs)
    return course


def means_of(sums, docs):
    """Return sums over the documents of each label as means; 0 without documents."""
    return sums / np.where(docs > 0, docs, 1.0)[:, None]


def _log_beta(beta):
    """Return the sum of logarithms, of some rows at a time."""
    step = max(1, ROOM // beta.shape[1])
    starts = range(0, beta.shape[0], step)
    return sum(np.log(beta[k : k + step], dtype=np.float64).sum() for k in starts)


def _normalised(counts, smoothing):
    """Return word-major counts, which are overwritten, as a distribution for each topic."""
    counts += smoothing
    counts /= counts.sum(axis=0)
    return np.maximum(counts.astype(np.float32), np.finfo(np.float32).tiny)


def warn_of(course: Course, max_iter: int) -> None:
    """Tell that EM has not come to an end."""
    if not course.converged:
        warnings.warn(
            f"CoL stopped after max_iter == {max_iter} steps, the last of which raised the bound "
            f"by {course.elbo[-1] - course.elbo[-2]:.3g} to {course.elbo[-1]:.6g}; raise max_iter "
            "or tol.",
            ConvergenceWarning,
            stacklevel=4,
        )
