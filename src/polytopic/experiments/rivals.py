"""The papers' rivals, mostly scikit-learn's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from polytopic.experiments.mccallum import McCallumMixture
from polytopic.experiments.methods import Answer, Answering, Method
from polytopic.experiments.neighbours import CosineNeighbours, MLkNN
from polytopic.experiments.parts import Part
from polytopic.text.weights import TermWeights


def given(scores: np.ndarray, threshold: float, *, best_if_none: bool) -> sparse.csr_matrix:
    """Return the labels whose scores pass a threshold; the best one where none does, if asked."""
    sets = scores > threshold
    if best_if_none:
        bare = ~sets.any(axis=1)
        sets[bare, scores[bare].argmax(axis=1)] = True
    return sparse.csr_matrix(sets.astype(float))


def given_or_best(scores: np.ndarray, threshold: float) -> sparse.csr_matrix:
    """Return the labels whose scores pass a threshold; the best one where none does."""
    return given(scores, threshold, best_if_none=True)


def weigh(train: Part) -> Callable[[Part], sparse.csr_matrix]:
    """Return what gives the ltc weights of a part."""
    weights = TermWeights("ltc").fit(train.X)
    return lambda part: weights.transform(part.X)


def answering(train: Part, scores_of, threshold: float, *, best_if_none=True, is_proba=False):
    """Return what answers by scores: labels that no document to learn from has are never given."""
    absent = np.asarray(train.Y.sum(axis=0)).ravel() == 0

    def answer(part: Part) -> Answer:
        scores = np.array(scores_of(part), dtype=float)
        proba = np.where(absent, 0.0, scores) if is_proba else None
        scores[:, absent] = -np.inf
        sets = given(scores, threshold, best_if_none=best_if_none)
        return Answer(sets, scores, proba)

    return answer


def one_vs_rest(estimator, X, Y):
    """Fit one classifier for each label, without warnings of labels that none or all have."""
    from sklearn.multiclass import OneVsRestClassifier

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Label not .* is present")
        return OneVsRestClassifier(estimator).fit(X, Y)


def linear_svm(*, best_if_none: bool):
    """Return what fits one linear SVM for each label."""

    def fit(train: Part, settings: Mapping[str, Any], seed: int) -> Answering:
        from sklearn.svm import LinearSVC

        seen, settings = weigh(train), dict(settings)
        threshold = settings.pop("threshold", 0.0)
        model = one_vs_rest(LinearSVC(random_state=seed, **settings), seen(train), train.Y)
        return answering(
            train,
            lambda part: model.decision_function(seen(part)),
            threshold,
            best_if_none=best_if_none,
        )

    return fit


def naive_bayes(train: Part, settings: Mapping[str, Any], seed: int) -> Answering:
    """Fit one multinomial naive Bayes for each label."""
    from sklearn.naive_bayes import MultinomialNB

    threshold, settings = _threshold(settings)
    model = one_vs_rest(MultinomialNB(**settings), train.X, train.Y)
    return answering(train, lambda part: model.predict_proba(part.X), threshold, is_proba=True)


def _threshold(settings: Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
    """Return the threshold of probabilities, and the other settings."""
    rest = dict(settings)
    return rest.pop("threshold", 0.5), rest


def neighbours(make):
    """Return what fits a method of nearest neighbours."""

    def fit(train: Part, settings: Mapping[str, Any], seed: int) -> Answering:
        threshold, settings = _threshold(settings)
        seen = weigh(train)
        model = make(**settings).fit(seen(train), train.Y)
        return answering(train, lambda part: model.proba(seen(part)), threshold, is_proba=True)

    return fit


def neural_network(train: Part, settings: Mapping[str, Any], seed: int) -> Answering:
    """Fit a network with one hidden layer of 50 units and weight decay."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    threshold, settings = _threshold(settings)
    seen = weigh(train)
    model = MLPClassifier(
        (50,), random_state=seed, batch_size=32, learning_rate_init=0.005, **settings
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # as many steps as it was given
        model.fit(seen(train), train.Y.toarray().astype(int))
    return answering(train, lambda part: model.predict_proba(seen(part)), threshold, is_proba=True)


def mccallum(train: Part, settings: Mapping[str, Any], seed: int) -> Answering:
    """Fit McCallum's mixture by EM."""
    model = McCallumMixture(**settings).fit(train.X, train.Y)
    return lambda part: Answer(model.predict(part.X))


def _svm(name: str, title: str, *, best_if_none: bool) -> Method:
    return Method(
        name,
        title,
        linear_svm(best_if_none=best_if_none),
        settings={"C": 1.0},
        space={"C": (1.0, 0.1, 10.0), "class_weight": (None, "balanced")},
    )


def _thresholded(method: Method) -> Method:
    """Return a method of probabilities whose threshold is tuned too."""
    return replace(
        method,
        name=f"{method.name}-threshold",
        title=f"{method.title}, tuned threshold",
        settings={**method.settings, "threshold": 0.5},
        decide=given_or_best,
    )


BY_HALF = [  # labels that are more probable than not
    Method(
        "nb-one-vs-rest",
        "naive Bayes, one for each label",
        naive_bayes,
        settings={"alpha": 1.0},
        space={"alpha": (1.0, 0.1, 0.01)},
    ),
    Method(
        "knn",
        "nearest neighbours, cosine",
        neighbours(CosineNeighbours),
        settings={"k": 10},
        space={"k": (10, 5, 20, 30)},
    ),
    Method(
        "mlknn",
        "ML-kNN",
        neighbours(MLkNN),
        settings={"k": 10},
        space={"k": (10, 5, 20, 30)},
    ),
    Method(
        "network",
        "neural network, 50 units",
        neural_network,
        settings={"alpha": 1e-4, "max_iter": 50},
        space={"alpha": (1e-4, 1e-3, 1e-2, 1e-5)},
    ),
]
RIVALS = [
    _svm("svm", "linear SVM, best label if none", best_if_none=True),
    _svm("svm-plain", "linear SVM", best_if_none=False),
    Method(
        "svm-threshold",
        "linear SVM, tuned threshold",
        linear_svm(best_if_none=True),
        settings={"C": 1.0, "threshold": 0.0},
        space={"C": (1.0, 0.1, 0.3, 3.0), "class_weight": (None, "balanced")},
        decide=given_or_best,
    ),
    *BY_HALF,
    *map(_thresholded, BY_HALF),
    Method("mccallum", "McCallum's mixture", mccallum),
]
