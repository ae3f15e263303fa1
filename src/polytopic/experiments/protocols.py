"""Protocols: which documents to train on, and which to test on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polytopic.corpus.splits import folds
from polytopic.experiments.parts import Prepared

PROTOCOLS = ("auto", "given", "random", "curve", "folds", "time")
CURVE = (250, 500, 1000, 2000)  # training documents (Kazawa et al., Figure 2)


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
        The split that documents say they belong to; random splits; random splits of several
        sizes, each within the next, with the same test documents; folds; or the latest documents
        for testing. "auto" takes the given split if there is one, else folds.
    train, test : int or None
        Numbers of documents of a random split; three quarters and a quarter by default.
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

    def splits(self, corpus: Prepared) -> list[Split]:
        """Return the splits of a corpus."""
        kind = self.kind
        if kind == "auto":
            kind = "given" if "test" in corpus.splits and "train" in corpus.splits else "folds"
        return getattr(self, f"_{kind}")(corpus)

    def _given(self, corpus: Prepared) -> list[Split]:
        named = np.array([split or "" for split in corpus.splits])
        train, test = (np.flatnonzero(named == part) for part in ("train", "test"))
        if not train.size or not test.size:
            raise ValueError(
                f"{corpus.name} has {train.size} documents marked train and {test.size} marked "
                "test, needs some of each; use another protocol, such as folds."
            )
        return [Split("given", train, test)]

    def _random(self, corpus: Prepared) -> list[Split]:
        n_train, n_test = self._sizes(corpus)
        return [
            Split(f"random {k + 1}", order[:n_train], order[n_train : n_train + n_test])
            for k, order in enumerate(self._orders(corpus))
        ]

    def _curve(self, corpus: Prepared) -> list[Split]:
        n_docs = corpus.X.shape[0]
        sizes = [size for size in self.sizes if size < n_docs]
        if not sizes:
            raise ValueError(
                f"{corpus.name} has {n_docs} documents; a curve from {min(self.sizes)} training "
                "documents on needs more."
            )
        n_test = min(self.test or n_docs - max(sizes), n_docs - max(sizes))
        return [
            Split(f"{size} of random {k + 1}", order[n_test : n_test + size], order[:n_test])
            for k, order in enumerate(self._orders(corpus))
            for size in sizes
        ]

    def _folds(self, corpus: Prepared) -> list[Split]:
        n_splits = min(self.repeats, corpus.X.shape[0])
        pairs = folds(corpus.Y, max(2, n_splits), self.seed)
        return [Split(f"fold {k}", *pair) for k, pair in enumerate(pairs, start=1)]

    def _time(self, corpus: Prepared) -> list[Split]:
        missing = [k for k, time in enumerate(corpus.times) if time is None]
        if missing:
            raise ValueError(
                f"{corpus.name} has {len(missing)} documents without a time; a split by time needs "
                "one for each."
            )
        _, n_test = self._sizes(corpus)
        order = np.argsort(np.array(corpus.times, dtype=str), kind="stable")
        return [Split("by time", np.sort(order[:-n_test]), np.sort(order[-n_test:]))]

    def _sizes(self, corpus: Prepared) -> tuple[int, int]:
        n_docs = corpus.X.shape[0]
        n_test = self.test or (n_docs - self.train if self.train else max(1, n_docs // 4))
        n_train = self.train or n_docs - n_test
        if n_train < 1 or n_test < 1 or n_train + n_test > n_docs:
            raise ValueError(
                f"{corpus.name} has {n_docs} documents, fewer than train == {n_train} and "
                f"test == {n_test} need."
            )
        return n_train, n_test

    def _orders(self, corpus: Prepared):
        for k in range(self.repeats):
            yield np.random.default_rng(self.seed + k).permutation(corpus.X.shape[0])
