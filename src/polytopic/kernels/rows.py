"""Rows of counts: entries sorted by column, and those of one column added up."""

import numpy as np

from polytopic.kernels import compiled

_DIGIT = 8  # bits
_FEW = 24  # entries that are sorted faster one by one


@compiled
def number_columns(numbers, columns, n_columns, found, new):
    """Give columns to terms as they come, in place; return how many are new.

    Parameters
    ----------
    numbers : ndarray of int32
        Terms by their numbers.
    columns : ndarray of int32
        The column of each term, -2 where there is none yet; brought up to date.
    n_columns : int
        The first column that is free.
    found : ndarray of int32
        Takes the column of each number, -1 for -1.
    new : ndarray of int32
        Takes the numbers of the terms that got columns from ``n_columns`` on, in this order.
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
    """Count the entries of rows, which come in parts that weigh the same.

    Returns how many counts are stored in all rows together.

    Equivalent, for each row with parts ``p`` and their entries ``k``, in this order, to::

        counts[order[columns[k]]] += weights[p]

    where an entry with column -1 is left out.

    Parameters
    ----------
    columns : ndarray of int32
        The columns of all entries, unsorted.
    order : ndarray of int32
        Where columns are to be; they stay where they are if it is empty.
    part_sizes : ndarray of int64
        How many entries each part has.
    weights : ndarray of float64
        What each entry of a part weighs.
    row_parts : ndarray of int64
        How many parts each row has.
    n_columns : int
        One more than the largest column there may be.
    data : ndarray of float64
        Takes the counts of all rows; there is place for each entry.
    indices : ndarray of int32
        Takes their columns, sorted in each row.
    sizes : ndarray of int64
        Takes how many there are in each row.
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


@compiled
def _n_digits(n_columns):
    """Return how many digits a column has."""
    n = 1
    while n_columns >> _DIGIT * n:
        n += 1
    return n


@compiled
def _sorted(keys, other, n, n_digits, begins):
    """Sort the first keys by column, equal ones in their order; return them and the spare array.

    By their digits, from the last to the first, which unlike comparing is not guessed wrongly.
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
