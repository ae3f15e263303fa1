"""Find the tokens of texts in UTF-8, and the terms of known tokens in a hash table.

==============  ==================================================================================
``text``        bytes of all texts, with a byte between two texts that is in no token
``words``       ``words[i]`` is the eight bytes from ``text[i]`` on, as one little-endian integer
``b``           a bound: where a token starts, or where it ends
``letters``     bytes of the tokens in a table, with a zero after each (*packed* words)
``first``       the first seven bytes of a token as an integer
``second``      the next seven bytes; of a token that is longer, with ``_LONG``, a hash of the rest
``index``       slots of the hash table, by open addressing: the row of a token, -1 for none
``rows``        a row per token: ``first``, ``second``, its term or -1, its place in ``letters``
==============  ==================================================================================

A processor cannot predict which byte ends a token, and a wrong prediction costs more than the byte
itself. So the loops over bytes have no branches that depend on letters, and tokens are compared in
words of seven bytes. Integers stay below 2^63, so that the loops give the same results uncompiled.
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled, helper, inlined

# What a character can do in a token: start it, continue it, and join two letters.
STARTS, CONTINUES, JOINS = 1, 2, 4
PADDING = 16  # zero bytes after the last token, which may be read
_WORD = 7  # bytes
_MASKS = (1 << 8 * np.arange(_WORD + 1)) - 1  # of the first bytes of a word
_LONG = 1 << 56  # marks the second word of a token that is longer than two words
_LOW = (1 << 28) - 1
_FIRST, _SECOND, _TERM, _PLACE = range(4)


class Slots(NamedTuple):
    """A hash table of tokens; at least half of its slots, a power of two, are empty."""

    index: np.ndarray  # (n_slots,)
    rows: np.ndarray  # (n_tokens, 4)
    letters: np.ndarray  # (n_bytes,)
    words: np.ndarray  # (n_bytes - 7,)


@inlined
def _character(text, i):
    """Return the code point of the character that starts at a non-ASCII byte, and its length."""
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
    """Return a hash of two words, in bits 25 to 55."""
    first = (first & _LOW) * 0x9E3779B1 + (first >> 28) * 0x85EBCA77
    return first + (second & _LOW) * 0xC2B2AE3D + (second >> 28) * 0x27D4EB2F


@inlined
def _key(words, start, end):
    """Return the two words of a token, ``first`` and ``second``."""
    size = end - start
    first = words[start] & _MASKS[min(size, _WORD)]
    second = words[start + _WORD] & _MASKS[min(max(size - _WORD, 0), _WORD)]
    if size > 2 * _WORD:
        for i in range(start + 2 * _WORD, end, _WORD):
            word = words[i] & _MASKS[min(end - i, _WORD)]
            second = (_mixed(word, second) >> 4) & (_LONG - 1)
        second |= _LONG
    return first, second


@helper
def _equal(letters, place, text, start, end):
    """Return whether the token at a place in ``letters`` is ``text[start:end]``."""
    for i in range(start, end):
        if letters[place + i - start] != text[i]:  # a shorter token differs in the zero after it
            return False
    return letters[place + end - start] == 0


@compiled
def find_bounds(text, kinds, bounds):
    """Set the bounds of all tokens, start and end in turn; return the number of bounds.

    Equivalent, with the classes ``s``, ``c`` and ``j`` of characters that start, continue and join
    tokens, to::

        bounds = [b for token in re.finditer("s[sc]*(?:js[sc]*)*", text) for b in token.span()]

    Parameters
    ----------
    text : ndarray of uint8
        All texts, followed by `PADDING`.
    kinds : ndarray of uint8
        What each character can do, by its code point; as long as the texts need.
    bounds : ndarray of int64
        Output; one longer than ``text``.
    """
    n, start, inside, kind = 0, 0, 0, 0
    i = 0
    while i < text.size:
        code, width = np.int64(text[i]), 1
        if code >= 0x80:
            code, width = _character(text, i)
        ahead = np.int64(kinds[code])
        # Decide about the character before: a joiner needs to know the one after it.
        now = (kind | (kind >> 1 | kind >> 2 & ahead) & inside) & 1
        bounds[n] = start
        n += now ^ inside
        inside, kind, start = now, ahead, i
        i += width
    return n


@compiled
def find_tokens(text, words, sizes, bounds, slots, terms, n_terms, new):
    """Find the terms of known tokens; return the number of unknown tokens.

    Equivalent, with a dict ``term_of`` of the known tokens (-1 for tokens that are dropped), to::

        found = [term_of.get(text[start:end], unknown) for start, end in bounds.reshape(-1, 2)]
        terms = [-1 if term is unknown else term for term in found if term != -1]

    Parameters
    ----------
    text, words : ndarray
        All texts, followed by `PADDING`.
    sizes : ndarray of shape (n_texts,)
        Number of bytes of each text.
    bounds : ndarray of int64
        Start and end of each token in turn, as `find_bounds` sets them.
    slots : Slots
        The known tokens.
    terms : ndarray of int32
        Output: the term of each token that is not dropped, -1 for an unknown token.
    n_terms : ndarray of shape (n_texts,)
        Output: number of terms of each text; zeros at first.
    new : ndarray of shape (3, n_tokens)
        Output, of each unknown token: its position in ``terms``, its start, its end.
    """
    index, rows, letters = slots.index, slots.rows, slots.letters  # reference counting is slow
    last_slot = index.size - 1
    n, n_new, d, text_end = 0, 0, -1, -1
    for b in range(0, bounds.size, 2):
        start, end = bounds[b], bounds[b + 1]
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
    """Return the slot of a token, or the empty slot where it belongs."""
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
    """Add tokens to a table of ``n`` unless they are known; return the new number of tokens.

    Equivalent to::

        for token in range(starts.size):
            term_of.setdefault(letters[starts[token] : ends[token]], terms[token])

    The most frequent tokens come first, and so get the slots in which they are found at once.
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
def number_tokens(text, words, starts, ends, index, rows, letters, used, numbers):
    """Set the numbers of the tokens ``text[start:end]``; equal tokens get the same number.

    Equivalent to::

        for start, end in zip(starts, ends):
            numbers.append(number_of.setdefault(text[start:end], len(number_of)))

    Parameters
    ----------
    text, words : ndarray
        The bytes, followed by `PADDING`.
    starts, ends : ndarray of int64
        Where the tokens are.
    index, rows, letters : ndarray
        The tokens that have numbers, as in `Slots`; updated in place, and large enough.
    used : ndarray of shape (2,)
        How many rows and bytes of these are in use; updated in place.
    numbers : ndarray of int32
        Output: the number of each token.
    """
    n, size = used[0], used[1]
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
    used[0], used[1] = n, size


@compiled
def are_known(text, words, starts, ends, index, rows, letters, known):
    """Set which of the tokens ``text[start:end]`` are in a table.

    Equivalent to ``known[:] = [text[start:end] in term_of for start, end in zip(starts, ends)]``.
    """
    for token in range(starts.size):
        start, end = starts[token], ends[token]
        first, second = _key(words, start, end)
        known[token] = index[_slot(index, rows, letters, first, second, text, start, end)] >= 0


@compiled
def pack_tokens(text, starts, ends, letters):
    r"""Copy the tokens ``text[start:end]`` to ``letters``, with a zero after each.

    Equivalent to ``b"".join(text[start:end] + b"\0" for start, end in zip(starts, ends))``.
    """
    size = 0
    for token in range(starts.size):
        for i in range(starts[token], ends[token]):
            letters[size] = text[i]
            size += 1
        letters[size] = 0
        size += 1


@compiled
def packed_bounds(letters, starts, ends):
    """Set where packed tokens start and end, in arrays with one place more than there are tokens.

    Equivalent to::

        ends[:-1] = np.flatnonzero(letters == 0)
        starts[0], starts[1:] = 0, ends[:-1] + 1
    """
    token = 0
    for place in range(letters.size):  # without a branch, which would be unpredictable
        ends[token] = place
        token += letters[place] == 0
    starts[0] = 0
    for token in range(starts.size - 1):
        starts[token + 1] = ends[token] + 1


@compiled
def index_tokens(rows, n, index):
    """Put the first ``n`` tokens into empty slots, in their order.

    Equivalent, for each row, to ``index[first_empty(index, hash(row) % index.size)] = row``.
    """
    last_slot = index.size - 1
    for row in range(n):
        slot = (_mixed(rows[row, _FIRST], rows[row, _SECOND]) >> 25) & last_slot
        while index[slot] >= 0:
            slot = (slot + 1) & last_slot
        index[slot] = row
