"""The application: a service over HTTP, and its pages."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from polytopic import __version__
from polytopic.server.api import health, routes
from polytopic.server.bodies import Bodies
from polytopic.server.direct import Application, JSONSuggest, Told
from polytopic.server.limits import BODIES_AT_ONCE, Limits
from polytopic.server.live import Live
from polytopic.server.openapi import describe
from polytopic.server.pages import add_pages
from polytopic.server.problems import handle_problems
from polytopic.server.service import Service
from polytopic.server.tokens import Guard
from polytopic.server.work import Workers

MEGABYTE = 1 << 20


def create_app(
    source: str,
    *,
    open_reading: bool = True,
    own_token: str | None = None,
    threads: int = 2,
    waiting: int = 256,
    most_bytes: int = 32 * MEGABYTE,
    patience: float = 30.0,
    origins: tuple[str, ...] = (),
    hosts: tuple[str, ...] | None = None,
) -> FastAPI:
    """Return the application that serves a store, or a model file.

    Parameters
    ----------
    source : str
        A store, by its file or URL, or a model file, which cannot learn.
    open_reading : bool, default=True
        Whether reading needs no token.
    own_token : str, default=None
        A token for this run of the service, which may do everything.
    threads : int, default=2
        Threads that work.
    waiting : int, default=256
        Calls that may wait for a thread; more get status 503.
    most_bytes : int, default=33554432
        Bytes of a body, but for a stream of lines; eight times as many of all bodies that are read
        at the same time.
    patience : float, default=30
        Seconds in which a body must have arrived; in a stream of lines, the next part of it.
    origins : tuple of str, default=()
        Other sites whose pages may call the service (CORS); none by default.
    hosts : tuple of str, default=None
        Names by which the service may be called, any by default.
    """
    live = Live.of(source)
    guard = Guard(live.store, open_reading=open_reading, own=own_token)
    bodies = Bodies(BODIES_AT_ONCE * most_bytes)
    service = Service(live, guard, Workers(threads, waiting), bodies)

    @asynccontextmanager
    async def lifespan(app: FastAPI):
        await service.workers.run(service.start)
        yield
        service.close()

    app = Application(
        title="polytopic",
        version=__version__,
        summary="Labels texts with several topics at once, and says why.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    handle_problems(app)
    describe(app)
    app.include_router(routes(service))
    app.include_router(health(service))
    add_pages(app, service)
    limits: dict[str, Any] = {
        "metrics": service.metrics,
        "bodies": service.bodies,
        "most_bytes": most_bytes,
        "patience": patience,
        "hosts": hosts,
    }
    direct: ASGIApp = Told(JSONSuggest(service), app.exception_handlers)
    if origins:
        allowed: dict[str, Any] = {
            "allow_origins": list(origins),
            "allow_methods": ["GET", "POST"],
            "allow_headers": ["Authorization", "Content-Type", "Idempotency-Key"],
        }
        app.add_middleware(CORSMiddleware, **allowed)
        direct = CORSMiddleware(direct, **allowed)
    app.add_middleware(Limits, **limits)
    app.direct = Limits(direct, **limits)
    return app
