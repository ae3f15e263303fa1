"""How a store encodes counts and label sets, and digests of documents."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256, shake_128
from itertools import compress, islice, pairwise
from typing import Any

import numpy as np
from scipy import sparse

from polytopic.errors import DamagedError

LARGEST = np.array([2**8, 2**16, 2**32]) - 1  # numbers of one, two and four bytes
WIDTHS = np.array([1, 2, 4, 8])
TERM_BYTES = 16  # in the digest of a term
BLOCK = 1024  # documents hashed at once
SUM_SIZE = 1024  # four-byte numbers in the digest of a multiset


def encode_rows(matrix: sparse.csr_matrix) -> tuple[list[bytes], list[bytes]]:
    """Return the columns of each row as bytes, four per entry, and its values in few bytes.

    All values of a row take as many bytes as the largest one needs.
    """
    ends = matrix.indptr.tolist()
    columns = matrix.indices.astype("<u4").tobytes()
    values = matrix.data.astype("<u8")
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    largest = np.zeros(matrix.shape[0], dtype="<u8")
    np.maximum.at(largest, row, values)
    widths = WIDTHS[np.searchsorted(LARGEST, largest)].tolist()
    packed = {width: values.astype(f"<u{width}").tobytes() for width in set(widths)}
    return (
        [columns[4 * a : 4 * b] for a, b in pairwise(ends)],
        [packed[w][w * a : w * b] for w, (a, b) in zip(widths, pairwise(ends), strict=True)],
    )


def decode_rows(
    columns: Sequence[bytes], values: Sequence[bytes], n_columns: int
) -> sparse.csr_matrix:
    """Return the matrix that :func:`encode_rows` was given, with the same order within rows."""
    sizes, remainders = np.divmod(
        np.fromiter(map(len, columns), dtype=np.int64, count=len(columns)), 4
    )
    lengths = np.fromiter(map(len, values), dtype=np.int64, count=len(values))
    widths = lengths // np.maximum(sizes, 1)
    if remainders.any() or (widths * sizes != lengths).any():
        raise DamagedError("counts do not fit their terms")
    if not np.isin(widths[sizes > 0], WIDTHS).all():
        raise DamagedError("counts do not fit their terms")
    data = np.empty(sizes.sum())
    for width in np.unique(widths[sizes > 0]).tolist():
        mask = widths == width
        joined = b"".join(compress(values, mask.tolist()))
        data[np.repeat(mask, sizes)] = np.frombuffer(joined, dtype=f"<u{width}")
    indices = np.frombuffer(b"".join(columns), dtype="<u4").astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    if indices.size and indices.max() >= n_columns:
        raise DamagedError("there are counts of unknown terms")
    return sparse.csr_matrix((data, indices, ends), shape=(sizes.size, n_columns))


def read_json(text: str, what: str) -> Any:
    """Return a stored JSON value; error messages call it ``what``."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{what} cannot be read") from error


def read_labels(text: str) -> list[str]:
    """Return the labels of a stored label set."""
    labels = read_json(text, "a label set")
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise DamagedError("a label set is not a list of labels")
    return labels


def to_json(labels: Iterable[str]) -> str:
    """Return a label set as it is stored."""
    return json.dumps(sorted(labels), ensure_ascii=False)


def label_set_key(labels: str) -> str:
    """Return the key of a stored label set."""
    return sha256(labels.encode()).hexdigest()


def document_digests(matrix: sparse.csr_matrix, terms: Sequence[str]) -> list[bytes]:
    """Return a digest of each row's terms and counts; columns are in the order of their terms."""
    marks = b"".join(blake2b(term.encode(), digest_size=TERM_BYTES).digest() for term in terms)
    by_column = np.frombuffer(marks, dtype=f"V{TERM_BYTES}")
    digests, counts = by_column[matrix.indices].tobytes(), matrix.data.astype("<f8").tobytes()
    return [
        sha256(digests[TERM_BYTES * a : TERM_BYTES * b] + counts[8 * a : 8 * b]).digest()
        for a, b in pairwise(matrix.indptr.tolist())
    ]


@dataclass(frozen=True)
class MultisetDigest:
    """A digest of labelled documents in any order, to which documents are added and removed.

    Each document is hashed to 1,024 numbers of 32 bits, which are added up (LtHash). Finding two
    multisets with the same sums is as hard as a lattice problem.
    """

    sums: bytes = bytes(4 * SUM_SIZE)

    def with_changes(self, added: Iterable[tuple[str, bytes]], removed=()) -> MultisetDigest:
        """Return the digest with documents added and removed, as pairs of label set and digest."""
        if len(self.sums) != 4 * SUM_SIZE:
            raise DamagedError(
                f"the digest of the counts has {len(self.sums)} bytes, must have {4 * SUM_SIZE}"
            )
        sums = np.frombuffer(self.sums, dtype="<u4") + _sum_hashes(added) - _sum_hashes(removed)
        return MultisetDigest(sums.astype("<u4").tobytes())

    @property
    def text(self) -> str:
        """The digest as it is shown."""
        return f"sha256:{sha256(self.sums).hexdigest()}"


def _sum_hashes(pairs) -> np.ndarray:
    hashes = (
        shake_128(labels.encode() + digest).digest(4 * SUM_SIZE)
        for labels, digest in pairs
        if labels != "[]"  # unlabelled documents are not counted
    )
    total = np.zeros(SUM_SIZE, dtype="<u4")
    while block := b"".join(islice(hashes, BLOCK)):
        total += np.frombuffer(block, "<u4").reshape(-1, SUM_SIZE).sum(axis=0, dtype="<u4")
    return total
