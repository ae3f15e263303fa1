"""How often probabilities come true."""

import numpy as np
import pytest

from polytopic.metrics import Tally, classification_report, expected_calibration_error

CLASSES = ["a", "b", "c"]


@pytest.fixture
def case():
    """Return true and predicted labels, probabilities of labels, and those of the sets."""
    rng = np.random.default_rng(0)
    proba = rng.random((60, 3))
    true = [[label for label in CLASSES if rng.random() < 0.4] for _ in range(60)]
    predicted = [[label for label, p in zip(CLASSES, row, strict=True) if p > 0.6] for row in proba]
    return true, predicted, proba, rng.random(60)


def test_calibration_errors(case):
    """Labels are those of the metric; sets are right as a whole, and empty ones do not count."""
    true, predicted, proba, certainty = case
    tally = Tally(CLASSES)

    tally.add(true, predicted, proba=proba, certainty=certainty)

    full = [row for row, labels in enumerate(predicted) if labels]
    right = [[float(set(true[row]) == set(predicted[row]))] for row in full]
    metrics = tally.metrics()
    assert 0 < len(full) < 60
    assert metrics["calibration_error"] == pytest.approx(
        expected_calibration_error(true, proba, classes=CLASSES)
    )
    assert metrics["set_calibration_error"] == pytest.approx(
        expected_calibration_error(right, certainty[full, None])
    )


def test_parts_add_up(case):
    """Documents may be counted in parts, in any order."""
    true, predicted, proba, certainty = case
    whole, parts = Tally(CLASSES), Tally(CLASSES)

    whole.add(true, predicted, proba=proba, certainty=certainty)
    for rows in (slice(20, 60), slice(20)):
        part = Tally(CLASSES)
        part.add(true[rows], predicted[rows], proba=proba[rows], certainty=certainty[rows])
        parts += part

    assert parts.metrics() == pytest.approx(whole.metrics())
    assert parts.metrics_by_label() == whole.metrics_by_label()
    assert whole.metrics_by_label() == classification_report(true, predicted, classes=CLASSES)


def test_without_probabilities_there_is_no_calibration(case):
    """Both kinds are needed, and an empty tally has no report."""
    true, predicted, proba, _ = case
    tally = Tally(CLASSES)

    with pytest.raises(ValueError, match="no labelled document to evaluate on"):
        tally.metrics_by_label()
    tally.add(true, predicted, proba=proba)

    assert tally.calibration is None
    assert "calibration_error" not in tally.metrics()


def test_the_plot_shows_both(case):
    """Two axes, with the errors in their titles; also if no set was predicted."""
    true, _, proba, certainty = case
    tally = Tally(CLASSES)
    tally.add(true, [[]] * 60, proba=proba, certainty=certainty)

    figure = tally.calibration.plot()

    labels, sets = (axis.get_title() for axis in figure.axes)
    assert labels.startswith("labels: calibration error 0.")
    assert sets == "label sets: calibration error 0.0000"
