"""What all models share as scikit-learn's classifiers."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin

from polytopic.labels import LabelSpace, read_targets


class LabelSetClassifier(ClassifierMixin):
    """A classifier whose ``score`` understands collections of label names too."""

    def score(self, X, y, sample_weight=None):
        """Return the share of documents whose labels are all right."""
        if read_targets(y).form.kind != "names":
            return super().score(X, y, sample_weight)
        predicted = LabelSpace(self.classes_.tolist()).decode(self.predict(X))
        right = [set(true) == set(found) for true, found in zip(y, predicted, strict=True)]
        return float(np.average(right, weights=sample_weight))
