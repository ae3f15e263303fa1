"""Connections: how many there may be, how long they may wait, and how large a head may be.

uvicorn parses requests and runs the application, but sets no bounds on what a client does before
a request is complete or after it is answered. :class:`Connection` counts what uvicorn's protocol is
fed and when, and :class:`Connections` looks at all of them once in a while, so that requests pay
for no timers.
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

from polytopic.server.problems import problem

TICK = 0.5  # seconds between looks at all connections
LINGER = 2.0  # seconds in which a client may still take an answer that ends its connection
SETTLED = 0.2  # seconds that a connection must have waited before it makes room for a new one
KEEP_ALIVE = 5  # seconds that a connection may be idle between two requests


@dataclass(frozen=True)
class ConnectionLimits:
    """What clients may do with their connections.

    Parameters
    ----------
    connections : int, default=1024
        Connections that are open at once. A further one takes the place of the one that has kept
        the service waiting longest; where none has, it gets status 503.
    head_bytes : int, default=65536
        Bytes of a request line and the header fields together; more get status 414 or 431. This
        also bounds chunk framing and trailers: besides that many bytes, a request may have as much
        of them as it has of its body.
    head_fields : int, default=100
        Header fields of a request.
    head_seconds : float, default=10
        Seconds in which the head of a request must have arrived, in all.
    reading_seconds : float, default=30
        Seconds in which a client must take an answer, or ``reading_bytes`` of it.
    reading_bytes : int, default=262144
        See ``reading_seconds``.
    unread_bytes : int, default=268435456
        Bytes of answers that clients have not taken yet, in all; whoever leaves most is
        disconnected.
    """

    connections: int = 1024
    head_bytes: int = 64 << 10
    head_fields: int = 100
    head_seconds: float = 10.0
    reading_seconds: float = 30.0
    reading_bytes: int = 256 << 10
    unread_bytes: int = 256 << 20


class Connections:
    """All connections of a server, and what becomes of those that break a limit.

    Parameters
    ----------
    limits : ConnectionLimits
        What clients may do.
    """

    def __init__(self, limits: ConnectionLimits):
        self.limits = limits
        self._open: set[Connection] = set()
        self._leaving: set[Connection] = set()  # refused, while they take the answer
        self._looks = False

    def add(self, connection: Connection) -> None:
        """Admit a new connection, or refuse it."""
        if len(self._open) >= self.limits.connections:
            self._make_room(connection.loop.time())
        if len(self._open) < self.limits.connections:
            self._open.add(connection)
        elif len(self._leaving) <= self.limits.connections // 2:
            connection.refuse(503, "the service has too many connections; try again in a moment.")
        else:
            connection.drop()
            return
        if not self._looks:
            self._looks = True
            connection.loop.call_later(TICK, self._look, connection.loop)

    def leave(self, connection: Connection) -> None:
        """Note that a connection only takes its last answer."""
        self._open.discard(connection)
        self._leaving.add(connection)

    def discard(self, connection: Connection) -> None:
        """Note that a connection is closed."""
        self._open.discard(connection)
        self._leaving.discard(connection)

    def _make_room(self, now: float) -> None:
        """Close the connection that has kept the service waiting longest."""
        longest = min(self._open, key=lambda connection: connection.waiting_since)
        if now - longest.waiting_since > SETTLED:
            self._open.discard(longest)
            longest.drop()

    def _look(self, loop) -> None:
        """Close what is overdue, and look again later."""
        now, unread = loop.time(), {}
        for connection in [*self._open, *self._leaving]:
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
        self._looks = bool(self._open or self._leaving)
        if self._looks:
            loop.call_later(TICK, self._look, loop)


class Connection(HttpToolsProtocol):
    """uvicorn's side of one connection, within limits.

    Attributes
    ----------
    waiting_since : float
        When the service began to wait for the client; infinity while the client waits for it.
    unread : int
        Bytes of answers that the client has not taken yet, as of the last look.
    """

    def __init__(self, *arguments: Any, others: Connections, **settings: Any):
        super().__init__(*arguments, **settings)
        self._others, self._limits = others, others.limits
        self._due = math.inf  # when the client must have done what it is waited for
        self._refused = False
        self._in_head, self._in_body, self._unanswered = False, False, False
        self._n_messages = self._n_new = self._n_bytes = self._n_body = 0
        self.waiting_since = math.inf
        self.unread, self._unread_since = 0, 0.0

    # The connection

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait(self._limits.head_seconds)
        self._others.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._others.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has come, unless too much of it is no body."""
        if self._refused:
            return
        last = self._n_messages + (not self._in_head and not self._in_body)
        self._n_new = len(data)
        super().data_received(data)
        if self._n_messages <= last and not self._refused:  # all of it belongs to one message
            self._n_bytes += len(data)
            if self._n_bytes - self._n_body > self._limits.head_bytes + self._n_body:
                self._refuse_head()

    def refuse(self, status: int, detail: str) -> None:
        """Answer with a problem document, read nothing more, and close the connection soon.

        Closing it at once would let the operating system throw away the answer if the client is
        still sending.
        """
        self._refused = True
        self._others.leave(self)
        if self._unanswered or self.transport.is_closing():  # an answer now would be another's
            self.drop()
            return
        answer = problem(status, detail, {"Connection": "close"})
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
        lines += [name + b": " + value for name, value in answer.raw_headers]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(answer.body)]))
        if self.transport.can_write_eof():  # not if it is encrypted
            self.transport.write_eof()
        self._wait(LINGER)

    def drop(self) -> None:
        """Close the connection at once, whatever the client has not taken yet."""
        self._refused = True
        self.pause_writing()  # who is about to answer waits until the connection is lost
        self.transport.abort()

    def is_overdue(self, now: float) -> bool:
        """Tell whether the client takes too long to send a request or to take an answer."""
        unread, limits = self.transport.get_write_buffer_size(), self._limits
        if not unread or unread > self.unread or self.unread - unread >= limits.reading_bytes:
            self.unread, self._unread_since = unread, now
        if unread:
            return now - self._unread_since > limits.reading_seconds
        return now > self._due

    def _wait(self, seconds: float) -> None:
        """Give the client so many seconds from now on."""
        self.waiting_since = self.loop.time()
        self._due = self.waiting_since + seconds

    def _refuse_head(self) -> None:
        limits = self._limits
        if self._in_head and len(self.url) > limits.head_bytes // 2:
            what, status = "address", 414
        else:
            what, status = "header", 431
        self.refuse(
            status,
            f"the {what} is too long; a request may have {limits.head_bytes:,} bytes and "
            f"{limits.head_fields:,} fields before its body.",
        )

    # What the parser finds

    def on_message_begin(self) -> None:
        """Begin to count a request."""
        super().on_message_begin()
        self._n_messages += 1
        self._n_bytes = self._n_body = 0
        self._in_head = True
        if not self._unanswered:
            self._wait(self._limits.head_seconds)

    def on_headers_complete(self) -> None:
        """Start to answer, if the head is within the limits."""
        limits, n_bytes = self._limits, self._n_bytes + self._n_new
        if n_bytes > limits.head_bytes:  # of which some may be body
            n_bytes = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if n_bytes > limits.head_bytes or len(self.headers) > limits.head_fields:
            self._refuse_head()
            return
        if self._unanswered:  # sent ahead of an answer, which is the last one then
            self._refused = True
            self.shutdown()
            return
        self._in_head, self._in_body = False, True
        self._unanswered = True
        self._due = math.inf  # the application waits for the body
        super().on_headers_complete()
        self.headers = []  # for trailers, which would join the fields that the application sees

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        if not self._refused:
            self._n_body += len(body)
            self.waiting_since = self.loop.time()
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Let the client wait for its answer."""
        if self._refused:
            return
        super().on_message_complete()
        self._in_body = False
        if self._unanswered:
            self.waiting_since = math.inf
        else:
            self._wait(KEEP_ALIVE + self._limits.head_seconds)

    def on_response_complete(self) -> None:
        """Wait for the next request, or for what is left of this one's body."""
        self._unanswered = False
        self._wait(KEEP_ALIVE + (0.0 if self._in_body else self._limits.head_seconds))
        super().on_response_complete()


def server(app: FastAPI, limits: ConnectionLimits | None = None, **settings: Any) -> uvicorn.Server:
    """Return a server of an application whose connections keep within limits.

    Other settings are those of :class:`uvicorn.Config`.
    """
    others = Connections(limits or ConnectionLimits())
    config = uvicorn.Config(
        app,
        http=partial(Connection, others=others),  # type: ignore[arg-type]  # as good as a class
        log_level="error",  # what clients do wrong is reported to them, not logged
        access_log=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=30,
        **settings,
    )
    return uvicorn.Server(config)
