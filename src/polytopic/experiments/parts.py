"""A corpus for experiments: counted once, then cut into parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from polytopic.corpus.document import Document
from polytopic.errors import CorpusError
from polytopic.files import new_file
from polytopic.labels import LabelSpace, indicator
from polytopic.text import Analyzer

LARGE = 1000  # training documents from which on a term must occur in two of them


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

    def rows(self, rows) -> Part:
        """Return some of the documents."""
        return Part(self.X[rows], self.Y[rows], [self.texts[row] for row in rows])


@dataclass(frozen=True)
class Prepared:
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
    def of(cls, name: str, documents: Sequence[Document], language: str | None = "en") -> Prepared:
        """Count documents; those without a label are left out."""
        kept = [document for document in documents if document.labels]
        space = LabelSpace({label for document in kept for label in document.labels})
        if len(kept) < 4:
            raise CorpusError(
                f"{name} has {len(kept)} labelled documents, needs at least 4 to train on some and "
                "test on others."
            )
        if len(space) < 2:
            raise CorpusError(f"{name} has 1 label, {space.ids[0]!r}; needs at least 2.")
        counts, _ = Analyzer(language).count([document.content for document in kept])
        if not counts.shape[1]:
            raise CorpusError(
                f"{name} has no term but stop words and single letters; needs other words."
            )
        places = [[space.index(label) for label in document.labels] for document in kept]
        ends = np.cumsum([0, *map(len, places)])
        flat = np.array([place for row in places for place in sorted(row)], dtype=np.intp)
        return cls(
            name,
            sparse.csr_matrix(counts),
            indicator(flat, ends, len(space)),
            list(space.ids),
            [_text(document) for document in kept],
            [document.split for document in kept],
            [None if d.time is None else d.time.isoformat() for d in kept],
        )

    def parts(self, train: np.ndarray, test: np.ndarray) -> tuple[Part, Part]:
        """Return the training and the test documents, over the terms of the training documents.

        Where there are many documents, terms that only one of them has are left out.
        """
        frequency = self.X[train].getnnz(axis=0)
        known = np.flatnonzero(frequency >= (2 if train.size >= LARGE else 1))
        X = self.X[:, known]
        learned, tested = (
            Part(X[rows], self.Y[rows], [self.texts[row] for row in rows]) for rows in (train, test)
        )
        return learned, tested

    def save(self, folder: Path) -> None:
        """Write the corpus for other processes to read."""
        folder.mkdir(parents=True, exist_ok=True)
        sparse.save_npz(folder / "X.npz", self.X)
        sparse.save_npz(folder / "Y.npz", self.Y)
        write_json(folder / "texts.json", self._words())

    def _words(self) -> dict[str, Any]:
        names = ("name", "labels", "texts", "splits", "times")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def load(cls, folder: Path) -> Prepared:
        """Read what :meth:`save` wrote."""
        X, Y = (sparse.csr_matrix(sparse.load_npz(folder / f"{name}.npz")) for name in "XY")
        return cls(X=X, Y=Y, **read_json(folder / "texts.json"))


def _text(document: Document) -> str:
    if document.text is not None:
        return document.text
    if document.fields is not None:
        return "\n".join(document.fields.values())
    counts = document.counts or {}
    return " ".join(term for term, n in counts.items() for _ in range(max(1, round(n))))


def write_json(path: Path, values: Any) -> None:
    """Write values to a file, completely or not at all."""
    with new_file(path, CorpusError) as file:
        file.write(json.dumps(values, ensure_ascii=False).encode())


def read_json(path: Path) -> Any:
    """Read what :func:`write_json` wrote."""
    return json.loads(path.read_text("utf-8"))
