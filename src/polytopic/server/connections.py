"""Limits on connections: their number, how long clients may idle, and how large a head may be.

uvicorn parses requests and runs the application, but does not limit what a client does before a
request is complete or after it is answered. :class:`Connection` counts what uvicorn's protocol
receives and when. :class:`Connections` checks all of them at intervals, which is cheaper than a
timer per request.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from polytopic.server.limits import SECURITY_HEADERS
from polytopic.server.problems import problem

CHECK_INTERVAL = 0.5  # seconds between two checks of all connections
LINGER = 2.0  # seconds that a rejected client gets to read the response
MIN_IDLE = 0.2  # seconds that a connection must have been idle to be closed for a new one
KEEP_ALIVE = 5  # seconds that a connection may be idle between two requests


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits on what clients may do with their connections.

    Parameters
    ----------
    connections : int, default=1024
        Number of open connections. A further one replaces the connection that has kept the service
        waiting longest; if there is none, it gets status 503.
    head_bytes : int, default=65536
        Bytes of the request line and the header fields together; more get status 414 or 431. Chunk
        framing and trailers may have this many bytes more than the body.
    head_fields : int, default=100
        Number of header fields.
    head_seconds : float, default=10
        Seconds within which the whole head of a request must arrive.
    reading_seconds : float, default=30
        Seconds within which a client must read a response, or ``reading_bytes`` of it.
    reading_bytes : int, default=262144
        See ``reading_seconds``.
    unread_bytes : int, default=268435456
        Bytes of all responses that clients have not read yet. If there are more, the clients with
        the most unread bytes are disconnected.
    """

    connections: int = 1024
    head_bytes: int = 64 << 10
    head_fields: int = 100
    head_seconds: float = 10.0
    reading_seconds: float = 30.0
    reading_bytes: int = 256 << 10
    unread_bytes: int = 256 << 20


class Connections:
    """All connections of a server; closes those that break a limit.

    Parameters
    ----------
    limits : ConnectionLimits
        The limits.
    """

    def __init__(self, limits: ConnectionLimits):
        self.limits = limits
        self._open: set[Connection] = set()
        self._rejected: set[Connection] = set()  # still reading the response
        self._is_scheduled = False

    def add(self, connection: Connection) -> None:
        """Accept a new connection, or reject it."""
        if len(self._open) >= self.limits.connections:
            self._close_longest_idle(connection.loop.time())
        if len(self._open) < self.limits.connections:
            self._open.add(connection)
        elif len(self._rejected) <= self.limits.connections // 2:
            connection.reject(503, "The service has too many connections. Try again in a moment.")
        else:
            connection.drop()
            return
        if not self._is_scheduled:
            self._is_scheduled = True
            connection.loop.call_later(CHECK_INTERVAL, self._check, connection.loop)

    def move_to_rejected(self, connection: Connection) -> None:
        """Note that a connection only reads its last response."""
        self._open.discard(connection)
        self._rejected.add(connection)

    def discard(self, connection: Connection) -> None:
        """Remove a closed connection."""
        self._open.discard(connection)
        self._rejected.discard(connection)

    def _close_longest_idle(self, now: float) -> None:
        """Close the connection that has kept the service waiting longest."""
        longest = min(self._open, key=lambda connection: connection.waiting_since)
        if now - longest.waiting_since > MIN_IDLE:
            self._open.discard(longest)
            longest.drop()

    def _check(self, loop) -> None:
        """Close overdue connections, and schedule the next check."""
        now, unread = loop.time(), {}
        for connection in [*self._open, *self._rejected]:
            if connection.is_overdue(now):
                connection.drop()
            elif connection.unread:
                unread[connection] = connection.unread
        excess = sum(unread.values()) - self.limits.unread_bytes
        for connection in sorted(unread, key=unread.__getitem__, reverse=True):
            if excess <= 0:
                break
            excess -= unread[connection]
            connection.drop()
        self._is_scheduled = bool(self._open or self._rejected)
        if self._is_scheduled:
            loop.call_later(CHECK_INTERVAL, self._check, loop)


class Connection(HttpToolsProtocol):
    """uvicorn's protocol for one connection, with limits.

    Attributes
    ----------
    waiting_since : float
        When the service began to wait for the client; infinity while the client waits.
    unread : int
        Bytes of the response that the client had not read at the last check.
    """

    def __init__(self, *arguments: Any, connections: Connections, **settings: Any):
        super().__init__(*arguments, **settings)
        self._connections, self._limits = connections, connections.limits
        self._deadline = math.inf  # of the client, while the service waits for it
        self._is_rejected = False
        self._in_head, self._in_body, self._unanswered = False, False, False
        self._n_messages = self._n_new = self._n_bytes = self._n_body = 0
        self.waiting_since = math.inf
        self.unread, self._unread_since = 0, 0.0

    # Events of the transport

    def connection_made(self, transport: Any) -> None:
        """Start to wait for a request."""
        super().connection_made(transport)
        self._wait(self._limits.head_seconds)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self._connections.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; reject the request if too many of them are not body."""
        if self._is_rejected:
            return
        last = self._n_messages + (not self._in_head and not self._in_body)
        self._n_new = len(data)
        super().data_received(data)
        if self._n_messages <= last and not self._is_rejected:  # all bytes belong to one message
            self._n_bytes += len(data)
            if self._n_bytes - self._n_body > self._limits.head_bytes + self._n_body:
                self._reject_head()

    def reject(self, status: int, detail: str) -> None:
        """Send a problem document, stop reading, and close the connection soon.

        If it were closed at once while the client is still sending, the operating system would
        discard the response.
        """
        self._is_rejected = True
        self._connections.move_to_rejected(self)
        if self._unanswered or self.transport.is_closing():  # another response is due first
            self.drop()
            return
        self._write_problem(status, detail)
        if self.transport.can_write_eof():  # TLS cannot
            self.transport.write_eof()
        self._wait(LINGER)

    def send_400_response(self, msg: str) -> None:
        """Answer a request that cannot be parsed, and close the connection."""
        self._is_rejected = True
        if self._unanswered and self.cycle.response_started:
            self.drop()
            return
        self._write_problem(400, "The request is not valid HTTP.")
        self.transport.close()

    def _write_problem(self, status: int, detail: str) -> None:
        response = problem(status, detail, {"Connection": "close"})
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
        headers = [*response.raw_headers, *SECURITY_HEADERS]
        lines += [name + b": " + value for name, value in headers]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(response.body)]))

    def drop(self) -> None:
        """Close the connection at once, and discard unread bytes."""
        self._is_rejected = True
        self.pause_writing()  # a response in progress waits until the connection is lost
        self.transport.abort()

    def is_overdue(self, now: float) -> bool:
        """Return whether the client takes too long to send a request or to read a response."""
        unread, limits = self.transport.get_write_buffer_size(), self._limits
        if not unread or unread > self.unread or self.unread - unread >= limits.reading_bytes:
            self.unread, self._unread_since = unread, now
        if unread:
            return now - self._unread_since > limits.reading_seconds
        return now > self._deadline

    def _wait(self, seconds: float) -> None:
        """Start to wait for the client, for this many seconds."""
        self.waiting_since = self.loop.time()
        self._deadline = self.waiting_since + seconds

    def _reject_head(self) -> None:
        limits = self._limits
        if self._in_head and len(self.url) > limits.head_bytes // 2:
            what, status = "URL", 414
        else:
            what, status = "header", 431
        self.reject(
            status,
            f"The {what} is too long: the head of a request may have at most "
            f"{limits.head_bytes:,} bytes and {limits.head_fields:,} fields.",
        )

    # Events of the parser

    def on_message_begin(self) -> None:
        """Start to count the bytes of a request."""
        super().on_message_begin()
        self._n_messages += 1
        self._n_bytes = self._n_body = 0
        self._in_head = True
        if not self._unanswered:
            self._wait(self._limits.head_seconds)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header field; white space after the value does not belong to it."""
        super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        """Call the application if the head is within the limits."""
        limits, n_bytes = self._limits, self._n_bytes + self._n_new
        if n_bytes > limits.head_bytes:  # some of which may be body
            n_bytes = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if n_bytes > limits.head_bytes or len(self.headers) > limits.head_fields:
            self._reject_head()
            return
        if self.parser.should_upgrade() and any(map(_announces_body, self.headers)):
            # the parser takes the body for the other protocol, and what follows for a new request
            self.reject(400, "A request with a body cannot change the protocol (Upgrade, CONNECT).")
            return
        if self._unanswered:  # pipelined: the pending response is the last one
            self._is_rejected = True
            self.shutdown()
            return
        super().on_headers_complete()  # raises if the URL is not valid
        self._in_head, self._in_body = False, True
        self._unanswered = True
        self._deadline = math.inf  # the application limits the wait for the body
        self.headers = []  # trailers must not join the fields that the application sees

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body."""
        if not self._is_rejected:
            self._n_body += len(body)
            self.waiting_since = self.loop.time()
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Stop waiting for the client, which now waits for its response."""
        if self._is_rejected:
            return
        super().on_message_complete()
        self._in_body = False
        if self._unanswered:
            self.waiting_since = math.inf
        else:
            self._wait(KEEP_ALIVE + self._limits.head_seconds)

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of this one's body."""
        self._unanswered = False
        self._wait(KEEP_ALIVE + (0.0 if self._in_body else self._limits.head_seconds))
        super().on_response_complete()


def _announces_body(field: tuple[bytes, bytes]) -> bool:
    name, value = field
    return name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0") != b"")


def create_server(
    app: FastAPI, limits: ConnectionLimits | None = None, **settings: Any
) -> uvicorn.Server:
    """Return a server that limits its connections.

    Further settings are those of :class:`uvicorn.Config`.
    """
    connections = Connections(limits or ConnectionLimits())
    config = uvicorn.Config(
        app,
        http=partial(Connection, connections=connections),  # type: ignore[arg-type]  # a factory
        log_level="error",  # errors of clients are reported to them, not logged
        access_log=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=30,
        **settings,
    )
    return uvicorn.Server(config)
