"""Clients that hold a connection, send a head without end, or do not take their answer."""

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
    """Return the path of a store, which tests leave as they found it."""
    return filled(tmp_path_factory.mktemp("connections") / "news.db")


@pytest.fixture(scope="module")
def client(path):
    """Return a client of a service with small limits."""
    with served(path, LIMITS, body_timeout=2) as client:
        yield client


def connected(client, data=b""):
    """Return a connection to the service, on which something was sent."""
    made = socket.create_connection((client.base_url.host, client.base_url.port), timeout=30)
    made.sendall(data)
    return made


def received(connection):
    """Return all that comes until the connection ends, in whatever way."""
    parts = []
    with connection, suppress(ConnectionError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def is_closed(connection):
    """Tell whether the service has closed a connection."""
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def sent(connection, part, most):
    """Send a part again and again until the service has closed the connection; return the bytes."""
    n_bytes = 0
    with suppress(ConnectionError):
        while n_bytes < most:
            connection.sendall(part)
            n_bytes += len(part)
    return n_bytes


def test_a_header_without_end(client):
    """It is refused once it is too long, and the rest is not read."""
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
    """Up to the limits they are taken, whether they come at once or in parts."""
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
def test_a_head_that_does_not_come(client, begin):
    """The connection ends soon, also if a byte comes now and then."""
    connection = connected(client, begin)
    end = time.monotonic() + 20

    while not is_closed(connection):
        assert time.monotonic() < end
        time.sleep(0.2)
        with suppress(ConnectionError):
            connection.sendall(begin[-1:])

    connection.close()


def test_a_body_of_a_byte_now_and_then(client):
    """It must have come within the seconds that are promised, in all."""
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


def test_a_stream_may_take_longer_but_not_pause(client):
    """Lines that go on coming are answered; the stream ends with a sentence where they do not."""
    head = b"POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
    connection = connected(client, head + b"Content-Length: 100000\r\n\r\n")
    for _ in range(6):
        connection.sendall(b'{"text": "a film"}\n')
        time.sleep(0.5)

    answer = received(connection)

    assert answer.count(b'"labels"') == 6
    assert b'{"line": 7, "error": "The body did not arrive within 2 seconds."}' in answer


def test_the_rest_of_a_refused_body_is_not_waited_for(client):
    """A client that goes on sending after its answer is disconnected."""
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


def test_idle_connections_make_room(client):
    """However many say nothing or half a head, who comes with a request is answered."""
    with ExitStack() as stack:
        for k in range(100):
            begin = (b"", HEALTH)[k % 2]
            stack.enter_context(connected(client, begin))
        time.sleep(0.5)

        request = HEALTH + b"Connection: close\r\n\r\n"
        answers = [received(connected(client, request)) for _ in range(10)]

    assert all(answer.startswith(b"HTTP/1.1 200 ") for answer in answers)


def test_a_thousand_idle_connections(path):
    """With the default limits, too."""
    with served(path) as client, ExitStack() as stack:
        for k in range(1300):
            stack.enter_context(connected(client, (b"", HEALTH)[k % 2]))
        time.sleep(1)

        request = HEALTH + b"Connection: close\r\n\r\n"
        answers = [received(connected(client, request)) for _ in range(10)]

    assert all(answer.startswith(b"HTTP/1.1 200 ") for answer in answers)


def test_too_many_at_work(path):
    """Where all connections wait for the service, a newcomer is told to come back."""
    limits = ConnectionLimits(connections=2)
    with served(path, limits, threads=1) as client:
        workers = client.app.state.service.workers
        busy = [{"text": "film " * 200_000}] * 20
        body = json.dumps({"documents": busy}).encode()
        head = b"POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        held = [connected(client, request) for _ in range(2)]
        until(lambda: workers.pending == 2)

        answer = received(connected(client, HEALTH + b"Connection: close\r\n\r\n"))

        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"The service has too many connections" in answer
        for connection in held:
            assert connection.recv(12) == b"HTTP/1.1 200"
            connection.close()


def test_an_answer_that_is_not_taken(path):
    """The connection ends, and the memory of the answer with it."""
    with served(path, LIMITS) as client:
        body = json.dumps({"documents": [{"text": "film"}] * 10_000}).encode()
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((client.base_url.host, client.base_url.port))
        head = b"POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        connection.recv(1, socket.MSG_PEEK)
        time.sleep(4)  # in which nothing is read

        answer = received(connection)

    length = int(answer.partition(b"content-length: ")[2].split()[0])
    assert len(answer) < length


def test_requests_ahead_of_an_answer(client):
    """The first is answered, and the connection ends: the others can be sent again."""
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
    """They are cut off: tiny chunks, their extensions, and trailers."""
    connection = connected(client, CHUNKED + begin)

    n_bytes = sent(connection, part, 30_000_000)

    assert n_bytes < 30_000_000
    connection.close()


def test_small_chunks(client):
    """A body may come in small parts."""
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
    """They get an answer, and do no harm."""
    answer = received(connected(client, request_line + b"\r\nHost: localhost\r\n\r\n"))

    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 404 ", b"HTTP/1.1 200 "))


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
def test_another_protocol(client, protocol):
    """Nobody speaks it here; the request is answered, and what follows is not read for ever."""
    head = HEALTH + b"Connection: Upgrade\r\nUpgrade: " + protocol + b"\r\n\r\n"
    connection = connected(client, head)

    n_bytes = sent(connection, b"x" * 65536, 1 << 30)

    assert n_bytes < 1 << 30
    connection.close()
