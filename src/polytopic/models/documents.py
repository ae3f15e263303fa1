"""What the models share that learn from whole documents."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from polytopic.labels import TargetForm, Targets
from polytopic.models.classifier import LabelSetClassifier


class DocumentModel(LabelSetClassifier, BaseEstimator):
    """A model of documents, of which it keeps how often labels and their sets occur."""

    chosen_: dict
    sees_counts = True  # as they are, not as weights of terms

    def _set_labels(self, targets: Targets):
        """Take over the labels and how often they and their sets occur."""
        self._set_classes(targets.labels, targets.form)
        self.label_docs_ = targets.Y.getnnz(axis=0)
        self._columns = np.flatnonzero(self.label_docs_)
        Y = targets.Y.sorted_indices()
        labels = Y.indices.tolist()
        sets = Counter(tuple(labels[a:b]) for a, b in pairwise(Y.indptr.tolist()) if b > a)
        commonest = min(sets, key=lambda labels: (-sets[labels], labels))
        self._fallback = np.array(commonest, dtype=np.int64)
        self._n_docs, self._fallback_docs = sets.total(), sets[commonest]

    def _set_label_sets(self, labels, sets, set_docs):
        """Take over label sets in sorted order, and how many documents have each."""
        self._set_classes(labels, TargetForm())
        set_docs = np.asarray(set_docs).astype(np.int64)
        commonest = int(np.argmax(set_docs))
        self.label_docs_ = sets.T.astype(np.int64) @ set_docs
        self._columns = np.flatnonzero(self.label_docs_)
        self._fallback = sets[commonest].indices.astype(np.int64)
        self._n_docs, self._fallback_docs = int(set_docs.sum()), int(set_docs[commonest])

    def _set_classes(self, labels, form):
        names = any(isinstance(label, str) for label in labels)
        self.classes_, self._form = np.array(labels, dtype=object if names else None), form

    def _label_arrays(self):
        """Return what is kept of labels as plain arrays."""
        return {
            "columns": self._columns,
            "fallback": self._fallback,
            "label_docs": self.label_docs_,
            "docs": np.array([self._n_docs, self._fallback_docs]),
        }

    def _take_labels(self, arrays, labels, chosen):
        """Take over what :meth:`_label_arrays` gave, and what was chosen."""
        self._set_classes(labels, TargetForm())
        self.chosen_, self.label_docs_ = chosen, arrays["label_docs"]
        self._columns, self._fallback = arrays["columns"], arrays["fallback"]
        self._n_docs, self._fallback_docs = arrays["docs"].tolist()

    def _check_parameters(self):
        """Refuse parameters that make no sense."""
        raise NotImplementedError

    @property
    def fallback(self):
        """Columns of the most frequent label set, which documents without words get."""
        return self._fallback

    def _fallback_within(self, allowed):
        """Return the fallback where only some labels are allowed."""
        if allowed[self._fallback].all():
            return self._fallback
        return np.argmax(np.where(allowed, self.label_docs_, -1), keepdims=True)

    def predict(self, X):
        """Return each document's labels, in the form of the ``Y`` that was learned.

        A document without a known word gets the most frequent label set.
        """
        Y = self.choose(X)
        return self.classes_[Y.indices] if self._form.kind == "single" else self._form.give_back(Y)

    def choose(self, X) -> sparse.csr_matrix:
        """Return the predicted label sets as a sparse indicator, whatever the form of ``Y``."""
        raise NotImplementedError

    def _check_label(self, label, known):
        """Refuse what is not one of the known columns of labels."""
        if label not in known:
            name = self.classes_[label]
            raise ValueError(f"label {str(name)!r} has no documents, or is not allowed.")
