"""Arrays of models in files: those that no model could have learned are rejected."""

import numpy as np
import pytest
from sklearn.base import clone

from polytopic import MML, PMM2, BoosTexter, CoL, NaiveBayes
from tests.models.test_every_model import NAMES, fitted

LARGEST, TINY = 1e100, 1e-100
SINGLE = float(np.finfo(np.float32).smallest_subnormal)
N_LABELS, N_WORDS = 4, 6

# The range of each array, both ends included; None for no end
COUNTS = {
    "data": (0, LARGEST),
    "indices": (0, N_WORDS - 1),
    "indptr": (0, None),
    "set_indices": (0, N_LABELS - 1),
    "set_indptr": (0, None),
    "set_docs": (TINY, LARGEST),
    "world_counts": (0, LARGEST),
}
MIXTURE = COUNTS | {"objective": (None, None), "n_iter": (0, None), "bias": (0, 1)}
LABELS = {
    "columns": (0, N_LABELS - 1),
    "fallback": (0, N_LABELS - 1),
    "label_docs": (0, None),
    "docs": (1, None),
}
RANGES = {
    NaiveBayes(): COUNTS,
    PMM2(temperature=1.0): MIXTURE,
    MML(): LABELS | {"weights": (-1e15, 1e15), "vectors": (-1e15, 1e15)},
    BoosTexter(20): LABELS
    | {"words": (0, N_WORDS - 1), "outputs": (-1e15, 1e15), "z": (-1e-6, 1 + 1e-6)},
    CoL(n_topics=4, tol=0.1): LABELS
    | {
        "alpha": (TINY, LARGEST),
        "beta": (SINGLE, 1 + 1e-6),
        "label_topics": (0, 1 + 1e-6),
        "mean": (-1e3, 1e3),
        "covariance": (-1e6, 1e6),
        "size_proba": (0, 1),
        "words": (0, LARGEST),
        "elbo": (None, None),
        "label_objective": (None, None),
    },
}
FITTED = {type(model).__name__: fitted(model) for model in RANGES}
RANGES = {type(model).__name__: ranges for model, ranges in RANGES.items()}
every_array = pytest.mark.parametrize(
    ("model", "name"), [(model, name) for model, ranges in RANGES.items() for name in ranges]
)


def _load(model, *, tuned=None, **changed):
    """Return a model from the arrays of a fitted one, some of them replaced."""
    model = FITTED[model]
    tuned = model.tuned_ if tuned is None else tuned
    arrays = {n: a for n, a in (model.to_arrays() | changed).items() if a is not None}
    return clone(model).from_arrays(arrays, labels=NAMES, n_words=N_WORDS, tuned=tuned)


def _complaint(model, **changed):
    """Return the error message for arrays; empty if they are accepted."""
    try:
        _load(model, **changed)
    except ValueError as error:
        return str(error)
    return ""


def _with(model, name, value, place=0):
    """Return an array of a model with one number replaced, in double precision if it is real."""
    array = FITTED[model].to_arrays()[name]
    array = array.astype(np.int64 if array.dtype.kind == "i" else np.float64)
    array.flat[place] = value
    return array


def test_all_arrays_are_listed():
    """The tests below cover every array of these models."""
    assert {model: set(ranges) for model, ranges in RANGES.items()} == {
        model: set(FITTED[model].to_arrays()) for model in FITTED
    }


@every_array
def test_a_missing_array(model, name):
    """The error names the array."""
    with pytest.raises(ValueError, match=f"'{name}' is missing"):
        _load(model, **{name: None})


@every_array
def test_an_array_of_another_type(model, name):
    """Arrays must have the types that models give them."""
    array = FITTED[model].to_arrays()[name]
    other = array.astype(np.float16 if array.dtype.kind == "f" else np.int8)

    with pytest.raises(ValueError, match=f"'{name}' is {other.dtype}, must be"):
        _load(model, **{name: other})


@every_array
def test_integers_and_real_numbers(model, name):
    """Numbers of documents and positions are integers, everything else is real."""
    array = FITTED[model].to_arrays()[name]
    other = array.astype(np.int64 if array.dtype.kind == "f" else np.float64)

    with pytest.raises(ValueError, match=f"'{name}' is {other.dtype}, must be"):
        _load(model, **{name: other})


@every_array
def test_an_array_with_another_number_of_axes(model, name):
    """An array with another number of axes has the wrong shape."""
    with pytest.raises(ValueError, match=f"'{name}' has the shape"):
        _load(model, **{name: FITTED[model].to_arrays()[name][None]})


@every_array
def test_sizes_agree(model, name):
    """An array that is longer along any axis does not fit the others, unless its length is free."""
    array = FITTED[model].to_arrays()[name]
    free = {("CoL", "elbo"), ("CoL", "label_objective")}  # one number per step

    for axis in range(array.ndim):
        longer = np.repeat(array, [1] * (array.shape[axis] - 1) + [2], axis=axis)
        is_free = (model, name) in free

        assert bool(_complaint(model, **{name: longer})) != is_free


@every_array
def test_numbers_outside_their_range(model, name):
    """Both ends of a range are allowed, numbers beyond them and NaN are not."""
    least, most = RANGES[model][name]
    is_real = FITTED[model].to_arrays()[name].dtype.kind == "f"
    message = f"{name!r} holds values from"

    for end, direction in ((least, -1), (most, 1)):
        if end is not None:
            beyond = np.nextafter(end, direction * np.inf) if is_real else end + direction
            assert message in _complaint(model, **{name: _with(model, name, beyond)})
            assert message not in _complaint(model, **{name: _with(model, name, end)})
    if is_real and (least, most) != (None, None):
        assert message in _complaint(model, **{name: _with(model, name, np.nan)})


@pytest.mark.parametrize("model", FITTED)
def test_other_labels_and_words(model):
    """Arrays have as many labels and words as the file; only rules may use fewer words."""
    arrays, tuned = FITTED[model].to_arrays(), FITTED[model].tuned_
    words = 2 if model == "BoosTexter" else N_WORDS + 1

    for labels, n_words in ((NAMES[:-1], N_WORDS), ([*NAMES, "x"], N_WORDS), (NAMES, words)):
        with pytest.raises(ValueError, match="must"):
            clone(FITTED[model]).from_arrays(arrays, labels=labels, n_words=n_words, tuned=tuned)


def test_single_precision():
    """Arrays in single precision are also accepted in double precision."""
    for model, names in {"MML": ["weights", "vectors"], "CoL": ["beta"]}.items():
        for dtype in (np.float32, np.float64):
            arrays = FITTED[model].to_arrays()

            _load(model, **{name: arrays[name].astype(dtype) for name in names})


@pytest.mark.parametrize("model", ["MML", "BoosTexter", "CoL"])
@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"columns": [0, 1, 3]}, "'columns' must hold the labels with documents"),
        ({"columns": [0, 1, 1]}, "'columns' must hold the labels with documents"),
        ({"fallback": []}, "'fallback' must hold a label set"),
        ({"fallback": [1, 1]}, "'fallback' must hold a label set"),
        ({"fallback": [1, 0]}, "'fallback' must hold a label set"),
        ({"label_docs": [5, 5, 5, 0], "docs": [15, 6]}, "has more documents than there are"),
        ({"label_docs": [5, 9, 5, 0], "docs": [8, 5]}, "has more documents than there are"),
        ({"label_docs": [5, 5, 5, 0], "docs": [16, 5]}, "there are documents without a label"),
    ],
    ids=str,
)
def test_labels_and_documents_that_do_not_fit(model, changed, complaint):
    """No corpus has such labels and documents."""
    changed = {name: np.array(values, dtype=np.int64) for name, values in changed.items()}

    with pytest.raises(ValueError, match=complaint):
        _load(model, **changed)


@pytest.mark.parametrize("model", ["MML", "BoosTexter", "CoL"])
def test_extreme_labels_and_documents(model):
    """All documents may have the fallback, or one label each."""
    for label_docs, docs in (([5, 5, 5, 0], [5, 5]), ([5, 5, 5, 0], [15, 5])):
        changed = {"label_docs": np.array(label_docs), "docs": np.array(docs)}

        assert not _complaint(model, **changed, fallback=np.array([0]))


def test_sizes_of_label_sets():
    """There is a vector for each size of label sets, from none to all labels."""
    vectors, weights = (FITTED["MML"].to_arrays()[name] for name in ("vectors", "weights"))
    rows = [np.resize(vectors, (n, vectors.shape[1])) for n in range(6)]

    assert [bool(_complaint("MML", vectors=v)) for v in rows] == [True] * 2 + [False] * 3 + [True]
    with pytest.raises(ValueError, match="there are vectors for"):
        _load("MML", vectors=vectors[:, :0], weights=weights[:, :0])


def test_topics():
    """There must be a topic, and a probability for each size of label sets."""
    arrays = FITTED["CoL"].to_arrays()
    none = {name: arrays[name][:, :0] for name in ("alpha", "beta", "label_topics")}
    sizes = [np.full(n, 1 / n) for n in range(1, 6)]

    with pytest.raises(ValueError, match="there is no topic"):
        _load("CoL", **none)
    complaints = [_complaint("CoL", size_proba=proba) for proba in sizes]
    assert [bool(complaint) for complaint in complaints] == [True, False, False, False, True]


def test_probabilities_sum_to_one():
    """Probabilities sum to one, up to rounding, which is coarser in single precision."""
    arrays = FITTED["CoL"].to_arrays()

    for name, rounding in (("beta", 1e-3), ("size_proba", 1e-6)):
        exact = arrays[name].astype(np.float64)
        exact /= exact.sum(axis=0)
        complaints = [
            _complaint("CoL", **{name: exact * (1 + part * rounding)})
            for part in (-1.1, -0.9, 0.9, 1.1)
        ]
        assert ["sum to one" in complaint for complaint in complaints] == [True, False, False, True]


def test_covariance():
    """The covariance is symmetric, and has no negative eigenvalue."""
    crooked = np.eye(3)
    crooked[0, 1] = 0.1

    with pytest.raises(ValueError, match="must be symmetric"):
        _load("CoL", covariance=crooked)
    with pytest.raises(ValueError, match="no negative eigenvalue"):
        _load("CoL", covariance=-np.eye(3))
    _load("CoL", covariance=np.eye(3))


def test_biases_sum_to_one():
    """The biases of two labels sum to one, up to rounding."""
    bias = np.full((4, 4), 0.5)

    for change, is_wrong in ((1.1e-6, True), (0.9e-6, False), (-1.1e-6, True)):
        other = bias.copy()
        other[0, 1] += change
        assert ("must sum to one" in _complaint("PMM2", bias=other)) == is_wrong


def test_label_sets_in_order():
    """Label sets are sorted and distinct, and there is at least one."""
    sets = {"set_indices": [0, 1], "set_indptr": [0, 1, 2], "set_docs": [2.0, 3.0]}
    wrong = [
        sets | {"set_indices": [1, 0]},
        sets | {"set_indices": [0, 0]},
        {"set_indices": [], "set_indptr": [0], "set_docs": []},
    ]

    for changed in wrong:
        arrays = {
            name: np.array(values, dtype=np.float64 if name == "set_docs" else np.int64)
            for name, values in changed.items()
        }
        with pytest.raises(ValueError, match="must be sorted and distinct"):
            _load("NaiveBayes", **arrays)


@pytest.mark.parametrize(
    ("model", "name", "least", "most"),
    [
        ("PMM2", "smoothing", TINY, LARGEST),
        ("PMM2", "temperature", 1e-6, 1e6),
        ("MML", "C", TINY, LARGEST),
        ("CoL", "threshold", -LARGEST, 0),
        ("CoL", "temperature", 1e-6, 1e6),
    ],
)
def test_ranges_of_tuned_values(model, name, least, most):
    """Both ends of a range are allowed; values beyond them, and other types, are not."""
    usual = dict(FITTED[model].tuned_)

    for value in (least, most):
        assert _load(model, tuned=usual | {name: value}).tuned_[name] == value
    for value in (np.nextafter(least, -np.inf), np.nextafter(most, np.inf), "1", None):
        with pytest.raises(ValueError, match=f"the tuned {name} == .*, must be from"):
            _load(model, tuned=usual | {name: value})


def test_a_threshold_is_needed():
    """The tuned values of CoL must have a threshold."""
    with pytest.raises(ValueError, match="the tuned values have no threshold"):
        _load("CoL", tuned={})


def test_unknown_tuned_values():
    """A model accepts only values that it may have tuned, by name."""
    with pytest.raises(ValueError, match="'tol' was tuned, which this model never tunes"):
        _load("MML", tuned={"tol": 1.0})
    with pytest.raises(ValueError, match="are a list, must be a mapping"):
        _load("MML", tuned=["C"])


@pytest.mark.parametrize(
    ("curve", "complaint"),
    [
        (1.0, "must be two lists"),
        ([[0.0]], "must be two lists"),
        ([[0.0], [0.5], [0.5]], "must be two lists"),
        ([[], []], "a probability for each score"),
        ([[0.0, 1.0], [0.5]], "a probability for each score"),
        ([[[0.0]], [[0.5]]], "two lists of finite numbers"),
        ([[np.inf], [0.5]], "two lists of finite numbers"),
        ([[np.nan], [0.5]], "two lists of finite numbers"),
        ([[0.0], [1.1]], "map numbers to probabilities"),
        ([[0.0], [-0.1]], "map numbers to probabilities"),
        ([[0.0, 1.0], [0.5, 1.1]], "map numbers to probabilities"),
        ([[1.0, 0.0], [0.5, 0.6]], "must not decrease"),
        ([[0.0, 1.0], [0.6, 0.5]], "must not decrease"),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["set_curve", "label_curve"])
def test_invalid_curves(name, curve, complaint):
    """A curve maps rising scores to rising probabilities."""
    with pytest.raises(ValueError, match=f"the curve '{name}' .*{complaint}"):
        _load("MML", tuned={name: curve})


@pytest.mark.parametrize("curve", [[[0.0], [0.5]], ([0.0, 0.0], [0.0, 0.0]), [[0.0, 1.0], [0, 1]]])
def test_valid_curves(curve):
    """A curve may have a single point, may be flat, and may reach 0 and 1."""
    assert _load("MML", tuned={"label_curve": curve}).tuned_ == {"label_curve": curve}


def test_rows_of_counts():
    """Rows must be consecutive, with ascending columns."""
    arrays = FITTED["NaiveBayes"].to_arrays()
    indices, indptr = arrays["indices"].copy(), arrays["indptr"]
    indices[[0, 1]] = indices[[1, 0]]

    with pytest.raises(ValueError, match="columns in each row of 'data' must ascend"):
        _load("NaiveBayes", indices=indices)
    with pytest.raises(ValueError, match="rows of 'data' overlap or leave gaps"):
        _load("NaiveBayes", indptr=indptr[::-1].copy())


def test_rows_of_label_sets():
    """A label set must have labels, each once."""
    for indices, indptr, complaint in (
        ([0, 0], [0, 2], "columns in each row of 'set_indices' must ascend"),
        ([0], [0, 0, 1], "'set_indices' has an empty row"),
    ):
        sets = {"set_indices": np.array(indices), "set_indptr": np.array(indptr)}
        with pytest.raises(ValueError, match=complaint):
            _load("NaiveBayes", **sets, set_docs=np.ones(len(indptr) - 1))


def test_few_counts_of_very_many_labels_and_words():
    """A small file cannot use up memory by a table of very many labels times words."""
    many = 20_000
    arrays = {
        "data": np.zeros(0),
        "indices": np.zeros(0, dtype=np.int64),
        "indptr": np.zeros(many + 1, dtype=np.int64),
        "set_indices": np.array([0]),
        "set_indptr": np.array([0, 1]),
        "set_docs": np.ones(1),
        "world_counts": np.zeros(many),
    }

    with pytest.raises(ValueError, match=r"would take 6\.0 GiB of memory"):
        NaiveBayes().from_arrays(arrays, labels=[f"{k:05}" for k in range(many)], n_words=many)
