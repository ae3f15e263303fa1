"""Documents that topics are learned from; elsewhere they may be in parts, with the same sums."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from polytopic.models.label_training import distinct_sets
from polytopic.models.topic_training import (
    Course,
    learn_in_turns,
    learn_stepwise,
    start_topics,
)


class TopicDocuments:
    """Word counts of documents and the indicator of their labels, all of them labelled.

    Parameters
    ----------
    X : csr_matrix of shape (n_docs, n_words)
        Word counts.
    Y : csr_matrix of shape (n_docs, n_labels)
        Labels.
    """

    def __init__(self, X: sparse.csr_matrix, Y: sparse.csr_matrix):
        self.X, self.Y = X, Y

    @property
    def label_docs(self) -> np.ndarray:
        """Documents of each label."""
        return self.Y.getnnz(axis=0)

    def known(self) -> np.ndarray:
        """Return the places of documents that have words."""
        return np.flatnonzero(self.X.getnnz(axis=1))

    def rows(self, places):
        """Return some documents: their word counts and labels."""
        return self.X[places], self.Y[places]

    def part(self, places) -> TopicDocuments:
        """Return these documents alone."""
        return TopicDocuments(*self.rows(places))

    def over(self, columns) -> TopicDocuments:
        """Return the documents with these labels, in this order."""
        return TopicDocuments(self.X, self.Y[:, columns].sorted_indices())

    def label_sums(self, first: int = 0) -> np.ndarray:
        """Return sums over the documents of each label that tell labels apart.

        They are documents, words, numbers of labels, and random numbers of documents, of which
        the first is at this place.
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
        """Return how often each word occurs."""
        return self.X.sum(axis=0).A1

    def sets(self):
        """Return the label sets that occur, and how often each does."""
        return distinct_sets(self.Y)

    def start(self, n_topics: int, random):
        """Return topics to start from."""
        sums = label_words(self.X, self.Y)
        return start_topics(
            sums, self.label_docs, self.word_sums(), n_topics, random, self._members
        )

    def _members(self, labels, places):
        """Return the word counts of documents by their labels, and places among those of them."""
        return members(self.X, self.Y, labels, places)

    def learn(self, topics, *, smoothing, max_iter, tol) -> Course:
        """Learn from all documents at once."""
        return learn_in_turns(
            self.X, self.Y, topics, smoothing=smoothing, max_iter=max_iter, tol=tol
        )

    def learn_stepwise(self, topics, *, smoothing, max_iter, batch_size, random) -> Course:
        """Learn by batches."""
        how = {"smoothing": smoothing, "max_iter": max_iter, "batch_size": batch_size}
        return learn_stepwise(self.X, self.Y, topics, random=random, **how)


def label_words(X, Y) -> sparse.csr_matrix:
    """Return the words of each label's documents, which count one label each in the mean."""
    weights = sparse.diags(1.0 / np.maximum(Y.getnnz(axis=1), 1)) @ Y
    return (weights.T @ X).tocsr()


def members(X, Y, labels, places) -> sparse.csr_matrix:
    """Return the word counts of documents by their labels, and places among those of them."""
    by_label = Y.tocsc()
    by_label.sort_indices()
    return X[by_label.indices[by_label.indptr[labels] + places]]
