"""Requests in batches: the same answers, and each fails alone."""

import asyncio
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from polytopic.corpus import load_sample
from polytopic.server.workers import Batcher, BusyError, Workers
from tests.server.conftest import served


def halves(items):
    """Halve even numbers, and reject a batch with an odd one."""
    if any(item % 2 for item in items):
        raise ValueError("an odd number")
    return [item // 2 for item in items]


def gathered(function, calls, *, threads=2, max_items=64):
    """Return the results or errors of simultaneous calls (key, item)."""

    async def run():
        workers = Workers(threads, 256)
        batcher = Batcher(workers, function, max_items)
        results = await asyncio.gather(
            *(batcher.run(*call) for call in calls), return_exceptions=True
        )
        assert workers.pending == 0
        workers.close()
        return results

    return asyncio.run(run())


def test_results_are_in_order():
    """Each call gets its own result, whatever the batches are."""
    calls = [("", 2 * k) for k in range(50)]

    assert gathered(halves, calls) == list(range(50))
    assert gathered(halves, calls, max_items=7) == list(range(50))


def test_waiting_items_share_a_batch():
    """Ten simultaneous calls are processed four at a time."""
    sizes = []

    def noted(items):
        sizes.append(len(items))
        return items

    gathered(noted, [("", k) for k in range(10)], threads=1, max_items=4)

    assert sizes == [4, 4, 2]


def test_keys_are_not_mixed():
    """A batch has one key, and all keys get their turn."""
    batches = []

    def noted(items):
        batches.append(items)
        return items

    gathered(noted, [(k % 2, k) for k in range(10)], threads=1)

    assert [{item % 2 for item in batch} for batch in batches] == [{0}, {1}]


def test_bad_items_fail_alone():
    """A bad item does not affect the good ones."""
    *good, bad = gathered(halves, [("", 0), ("", 2), ("", 4), ("", 3)])

    assert good == [0, 1, 2]
    assert isinstance(bad, ValueError)


def test_wrong_number_of_results():
    """A wrong number of results is an error, and nobody waits forever."""
    errors = gathered(lambda items: [], [("", 0), ("", 2)])

    assert all(isinstance(error, ValueError) for error in errors)


def test_batches_respect_the_queue_limit():
    """Each call counts towards the limit, not each batch."""
    free = threading.Event()

    async def run():
        workers = Workers(1, 3)
        batcher = Batcher(workers, lambda items: free.wait() and items)
        calls = [asyncio.create_task(batcher.run("", k)) for k in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError):
            await batcher.run("", 4)
        free.set()
        results = await asyncio.gather(*calls)
        workers.close()
        return results

    assert asyncio.run(run()) == [0, 1, 2, 3]


def test_cancelled_call():
    """A cancelled call does not disturb the others."""

    async def run():
        workers = Workers(1, 256)
        batcher = Batcher(workers, halves)
        gone, stays = (asyncio.create_task(batcher.run("", k)) for k in (2, 4))
        await asyncio.sleep(0)
        gone.cancel()
        result = await stays
        assert workers.pending == 0
        workers.close()
        return result

    assert asyncio.run(run()) == 2


class UnreadableError(ValueError):
    """An error to which there can be weak references."""


@pytest.mark.parametrize("is_batched", [False, True])
def test_errors_are_freed_at_once(is_batched):
    """An error, which may hold a large request, does not wait for the garbage collector."""
    references = []

    def create_error(items):
        error = UnreadableError(f"{items} cannot be read.")
        references.append(weakref.ref(error))
        return error

    def fail(items):
        raise create_error(items)

    async def run():
        workers = Workers(1, 8)
        batcher = Batcher(workers, fail)
        try:
            await (batcher.run("", 1) if is_batched else workers.run(fail, [1]))
        except UnreadableError:
            await asyncio.sleep(0)
        workers.close()

    gc.collect()
    gc.disable()
    try:
        asyncio.run(run())
        assert [reference() for reference in references] == [None]
    finally:
        gc.enable()


def test_simultaneous_requests(path):
    """Simultaneous requests with different options get the same answers as single ones."""
    texts = [document.text for document in load_sample()[:40]]
    ways = [{}, {"k": 2}, {"include": ["sport/football", "culture/film"]}]
    bodies = [{"text": text, **ways[k % 3]} for k, text in enumerate(texts)]
    bodies[5] = {"text": "a", "include": ["nobody"]}
    bodies[8] = {"counts": {"film": -1}}

    def answer(body):
        response = client.post("/v1/suggest", json=body)
        return response.status_code, response.json()

    with served(path) as client:
        alone = [answer(body) for body in bodies]
        with ThreadPoolExecutor(16) as threads:
            together = list(threads.map(answer, bodies))

    assert together == alone
    assert [k for k, (status, _) in enumerate(alone) if status != 200] == [5, 8]
