"""A real service on a real port, serving a store of the bundled sample."""

import shutil
import threading
import time
from contextlib import contextmanager

import httpx
import pytest

from polytopic import Labeler, Store
from polytopic.cli.demo import learn
from polytopic.corpus import load_sample
from polytopic.server import create_app
from polytopic.server.connections import create_server
from tests.store import conftest as stores

server = stores.server
OWN = "polytopic_own"  # a token that the service creates for itself
TOKENS = {role: f"polytopic_{role}" for role in ("read", "write", "admin")}


@contextmanager
def served(source, limits=None, **settings):
    """Serve a store or a model file in a thread; yield a client of it."""
    app = create_app(str(source), **settings)
    server = create_server(app, limits, port=0)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the service did not start"
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            client.app = app
            yield client
    finally:
        server.should_exit = True
        thread.join()


def filled(url):
    """Return the URL of a new store that contains the sample and a token for each role."""
    with Store(url) as store:
        store.learn(load_sample())
        for role, token in TOKENS.items():
            store.tokens.create(role, role, token)
    return url


@pytest.fixture
def path(tmp_path):
    """Return the path of a store that contains the sample and a token for each role."""
    return filled(tmp_path / "news.db")


@pytest.fixture
def client(path):
    """Return a client of a service that serves the store."""
    with served(path) as client:
        yield client


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return the path of a model file."""
    path = tmp_path_factory.mktemp("model") / "news.model"
    Labeler("pmm1").fit(load_sample()).save(path)
    return path


def until(condition, seconds=10):
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition does not hold in time"
        time.sleep(0.02)


@pytest.fixture(scope="session")
def demo_path(tmp_path_factory):
    """Return the path of a store as ``make run`` creates it; do not change it."""
    path = tmp_path_factory.mktemp("demo") / "sample.db"
    learn(str(path))
    return path


@pytest.fixture
def own_path(demo_path, tmp_path):
    """Return the path of a copy of that store, which may be changed."""
    return shutil.copy(demo_path, tmp_path / "sample.db")


@pytest.fixture(scope="module")
def demo_client(demo_path, tmp_path_factory):
    """Return a client of a service that serves such a store, for all tests of a module."""
    path = shutil.copy(demo_path, tmp_path_factory.mktemp("served") / "sample.db")
    with served(path, own_token=OWN) as client:
        client.path = path
        yield client


@pytest.fixture
def demo(demo_client):
    """Return that client; tests must restore the state of the store.

    The next test begins when the service has fitted the model to it, since a model that changes
    between the requests of a page may not know a label any more.
    """
    yield demo_client
    with Store(demo_client.path, create=False) as store:
        revision = store.revision
    until(lambda: demo_client.app.state.service.live.revision == revision, 30)


@pytest.fixture(scope="module")
def browser():
    """Return a real browser, or skip the test if there is none."""
    reason = "playwright is not installed, which the page's tests need: pip install playwright."
    sync_api = pytest.importorskip("playwright.sync_api", reason=reason)
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed, which the page's tests need.")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Return a function that opens a page; the test fails on any error, warning or other site.

    It takes a client of the service, the path, whether the visitor is signed in, the statuses that
    the browser may report as errors, and settings of the browser.
    """
    wrong, contexts = [], []

    def visited(client, path="/", *, signed_in=True, statuses=(), **settings):
        base = str(client.base_url).rstrip("/")
        context = browser.new_context(base_url=base, **{"locale": "en-US", **settings})
        contexts.append(context)
        context.set_default_timeout(15_000)
        if signed_in:
            context.add_cookies([{"name": "polytopic_token", "value": OWN, "url": base}])
        page = context.new_page()

        def complain(message):
            known = any(f"status of {status}" in message.text for status in statuses)
            if message.type in ("error", "warning") and not known:
                wrong.append(f"{message.text} {message.location.get('url', '')}".strip())

        def ask(request):
            if not request.url.startswith((base, "data:")):
                wrong.append(f"asked {request.url}")

        page.on("console", complain)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append("a dialog"), dialog.dismiss()))
        page.on("request", ask)
        page.goto(path)
        return page

    yield visited
    for context in contexts:
        context.close()
    assert wrong == []


def bearer(role):
    """Return the header with a role's token."""
    return {"Authorization": f"Bearer {TOKENS[role]}"}
