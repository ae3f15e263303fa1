"""Polytopic's own models, with their default settings and as in the papers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from polytopic.decision import LabelDecision, tune_decision
from polytopic.experiments.baselines import predict_by_scores, threshold_or_best
from polytopic.experiments.methods import Method, Prediction, Predictor
from polytopic.experiments.parts import Part
from polytopic.models import MML, PDMM, PMM1, PMM2, BoosTexter, NaiveBayes
from polytopic.models.registry import create_model
from polytopic.text.weights import TermWeights


def _fitter(make, *, weighted: bool = False):
    """Return a function that fits a model, on counts or on ltc weights."""

    def fit(train: Part, settings: Mapping[str, Any], seed: int) -> Predictor:
        weights = TermWeights("ltc").fit(train.X) if weighted else None

        def weigh(part: Part) -> sparse.csr_matrix:
            return part.X if weights is None else weights.transform(part.X)

        model = make(**settings)
        if "random_state" in model.get_params():
            model.set_params(random_state=seed)
        model.fit(weigh(train), train.Y)

        def predict(part: Part) -> Prediction:
            X = weigh(part)
            scores = model.decision_function(X)
            known = np.asarray(train.Y.sum(axis=0)).ravel() > 0
            scores = np.where(known, scores, -np.inf)
            return Prediction(model.predict_indicator(X), scores, model.predict_proba(X))

        return predict

    return fit


def _paper(make):
    """Return a mixture with the settings of its paper."""
    return lambda **settings: make(prior="uniform", decode="greedy", smoothing=1.0, **settings)


def _fit_with_rule(train: Part, settings: Mapping[str, Any], seed: int) -> Predictor:
    """Fit naive Bayes with the decision rule that is best in cross-validation."""
    rule = tune_decision(NaiveBayes(**settings), train.X, train.Y).best_rule
    model = LabelDecision(NaiveBayes(**settings), rule).fit(train.X, train.Y)
    return lambda part: Prediction(model.predict(part.X), model.decision_function(part.X))


def _fit_boostexter(train: Part, settings: Mapping[str, Any], seed: int) -> Predictor:
    """Fit BoosTexter with a threshold for its scores."""
    settings = dict(settings)
    threshold = settings.pop("threshold", 0.0)
    model = BoosTexter(**settings).fit(train.X, train.Y)
    return predict_by_scores(train, lambda part: model.decision_function(part.X), threshold)


def _own(name, title, fit, **more):
    return Method(name, title, fit, ours=True, **more)


OWN = [
    _own("mml", "MML, F", _fitter(lambda **s: MML(C="auto", calibrate=True, **s), weighted=True)),
    _own(
        "mml-exact",
        "MML, exact sets",
        _fitter(lambda **s: MML(C="auto", goal="exact", calibrate=True, **s), weighted=True),
    ),
    _own(
        "mml-dice",
        "MML, paper, Dice",
        _fitter(lambda **s: MML(labels="neighbours", **s), weighted=True),
        settings={"C": 1.0},
        space={"C": (1.0, 0.1, 10.0)},
    ),
    _own(
        "mml-cosine",
        "MML, paper, cosine",
        _fitter(lambda **s: MML(labels="neighbours", similarity="cosine", **s), weighted=True),
        settings={"C": 1.0},
        space={"C": (1.0, 0.1, 10.0)},
    ),
    _own("pmm1", "PMM1", _fitter(PMM1)),
    _own("pmm1-paper", "PMM1, paper", _fitter(_paper(PMM1))),
    _own("pmm2", "PMM2", _fitter(PMM2)),
    _own("pmm2-paper", "PMM2, paper", _fitter(_paper(PMM2))),
    _own("pdmm", "PDMM", _fitter(PDMM)),
    _own("nb", "naive Bayes, several labels", _fitter(NaiveBayes)),
    _own("nb-rule", "naive Bayes, tuned rule", _fit_with_rule),
    _own("boostexter", "BoosTexter, best label if none", _fitter(BoosTexter)),
    _own(
        "boostexter-plain",
        "BoosTexter",
        _fitter(lambda **s: BoosTexter(best_if_none=False, **s)),
        settings={"n_rounds": 1000},
    ),
    _own(
        "boostexter-threshold",
        "BoosTexter, tuned rounds and threshold",
        _fit_boostexter,
        settings={"n_rounds": 1000, "threshold": 0.0},
        space={"n_rounds": (1000, 100, 300, 3000)},
        decide=threshold_or_best,
    ),
    _own("col", "CoL", _fitter(lambda **s: create_model("col", **s))),
]
