"""How often probabilities come true: sums over documents, and the reliability plot."""

from __future__ import annotations

import numpy as np

from polytopic.errors import PolytopicError
from polytopic.metrics.scores import calibration_bins

BINS = 15


class CalibrationTally:
    """Pairs of a document and a label, and predicted label sets, in bins by their probability.

    Two tallies can be added.

    Parameters
    ----------
    labels, sets : ndarray of shape (3, n_bins)
        The number, the sum of probabilities and the number of right ones of each bin: of pairs of a
        document and a label, and of predicted label sets.
    """

    def __init__(self, labels: np.ndarray, sets: np.ndarray):
        self.labels, self.sets = labels, sets

    @classmethod
    def count(cls, Y_true, proba, is_right, certainty, classes=None) -> CalibrationTally:
        """Count probabilities of labels, and those that the predicted label sets are right."""
        labels = calibration_bins(Y_true, proba, n_bins=BINS, classes=classes)
        sets = np.zeros((3, BINS))
        if len(is_right):
            columns = (np.asarray(values, dtype=float)[:, None] for values in (is_right, certainty))
            sets = calibration_bins(*columns, n_bins=BINS)
        return cls(labels, sets)

    def __add__(self, other: CalibrationTally) -> CalibrationTally:
        return CalibrationTally(self.labels + other.labels, self.sets + other.sets)

    def metrics(self) -> dict[str, float]:
        """Return the expected calibration errors of labels and of label sets."""
        return {
            "calibration_error": _error(self.labels),
            "set_calibration_error": _error(self.sets),
        }

    def plot(self):
        """Draw how often labels and label sets are right, by their probability.

        Needs matplotlib; returns its figure. The area of a point grows with the number of labels or
        sets in its bin.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise PolytopicError(
                "matplotlib is not installed. Install it with: pip install 'polytopic[plots]'"
            ) from error
        figure = Figure(figsize=(8.0, 4.2), layout="constrained")
        axes = figure.subplots(1, 2, sharex=True, sharey=True)
        parts = {"labels": self.labels, "label sets": self.sets}
        for axis, (title, bins) in zip(axes, parts.items(), strict=True):
            n, p, right = bins[:, bins[0] > 0]
            axis.plot([0, 1], [0, 1], color="#999999", linewidth=1)
            axis.plot(p / n, right / n, color="#1f77b4", linewidth=1)
            axis.scatter(p / n, right / n, s=10 + 90 * np.sqrt(n / n.max()) if n.size else 10)
            axis.set_title(f"{title}: calibration error {_error(bins):.4f}")
            axis.set_xlabel("probability")
        axes[0].set_ylabel("share that is right")
        return figure


def _error(bins: np.ndarray) -> float:
    """Return the expected calibration error of bins."""
    n, p, right = bins
    return float(np.abs(right - p).sum() / max(n.sum(), 1.0))
