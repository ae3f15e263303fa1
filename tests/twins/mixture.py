"""Slow, obvious twins of the kernels of naive Bayes and of the mixtures.

``theta`` is (n_labels, n_words), ``x`` the counts of one document over all words, and ``labels`` a
label set as a sorted sequence of columns. ``problem`` is that of the kernels, whose ``theta`` is
word-major.
"""

from itertools import combinations

import numpy as np
from scipy.special import digamma, gammaln

from polytopic.models.mixture.likelihood_kernels import BOUND

# Words


def add_scores(X, log_theta, out):
    """Return ``out`` plus the log likelihood of each document under each label."""
    return out + X @ log_theta.T


def word_shares(x, theta, labels, weights=None):
    """Return {(word, label): share} of a document, Eq. (18)."""
    weights = dict.fromkeys(labels, 1.0) if weights is None else weights
    shares = {}
    for word in np.flatnonzero(x):
        mass = sum(weights[label] * theta[label, word] for label in labels)
        for label in labels:
            shares[word, label] = weights[label] * theta[label, word] / mass
    return shares


def loo_theta(x, labels, own, counts, smoothing):
    """Return the probabilities of a document's words without its ``own`` counts."""
    words, labels = np.flatnonzero(x), list(labels)
    left = np.maximum(counts[labels].sum(axis=1) - own.sum(axis=0), 0) + smoothing * x.size
    return (np.maximum(counts[labels][:, words].T - own, 0) + smoothing) / left


# EM on the table


def slots(table, Y):
    """Return the (word, label) pairs that share an uncertain entry, in order of appearance."""
    pairs = []
    for word in range(table.shape[1]):
        for row in np.flatnonzero(table[:, word]):
            pairs += [(word, label) for label in np.flatnonzero(Y[row])]
    return list(dict.fromkeys(pairs))


def count_slots(table, Y):
    """Return how many slots each word has."""
    words = [word for word, _ in slots(table, Y)]
    return np.bincount(words, minlength=table.shape[1])


def fill_slots(table, Y):
    """Return the label of each slot, and the slots of each entry, word by word."""
    number = {pair: place for place, pair in enumerate(slots(table, Y))}
    entries = [
        [number[word, label] for label in np.flatnonzero(Y[row])]
        for word in range(table.shape[1])
        for row in np.flatnonzero(table[:, word])
    ]
    return [label for _, label in number], entries


def expected_counts(counts, entries, theta):
    """Return the slots' expected counts and the log likelihood, Eq. (18) and (21)."""
    return biased_counts(counts, entries, [np.ones(len(slots)) for slots in entries], theta)


def biased_counts(counts, entries, weights, theta):
    """Return the slots' expected counts and the log likelihood, Eq. (16)."""
    out, total = np.zeros(theta.size), 0.0
    for count, own, c in zip(counts, entries, weights, strict=True):
        out[own] += count * c * theta[own] / (c @ theta[own])
        total += count * np.log(c @ theta[own])
    return out, total


def bias_weights(labels, bias):
    """Return the weight of each label of a set, Eq. (4) and (5)."""
    return 2 / len(labels) ** 2 * bias[np.ix_(labels, labels)].sum(axis=1)


def bias_counts(label_sets, bias, label_words):
    """Return the sums of Eq. (17), given the words of each label of each set."""
    out = np.zeros(bias.shape)
    for labels, words in zip(label_sets, label_words, strict=True):
        c = bias_weights(labels, bias)
        for j, label in enumerate(labels):
            for other in labels:
                out[label, other] += bias[label, other] * words[j] / (len(labels) ** 2 * c[j])
    return out


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


# Label sets


def log_product(x, values):
    """Return the log of the product of powers."""
    return x @ np.log(values)


def repeat_words(x, words, repeats):
    """Return counts and words of the repeated document."""
    rare = (x <= repeats) & (x == np.floor(x))
    wide = np.concatenate([np.repeat(words[rare], x[rare].astype(int)), words[~rare]])
    return np.concatenate([np.ones(int(x[rare].sum())), x[~rare]]), wide


def log_likelihood(x, theta, labels, family=None):
    """Return a document's log likelihood under its labels, or PDMM's score of them."""
    words, labels = np.flatnonzero(x), list(labels)
    n, rows = x[words], theta[labels][:, words]
    if family is None or len(labels) == 1 or not words.size:
        return float(n @ np.log(rows.mean(axis=0)))
    if family.bias is not None:
        return float(n @ np.log(bias_weights(labels, family.bias) @ rows))
    if family.mixing is None:
        return float(n @ np.log(rows.mean(axis=0)))
    gamma, bound = variational_bayes(n, rows.T, family.mixing[labels])
    return bound if family.kind == BOUND else float(n @ np.log(gamma / gamma.sum() @ rows))


def log_likelihoods(X, theta, label_sets, family):
    """Return the log likelihood of each document under its label set."""
    return [log_likelihood(x, theta, y, family) for x, y in zip(X, label_sets, strict=True)]


def variational_step(x, theta, prior, gamma):
    """Return the next ``gamma`` and the evidence lower bound; ``theta`` is words × labels."""
    log_weights = digamma(gamma) - digamma(gamma.sum())
    t = theta @ np.exp(log_weights)
    bound = x @ np.log(t) + (prior - gamma) @ log_weights
    bound += gammaln(prior.sum()) - gammaln(prior).sum()
    bound -= gammaln(gamma.sum()) - gammaln(gamma).sum()
    return prior + np.exp(log_weights) * (theta.T @ (x / t)), bound


def variational_bayes(x, theta, prior):
    """Return ``gamma`` and the evidence lower bound after plain steps from equal weights."""
    gamma, before = prior + x.sum() / prior.size, 0.0
    while np.abs(gamma - before).max() > 1e-12 * gamma.sum():
        before = gamma
        gamma, bound = variational_step(x, theta, prior, gamma)
    return gamma, bound


def label_weights(x, theta, labels, family):
    """Return the weights of the labels of a set that distribute its words."""
    labels, words = list(labels), np.flatnonzero(x)
    if family.bias is not None:
        return bias_weights(labels, family.bias)
    if family.mixing is None or len(labels) == 1 or not words.size:
        return np.full(len(labels), 1 / len(labels))
    prior = family.mixing[labels]
    gamma, _ = variational_bayes(x[words], theta[labels][:, words].T, prior)
    return np.exp(digamma(gamma) - digamma(gamma.sum()))


def slopes(x, theta, phi):
    """Return the gradient of the log likelihood by the labels' weights, per word."""
    return theta @ (x / phi) / x.sum()


# The posterior


def log_prior(prior, labels):
    """Return the log prior of a set by looking through the seen ones."""
    for row in range(prior.log_seen.size):
        if prior.sets[prior.indptr[row] : prior.indptr[row + 1]].tolist() == list(labels):
            return prior.log_seen[row]
    return prior.base + prior.log_odds[list(labels)].sum()


def value_of(x, problem, labels):
    """Return the log posterior of a set, up to a constant."""
    likelihood = log_likelihood(x, problem.theta.T, labels, problem.family)
    return likelihood / problem.temperature + log_prior(problem.prior, labels)


def find_candidates(x, problem):
    """Return {label set: value}: seen sets, the set that climbing reaches, and its neighbours."""
    prior = problem.prior
    seen = [
        tuple(prior.sets[a:b].tolist())
        for a, b in zip(prior.indptr[:-1], prior.indptr[1:], strict=True)
    ]
    values = {labels: value_of(x, problem, labels) for labels in seen}
    center = max(values, key=values.get)
    while True:
        near = (tuple(sorted({*center} ^ {label})) for label in problem.labels.tolist())
        near = {labels: value_of(x, problem, labels) for labels in near if labels}
        best = max(near, key=near.get)
        if near[best] <= value_of(x, problem, center):
            return values | near | {center: value_of(x, problem, center)}
        center = best


def assess(x, problem, by_f):
    """Return a document's label set, and the margin and the marginal of each label."""
    values = find_candidates(x, problem)
    top = max(values.values())
    weights = {labels: np.exp(value - top) for labels, value in values.items()}
    margins, marginals = [], []
    for label in range(problem.theta.shape[1]):
        inside = [v for labels, v in values.items() if label in labels]
        outside = [v for labels, v in values.items() if label not in labels]
        margins.append(max(inside, default=-np.inf) - max(outside, default=-np.inf))
        mass = sum(weight for labels, weight in weights.items() if label in labels)
        marginals.append(mass / sum(weights.values()))
    best = best_expected_f(weights) if by_f else max(values, key=values.get)
    return best, np.array(margins), np.array(marginals)


def best_expected_f(weights):
    """Return the set with the best expected F, of those at least a hundredth as likely."""
    near = {labels: weight for labels, weight in weights.items() if weight >= np.exp(-9)}
    likely = [labels for labels, weight in near.items() if weight >= 0.01]
    return max(likely, key=lambda answer: expected_f(answer, near))


def expected_f(answer, weights):
    """Return the mean F of an answer, times the sum of the weights."""
    return sum(weight * f_score(answer, labels) for labels, weight in weights.items())


def f_score(answer, labels):
    """Return F of an answer."""
    return 2 * len({*answer} & {*labels}) / (len(answer) + len(labels))


def greedy_sets(x, problem):
    """Return the set that greedy search finds."""
    chosen, best = (), -np.inf
    while True:
        free = [label for label in problem.labels.tolist() if label not in chosen]
        larger = [tuple(sorted((*chosen, label))) for label in free]
        values = {labels: value_of(x, problem, labels) for labels in larger}
        if not values or max(values.values()) <= best:
            return chosen
        chosen = max(values, key=values.get)
        best = values[chosen]


def greedy_sets_of_pmm1(x, theta, allowed):
    """Return the labels that greedy search finds with equal weights and a uniform prior."""
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


def best_sets(x, problem, n_best):
    """Return the best label sets of all, with their values, best first."""
    labels = problem.labels.tolist()
    every = [c for size in range(1, len(labels) + 1) for c in combinations(labels, size)]
    values = {labels: value_of(x, problem, labels) for labels in every}
    return sorted(values.items(), key=lambda item: -item[1])[:n_best]


# Leave-one-out


def quality_by_temperature(sets, scores, log_prior, own, temperatures, decode):
    """Return the quality of the answer to one document at each temperature.

    ``sets`` is the indicator of its candidates, with their log likelihoods and log priors; ``own``
    is that of its own labels.
    """
    out = []
    for temperature in temperatures:
        answer = sets[_answer(np.array(scores) / temperature + log_prior, sets, decode)]
        if decode == "map":
            out.append(float((answer == own).all()))
        else:
            out.append(2 * answer @ own / (answer.sum() + own.sum()))
    return np.array(out)


def _answer(values, sets, decode):
    """Return the row of the set with the best expected F, or of the most probable one."""
    weights = np.exp(values - values.max())
    if decode != "f":
        return np.argmax(weights)
    weights[values < values.max() - 9.0] = 0.0
    f = 2 * sets @ sets.T / np.add.outer(sets.sum(axis=1), sets.sum(axis=1))
    return np.argmax(np.where(weights >= 0.01, f @ weights, -np.inf))
