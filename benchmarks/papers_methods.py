"""The methods of Kazawa et al. on web pages, with variants for what the paper leaves open.

Each function learns from counts and indicators, and returns predictions for test pages by variant.
A method has several if the paper leaves something open, such as what to predict if no label
passes.
"""

import numpy as np
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from polytopic import MML, PMM1, BoosTexter
from polytopic.text import TermWeights

ROUNDS = 8000  # of BoosTexter, as its users chose
COSTS = {"tf": ((1, 1), (10, 1), (1, 5), (1, "balanced")), "tfidf": ((1, 1), (1, "balanced"))}


def two_ways(name, scores, threshold=0.0):
    """Return the labels above a threshold, and the same with the best label where there is none."""
    sets = scores > threshold
    best = sets.copy()
    bare = np.flatnonzero(~sets.any(axis=1))
    best[bare, scores[bare].argmax(axis=1)] = True
    return {name: sets, f"{name}, or best": best}


def by_label(fit, Y, n_test):
    """Return the scores of one classifier for each label that some documents have, but not all."""
    scores = np.full((n_test, Y.shape[1]), -np.inf)
    for label in np.flatnonzero(Y.any(axis=0) & ~Y.all(axis=0)):
        scores[:, label] = fit(Y[:, label])
    return scores


def weigh(X, X_test, scheme):
    """Return weights of words in rows of unit length."""
    known = X.getnnz(axis=0) > 0
    weights = TermWeights(scheme, unit_length=True).fit(X[:, known])
    return weights.transform(X[:, known]), weights.transform(X_test[:, known])


def pmm1(X, Y, X_test, Y_test):
    """Answer by PMM1."""
    model = PMM1(smoothing=1.0, prior="uniform", decode="greedy")
    return {"PMM1": model.fit(X, Y).predict(X_test)}


def dice(X, Y, X_test, Y_test):
    """Answer by maximal margin labeling with Dice."""
    answers = {}
    for scheme in ("tf", "tfidf"):
        train, test = weigh(X, X_test, scheme)
        answers[scheme] = MML(labels="neighbours").fit(train, Y).predict(test)
    return answers


def cosine(X, Y, X_test, Y_test):
    """Answer by maximal margin labeling with cosine, by what the empty set is.

    It is at the origin, so it is best where every label alone scores below 0.
    """
    answers = {}
    for scheme in ("tf", "tfidf"):
        train, test = weigh(X, X_test, scheme)
        for empty in ("neighbour", "both", "out", "answer"):
            answers[f"{scheme}, {empty}"] = _by_cosine(train, Y, test, empty=empty)
    return answers


def cosine_near(X, Y, X_test, Y_test):
    """Answer as the last of those, with settings near the paper's: how much hangs on them."""
    train, test = weigh(X, X_test, "tfidf")
    answers = {}
    for name, settings in (("C 2", {"C": 2.0}), ("tol .001", {"tol": 0.001, "max_iter": 1000})):
        answers[name] = _by_cosine(train, Y, test, **settings)
    for name, power in (("idf to 1.5", 1.5), ("idf to .5", 0.5)):
        idf = np.log(X.shape[0] / np.maximum(X.getnnz(axis=0), 1)) * (X.getnnz(axis=0) > 0)
        train, test = (normalize(part.multiply(idf**power).tocsr()) for part in (X, X_test))
        answers[name] = _by_cosine(train, Y, test)
    return answers


def _by_cosine(X, Y, X_test, empty="answer", **settings):
    model = MML(labels="neighbours", similarity="cosine", empty=empty, **settings)
    return model.fit(X, Y).predict(X_test)


def margins(X, Y, X_test, Y_test):
    """Answer by one SVM for each label, in rows of unit length, by weights of words, C and J."""
    answers = {}
    for scheme, pairs in COSTS.items():
        for (C, J), scores in zip(pairs, svms(*weigh(X, X_test, scheme), Y, pairs), strict=True):
            answers |= two_ways(f"{scheme}, C {C:g}, J {J}", scores)
    return answers


def svms(X, X_test, Y, pairs):
    """Return the margins of one linear SVM for each label, by C and J.

    A positive page that is wrong costs C times J, a negative one C. Where J is "balanced" they cost
    C times N / 2P and N / 2(N - P), with P of N pages positive.
    """
    own, other = (X @ X.T).toarray(), (X_test @ X.T).toarray()

    def fit(y, C, J):
        weights = J if J == "balanced" else {1: J}
        return SVC(C=C, kernel="precomputed", class_weight=weights).fit(own, y)

    return [
        by_label(lambda y, C=C, J=J: fit(y, C, J).decision_function(other), Y, X_test.shape[0])
        for C, J in pairs
    ]


def rules(X, Y, X_test, Y_test):
    """Answer by BoosTexter."""
    answers = {}
    model = BoosTexter(ROUNDS).fit(X, Y)
    answers["or best"] = model.predict(X_test)
    answers["above 0"] = model.set_params(best_if_none=False).predict(X_test)
    return answers
