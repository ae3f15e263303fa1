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
from sklearn.preprocessing import normalize

from polytopic.counts import LabelSetCounts
from polytopic.experiments.methods import (
    Method,
    Prediction,
    Predictor,
    ltc_weights,
    predict_by_scores,
    threshold_or_best,
)
from polytopic.experiments.protocols import Part
from polytopic.labels import Targets

BLOCK = 512  # documents compared at once
MAX_LABELS = 6  # of a set in McCallum's search
N_CANDIDATES = 20  # labels that it tries to add to a set
LOWEST_RATE = 0.01  # learning rate at which fastText is given up
TREES: dict[str, dict[str, Any]] = {  # of Omikuji, named after the methods they follow
    "parabel": {},
    "bonsai": {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3},
}


# Models without a package of their own


class CosineNeighbours:
    """The share of the ``k`` nearest documents with a label, weighted by similarity.

    Parameters
    ----------
    k : int, default=10
        Number of neighbours.
    """

    def __init__(self, k: int = 10):
        self.k = k

    def fit(self, X, Y) -> CosineNeighbours:
        """Keep the documents."""
        self._X, self._Y = normalize(X), sparse.csr_matrix(Y)
        return self

    def proba(self, X) -> np.ndarray:
        """Return the share of the neighbours' weight that has each label."""
        return np.vstack([self._vote(*pair) for pair in self.neighbours(X)])

    def _vote(self, neighbours: np.ndarray, weight: np.ndarray) -> np.ndarray:
        votes = _rows(neighbours, weight, self._Y.shape[0]) @ self._Y
        total = weight.sum(axis=1, keepdims=True)
        return votes.toarray() / np.where(total > 0, total, 1.0)

    def neighbours(self, X, *, leave_out: bool = False):
        """Yield row numbers and similarities of the nearest documents, block by block."""
        X, k = normalize(X), min(self.k, self._X.shape[0] - leave_out)
        documents = self._X.T.tocsr()
        for start in range(0, X.shape[0], BLOCK):
            similarity = (X[start : start + BLOCK] @ documents).toarray()
            if leave_out:  # the documents themselves
                rows = np.arange(similarity.shape[0])
                similarity[rows, start + rows] = -1.0
            near = np.argpartition(-similarity, k - 1, axis=1)[:, :k]
            yield near, np.maximum(np.take_along_axis(similarity, near, axis=1), 0.0)


class MLkNN(CosineNeighbours):
    """Labels by how many of the nearest documents have them (Zhang and Zhou, 2007).

    The posterior of a label given the number of neighbours that have it, estimated from the
    training documents. A document is not its own neighbour.

    Parameters
    ----------
    k : int, default=10
        Number of neighbours.
    smoothing : float, default=1.0
        Pseudo-count.
    """

    def __init__(self, k: int = 10, smoothing: float = 1.0):
        super().__init__(k)
        self.smoothing = smoothing

    def fit(self, X, Y) -> MLkNN:
        """Count the neighbours that share each label, for documents with it and without it."""
        super().fit(X, Y)
        n_docs, n_labels = self._Y.shape
        s = self.smoothing
        counts = np.vstack(
            [self.count_labels(near) for near, _ in self.neighbours(X, leave_out=True)]
        )
        has = self._Y.toarray() > 0
        self._log_prior = np.log((s + has.sum(axis=0)) / (2 * s + n_docs))
        self._log_absent = np.log((s + (~has).sum(axis=0)) / (2 * s + n_docs))
        self._log_if_present, self._log_if_absent = (
            np.log(self._frequencies(counts, rows, n_labels)) for rows in (has, ~has)
        )
        return self

    def _frequencies(self, counts, rows, n_labels) -> np.ndarray:
        """Return how often each number of neighbours occurs, (k + 1, n_labels), smoothed."""
        frequencies = np.full((self.k + 1, n_labels), self.smoothing)
        for number in range(self.k + 1):
            frequencies[number] += ((counts == number) & rows).sum(axis=0)
        return frequencies / frequencies.sum(axis=0)

    def count_labels(self, neighbours: np.ndarray) -> np.ndarray:
        """Return how many of the neighbours of each document have each label."""
        ones = np.ones(neighbours.shape)
        return np.rint((_rows(neighbours, ones, self._Y.shape[0]) @ self._Y).toarray()).astype(int)

    def proba(self, X) -> np.ndarray:
        """Return the posterior of each label."""
        columns = np.arange(self._Y.shape[1])
        blocks = []
        for near, _ in self.neighbours(X):
            counts = self.count_labels(near)
            yes = self._log_prior + self._log_if_present[counts, columns]
            no = self._log_absent + self._log_if_absent[counts, columns]
            blocks.append(1.0 / (1.0 + np.exp(no - yes)))
        return np.vstack(blocks)


class McCallumMixture:
    r"""Each word comes from one of the document's labels, by weights of the label set [1]_.

    .. math:: p(d \mid s) = \prod_w \Big(\sum_{c \in s} \lambda_{sc} \theta_{cw}\Big)^{x_{dw}}

    EM on the counts per label set estimates the word distributions and each set's weights; the
    prior of a set is its share of the documents. As in [1]_, sets are searched greedily: labels are
    added one by one while the posterior rises. A set without documents gets equal weights, and the
    prior of half a document. There is no common "English" component, unlike in [1]_.

    Parameters
    ----------
    smoothing : float, default=1.0
        Pseudo-count of each word in each label.
    max_iter : int, default=30
        Number of EM steps.

    References
    ----------
    .. [1] McCallum, "Multi-label text classification with a mixture model trained by EM", AAAI
       workshop on text learning, 1999.
    """

    def __init__(self, smoothing: float = 1.0, max_iter: int = 30):
        self.smoothing, self.max_iter = smoothing, max_iter

    def fit(self, X, Y) -> McCallumMixture:
        """Fit by EM; ``log_likelihood_`` holds the smoothed log likelihood of each step."""
        counts = LabelSetCounts.from_matrix(
            X, Targets(sparse.csr_matrix(Y), tuple(range(Y.shape[1])))
        )
        sets = [tuple(row) for row in _rows_of(counts.indicator)]
        labels = list(counts.labels)
        self._sets = [tuple(labels[c] for c in row) for row in sets]
        self._n_labels, table = Y.shape[1], counts.matrix.tocsr()
        theta = np.full((self._n_labels, X.shape[1]), 1.0 / X.shape[1])
        start = np.zeros_like(theta)
        for k, row in enumerate(self._sets):  # EM starts from the words of each label's documents
            start[list(row)] += table[k].toarray()[0] / len(row)
        theta = (start + self.smoothing) / (start + self.smoothing).sum(axis=1, keepdims=True)
        weights = [np.full(len(row), 1.0 / len(row)) for row in self._sets]
        self.log_likelihood_ = []
        for _ in range(self.max_iter):
            theta, weights, value = self._step(table, theta, weights)
            self.log_likelihood_.append(value)
        self._log_theta, self._theta = np.log(theta), theta
        docs = np.asarray(counts.set_docs, dtype=float)
        total = docs.sum() + 0.5
        self._parameters = {
            frozenset(row): (np.log(n / total), w)
            for row, n, w in zip(self._sets, docs, weights, strict=True)
        }
        self._log_unseen = np.log(0.5 / total)
        return self

    def _step(self, table, theta, weights):
        """Return the parameters after an EM step, and the log likelihood before it."""
        expected, value = np.zeros_like(theta), self.smoothing * np.log(theta).sum()
        new = []
        for k, row in enumerate(self._sets):
            columns, n = _row(table, k)
            joint = weights[k][:, None] * theta[list(row)][:, columns]
            mixed = joint.sum(axis=0)
            value += float(n @ np.log(mixed)) if columns.size else 0.0
            part = joint / mixed * n
            np.add.at(expected, (np.array(row)[:, None], columns[None, :]), part)
            label_counts = part.sum(axis=1)
            new.append(label_counts / label_counts.sum() if label_counts.sum() else weights[k])
        smoothed = expected + self.smoothing
        return smoothed / smoothed.sum(axis=1, keepdims=True), new, value

    def predict(self, X) -> sparse.csr_matrix:
        """Return the label sets that greedy search finds."""
        X = sparse.csr_matrix(X)
        sets = np.zeros((X.shape[0], self._n_labels))
        for doc in range(X.shape[0]):
            sets[doc, list(self._best(*_row(X, doc)))] = 1.0
        return sparse.csr_matrix(sets)

    def _best(self, columns: np.ndarray, n: np.ndarray) -> tuple[int, ...]:
        labels: tuple[int, ...] = ()
        best = -np.inf
        for _ in range(MAX_LABELS):
            candidates = self._candidates(labels, columns, n)
            scored = [(self._score((*labels, c), columns, n), c) for c in candidates]
            score, label = max(scored, default=(-np.inf, -1))
            if score <= best:
                break
            best, labels = score, (*labels, label)
        return labels

    def _candidates(self, labels, columns, n):
        """Return the labels to try next: those that explain the words best on their own."""
        single = self._log_theta[:, columns] @ n
        order = np.argsort(-single)[: N_CANDIDATES if labels else self._n_labels]
        return [c for c in order.tolist() if c not in labels]

    def _score(self, labels, columns, n) -> float:
        log_prior, weights = self._parameters.get(frozenset(labels), (self._log_unseen, None))
        ordered = sorted(labels)
        if weights is None:
            weights = np.full(len(ordered), 1.0 / len(ordered))
        mixed = weights @ self._theta[ordered][:, columns]
        return float(log_prior + n @ np.log(mixed))


def _rows(neighbours: np.ndarray, weight: np.ndarray, n_docs: int) -> sparse.csr_matrix:
    """Return the weights of neighbours as a sparse matrix."""
    n_rows, k = neighbours.shape
    ends = np.arange(0, n_rows * k + 1, k)
    return sparse.csr_matrix((weight.ravel(), neighbours.ravel(), ends), shape=(n_rows, n_docs))


def _row(matrix: sparse.csr_matrix, k: int) -> tuple[np.ndarray, np.ndarray]:
    cells = slice(matrix.indptr[k], matrix.indptr[k + 1])
    return matrix.indices[cells], matrix.data[cells]


def _rows_of(matrix: sparse.csr_matrix):
    for k in range(matrix.shape[0]):
        yield sorted(matrix.indices[matrix.indptr[k] : matrix.indptr[k + 1]].tolist())


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
BASELINES = [*SKLEARN_BASELINES, *LIBRARY_BASELINES]
