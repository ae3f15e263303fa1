"""Tokens of text in UTF-8: where they are, and the terms of those that are known.

Which byte ends a token cannot be foreseen, and a processor that guesses wrongly loses more time
than the byte itself takes. So the loops over bytes have no branches that depend on letters, and
tokens are compared in words of seven bytes. Numbers stay below 2^63, so that the loops do the
same when they are not compiled.
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled, inlined

# What a character can do in a token: begin it, go on with it, and join two letters.
BEGINS, GOES_ON, JOINS = 1, 2, 4
PADDING = 16  # bytes after all tokens that can be read, and are zero after the last
_WORD = 7  # bytes
_MASKS = (1 << 8 * np.arange(_WORD + 1)) - 1  # of so many bytes of a word
_LONG = 1 << 56  # in the second word of a token that is longer than two
_LOW = (1 << 28) - 1
_FIRST, _SECOND, _TERM, _PLACE = range(4)


class Slots(NamedTuple):
    """Known tokens by open addressing; at least half of the slots, a power of two, are empty."""

    index: np.ndarray  # (n_slots,): which token is there, -1 for none
    rows: np.ndarray  # (n_tokens, 4): a token's two words, its term or -1, the place of its bytes
    letters: np.ndarray  # bytes of all tokens, with a zero after each, which is in no token
    words: np.ndarray  # eight of these bytes from each place on, as one number


@inlined
def _character(text, i):
    """Return the code of the character that begins at a byte beyond ASCII, and its length."""
    lead = np.int64(text[i])
    code = np.int64(text[i + 1] & 0x3F)
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | code, 2
    code = code << 6 | np.int64(text[i + 2] & 0x3F)
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | code, 3
    return (lead & 0x07) << 18 | code << 6 | np.int64(text[i + 3] & 0x3F), 4


@inlined
def _mixed(first, second):
    """Return a number whose bits from 25 to 55 depend on all bits of two words."""
    first = (first & _LOW) * 0x9E3779B1 + (first >> 28) * 0x85EBCA77
    return first + (second & _LOW) * 0xC2B2AE3D + (second >> 28) * 0x27D4EB2F


@inlined
def _key(words, start, end):
    """Return two words: the bytes of a token, or with ``_LONG`` their beginning and a hash."""
    size = end - start
    first = words[start] & _MASKS[min(size, _WORD)]
    second = words[start + _WORD] & _MASKS[min(max(size - _WORD, 0), _WORD)]
    if size > 2 * _WORD:
        for i in range(start + 2 * _WORD, end, _WORD):
            word = words[i] & _MASKS[min(end - i, _WORD)]
            second = (_mixed(word, second) >> 4) & (_LONG - 1)
        second |= _LONG
    return first, second


@compiled
def _equal(letters, place, text, start, end):
    """Return whether the token whose bytes begin at a place is ``text[start:end]``."""
    for i in range(start, end):
        if letters[place + i - start] != text[i]:  # at the latest the zero after a shorter one
            return False
    return letters[place + end - start] == 0


@compiled
def find_borders(text, kinds, borders):
    """Set where the tokens of texts start and end, one after the other; return how many borders.

    For each text, tokens are the matches of ``b[bg]*(?:j[b][bg]*)*`` with the classes of
    characters that begin, go on and join.

    Parameters
    ----------
    text : ndarray of uint8
        All texts in UTF-8, with a byte between them that is in no token, and `PADDING`.
    kinds : ndarray of uint8
        What each character can do, by its code; it must reach to the last one in the texts.
    borders : ndarray of int64
        Takes the borders; has one place more than there are bytes.
    """
    n, start, inside, kind = 0, 0, 0, 0
    i = 0
    while i < text.size:
        code, width = np.int64(text[i]), 1
        if code >= 0x80:
            code, width = _character(text, i)
        ahead = np.int64(kinds[code])
        # The character before this one, which a joiner has to know
        now = (kind | (kind >> 1 | kind >> 2 & ahead) & inside) & 1
        borders[n] = start
        n += now ^ inside
        inside, kind, start = now, ahead, i
        i += width
    return n


@compiled
def find_tokens(text, words, sizes, borders, slots, terms, n_terms, new):
    """Find the terms of tokens that are known; return how many tokens are not.

    Parameters
    ----------
    text : ndarray of uint8
        All texts in UTF-8, with a byte between them that is in no token, and `PADDING`.
    words : ndarray of int64
        Eight bytes of the text from each place on, as one number.
    sizes : ndarray of shape (n_texts,)
        How many bytes each text has.
    borders : ndarray of int64
        Start and end of each token, one after the other, as `find_borders` gives them.
    slots : Slots
        The known tokens.
    terms : ndarray of int32
        Takes the term of each token that is not dropped, -1 for one that is not known.
    n_terms : ndarray of shape (n_texts,)
        Takes how many of them each text has; zeros at first.
    new : ndarray of shape (3, n_tokens)
        Takes the place among the terms, the start and the end in ``text`` of each unknown token.
    """
    index, rows, letters = slots.index, slots.rows, slots.letters  # counting references takes long
    last_slot = index.size - 1
    n, n_new, d, text_end = 0, 0, -1, -1
    for b in range(0, borders.size, 2):
        start, end = borders[b], borders[b + 1]
        while start >= text_end:
            d += 1
            text_end += 1 + sizes[d]
        first, second = _key(words, start, end)
        slot = (_mixed(first, second) >> 25) & last_slot
        while True:
            row = index[slot]
            if row < 0 or (
                rows[row, _FIRST] == first
                and rows[row, _SECOND] == second
                and (second < _LONG or _equal(letters, rows[row, _PLACE], text, start, end))
            ):
                break
            slot = (slot + 1) & last_slot
        if row >= 0:
            terms[n] = rows[row, _TERM]
            kept = np.int64(rows[row, _TERM] >= 0)
        else:
            terms[n], kept = -1, 1
            new[0, n_new], new[1, n_new], new[2, n_new] = n, start, end
            n_new += 1
        n += kept
        n_terms[d] += kept
    return n_new


@inlined
def _slot(index, rows, letters, first, second, text, start, end):
    """Return the slot of a token, or the empty one where it is to be."""
    last_slot = index.size - 1
    slot = (_mixed(first, second) >> 25) & last_slot
    while index[slot] >= 0 and not (
        rows[index[slot], _FIRST] == first
        and rows[index[slot], _SECOND] == second
        and (second < _LONG or _equal(letters, rows[index[slot], _PLACE], text, start, end))
    ):
        slot = (slot + 1) & last_slot
    return slot


@compiled
def add_tokens(slots, n, starts, ends, terms):
    """Add tokens to ``n``, in place, unless they are known; return how many there are then.

    A token is ``slots.letters[start:end]``. The first are the most frequent ones, so they come
    first: then fewer are elsewhere than where they should be, and these are near to each other.
    """
    index, rows, letters = slots.index, slots.rows, slots.letters
    for token in range(starts.size):
        start, end = starts[token], ends[token]
        first, second = _key(slots.words, start, end)
        slot = _slot(index, rows, letters, first, second, letters, start, end)
        if index[slot] < 0:
            index[slot] = n
            rows[n, _FIRST], rows[n, _SECOND] = first, second
            rows[n, _TERM], rows[n, _PLACE] = terms[token], start
            n += 1
    return n


@compiled
def number_tokens(text, words, starts, ends, index, rows, letters, filled, numbers):
    """Give numbers to tokens, the same to equal ones; a token is ``text[start:end]``.

    Parameters
    ----------
    text, words : ndarray
        Bytes, and eight of them from each place on, as one number.
    starts, ends : ndarray of int64
        Where the tokens are.
    index, rows, letters : ndarray
        Tokens that have numbers, as in `Slots`. New ones are put there in place, so there must be
        place for them.
    filled : ndarray of shape (2,)
        How many tokens have numbers, and how many bytes these have; brought up to date.
    numbers : ndarray of int32
        Takes the number of each token; new ones get the next.
    """
    n, size = filled[0], filled[1]
    for token in range(starts.size):
        start, end = starts[token], ends[token]
        first, second = _key(words, start, end)
        slot = _slot(index, rows, letters, first, second, text, start, end)
        if index[slot] < 0:
            index[slot] = n
            rows[n, _FIRST], rows[n, _SECOND] = first, second
            rows[n, _TERM], rows[n, _PLACE] = n, size
            n += 1
            for i in range(start, end):
                letters[size] = text[i]
                size += 1
            letters[size] = 0
            size += 1
        numbers[token] = index[slot]
    filled[0], filled[1] = n, size


@compiled
def known_tokens(text, words, starts, ends, index, rows, letters, known):
    """Set which tokens, at ``text[start:end]``, are known."""
    for token in range(starts.size):
        start, end = starts[token], ends[token]
        first, second = _key(words, start, end)
        known[token] = index[_slot(index, rows, letters, first, second, text, start, end)] >= 0


@compiled
def pack_tokens(text, starts, ends, letters):
    """Copy the bytes ``text[start:end]`` of tokens to ``letters``, with a zero after each."""
    size = 0
    for token in range(starts.size):
        for i in range(starts[token], ends[token]):
            letters[size] = text[i]
            size += 1
        letters[size] = 0
        size += 1


@compiled
def token_borders(letters, starts, ends):
    """Set where tokens, with a zero after each, start and end.

    The arrays have one place more than there are tokens.
    """
    token = 0
    for place in range(letters.size):  # without a branch, which could not be foreseen
        ends[token] = place
        token += letters[place] == 0
    starts[0] = 0
    for token in range(starts.size - 1):
        starts[token + 1] = ends[token] + 1


@compiled
def index_tokens(rows, n, index):
    """Put ``n`` tokens into slots, which are empty, in their order, in place."""
    last_slot = index.size - 1
    for row in range(n):
        slot = (_mixed(rows[row, _FIRST], rows[row, _SECOND]) >> 25) & last_slot
        while index[slot] >= 0:
            slot = (slot + 1) & last_slot
        index[slot] = row
