"""Model files: arrays in safetensors with a JSON manifest. No code is ever in them, or run."""

from __future__ import annotations

import hashlib
import json
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
BEGINNING = b'{"__metadata__":{"manifest":'


def write_model(path: str | Path, manifest: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a manifest and arrays to one file, whole or not at all."""
    with new_file(path, ModelFileError) as file:
        file.writelines(_pieces(manifest, arrays))


def model_bytes(manifest: Mapping[str, Any], arrays: Mapping[str, Any]) -> bytes:
    """Return what a model file holds."""
    return b"".join(_pieces(manifest, arrays))


def _pieces(manifest: Mapping[str, Any], arrays: Mapping[str, Any]) -> Iterator[bytes | memoryview]:
    """Yield what a model file holds, without a copy of the arrays.

    It is what safetensors writes: a header that tells what is where, and the arrays, those of
    large numbers first.
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
    told = json.dumps(header, separators=(",", ":")).encode()
    told += b" " * (-len(told) % ALIGNMENT)
    yield len(told).to_bytes(8, "little") + told
    yield from (_content(tensors[name]) for name in order)


def read_model(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the manifest and the arrays of a model file; raise one sentence if it is none."""
    return parse_model(_read_bytes(Path(path)), path)


def parse_model(content: bytes, name: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the manifest and the arrays of what a model file holds; failures are of this name."""
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
        arrays = parse_tensors(content)
    except (SafetensorError, ValueError) as error:
        raise ModelFileError(f"{str(name)!r} is damaged: {error}.") from error
    if manifest.pop("digest", None) != _digest(manifest, arrays):
        raise ModelFileError(
            f"{str(name)!r} is damaged or was changed: its contents do not match its digest."
        )
    return manifest, arrays


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ModelFileError(f"{str(path)!r} does not exist.") from None
    except OSError as error:
        raise ModelFileError(f"{str(path)!r} cannot be read: {error.strerror}.") from error


def _read_manifest(path: str | Path, content: bytes) -> dict[str, Any]:
    """Return the manifest in the header; safetensors puts the header's length first."""
    size = int.from_bytes(content[:8], "little")
    if content[8 : 8 + len(BEGINNING)] == BEGINNING and size > len(content) - 8:
        raise ModelFileError(f"{str(path)!r} is damaged: it ends too early.")
    try:
        manifest = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["manifest"])
        if manifest["format"] == FORMAT and isinstance(manifest["format_version"], int):
            return manifest
    except (ValueError, KeyError, TypeError, RecursionError):
        pass  # whatever it is, it is not ours: told below
    raise ModelFileError(f"{str(path)!r} is not a polytopic model file.")


def _digest(manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """Return a digest of all that the file says."""
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
