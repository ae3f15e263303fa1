"""Packed arrays: any array is unpacked as it was."""

import numpy as np
import pytest

from polytopic.modelfile import pack_arrays, unpack_arrays

PACKING = {"data": "counts", "indices": "columns", "indptr": "sizes", "weights": "pairs"}


def rows(seed, *, n_rows=40, n_columns=70_000, largest=3):
    """Return rows of counts with ascending columns, some of them empty, as arrays."""
    random = np.random.RandomState(seed)
    sizes = np.where(np.arange(n_rows) % 5 > 0, 30, 0)
    columns = [np.unique(random.randint(0, n_columns, size)) for size in sizes]
    indices = np.concatenate(columns).astype(np.int64)
    return {
        "data": random.randint(1, largest + 1, indices.size).astype(np.float64),
        "indices": indices,
        "indptr": np.cumsum([0, *map(len, columns)]),
    }


def assert_same(unpacked, arrays):
    """Compare all arrays by value."""
    assert unpacked.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(unpacked[name], array)


@pytest.mark.parametrize("largest", [1, 3, 300, 70_000, 2**32])
@pytest.mark.parametrize("n_columns", [200, 70_000, 20_000_000])
def test_rows_come_back(largest, n_columns):
    """Columns and counts take one to four bytes; counts that need more are not packed."""
    arrays = rows(1, n_columns=n_columns, largest=largest)

    packed = pack_arrays(arrays, PACKING)

    assert_same(unpack_arrays(packed, PACKING), arrays)
    assert unpack_arrays(packed, PACKING)["data"].dtype == np.float64
    assert "indices" not in packed
    assert "indptr" not in packed


@pytest.mark.parametrize("change", [lambda a: a[::-1], lambda a: np.zeros_like(a)])
def test_columns_in_no_order_come_back(change):
    """Unsorted columns have negative gaps, which take more bytes."""
    arrays = rows(2)
    arrays["indices"] = change(arrays["indices"]).copy()

    assert_same(unpack_arrays(pack_arrays(arrays, PACKING), PACKING), arrays)


@pytest.mark.parametrize("value", [0.0, 0.5, -1.0, 2.0**60])
def test_numbers_that_are_not_counts_come_back(value):
    """Numbers that are not counts are not packed."""
    arrays = rows(3)
    arrays["data"][::7] = value

    assert_same(unpack_arrays(pack_arrays(arrays, PACKING), PACKING), arrays)


def test_empty_arrays_come_back():
    """There may be no entries, or no rows at all."""
    for n_rows in (0, 3):
        arrays = {
            "data": np.zeros(0),
            "indices": np.zeros(0, np.int64),
            "indptr": np.zeros(n_rows + 1, np.int64),
        }
        assert_same(unpack_arrays(pack_arrays(arrays, PACKING), PACKING), arrays)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_come_back_to_the_bit(dtype):
    """Negative zeros are kept, and so are all weights of a pair that has any."""
    random = np.random.RandomState(4)
    weights = random.normal(size=(50, 3, 13)).astype(dtype)
    weights = np.where(random.uniform(size=(50, 1, 13)) < 0.3, weights, dtype(0))
    weights[4, 1] = 0.0
    weights[7] = -0.0
    arrays = {"weights": weights, "columns": np.arange(13), "vectors": np.ones((14, 3))}

    packed = pack_arrays(arrays, PACKING)
    unpacked = unpack_arrays(packed, PACKING)["weights"]

    assert unpacked.dtype == dtype
    assert unpacked.tobytes() == weights.tobytes()
    assert sum(array.nbytes for array in packed.values()) < weights.nbytes / 1.5


def test_a_row_takes_few_bytes():
    """A word takes about two bytes: most gaps take two, and a bit marks a count of one."""
    arrays = rows(5, n_columns=60_000)

    size = sum(array.nbytes for array in pack_arrays(arrays, PACKING).values())

    assert size < 3.2 * arrays["data"].size


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("gaps_mask", lambda a: a[:-1]),
        ("data_mask", lambda a: np.append(a, a[:1])),
        ("weights_mask", lambda a: a[:, :0]),
        ("weights_values", lambda a: np.empty((10**9, 0), a.dtype)),
        ("columns", lambda a: np.zeros(10**8, a.dtype)),
    ],
)
def test_inconsistent_parts_take_no_memory(name, change):
    """A few bytes cannot claim many entries, because sizes are compared first."""
    weights = np.ones((3, 2, 9), np.float32)
    packed = pack_arrays(
        rows(4) | {"weights": weights, "vectors": np.ones((4, 2)), "columns": np.arange(9)},
        PACKING,
    )
    packed[name] = change(packed[name])

    with pytest.raises(ValueError, match=r"size|bit"):
        unpack_arrays(packed, PACKING)
