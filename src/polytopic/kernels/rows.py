"""Rows of counts from unsorted entries: number the columns, sort each row, add up equal columns.

==================  ===============================================================================
``k``               an entry: one occurrence of a term in a text
``columns[k]``      its column, -1 for an entry that is left out
``part``            a run of entries with one weight: a field of a text, or a term of a bag of words
``row``             a text: a run of ``row_parts[row]`` parts
``keys``            entries of a row as ``column << 32 | part``, so that sorting keys sorts columns
==================  ===============================================================================
"""

import numpy as np

from polytopic.kernels import compiled, helper

_DIGIT = 8  # bits
_FEW = 24  # entries, up to which insertion sort is faster than radix sort


@compiled
def number_columns(numbers, columns, n_columns, found, new):
    """Give a column to each term that has none, in order of occurrence; return how many are new.

    Equivalent to::

        for number in numbers:
            if number >= 0 and columns[number] == -2:
                columns[number] = n_columns + len(new)
                new.append(number)
        found[:] = [columns[number] if number >= 0 else -1 for number in numbers]

    Parameters
    ----------
    numbers : ndarray of int32
        Numbers of terms, or -1.
    columns : ndarray of int32
        The column of each term, -2 for none; updated in place.
    n_columns : int
        The first free column.
    found : ndarray of int32
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
        found[k] = column
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
    begins, n_digits = np.zeros(1 << _DIGIT, np.int64), _n_digits(n_columns)
    part, k, stored = 0, 0, 0
    for row in range(sizes.size):
        most = part_sizes[part : part + row_parts[row]].sum()
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
        begins[:] = 0
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
