"""PDMM's greedy search compared with the direct algorithm of its paper, also compiled.

The direct algorithm tries every label at each step, and runs variational Bayes from equal weights
until nothing changes, as in Sato & Nakagawa, sections 4.3 and 4.5; on distinct words, scored by the
bound. Both run on one thread and must give the same answers. Each repeat runs all;
ratios are paired by repeat, with their range.
"""

import os
import sys

os.environ["POLYTOPIC_NUM_THREADS"] = "1"

import math

import numpy as np
from common import markdown, split_counts, time_calls
from numba import njit

from polytopic import PDMM
from polytopic.kernels.special import digamma

REPEATS = 7


@njit
def bound_of(x, words, theta, labels, tolerance):
    """Return the lower bound of the evidence of a label set, by plain steps of Eq. (29), (30)."""
    k, n = labels.size, x.sum()
    gamma = np.full(k, 1.0 + n / k)
    phi = np.empty(k)
    while True:
        after = np.ones(k)
        center = digamma(gamma.sum())
        exponents = np.array([np.exp(digamma(g) - center) for g in gamma])
        bound = math.lgamma(k) - math.lgamma(gamma.sum())
        for j in range(k):
            bound += math.lgamma(gamma[j]) + (1.0 - gamma[j]) * (digamma(gamma[j]) - center)
        for i in range(x.size):
            total = 0.0
            for j in range(k):
                phi[j] = theta[words[i], labels[j]] * exponents[j]
                total += phi[j]
            bound += x[i] * np.log(total)
            for j in range(k):
                after[j] += x[i] * phi[j] / total
        if np.abs(after - gamma).max() < tolerance * (n + k):
            return bound
        gamma = after


@njit
def direct(data, indices, indptr, theta, allowed, tolerance, chosen):
    """Search as the paper does."""
    n_labels = theta.shape[1]
    for d in range(indptr.size - 1):
        x, words = data[indptr[d] : indptr[d + 1]], indices[indptr[d] : indptr[d + 1]]
        best = -np.inf
        while x.size > 0:
            label, top = -1, best
            for candidate in range(n_labels):
                if allowed[candidate] and not chosen[d, candidate]:
                    chosen[d, candidate] = True
                    labels = np.flatnonzero(chosen[d])
                    chosen[d, candidate] = False
                    value = bound_of(x, words, theta, labels, tolerance)
                    if value > top:
                        label, top = candidate, value
            if label < 0:
                break
            chosen[d, label] = True
            best = top


if __name__ == "__main__":
    n_docs = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    X, Y, X_test, _ = split_counts("reuters21578")
    X_test = X_test[:n_docs]
    model = PDMM(prior="uniform", decode="greedy").fit(X, Y)
    X_float = X_test.astype(np.float64)
    arrays = X_float.data, X_float.indices, X_float.indptr, model._theta, model._seen

    def search(tolerance):
        """Return the answers of the direct algorithm."""
        chosen = np.zeros((n_docs, Y.shape[1]), dtype=np.bool_)
        direct(*arrays, tolerance, chosen)
        return chosen

    calls = {"polytopic.PDMM": lambda: model.predict(X_test) > 0}
    for tolerance in (1e-4, 1e-7):
        calls[f"direct, to {tolerance:g} of the document"] = lambda t=tolerance: search(t)
    search(1e-2)
    model.predict(X_test[:5])
    times, answers = {name: [] for name in calls}, {}
    for _ in range(REPEATS):
        for name, call in calls.items():
            seconds, answers[name] = time_calls(call, 1)[1:]
            times[name].append(seconds)
    ours, *_ = calls
    rows = []
    for name in calls:
        ratios = np.array(times[name]) / times[ours]
        rows.append(
            (
                name,
                f"{np.median(times[name]) / n_docs * 1e3:.3f}",
                f"{np.median(ratios):.1f} ({ratios.min():.1f}–{ratios.max():.1f})",
                f"{(answers[name] == answers[ours]).all(axis=1).mean():.4f}",
            )
        )
    markdown(["algorithm", "ms per document", "times slower", "same answers"], rows)
