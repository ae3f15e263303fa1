"""Small random corpora."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

LABELS = ["arts", "films", "science", "sport"]
TERMS = ["ball", "book", "goal", "moon", "song", "star"]


@st.composite
def matrices(draw, min_docs=1, max_docs=8, n_words=5, n_labels=4, labelled=False):
    """Draw word counts ``X`` and an indicator ``Y``."""
    n_docs = draw(st.integers(min_docs, max_docs))
    X = draw(hnp.arrays(np.int64, (n_docs, n_words), elements=st.integers(0, 6)))
    Y = draw(hnp.arrays(np.int64, (n_docs, n_labels), elements=st.integers(0, 1)))
    if labelled:
        Y[np.arange(n_docs), draw(hnp.arrays(np.int64, n_docs, elements=st.integers(0, 3)))] = 1
    return X, Y


def bags(max_docs=8):
    """Draw lists of pairs of a bag of words and a label set."""
    bag = st.dictionaries(st.sampled_from(TERMS), st.integers(0, 5), max_size=5)
    return st.lists(st.tuples(bag, st.sets(st.sampled_from(LABELS), max_size=3)), max_size=max_docs)


def texts(max_docs=6):
    """Draw lists of pairs of a text and its labels, at least one of them labelled."""
    text = st.lists(st.sampled_from(TERMS), max_size=8).map(" ".join)
    labels = st.sets(st.sampled_from(LABELS), min_size=1, max_size=3).map(sorted)
    return st.lists(st.tuples(text, labels), min_size=1, max_size=max_docs)
