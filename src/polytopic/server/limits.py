"""Limits on requests: on their heads, on the size and time of bodies, and on JSON.

:class:`RequestLimits` is the middleware around all routes. Routes read JSON with
:func:`json_body`; values of large bodies are counted before parsing them.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from fastapi import Depends, HTTPException, Request
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polytopic.server.problems import UNEXPECTED, describe_errors, problem
from polytopic.server.workers import BusyError

JSON, NDJSON = "application/json", "application/x-ndjson"
SMALL = 16 << 10  # bytes of a body that is always read, and parsed without a thread
MAX_VALUES = 500_000  # in one JSON body
MAX_CONTAINERS = 100_000  # objects and arrays among them
BLOCK = 1 << 20  # bytes scanned at once
QUOTE, COMMA, BRACE, BRACKET = b'",{['
Model = TypeVar("Model", bound=BaseModel)
KILOBYTE, MEGABYTE = 1 << 10, 1 << 20
MAX_BYTES_BY_PATH = {  # of bodies that are always small
    "/sign-in": 16 * KILOBYTE,
    "/sign-out": KILOBYTE,
    "/v1/models": MEGABYTE,
    "/v1/models/refresh": 4 * KILOBYTE,
    "/v1/models/rollback": 4 * KILOBYTE,
}
MAX_PARAMETERS = 2500  # in a query
MAX_VALID_HOSTS = 100  # that are remembered; the port may be any
SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        b"connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
        b"frame-ancestors 'none'",
    ),
]
# answers may contain documents that are forgotten later
PRIVATE_HEADERS = [*SECURITY_HEADERS, (b"cache-control", b"no-store")]
STATIC = "/static"  # the path of files that anyone may cache
UNIQUE_FIELDS = frozenset(  # header fields that would be ambiguous if repeated
    (
        b"authorization",
        b"content-encoding",
        b"content-length",
        b"content-type",
        b"cookie",
        b"host",
        b"idempotency-key",
        b"origin",
        b"sec-fetch-site",
        b"transfer-encoding",
    )
)

CODINGS = {b"content-encoding": b"identity", b"transfer-encoding": b"chunked"}  # of bodies


# All requests


class BodyMemory:
    """Counts the bytes of all request bodies that are in memory.

    Parameters
    ----------
    limit : int
        The largest number of bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.n_bytes = limit, 0

    def is_full_for(self, n_bytes: int) -> bool:
        """Return whether a request with this many bytes in memory must fail.

        Small bodies are always read, so that clients with large ones cannot keep out all others.
        """
        return self.n_bytes > self.limit and n_bytes > SMALL


class RequestLimits:
    """Rejects ambiguous, large and slow requests, adds security headers, and counts requests.

    Parameters
    ----------
    app : ASGI application
        The application to protect.
    memory : BodyMemory
        Counts the bytes of all bodies.
    count_request : callable
        Called after each request with the path of its route, the status and the seconds it took.
    stream_path : str
        The path of the one route that takes a stream of lines.
    max_body_bytes : int
        The largest body. A stream of lines may be longer.
    body_timeout : float
        Seconds within which a body must arrive; in a stream of lines, its next part.
    hosts : tuple of str or None
        Allowed names in the ``Host`` header; None allows any. This stops DNS rebinding: a site
        that pretends to be this machine in order to read from it in a visitor's browser.
    """

    def __init__(
        self,
        app: ASGIApp,
        memory: BodyMemory,
        count_request: Callable[[str, int, float], None],
        stream_path: str,
        max_body_bytes: int,
        body_timeout: float,
        hosts: tuple[str, ...] | None = None,
    ):
        self.app, self.memory = app, memory
        self.count_request, self.stream_path = count_request, stream_path
        self.max_body_bytes, self.body_timeout = max_body_bytes, body_timeout
        self.hosts = hosts
        self._valid_hosts: set[bytes] = set()  # Host headers that have passed the check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, exchange = time.perf_counter(), _Exchange(self, scope, receive, send)
        try:
            if b"\\" in exchange.headers.get(b"cookie", b""):
                scope["headers"] = _without_slow_cookies(scope["headers"])
            rejection = self._check_head(scope, exchange.headers)
            if rejection is None:
                await self.app(scope, exchange.receive, exchange.send)
            else:
                await exchange.reject(*rejection)
        except Exception:
            if not exchange.has_started:
                await exchange.reject(500, UNEXPECTED)
            raise  # the server logs it and closes the connection
        finally:
            self.memory.n_bytes -= exchange.n_read
            route = getattr(scope.get("route"), "path", "other")
            self.count_request(route, exchange.status, time.perf_counter() - begin)

    def _check_head(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        """Return the status and reason for rejecting a request by its head, or None."""
        if len(headers) != len(scope["headers"]):
            names = [name for name, _ in scope["headers"]]
            repeated = sorted(name for name in UNIQUE_FIELDS if names.count(name) > 1)
            if repeated:
                return 400, f"The header field {repeated[0].decode()} is repeated."
        for name, supported in CODINGS.items():
            coding = headers.get(name, supported).strip().lower()
            if coding != supported:
                named = f"The header field {name.decode()} == {coding.decode('latin-1')!r}"
                return 400, f"{named}, must be {supported.decode()}, or left out."
        if scope["query_string"].count(b"&") >= MAX_PARAMETERS:
            return 422, f"The query has more than {MAX_PARAMETERS:,} parameters."
        if not self._is_valid_host(headers.get(b"host", b"")):
            host = headers.get(b"host", b"").decode("latin-1")
            return 421, f"Host == {host!r}, must be one of {', '.join(self.hosts or ())}."
        return None

    def _is_valid_host(self, host: bytes) -> bool:
        """Return whether a ``Host`` header names this service, with or without a port."""
        if self.hosts is None or host in self._valid_hosts:
            return True
        if re.sub(r":\d{1,5}$", "", host.decode("latin-1").lower()) not in self.hosts:
            return False
        if len(self._valid_hosts) < MAX_VALID_HOSTS:
            self._valid_hosts.add(host)
        return True


def _without_slow_cookies(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Drop cookies with backslashes: before Python 3.12.6, reading one takes quadratic time.

    FastAPI reads the cookies of every request, and those of this service have none.
    """

    def keep_fast(cookies: bytes) -> bytes:
        return b";".join(cookie for cookie in cookies.split(b";") if b"\\" not in cookie)

    return [(n, keep_fast(value) if n == b"cookie" else value) for n, value in headers]


class _Exchange:
    """A request, whose body is limited, and its response, which gets the security headers.

    Attributes
    ----------
    headers : dict of bytes to bytes
        Header fields of the request.
    n_read : int
        Bytes of the body that were read, and that the memory counts; 0 for a stream of lines.
    status : int
        Status of the response.
    has_started : bool
        Whether the response has started.
    """

    def __init__(self, limits: RequestLimits, scope: Scope, receive: Receive, send: Send):
        self._limits, self._scope, self._receive, self._send = limits, scope, receive, send
        self.headers, self.n_read = dict(scope["headers"]), 0
        self.status, self.has_started = 500, False
        path, largest = scope["path"], limits.max_body_bytes
        self._is_stream = path == limits.stream_path and _is_stream(scope["method"], self.headers)
        self._limit = min(largest, MAX_BYTES_BY_PATH.get(path, largest))
        is_static = path.startswith(f"{STATIC}/")
        self._own_headers = SECURITY_HEADERS if is_static else PRIVATE_HEADERS
        length = self.headers.get(b"content-length", b"0")
        is_length = len(length) < 20 and length.isdigit()
        self._announced = int(length) if is_length else self._limit + 1
        self._deadline = asyncio.get_running_loop().time() + limits.body_timeout

    async def receive(self) -> Message:
        """Receive the next part of the body; raise if it is too large or too late."""
        if self._announced > self._limit and not self.n_read and not self._is_stream:
            raise _too_large(self._limit)  # before reading any of it
        try:
            async with self._timeout():
                message = await self._receive()
        except TimeoutError as error:
            seconds = self._limits.body_timeout
            detail = f"The body did not arrive within {seconds:g} seconds."
            raise HTTPException(408, detail, {"Connection": "close"}) from error
        if not self._is_stream:
            self._count(len(message.get("body", b"")))
        return message

    def _timeout(self) -> asyncio.Timeout:
        """Return the timeout for the next part: of its own in a stream, of the body otherwise."""
        if self._is_stream:
            return asyncio.timeout(self._limits.body_timeout)
        return asyncio.timeout_at(None if self.has_started else self._deadline)

    def _count(self, n_bytes: int) -> None:
        """Count bytes of the body; raise if there are too many, in this body or in all."""
        if not n_bytes:
            return
        self.n_read += n_bytes
        self._limits.memory.n_bytes += n_bytes
        if self.n_read > self._limit:
            raise _too_large(self._limit)
        if self._limits.memory.is_full_for(self.n_read):
            raise BusyError

    async def send(self, message: Message) -> None:
        """Send a part of the response."""
        if message["type"] == "http.response.start":
            self.status, self.has_started = message["status"], True
            message["headers"] = [*message["headers"], *self._own_headers]
        await self._send(message)

    async def reject(self, status: int, detail: str) -> None:
        """Answer with a problem document, and ask the client to close the connection."""
        response = problem(status, detail, {"Connection": "close"})
        await response(self._scope, self._receive, self.send)


def _too_large(limit: int) -> HTTPException:
    return HTTPException(413, f"The body is larger than {limit:,} bytes.", {"Connection": "close"})


def _is_stream(method: str, headers: dict[bytes, bytes]) -> bool:
    content_type = headers.get(b"content-type", b"").decode("latin-1")
    return method == "POST" and media_type(content_type) == NDJSON


# JSON


def media_type(content_type: str) -> str:
    """Return the media type of a ``Content-Type`` header, without parameters."""
    return content_type.partition(";")[0].strip().lower()


def check_media_type(request: Request, *allowed: str) -> None:
    """Reject a body of any other media type with status 415."""
    content_type = media_type(request.headers.get("Content-Type", ""))
    if content_type not in allowed:
        raise HTTPException(
            415, f"Content-Type == {content_type!r}, must be {' or '.join(allowed)}."
        )


def decode_json(body: bytes) -> Any:
    """Return the value of a JSON body; raise :class:`ValueError` if it is invalid or too large."""
    if len(body) > SMALL:
        check_json_size(body)
    try:
        return from_json(body)
    except ValueError as error:
        raise ValueError(f"The request: Invalid JSON: {error}.") from error


def validate(model: type[Model], value: Any) -> Model:
    """Return a value as an instance of ``model``; raise :class:`ValueError` if it is not one."""
    try:
        return model.model_validate(value, strict=True)
    except ValidationError as error:
        raise ValueError(describe_errors(error)) from error


class JSONSize(NamedTuple):
    """The number of values in a JSON text, and of the objects and arrays among them."""

    values: int
    containers: int


def json_size(body: bytes) -> JSONSize:
    """Count the values of a JSON text without parsing it, because each parsed value takes memory.

    The result is an upper bound: an empty object or array counts as two values.
    """
    body = body.replace(rb"\\", b"").replace(rb"\"", b"")  # the remaining quotes delimit strings
    commas = containers = 0
    inside = 0  # 1 if the block starts inside a string
    for start in range(0, len(body), BLOCK):
        block = np.frombuffer(body, np.uint8, min(BLOCK, len(body) - start), start)
        quotes = np.cumsum(block == QUOTE, dtype=np.uint8)  # overflow keeps the parity
        outside = ((quotes + inside) & 1) == 0
        commas += int(np.count_nonzero(outside & (block == COMMA)))
        containers += int(np.count_nonzero(outside & ((block == BRACE) | (block == BRACKET))))
        inside = (inside + int(quotes[-1])) & 1
    return JSONSize(commas + containers, containers)


def check_json_size(body: bytes) -> None:
    """Reject a JSON text that would take far more memory than it has bytes."""
    size = json_size(body)
    for name, n, limit in (
        ("values", size.values, MAX_VALUES),
        ("objects and arrays", size.containers, MAX_CONTAINERS),
    ):
        if n > limit:
            raise ValueError(f"The request has {n:,} {name}, must have at most {limit:,}.")


class JSONBody(Generic[Model]):
    """The JSON body of a request, parsed where it is needed if it is large.

    A parsed body takes up to twenty times its bytes, so large bodies wait as they are.

    Parameters
    ----------
    model : type of BaseModel
        What the body must be.
    content : bytes
        The body.

    Attributes
    ----------
    is_large : bool
        Whether parsing it takes a while.
    """

    def __init__(self, model: type[Model], content: bytes):
        self._model, self._content = model, content
        self.is_large = len(content) > SMALL
        self._parsed = None if self.is_large else self._parse()

    def parse(self) -> Model:
        """Return the request; raise :class:`ValueError` if it is not valid."""
        return self._parse() if self._parsed is None else self._parsed

    def _parse(self) -> Model:
        return validate(self._model, decode_json(self._content))


def json_body(model: type[BaseModel]) -> Any:
    """Return the dependency that reads a JSON body.

    FastAPI resolves it after the dependencies of the route, so that the token is checked first.
    """

    async def read(request: Request) -> JSONBody:
        check_media_type(request, JSON)
        return JSONBody(model, await request.body())

    return Depends(read)
