"""Slow twins of the kernels of linear support vector machines; X and Y are dense."""

import numpy as np


def descend(X, Y, order, slack, alpha, W, bias):
    """Minimize the dual over the variables of each document in turn."""
    alpha, W, bias = alpha.copy(), W.copy(), bias.copy()
    for d in order:
        for label in range(Y.shape[1]):
            y, s = (1.0, slack[1, label]) if Y[d, label] else (-1.0, slack[0, label])
            gradient = y * (X[d] @ W[:, label] + bias[label]) - 1 + s * alpha[d, label]
            after = max(0.0, alpha[d, label] - gradient / (X[d] @ X[d] + 1 + s))
            step = y * (after - alpha[d, label])
            W[:, label] += step * X[d]
            bias[label] += step
            alpha[d, label] = after
    return alpha, W, bias


def dual(Y, slack, alpha, W, bias):
    """Return the dual objective of all labels, which is minimized."""
    costs = np.where(Y > 0, slack[1], slack[0])
    return ((W**2).sum() + (bias**2).sum() + (costs * alpha**2).sum()) / 2 - alpha.sum()


def score_rows(X, W, bias):
    """Return the scores of documents."""
    return X @ W + bias
