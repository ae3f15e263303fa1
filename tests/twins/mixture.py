"""Slow, obvious twins of the kernels of naive Bayes and of the mixtures."""

import numpy as np


def log_likelihood(x, theta, labels):
    """Return a document's log likelihood under the equal mixture of its labels."""
    return float(x @ np.log(theta[list(labels)].mean(axis=0)))


def greedy_set(x, theta, allowed):
    """Return the label set that the paper's greedy search finds."""
    chosen = []
    best = -np.inf
    while True:
        gains = {
            label: log_likelihood(x, theta, [*chosen, label])
            for label in range(len(theta))
            if allowed[label] and label not in chosen
        }
        if not gains:
            return chosen
        label = max(gains, key=lambda c: (gains[c], -c))
        if not gains[label] > best + 1e-9 * (1 + abs(best) if chosen else 0):
            return chosen
        chosen.append(label)
        best = gains[label]


def word_shares(x, theta, labels):
    """Return {(word, label): share} of a document."""
    shares = {}
    for word in np.flatnonzero(x):
        mass = sum(theta[label, word] for label in labels)
        shares.update({(word, label): theta[label, word] / mass for label in labels})
    return shares


def em_objective(X, Y, theta, smoothing):
    """Return J of Ueda & Saito, Eq. (6), document by document."""
    total = smoothing * np.log(theta).sum()
    for x, y in zip(X, Y, strict=True):
        if y.any():
            total += log_likelihood(x, theta, np.flatnonzero(y))
    return total


def em_step(X, Y, theta, smoothing):
    """Take one EM step over the documents, Eq. (18) and (21)."""
    counts = np.full(theta.shape, float(smoothing))
    for x, y in zip(X, Y, strict=True):
        labels = np.flatnonzero(y)
        for word in np.flatnonzero(x):
            mass = theta[labels, word].sum()
            for label in labels:
                counts[label, word] += x[word] * theta[label, word] / mass
    return counts / counts.sum(axis=1, keepdims=True)
