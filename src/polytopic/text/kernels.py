"""Compiled loops over texts: find tokens and their terms, look up lemmas, add up rows of counts.

**Tokens**

==================  ==============================================================================
``text``            bytes of all texts, with a byte between two texts that is in no token
``words``           ``words[i]`` is the eight bytes from ``text[i]`` on, as a little-endian integer
``b``               a bound: where a token starts, or where it ends
``letters``         bytes of the tokens in a table, with a zero after each (*packed* words)
``first``           the first seven bytes of a token as an integer
``second``          the next seven bytes; of a longer token, ``_LONG`` and a hash of the rest
``index``           slots of the hash table, by open addressing: the row of a token, -1 for none
``rows``            a row per token: ``first``, ``second``, its term or -1, its place in ``letters``
==================  ==============================================================================

**Lemmas**

==================  ==============================================================================
``letters``         bytes of the words to look up; word ``w`` is ``letters[starts[w]:ends[w]]``
``data``            the dictionary: entries ``WORD word LEMMA lemma``, grouped into slots
``places``          where each slot begins in ``data``, and where the last one ends
``lemma_starts``,   the result: the lemma of ``w`` is ``data[lemma_starts[w]:lemma_ends[w]]``
``lemma_ends``
==================  ==============================================================================

**Rows of counts**

==================  ==============================================================================
``k``               an entry: one occurrence of a term in a text
``columns[k]``      its column, -1 for an entry that is left out
``part``            a run of entries with one weight: a field of a text, or a term of a bag of words
``row``             a text: a run of ``row_parts[row]`` parts
``keys``            entries of a row as ``column << 32 | part``, so that sorting keys sorts columns
==================  ==============================================================================

A processor cannot predict which byte ends a token, and a wrong prediction costs more than the byte
itself. So the loops over bytes have no branches that depend on letters, and tokens are compared
seven bytes at a time. Integers stay below 2^63, so that the loops give the same results uncompiled.
"""

from typing import NamedTuple

import numpy as np

from polytopic.kernels import compiled, helper, inlined

# Tokens

# What a character can do in a token: start it, continue it, and join two letters.
STARTS, CONTINUES, JOINS = 1, 2, 4
PADDING = 16  # zero bytes after the last token, which may be read
_WORD_BYTES = 7
_MASKS = (1 << 8 * np.arange(_WORD_BYTES + 1)) - 1  # of the first bytes of a word
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
    first = words[start] & _MASKS[min(size, _WORD_BYTES)]
    second = words[start + _WORD_BYTES] & _MASKS[min(max(size - _WORD_BYTES, 0), _WORD_BYTES)]
    if size > 2 * _WORD_BYTES:
        for i in range(start + 2 * _WORD_BYTES, end, _WORD_BYTES):
            word = words[i] & _MASKS[min(end - i, _WORD_BYTES)]
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
        What each character can do, by its code point; long enough for the texts.
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

        by_token = [term_of.get(text[start:end]) for start, end in bounds.reshape(-1, 2)]
        terms = [-1 if term is None else term for term in by_token if term != -1]

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
            is_term = np.int64(rows[row, _TERM] >= 0)
        else:
            terms[n], is_term = -1, 1
            new[0, n_new], new[1, n_new], new[2, n_new] = n, start, end
            n_new += 1
        n += is_term
        n_terms[d] += is_term
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


# Lemmas: the slot of a word is given by the last bits of its CRC-32; the number of slots is a
# power of two.

WORD, LEMMA = 0xFF, 0xFE  # the bytes before words and lemmas, which never occur in UTF-8


def _crc_table():
    """Return the effect of each byte on the last eight bits of a CRC-32."""
    table = np.arange(256)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ 0xEDB88320, table >> 1)
    return table


_CRC = _crc_table()


@compiled
def find_lemmas(letters, starts, ends, data, places, lemma_starts, lemma_ends):
    """Set where the lemma of each word is in ``data``; 0 and 0 for a word that is not there.

    Equivalent, for each word, to::

        slot = zlib.crc32(word) % (places.size - 1)
        entries = data[places[slot] : places[slot + 1]].split(WORD)
        lemma = next((e.split(LEMMA)[1] for e in entries if e.split(LEMMA)[0] == word), b"")
    """
    for word in range(starts.size):
        crc = np.int64(0xFFFFFFFF)
        for i in range(starts[word], ends[word]):
            crc = _CRC[(crc ^ letters[i]) & 0xFF] ^ crc >> 8
        lemma_starts[word] = (crc ^ 0xFFFFFFFF) & (places.size - 2)
    for word in range(starts.size):  # a loop of its own, so that many places are fetched at once
        slot = lemma_starts[word]
        lemma_starts[word], lemma_ends[word] = places[slot], places[slot + 1]
    for word in range(starts.size):
        start, size = starts[word], ends[word] - starts[word]
        place, last = lemma_starts[word], lemma_ends[word]
        lemma_starts[word] = lemma_ends[word] = 0
        while place < last:
            place += 1
            same = 0
            while same < size and data[place + same] == letters[start + same]:
                same += 1
            is_same = same == size and data[place + same] == LEMMA
            lemma_start = place + same + 1
            while place < last and data[place] != WORD:
                place += 1
            if is_same:
                lemma_starts[word], lemma_ends[word] = lemma_start, place
                break


# Rows of counts

_DIGIT = 8  # bits
_FEW = 24  # entries, up to which insertion sort is faster than radix sort


@compiled
def number_columns(numbers, columns, n_columns, out, new):
    """Give a column to each term that has none, in order of occurrence; return how many are new.

    Equivalent to::

        for number in numbers:
            if number >= 0 and columns[number] == -2:
                columns[number] = n_columns + len(new)
                new.append(number)
        out[:] = [columns[number] if number >= 0 else -1 for number in numbers]

    Parameters
    ----------
    numbers : ndarray of int32
        Numbers of terms, or -1.
    columns : ndarray of int32
        The column of each term, -2 for none; updated in place.
    n_columns : int
        The first free column.
    out : ndarray of int32
        Output: the column of each number.
    new : ndarray of int32
        Output: the numbers of the terms that got the columns from ``n_columns`` on.
    """
    n = 0
    for k in range(numbers.size):
        number = numbers[k]
        column = np.int32(-1)
        if number >= 0:
            column = columns[number]
            if column == -2:
                column = np.int32(n_columns + n)
                columns[number], new[n] = column, number
                n += 1
        out[k] = column
    return n


@compiled
def sum_rows(columns, order, part_sizes, weights, row_parts, n_columns, data, indices, sizes):
    """Add up the weights of the entries in each row and column; return the number of sums.

    Equivalent, for each row with parts ``p`` and their entries ``k``, in this order, to::

        counts[row, order[columns[k]]] += weights[p]

    with the sums of all rows stored as in a CSR matrix with sorted indices.

    Parameters
    ----------
    columns : ndarray of int32
        The columns of all entries, unsorted; entries with -1 are left out.
    order : ndarray of int32
        The new position of each column; empty to keep them.
    part_sizes : ndarray of int64
        Number of entries of each part.
    weights : ndarray of float64
        Weight of the entries of each part.
    row_parts : ndarray of int64
        Number of parts of each row.
    n_columns : int
        Number of columns.
    data : ndarray of float64
        Output: the sums of all rows; as long as ``columns``.
    indices : ndarray of int32
        Output: their columns.
    sizes : ndarray of int64
        Output: number of sums in each row.
    """
    keys, other = np.empty(1, np.int64), np.empty(1, np.int64)
    begins, n_digits = np.empty(1 << _DIGIT, np.int64), _n_digits(n_columns)
    part, k, stored = 0, 0, 0
    for row in range(sizes.size):
        most = np.int64(0)
        for p in range(part, part + row_parts[row]):
            most += part_sizes[p]
        if most > keys.size:
            keys, other = np.empty(2 * most, np.int64), np.empty(2 * most, np.int64)
        n = 0
        for _ in range(row_parts[row]):
            for _ in range(part_sizes[part]):
                column = np.int64(columns[k])
                if column >= 0:
                    keys[n] = (np.int64(order[column]) if order.size else column) << 32 | part
                    n += 1
                k += 1
            part += 1
        keys, other = _sorted(keys, other, n, n_digits, begins)
        before, last = stored, -1
        for e in range(n):
            column, weight = keys[e] >> 32, weights[keys[e] & 0xFFFFFFFF]
            if column == last:
                data[stored - 1] += weight
            else:
                indices[stored], data[stored] = column, weight
                stored += 1
                last = column
        sizes[row] = stored - before
    return stored


@helper
def _n_digits(n_columns):
    """Return the number of digits (bytes) of a column."""
    n = 1
    while n_columns >> _DIGIT * n:
        n += 1
    return n


@helper
def _sorted(keys, other, n, n_digits, begins):
    """Sort the first ``n`` keys by column, stably; return them and the spare array.

    Radix sort, from the last digit to the first: unlike comparisons, it has no branches that the
    processor could mispredict.
    """
    if n <= _FEW:
        for e in range(1, n):
            key, place = keys[e], e
            while place and keys[place - 1] >> 32 > key >> 32:
                keys[place] = keys[place - 1]
                place -= 1
            keys[place] = key
        return keys, other
    for digit in range(n_digits):
        shift = 32 + _DIGIT * digit
        for value in range(begins.size):
            begins[value] = 0
        for e in range(n):
            begins[(keys[e] >> shift) & 0xFF] += 1
        total = 0
        for value in range(begins.size):
            total, begins[value] = total + begins[value], total
        for e in range(n):
            value = (keys[e] >> shift) & 0xFF
            other[begins[value]] = keys[e]
            begins[value] += 1
        keys, other = other, keys
    return keys, other
