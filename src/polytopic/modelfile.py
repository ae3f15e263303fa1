"""Model files: safetensors with a JSON manifest. They contain no code.

Arrays are packed into few bytes, without loss. The value that an array holds most of the time is
left out, and one bit per entry says where: weights of zero, counts of one, and the upper bytes of
small numbers. The columns of a row ascend, so the gaps between them are small numbers.

The owner of an array says how to pack it, by one of these names; other arrays are written as they
are:

========= ====================================================================================
sizes     where the rows of a matrix begin (``indptr``), as the size of each row
columns   the ascending columns of rows (``indices``), as the gaps between them
counts    word counts (``data``), less one
whole     whole numbers, in as few bytes as possible
pairs     weights of words × dimensions × labels (``weights``), without pairs whose weights are 0
========= ====================================================================================
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as parse_tensors

from polytopic.array_specs import REAL, UNSIGNED, ArraySpec, check_arrays, check_memory
from polytopic.errors import ModelFileError
from polytopic.files import new_file

FORMAT = "polytopic-model"
VERSION = 3
READABLE = (2, VERSION)  # arrays of format 2 are not packed
ALIGNMENT = 8  # bytes
LENGTH_BYTES = 8  # of the length of the header, which comes first
MAX_ARRAYS = 10_000  # safetensors takes time quadratic in their number
LONGEST_REASON, LONGEST_VERSION = 500, 20  # characters that an error message quotes
LONGEST_HEADER = 100_000_000  # bytes, the limit of safetensors
DTYPES = ("U64", "I64", "F64", "F32", "U32", "I32", "U16", "I16", "I8", "U8")  # in file order
BEGINNING = b'{"__metadata__":{"manifest":'

FACTS: dict[str, Any] = {  # of a manifest, and their types
    "polytopic_version": str,
    "model": {"name": str, "parameters": dict, "chosen": dict},
    "labels": list,
    "tree": dict | None,
    "vocabulary": list,
    "analyzer": {"language": str | None},
    "settings": {
        "language": str | None,
        "min_df": int | str,
        "max_terms": int | None,
        "fields": dict | None,
        "rule": dict | None,
    },
    "training": {"documents": int | float, "label_sets": int, "terms": int},
    "counts": dict | None,
    "documents": bool | None,
}
RULE_FACTS = {"name": str, "parameters": dict}
COUNTS_FACTS = {"labels": list, "terms": list | None, "exact": bool | None}

INDPTR, SIZES = "indptr", "sizes"  # suffixes of names
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


# The file


def write_model(path: str | Path, manifest: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a manifest and arrays to one file, completely or not at all."""
    with new_file(path, ModelFileError) as file:
        file.writelines(_pieces(manifest, arrays))


def model_bytes(manifest: Mapping[str, Any], arrays: Mapping[str, Any]) -> bytes:
    """Return the content of a model file."""
    return b"".join(_pieces(manifest, arrays))


def _pieces(manifest: Mapping[str, Any], arrays: Mapping[str, Any]) -> Iterator[bytes | memoryview]:
    """Yield the content of a model file without copying the arrays.

    The layout is that of safetensors: a header with the position of each array, then the arrays,
    those with the widest numbers first.
    """
    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    manifest = {"format": FORMAT, "format_version": VERSION, **manifest}
    manifest["digest"] = _digest(manifest, tensors)
    header: dict[str, Any] = {"__metadata__": {"manifest": _to_json(manifest)}}
    kinds = {
        name: f"{array.dtype.kind.upper()}{8 * array.itemsize}" for name, array in tensors.items()
    }
    for name, kind in kinds.items():
        if kind not in DTYPES:
            raise ModelFileError(
                f"the array {name!r} is {tensors[name].dtype} and cannot be saved; its type must "
                f"be one of {', '.join(DTYPES)}."
            )
    order, end = sorted(tensors, key=lambda name: (DTYPES.index(kinds[name]), name)), 0
    for name in order:
        array, begin = tensors[name], end
        end = begin + array.nbytes
        header[name] = {"dtype": kinds[name], "shape": array.shape, "data_offsets": [begin, end]}
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % ALIGNMENT)
    yield len(encoded).to_bytes(8, "little") + encoded
    yield from (_content(tensors[name]) for name in order)


def read_model(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the manifest and the arrays of a model file; raise ModelFileError if it is not one."""
    return parse_model(_read_bytes(Path(path)), path)


def parse_model(content: bytes, name: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the manifest and the arrays in the content of a file; errors call it ``name``."""
    manifest = _read_manifest(name, content)
    version = manifest["format_version"]
    short_version = shortened(str(version), LONGEST_VERSION)
    if version not in READABLE:
        newer = version > VERSION
        raise ModelFileError(
            f"{str(name)!r} was written by {'a newer' if newer else 'an older'} polytopic "
            f"(format {short_version}, this release reads {VERSION}). "
            f"{'Install a newer release' if newer else 'Train the model again'}."
        )
    try:
        arrays, digest = parse_tensors(content), manifest.pop("digest", None)
        if digest != _digest(manifest, arrays):
            raise ModelFileError(
                f"{str(name)!r} is damaged or was changed: its contents do not match its digest."
            )
        _check_facts(manifest, FACTS)
        if manifest["settings"]["rule"] is not None:
            _check_facts(manifest["settings"]["rule"], RULE_FACTS, "settings.rule.")
        if manifest["counts"] is not None:
            _check_facts(manifest["counts"], COUNTS_FACTS, "counts.")
    except (SafetensorError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{str(name)!r} is damaged: {shortened(str(error))}.") from error
    return manifest, arrays


def _read_bytes(path: Path) -> bytes:
    """Return the content of a file if it begins like a model file.

    Only regular files are read, because devices and pipes may be endless.
    """
    try:
        if path.exists() and not path.is_file():
            kind = "folder" if path.is_dir() else "device or a pipe"
            raise ModelFileError(f"{str(path)!r} cannot be read: it is a {kind}, must be a file.")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            beginning = file.read(LENGTH_BYTES + len(BEGINNING))
            length = _check_length(path, beginning, size)
            file.seek(LENGTH_BYTES)
            header = _parse_header(path, file.read(length))
            _check_size(path, header, size - LENGTH_BYTES - length)
            file.seek(0)
            return file.read(size)
    except FileNotFoundError:
        raise ModelFileError(f"{str(path)!r} does not exist.") from None
    except OSError as error:
        raise ModelFileError(f"{str(path)!r} cannot be read: {error.strerror}.") from error


def _check_length(path: str | Path, beginning: bytes, size: int) -> int:
    """Return the length of the header; raise if the file is too short for it."""
    length = int.from_bytes(beginning[:LENGTH_BYTES], "little")
    header = beginning[LENGTH_BYTES:]
    if header.startswith(b"{") and 0 < length <= min(size - LENGTH_BYTES, LONGEST_HEADER):
        return length
    if header.startswith(BEGINNING):
        raise ModelFileError(
            f"{str(path)!r} is damaged: it ends too early, or its header is too long."
        )
    raise ModelFileError(f"{str(path)!r} is not a polytopic model file.")


def _parse_header(path: str | Path, header: bytes) -> dict[str, Any]:
    """Return the header as a dict."""
    try:
        parsed = json.loads(header)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise ModelFileError(f"{str(path)!r} is not a polytopic model file.")
    return parsed


def _check_size(path: str | Path, header: Mapping[str, Any], size: int) -> None:
    """Raise unless the arrays of a header end where the file ends, before these are read."""
    try:
        ends = [facts["data_offsets"][1] for name, facts in header.items() if name[:2] != "__"]
        is_whole = max(ends, default=0) == size
    except (KeyError, IndexError, TypeError):
        is_whole = False
    if not is_whole:
        raise ModelFileError(
            f"{str(path)!r} is damaged: the arrays after its header have {size} bytes, which is "
            "not what the header says."
        )


def _read_manifest(path: str | Path, content: bytes) -> dict[str, Any]:
    """Return the manifest in the header, after checking the types of the arrays."""
    length = _check_length(path, content[: LENGTH_BYTES + len(BEGINNING)], len(content))
    header = _parse_header(path, content[LENGTH_BYTES : LENGTH_BYTES + length])
    try:
        manifest = json.loads(header.pop("__metadata__")["manifest"])
        is_model = manifest["format"] == FORMAT and type(manifest["format_version"]) is int
    except (AttributeError, ValueError, KeyError, TypeError, RecursionError):
        is_model = False
    if not is_model:
        raise ModelFileError(f"{str(path)!r} is not a polytopic model file.")
    if len(header) > MAX_ARRAYS:
        raise ModelFileError(
            f"{str(path)!r} is damaged: it has {len(header)} arrays, at most {MAX_ARRAYS} are read."
        )
    for name, facts in header.items():
        if not isinstance(facts, dict) or facts.get("dtype") not in DTYPES:
            kind = facts.get("dtype") if isinstance(facts, dict) else None
            raise ModelFileError(
                f"{str(path)!r} is damaged: its array {name!r} has the type {kind!r}, "
                f"must be one of {', '.join(DTYPES)}."
            )
    return manifest


def _check_facts(facts: Mapping[str, Any], kinds: Mapping[str, Any], where: str = "") -> None:
    """Raise ValueError if a part of the manifest is missing, or has the wrong type."""
    for name, kind in kinds.items():
        inner, kind = (kind, dict) if isinstance(kind, dict) else ({}, kind)
        if name not in facts or not isinstance(facts[name], kind):
            actual_type = type(facts[name]).__name__ if name in facts else "missing"
            required_type = kind.__name__ if isinstance(kind, type) else kind
            raise ValueError(
                f"{where}{name} in its manifest is {actual_type}, must be {required_type}"
            )
        _check_facts(facts[name], inner, f"{where}{name}.")


def _digest(manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """Return a digest of the manifest and the arrays."""
    digest = hashlib.sha256(_to_json(manifest).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(_content(array))
    return f"sha256:{digest.hexdigest()}"


def _content(array: np.ndarray) -> bytes | memoryview:
    """Return the bytes of an array; a view cannot be empty."""
    return array.data if array.size else b""


def shortened(text: str, longest: int = LONGEST_REASON) -> str:
    """Return a text that an error message can quote, cut if it is long."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _to_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True)


# Packing


def pack_arrays(
    arrays: Mapping[str, np.ndarray], packing: Mapping[str, str]
) -> dict[str, np.ndarray]:
    """Return arrays in as few bytes as possible."""
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


def unpack_arrays(
    arrays: Mapping[str, np.ndarray], packing: Mapping[str, str]
) -> dict[str, np.ndarray]:
    """Return the arrays that :func:`pack_arrays` was given; those that are not packed stay.

    Arrays that :func:`pack_arrays` cannot have returned raise ValueError before they take memory.
    """
    kinds = set(packing.values())
    check_arrays(arrays, {name: spec for name, spec in PACKED.items() if name in arrays})
    unpacked = dict(arrays)
    for name in [name for name, kind in packing.items() if kind == "sizes"]:
        sizes = name.removesuffix(INDPTR) + SIZES
        if sizes in unpacked:
            unpacked[name] = _ends(sizes, unpacked.pop(sizes))
    if "columns" in kinds and "gaps" in unpacked:
        low, mask, high = (unpacked.pop(name) for name in ("gaps", "gaps_mask", "gaps_high"))
        unpacked["indices"] = _unpack_columns(low, mask, high, unpacked[INDPTR])
    if "counts" in kinds and "data_mask" in unpacked:
        mask, more = unpacked.pop("data_mask"), unpacked.pop("data_more")
        unpacked["data"] = _spread(mask, more, unpacked["indices"].size, np.float64) + 1.0
    if "pairs" in kinds and "weights_mask" in unpacked:
        mask, values = unpacked.pop("weights_mask"), unpacked.pop("weights_values")
        check_memory(8 * mask.size * values.shape[0] * values.itemsize, arrays)
        unpacked["weights"] = _unpack_weights(mask, values, unpacked["columns"].size)
    for name, kind in packing.items():
        if kind in ("whole", "counts", "columns") and name in unpacked:
            unpacked[name] = _widen(name, unpacked[name])
    return unpacked


def _widen(name, array):
    """Return whole numbers of few bytes as 64-bit numbers: integers for columns, else floats."""
    if array.dtype.kind != "u":
        return array
    return array.astype(np.int64 if name.endswith("indices") else np.float64)


def _pack_columns(columns, indptr):
    """Return the gaps between ascending columns: their low bytes, and the bytes above these."""
    columns = columns.astype(np.uint32)
    gaps = columns.copy()
    gaps[1:] -= columns[:-1]  # wraps around where a row begins, which the next lines correct
    begins = indptr[:-1][np.diff(indptr) > 0]
    gaps[begins] = columns[begins]
    mask, high = _without_zeros(gaps >> 8)
    return {"gaps": (gaps & LOW).astype(np.uint8), "gaps_mask": mask, "gaps_high": high}


def _ends(name, sizes):
    """Return where rows begin, and where the last one ends, given their sizes."""
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
    """Return the counts minus one, if all are whole numbers and none is below one."""
    narrow = _narrow(counts)
    if narrow.dtype.kind != "u" or not narrow.all():
        return {"data": narrow}
    mask, more = _without_zeros(narrow - 1)
    return {"data_mask": mask, "data_more": more}


def _pack_weights(weights):
    """Return the weights of the pairs of a word and a label whose weights are not all zero."""
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
    for axis, axis_values in enumerate(values):
        weights[:, axis][mask] = axis_values
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
    """Return numbers in as few bytes as possible, if they are whole and not negative."""
    largest = numbers.max(initial=0)
    if numbers.min(initial=0) < 0 or not largest <= np.iinfo(np.uint32).max:
        return numbers
    narrow = numbers.astype(np.min_scalar_type(int(largest)))
    return narrow if np.array_equal(narrow, numbers) else numbers
