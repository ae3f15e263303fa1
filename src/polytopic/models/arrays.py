"""The arrays of fitted models in files and stores, and their validation.

Each table below specifies the type, shape and range of each array of a model. The functions that
read a model's arrays check them against its table, and then whether the arrays fit together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from polytopic.array_specs import (
    DOUBLE,
    REAL,
    WHOLE,
    ArraySpec,
    check_arrays,
    check_memory,
    check_rows,
)
from polytopic.counts import LARGEST, group_rows
from polytopic.labels import indicator

SMALLEST = 1 / LARGEST  # of divisors
LARGEST_WEIGHT = 1e15  # of linear weights: products of two are finite in single precision
SMALLEST_SINGLE = float(np.finfo(np.float32).smallest_subnormal)
ROUNDING = 1e-6  # largest error of sums of probabilities, in double precision
SINGLE_ROUNDING = 1e-3  # in single precision

# Naive Bayes: word counts per label, label sets and their documents, word counts of the corpus
COUNTS = {
    "data": ArraySpec(DOUBLE, ("n_counts",), 0, LARGEST),
    "indices": ArraySpec(WHOLE, ("n_counts",), 0, below="n_words"),
    "indptr": ArraySpec(WHOLE, ("n_labels+1",), 0),
    "set_indices": ArraySpec(WHOLE, ("n_members",), 0, below="n_labels"),
    "set_indptr": ArraySpec(WHOLE, ("n_sets+1",), 0),
    "set_docs": ArraySpec(DOUBLE, ("n_sets",), SMALLEST, LARGEST),
    "world_counts": ArraySpec(DOUBLE, ("n_words",), 0, LARGEST),
}

# PMM1 and PDMM: also the trace of learning
MIXTURE = COUNTS | {
    "objective": ArraySpec(DOUBLE, (1,), -np.inf, np.inf),
    "n_iter": ArraySpec(WHOLE, (1,), 0),
}

# PMM2: also the biases between labels
BIASED_MIXTURE = MIXTURE | {"bias": ArraySpec(DOUBLE, ("n_labels", "n_labels"), 0, 1)}

# Document models: the labels that have documents, and how many
LABELS = {
    "columns": ArraySpec(WHOLE, ("n_columns",), 0, below="n_labels"),
    "fallback": ArraySpec(WHOLE, ("n_fallback",), 0, below="n_labels"),
    "label_docs": ArraySpec(WHOLE, ("n_labels",), 0),
    "docs": ArraySpec(WHOLE, (2,), 1),  # in all, and with the fallback
}

# MML: weights of words for labels, and vectors of the sizes of label sets
MARGINS = LABELS | {
    "weights": ArraySpec(REAL, ("n_words", "rank", "n_columns"), -LARGEST_WEIGHT, LARGEST_WEIGHT),
    "vectors": ArraySpec(REAL, ("n_sizes", "rank"), -LARGEST_WEIGHT, LARGEST_WEIGHT),
}

# MML with listed label sets: weights of words for each
LISTED = LABELS | {
    "set_weights": ArraySpec(DOUBLE, ("n_words", "n_sets"), -LARGEST_WEIGHT, LARGEST_WEIGHT),
}

# BoosTexter: rules of one word each
RULES = LABELS | {
    "words": ArraySpec(WHOLE, ("n_rules",), 0, below="n_words"),
    "outputs": ArraySpec(DOUBLE, ("n_rules", "n_columns"), -LARGEST_WEIGHT, LARGEST_WEIGHT),
    "z": ArraySpec(DOUBLE, ("n_rules",), -ROUNDING, 1 + ROUNDING),  # a difference, so inexact
}

# CoL: topics of labels, words of topics, and the covariance of labels
TOPICS = LABELS | {
    "alpha": ArraySpec(DOUBLE, ("n_columns", "n_topics"), SMALLEST, LARGEST),
    "beta": ArraySpec(REAL, ("n_words", "n_topics"), SMALLEST_SINGLE, 1 + ROUNDING),
    "label_topics": ArraySpec(DOUBLE, ("n_columns", "n_topics"), 0, 1 + ROUNDING),
    "mean": ArraySpec(DOUBLE, ("n_columns",), -1e3, 1e3),
    "covariance": ArraySpec(DOUBLE, ("n_columns", "n_columns"), -1e6, 1e6),
    "size_proba": ArraySpec(DOUBLE, ("n_sizes",), 0, 1),
    "words": ArraySpec(DOUBLE, ("n_words",), 0, LARGEST),
    "elbo": ArraySpec(DOUBLE, ("n_steps",)),
    "label_objective": ArraySpec(DOUBLE, ("n_label_steps",)),
}

# What each model tunes on documents: the range of a number, None for a curve of probabilities
Ranges = Mapping[str, tuple[float, float] | None]
NOTHING_TUNED: Ranges = {}
TUNED_BY_MIXTURES: Ranges = {"smoothing": (SMALLEST, LARGEST), "temperature": (1e-6, 1e6)}
TUNED_BY_MARGINS: Ranges = {"C": (SMALLEST, LARGEST), "set_curve": None, "label_curve": None}
TUNED_BY_TOPICS: Ranges = {
    "threshold": (-LARGEST, 0),  # below the best label's score
    "temperature": (1e-6, 1e6),
    "label_curve": None,
}


def counts_to_arrays(label_counts, sets, set_docs, world_counts):
    """Return word counts of labels and of the corpus, and label sets with their documents."""
    return {
        "data": label_counts.data,
        "indices": label_counts.indices.astype(np.int64),
        "indptr": label_counts.indptr.astype(np.int64),
        "set_indices": sets.indices.astype(np.int64),
        "set_indptr": sets.indptr.astype(np.int64),
        "set_docs": set_docs,
        "world_counts": world_counts,
    }


def counts_from_arrays(arrays, n_labels, n_words, specs=COUNTS):
    """Return the arguments of :func:`counts_to_arrays`, by name, after validation."""
    sizes = check_arrays(arrays, specs, n_labels=n_labels, n_words=n_words)
    check_rows("data", arrays["indices"], arrays["indptr"])
    check_rows("set_indices", arrays["set_indices"], arrays["set_indptr"], empty=False)
    check_memory(2 * 8 * n_labels * n_words, arrays)  # both dense tables of word probabilities
    sets = indicator(arrays["set_indices"], arrays["set_indptr"], n_labels)
    if not sizes["n_sets"] or (group_rows(sets) != np.arange(sizes["n_sets"])).any():
        raise ValueError("label sets must be in sorted order, each once, and at least one")
    if "bias" in specs and (np.abs(arrays["bias"] + arrays["bias"].T - 1) > ROUNDING).any():
        raise ValueError("biases of two labels must sum to one")
    label_counts = sparse.csr_matrix(
        (arrays["data"], arrays["indices"], arrays["indptr"]), shape=(n_labels, n_words)
    )
    return {
        "label_counts": label_counts,
        "sets": sets,
        "set_docs": arrays["set_docs"],
        "world_counts": arrays["world_counts"],
    }


def check_margins(arrays, n_labels, n_words):
    """Raise if arrays are not weights of this number of labels and words."""
    sizes = check_arrays(arrays, MARGINS, n_labels=n_labels, n_words=n_words)
    _check_labels(arrays)
    if not 2 <= sizes["n_sizes"] <= sizes["n_columns"] + 1 or not sizes["rank"]:
        raise ValueError(
            f"there are vectors for {sizes['n_sizes']} sizes of label sets, "
            f"must be for 2 to {sizes['n_columns'] + 1}"
        )


def check_set_weights(arrays, n_labels, n_words, *, empty):
    """Return the sizes of the sets that have weights; raise if arrays do not fit together.

    There are all sets of labels with documents, with the empty one or not, or single labels.
    """
    n_sets = check_arrays(arrays, LISTED, n_labels=n_labels, n_words=n_words)["n_sets"]
    _check_labels(arrays)
    n_columns = arrays["columns"].size
    if n_sets == n_columns:
        return range(1, 2)
    if n_columns > 60 or n_sets != 2**n_columns - (not empty):
        raise ValueError(f"there are weights of {n_sets} sets of {n_columns} labels, must be all")
    return range(0 if empty else 1, n_columns + 1)


def check_rules(arrays, n_labels, n_words):
    """Raise if arrays are not rules of this number of labels and words."""
    check_arrays(arrays, RULES, n_labels=n_labels, n_words=n_words)
    _check_labels(arrays)


def check_topics(arrays, n_labels, n_words):
    """Raise if arrays are not topics of this number of labels and words."""
    sizes = check_arrays(arrays, TOPICS, n_labels=n_labels, n_words=n_words)
    _check_labels(arrays)
    check_memory(8 * n_words * sizes["n_columns"], arrays)  # the words of labels
    if not sizes["n_topics"]:
        raise ValueError("there is no topic")
    if (np.abs(arrays["beta"].sum(axis=0, dtype=np.float64) - 1) > SINGLE_ROUNDING).any():
        raise ValueError("the words of a topic must have probabilities that sum to one")
    if not 2 <= sizes["n_sizes"] <= sizes["n_columns"] + 1:
        raise ValueError("there are more sizes of label sets than labels, or none")
    if abs(arrays["size_proba"].sum() - 1) > ROUNDING:
        raise ValueError("the sizes of label sets must have probabilities that sum to one")
    _check_covariance(arrays["covariance"])


def _check_covariance(covariance):
    from polytopic.models.col.label_prior import cholesky  # here: other models need not load it

    if not np.array_equal(covariance, covariance.T):
        raise ValueError("'covariance' must be symmetric")
    try:
        cholesky(covariance)
    except np.linalg.LinAlgError:
        raise ValueError("'covariance' must have no negative eigenvalue") from None


def _check_labels(arrays):
    """Raise if labels and documents do not fit together."""
    columns, fallback, label_docs = (arrays[name] for name in ("columns", "fallback", "label_docs"))
    n_docs, fallback_docs = arrays["docs"].tolist()
    if not np.array_equal(np.sort(columns), np.flatnonzero(label_docs)):
        raise ValueError("'columns' must hold the labels with documents, each once")
    if not fallback.size or (np.diff(fallback) <= 0).any():
        raise ValueError("'fallback' must hold a label set in rising order")
    if not fallback_docs <= label_docs[fallback].min() <= label_docs.max() <= n_docs:
        raise ValueError("a label or label set has more documents than there are")
    if label_docs.astype(np.float64).sum() < n_docs:
        raise ValueError("there are documents without a label")


def check_tuned(tuned: Mapping[str, Any] | None, ranges: Ranges) -> dict[str, Any]:
    """Return tuned parameters; raise unless each value is in its range.

    A curve is a pair of ascending lists: scores, and their probabilities.
    """
    if tuned is not None and not isinstance(tuned, Mapping):
        raise ValueError(f"what was chosen is a {type(tuned).__name__}, must be a mapping")
    found = dict(tuned or {})
    for name, value in found.items():
        if name not in ranges:
            raise ValueError(f"{name!r} was chosen, which this model never chooses")
        allowed = ranges[name]
        if allowed is None:
            _check_curve(name, value)
        elif not isinstance(value, int | float) or not allowed[0] <= value <= allowed[1]:
            raise ValueError(
                f"{name} == {value!r} was chosen, must be from {allowed[0]} to {allowed[1]}"
            )
    return found


def _check_curve(name, curve):
    if not isinstance(curve, list | tuple) or len(curve) != 2:
        raise ValueError(f"the curve {name!r} must be two lists, scores and probabilities")
    scores, proba = (np.asarray(values, dtype=np.float64) for values in curve)
    if scores.ndim != 1 or scores.shape != proba.shape or not scores.size:
        raise ValueError(f"the curve {name!r} must have a probability for each score")
    if not np.isfinite(scores).all() or not ((proba >= 0) & (proba <= 1)).all():
        raise ValueError(f"the curve {name!r} must lead from numbers to probabilities")
    if (np.diff(scores) < 0).any() or (np.diff(proba) < 0).any():
        raise ValueError(f"the curve {name!r} falls, must rise")


def lookup(matrix, row, column):
    """Return the values of a CSR matrix at these places, 0 where it has none."""
    if not row.size:
        return np.zeros(0)
    return np.asarray(matrix[row, column]).ravel()
