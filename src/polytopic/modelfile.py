"""Model files: safetensors with a JSON manifest. They contain no code."""

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

from polytopic.errors import ModelFileError
from polytopic.files import new_file

FORMAT = "polytopic-model"
VERSION = 3
READABLE = (2, VERSION)  # arrays of format 2 are not packed
ALIGNMENT = 8  # bytes
LENGTH_BYTES = 8  # of the length of the header, which comes first
LONGEST_HEADER = 100_000_000  # bytes, the limit of safetensors
DTYPES = ("F64", "F32", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8")
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


def write_model(path: str | Path, manifest: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a manifest and arrays to one file, whole or not at all."""
    with new_file(path, ModelFileError) as file:
        file.writelines(_pieces(manifest, arrays))


def model_bytes(manifest: Mapping[str, Any], arrays: Mapping[str, Any]) -> bytes:
    """Return the content of a model file."""
    return b"".join(_pieces(manifest, arrays))


def _pieces(manifest: Mapping[str, Any], arrays: Mapping[str, Any]) -> Iterator[bytes | memoryview]:
    """Yield the content of a model file without copying the arrays.

    The layout is that of safetensors: a header with the place of each array, and the arrays, those
    with the widest numbers first.
    """
    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    manifest = {"format": FORMAT, "format_version": VERSION, **manifest}
    manifest["digest"] = _digest(manifest, tensors)
    header: dict[str, Any] = {"__metadata__": {"manifest": _to_json(manifest)}}
    order, end = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name)), 0
    for name in order:
        array, begin = tensors[name], end
        end = begin + array.nbytes
        kind = f"{array.dtype.kind.upper()}{8 * array.itemsize}"
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [begin, end]}
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
    if version not in READABLE:
        newer = version > VERSION
        raise ModelFileError(
            f"{str(name)!r} was written by {'a newer' if newer else 'an older'} polytopic "
            f"(format {version}, this release reads {VERSION}). "
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
        raise ModelFileError(f"{str(name)!r} is damaged: {error}.") from error
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
            _check_length(path, beginning, size)
            file.seek(0)
            return file.read(size)
    except FileNotFoundError:
        raise ModelFileError(f"{str(path)!r} does not exist.") from None
    except OSError as error:
        raise ModelFileError(f"{str(path)!r} cannot be read: {error.strerror}.") from error


def _check_length(path: str | Path, beginning: bytes, size: int) -> None:
    """Raise if the file is too short for the length of its header."""
    length = int.from_bytes(beginning[:LENGTH_BYTES], "little")
    header = beginning[LENGTH_BYTES:]
    if header.startswith(b"{") and 0 < length <= min(size - LENGTH_BYTES, LONGEST_HEADER):
        return
    if header.startswith(BEGINNING):
        raise ModelFileError(
            f"{str(path)!r} is damaged: it ends too early, or its header is too long."
        )
    raise ModelFileError(f"{str(path)!r} is not a polytopic model file.")


def _read_manifest(path: str | Path, content: bytes) -> dict[str, Any]:
    """Return the manifest in the header, after checking the types of the arrays."""
    _check_length(path, content[: LENGTH_BYTES + len(BEGINNING)], len(content))
    length = int.from_bytes(content[:LENGTH_BYTES], "little")
    try:
        header = json.loads(content[LENGTH_BYTES : LENGTH_BYTES + length])
        manifest = json.loads(header.pop("__metadata__")["manifest"])
        ours = manifest["format"] == FORMAT and isinstance(manifest["format_version"], int)
    except (AttributeError, ValueError, KeyError, TypeError, RecursionError):
        ours = False  # whatever it is
    if not ours:
        raise ModelFileError(f"{str(path)!r} is not a polytopic model file.")
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
            came = type(facts[name]).__name__ if name in facts else "missing"
            wanted = getattr(kind, "__name__", str(kind))
            raise ValueError(f"{where}{name} in its manifest is {came}, must be {wanted}")
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


def _to_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True)
