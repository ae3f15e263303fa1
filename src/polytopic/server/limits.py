"""What stands around all routes: limits on requests, headers for safety, and a clock."""

from __future__ import annotations

import asyncio
import re
import time

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polytopic.server.bodies import Bodies
from polytopic.server.metrics import Metrics
from polytopic.server.problems import problem
from polytopic.server.streams import NDJSON
from polytopic.server.work import BusyError

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


SINGLE = frozenset(  # header fields that mean two things if they come twice
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
STREAMS = "/v1/suggest"  # the only address that takes lines, however many
KILOBYTE = 1 << 10
SMALLER = {  # bytes of a body where it is little that is asked for
    "/sign-in": 16 * KILOBYTE,
    "/sign-out": KILOBYTE,
    "/v1/models": 1 * KILOBYTE * KILOBYTE,
    "/v1/models/refresh": 4 * KILOBYTE,
    "/v1/models/rollback": 4 * KILOBYTE,
}
PARAMETERS = 2500  # in a query
BODIES_AT_ONCE = 8  # of the largest size that are held in memory


class Limits:
    """Refuses requests that are ambiguous, too large or too slow, and adds headers and measures.

    Parameters
    ----------
    app : ASGI application
        What answers.
    metrics : Metrics
        Where requests are counted.
    bodies : Bodies
        Where their bytes are counted.
    most_bytes : int
        Bytes of a body, but for a stream of lines; eight times as many of all bodies that are read
        at the same time.
    patience : float
        Seconds in which a body must have arrived; in a stream of lines, the next part of it.
    hosts : tuple of str or None
        Names by which the service may be called; None for any. Other names are those of sites
        that pretend to be this machine, to read from it in a visitor's browser.
    """

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        bodies: Bodies,
        most_bytes: int,
        patience: float,
        hosts: tuple[str, ...] | None = None,
    ):
        self.app, self.metrics, self.bodies = app, metrics, bodies
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
        streams = _is_stream(scope, headers)
        most = min(self.most_bytes, SMALLER.get(scope["path"], self.most_bytes))
        length = headers.get(b"content-length", b"0")
        announced = int(length) if len(length) < 20 and length.isdigit() else most + 1
        due = asyncio.get_running_loop().time() + self.patience

        async def limited() -> Message:
            nonlocal seen
            if not streams and not seen:
                self._check_size(announced, most)  # before any of it comes
            if streams:
                patience = asyncio.timeout(self.patience)
            else:
                patience = asyncio.timeout_at(None if started else due)
            try:
                async with patience:
                    message = await receive()
            except TimeoutError as error:
                sentence = f"the body did not come within {self.patience:g} seconds."
                raise HTTPException(408, sentence, {"Connection": "close"}) from error
            n_bytes = len(message.get("body", b""))
            if n_bytes and not streams:
                seen += n_bytes
                self.bodies.n_bytes += n_bytes
                self._check_size(seen, most)
                if self.bodies.are_too_many:
                    raise BusyError
            return message

        async def safe(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                message["headers"] = [*message["headers"], *SAFE]
            await send(message)

        try:
            refused = self._refused(scope, headers)
            if refused is not None:
                await problem(*refused, {"Connection": "close"})(scope, receive, safe)
                return
            await self.app(scope, limited, safe)
        finally:
            self.bodies.n_bytes -= seen
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.requested(route, status, time.perf_counter() - begin)

    def _check_size(self, n_bytes: int, most: int) -> None:
        if n_bytes > most:
            sentence = f"the body has more than {most:,} bytes."
            raise HTTPException(413, sentence, {"Connection": "close"})

    def _refused(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        """Return the status and the reason for which a request is refused by its head."""
        if len(headers) != len(scope["headers"]):
            names = [name for name, _ in scope["headers"]]
            twice = sorted(name for name in SINGLE if names.count(name) > 1)
            if twice:
                return 400, f"the header field {twice[0].decode()} comes twice, must come once."
        if scope["query_string"].count(b"&") >= PARAMETERS:
            return 422, f"the query has more than {PARAMETERS:,} parameters."
        strange = self._strange_host(headers)
        return None if strange is None else (421, strange)

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


def _is_stream(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    """Tell whether a request sends lines to the one address that takes them."""
    if scope["path"] != STREAMS or scope["method"] != "POST":
        return False
    kind = headers.get(b"content-type", b"")
    return kind.partition(b";")[0].strip().lower() == NDJSON.encode()
