"""Label sets and scores to test metrics with, and slow computations on sets."""

import math

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

FORMS = {
    "dense": np.asarray,
    "lists": lambda Y: np.asarray(Y).tolist(),
    "bool": lambda Y: np.asarray(Y, dtype=bool),
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "coo": sparse.coo_array,
    "float": lambda Y: sparse.csr_array(np.asarray(Y, dtype=float)),
}


class Paths:
    """A tree of paths, known only by its ancestors."""

    def ancestors(self, label):
        """Return the paths above, nearest first."""
        steps = label.split("/")
        return ["/".join(steps[:stop]) for stop in range(len(steps) - 1, 0, -1)]


@st.composite
def label_pairs(draw, min_labels=1):
    """Draw true and predicted labels of a few documents."""
    shape = draw(st.tuples(st.integers(1, 6), st.integers(min_labels, 5)))
    cells = st.lists(st.integers(0, 1), min_size=math.prod(shape), max_size=math.prod(shape))
    return tuple(np.array(draw(cells)).reshape(shape) for _ in range(2))


@st.composite
def scored(draw, min_labels=1, values=(-2.0, -0.5, 0.0, 0.0, 0.25, 1.0, 3.0)):
    """Draw true labels and scores with many ties."""
    Y, _ = draw(label_pairs(min_labels))
    cells = st.lists(st.sampled_from(values), min_size=Y.size, max_size=Y.size)
    return Y, np.array(draw(cells)).reshape(Y.shape)


def names(Y):
    """Return an indicator as sets of names."""
    return [{f"label {j}" for j in np.flatnonzero(row)} for row in np.asarray(Y)]


def columns(Y):
    """Return the name of each column."""
    return [f"label {j}" for j in range(np.shape(Y)[1])]


def numbered(rows):
    """Return all pairs of document and label."""
    return {(i, label) for i, row in enumerate(rows) for label in row}


def dice(t, p, empty):
    """Return the F-measure of two sets."""
    return 2 * len(t & p) / (len(t) + len(p)) if t or p else empty


def share(part, whole, empty):
    """Return a part as a share of the whole."""
    return len(part) / len(whole) if whole else float(empty)
