"""Baselines: scikit-learn's classifiers, those of the papers, and other installed libraries."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from polytopic.experiments.baseline_models import (
    BinaryNaiveBayes,
    CosineNeighbours,
    CostSVM,
    HiddenLayerNetwork,
    McCallumMixture,
    MLkNN,
)
from polytopic.experiments.methods import (
    Method,
    Prediction,
    Predictor,
    ltc_weights,
    predict_by_scores,
    threshold_or_best,
)
from polytopic.experiments.protocols import Part

LOWEST_RATE = 0.01  # learning rate at which fastText is given up
TREES: dict[str, dict[str, Any]] = {  # of Omikuji, named after the methods they follow
    "parabel": {},
    "bonsai": {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3},
}


# Fitting baselines


def one_vs_rest(estimator, X, Y):
    """Fit one classifier per label, without warnings about labels that no or all documents have."""
    from sklearn.multiclass import OneVsRestClassifier

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Label not .* is present")
        return OneVsRestClassifier(estimator).fit(X, Y)


def linear_svm(
    train: Part, settings: Mapping[str, Any], seed: int, *, best_if_none: bool
) -> Predictor:
    """Fit one linear SVM per label."""
    from sklearn.svm import LinearSVC

    threshold, settings = _split_threshold(settings, default=0.0)
    weigh = ltc_weights(train)
    model = one_vs_rest(LinearSVC(random_state=seed, **settings), weigh(train), train.Y)
    return predict_by_scores(
        train,
        lambda part: model.decision_function(weigh(part)),
        threshold,
        best_if_none=best_if_none,
    )


def naive_bayes(train: Part, settings: Mapping[str, Any], seed: int) -> Predictor:
    """Fit one multinomial naive Bayes per label."""
    from sklearn.naive_bayes import MultinomialNB

    threshold, settings = _split_threshold(settings)
    model = one_vs_rest(MultinomialNB(**settings), train.X, train.Y)
    return predict_by_scores(
        train, lambda part: model.predict_proba(part.X), threshold, is_proba=True
    )


def _split_threshold(
    settings: Mapping[str, Any], default: float = 0.5
) -> tuple[float, dict[str, Any]]:
    """Return the threshold for scores, and the other settings."""
    settings = dict(settings)
    return settings.pop("threshold", default), settings


def nearest_neighbours(
    model_class: Callable[..., CosineNeighbours],
    train: Part,
    settings: Mapping[str, Any],
    seed: int,
) -> Predictor:
    """Fit a nearest-neighbour model."""
    threshold, settings = _split_threshold(settings)
    weigh = ltc_weights(train)
    model = model_class(**settings).fit(weigh(train), train.Y)
    return predict_by_scores(train, lambda part: model.proba(weigh(part)), threshold, is_proba=True)


def neural_network(train: Part, settings: Mapping[str, Any], seed: int) -> Predictor:
    """Fit a network with one hidden layer of 50 units and weight decay."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    threshold, settings = _split_threshold(settings)
    weigh = ltc_weights(train)
    model = MLPClassifier(
        (50,), random_state=seed, batch_size=32, learning_rate_init=0.005, **settings
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # max_iter is a setting
        model.fit(weigh(train), train.Y.toarray().astype(int))
    return predict_by_scores(
        train, lambda part: model.predict_proba(weigh(part)), threshold, is_proba=True
    )


def ueda_saito(
    model_class: Callable[..., Any],
    train: Part,
    settings: Mapping[str, Any],
    seed: int,
    *,
    is_proba: bool,
    is_random: bool,
    best_if_none: bool,
) -> Predictor:
    """Fit a baseline of Ueda and Saito on counts.

    A label is predicted if its probability is above one half, or its score above 0.
    """
    model = model_class(**settings, **({"seed": seed} if is_random else {}))
    model.fit(train.X, train.Y)
    score = model.proba if is_proba else model.decision_function
    return predict_by_scores(
        train,
        lambda part: score(part.X),
        0.5 if is_proba else 0.0,
        best_if_none=best_if_none,
        is_proba=is_proba,
    )


def mccallum(train: Part, settings: Mapping[str, Any], seed: int) -> Predictor:
    """Fit McCallum's mixture by EM."""
    model = McCallumMixture(**settings).fit(train.X, train.Y)
    return lambda part: Prediction(model.predict(part.X))


def fasttext(train: Part, settings: Mapping[str, Any], seed: int) -> Predictor:
    """Fit fastText, one-vs-all, on the terms of documents or on their lower-case words."""
    import fasttext as library

    settings = {"epoch": fasttext_epochs(train), **settings}
    threshold, unit = settings.pop("threshold", 0.5), settings.pop("words", "terms")

    def lines(part: Part) -> list[str]:
        if unit == "terms":
            return [" ".join(words) for words in repeated_words(part.X)]
        return [" ".join(re.findall(r"\w+", text.lower())) for text in part.texts]

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        with path.open("w", encoding="utf-8") as file:
            for line, labels in zip(lines(train), label_numbers(train.Y), strict=True):
                file.write("".join(f"__label__{k} " for k in labels) + line + "\n")
        model = _train_fasttext(library, path, {"seed": seed, **settings})

    def scores(part: Part) -> np.ndarray:
        result = np.full(part.Y.shape, -np.inf)
        for doc, line in enumerate(lines(part)):
            # model.predict returns wrong arrays (of stride 0) with NumPy 2
            for proba, label in model.f.predict(line + "\n", -1, 0.0, "strict"):
                result[doc, int(label.removeprefix("__label__"))] = proba
        return result

    return predict_by_scores(train, scores, threshold)


def _train_fasttext(library: Any, path: Path, settings: Mapping[str, Any]) -> Any:
    """Train fastText; halve the learning rate when its weights diverge."""
    try:
        return library.train_supervised(str(path), loss="ova", thread=1, verbose=0, **settings)
    except RuntimeError as error:
        if "NaN" not in str(error) or settings["lr"] < LOWEST_RATE:
            raise
        return _train_fasttext(library, path, {**settings, "lr": settings["lr"] / 2})


def fasttext_epochs(train: Part) -> int:
    """Return the number of epochs for fastText: the fewer documents, the more."""
    return int(np.clip(200_000 / train.X.shape[0], 25, 200))


def omikuji(train: Part, settings: Mapping[str, Any], seed: int) -> Predictor:
    """Fit Omikuji's label trees on ltc weights; it scores the best 30 labels."""
    import omikuji as library

    threshold, settings = _split_threshold(settings)
    weigh = ltc_weights(train)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        write_svmlight(path, weigh(train), train.Y, header=True)
        hyper = library.Model.default_hyper_param()
        for name, value in (TREES[settings.pop("tree", "parabel")] | settings).items():
            setattr(hyper, name, value)
        model = library.Model.train_on_data(str(path), hyper, 1)
    model.init_prediction_thread_pool(1)

    def scores(part: Part) -> np.ndarray:
        result = np.full(part.Y.shape, -np.inf)
        for doc, words in enumerate(weighted_words(weigh(part))):
            for label, score in model.predict(words, beam_size=30, top_k=30):
                result[doc, label] = score
        return result

    return predict_by_scores(train, scores, threshold)


def napkinxc(train: Part, settings: Mapping[str, Any], seed: int) -> Predictor:
    """Fit napkinXC's probabilistic label tree on ltc weights; it scores the best 30 labels."""
    from napkinxc.models import PLT

    threshold, settings = _split_threshold(settings)
    weigh = ltc_weights(train)
    folder = tempfile.TemporaryDirectory()
    model = PLT(folder.name, threads=1, seed=seed, verbose=False, **settings)
    model.fit(weigh(train), list(label_numbers(train.Y)))

    # the default argument keeps the folder as long as the predictor
    def scores(part: Part, folder=folder) -> np.ndarray:
        result = np.full(part.Y.shape, -np.inf)
        for doc, pairs in enumerate(model.predict_proba(weigh(part), top_k=30)):
            for label, score in pairs:
                result[doc, label] = score
        return result

    return predict_by_scores(train, scores, threshold)


def labelled_lda(train: Part, settings: Mapping[str, Any], seed: int) -> Predictor:
    """Fit tomotopy's partially labelled LDA; a label's score is its topics' share of a document."""
    import tomotopy

    threshold, settings = _split_threshold(settings, default=0.2)
    iterations = settings.pop("iterations", 200)
    model = tomotopy.PLDAModel(latent_topics=1, topics_per_label=1, seed=seed, **settings)
    for words, labels in zip(repeated_words(train.X), label_numbers(train.Y), strict=True):
        if words:
            model.add_doc(words, labels=[str(label) for label in labels])
    model.train(iterations, workers=1)
    names = [int(name) for name in model.topic_label_dict]

    def scores(part: Part) -> np.ndarray:
        result = np.zeros(part.Y.shape)
        documents = [model.make_doc(words) for words in repeated_words(part.X)]
        shares, _ = model.infer(documents, 100, workers=1)
        result[:, names] = np.asarray(shares)[:, : len(names)]
        return result

    return predict_by_scores(train, scores, threshold)


def write_svmlight(path: Path, X, Y, *, header: bool) -> None:
    """Write documents as lines of label numbers and weighted words."""
    X = sparse.csr_matrix(X)
    X.sort_indices()
    with path.open("w", encoding="utf-8") as file:
        if header:
            file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
        for words, labels in zip(weighted_words(X), label_numbers(Y), strict=True):
            names = ",".join(map(str, labels))
            file.write(f"{names} {' '.join(f'{w}:{v:.6g}' for w, v in words)}\n")


def label_numbers(Y) -> Iterator[list[int]]:
    """Yield the label numbers of each document."""
    Y = sparse.csr_matrix(Y)
    for start, stop in zip(Y.indptr[:-1], Y.indptr[1:], strict=True):
        yield Y.indices[start:stop].tolist()


def weighted_words(X) -> Iterator[list[tuple[int, float]]]:
    """Yield the word numbers and weights of each document."""
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        cells = slice(start, stop)
        yield list(zip(X.indices[cells].tolist(), X.data[cells].tolist(), strict=True))


def repeated_words(X) -> Iterator[list[str]]:
    """Yield the word numbers of each document, each as often as it occurs."""
    for row in weighted_words(sparse.csr_matrix(X)):
        yield [str(word) for word, n in row for _ in range(max(1, round(n)))]


# The methods


def _svm(name: str, title: str, *, best_if_none: bool, by_default: bool = False) -> Method:
    return Method(
        name,
        title,
        partial(linear_svm, best_if_none=best_if_none),
        settings={"C": 1.0},
        space={"C": (1.0, 0.1, 10.0), "class_weight": (None, "balanced")},
        by_default=by_default,
    )


def _neighbours(
    name: str, title: str, model_class: type[CosineNeighbours], *, by_default: bool = False
) -> Method:
    return Method(
        name,
        title,
        partial(nearest_neighbours, model_class),
        settings={"k": 10},
        space={"k": (10, 5, 20, 30)},
        by_default=by_default,
    )


def _thresholded(method: Method) -> Method:
    """Return a method with probabilities whose threshold is tuned as well."""
    return replace(
        method,
        name=f"{method.name}-threshold",
        title=f"{method.title}, tuned threshold",
        settings={**method.settings, "threshold": 0.5},
        decide=threshold_or_best,
        by_default=False,
    )


def _ueda_saito(
    name: str,
    title: str,
    model_class: type,
    space: Mapping[str, tuple] | None = None,
    *,
    is_proba: bool = False,
    is_random: bool = False,
) -> Iterator[Method]:
    """Yield a baseline of Ueda and Saito, as in their paper and with the best label if none."""
    space = space or {}
    for suffix, ending, best in (("", "", False), ("-best", ", best label if none", True)):
        yield Method(
            f"{name}-ueda{suffix}",
            f"{title} (Ueda and Saito){ending}",
            partial(
                ueda_saito,
                model_class,
                is_proba=is_proba,
                is_random=is_random,
                best_if_none=best,
            ),
            settings={key: values[0] for key, values in space.items()},
            space=space,
        )


PROBABILISTIC_BASELINES = [  # predict labels with a probability above one half
    Method(
        "nb-one-vs-rest",
        "naive Bayes, one for each label",
        naive_bayes,
        settings={"alpha": 1.0},
        space={"alpha": (1.0, 0.1, 0.01)},
        by_default=True,
    ),
    _neighbours("knn", "nearest neighbours, cosine", CosineNeighbours, by_default=True),
    _neighbours("mlknn", "ML-kNN", MLkNN),
    Method(
        "network",
        "neural network, 50 units",
        neural_network,
        settings={"alpha": 1e-4, "max_iter": 50},
        space={"alpha": (1e-4, 1e-3, 1e-2, 1e-5)},
    ),
]
SKLEARN_BASELINES = [
    _svm("svm", "linear SVM, best label if none", best_if_none=True, by_default=True),
    _svm("svm-plain", "linear SVM", best_if_none=False),
    Method(
        "svm-threshold",
        "linear SVM, tuned threshold",
        partial(linear_svm, best_if_none=True),
        settings={"C": 1.0, "threshold": 0.0},
        space={"C": (1.0, 0.1, 0.3, 3.0), "class_weight": (None, "balanced")},
        decide=threshold_or_best,
        by_default=True,
    ),
    *PROBABILISTIC_BASELINES,
    *map(_thresholded, PROBABILISTIC_BASELINES),
    Method("mccallum", "McCallum's mixture", mccallum),
]
UEDA_SAITO_BASELINES = [  # of Tables 1 and 2 of their paper, on counts
    *_ueda_saito("nb", "naive Bayes, one for each label", BinaryNaiveBayes),
    *_ueda_saito("svm", "linear SVM, C and J for each label", CostSVM, is_random=True),
    *_ueda_saito(
        "knn",
        "nearest neighbours",
        CosineNeighbours,
        {"k": (1, 3, 5, 10, 20, 30)},
        is_proba=True,
    ),
    *_ueda_saito(
        "network",
        "neural network",
        HiddenLayerNetwork,
        {"rows": ("unit", "counts"), "decay": (1e-4, 1e-5, 3e-4)},
        is_proba=True,
        is_random=True,
    ),
]
LIBRARY_BASELINES = [
    Method(
        "fasttext",
        "fastText",
        fasttext,
        settings={"lr": 1.0, "dim": 50, "words": "terms", "threshold": 0.5},
        space={"lr": (1.0, 0.3, 0.1)},
        decide=threshold_or_best,
        package="fasttext",
    ),
    Method(
        "omikuji",
        "Omikuji",
        omikuji,
        settings={"tree": "parabel", "threshold": 0.5},
        space={"tree": tuple(TREES)},
        decide=threshold_or_best,
        package="omikuji",
    ),
    Method(
        "napkinxc",
        "napkinXC",
        napkinxc,
        settings={"threshold": 0.5},
        decide=threshold_or_best,
        package="napkinxc",
    ),
    Method(
        "plda",
        "tomotopy, labelled LDA",
        labelled_lda,
        settings={"threshold": 0.2},
        decide=threshold_or_best,
        package="tomotopy",
    ),
]
BASELINES = [*SKLEARN_BASELINES, *UEDA_SAITO_BASELINES, *LIBRARY_BASELINES]
