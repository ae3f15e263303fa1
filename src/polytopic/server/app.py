"""The application: the HTTP API and the pages."""

from __future__ import annotations

from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from polytopic import __version__
from polytopic.server.api import add_api
from polytopic.server.auth import Guard
from polytopic.server.bodies import BodyMemory
from polytopic.server.limits import MEGABYTE, RequestLimits
from polytopic.server.live import LiveModel
from polytopic.server.openapi import complete_openapi
from polytopic.server.pages import add_pages
from polytopic.server.problems import add_problem_handlers
from polytopic.server.service import Service
from polytopic.server.workers import Workers

MAX_BODIES = 8  # of the largest size in memory at once


def create_app(
    source: str,
    *,
    open_reading: bool = True,
    own_token: str | None = None,
    threads: int = 2,
    max_waiting: int = 256,
    max_body_bytes: int = 32 * MEGABYTE,
    body_timeout: float = 30.0,
    origins: tuple[str, ...] = (),
    hosts: tuple[str, ...] | None = None,
) -> FastAPI:
    """Return the application that serves a store or a model file.

    Parameters
    ----------
    source : str
        The file or URL of a store, or a model file, which cannot learn.
    open_reading : bool, default=True
        Whether anyone may read without a token.
    own_token : str, default=None
        A further token with the role ``admin``, valid while the service runs.
    threads : int, default=2
        Number of worker threads.
    max_waiting : int, default=256
        Number of calls that may wait for a thread; further ones get status 503.
    max_body_bytes : int, default=33554432
        The largest body; a stream of lines may be longer. All bodies in memory together may have
        eight times as many bytes.
    body_timeout : float, default=30
        Seconds within which a body must arrive; in a stream of lines, its next part.
    origins : tuple of str, default=()
        Other sites whose pages may call the service (CORS).
    hosts : tuple of str, default=None
        Allowed names in the ``Host`` header; any by default.
    """
    live = LiveModel.open(source)
    guard = Guard(live.store, open_reading=open_reading, own_token=own_token)
    memory = BodyMemory(MAX_BODIES * max_body_bytes)
    service = Service(live, guard, Workers(threads, max_waiting), memory)

    @asynccontextmanager
    async def lifespan(app: FastAPI):
        await service.workers.run(service.start)
        yield
        service.close()

    app = FastAPI(
        title="polytopic",
        version=__version__,
        summary="Label texts with several topics at once, with reasons.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    add_problem_handlers(app)
    complete_openapi(app)
    add_api(app, service)
    add_pages(app, service)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key"],
        )
    app.add_middleware(
        RequestLimits,
        metrics=service.metrics,
        memory=memory,
        max_body_bytes=max_body_bytes,
        body_timeout=body_timeout,
        hosts=hosts,
    )
    return app
