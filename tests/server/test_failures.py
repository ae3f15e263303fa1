"""Failures around the service: a locked or missing store, and unexpected errors."""

import logging
import sqlite3

import pytest

from polytopic.errors import UnavailableError
from polytopic.server import live, queries
from tests.server.conftest import bearer, filled, served, until

BROWSER = {"Accept": "text/html"}
NEW = {"documents": [{"id": "new", "text": "The quokka sleeps.", "labels": ["quokka"]}]}


def learned(client):
    """Learn a document; return the response."""
    return client.post("/v1/learn", json=NEW, headers=bearer("write"))


def assert_unavailable(response, sentence):
    """Assert that a response says why the service is unavailable, and when to retry."""
    assert response.status_code == 503
    assert response.headers["Content-Type"] == "application/problem+json"
    assert int(response.headers["Retry-After"]) > 0
    assert sentence in response.json()["detail"]


def assert_page(response, status, sentence):
    """Assert that a response is a page that says what went wrong."""
    assert response.status_code == status
    assert response.headers["Content-Type"].startswith("text/html")
    assert sentence in response.text


def test_a_locked_store(path, monkeypatch):
    """Changes get a time to retry, answers continue, and the service recovers."""
    monkeypatch.setattr(live, "LOCK_TIMEOUT", 0.5)
    with served(path) as client:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")

        assert_unavailable(learned(client), "another process has been writing for 0.5 seconds")
        published = client.post("/v1/models", json={}, headers=bearer("admin"))
        assert_unavailable(published, "another process has been writing for 0.5 seconds")
        assert client.post("/v1/suggest", json={"text": "x"}).status_code == 200

        other.execute("ROLLBACK")
        other.close()
        assert learned(client).json()["learned"] == 1


def test_waiting_changes_do_not_delay_answers(path, monkeypatch):
    """While the store is locked, documents are still labelled at once."""
    monkeypatch.setattr(live, "LOCK_TIMEOUT", 1.5)
    with served(path, threads=1) as client:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        service = client.app.state.service
        service.workers.limit = 1

        with pytest.raises(Exception, match="timed out"):
            client.post("/v1/learn", json=NEW, headers=bearer("write"), timeout=0.3)
        response = client.post("/v1/suggest", json={"text": "x"}, timeout=0.5)

        assert response.status_code == 200
        other.close()


def test_damaged_log_of_erasures(path):
    """If the service cannot see what was erased, it stops answering until it can."""
    with served(path) as client:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("UPDATE polytopic_label_sets SET labels = labels || 'x'")
        other.execute("INSERT INTO polytopic_forgotten VALUES (1, 'damaged', 1)")
        other.execute("UPDATE polytopic_state SET revision = revision + 1")

        until(lambda: client.post("/v1/suggest", json={"text": "x"}).status_code == 503)
        assert client.get("/health/ready").status_code == 503
        assert client.get("/health/live").status_code == 200

        other.execute("UPDATE polytopic_label_sets SET labels = rtrim(labels, 'x')")
        other.execute("DELETE FROM polytopic_forgotten")
        other.execute("UPDATE polytopic_state SET revision = revision - 1")
        other.close()
        until(lambda: client.post("/v1/suggest", json={"text": "x"}).status_code == 200)
        assert client.get("/health/ready").status_code == 200


def test_database_restart(server):
    """The service survives a restart of PostgreSQL."""
    url = filled(server.new_url())
    with served(url) as client:
        server.stop()
        try:
            assert_unavailable(learned(client), "the database does not answer (")
            assert_unavailable(client.get("/v1/models"), "the database does not answer (")
            assert "postgres@" not in learned(client).json()["detail"].partition("(")[2]
            until(lambda: client.get("/health/ready").status_code == 503)
            assert client.get("/health/live").status_code == 200
            assert client.post("/v1/suggest", json={"text": "x"}).status_code == 200
        finally:
            server.start()

        assert learned(client).json()["learned"] == 1
        until(lambda: client.get("/health/ready").status_code == 200)
        until(lambda: client.get("/health/ready").json()["model"]["revision"] == 2)


def test_unexpected_error(path, monkeypatch, caplog):
    """The client gets a plain sentence, and the log the traceback."""

    def fails(*_):
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(queries, "list_labels", fails)
    with served(path) as client:
        monkeypatch.setattr(logging.getLogger("uvicorn.error"), "handlers", [caplog.handler])

        response = client.get("/v1/labels")

        assert (response.status_code, response.json()["status"]) == (500, 500)
        assert response.headers["Content-Type"] == "application/problem+json"
        assert response.headers["Connection"] == "close"
        assert "unexpected error" in response.json()["detail"]
        assert "secret" not in response.text
        until(lambda: "ZeroDivisionError: a secret" in caplog.text)
        assert client.get("/v1/models").status_code == 200
        assert 'route="/v1/labels",status="500"} 1.0' in client.get("/metrics").text


def test_unexpected_error_on_a_page(path, monkeypatch, caplog):
    """A browser gets a page with a plain sentence, and the log the traceback."""

    def fails(*_, **__):
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(queries, "list_labels", fails)
    with served(path) as client:
        monkeypatch.setattr(logging.getLogger("uvicorn.error"), "handlers", [caplog.handler])

        page = client.get("/labels", headers=BROWSER)

        assert_page(page, 500, "unexpected error")
        assert page.headers["Connection"] == "close"
        assert "secret" not in page.text
        until(lambda: "ZeroDivisionError: a secret" in caplog.text)
        assert client.get("/", headers=BROWSER).status_code == 200
        assert 'route="/labels",status="500"} 1.0' in client.get("/metrics").text


@pytest.mark.parametrize(
    ("name", "address"), [("workers", "/models"), ("heavy_workers", "/labels")]
)
def test_error_page_of_a_busy_service(path, name, address):
    """A page that no worker can render is answered with the page of a busy service."""
    with served(path) as client:
        workers = getattr(client.app.state.service, name)
        limit, workers.limit = workers.limit, 0

        page, missing = (client.get(path, headers=BROWSER) for path in (address, "/no"))
        workers.limit = limit

        assert_page(page, 503, "The service is busy")
        assert page.headers["Retry-After"] == "1"
        assert_page(missing, 404, "Page not found")
        assert client.get(address, headers=BROWSER).status_code == 200


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (UnavailableError("the database does not answer."), 503, "the database does not answer"),
        (ZeroDivisionError("a secret"), 500, "unexpected error"),
    ],
)
def test_error_page_of_a_store_that_cannot_check_tokens(path, monkeypatch, error, status, sentence):
    """The page of an error does not ask the store who is signed in."""

    def fails(_):
        raise error

    with served(path) as client:
        monkeypatch.setattr(client.app.state.service.live.store.tokens, "role_of", fails)
        client.cookies.set("polytopic_token", "polytopic_read")

        page, missing = (client.get(address, headers=BROWSER) for address in ("/labels", "/no"))

        assert_page(page, status, sentence)
        assert ("Retry-After" in page.headers) == (status == 503)
        assert_page(missing, 404, "Page not found")


def test_checks_continue_after_a_failure(path, monkeypatch):
    """After a failed check, the store is checked again."""
    with served(path) as client:
        store = client.app.state.service.live.store

        def fails():
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(store.monitor, "state", fails)
            until(lambda: client.get("/health/ready").status_code == 503)
            assert "cannot be followed" in client.get("/health/ready").json()["detail"]

        until(lambda: client.get("/health/ready").status_code == 200)
        learned(client)
        until(lambda: client.get("/health/ready").json()["model"]["revision"] == 2)
