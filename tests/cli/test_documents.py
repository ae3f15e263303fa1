"""Documents that one thread reads while others are answered."""

from itertools import count, islice
from threading import Event

import pytest

from polytopic.cli.documents import blocks


def test_blocks_have_all_documents_in_order():
    """No document is lost or moved, however many there are, and no block is too large."""
    parts = list(blocks(range(1000), size=7))

    assert [item for block in parts for item in block] == list(range(1000))
    assert max(map(len, parts)) <= 7


def test_reading_waits_for_answers():
    """An endless stream is read at most two blocks ahead."""
    read = []

    def stream():
        for number in count():
            read.append(number)
            yield number

    for block in islice(blocks(stream(), size=5), 100):
        assert len(read) <= block[-1] + 1 + 3 * 5


def test_available_documents_are_given_at_once():
    """A line does not wait for the next one."""
    more = Event()

    def stream():
        yield "first"
        assert more.wait(60)
        yield "second"

    parts = blocks(stream())
    assert next(parts) == ["first"]
    more.set()
    assert next(parts) == ["second"]
    assert list(parts) == []


def test_an_error_comes_after_what_was_read():
    """Everything that was read before is given first."""

    def stream():
        yield from range(30)
        raise ValueError("the 31st")

    items = []
    with pytest.raises(ValueError, match="31st"):
        items.extend(item for block in blocks(stream(), size=4) for item in block)
    assert items == list(range(30))
