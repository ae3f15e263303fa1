"""Killed processes and servers: acknowledged changes stay, and no change is made in part."""

import random
import time
from collections import Counter

import pytest

from polytopic.counts import LabelSetCounts
from tests.store.children import apply, change_on
from tests.store.plain import open_store
from tests.store.processes import messages_of, start


def killed(url, seed, known, kill):
    r"""Let a process change a store until it is killed; return the states that may follow.

    These are the acknowledged state, and the same with the change that had begun.
    """
    rng = random.Random(seed)
    process, pipe = start(change_on, url, seed)
    first = 2 * rng.randrange(5)  # with 0 it may not have opened the store yet
    messages = [pipe.recv() for _ in range(first)]
    time.sleep(rng.expovariate(1 / 0.01))
    kill(process)
    messages += messages_of(pipe)
    process.join()
    done, begun = dict(known), dict(known)
    for what, name, argument in messages:
        if what == "failed":
            assert "\n" not in name
            assert "trying again is safe" in name or "repeat the request to forget" in name
        else:
            apply(done if what == "done" else begun, name, argument)
    return done, begun


def survives(url, seed, known, kill):
    """Kill a process that changes a store, and check the whole store; return its documents."""
    done, begun = killed(url, seed, known, kill)
    with open_store(url) as store:
        store.learn([])  # waits for what the server may still be doing

        documents = {
            d.id: (sorted(Counter(d.counts).elements()), d.labels) for d in store.documents()
        }
        assert documents in (done, begun)
        assert store.verify().ok
        bags = [(Counter(words), labels) for words, labels in documents.values()]
        assert store.counts() == LabelSetCounts(bags)
    return documents


def kill_often(url, times, seed=0):
    """Kill a process that changes a store repeatedly."""
    known = {}
    for k in range(times):
        known = survives(url, seed + k, known, lambda process: process.kill())
    assert len(known) > 5  # something was learned


def test_a_killed_process_loses_nothing(url):
    """Every acknowledged change is there, and no change is there in part."""
    kill_often(url, 10)


@pytest.mark.long
def test_many_killed_processes_lose_nothing(url):
    """The same at 200 moments."""
    kill_often(url, 200, seed=1000)


def crash_often(server, times):
    """Crash the server under a process that changes a store, repeatedly."""
    url, known = server.new_url(), {}

    def crash(process):
        server.stop("immediate")
        server.start()
        process.join(0.2)
        process.kill()

    for seed in range(times):
        known = survives(url, seed, known, crash)
    assert known


def test_a_crashed_server_loses_nothing(server):
    """A server that is stopped at once restarts with everything that was acknowledged."""
    crash_often(server, 3)


@pytest.mark.long
def test_many_crashes_lose_nothing(server):
    """The same at 20 moments."""
    crash_often(server, 20)
