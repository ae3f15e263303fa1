"""The methods of the papers on web pages, with variants for what the papers leave open.

Each function learns from counts and indicators, and returns predictions for test pages by variant.
A method has several if its paper leaves something open, such as what to predict if no label
passes.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.naive_bayes import MultinomialNB
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from polytopic import MML, PMM1, PMM2, BoosTexter
from polytopic.experiments.baselines import CosineNeighbours
from polytopic.text import TermWeights

ROUNDS = 8000  # of BoosTexter, as its users chose
NEIGHBOURS = (1, 3, 5, 10, 20, 30)
DECAYS = (("unit", 1e-5), ("unit", 3e-4), ("counts", 1e-5))  # of squared weights, by rows
UNITS, STEPS = 50, 60  # of the network, and of L-BFGS
COSTS = {"tf": ((1, 1), (10, 1), (1, 5), (1, "balanced")), "tfidf": ((1, 1), (1, "balanced"))}
GRID = ((100, 1), (10, 2), (10, 5), (10, 10), (30, 5), (100, 5), (1000, 1))  # C and J


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


# Both papers


def pmm1(X, Y, X_test, Y_test):
    """Answer by PMM1."""
    return {"PMM1": _mixture(PMM1, X, Y, X_test)}


def pmm2(X, Y, X_test, Y_test):
    """Answer by PMM2."""
    return {"PMM2": _mixture(PMM2, X, Y, X_test)}


def _mixture(make, X, Y, X_test):
    return make(smoothing=1.0, prior="uniform", decode="greedy").fit(X, Y).predict(X_test)


# Kazawa et al.


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


# Ueda and Saito


def bayes(X, Y, X_test, Y_test):
    """Answer by one naive Bayes for each label, smoothed over all words or those learned from."""
    known = X.getnnz(axis=0) > 0

    def scored(words):
        def fit(y):
            found = MultinomialNB().fit(X[:, words], y).predict_log_proba(X_test[:, words])
            return found[:, 1] - found[:, 0]

        return by_label(fit, Y, X_test.shape[0])

    every = np.ones_like(known)
    return two_ways("all words", scored(every)) | two_ways("known words", scored(known))


def neighbours(X, Y, X_test, Y_test):
    """Answer by more than half of the votes of nearest neighbours, which weigh their cosine."""
    answers = {}
    for k in NEIGHBOURS:
        answers |= two_ways(f"k {k}", CosineNeighbours(k).fit(X, Y).proba(X_test), 0.5)
    return answers


def costs(X, Y, X_test, Y_test):
    """Answer by one SVM for each label, with C and J chosen for each by pages, words sum to 1."""
    rows, tests = normalize(X, norm="l1"), normalize(X_test, norm="l1")
    n_held = X.shape[0] // 3
    held, rest = slice(0, n_held), slice(n_held, None)
    scores = svms(rows, tests, Y, GRID)
    tried = svms(rows[rest], rows[held], Y[rest], GRID)
    answers = {}
    for (C, J), found in zip(GRID, scores, strict=True):
        answers |= two_ways(f"C {C:g}, J {J:g}", found)
    for name, by, truth in (("by test", scores, Y_test), ("held out", tried, Y[held])):
        best = np.argmax([_label_f(truth, found > 0) for found in by], axis=0)
        answers |= two_ways(name, np.choose(best, scores))
    return answers


def _label_f(Y, sets):
    """Return the F-measure of each label."""
    return 2 * (Y * sets).sum(axis=0) / np.maximum(Y.sum(axis=0) + sets.sum(axis=0), 1)


def network(X, Y, X_test, Y_test):
    """Answer by networks with 50 hidden units, by weight decay; counts, or rows of unit length."""
    known = X.getnnz(axis=0) > 0
    answers = {}
    for kind, decay in DECAYS:
        train, test = (part[:, known].astype(float) for part in (X, X_test))
        if kind == "unit":
            train, test = normalize(train), normalize(test)
        proba = Network(decay).fit(train, Y).proba(test)
        answers |= two_ways(f"{kind}, decay {decay:g}", proba, 0.5)
    return answers


class Network:
    """One layer of tanh units and one of logistic ones: cross entropy and squared weights.

    All documents at once, by L-BFGS.
    """

    def __init__(self, decay, n_units=UNITS, n_steps=STEPS, seed=0):
        self.decay, self.n_units, self.n_steps, self.seed = decay, n_units, n_steps, seed

    def fit(self, X, Y):
        """Minimize the mean cross entropy of documents and half the squared weights."""
        random = np.random.default_rng(self.seed)
        self._shapes = [(X.shape[1], self.n_units), (self.n_units,)]
        self._shapes += [(self.n_units, Y.shape[1]), (Y.shape[1],)]
        start = [random.normal(scale=0.1, size=shape) for shape in self._shapes]
        start[3][:] = -2.0  # most documents lack a label
        flat = np.concatenate([part.ravel() for part in start])
        settings = {"maxiter": self.n_steps, "maxcor": 5}
        self._flat = minimize(
            self._loss, flat, (X, X.T.tocsr(), Y), method="L-BFGS-B", jac=True, options=settings
        ).x
        return self

    def _parts(self, flat):
        ends = np.cumsum([np.prod(shape) for shape in self._shapes])
        pieces = np.split(flat, ends[:-1])
        return [p.reshape(shape) for p, shape in zip(pieces, self._shapes, strict=True)]

    def _loss(self, flat, X, turned, Y):
        inner, inner_bias, outer, outer_bias = self._parts(flat)
        hidden = np.tanh(X @ inner + inner_bias)
        scores = hidden @ outer + outer_bias
        loss = (np.logaddexp(0, scores) - Y * scores).sum() / len(Y)
        wrong = (expit(scores) - Y) / len(Y)
        back = wrong @ outer.T * (1 - hidden**2)
        slopes = [turned @ back, back.sum(axis=0), hidden.T @ wrong, wrong.sum(axis=0)]
        for part, slope in ((inner, slopes[0]), (outer, slopes[2])):
            loss += self.decay / 2 * (part**2).sum()
            slope += self.decay * part
        return loss, np.concatenate([slope.ravel() for slope in slopes])

    def proba(self, X):
        """Return the probability of each label."""
        inner, inner_bias, outer, outer_bias = self._parts(self._flat)
        return expit(np.tanh(X @ inner + inner_bias) @ outer + outer_bias)
