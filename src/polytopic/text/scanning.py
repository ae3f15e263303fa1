"""From strings to the numbers of their terms, by compiled loops."""

from typing import NamedTuple

import numpy as np

from polytopic.kernels.tokens import PADDING, find_borders, find_tokens
from polytopic.text.letters import bytes_of, distinct, words_of
from polytopic.text.token_table import TokenTable

_NOTHING = np.zeros(0, dtype=np.int32), b""


class Scan(NamedTuple):
    """The terms of strings, one after the other.

    Attributes
    ----------
    table : TokenTable
        The tokens that are known.
    numbers : ndarray of int32
        The number of each term in the table, -1 for a token that is not known.
    sizes : ndarray of shape (n_strings,)
        How many terms each string has.
    new_places : ndarray
        Where the numbers are -1.
    new_tokens : bytes
        The distinct tokens that are not known, in UTF-8, with a zero after each.
    which : ndarray of int32
        Which of them is at each of these places.
    """

    table: TokenTable
    numbers: np.ndarray
    sizes: np.ndarray
    new_places: np.ndarray
    new_tokens: bytes
    which: np.ndarray


def scan(strings, pattern, table):
    """Find the tokens of strings, and the terms of those that a table knows."""
    is_ascii = all(map(str.isascii, strings))
    texts = strings if is_ascii else [text.encode("utf-8", "surrogatepass") for text in strings]
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    data = ("\0".join(texts).encode() if is_ascii else b"\0".join(texts)) + bytes(PADDING)
    text = bytes_of(data)
    kinds = pattern.kinds(0x7F if is_ascii else text.max())
    borders = np.empty(text.size + 1, np.int64)
    borders = borders[: find_borders(text, kinds, borders)]
    numbers, n_terms = np.empty(borders.size // 2, np.int32), np.zeros(sizes.size, np.int64)
    new = np.empty((3, borders.size // 2), np.int64)
    n_new = find_tokens(text, words_of(data), sizes, borders, table.slots, numbers, n_terms, new)
    places, starts, ends = new[:, :n_new]
    which, letters = distinct(data, starts, ends) if n_new else _NOTHING
    return Scan(table, numbers[: n_terms.sum()], n_terms, places, letters, which)
