"""A local news server, and stores to fill from it."""

import pytest

from polytopic.desk import FetchLimits
from polytopic.store import Store
from tests.desk.newsserver import NewsServer
from tests.store import conftest as stores

server, new_path, new_url, url = stores.server, stores.new_path, stores.new_url, stores.url
FAST = FetchLimits(delay=0, seconds=2, backoff=0.01, allow_private=True)


@pytest.fixture
def news():
    """Return a running news server."""
    running = NewsServer()
    yield running
    running.close()


@pytest.fixture
def store(new_path):
    """Return an empty store that keeps texts."""
    with Store(new_path(), keep_texts=True) as opened:
        yield opened
