"""A worker that is killed at any moment loses nothing and doubles nothing."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from polytopic.desk import ingest
from polytopic.store import Store
from tests.desk.conftest import FAST
from tests.desk.newsserver import article, rss

N_ARTICLES = 40


def publish(news):
    """Publish articles in two feeds, some of them in both; return their addresses."""
    for k in range(N_ARTICLES):
        news.put(f"/{k}", article(k, f"Version {chr(97 + k % 26)}."), etag=f'"{k}"')
    addresses = [f"{news.root}/{k}" for k in range(N_ARTICLES)]
    news.put("/a.xml", rss([(one, "x") for one in addresses[:30]]), kind="text/xml", etag='"a"')
    news.put("/b.xml", rss([(one, "x") for one in addresses[20:]]), kind="text/xml", etag='"b"')
    return addresses


def kill_workers(news, url, moments):
    """Start workers, kill each after some seconds, and return the sources."""
    sources = [f"{news.root}/a.xml", f"{news.root}/b.xml"]
    for seconds in moments:
        worker = subprocess.Popen(
            [sys.executable, "-m", "tests.desk.children", url, *sources],
            cwd=Path(__file__).parents[2],
            env=os.environ,
            stdout=subprocess.PIPE,
        )
        assert worker.stdout.readline() == b"ready\n"
        time.sleep(seconds)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        worker.stdout.close()
    return sources


def check(news, url, moments):
    """Kill workers, let one finish, and compare the store with one that nobody killed."""
    addresses = publish(news)
    with Store(url, keep_texts=True) as store:
        store.learn([{"id": "own", "text": "an old stadium", "labels": ["sport"]}])

    sources = kill_workers(news, url, moments)

    with Store(url, keep_texts=True) as store:
        ingest(sources, store, limits=FAST)
        store.assign()
        assert sorted(d.id for d in store.documents()) == sorted([*addresses, "own"])
        assert store.info()["assigned"] == N_ARTICLES + 1
        assert all(len(store.assignments(name)) == 1 for name in addresses)
        assert len(store.articles.read(addresses)) == N_ARTICLES
        versions = store.articles.newest(1000)
        assert len(versions) == len({one.document for one in versions}) == N_ARTICLES
        assert store.verify().problems == []
        again = ingest(sources, store, limits=FAST)
        assert again.revision_after == again.revision_before


def moments_of(n_kills, seed):
    """Draw the seconds after which workers are killed; most of them are at work then."""
    rng = random.Random(seed)
    return [rng.uniform(0, 0.6) for _ in range(n_kills)]


def test_killed_workers_lose_nothing(news, url):
    """Some kills at random moments."""
    check(news, url, moments_of(3, 1))


@pytest.mark.long
def test_many_killed_workers_lose_nothing(news, url):
    """Fifty kills at random moments."""
    check(news, url, moments_of(50, 2))
