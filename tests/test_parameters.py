"""NaN and infinity as parameters."""

import numpy as np
import pytest

from polytopic import MML, PMM1, BoosTexter, CoL, Labeler, NaiveBayes
from polytopic.decision import TNorm, UnconstrainedCohort, WorldModel
from polytopic.labeler import Selector
from polytopic.parameters import check_number

NO_NUMBERS = [np.nan, np.inf, -np.inf, 10**400]


@pytest.mark.parametrize("value", NO_NUMBERS)
@pytest.mark.parametrize(
    ("model", "name"),
    [
        (MML, "C"),
        (MML, "tol"),
        (CoL, "tol"),
        (CoL, "smoothing"),
        (PMM1, "temperature"),
        (PMM1, "smoothing"),
        (PMM1, "tol"),
        (NaiveBayes, "smoothing"),
        (BoosTexter, "smoothing"),
    ],
)
def test_models_reject_nan_and_infinity(model, name, value):
    """The error names the parameter."""
    X, Y = [[1, 0], [0, 1]], [["a"], ["b"]]

    with pytest.raises(ValueError, match=f"^{name} == "):
        model(**{name: value}).fit(X, Y)


@pytest.mark.parametrize("value", NO_NUMBERS)
@pytest.mark.parametrize("rule", [WorldModel, UnconstrainedCohort, TNorm])
def test_rules_reject_nan_and_infinity(rule, value):
    """The error names the parameter."""
    with pytest.raises(ValueError, match=r"^ratio == "):
        rule(ratio=value).decide([[0.5, 0.2, 0.1]], reference=[0.1])


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_labelers_reject_nan_and_infinity(value):
    """Neither is a probability or a share."""
    texts, labels = ["wheat rose", "gold fell"], [["grain"], ["metal"]]
    labeler = Labeler("pmm1").fit(texts, labels)

    with pytest.raises(ValueError, match=r"^abstain == "):
        Labeler("pmm1", abstain=value).fit(texts, labels).predict(texts)
    with pytest.raises(ValueError, match=r"^min_share == "):
        Selector(labeler, ["grain"], min_share=value)


def test_check_number_accepts_numbers():
    """Whole numbers, floats and NumPy's own, at both ends of a range."""
    for value in (0, 0.5, 1, np.float32(0.25), np.int64(1)):
        check_number(value, "share", min_val=0, max_val=1)
