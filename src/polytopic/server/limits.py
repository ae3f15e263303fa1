"""What stands around all routes: limits on bodies, headers for safety, and a clock."""

from __future__ import annotations

import asyncio
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polytopic.server.metrics import Metrics
from polytopic.server.problems import problem
from polytopic.server.streams import NDJSON

HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; "
    b"img-src 'self' data:; connect-src 'self'; font-src 'self'; form-action 'self'; "
    b"base-uri 'none'; frame-ancestors 'none'",
}


class TooLargeError(Exception):
    """A body has more bytes than it may have."""


class Limits:
    """Refuses bodies that are too large or too slow, and adds headers and measures.

    Parameters
    ----------
    app : ASGI application
        What answers.
    metrics : Metrics
        Where requests are counted.
    most_bytes : int
        Bytes of a body, but for a stream of lines.
    patience : float
        Seconds that the next part of a body may take.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, most_bytes: int, patience: float):
        self.app, self.metrics = app, metrics
        self.most_bytes, self.patience = most_bytes, patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status, seen = time.perf_counter(), 500, 0
        started = False
        headers = dict(scope["headers"])
        streams = headers.get(b"content-type", b"").startswith(NDJSON.encode())

        async def limited() -> Message:
            nonlocal seen
            async with asyncio.timeout(None if started else self.patience):
                message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.most_bytes and not streams:
                raise TooLargeError
            return message

        async def safe(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                own = {name for name, _ in message["headers"]}
                more = [(name, value) for name, value in HEADERS.items() if name not in own]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        try:
            length = headers.get(b"content-length", b"0")
            if not streams and length.isdigit() and int(length) > self.most_bytes:
                raise TooLargeError
            await self.app(scope, limited, safe)
        except TooLargeError:
            answer = problem(413, f"the body has more than {self.most_bytes:,} bytes.")
            await answer(scope, receive, safe)
        except TimeoutError:
            answer = problem(408, f"the body did not come within {self.patience:g} seconds.")
            if not started:
                await answer(scope, receive, safe)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.requested(route, status, time.perf_counter() - begin)
