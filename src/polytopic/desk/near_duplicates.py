"""Copies of an article with small changes, as news agencies and their customers publish them.

Texts are compared by MinHash: of each text, the smallest of the hashes of all its runs of four
words, under 32 hash functions. The share of equal minima estimates the Jaccard similarity of the
sets of runs (Broder, 1997).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from zlib import crc32

import numpy as np

N_HASHES = 32
RUN = 4  # words
MIN_RUNS = 20  # shorter texts have no signature
SIMILAR = 0.7  # estimated similarity from which on a text is a copy
WINDOW = 10_000  # newest articles that a text is compared with
HALF = np.uint64(32)  # bits
_WORD = re.compile(r"\w+")
_random = np.random.default_rng(2015)
_FACTORS = _random.integers(0, 2**63, N_HASHES, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_OFFSETS = _random.integers(0, 2**63, N_HASHES, dtype=np.uint64)


def signature(text: str) -> bytes | None:
    """Return the signature of a text, two bytes per hash; None if it is short."""
    words = _WORD.findall(text.casefold())
    runs = {" ".join(words[k : k + RUN]) for k in range(len(words) - RUN + 1)}
    if len(runs) < MIN_RUNS:
        return None
    hashes = np.fromiter((crc32(run.encode()) for run in runs), dtype=np.uint64, count=len(runs))
    mixed = (hashes[:, None] * _FACTORS + _OFFSETS) >> HALF  # multiply-shift, modulo 2^64
    return mixed.min(axis=0).astype("<u2").tobytes()


class RecentSignatures:
    """The signatures of the newest articles.

    Parameters
    ----------
    pairs : iterable of pairs of str and bytes
        Ids and signatures, the oldest first.
    window : int, default=10000
        How many to remember.
    """

    def __init__(self, pairs: Iterable[tuple[str, bytes]] = (), window: int = WINDOW):
        self._ids: list[str | None] = [None] * window
        self._rows = np.zeros((window, N_HASHES), dtype="<u2")
        self._places: dict[str, int] = {}
        self._next = 0
        for name, own in pairs:
            self.add(name, own)

    def add(self, name: str, own: bytes) -> None:
        """Remember the signature of an article; the oldest one is forgotten."""
        place = self._places.get(name)
        if place is None:
            place = self._next % len(self._ids)
            former = self._ids[place]
            if former is not None:
                del self._places[former]
            self._next += 1
        self._ids[place], self._places[name] = name, place
        self._rows[place] = np.frombuffer(own, dtype="<u2")

    def find(self, name: str, own: bytes) -> str | None:
        """Return the most similar other article, None if none is a copy; the first if equal."""
        n_rows = min(self._next, len(self._ids))
        row = np.frombuffer(own, dtype="<u2")
        shares = (self._rows[:n_rows] == row).mean(axis=1)
        if name in self._places:
            shares[self._places[name]] = 0
        if not n_rows or shares.max() < SIMILAR:
            return None
        return self._ids[int(shares.argmax())]
