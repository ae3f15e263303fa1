"""Slow twins of the kernels of models for thousands of labels; all matrices are dense."""

import numpy as np


def shortlist(X, own, n_negatives):
    """Return the own documents and the others most similar to their sum, most similar first."""
    cosine = X @ X[own].sum(axis=0)
    others = [d for d in np.argsort(-cosine, kind="stable") if not own[d] and cosine[d] > 0]
    docs = np.sort([*np.flatnonzero(own), *others[:n_negatives]])
    return docs[np.argsort(-cosine[docs], kind="stable")]


def random_order(random=2463534242):
    """Return a function that shuffles a list in place, in another way at each call (xorshift)."""

    def shuffle(items):
        nonlocal random
        for k in range(len(items) - 1, 0, -1):
            random ^= random << 13 & 0xFFFFFFFF
            random ^= random >> 17
            random ^= random << 5 & 0xFFFFFFFF
            j = random % (k + 1)
            items[k], items[j] = items[j], items[k]

    return shuffle


def train_labels(X, Y, begin, end, *settings):
    """Return the weights of the labels from ``begin`` to ``end``, a row for each."""
    return [train_label(X, Y[:, label] > 0, *settings) for label in range(begin, end)]


def train_label(X, own, costs, sizes, max_passes, tolerance, smallest):
    """Return the weights of one label: coordinate descent on its shortlist."""
    docs = shortlist(X, own, int(sizes[0] + sizes[1] * own.sum()))
    other_cost = costs[0] if own.sum() < costs[2] else costs[1]
    w, alpha, limit = np.zeros(X.shape[1]), np.zeros(len(docs)), np.inf
    active, shuffle = list(range(len(docs))), random_order()
    for _ in range(max_passes):
        shuffle(active)
        projected, k = [], 0
        while k < len(active):
            i = active[k]
            x, sign = X[docs[i]], 1 if own[docs[i]] else -1
            s = 0.5 / (costs[3] if own[docs[i]] else other_cost)
            gradient = sign * (w @ x - 1) - 1 + s * alpha[i]
            if alpha[i] == 0 and gradient > limit:
                active[k] = active[-1]
                active.pop()
                continue
            projected.append(min(gradient, 0.0) if alpha[i] == 0 else gradient)
            after = max(alpha[i] - gradient / (1 + s), 0.0)
            w += sign * (after - alpha[i]) * x
            alpha[i] = after
            k += 1
        if not projected or max(projected) - min(projected) <= tolerance:
            break
        limit = max(projected) if max(projected) > 0 else np.inf
    return np.where(np.abs(w) >= smallest, w, 0.0)


def rank_machine(x, W, allowed, extra, most):
    """Return the candidates of a document by machines (words × labels), and their scores."""
    scores = x @ W
    best = [label for label in np.argsort(-scores, kind="stable") if allowed[label]][:most]
    labels = [label for label in best if scores[label] != 0]
    labels += [label for label in extra if label not in labels]
    return labels, scores[labels] - 1


def rank_candidates(x, W, centroids, X, Y, allowed, extra, *, depth, most, near, close, floor):
    """Return the candidates of a document, and a row of features for each."""
    machine, centroid, cosine = x @ W, x @ centroids, X @ x
    order = np.argsort(-cosine, kind="stable")[:near]
    order = order[cosine[order] > 0]
    votes3 = (cosine[order] ** 3) @ Y[order]
    votes2 = (cosine[order[:close]] ** 2) @ Y[order[:close]]
    tops, ranks = [], np.full((3, len(allowed)), depth)
    for source, scores in enumerate((machine, centroid, votes3)):
        top = [a for a in np.argsort(-scores, kind="stable") if allowed[a]][:depth]
        tops.append([a for a in top if scores[a] > 0])
        ranks[source, tops[-1]] = np.arange(len(tops[-1]))
    labels: list = []
    for k in range(depth):
        for top in tops:
            if k < len(top) and len(labels) < most and top[k] not in labels:
                labels.append(top[k])
    labels += [label for label in extra if label not in labels]
    many, few = (max((cosine[order[:n]] ** p).sum(), floor) for n, p in ((near, 3), (close, 2)))
    log_n = np.log(np.maximum(Y.sum(axis=0), 1))
    best = [
        scores[top[0]] if top else 0.0
        for scores, top in zip((machine, centroid, votes3), tops, strict=True)
    ]
    best[1:] = np.log(max(best[1], floor)), np.log(max(best[2] / many, floor))
    first = cosine[order[0]] if order.size else 0.0
    rows = []
    for a in labels:
        with_label = cosine[order] * Y[order, a]
        logs = [np.log(max(v, floor)) for v in (centroid[a], votes3[a] / many, votes2[a] / few)]
        main = [machine[a] - 1, *logs]
        largest = with_label.max(initial=0.0)
        rows.append(
            [
                *main,
                largest,
                np.log(1 + (with_label > 0).sum()),
                log_n[a],
                log_n[a] ** 2,
                *(value * log_n[a] for value in main),
                *np.log(1 + ranks[:, a]),
                best[0] - machine[a],
                best[1] - logs[0],
                best[2] - logs[1],
                first,
                first - largest,
            ]
        )
    return labels, np.array(rows).reshape(len(labels), 20)


def choose_set(proba, missed):
    """Return which labels of one document are predicted: the best prefix by expected F1."""
    ranked = sorted(proba, reverse=True)
    expected = [
        2 * sum(ranked[:k]) / (k + sum(ranked) + 0.3 * missed) for k in range(1, len(ranked) + 1)
    ]
    n = int(np.argmax(expected)) + 1
    chosen = np.zeros(len(proba), dtype=bool)
    chosen[np.argsort(-np.asarray(proba), kind="stable")[:n]] = True
    return chosen
