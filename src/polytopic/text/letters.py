"""Many words in one string of bytes: in UTF-8, with a zero after each."""

import numpy as np

from polytopic.kernels.tokens import PADDING, number_tokens, pack_tokens, token_borders
from polytopic.text.tokens import main_part


def letters_of(words):
    """Return words as letters."""
    return "\0".join([*words, ""]).encode()


def split(letters):
    """Return the words that letters are."""
    return letters.decode().split("\0")[:-1]


def bytes_of(data):
    """Return bytes as numbers."""
    return np.frombuffer(data, dtype=np.uint8)


def words_of(data):
    """Return the eight bytes from each place on, as one number."""
    return np.ndarray((len(data) - 7,), dtype=np.int64, buffer=data, strides=(1,))


def borders_of(letters):
    """Return where words start and end."""
    n = letters.count(b"\0")
    starts, ends = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    token_borders(bytes_of(letters), starts, ends)
    return starts[:n], ends[:n]


def distinct(letters, starts, ends):
    """Return the number of each word, which is at these places, among the distinct ones, and these.

    They come in the order of the first of each.
    """
    data = letters + bytes(PADDING)
    index = np.full(2 << starts.size.bit_length(), -1, dtype=np.int32)
    rows = np.empty((starts.size, 4), dtype=np.int64)
    own = np.empty((ends - starts).sum() + starts.size, dtype=np.uint8)
    which, filled = np.empty(starts.size, dtype=np.int32), np.zeros(2, dtype=np.int64)
    number_tokens(bytes_of(data), words_of(data), starts, ends, index, rows, own, filled, which)
    return which, own[: filled[1]].tobytes()


def packed(letters, starts, ends):
    """Return the words at these places, one after the other."""
    out = np.empty((ends - starts).sum() + starts.size, dtype=np.uint8)
    pack_tokens(bytes_of(letters), starts, ends, out)
    return out.tobytes()


def chosen(letters, mask):
    """Return the words where a mask is true."""
    starts, ends = borders_of(letters)
    return packed(letters, starts[mask], ends[mask])


def spread(letters, mask):
    """Return words where a mask is true, and empty ones elsewhere."""
    return filled(bytes(mask.size), letters, mask)


def filled(letters, others, mask):
    """Return words, and others where a mask is true, in their order."""
    both = letters + others
    starts, ends = borders_of(both)
    places = np.where(mask, mask.size - 1 + np.cumsum(mask), np.arange(mask.size))
    return packed(both, starts[places], ends[places])


def are_empty(letters):
    """Return which words are empty."""
    starts, ends = borders_of(letters)
    return starts == ends


def having(letters, byte):
    """Return which words have a byte."""
    ends = borders_of(letters)[1]
    has = np.zeros(ends.size, dtype=bool)
    has[np.searchsorted(ends, np.flatnonzero(bytes_of(letters) == ord(byte)))] = True
    return has


def main_parts(letters):
    """Return the longest part of each word between apostrophes, the last of equals."""
    joint = having(letters, b"'")
    return filled(letters, letters_of(map(main_part, split(chosen(letters, joint)))), joint)
