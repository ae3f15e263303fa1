"""Other libraries, where they are installed."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from polytopic.experiments.methods import Answering, Method
from polytopic.experiments.parts import Part
from polytopic.experiments.rivals import answering, given_or_best, weigh

LOWEST_RATE = 0.01  # of fastText
TREES = {  # of Omikuji: as in Parabel, and as in Bonsai
    "parabel": {},
    "bonsai": {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3},
}


def fasttext(train: Part, settings: Mapping[str, Any], seed: int) -> Answering:
    """Fit fastText, one-vs-all, on the terms of documents or on their lower-case words."""
    import fasttext as library

    settings = {"epoch": epochs(train), **settings}
    threshold, words = settings.pop("threshold", 0.5), settings.pop("words", "terms")

    def lines(part: Part) -> list[str]:
        if words == "terms":
            return [" ".join(own) for own in words_of(part.X)]
        return [" ".join(re.findall(r"\w+", text.lower())) for text in part.texts]

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        with path.open("w", encoding="utf-8") as file:
            for line, labels in zip(lines(train), columns(train.Y), strict=True):
                file.write("".join(f"__label__{k} " for k in labels) + line + "\n")
        model = _train_fasttext(library, path, {"seed": seed, **settings})

    def scores(part: Part) -> np.ndarray:
        found = np.full(part.Y.shape, -np.inf)
        for doc, line in enumerate(lines(part)):
            # not model.predict: its arrays are wrong (of stride 0) with NumPy 2
            for proba, label in model.f.predict(line + "\n", -1, 0.0, "strict"):
                found[doc, int(label.removeprefix("__label__"))] = proba
        return found

    return answering(train, scores, threshold)


def _train_fasttext(library: Any, path: Path, settings: Mapping[str, Any]) -> Any:
    """Train fastText, with half the learning rate wherever its weights run away."""
    try:
        return library.train_supervised(str(path), loss="ova", thread=1, verbose=0, **settings)
    except RuntimeError as error:
        if "NaN" not in str(error) or settings["lr"] < LOWEST_RATE:
            raise
        return _train_fasttext(library, path, {**settings, "lr": settings["lr"] / 2})


def epochs(train: Part) -> int:
    """Return how often fastText is to see each document: more often where they are few."""
    return int(np.clip(200_000 / train.X.shape[0], 25, 200))


def omikuji(train: Part, settings: Mapping[str, Any], seed: int) -> Answering:
    """Fit Omikuji's label trees on ltc weights; it scores the best 30 labels."""
    import omikuji as library

    settings = dict(settings)
    threshold = settings.pop("threshold", 0.5)
    seen = weigh(train)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        write_svmlight(path, seen(train), train.Y, header=True)
        hyper = library.Model.default_hyper_param()
        for name, value in (TREES[settings.pop("tree", "parabel")] | settings).items():
            setattr(hyper, name, value)
        model = library.Model.train_on_data(str(path), hyper, 1)
    model.init_prediction_thread_pool(1)

    def scores(part: Part) -> np.ndarray:
        found = np.full(part.Y.shape, -np.inf)
        for doc, words in enumerate(_pairs(seen(part))):
            for label, score in model.predict(words, beam_size=30, top_k=30):
                found[doc, label] = score
        return found

    return answering(train, scores, threshold)


def napkinxc(train: Part, settings: Mapping[str, Any], seed: int) -> Answering:
    """Fit napkinXC's probabilistic label tree on ltc weights; it scores the best 30 labels."""
    from napkinxc.models import PLT

    settings = dict(settings)
    threshold = settings.pop("threshold", 0.5)
    seen = weigh(train)
    folder = tempfile.TemporaryDirectory()
    model = PLT(folder.name, threads=1, seed=seed, verbose=False, **settings)
    model.fit(seen(train), list(columns(train.Y)))

    def scores(part: Part, folder=folder) -> np.ndarray:  # which lives as long as what answers
        found = np.full(part.Y.shape, -np.inf)
        for doc, pairs in enumerate(model.predict_proba(seen(part), top_k=30)):
            for label, score in pairs:
                found[doc, label] = score
        return found

    return answering(train, scores, threshold)


def labelled_lda(train: Part, settings: Mapping[str, Any], seed: int) -> Answering:
    """Fit tomotopy's partially labelled LDA; a label's score is its topics' share of a document."""
    import tomotopy

    settings = dict(settings)
    iterations, threshold = settings.pop("iterations", 200), settings.pop("threshold", 0.2)
    model = tomotopy.PLDAModel(latent_topics=1, topics_per_label=1, seed=seed, **settings)
    for words, labels in zip(words_of(train.X), columns(train.Y), strict=True):
        if words:
            model.add_doc(words, labels=[str(label) for label in labels])
    model.train(iterations, workers=1)
    names = [int(name) for name in model.topic_label_dict]

    def scores(part: Part) -> np.ndarray:
        found = np.zeros(part.Y.shape)
        documents = [model.make_doc(words) for words in words_of(part.X)]
        shares, _ = model.infer(documents, 100, workers=1)
        found[:, names] = np.asarray(shares)[:, : len(names)]
        return found

    return answering(train, scores, threshold)


def write_svmlight(path: Path, X, Y, *, header: bool) -> None:
    """Write documents as lines of label numbers and weighted words."""
    X = sparse.csr_matrix(X)
    X.sort_indices()
    with path.open("w", encoding="utf-8") as file:
        if header:
            file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
        for words, labels in zip(_pairs(X), columns(Y), strict=True):
            names = ",".join(map(str, labels))
            file.write(f"{names} {' '.join(f'{w}:{v:.6g}' for w, v in words)}\n")


def columns(Y) -> Iterator[list[int]]:
    """Yield the labels of documents, as numbers."""
    Y = sparse.csr_matrix(Y)
    for start, stop in zip(Y.indptr[:-1], Y.indptr[1:], strict=True):
        yield Y.indices[start:stop].tolist()


def _pairs(X) -> Iterator[list[tuple[int, float]]]:
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        own = slice(start, stop)
        yield list(zip(X.indices[own].tolist(), X.data[own].tolist(), strict=True))


def words_of(X) -> Iterator[list[str]]:
    """Yield the words of documents, as numbers, each as often as it occurs."""
    for row in _pairs(sparse.csr_matrix(X)):
        yield [str(word) for word, n in row for _ in range(max(1, round(n)))]


PEERS = [
    Method(
        "fasttext",
        "fastText",
        fasttext,
        settings={"lr": 1.0, "dim": 50, "words": "terms", "threshold": 0.5},
        space={"lr": (1.0, 0.3, 0.1)},
        decide=given_or_best,
        package="fasttext",
    ),
    Method(
        "omikuji",
        "Omikuji",
        omikuji,
        settings={"tree": "parabel", "threshold": 0.5},
        space={"tree": tuple(TREES)},
        decide=given_or_best,
        package="omikuji",
    ),
    Method(
        "napkinxc",
        "napkinXC",
        napkinxc,
        settings={"threshold": 0.5},
        decide=given_or_best,
        package="napkinxc",
    ),
    Method(
        "plda",
        "tomotopy, labelled LDA",
        labelled_lda,
        settings={"threshold": 0.2},
        decide=given_or_best,
        package="tomotopy",
    ),
]
