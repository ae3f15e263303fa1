"""The nearest documents by cosine, through an index of the documents that contain each word.

==================  ==========================================================================
``x``               a document of unit length, a row of ``data, indices, indptr``
``word_data``,      the weight of each word in the learned documents that contain it, and these
``word_docs``       documents: word i has those from ``starts[i]`` to ``starts[i + 1]``
``cosine``          (n_learned,) the cosines of one document with all learned ones
==================  ==========================================================================
"""

import numpy as np

from polytopic.kernels import compiled, helper


@helper
def _insert(value, item, values, items, n):
    """Insert an item into the ``n`` highest, in descending order; return how many there are now.

    It fits, or its value is higher than the last one. Equal values keep their order.
    """
    n = min(n + 1, values.size)
    place = n - 1
    while place > 0 and values[place - 1] < value:
        values[place], items[place] = values[place - 1], items[place - 1]
        place -= 1
    values[place], items[place] = value, item
    return n


@compiled
def find_nearest(
    data, indices, indptr, word_data, word_docs, starts, n_learned, similarity, nearest
):
    """Set each row of ``nearest`` to the most similar learned documents, the nearest first.

    ``similarity`` has their cosines. Documents without a common word are not neighbours; places
    without one have the number -1 and the cosine 0. Equivalent, where there are enough, to::

        cosine = X @ learned.T
        nearest = np.argsort(-cosine, axis=1, kind="stable")[:, :k]
        similarity = np.take_along_axis(cosine, nearest, axis=1)
    """
    cosine = np.zeros(n_learned, data.dtype)
    for d in range(indptr.size - 1):
        for m in range(indptr[d], indptr[d + 1]):
            x, word = data[m], indices[m]
            for p in range(starts[word], starts[word + 1]):
                cosine[word_docs[p]] += x * word_data[p]
        n, least = 0, data.dtype.type(0)
        for c in range(n_learned):
            if cosine[c] > least:
                n = _insert(cosine[c], c, similarity[d], nearest[d], n)
                if n == nearest.shape[1]:
                    least = similarity[d, n - 1]
        for place in range(n, nearest.shape[1]):
            similarity[d, place], nearest[d, place] = 0, -1
        for c in range(n_learned):
            cosine[c] = 0
