"""Validation of what models are given: documents, labels, parameters, and tuned values in files."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_scalar
from sklearn.utils.validation import check_non_negative, validate_data

from polytopic.array_specs import check_sparse
from polytopic.counts import LARGEST, canonical_counts
from polytopic.errors import PolytopicError
from polytopic.labels import canonical, read_targets
from polytopic.parameters import check_number
from polytopic.text.weights import is_valid_counts

SMALLEST_PSEUDO_COUNT = 1e-300  # its logarithm and its shares keep their full precision
LARGEST_WEIGHT = 1e15  # of linear models: products of two are finite in single precision
SMALLEST_COST = 1e-30  # its inverse is finite in single precision
LARGEST_NUMBER = 2**31 - 1  # of neighbours, trees and splits
SMALLEST_DIVISOR = 1 / LARGEST
LARGEST_FLOAT = float(np.finfo(np.float64).max)
ROUNDING = 1e-6  # largest error of sums of probabilities, in double precision

SMALL_MEMORY = 1 << 30  # bytes that need no check
CONTROL_GROUPS = (  # files with the memory limit of a container
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)

# The tuned values of a model: the range of a number, None for a curve of probabilities
Ranges = Mapping[str, tuple[float, float] | None]


def check_fits(model, n_words: int, n_labels: int, cell_bytes: int) -> None:
    """Raise PolytopicError if arrays of words × labels do not fit into the memory of the machine.

    Parameters
    ----------
    model : object
        The model that is to be fitted.
    n_words, n_labels : int
        The size of the arrays.
    cell_bytes : int
        How many bytes fitting takes per word and label.
    """
    needed = n_words * n_labels * cell_bytes
    if needed <= SMALL_MEMORY:
        return
    available = memory_of_machine()
    if needed > available:
        raise PolytopicError(
            f"{type(model).__name__} would need about {needed / 2**30:,.0f} GiB of memory for "
            f"{n_labels:,} labels and {n_words:,} words, and the machine has "
            f"{available / 2**30:,.0f} GiB. Use the default model or CandidateStack (--model "
            "candidate-stack), which are sparse, or fewer words (max_terms, min_df)."
        )


def memory_of_machine() -> float:
    """Return the bytes of memory of this machine or, in a container, those that it allows."""
    texts = (path.read_text().strip() for path in CONTROL_GROUPS if path.is_file())
    limits = [int(text) for text in texts if text.isdigit()]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=math.inf)


def check_pseudo_count(value, name):
    """Reject anything but a number whose sums, quotients and logarithms are finite."""
    check_number(value, name, min_val=0, include_boundaries="neither")
    if value < SMALLEST_PSEUDO_COUNT:
        raise ValueError(f"{name} == {value}, must be >= {SMALLEST_PSEUDO_COUNT}.")
    if not float(value) < LARGEST:
        raise ValueError(f"{name} == {value}, must be < {LARGEST}.")


def check_cost(value, name):
    """Reject anything but a positive number whose inverse is finite in single precision."""
    check_number(value, name, min_val=0, include_boundaries="neither")
    if value < SMALLEST_COST:
        raise ValueError(f"{name} == {value}, must be >= {SMALLEST_COST}.")


def check_size(value, name):
    """Reject anything but a whole number from 1 to the largest that fits into 32 bits."""
    check_scalar(value, name, Integral, min_val=1, max_val=LARGEST_NUMBER)


def check_name(value, name, known):
    """Raise if a value is not one of the known names."""
    if not (isinstance(value, str) and value in known):
        raise ValueError(f"{name} == {value!r}, must be one of {', '.join(known)}.")


def is_auto(value):
    """Return whether a parameter is to be tuned on documents."""
    return isinstance(value, str) and value == "auto"


def check_number_or(others, value, name):
    """Raise if a value is not a number; ``others`` says what else is allowed."""
    if not isinstance(value, Real):
        wrong = ValueError if isinstance(value, str) else TypeError
        raise wrong(f"{name} == {value!r}, must be a number{others}.")


def check_words(model, X, *, reset=False):
    """Return word counts as a canonical CSR matrix."""
    if not reset and _are_counts(model, X):
        return X
    check_sparse(X)
    X = validate_data(model, X, accept_sparse="csr", dtype=np.float64, reset=reset)
    check_non_negative(X, f"{type(model).__name__} (X holds word counts)")
    X = canonical_counts(X)
    if X.data.size and X.data.max() > LARGEST:
        raise ValueError(f"X holds {X.data.max()}, word counts must be <= {LARGEST}.")
    return X


def _are_counts(model, X):
    """Return whether a matrix certainly holds valid counts.

    This is a fast path: scikit-learn, which is slower, checks all other matrices.
    """
    return (
        is_valid_counts(model, X, reset=False)
        and X.data.size > 0
        and bool(X.data.min() > 0)
        and bool(X.data.max() <= LARGEST)
    )


def check_documents(model, X, Y, sample_weight, *, reset):
    """Return word counts, targets and weights; counting them compares their numbers."""
    targets = read_targets(Y)
    X = check_words(model, X, reset=reset)
    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, X.shape[0])
    return X, targets, sample_weight


def _check_sample_weight(sample_weight, n_docs):
    """Return one weight per document; a number stands for the same weight everywhere."""
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_docs, sample_weight, dtype=np.float64)
    weights = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.shape != (n_docs,):
        raise ValueError(f"sample_weight.shape == {weights.shape}, must be {(n_docs,)}.")
    if not weights.any():
        raise ValueError("sample_weight is zero for every document, must be > 0 for some.")
    check_non_negative(weights, "`sample_weight`")
    return weights


def check_sets(X, Y, classes):
    """Return given label sets as an indicator over ``classes``; ``X`` may be None."""
    targets = read_targets(Y)
    if targets.form.is_indicator and len(targets.labels) != classes.size:
        raise ValueError(
            f"Y has {len(targets.labels)} columns and the model has {classes.size} labels."
        )
    if X is not None:
        check_same_length(X, targets.Y)
    return targets.Y if targets.form.is_indicator else targets.over(classes.tolist())


def check_mixture(X, mixture, sets, classes):
    """Return given shares of the labels of documents, normalized: each row sums to one.

    ``sets`` are the label sets (CSR) over ``classes``; None for the labels that have a share.
    """
    shape = X.shape[0], classes.size
    mixture = check_array(
        mixture, dtype=np.float64, ensure_2d=False, allow_nd=True, input_name="mixture"
    )
    if mixture.shape != shape:
        raise ValueError(
            f"mixture.shape == {mixture.shape}, must be {shape}: one share per document and label."
        )
    if (mixture < 0).any():
        raise ValueError(f"mixture holds {mixture.min()}, shares must be >= 0.")
    of_set = mixture > 0 if sets is None else sets.toarray() > 0
    foreign = np.argwhere((mixture > 0) & ~of_set)
    if len(foreign):
        doc, label = foreign[0]
        raise ValueError(
            f"mixture gives document {doc} a share of {classes[label]!r}, which is not one of its "
            "labels."
        )
    largest = mixture.max(axis=1, keepdims=True)
    empty = (largest[:, 0] == 0) & (of_set.any(axis=1) | (sets is None))
    if empty.any():
        raise ValueError(f"mixture gives document {np.argmax(empty)} no share of any label.")
    mixture = mixture / np.where(largest > 0, largest, 1.0)  # sums are then finite
    return mixture / np.where(largest > 0, mixture.sum(axis=1, keepdims=True), 1.0)


def check_same_length(X, Y):
    """Raise if ``X`` and ``Y`` have different numbers of documents."""
    if X.shape[0] != Y.shape[0]:
        raise ValueError(
            f"X has {X.shape[0]} documents and Y has {Y.shape[0]}; the numbers must be equal."
        )


def check_form(targets, form, declared):
    """Raise unless targets have the form and the columns of the first fit."""
    if not form.is_compatible(targets.form):
        raise ValueError(
            f"Y has the form {targets.form.kind!r}, but the model was fitted on {form.kind!r}; "
            "always pass the same form."
        )
    if targets.form.is_indicator and len(targets.labels) != len(declared):
        raise ValueError(
            f"Y has {len(targets.labels)} columns and the model has {len(declared)} labels; "
            "declare new ones in classes, or pass labels by name."
        )


def declare_labels(known, classes, targets):
    """Return the labels declared before, and those of ``classes``."""
    classes = canonical(np.asarray(classes).tolist())
    unknown = sorted(set(targets.labels) - set(classes) - set(known))
    if unknown:
        raise ValueError(f"Y holds {unknown!r}, which is not in classes == {classes!r}.")
    return tuple(canonical([*known, *classes]))


def select_whole_documents(X, targets, sample_weight):
    """Return the documents whose weight is one, and their targets."""
    if sample_weight is None:
        return X, targets
    whole = sample_weight == 1.0
    Y = targets.Y[whole]
    used = np.unique(Y.indices)
    return X[whole], replace(targets, Y=Y[:, used], labels=tuple(targets.labels[c] for c in used))


def require_counts(counts, consequence="it cannot learn or forget"):
    """Return the counts; raise if the model was loaded from a file without them."""
    if counts is None:
        raise PolytopicError(
            f"this model was saved without its counts, so {consequence}; save it with counts=True."
        )
    return counts


def check_tuned(tuned: Mapping[str, Any] | None, ranges: Ranges) -> dict[str, Any]:
    """Return tuned parameters; raise unless each value is in its range.

    A curve is a pair of ascending lists: scores, and their probabilities.
    """
    if tuned is not None and not isinstance(tuned, Mapping):
        raise ValueError(f"the tuned values are a {type(tuned).__name__}, must be a mapping")
    values = dict(tuned or {})
    for name, value in values.items():
        if name not in ranges:
            raise ValueError(f"{name!r} was tuned, which this model never tunes")
        allowed = ranges[name]
        if allowed is None:
            check_curve(name, value)
        elif not isinstance(value, int | float) or not allowed[0] <= value <= allowed[1]:
            raise ValueError(
                f"the tuned {name} == {value!r}, must be from {allowed[0]} to {allowed[1]}"
            )
    return values


def check_curve(name, curve):
    """Raise unless these are ascending scores and their ascending probabilities."""
    if not isinstance(curve, list | tuple) or len(curve) != 2:
        raise ValueError(f"the curve {name!r} must be two lists, scores and probabilities")
    for values in curve:
        if not isinstance(values, list | tuple) or not all(map(_is_number, values)):
            raise ValueError(f"the curve {name!r} must be two lists of finite numbers")
    scores, proba = (np.asarray(values, dtype=np.float64) for values in curve)
    if scores.shape != proba.shape or not scores.size:
        raise ValueError(f"the curve {name!r} must have a probability for each score")
    if not ((proba >= 0) & (proba <= 1)).all():
        raise ValueError(f"the curve {name!r} must map numbers to probabilities")
    if (scores[1:] < scores[:-1]).any() or (proba[1:] < proba[:-1]).any():
        raise ValueError(f"the curve {name!r} must not decrease")


def _is_number(value):
    """Return whether a value of a file is a number that a float can represent."""
    return type(value) in (int, float) and abs(value) <= LARGEST_FLOAT
