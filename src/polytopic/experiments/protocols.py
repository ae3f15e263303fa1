"""A corpus for experiments: counted once, then split into documents to train on and to test on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from polytopic.corpus.document import Document
from polytopic.corpus.splits import folds
from polytopic.errors import CorpusError
from polytopic.files import new_file
from polytopic.labels import LabelSpace, indicator
from polytopic.text import Analyzer

MANY_DOCS = 1000  # with this many training documents, a term must occur in two of them
PROTOCOLS = ("auto", "given", "random", "curve", "folds", "time")
CURVE = (250, 500, 1000, 2000)  # training documents (Kazawa et al., Figure 2)


@dataclass(frozen=True)
class Part:
    """Documents in the forms that methods take.

    Attributes
    ----------
    X : csr_matrix of shape (n_docs, n_terms)
        Counts of the terms that occur in training documents.
    Y : csr_matrix of shape (n_docs, n_labels)
        Labels, an indicator over all labels of the corpus.
    texts : list of str
        Texts; for documents given as counts, the terms, each as often as it occurs.
    """

    X: sparse.csr_matrix
    Y: sparse.csr_matrix
    texts: list[str]

    def take(self, rows: np.ndarray) -> Part:
        """Return some of the documents."""
        return Part(self.X[rows], self.Y[rows], [self.texts[row] for row in rows])


@dataclass(frozen=True)
class CountedCorpus:
    """A counted corpus.

    Attributes
    ----------
    name : str
        Name of the corpus.
    X : csr_matrix of shape (n_docs, n_terms)
        Counts of all terms.
    Y : csr_matrix of shape (n_docs, n_labels)
        Labels.
    labels, texts : list of str
        Names of the labels, and the texts.
    splits, times : list of (str or None)
        The part that each document says it belongs to, and its time.
    """

    name: str
    X: sparse.csr_matrix
    Y: sparse.csr_matrix
    labels: list[str]
    texts: list[str]
    splits: list[str | None]
    times: list[str | None]

    @classmethod
    def from_documents(
        cls, name: str, documents: Sequence[Document], language: str | None = "en"
    ) -> CountedCorpus:
        """Count documents, except those without labels."""
        labelled = [document for document in documents if document.labels]
        space = LabelSpace({label for document in labelled for label in document.labels})
        if len(labelled) < 4:
            raise CorpusError(
                f"{name} has {len(labelled)} labelled documents, needs at least 4 to train on some "
                "and test on others."
            )
        if len(space) < 2:
            raise CorpusError(f"{name} has 1 label, {space.ids[0]!r}; needs at least 2.")
        counts, _ = Analyzer(language).count([document.content for document in labelled])
        if not counts.shape[1]:
            raise CorpusError(
                f"{name} has only stop words and single letters; needs other words to learn from."
            )
        columns = [sorted(map(space.index, document.labels)) for document in labelled]
        ends = np.cumsum([0, *map(len, columns)])
        flat = np.array([column for row in columns for column in row], dtype=np.intp)
        return cls(
            name,
            sparse.csr_matrix(counts),
            indicator(flat, ends, len(space)),
            list(space.ids),
            [_text(document) for document in labelled],
            [document.split for document in labelled],
            [None if d.time is None else d.time.isoformat() for d in labelled],
        )

    def parts(self, train: np.ndarray, test: np.ndarray) -> tuple[Part, Part]:
        """Return the training and the test documents, over the terms of the training documents.

        If there are many training documents, terms that occur in only one of them are dropped.
        """
        frequency = self.X[train].getnnz(axis=0)
        columns = np.flatnonzero(frequency >= (2 if train.size >= MANY_DOCS else 1))
        X = self.X[:, columns]
        whole = Part(X, self.Y, self.texts)
        return whole.take(train), whole.take(test)

    def save(self, folder: Path) -> None:
        """Write the corpus for other processes to read."""
        folder.mkdir(parents=True, exist_ok=True)
        sparse.save_npz(folder / "X.npz", self.X)
        sparse.save_npz(folder / "Y.npz", self.Y)
        values = {
            "name": self.name,
            "labels": self.labels,
            "texts": self.texts,
            "splits": self.splits,
            "times": self.times,
        }
        write_json(folder / "texts.json", values)

    @classmethod
    def load(cls, folder: Path) -> CountedCorpus:
        """Read what :meth:`save` wrote."""
        X, Y = (sparse.csr_matrix(sparse.load_npz(folder / f"{name}.npz")) for name in "XY")
        return cls(X=X, Y=Y, **read_json(folder / "texts.json"))


def _text(document: Document) -> str:
    """Return the text of a document; of counts, the terms, each as often as it occurs."""
    if document.text is not None:
        return document.text
    if document.fields is not None:
        return "\n".join(document.fields.values())
    counts = document.counts or {}
    return " ".join(term for term, n in counts.items() for _ in range(max(1, round(n))))


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test documents.

    Attributes
    ----------
    name : str
        Name of the split.
    train, test : ndarray of int
        Row numbers of documents.
    """

    name: str
    train: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class Protocol:
    """How to split a corpus.

    Attributes
    ----------
    kind : {"auto", "given", "random", "curve", "folds", "time"}
        "given" is the split that documents name, "random" splits at random, "curve" does so for
        several numbers of training documents, each within the next and with the same test
        documents, "folds" is cross-validation, and "time" tests on the latest documents. "auto" is
        "given" if documents name a split, else "folds".
    train, test : int or None
        Numbers of documents of a random split, or of test documents of a split by time; three
        quarters and a quarter by default.
    repeats : int
        Number of random splits, or of folds.
    sizes : tuple of int
        Numbers of training documents on a curve.
    seed : int
        The same seed gives the same splits.
    """

    kind: str = "auto"
    train: int | None = None
    test: int | None = None
    repeats: int = 5
    sizes: tuple[int, ...] = CURVE
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in PROTOCOLS:
            raise ValueError(f"protocol == {self.kind!r}, must be one of {', '.join(PROTOCOLS)}.")
        if self.repeats < 1:
            raise ValueError(f"repeats == {self.repeats}, must be 1 or more.")

    def splits(self, corpus: CountedCorpus) -> list[Split]:
        """Return the splits of a corpus."""
        kind = self.kind
        if kind == "auto":
            kind = "given" if "test" in corpus.splits and "train" in corpus.splits else "folds"
        make = {
            "given": self._given_split,
            "random": self._random_splits,
            "curve": self._curve_splits,
            "folds": self._folds,
            "time": self._time_split,
        }
        return make[kind](corpus)

    def _given_split(self, corpus: CountedCorpus) -> list[Split]:
        names = np.array([split or "" for split in corpus.splits])
        train, test = (np.flatnonzero(names == part) for part in ("train", "test"))
        if not train.size or not test.size:
            raise ValueError(
                f"{corpus.name} has {train.size} documents marked train and {test.size} marked "
                "test, needs some of each; use another protocol, such as folds."
            )
        return [Split("given", train, test)]

    def _random_splits(self, corpus: CountedCorpus) -> list[Split]:
        n_train, n_test = self._sizes(corpus)
        return [
            Split(f"random {k + 1}", order[:n_train], order[n_train : n_train + n_test])
            for k, order in enumerate(self._orders(corpus))
        ]

    def _curve_splits(self, corpus: CountedCorpus) -> list[Split]:
        n_docs = corpus.X.shape[0]
        sizes = [size for size in self.sizes if size < n_docs]
        if not sizes:
            raise ValueError(
                f"{corpus.name} has {n_docs} documents; a curve that starts at {min(self.sizes)} "
                "training documents needs more."
            )
        n_test = min(self.test or n_docs - max(sizes), n_docs - max(sizes))
        return [
            Split(f"{size} of random {k + 1}", order[n_test : n_test + size], order[:n_test])
            for k, order in enumerate(self._orders(corpus))
            for size in sizes
        ]

    def _folds(self, corpus: CountedCorpus) -> list[Split]:
        n_splits = min(self.repeats, corpus.X.shape[0])
        pairs = folds(corpus.Y, max(2, n_splits), self.seed)
        return [Split(f"fold {k}", *pair) for k, pair in enumerate(pairs, start=1)]

    def _time_split(self, corpus: CountedCorpus) -> list[Split]:
        missing = [k for k, time in enumerate(corpus.times) if time is None]
        if missing:
            raise ValueError(
                f"{corpus.name} has {len(missing)} documents without a time; to split by time, "
                "each needs one."
            )
        _, n_test = self._sizes(corpus)
        order = np.argsort(np.array(corpus.times, dtype=str), kind="stable")
        return [Split("by time", np.sort(order[:-n_test]), np.sort(order[-n_test:]))]

    def _sizes(self, corpus: CountedCorpus) -> tuple[int, int]:
        n_docs = corpus.X.shape[0]
        n_test = self.test or (n_docs - self.train if self.train else max(1, n_docs // 4))
        n_train = self.train or n_docs - n_test
        if n_train < 1 or n_test < 1 or n_train + n_test > n_docs:
            raise ValueError(
                f"{corpus.name} has {n_docs} documents, fewer than train == {n_train} and "
                f"test == {n_test} need."
            )
        return n_train, n_test

    def _orders(self, corpus: CountedCorpus) -> Iterator[np.ndarray]:
        """Yield a random order of the documents for each repetition."""
        for k in range(self.repeats):
            yield np.random.default_rng(self.seed + k).permutation(corpus.X.shape[0])


def write_json(path: Path, values: Any) -> None:
    """Write values to a file, completely or not at all."""
    with new_file(path, CorpusError) as file:
        file.write(json.dumps(values, ensure_ascii=False).encode())


def read_json(path: Path) -> Any:
    """Read what :func:`write_json` wrote."""
    return json.loads(path.read_text("utf-8"))
