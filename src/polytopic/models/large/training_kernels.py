"""Linear machines, one per label, that are trained on a shortlist of documents.

===================  =========================================================================
``x``                a document of unit length, a row of ``data, indices, indptr``
``word_data``,       the weight of each word in the documents that contain it, and these
``word_docs``        documents: word i has those from ``starts[i]`` to ``starts[i + 1]``
``label_docs``       the documents of each label: label l has those from ``label_starts[l]`` to
                     ``label_starts[l + 1]``
``w``                (n_words,) the weights of one label; its score is ``w @ x - 1``
``docs``, ``is_own`` the shortlist of one label: its documents, and those that resemble them most
``slack``            half the inverse of the cost of an error, for other and for own documents
``alpha``            (n_shortlist,) the dual variable of each document
===================  =========================================================================

The bias is fixed at -1: a document that shares no word with a label scores -1, and costs nothing.
"""

import numpy as np

from polytopic.kernels import compiled, helper

SEED = 2463534242  # of the order in which documents are visited
LOW_BITS = 0xFFFFFFFF
TOUCHED, UNTOUCHED = 1, 0


@helper
def _random(state):
    """Return the next state of a generator of random numbers (xorshift)."""
    state ^= (state << 13) & LOW_BITS
    state ^= state >> 17
    state ^= (state << 5) & LOW_BITS
    return state


@helper
def _kth_largest(values, n, k):
    """Return the k-th largest of the first ``n`` values, which are rearranged (k from 1)."""
    low, high, place = 0, n - 1, k - 1
    while low < high:
        pivot, i, j = values[(low + high) // 2], low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            break
    return values[place]


@helper
def _add_words(data, indices, indptr, doc, factor, w, state, touched, n_touched):
    """Add a document to ``w``, and its new words to those touched; return how many these are."""
    for m in range(indptr[doc], indptr[doc + 1]):
        word = indices[m]
        w[word] += factor * data[m]
        if state[word] == UNTOUCHED:
            state[word] = TOUCHED
            touched[n_touched] = word
            n_touched += 1
    return n_touched


@helper
def _shortlist(cosine, is_own, n_negatives, values, docs):
    """Put the own documents and the most similar others into ``docs``; return how many there are.

    They are in descending order of similarity, so the order of the corpus does not matter.
    """
    n_similar = 0
    for d in range(cosine.size):
        if not is_own[d] and cosine[d] > 0:
            values[n_similar] = cosine[d]
            n_similar += 1
    least, at_least = np.float32(0), 0
    if n_similar > n_negatives:
        least = _kth_largest(values, n_similar, n_negatives)
        for k in range(n_similar):
            at_least += values[k] > least
        at_least = n_negatives - at_least  # places for documents that are exactly as similar
    n = 0
    for d in range(cosine.size):
        if is_own[d] or cosine[d] > least:
            docs[n] = d
            n += 1
        elif at_least > 0 and cosine[d] == least and least > 0:
            docs[n] = d
            n += 1
            at_least -= 1
    for k in range(n):
        values[k] = -cosine[docs[k]]
    order = np.argsort(values[:n], kind="mergesort")
    ranked = docs[:n][order]
    docs[:n] = ranked
    return n


@helper
def _descend(data, indices, indptr, docs, is_own, slack, max_passes, tolerance, w, alpha, active):
    """Minimize the dual of one label by coordinate descent; documents at a bound are set aside."""
    n = docs.size
    for k in range(n):
        active[k] = k
        alpha[k] = 0
    n_active, random, limit = n, np.int64(SEED), np.inf
    for _ in range(max_passes):
        for k in range(n_active - 1, 0, -1):
            random = _random(random)
            j = random % (k + 1)
            active[k], active[j] = active[j], active[k]
        largest, smallest, k = -np.inf, np.inf, 0
        while k < n_active:
            i = active[k]
            doc = docs[i]
            own = is_own[doc]
            sign, s = (np.float32(1), slack[1]) if own else (np.float32(-1), slack[0])
            score = np.float32(-1)
            for m in range(indptr[doc], indptr[doc + 1]):
                score += w[indices[m]] * data[m]
            gradient = sign * score - 1 + s * alpha[i]
            if alpha[i] == 0:
                if gradient > limit:
                    n_active -= 1
                    active[k], active[n_active] = active[n_active], active[k]
                    continue
                projected = min(gradient, np.float32(0))
            else:
                projected = gradient
            largest, smallest = max(largest, projected), min(smallest, projected)
            if projected != 0:
                before = alpha[i]
                alpha[i] = max(before - gradient / (1 + s), np.float32(0))
                step = sign * (alpha[i] - before)
                if step != 0:
                    for m in range(indptr[doc], indptr[doc + 1]):
                        w[indices[m]] += step * data[m]
            k += 1
        if largest - smallest <= tolerance:
            break
        limit = largest if largest > 0 else np.inf


@compiled
def train_labels(
    data,
    indices,
    indptr,
    word_data,
    word_docs,
    starts,
    label_docs,
    label_starts,
    begin,
    end,
    costs,
    shortlist,
    max_passes,
    tolerance,
    smallest,
    words,
    weights,
    ends,
):
    """Train the labels from ``begin`` to ``end``; return the first label that was not trained.

    The weights of label l are appended to ``words`` and ``weights``, without those below
    ``smallest``, and end at ``ends[l - begin + 1]``; training stops when they might not fit.
    ``costs`` are those of errors on other documents of a rare label, on those of a frequent one,
    from how many documents on a label is frequent, and on own documents. ``shortlist`` is how many
    other documents there are at least, and how many more for each own document. For each label, the
    weights minimize, over the documents of the shortlist::

        w @ w / 2 + sum(cost[d] * max(0, 1 - y[d] * (X[d] @ w - 1)) ** 2 for d in docs)
    """
    n_docs, n_words = indptr.size - 1, starts.size - 1
    w, cosine = np.zeros(n_words, np.float32), np.zeros(n_docs, np.float32)
    state, touched = np.zeros(n_words, np.int8), np.empty(n_words, np.int64)
    is_own, docs = np.zeros(n_docs, np.bool_), np.empty(n_docs, np.int64)
    values, alpha = np.empty(n_docs, np.float32), np.empty(n_docs, np.float32)
    active, slack = np.empty(n_docs, np.int64), np.empty(2, np.float32)
    n_stored = ends[0]
    for label in range(begin, end):
        own = label_docs[label_starts[label] : label_starts[label + 1]]
        n_touched = 0
        for doc in own:
            is_own[doc] = True
            n_touched = _add_words(
                data, indices, indptr, doc, np.float32(1), w, state, touched, n_touched
            )
        words_of_own = np.sort(touched[:n_touched])
        for word in words_of_own:
            for p in range(starts[word], starts[word + 1]):
                cosine[word_docs[p]] += w[word] * word_data[p]
            w[word] = 0
        n_negatives = np.int64(shortlist[0] + shortlist[1] * own.size)
        n = _shortlist(cosine, is_own, n_negatives, values, docs)
        cosine[:] = 0
        cost = costs[0] if own.size < costs[2] else costs[1]
        slack[0], slack[1] = 0.5 / cost, 0.5 / costs[3]
        _descend(
            data,
            indices,
            indptr,
            docs[:n],
            is_own,
            slack,
            max_passes,
            tolerance,
            w,
            alpha,
            active,
        )
        n_before = n_stored
        for word in range(n_words):
            if w[word] >= smallest or w[word] <= -smallest:
                if n_stored < words.size:
                    words[n_stored], weights[n_stored] = word, w[word]
                n_stored += 1
            w[word] = 0
        for word in words_of_own:
            state[word] = UNTOUCHED
        for doc in own:
            is_own[doc] = False
        if n_stored > words.size:
            ends[label - begin] = n_before
            return label
        ends[label - begin + 1] = n_stored
    return end
