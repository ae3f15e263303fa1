"""What stands around all routes: limits on bodies, headers for safety, and a clock."""

from __future__ import annotations

import asyncio
import re
import time

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polytopic.server.metrics import Metrics
from polytopic.server.problems import problem
from polytopic.server.streams import NDJSON

SAFE = list(
    {
        b"x-content-type-options": b"nosniff",
        b"x-frame-options": b"DENY",
        b"referrer-policy": b"no-referrer",
        b"cross-origin-opener-policy": b"same-origin",
        b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; "
        b"img-src 'self' data:; connect-src 'self'; font-src 'self'; form-action 'self'; "
        b"base-uri 'none'; frame-ancestors 'none'",
    }.items()
)


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
    hosts : tuple of str or None
        Names by which the service may be called; None for any. Other names are those of sites
        that pretend to be this machine, to read from it in a visitor's browser.
    """

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        most_bytes: int,
        patience: float,
        hosts: tuple[str, ...] | None = None,
    ):
        self.app, self.metrics = app, metrics
        self.most_bytes, self.patience = most_bytes, patience
        self.hosts = hosts
        self._known: set[bytes] = set()  # headers that name one of them

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status, seen = time.perf_counter(), 500, 0
        started = False
        headers = dict(scope["headers"])
        streams = headers.get(b"content-type", b"").lower().startswith(NDJSON.encode())
        length = headers.get(b"content-length", b"0")
        told = int(length) if length.isdigit() else 0

        async def limited() -> Message:
            nonlocal seen
            self._check_size(0 if streams or seen else told)  # before any of it comes
            try:
                async with asyncio.timeout(None if started else self.patience):
                    message = await receive()
            except TimeoutError as error:
                sentence = f"the body did not come within {self.patience:g} seconds."
                raise HTTPException(408, sentence, {"Connection": "close"}) from error
            seen += len(message.get("body", b""))
            self._check_size(0 if streams else seen)
            return message

        async def safe(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                message["headers"] = [*message["headers"], *SAFE]
            await send(message)

        try:
            strange = self._strange_host(headers)
            if strange is not None:
                await problem(421, strange)(scope, receive, safe)
                return
            await self.app(scope, limited, safe)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.requested(route, status, time.perf_counter() - begin)

    def _check_size(self, n_bytes: int) -> None:
        if n_bytes > self.most_bytes:
            sentence = f"the body has more than {self.most_bytes:,} bytes."
            raise HTTPException(413, sentence, {"Connection": "close"})

    def _strange_host(self, headers: dict[bytes, bytes]) -> str | None:
        """Say what is wrong with the name by which the service is called, if it is."""
        sent = headers.get(b"host", b"")
        if self.hosts is None or sent in self._known:
            return None
        host = sent.decode("latin-1")
        if re.sub(r":\d{1,5}$", "", host) in self.hosts:
            self._known.add(sent)
            return None
        names = ", ".join(self.hosts)
        return f"Host == {host!r}, must be one of {names}: only they are this machine's own."
