"""Arrays of models, tables and documents in few bytes for files, without loss.

The value that an array holds most of the time is left out, and one bit per entry says where:
weights of zero, counts of one, and the upper bytes of small numbers. The columns of a row ascend,
so that the gaps between them are small numbers.

Whoever owns arrays says how each is packed, by one of these names; others are written as they are:

========= ====================================================================================
sizes     where the rows of a matrix begin (``indptr``), as the size of each row
columns   the ascending columns of rows (``indices``), as the gaps between them
counts    word counts (``data``), as what they exceed one by
whole     whole numbers, in as few bytes as hold them
pairs     weights of words × dimensions × labels (``weights``), without pairs that have none
========= ====================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from polytopic.array_specs import REAL, UNSIGNED, ArraySpec, check_arrays, check_memory

TABLE_PACKING = {  # of a LabelSetCounts
    "data": "counts",
    "indices": "columns",
    "indptr": "sizes",
    "set_indices": "whole",
    "set_indptr": "sizes",
    "set_docs": "whole",
    "document_frequency": "whole",
}
ROWS_PACKING = {  # of DocumentRows
    "data": "counts",
    "indices": "columns",
    "indptr": "sizes",
    "label_indices": "whole",
    "label_indptr": "sizes",
}
INDPTR, SIZES = "indptr", "sizes"  # ends of names
LOW = np.uint32(255)  # the part of a gap that one byte holds
LONGEST_ROW = 1 << 32  # entries; sums over as many rows fit into 64 bits
PACKED = {
    "gaps": ArraySpec(("uint8",), ("n_entries",)),
    "gaps_mask": ArraySpec(("uint8",), ("n_mask_bytes",)),
    "gaps_high": ArraySpec(UNSIGNED, ("n_high",), 0, (1 << 24) - 1),
    "data_mask": ArraySpec(("uint8",), ("n_data_mask_bytes",)),
    "data_more": ArraySpec(UNSIGNED, ("n_more",), 0, (1 << 32) - 1),
    "weights_mask": ArraySpec(("uint8",), ("n_words", "n_weights_mask_bytes")),
    "weights_values": ArraySpec(REAL, ("rank", "n_values")),
}


def pack(arrays: Mapping[str, np.ndarray], packing: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Return arrays in as few bytes as hold them."""
    packed: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        match packing.get(name):
            case "sizes":
                packed[name.removesuffix(INDPTR) + SIZES] = _narrow(np.diff(array))
            case "columns":
                packed |= _pack_columns(array, arrays[INDPTR])
            case "counts":
                packed |= _pack_counts(array)
            case "pairs":
                packed |= _pack_weights(array)
            case "whole":
                packed[name] = _narrow(array)
            case _:
                packed[name] = array
    return packed


def unpack(arrays: Mapping[str, np.ndarray], packing: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Return the arrays that :func:`pack` was given; those that are not packed stay.

    What cannot have been packed raises ValueError, before it takes memory.
    """
    kinds = set(packing.values())
    check_arrays(arrays, {name: spec for name, spec in PACKED.items() if name in arrays})
    found = dict(arrays)
    for name in [name for name, kind in packing.items() if kind == "sizes"]:
        sizes = name.removesuffix(INDPTR) + SIZES
        if sizes in found:
            found[name] = _ends(sizes, found.pop(sizes))
    if "columns" in kinds and "gaps" in found:
        low, mask, high = (found.pop(name) for name in ("gaps", "gaps_mask", "gaps_high"))
        found["indices"] = _unpack_columns(low, mask, high, found[INDPTR])
    if "counts" in kinds and "data_mask" in found:
        mask, more = found.pop("data_mask"), found.pop("data_more")
        found["data"] = _spread(mask, more, found["indices"].size, np.float64) + 1.0
    if "pairs" in kinds and "weights_mask" in found:
        mask, values = found.pop("weights_mask"), found.pop("weights_values")
        check_memory(8 * mask.size * values.shape[0] * values.itemsize, arrays)
        found["weights"] = _unpack_weights(mask, values, found["columns"].size)
    for name, kind in packing.items():
        if kind in ("whole", "counts", "columns") and name in found:
            found[name] = _widen(name, found[name])
    return found


def _widen(name, array):
    """Return whole numbers of few bytes as 64-bit numbers: integers for columns, else floats."""
    if array.dtype.kind != "u":
        return array
    return array.astype(np.int64 if name.endswith("indices") else np.float64)


def _pack_columns(columns, indptr):
    """Return the gaps between ascending columns: their low bytes, and what is above."""
    columns = columns.astype(np.uint32)
    gaps = columns.copy()
    gaps[1:] -= columns[:-1]  # wraps around where a row begins, which the next line mends
    begins = indptr[:-1][np.diff(indptr) > 0]
    gaps[begins] = columns[begins]
    mask, high = _without_zeros(gaps >> 8)
    return {"gaps": (gaps & LOW).astype(np.uint8), "gaps_mask": mask, "gaps_high": high}


def _ends(name, sizes):
    """Return where rows begin, and where the last one ends, by their sizes."""
    if sizes.dtype.kind not in "iu" or sizes.ndim != 1 or not sizes.min(initial=0) >= 0:
        raise ValueError(f"{name!r} must be a list of sizes")
    if sizes.max(initial=0) > LONGEST_ROW:
        raise ValueError(f"{name!r} has a row of {sizes.max()} entries, at most {LONGEST_ROW} fit")
    ends = np.zeros(sizes.size + 1, dtype=np.int64)
    np.cumsum(sizes, dtype=np.int64, out=ends[1:])
    return ends


def _unpack_columns(low, mask, high, indptr):
    if indptr[-1] != low.size:
        raise ValueError("the sizes of rows do not match their columns")
    gaps = _spread(mask, high, low.size, np.uint32)
    gaps <<= 8
    gaps |= low
    columns = np.cumsum(gaps, dtype=np.uint32, out=gaps)
    before = np.concatenate([np.zeros(1, np.uint32), columns])[indptr[:-1]]
    columns -= np.repeat(before, np.diff(indptr))
    return columns.view(np.int32)


def _pack_counts(counts):
    """Return by how much counts exceed one, if they are whole and none is less."""
    narrow = _narrow(counts)
    if narrow.dtype.kind != "u" or not narrow.all():
        return {"data": narrow}
    mask, more = _without_zeros(narrow - 1)
    return {"data_mask": mask, "data_more": more}


def _pack_weights(weights):
    """Return the weights of the pairs of a word and a label that have any."""
    bits = weights.view(f"u{weights.itemsize}")  # a zero may be negative
    mask = np.zeros((len(weights), weights.shape[2]), dtype=bool)
    for axis in range(weights.shape[1]):
        mask |= bits[:, axis] != 0
    values = np.array([weights[:, axis][mask] for axis in range(weights.shape[1])])
    return {"weights_mask": np.packbits(mask, axis=1), "weights_values": values}


def _unpack_weights(mask, values, n_labels):
    if mask.shape[1] != _n_bytes(n_labels):
        raise ValueError("the size of the weights does not match their labels")
    mask = np.unpackbits(mask, axis=1, count=n_labels).view(bool)
    _check_bits(mask, values.shape[1])
    weights = np.zeros((len(mask), len(values), n_labels), dtype=values.dtype)
    for axis, own in enumerate(values):
        weights[:, axis][mask] = own
    return weights


def _n_bytes(n_bits: int) -> int:
    """Return the number of bytes that hold ``n_bits`` bits."""
    return -(-n_bits // 8)


def _without_zeros(numbers):
    """Return a bit for each number, and those that are not zero in few bytes."""
    mask = numbers != 0
    return np.packbits(mask), _narrow(numbers[mask])


def _spread(mask, values, size, dtype):
    """Return ``size`` numbers: the values where a bit is set, and zero elsewhere."""
    if mask.size != _n_bytes(size):
        raise ValueError(f"there are {mask.size} bytes of bits for {size} numbers")
    mask = np.unpackbits(mask, count=size).view(bool)
    _check_bits(mask, values.size)
    numbers = np.zeros(size, dtype=dtype)
    numbers[mask] = values
    return numbers


def _check_bits(mask, n_values):
    if np.count_nonzero(mask) != n_values:
        raise ValueError(f"{np.count_nonzero(mask)} bits are set for {n_values} values")


def _narrow(numbers):
    """Return numbers in as few bytes as hold them, if they are whole and not negative."""
    largest = numbers.max(initial=0)
    if numbers.min(initial=0) < 0 or not largest <= np.iinfo(np.uint32).max:
        return numbers
    narrow = numbers.astype(np.min_scalar_type(int(largest)))
    return narrow if np.array_equal(narrow, numbers) else numbers
