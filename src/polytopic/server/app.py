"""The application: the HTTP API and the pages, with limits around them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from polytopic import __version__
from polytopic.server.api import add_api
from polytopic.server.auth import Guard
from polytopic.server.limits import MEGABYTE, BodyMemory, RequestLimits
from polytopic.server.live import LiveModel
from polytopic.server.openapi import complete_openapi
from polytopic.server.pages import add_pages
from polytopic.server.problems import add_problem_handlers
from polytopic.server.service import Service
from polytopic.server.suggest import SuggestRoute, add_suggest_route
from polytopic.server.workers import Workers

MAX_BODIES = 8  # of the largest size in memory at once


class Application(FastAPI):
    """FastAPI's application, with limits around it and a direct path to its busiest route.

    Every request passes the limits. FastAPI then calls its own middleware and looks for the route,
    which takes longer than everything else that labelling a text requires. So a request that
    :meth:`SuggestRoute.is_fast <polytopic.server.suggest.SuggestRoute.is_fast>` recognizes goes to
    that route directly. Its errors get the same handlers as those of other routes.

    Attributes
    ----------
    entrance : ASGI application
        The middleware that every request passes; it calls :meth:`dispatch`.
    fast_route : SuggestRoute
        The route that is called directly.
    """

    entrance: ASGIApp
    fast_route: SuggestRoute

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or start and stop the service."""
        enter = self.entrance if scope["type"] == "http" else super().__call__
        await enter(scope, receive, send)

    async def dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the fast route if the request is for it, otherwise FastAPI."""
        if not self.fast_route.is_fast(scope):
            await super().__call__(scope, receive, send)
            return
        scope["route"] = self.fast_route  # FastAPI sets it otherwise
        try:
            await self.fast_route.handle_json(scope, receive, send)
        except Exception as error:
            kind = next(kind for kind in type(error).__mro__ if kind in self.exception_handlers)
            if kind is Exception:
                raise  # unexpected: the limits answer it, and the server logs it
            handle: Any = self.exception_handlers[kind]  # a coroutine, as all handlers here are
            response = await handle(Request(scope, receive), error)
            await response(scope, receive, send)


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
) -> Application:
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
        Number of threads that answer short requests; one more answers heavy requests.
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

    app = Application(
        title="polytopic",
        version=__version__,
        summary="Label texts with several topics at once, and explain why.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    add_problem_handlers(app)
    complete_openapi(app)
    app.fast_route = add_suggest_route(app, service)
    add_api(app, service)
    add_pages(app, service)
    entrance: ASGIApp = app.dispatch
    if origins:
        entrance = CORSMiddleware(
            entrance,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key"],
        )
    app.entrance = RequestLimits(
        entrance,
        memory,
        service.metrics.count_request,
        stream_path=app.fast_route.path,
        max_body_bytes=max_body_bytes,
        body_timeout=body_timeout,
        hosts=hosts,
    )
    return app
