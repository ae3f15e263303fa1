"""From strings to the numbers of their terms, by compiled loops."""

from typing import NamedTuple

import numpy as np

from polytopic.kernels.tokens import PADDING, find_tokens
from polytopic.text.token_table import TokenTable, words_of


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
    new_tokens : list of bytes
        The tokens that are not known, in UTF-8.
    """

    table: TokenTable
    numbers: np.ndarray
    sizes: np.ndarray
    new_places: np.ndarray
    new_tokens: list[bytes]


def scan(strings, pattern, table):
    """Find the tokens of strings, and the terms of those that a table knows."""
    texts = [string.encode("utf-8", "surrogatepass") for string in strings]
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    data = b"\0".join(texts) + bytes(PADDING)
    text = np.frombuffer(data, dtype=np.uint8)
    kinds = pattern.kinds(0x7F if data.isascii() else text.max())
    numbers, n_terms, new = find_tokens(text, words_of(data), sizes, kinds, table.slots)
    tokens = [data[start:end] for _, start, end in new.tolist()]
    return Scan(table, numbers, n_terms, new[:, 0], tokens)
