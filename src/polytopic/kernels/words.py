"""Loops over the words of documents, shared by all count models.

======================  ==========================================================================
``data, indices,        word counts ``X`` of documents, rows of a CSR matrix
indptr``
``sets, sets_indptr``   label sets of the same documents, rows of a CSR indicator
``theta``               (n_words, n_labels): probability of a word under a label; word-major, so
                        that the labels of one word are adjacent in memory
``log_theta``           its logarithm
======================  ==========================================================================
"""

from polytopic.kernels import compiled, helper


@compiled
def add_scores(data, indices, indptr, log_theta, out):
    """Add the log likelihood of each document under each single label to ``out``.

    Equivalent to ``out += X @ log_theta``.
    """
    for d in range(indptr.size - 1):
        for k in range(indptr[d], indptr[d + 1]):
            word = indices[k]
            x = data[k]
            for label in range(log_theta.shape[1]):
                out[d, label] += x * log_theta[word, label]


@compiled
def word_shares(indices, indptr, sets, sets_indptr, weights, theta, out):
    """Write the share of each label of the document's set in each of its words.

    Equivalent, for a document with words ``w``, labels ``L`` and label weights ``c`` (Ueda & Saito,
    Eq. (18)), to appending the flattened array ::

        c * theta[w][:, L] / (theta[w][:, L] @ c)[:, None]
    """
    place = 0
    for d in range(indptr.size - 1):
        for k in range(indptr[d], indptr[d + 1]):
            mass = 0.0
            for j in range(sets_indptr[d], sets_indptr[d + 1]):
                mass += weights[j] * theta[indices[k], sets[j]]
            for j in range(sets_indptr[d], sets_indptr[d + 1]):
                out[place] = weights[j] * theta[indices[k], sets[j]] / mass
                place += 1


@compiled
def loo_theta(indices, indptr, sets, sets_indptr, own, counts, totals, smoothing, n_words, out):
    """Write the probability of each document's words under its labels, without its own counts.

    Equivalent, for a document with words ``w`` and labels ``L`` that contributed the counts ``own``
    (words × labels) to its labels, to appending the flattened array ::

        left = np.maximum(totals[L] - own.sum(axis=0), 0) + smoothing * n_words
        (np.maximum(counts[L][:, w].T - own, 0) + smoothing) / left

    ``counts`` is the tuple ``data, indices, indptr`` of the labels' word counts (labels × words),
    with sorted indices, and ``totals`` their sums by label.
    """
    data, columns, rows = counts
    place = 0
    for d in range(indptr.size - 1):
        size, n_own = sets_indptr[d + 1] - sets_indptr[d], indptr[d + 1] - indptr[d]
        for j in range(size):
            label = sets[sets_indptr[d] + j]
            own_total = 0.0
            for k in range(n_own):
                own_total += own[place + k * size + j]
            left = max(totals[label] - own_total, 0.0) + smoothing * n_words
            row = slice(rows[label], rows[label + 1])
            for k in range(n_own):
                count = _count(data[row], columns[row], indices[indptr[d] + k])
                entry = place + k * size + j
                out[entry] = (max(count - own[entry], 0.0) + smoothing) / left
        place += size * n_own


@helper
def _count(data, columns, column):
    """Return the count in a column of a sparse row, 0 if it is not stored."""
    first, last = 0, columns.size
    while first < last:
        middle = (first + last) // 2
        if columns[middle] < column:
            first = middle + 1
        else:
            last = middle
    if first < columns.size and columns[first] == column:
        return data[first]
    return 0.0
