"""Slow twins of maximal margin labeling: the equations of Kazawa et al., and of its kernels."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy import optimize


def dice(a, b):
    """Return Eq. (9); the empty set is like no set."""
    return 2 * len(a & b) / ((len(a) + len(b)) or 1)


def cosine(a, b):
    """Return Eq. (10); the empty set is like no set."""
    return len(a & b) / np.sqrt(len(a) * len(b)) if a and b else 0.0


def identity(a, b):
    """Return the similarity of orthonormal classes, Eqs. (2) and (3)."""
    return float(a == b)


SIMILARITIES = {"dice": dice, "cosine": cosine, "identity": identity}


def cosine_of_rows(x, z):
    """Return the kernel of two documents that the paper uses, 0 for one without words."""
    return x @ z / (np.linalg.norm(x) * np.linalg.norm(z) or 1.0)


def gaussian(x, z):
    """Return the Gaussian kernel of two documents."""
    return np.exp(-((x - z) ** 2).sum() / 2)


def label_sets(n_labels, *, empty=False):
    """Return all label sets, smaller ones first, then in the order of their labels."""
    return [
        frozenset(labels)
        for size in range(0 if empty else 1, n_labels + 1)
        for labels in combinations(range(n_labels), size)
    ]


def neighbours(own, n_labels, *, empty):
    """Return the label sets with one label more or less."""
    sets = [own ^ {label} for label in range(n_labels)]
    return [labels for labels in sets if labels or empty]


def own_sets(Y):
    """Return each document's label set."""
    return [frozenset(np.flatnonzero(y).tolist()) for y in Y]


@dataclass
class Problem:
    """The dual problem, Eq. (7), over pairs of a document and a label set to keep it apart from.

    With ``goal="f"`` the margin is not divided by the distance of the sets, 1 - Dice is required of
    it, and the dual variables of a document share the limit ``C``.
    """

    X: np.ndarray
    own: list
    pairs: list
    similarity: str | Callable = "dice"
    goal: str = "exact"
    C: float = 1.0
    kernel: Callable = cosine_of_rows

    def __post_init__(self):
        self.docs = np.array([doc for doc, _ in self.pairs], dtype=int)

    @classmethod
    def over_neighbours(cls, X, Y, similarity, C, empty=None, **settings):
        """Return the paper's approximation, section 4.1."""
        own, empty = own_sets(Y), similarity == "cosine" if empty is None else empty
        pairs = [
            (doc, other)
            for doc, labels in enumerate(own)
            for other in neighbours(labels, Y.shape[1], empty=empty)
        ]
        return cls(X, own, pairs, similarity, "exact", C, **settings)

    @classmethod
    def over_all(cls, X, Y, similarity, goal, C, empty=None, **settings):
        """Return the problem over all label sets."""
        empty = similarity == "cosine" if empty is None else empty
        own, sets = own_sets(Y), label_sets(Y.shape[1], empty=empty)
        pairs = [(d, other) for d, labels in enumerate(own) for other in sets if other != labels]
        return cls(X, own, pairs, similarity, goal, C, **settings)

    def S(self, a, b):  # noqa: N802
        """Return the similarity of two label sets."""
        similarity = self.similarity
        return similarity(a, b) if callable(similarity) else SIMILARITIES[similarity](a, b)

    def scale(self, a, b):
        """Return what divides the margin between two sets."""
        if self.goal == "f":
            return 1.0
        return np.sqrt(self.S(a, a) + self.S(b, b) - 2 * self.S(a, b))

    def needed(self):
        """Return the margin that is required of each pair."""
        if self.goal == "exact":
            return np.ones(len(self.pairs))
        return np.array([1 - dice(self.own[doc], other) for doc, other in self.pairs])

    @cached_property
    def Q(self):  # noqa: N802
        """Return the matrix of Eq. (7)."""
        S, Q = self.S, np.empty((len(self.pairs), len(self.pairs)))
        for r, (i, a) in enumerate(self.pairs):
            for c, (k, b) in enumerate(self.pairs[: r + 1]):
                own, other = self.own[i], self.own[k]
                Q[r, c] = Q[c, r] = (
                    self.kernel(self.X[i], self.X[k])
                    * (S(own, other) - S(own, b) - S(a, other) + S(a, b))
                    / (self.scale(own, a) * self.scale(other, b))
                )
        return Q

    def objective(self, alpha):
        """Return the dual objective."""
        return float(self.needed() @ alpha - alpha @ self.Q @ alpha / 2)

    def loss(self, slopes):
        """Return what violated margins cost: one slack a pair, or one a document."""
        if self.goal == "exact":
            return self.C * np.maximum(slopes, 0).sum()
        return self.C * sum(max(0.0, slopes[self.docs == d].max()) for d in set(self.docs))

    def nearest(self, alpha):
        """Return the nearest dual variables that are allowed."""
        if self.goal == "exact":
            return np.clip(alpha, 0, self.C)
        alpha = np.maximum(alpha, 0)
        for doc in set(self.docs):
            mine = alpha[self.docs == doc]
            if mine.sum() > self.C:
                falling = np.sort(mine)[::-1]
                excess = (np.cumsum(falling) - self.C) / np.arange(1, mine.size + 1)
                alpha[self.docs == doc] = np.maximum(mine - excess[falling > excess][-1], 0)
        return alpha

    def solve(self, tol=1e-9, max_iter=50_000):
        """Return the best dual variables, by accelerated ascent until primal and dual agree."""
        Q, needed = self.Q, self.needed()
        step = 1 / np.linalg.eigvalsh(Q)[-1]
        alpha = ahead = np.zeros(len(self.pairs))
        momentum = 1.0
        for turn in range(max_iter):
            new = self.nearest(ahead + step * (needed - Q @ ahead))
            if (ahead - new) @ (new - alpha) > 0:
                momentum = 1.0
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead = new + (momentum - 1) / following * (new - alpha)
            alpha, momentum = new, following
            if turn % 20 == 0:
                slopes = needed - Q @ alpha
                dual = needed @ alpha - alpha @ Q @ alpha / 2
                if self.loss(slopes) - alpha @ slopes <= tol * dual:
                    return alpha
        raise AssertionError("the twin did not converge")

    def solve_generally(self):
        """Return the best dual variables by SciPy's methods for any smooth problem with bounds.

        The first comes near the optimum whatever the problem, the second is precise there.
        """
        n = len(self.pairs)
        problem = {
            "fun": lambda alpha: (alpha @ self.Q @ alpha / 2 - alpha.sum(), self.Q @ alpha - 1),
            "jac": True,
            "bounds": optimize.Bounds(np.zeros(n), np.full(n, self.C)),
        }
        near = optimize.minimize(
            **problem,
            x0=np.full(n, self.C / 2),
            method="trust-constr",
            hess=lambda _: self.Q,
            options={"gtol": 1e-10, "xtol": 1e-12, "barrier_tol": 1e-11, "maxiter": 2000},
        )
        best = optimize.minimize(
            **problem,
            x0=np.clip(near.x, 0, self.C),
            method="L-BFGS-B",
            options={"ftol": 0.0, "gtol": 1e-10, "maxiter": 10_000, "maxfun": 20_000, "maxcor": 50},
        )
        return best.x

    def scores(self, alpha, X, sets):
        """Return the score of each label set for documents: what Eq. (8) maximizes."""
        scores = np.zeros((len(X), len(sets)))
        for value, (doc, other) in zip(alpha, self.pairs, strict=True):
            own = self.own[doc]
            gains = [self.S(own, labels) - self.S(other, labels) for labels in sets]
            near = [self.kernel(x, self.X[doc]) for x in X]
            scores += value * np.outer(near, gains) / self.scale(own, other)
        return scores

    def label_scores(self, alpha, x, size, n_labels):
        """Return Eq. (13): the score of each label in a set of this size."""
        scores = np.zeros(n_labels)
        for value, (doc, other) in zip(alpha, self.pairs, strict=True):
            weight = value * self.kernel(x, self.X[doc])
            weight /= self.scale(self.own[doc], other)
            for sign, labels in ((1, self.own[doc]), (-1, other)):
                for label in labels:
                    if self.similarity == "dice":
                        scores[label] += sign * weight * 2 / (len(labels) + size)
                    else:
                        scores[label] += sign * weight / np.sqrt(len(labels) * size)
        return scores

    def classify(self, alpha, x, n_labels):
        """Return Eqs. (11) and (12): the best label set by the best of each size."""
        best, answer = -np.inf, None
        for size in range(1, n_labels + 1):
            scores = self.label_scores(alpha, x, size, n_labels)
            top = np.argsort(-scores, kind="stable")[:size]
            if scores[top].sum() > best:
                best, answer = scores[top].sum(), frozenset(top.tolist())
        return answer

    def primal(self, alpha, n_labels):
        """Return the primal objective of the weights over all label sets, of ``goal="f"``."""
        sets = label_sets(n_labels, empty=self.similarity == "cosine")
        scores = self.scores(alpha, self.X, sets)
        total = alpha @ self.Q @ alpha / 2
        for own, row in zip(self.own, scores, strict=True):
            base = row[sets.index(own)]
            total += self.C * max(
                0.0 if labels == own else 1 - dice(own, labels) - (base - score)
                for labels, score in zip(sets, row, strict=True)
            )
        return total


def stored_problem(model, X, Y):
    """Return the problem over a fitted model's own dual variables, and these."""
    ascent, pairs, alpha = model._ascent, [], []
    for chunk, stored in zip(ascent.chunks, ascent.duals, strict=True):
        for place, doc in enumerate(model._used[chunk].tolist()):
            own = frozenset(np.flatnonzero(Y[doc]).tolist())
            for s in range(stored.start[place], stored.start[place + 1]):
                if model.labels == "neighbours":
                    other = own ^ {int(model._columns[stored.label[s]])}
                else:
                    labels = stored.label[stored.first[s] : stored.first[s + 1]]
                    other = frozenset(model._columns[labels].tolist())
                pairs.append((doc, other))
                alpha.append(stored.value[s])
    goal = "exact" if model.labels == "neighbours" else model.goal
    problem = Problem(np.asarray(X, float), own_sets(Y), pairs, model.similarity, goal, model.C)
    return problem, np.array(alpha)


def corpus(n_docs=6, n_words=6, n_labels=4, seed=0):
    """Return weights of words and an indicator with no empty row, and more documents."""
    rng = np.random.default_rng(seed)
    topics = rng.gamma(0.4, size=(n_labels, n_words))
    Y = (rng.random((2 * n_docs, n_labels)) < 0.3).astype(int)
    Y[np.arange(2 * n_docs), rng.integers(0, n_labels, 2 * n_docs)] = 1
    X = np.round(
        Y @ topics / Y.sum(axis=1, keepdims=True) + rng.gamma(0.3, size=(2 * n_docs, n_words)), 3
    )
    X[:, 0] += 0.1
    return X[:n_docs], Y[:n_docs], X[n_docs:]


# Twins of the kernels for search, over all label sets


def indicator_of(sets, n_labels):
    """Return an indicator of label sets."""
    return np.array([[label in labels for label in range(n_labels)] for labels in sets])


def set_scores(Z, vectors, members):
    """Return the score of each set of an indicator: the sum of its labels' scores at its size."""
    vectors = vectors[members.sum(axis=1)].astype(float)
    return np.einsum("sq,qj,sj->s", vectors, Z.astype(float), members.astype(float))


def violations(goal, vectors, own, sets, scores):
    """Return how much each set violates the margin of a document's own set, -inf for that."""
    base = scores[sets.index(own)]
    values = np.full(len(sets), -np.inf)
    for k, other in enumerate(sets):
        if other != own:
            margin, scale = required_margin(goal, vectors, own, other)
            values[k] = margin - (base - scores[k]) / scale
    return values


def required_margin(goal, vectors, own, other):
    """Return the margin between two sets, and the scale: one of them is 1."""
    if goal == "f":
        return 1 - dice(own, other), 1.0
    return 1.0, np.sqrt(distance(vectors, len(own), len(other), len(own & other)))


def distance(vectors, a, b, n_common):
    """Return the squared distance between the embeddings of two sets with a and b labels."""
    u, v = vectors[a].astype(float), vectors[b].astype(float)
    return a * u @ u + b * v @ v - 2 * n_common * u @ v


def highest_merit(goal, Z, vectors, own):
    """Return the highest merit of all sets but the own one, by sorting labels for each size.

    ``goal`` is "f", "exact" or "score".
    """
    scores, n_labels = vectors.astype(float) @ Z.astype(float), Z.shape[1]
    others = np.setdiff1d(np.arange(n_labels), own)
    base, a, merits = scores[len(own), own].sum(), len(own), [-np.inf]
    for b, row in enumerate(scores[1:], start=1):
        inside, outside = (np.cumsum([0, *np.sort(-row[k])]) for k in (own, others))
        for n_common in range(max(b - others.size, 0), min(a, b) + 1):
            score = -inside[n_common] - outside[b - n_common]
            if goal == "score":
                merits.append(score)
            elif not n_common == a == b:
                scale = np.sqrt(distance(vectors, a, b, n_common)) if goal == "exact" else 1.0
                margin = 1.0 if goal == "exact" else 1 - 2 * n_common / (a + b)
                merits.append(margin - (base - score) / scale)
    return max(merits)


def best_sets(scores):
    """Return the score of the best set, given those of all sets."""
    return scores.max()


def n_best_sets(scores, n_best):
    """Return the scores of the best sets, best first."""
    return np.sort(scores)[::-1][:n_best]


def best_with(scores, members, label):
    """Return the score of the best set that contains a label."""
    return scores[members[:, label]].max()


def margins(scores, members):
    """Return the score of the best set with each label minus that of the best without it."""
    inside = [scores[members[:, j]].max() for j in range(members.shape[1])]
    outside = [scores[~members[:, j]].max(initial=-np.inf) for j in range(members.shape[1])]
    return np.array(inside) - np.array(outside)


def leads(scores):
    """Return the highest of a document's scores minus the second, ``inf`` if there is only one."""
    best, second = np.sort([*scores, -np.inf])[::-1][:2]
    return best - second


def project_rows(X, weights):
    """Return the scores of documents, (n_docs, rank, n_labels)."""
    return np.einsum("dw,wqj->dqj", X, weights)


# Twins of the kernels for training, with dense weights (n_words, rank * n_labels)


def embed(labels, vectors, n_labels):
    """Return the embedding of a label set: the sum of e_j ⊗ u_n over its labels, flat."""
    phi = np.zeros((vectors.shape[1], n_labels))
    phi[:, list(labels)] = vectors[len(labels)][:, None]
    return phi.ravel()


def direction(goal, vectors, n_labels, own, other):
    """Return what a unit of a dual variable adds to the weights, by the document's words."""
    _, scale = required_margin(goal, vectors, own, other)
    return (embed(own, vectors, n_labels) - embed(other, vectors, n_labels)) / scale


def start_weights(x, own, alpha, goal, vectors, n_labels, W):
    """Add to the weights what the dual variables {set: value} of a document contribute."""
    for other, value in alpha.items():
        W += value * np.outer(x, direction(goal, vectors, n_labels, own, other))


def ascend_neighbours(x, own, alpha, vectors, C, W, *, empty):
    """Visit a document: a step for each set with one label more, then with one less.

    Return the document's part of the gap before, and of the linear term.
    """
    n_labels, gap = W.shape[1] // vectors.shape[1], 0.0
    larger = [own | {label} for label in range(n_labels) if label not in own]
    smaller = [own - {label} for label in sorted(own)]
    for other in larger + [labels for labels in smaller if labels or empty]:
        delta = direction("exact", vectors, n_labels, own, other)
        slope, before = 1 - x @ W @ delta, alpha.get(other, 0.0)
        gap += C * max(slope, 0.0) - before * slope
        alpha[other] = np.clip(before + slope, 0, C)
        W += (alpha[other] - before) * np.outer(x, delta)
    return gap, sum(alpha.values())


def ascend_sets(x, own, alpha, goal, vectors, sets, C, tol, W):
    """Visit a document: add the most violated of all sets, then make passes over the working set.

    Return the document's part of the gap before, the violation of a new set, and the linear term.
    """
    n_labels, enough, shared = W.shape[1] // vectors.shape[1], 0.1 * tol, goal == "f"
    others = [labels for labels in sets if labels != own]
    delta = {s: direction(goal, vectors, n_labels, own, s) for s in others}
    need = {s: required_margin(goal, vectors, own, s)[0] for s in others}

    def slope(s):
        return need[s] - x @ W @ delta[s]

    def move(s, step):
        alpha[s] += step
        W[:] += step * np.outer(x, delta[s])

    worst, missed = max(others, key=slope), 0.0
    violation = max(slope(worst), 0.0)
    if worst not in alpha and violation > enough:
        alpha[worst], missed = 0.0, violation
    gap = -sum(value * slope(s) for s, value in alpha.items())
    gap += C * (violation if shared else sum(max(slope(s), 0.0) for s in alpha))
    for _ in range(12 if alpha else 0):
        largest = 0.0
        for s in alpha:
            limit = C - sum(alpha.values()) + alpha[s] if shared else C
            now = slope(s)
            after = min(max(alpha[s] + now / (delta[s] @ delta[s]), 0.0), limit)
            least = min((t for t in alpha if t != s and alpha[t] > 0), key=slope, default=None)
            if after != alpha[s]:
                move(s, after - alpha[s])
                largest = max(largest, abs(now))
            elif shared and now > 0 and least is not None and slope(least) < now:
                apart = delta[s] - delta[least]
                step = min((now - slope(least)) / (apart @ apart), alpha[least])
                largest = max(largest, now - slope(least))
                move(s, step)
                move(least, -step)
        if largest <= enough:
            break
    linear, is_visited = sum(value * need[s] for s, value in alpha.items()), bool(alpha)
    for s in [s for s, value in alpha.items() if value <= 0]:
        del alpha[s]
    return gap if is_visited else 0.0, missed, linear
