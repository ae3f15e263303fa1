"""Clients that hold connections, send endless heads, or do not read responses."""

import json
import socket
import time
from contextlib import ExitStack, suppress

import pytest

from polytopic.server.connections import ConnectionLimits
from tests.server.conftest import filled, served, until

HEALTH = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n"
LIMITS = ConnectionLimits(connections=20, head_seconds=1, reading_seconds=1, reading_bytes=1 << 30)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Return the path of a store that tests do not change."""
    return filled(tmp_path_factory.mktemp("connections") / "news.db")


@pytest.fixture(scope="module")
def client(path):
    """Return a client of a service with small limits."""
    with served(path, LIMITS, body_timeout=2) as client:
        yield client


def connected(client, data=b""):
    """Return a connection to the service after sending some bytes."""
    connection = socket.create_connection((client.base_url.host, client.base_url.port), timeout=30)
    connection.sendall(data)
    return connection


def received(connection):
    """Return all bytes until the connection ends in any way."""
    parts = []
    with connection, suppress(ConnectionError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def is_closed(connection):
    """Return whether the service has closed a connection."""
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def sent(connection, part, most):
    """Send bytes repeatedly until the service closes the connection; return what it sent."""
    n_bytes = 0
    with suppress(ConnectionError):
        while n_bytes < most:
            connection.sendall(part)
            n_bytes += len(part)
    return n_bytes


def test_endless_header(client):
    """A header is rejected once it is too long, and the rest is not read."""
    connection = connected(client, HEALTH + b"X: ")
    connection.sendall(b"x" * 100_000)

    answer = received(connection)

    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b"application/problem+json" in answer
    assert b"the head of a request may have at most 65,536 bytes and 100 fields" in answer


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (HEALTH + b"".join(b"X%d: y\r\n" % k for k in range(101)) + b"\r\n", 431),
        (HEALTH + b"X: " + b"y" * 66_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"y" * 66_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        (b"GET /" + b"y" * 140_000, 414),
        (b"\r\n" * 70_000, 431),
        (HEALTH + b"X: " + b"y" * 60_000 + b"\r\nConnection: close\r\n\r\n", 200),
        (HEALTH + b"X: y\r\n" * 90 + b"Connection: close\r\n\r\n", 200),
    ],
)
def test_heads(client, head, status):
    """Heads up to the limits are accepted, whether they arrive at once or in parts."""
    whole = connected(client, head)
    parts = connected(client)
    for start in range(0, len(head), 1000):
        try:
            parts.sendall(head[start : start + 1000])
        except ConnectionError:
            break

    answers = [received(whole), received(parts)]

    assert all(answer.startswith(b"HTTP/1.1 %d " % status) for answer in answers)


@pytest.mark.parametrize("begin", [b"", b"GET /", HEALTH + b"X: y", b"\r\n"])
def test_incomplete_head(client, begin):
    """The connection is closed soon, even if a byte arrives now and then."""
    connection = connected(client, begin)
    end = time.monotonic() + 20

    while not is_closed(connection):
        assert time.monotonic() < end
        time.sleep(0.2)
        with suppress(ConnectionError):
            connection.sendall(begin[-1:])

    connection.close()


def test_slow_body(client):
    """The whole body must arrive within the documented time."""
    head = b"POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    connection = connected(client, head + b"Content-Length: 1000\r\n\r\n")
    begin = time.monotonic()
    connection.settimeout(0.5)
    answer = b""

    while not answer:
        assert time.monotonic() - begin < 20
        connection.sendall(b" ")
        with suppress(TimeoutError):
            answer = connection.recv(65536)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"The body did not arrive within 2 seconds." in answer
    connection.close()


def test_slow_stream(client):
    """Lines are answered as long as they keep arriving; otherwise the stream ends with an error."""
    head = b"POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
    connection = connected(client, head + b"Content-Length: 100000\r\n\r\n")
    for _ in range(6):
        connection.sendall(b'{"text": "a film"}\n')
        time.sleep(0.5)

    answer = received(connection)

    assert answer.count(b'"labels"') == 6
    assert b'{"line": 7, "error": "The body did not arrive within 2 seconds."}' in answer


def test_rest_of_a_rejected_body(client):
    """A client that keeps sending after the response is disconnected."""
    head = b"POST /v1/learn HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
    connection = connected(client, head)
    assert connection.recv(65536).startswith(b"HTTP/1.1 401 ")
    end = time.monotonic() + 30

    while not is_closed(connection):
        assert time.monotonic() < end
        time.sleep(0.2)
        with suppress(ConnectionError):
            connection.sendall(b"x")

    connection.close()


def test_idle_connections_are_replaced(client):
    """However many clients send nothing or half a head, real requests are answered."""
    with ExitStack() as stack:
        for k in range(100):
            begin = (b"", HEALTH)[k % 2]
            stack.enter_context(connected(client, begin))
        time.sleep(0.5)

        request = HEALTH + b"Connection: close\r\n\r\n"
        answers = [received(connected(client, request)) for _ in range(10)]

    assert all(answer.startswith(b"HTTP/1.1 200 ") for answer in answers)


def test_a_thousand_idle_connections(path):
    """The same holds with the default limits."""
    with served(path) as client, ExitStack() as stack:
        for k in range(1300):
            stack.enter_context(connected(client, (b"", HEALTH)[k % 2]))
        time.sleep(1)

        request = HEALTH + b"Connection: close\r\n\r\n"
        answers = [received(connected(client, request)) for _ in range(10)]

    assert all(answer.startswith(b"HTTP/1.1 200 ") for answer in answers)


def test_too_many_busy_connections(path):
    """If all connections wait for the service, a new one gets status 503."""
    limits = ConnectionLimits(connections=2)
    with served(path, limits, threads=1) as client:
        workers = client.app.state.service.heavy_workers
        busy = [{"text": "film " * 200_000}] * 20
        body = json.dumps({"documents": busy}).encode()
        head = b"POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        connections = [connected(client, request) for _ in range(2)]
        until(lambda: workers.pending == 2)

        answer = received(connected(client, HEALTH + b"Connection: close\r\n\r\n"))

        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"The service has too many connections" in answer
        for connection in connections:
            assert connection.recv(12) == b"HTTP/1.1 200"
            connection.close()


def test_unread_response(path):
    """The connection is closed, and the memory of the response is freed."""
    with served(path, LIMITS) as client:
        body = json.dumps({"documents": [{"text": "film"}] * 10_000}).encode()
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((client.base_url.host, client.base_url.port))
        head = b"POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        connection.recv(1, socket.MSG_PEEK)
        time.sleep(4)  # during which the client reads nothing

        answer = received(connection)

    length = int(answer.partition(b"content-length: ")[2].split()[0])
    assert len(answer) < length


def test_pipelined_requests(client):
    """Only the first request is answered; the client can send the others again."""
    answer = received(connected(client, (HEALTH + b"\r\n") * 1000))

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.count(b"HTTP/1.1 ") == 1


CHUNKED = (
    b"POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


@pytest.mark.parametrize(
    ("begin", "part"),
    [
        (b"", b"1\r\n \r\n" * 5000),
        (b"1;", b"x" * 50_000),
        (b"1\r\n \r\n0\r\nX: ", b"x" * 50_000),
        (b"1\r\n \r\n0\r\n", b"X: y\r\n" * 10_000),
    ],
    ids=["chunks", "extension", "trailer", "trailers"],
)
def test_bodies_that_are_mostly_framing(client, begin, part):
    """Tiny chunks, chunk extensions and trailers are cut off."""
    connection = connected(client, CHUNKED + begin)

    n_bytes = sent(connection, part, 30_000_000)

    assert n_bytes < 30_000_000
    connection.close()


def test_small_chunks(client):
    """A body may arrive in small parts."""
    body = b'{"text": "a film about a film"}'
    chunks = b"".join(b"3\r\n%s\r\n" % body[k : k + 3] for k in range(0, 30, 3))

    answer = received(
        connected(
            client,
            CHUNKED.replace(b"Host", b"Connection: close\r\nHost", 1)
            + chunks
            + b"1\r\n}\r\n0\r\nAuthorization: x\r\n\r\n",
        )
    )

    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "request_line",
    [
        b"CONNECT a:1 HTTP/1.1",
        b"OPTIONS * HTTP/1.1",
        b"PRI * HTTP/2.0",
        b"GET /health/live HTTP/1.0",
    ],
)
def test_unusual_requests(client, request_line):
    """Malformed requests get a response and do no harm."""
    answer = received(connected(client, request_line + b"\r\nHost: localhost\r\n\r\n"))

    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 404 ", b"HTTP/1.1 200 "))


@pytest.mark.parametrize(
    "text",
    [
        b"POST /v1/suggest HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: %d",
        b"POST /v1/suggest HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: a\r\nContent-Length: 0%d",
        b"CONNECT a:1 HTTP/1.1\r\nContent-Length: %d",
        b"GET / HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nTransfer-Encoding: chunked; %d",
    ],
)
def test_no_body_is_read_as_a_request(client, text):
    """A body that follows a request for another protocol is never taken for the next request."""
    body = HEALTH + b"\r\n"
    connection = connected(client, text % len(body) + b"\r\nHost: localhost\r\n\r\n")
    time.sleep(0.3)

    with suppress(ConnectionError):
        connection.sendall(body)
        time.sleep(0.3)
        connection.sendall(body)
    answer = received(connection)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    "text",
    [
        b"nonsense",
        b"GET / HTTP/1.1\r\nHost : localhost\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n",
        b"POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\nnonsense",
    ],
)
def test_malformed_requests(client, text):
    """What is not HTTP gets a problem document, too."""
    head, _, body = received(connected(client, text + b"\r\n\r\n")).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"x-content-type-options: nosniff" in head
    assert json.loads(body)["detail"] == "The request is not valid HTTP."


def test_space_after_header_values(client):
    """White space after a value is not part of it."""
    head = b"POST /v1/suggest HTTP/1.1\r\nHost: localhost \r\nContent-Type: application/json\t\r\n"
    body = b'{"text": "a"}'

    answer = received(
        connected(client, head + b"Connection: close\r\nContent-Length: 13 \r\n\r\n" + body)
    )

    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
def test_upgrade_to_another_protocol(client, protocol):
    """Upgrades are not supported; the request is answered, and what follows is not read forever."""
    head = HEALTH + b"Connection: Upgrade\r\nUpgrade: " + protocol + b"\r\n\r\n"
    connection = connected(client, head)

    n_bytes = sent(connection, b"x" * 65536, 1 << 30)

    assert n_bytes < 1 << 30
    connection.close()
