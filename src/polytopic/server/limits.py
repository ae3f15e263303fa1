"""Middleware around all routes: limits on requests, security headers, and metrics."""

from __future__ import annotations

import asyncio
import re
import time

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polytopic.server.bodies import BodyMemory, media_type
from polytopic.server.problems import problem
from polytopic.server.queries import NDJSON
from polytopic.server.service import Metrics
from polytopic.server.suggest import PATH as STREAM_PATH
from polytopic.server.workers import BusyError

KILOBYTE, MEGABYTE = 1 << 10, 1 << 20
MAX_BYTES_BY_PATH = {  # of bodies that are always small
    "/sign-in": 16 * KILOBYTE,
    "/sign-out": KILOBYTE,
    "/v1/models": MEGABYTE,
    "/v1/models/refresh": 4 * KILOBYTE,
    "/v1/models/rollback": 4 * KILOBYTE,
}
MAX_PARAMETERS = 2500  # in a query
UNEXPECTED = "An unexpected error occurred. See the log of the service for details."
SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        b"connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
        b"frame-ancestors 'none'",
    ),
]
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


class RequestLimits:
    """Rejects ambiguous, large and slow requests, adds security headers, and counts requests.

    Parameters
    ----------
    app : ASGI application
        The application to protect.
    metrics : Metrics
        Counts requests.
    memory : BodyMemory
        Counts the bytes of all bodies.
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
        metrics: Metrics,
        memory: BodyMemory,
        max_body_bytes: int,
        body_timeout: float,
        hosts: tuple[str, ...] | None = None,
    ):
        self.app, self.metrics, self.memory = app, metrics, memory
        self.max_body_bytes, self.body_timeout = max_body_bytes, body_timeout
        self.hosts = hosts
        self._valid_hosts: set[bytes] = set()  # Host headers that have passed the check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status, n_read = time.perf_counter(), 500, 0
        has_started = False
        headers = dict(scope["headers"])
        is_stream = _is_stream(scope, headers)
        limit = min(self.max_body_bytes, MAX_BYTES_BY_PATH.get(scope["path"], self.max_body_bytes))
        length = headers.get(b"content-length", b"0")
        announced = int(length) if len(length) < 20 and length.isdigit() else limit + 1
        deadline = asyncio.get_running_loop().time() + self.body_timeout

        async def limited_receive() -> Message:
            nonlocal n_read
            if not is_stream and not n_read:
                _check_body_size(announced, limit)  # before reading any of it
            if is_stream:
                timeout = asyncio.timeout(self.body_timeout)
            else:
                timeout = asyncio.timeout_at(None if has_started else deadline)
            try:
                async with timeout:
                    message = await receive()
            except TimeoutError as error:
                detail = f"The body did not arrive within {self.body_timeout:g} seconds."
                raise HTTPException(408, detail, {"Connection": "close"}) from error
            n_bytes = len(message.get("body", b""))
            if n_bytes and not is_stream:
                n_read += n_bytes
                self.memory.n_bytes += n_bytes
                _check_body_size(n_read, limit)
                if self.memory.is_full:
                    raise BusyError
            return message

        async def secure_send(message: Message) -> None:
            nonlocal status, has_started
            if message["type"] == "http.response.start":
                status, has_started = message["status"], True
                message["headers"] = [*message["headers"], *SECURITY_HEADERS]
            await send(message)

        async def reject(status: int, detail: str) -> None:
            await problem(status, detail, {"Connection": "close"})(scope, receive, secure_send)

        try:
            rejection = self._check_head(scope, headers)
            if rejection is None:
                await self.app(scope, limited_receive, secure_send)
            else:
                await reject(*rejection)
        except Exception:
            if not has_started:
                await reject(500, UNEXPECTED)
            raise  # the server logs it and closes the connection
        finally:
            self.memory.n_bytes -= n_read
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.count_request(route, status, time.perf_counter() - begin)

    def _check_head(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        """Return the status and reason for rejecting a request by its head, or None."""
        if len(headers) != len(scope["headers"]):
            names = [name for name, _ in scope["headers"]]
            repeated = sorted(name for name in UNIQUE_FIELDS if names.count(name) > 1)
            if repeated:
                return 400, f"The header field {repeated[0].decode()} is repeated."
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
        if re.sub(r":\d{1,5}$", "", host.decode("latin-1")) not in self.hosts:
            return False
        self._valid_hosts.add(host)
        return True


def _check_body_size(n_bytes: int, limit: int) -> None:
    if n_bytes > limit:
        detail = f"The body is larger than {limit:,} bytes."
        raise HTTPException(413, detail, {"Connection": "close"})


def _is_stream(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    """Return whether a request sends lines to the one route that takes them."""
    if scope["path"] != STREAM_PATH or scope["method"] != "POST":
        return False
    return media_type(headers.get(b"content-type", b"").decode("latin-1")) == NDJSON
