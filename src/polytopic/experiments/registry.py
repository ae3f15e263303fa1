"""The methods by name: polytopic's models, as their registry lists them, and the baselines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from polytopic.decision import LabelDecision, tune_decision
from polytopic.experiments.baselines import BASELINES
from polytopic.experiments.methods import (
    Method,
    Prediction,
    Predictor,
    is_trained,
    ltc_weights,
    predict_by_scores,
    threshold_or_best,
)
from polytopic.experiments.protocols import Part
from polytopic.labeler.held_out import dense_scores
from polytopic.models.registry import ModelEntry, Variant, find_model, model_names

_REGISTERED: dict[str, Method] = {}


def register_method(method: Method) -> None:
    """Add a method at run time, so that it can be compared by name and ``--list`` shows it."""
    _REGISTERED[method.name] = method


def all_methods() -> dict[str, Method]:
    """Return all methods by name: registered models, then baselines, then registered methods."""
    methods = {method.name: method for method in (*_model_methods(), *BASELINES)}
    return methods | _REGISTERED


def default_methods() -> list[str]:
    """Return the names of the methods that are compared if none are named."""
    return [name for name, method in all_methods().items() if method.by_default]


def find_method(name: str) -> Method:
    """Return a method; raise ValueError if there is none of this name."""
    methods = all_methods()
    if name not in methods:
        raise ValueError(f"method == {name!r}, must be one of {', '.join(methods)}.")
    return methods[name]


def _model_methods() -> Iterator[Method]:
    """Yield a method for each variant of each registered model."""
    for entry in map(find_model, model_names()):
        for variant in entry.variants or (Variant(entry.title),):
            settings = {name: values[0] for name, values in variant.space.items()}
            by_threshold = variant.decision == "threshold"
            yield Method(
                f"{entry.name}-{variant.suffix}" if variant.suffix else entry.name,
                variant.title,
                partial(fit_model, entry, variant),
                settings=settings | ({"threshold": 0.0} if by_threshold else {}),
                space=variant.space,
                decide=threshold_or_best if by_threshold else None,
                by_default=variant.by_default,
            )


def fit_model(
    entry: ModelEntry, variant: Variant, train: Part, settings: Mapping[str, Any], seed: int
) -> Predictor:
    """Fit a variant of a registered model, on counts or on ltc weights as the model needs."""
    settings = dict(settings)
    threshold = settings.pop("threshold", 0.0)
    model = entry.create(**{**variant.parameters, **settings})
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    weigh = ltc_weights(train) if model.reads == "weights" else _counts
    X = weigh(train)
    if variant.decision == "rule":
        model = LabelDecision(model, tune_decision(model, X, train.Y).best_rule)
    model.fit(X, train.Y)
    if variant.decision == "threshold":
        return predict_by_scores(
            train, lambda part: model.decision_function(weigh(part)), threshold
        )

    def predict(part: Part) -> Prediction:
        X = weigh(part)
        scores = model.decision_function(X)
        if variant.decision == "rule":
            return Prediction(model.predict(X), scores)
        proba = model.predict_proba(X)
        if sparse.issparse(scores):  # of candidates; the corpora of comparisons are small
            scores, proba = dense_scores(scores, floor=False), proba.toarray()
        scores = np.where(is_trained(train), scores, -np.inf)
        return Prediction(model.predict_indicator(X), scores, proba)

    return predict


def _counts(part: Part) -> Any:
    return part.X
