"""Slow twins of the kernels that read texts.

Tokens are ``bytes`` here, and tables of tokens are dicts.
"""

import re
import zlib
from collections import Counter

from polytopic.text.kernels import CONTINUES, JOINS, LEMMA, STARTS, WORD


def find_bounds(text, kinds):
    """Return the bounds of tokens in a string: start and end of each, in bytes."""
    kind_of = {c: int(kinds[ord(c)]) for c in set(text)}
    classes = {
        name: "".join(re.escape(c) for c, kind in kind_of.items() if kind & bit) or "\ufffe"
        for name, bit in {"s": STARTS, "c": CONTINUES, "j": JOINS}.items()
    }
    token = "[{s}][{s}{c}]*(?:[{j}][{s}][{s}{c}]*)*".format(**classes)
    spans = [match.span() for match in re.finditer(token, text)]
    return [len(text[:place].encode()) for span in spans for place in span]


def find_tokens(tokens, term_of):
    """Return the terms of tokens, -1 for unknown ones, without those that are dropped (-1)."""
    terms = [term_of.get(token) for token in tokens]
    return [-1 if term is None else term for term in terms if term != -1]


def add_tokens(term_of, tokens, terms):
    """Add tokens with their terms, unless they are known."""
    for token, term in zip(tokens, terms, strict=True):
        term_of.setdefault(token, term)


def number_tokens(tokens, number_of):
    """Return the number of each token; unknown tokens get the next number."""
    return [number_of.setdefault(token, len(number_of)) for token in tokens]


def are_known(tokens, term_of):
    """Return which tokens are known."""
    return [token in term_of for token in tokens]


def pack_tokens(tokens):
    """Return tokens with a zero after each."""
    return b"".join(token + b"\0" for token in tokens)


def packed_bounds(letters):
    """Return where packed tokens start and end."""
    ends = [place for place, byte in enumerate(letters) if byte == 0]
    return [0, *(end + 1 for end in ends)][: len(ends)], ends


def index_tokens(hashes, n_slots):
    """Return the slots of tokens by open addressing, from their hashes."""
    index = [-1] * n_slots
    for row, slot in enumerate(hashes):
        while index[slot % n_slots] >= 0:
            slot += 1
        index[slot % n_slots] = row
    return index


def find_lemmas(words, data, places):
    """Return the lemma of each word, empty for none."""

    def lemma_of(word):
        slot = zlib.crc32(word) % (len(places) - 1)
        entries = data[places[slot] : places[slot + 1]].split(bytes([WORD]))
        lemmas = dict(entry.split(bytes([LEMMA])) for entry in entries if entry)
        return lemmas.get(word, b"")

    return [lemma_of(word) for word in words]


def number_columns(numbers, columns, n_columns):
    """Return the column of each number and the numbers of new terms; update the columns."""
    new = []
    for number in numbers:
        if number >= 0 and columns[number] == -2:
            columns[number] = n_columns + len(new)
            new.append(number)
    return [columns[number] if number >= 0 else -1 for number in numbers], new


def sum_rows(rows, order):
    """Return the counts of each row by column; a row is a list of (weight, columns) parts."""
    counts = []
    for row in rows:
        own = Counter()
        for weight, columns in row:
            for column in columns:
                if column >= 0:
                    own[order[column] if order else column] += weight
        counts.append(dict(sorted(own.items())))
    return counts
