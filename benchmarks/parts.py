"""Training and test documents of corpora, with texts, counts and labels."""

from dataclasses import dataclass

import numpy as np
from common import bag_counts, random_halves, split_documents
from scipy import sparse
from sklearn.preprocessing import MultiLabelBinarizer

from polytopic.text import TextCounts

CORPORA = {  # language (none: bags of words), least and most documents of the labels that are used
    "reuters21578": ("en", 1, np.inf),
    "ohsumed20k": ("en", 1, np.inf),
    "cei": ("en", 1, np.inf),
    "medline-cf": ("en", 20, 600),
    "debtags-en": ("en", 1, np.inf),
    "czech-pirati": ("cs", 1, np.inf),
    "arxiv-cs": ("en", 1, np.inf),
    "goemotions": ("en", 1, np.inf),
    "cooking": ("en", 1, np.inf),
    "yahoo-arts-full": (None, 1, np.inf),
    "yahoo-health-full": (None, 1, np.inf),
}


@dataclass(frozen=True)
class Part:
    """Some documents: their texts, counts and label indicator."""

    texts: list
    X: sparse.csr_matrix
    Y: np.ndarray

    def rows(self, rows):
        """Return some of the documents."""
        return Part([self.texts[row] for row in rows], self.X[rows], self.Y[rows])


def read_parts(name):
    """Return the training and the test documents of a corpus.

    By the corpus's own split; bags of words by the first of the papers' random splits.
    """
    language, least, most = CORPORA[name]
    if language is None:
        X, Y = bag_counts(name)
        docs = random_halves(X.shape[0], 0)
        known = X[docs[0]].getnnz(axis=0) > 0
        return [Part([""] * rows.size, X[rows][:, known], Y[rows]) for rows in docs]
    train, test = split_documents(name)
    Y = MultiLabelBinarizer().fit_transform([d.labels for d in train + test])
    Y = Y[:, (Y.sum(axis=0) >= least) & (Y.sum(axis=0) <= most)]
    texts = [d.text for d in train + test]
    labelled = Y.any(axis=1)
    cut = len(train)
    rows = np.flatnonzero(labelled[:cut]), cut + np.flatnonzero(labelled[cut:])
    counts = TextCounts(language).fit([texts[row] for row in rows[0]])
    return [
        Part(part, counts.transform(part), Y[docs])
        for docs in rows
        for part in [[texts[row] for row in docs]]
    ]
