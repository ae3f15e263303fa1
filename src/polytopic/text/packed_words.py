"""Packed words: many words in one string of bytes, in UTF-8, with a zero after each.

Compiled loops read words in this form, and what is done here is done to all of them at once.
"""

import numpy as np

from polytopic.kernels.tokens import PADDING, number_tokens, pack_tokens, packed_bounds
from polytopic.text.tokens import main_part


def pack(words):
    """Return words as packed words."""
    return "\0".join([*words, ""]).encode()


def unpack(packed):
    """Return packed words as a list of strings."""
    return packed.decode().split("\0")[:-1]


def byte_view(data):
    """Return bytes as an array."""
    return np.frombuffer(data, dtype=np.uint8)


def word_view(data):
    """Return the eight bytes from each position on, each time as one integer."""
    return np.ndarray((len(data) - 7,), dtype=np.int64, buffer=data, strides=(1,))


def bounds(packed):
    """Return where each word starts and where it ends."""
    n = packed.count(b"\0")
    starts, ends = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    packed_bounds(byte_view(packed), starts, ends)
    return starts[:n], ends[:n]


def cut(data, starts, ends):
    """Return the words ``data[start:end]`` as packed words."""
    out = np.empty((ends - starts).sum() + starts.size, dtype=np.uint8)
    pack_tokens(byte_view(data), starts, ends, out)
    return out.tobytes()


def distinct(data, starts, ends):
    """Return which distinct word each ``data[start:end]`` is, and the distinct words, packed.

    Distinct words are numbered in the order in which they first occur.
    """
    padded = data + bytes(PADDING)
    index = np.full(2 << starts.size.bit_length(), -1, dtype=np.int32)
    rows = np.empty((starts.size, 4), dtype=np.int64)
    own = np.empty((ends - starts).sum() + starts.size, dtype=np.uint8)
    numbers, used = np.empty(starts.size, dtype=np.int32), np.zeros(2, dtype=np.int64)
    text, words = byte_view(padded), word_view(padded)
    number_tokens(text, words, starts, ends, index, rows, own, used, numbers)
    return numbers, own[: used[1]].tobytes()


def select(packed, mask):
    """Return the words for which the mask is true."""
    starts, ends = bounds(packed)
    return cut(packed, starts[mask], ends[mask])


def replace(packed, others, mask):
    """Return the words, with the others, in their order, where the mask is true."""
    both = packed + others
    starts, ends = bounds(both)
    places = np.where(mask, mask.size - 1 + np.cumsum(mask), np.arange(mask.size))
    return cut(both, starts[places], ends[places])


def scatter(packed, mask):
    """Return the words, in their order, where the mask is true, and empty words elsewhere."""
    return replace(bytes(mask.size), packed, mask)


def are_empty(packed):
    """Return which words are empty."""
    starts, ends = bounds(packed)
    return starts == ends


def contain(packed, byte):
    """Return which words contain a byte."""
    ends = bounds(packed)[1]
    contains = np.zeros(ends.size, dtype=bool)
    contains[np.searchsorted(ends, np.flatnonzero(byte_view(packed) == ord(byte)))] = True
    return contains


def main_parts(packed):
    """Return the main part of each word, see `main_part`."""
    joined = contain(packed, b"'")
    return replace(packed, pack(map(main_part, unpack(select(packed, joined)))), joined)
