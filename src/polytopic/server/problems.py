"""Failures as problem documents (RFC 9457), with the library's own sentence."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from polytopic.errors import ContentError, PolytopicError, UnavailableError
from polytopic.server.work import BusyError

MEDIA_TYPE = "application/problem+json"
BUSY = "the service has too much to do; try again in a moment."
UNEXPECTED = "something failed that should not have; the log of the service tells what."
MOST = 5  # wrong things that are told of a request
LONGEST = 500  # characters of each


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return a problem document."""
    title = HTTPStatus(status).phrase
    detail = detail.encode(errors="backslashreplace").decode()  # halves of characters
    content = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return JSONResponse(content, status, headers, media_type=MEDIA_TYPE)


def handle_problems(app: FastAPI) -> None:
    """Tell every failure as a problem document."""

    @app.exception_handler(HTTPException)
    async def _(request: Request, error: HTTPException):
        headers, detail = dict(error.headers or {}), str(error.detail)
        if error.status_code == 405:
            headers["Allow"] = _allowed(app, request) or headers.get("Allow", "")
            detail = f"{request.method} is not for this address; {headers['Allow']} is."
        elif detail == HTTPStatus.NOT_FOUND.phrase:
            detail = "there is nothing at this address; /openapi.json tells what there is."
        return problem(error.status_code, detail, headers)

    @app.exception_handler(RequestValidationError)
    async def _(request: Request, error: RequestValidationError):
        return problem(422, told_of(error))

    @app.exception_handler(ValueError)
    @app.exception_handler(ContentError)
    async def _(request: Request, error: Exception):
        return problem(422, str(error))

    @app.exception_handler(PolytopicError)
    async def _(request: Request, error: PolytopicError):
        return problem(409, str(error))

    @app.exception_handler(BusyError)
    async def _(request: Request, error: BusyError):
        return problem(503, BUSY, {"Retry-After": "1"})

    @app.exception_handler(UnavailableError)
    async def _(request: Request, error: UnavailableError):
        return problem(503, str(error), {"Retry-After": "5"})

    @app.exception_handler(ClientDisconnect)
    async def _(request: Request, error: ClientDisconnect):
        return problem(400, "the client hung up.")  # for the metrics; nobody reads it

    @app.exception_handler(Exception)
    async def _(request: Request, error: Exception):
        # after that the server logs the exception and closes the connection: no one may reuse it
        return problem(500, UNEXPECTED, {"Connection": "close"})


def _allowed(app: FastAPI, request: Request) -> str:
    """Return the methods that are described for a request's address."""
    path = getattr(request.scope.get("route"), "path_format", "")
    return ", ".join(sorted(map(str.upper, app.openapi()["paths"].get(path, ()))))


def told_of(error: RequestValidationError | ValidationError) -> str:
    """Return what is wrong with a request."""
    errors = error.errors()
    more = [f"and {len(errors) - MOST:,} more"] if len(errors) > MOST else []
    return "; ".join([*map(_told, errors[:MOST]), *more]) + "."


def _told(error) -> str:
    place = ".".join(str(part) for part in error["loc"] if part != "body")
    reason = error["msg"].removeprefix("Value error, ").rstrip(".")
    return f"{place[:LONGEST] or 'the request'}: {reason[:LONGEST]}"
