"""A real service on a real port, on a store of the bundled sample."""

import threading
import time
from contextlib import contextmanager

import httpx
import pytest
import uvicorn

from polytopic import Labeler, Store
from polytopic.corpus import load_sample
from polytopic.server import create_app
from polytopic.store.tokens import token_digest
from tests.store import conftest as stores

server = stores.server
TOKENS = {role: f"polytopic_{role}" for role in ("read", "write", "admin")}


@contextmanager
def served(source, **settings):
    """Serve a store or a model file in a thread; give a client that knows its address."""
    app = create_app(str(source), **settings)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the service did not start"
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            client.app = app
            yield client
    finally:
        server.should_exit = True
        thread.join()


def filled(url):
    """Return the URL of a new store, filled with the sample and a token for each role."""
    with Store(url) as store:
        store.learn(load_sample())
        for role, token in TOKENS.items():
            store.add_token(role, role, token_digest(token))
    return url


@pytest.fixture
def path(tmp_path):
    """Return the path of a store with the sample and a token for each role."""
    return filled(tmp_path / "news.db")


@pytest.fixture
def client(path):
    """Return a client of a service on the store."""
    with served(path) as client:
        yield client


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return the path of a model file."""
    path = tmp_path_factory.mktemp("model") / "news.model"
    Labeler("pmm1").fit(load_sample()).save(path)
    return path


def until(condition, seconds=10):
    """Wait for something to hold."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not come to hold"
        time.sleep(0.02)


def bearer(role):
    """Return the header that carries a role's token."""
    return {"Authorization": f"Bearer {TOKENS[role]}"}
