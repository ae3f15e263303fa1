"""Limits of requests: what docs/service.md promises is accepted, and no more."""

import asyncio
import json

import httpx
import pytest
from starlette.responses import PlainTextResponse

from polytopic.server.limits import BodyMemory, RequestLimits, check_json_size, json_size
from polytopic.server.problems import add_problem_handlers
from tests.server.conftest import served

KB = 1024
MOST = 2 * KB * KB


class _Counts:
    """Counts requests in place of the service's metrics."""

    def __init__(self):
        self.requests = []

    def count_request(self, route, status, seconds):
        self.requests.append((route, status))


def _limited(memory=None, hosts=None):
    """Return an application that reads whole bodies behind the limits, and its counts."""
    from fastapi import FastAPI

    async def reads(scope, receive, send):
        more = True
        while more:
            message = await receive()
            more = message.get("more_body", False)
        await PlainTextResponse("read")(scope, receive, send)

    app, counts = FastAPI(), _Counts()
    add_problem_handlers(app)
    app.mount("/", reads)
    memory = BodyMemory(8 * MOST) if memory is None else memory
    return RequestLimits(app, memory, counts.count_request, "/v1/suggest", MOST, 5.0, hosts), counts


def _send(app, method="POST", address="/", **options):
    """Return the response to one request."""

    async def send():
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.request(method, address, **options)

    return asyncio.run(send())


async def _parts(n_bytes):
    """Yield a body without announcing its length."""
    for _ in range(n_bytes // KB):
        yield b"x" * KB
    yield b"x" * (n_bytes % KB)


@pytest.mark.parametrize(
    ("address", "most"),
    [
        ("/sign-in", 16 * KB),
        ("/sign-out", KB),
        ("/v1/models", KB * KB),
        ("/v1/models/refresh", 4 * KB),
        ("/v1/models/rollback", 4 * KB),
        ("/v1/learn", MOST),
    ],
)
def test_bytes_of_a_body(address, most):
    """A body at the limit is read, one byte more is not, whether announced or not."""
    app, _ = _limited()

    responses = [_send(app, address=address, content=body) for body in (b"x" * most, _parts(most))]
    refused = [
        _send(app, address=address, content=body) for body in (b"x" * (most + 1), _parts(most + 1))
    ]

    assert [answer.status_code for answer in responses] == [200, 200]
    assert [answer.status_code for answer in refused] == [413, 413]
    assert refused[0].json()["detail"] == f"The body is larger than {most:,} bytes."
    assert refused[0].headers["Connection"] == "close"


def test_invalid_content_length():
    """An invalid length counts as too large, except for a stream of lines."""
    app, _ = _limited()
    lines = {"Content-Type": "Application/X-NDJSON; charset=utf-8"}

    for length in ("-1", "1" * 20, "x"):
        refused = _send(app, headers={"Content-Length": length}, content=b"")
        assert refused.status_code == 413
    for method, address, status in (
        ("POST", "/v1/suggest", 200),
        ("PUT", "/v1/suggest", 413),
        ("POST", "/v1/learn", 413),
    ):
        body = b"x" * (MOST + 1)
        response = _send(app, method, address, headers=lines, content=body)
        assert response.status_code == status


def test_all_bodies_together():
    """Bytes count while a body is read; a request that exceeds the total gets status 503."""
    memory = BodyMemory(30 * KB)
    app, _ = _limited(memory)

    assert _send(app, content=b"x" * 30 * KB).status_code == 200
    assert memory.n_bytes == 0
    memory.n_bytes = 1
    refused = _send(app, content=b"x" * 30 * KB)

    assert refused.status_code == 503
    assert memory.n_bytes == 1


def test_small_bodies_are_always_read():
    """Clients with large bodies cannot keep out those with small ones."""
    memory = BodyMemory(30 * KB)
    app, _ = _limited(memory)
    memory.n_bytes = 30 * KB

    statuses = [_send(app, content=b"x" * n).status_code for n in (16 * KB, 16 * KB + 1)]

    assert statuses == [200, 503]


def test_parameters_of_a_query():
    """A query may have 2,500 parameters."""
    app, _ = _limited()

    assert _send(app, "GET", "/?" + "&".join(["a"] * 2500)).status_code == 200
    assert _send(app, "GET", "/?" + "&".join(["a"] * 2501)).status_code == 422


def test_host_header():
    """A host may have a port; unknown hosts are rejected every time."""
    app, _ = _limited(hosts=("here", "localhost"))

    for host in ("here", "here:80", "localhost:65535", "LocalHost:1", "here"):
        assert _send(app, "GET", headers={"Host": host}).status_code == 200
    for host in ("there", "here.", "here:", "here:123456", "there"):
        response = _send(app, "GET", headers={"Host": host})
        assert response.status_code == 421
        assert f"Host == {host!r}, must be one of here, localhost" in response.json()["detail"]


def test_security_headers_and_metrics():
    """Rejections carry the security headers as well."""
    app, counts = _limited(hosts=("here",))

    answers = [_send(app, "GET"), _send(app, "GET", headers={"Host": "there"})]

    for answer in answers:
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
        policy = dict(
            rule.strip().split(" ", 1)
            for rule in answer.headers["Content-Security-Policy"].split(";")
        )
        assert policy == {
            "default-src": "'none'",
            "script-src": "'self'",
            "style-src": "'self'",
            "img-src": "'self' data:",
            "connect-src": "'self'",
            "font-src": "'self'",
            "form-action": "'self'",
            "base-uri": "'none'",
            "frame-ancestors": "'none'",
        }
    assert [status for _, status in counts.requests] == [200, 421]
    assert {route for route, _ in counts.requests} == {"other"}


@pytest.mark.parametrize(
    "name",
    [
        "authorization",
        "content-encoding",
        "content-type",
        "cookie",
        "idempotency-key",
        "origin",
        "sec-fetch-site",
        "transfer-encoding",
    ],
)
def test_unique_header_fields(name):
    """Ambiguous fields must not be repeated; others may."""
    app, _ = _limited()

    twice = _send(app, "GET", headers=[(name, "a"), (name, "a")])

    assert twice.status_code == 400
    assert twice.json()["detail"].startswith(f"The header field {name} is repeated")
    assert _send(app, "GET", headers=[("accept", "a"), ("accept", "b")]).status_code == 200


@pytest.mark.parametrize(
    ("name", "coding", "supported"),
    [
        ("content-encoding", "gzip", "identity"),
        ("transfer-encoding", "gzip, chunked", "chunked"),
    ],
)
def test_unsupported_codings_are_rejected(name, coding, supported):
    """A compressed body is rejected, not read as if it were not compressed."""
    app, _ = _limited()

    compressed = _send(app, "GET", headers=[(name, coding)])

    assert compressed.status_code == 400
    assert compressed.json()["detail"] == (
        f"The header field {name} == {coding!r}, must be {supported}, or left out."
    )
    assert _send(app, "GET", headers=[(name, supported.upper())]).status_code == 200


def test_values_of_a_body():
    """A body may have 500,000 values, 100,000 of them objects and arrays."""
    for body in (b"[" + b"1," * 499_999, b"[" * 100_000):
        check_json_size(body)
    with pytest.raises(ValueError, match="500,001 values, must have at most 500,000"):
        check_json_size(b"[" + b"1," * 500_000)
    with pytest.raises(ValueError, match="100,001 objects and arrays, must have at most 100,000"):
        check_json_size(b"{" * 100_001)


def test_values_of_a_long_body():
    """A string may span several blocks."""
    value = ["," * (1 << 20), "x" * (1 << 20), "[{" * (1 << 20), "é" * 300] * 3

    assert json_size(json.dumps(value).encode()) == (len(value), 1)
    assert json_size(b"") == (0, 0)


def test_suggestions_in_one_response(model):
    """A response may have 100,000 suggestions."""
    with served(model) as client:
        n_labels = len(client.get("/v1/labels").json()["labels"])
        each = max(n for n in range(1, n_labels + 1) if 100_000 % n == 0 and 100_000 // n <= 10_000)
        body = {"documents": [{"text": ""}] * (100_000 // each), "k": each}
        more = {"documents": [{"text": ""}] * (100_000 // each + 1), "k": each}

        assert client.post("/v1/suggest", json=body).status_code == 200
        assert client.post("/v1/suggest", json=more).status_code == 422
