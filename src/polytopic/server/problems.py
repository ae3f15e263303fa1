"""Errors as problem documents (RFC 9457): what each status means, and which exception gets it."""

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
from polytopic.server.workers import BusyError

MEDIA_TYPE = "application/problem+json"
UNEXPECTED = "An unexpected error occurred. See the log of the service for details."
BUSY = "The service is busy. Try again in a moment."
MEANINGS = {
    400: "The request is not valid HTTP, or repeats a header field that must not be repeated.",
    401: "A valid token is required.",
    403: "The token does not allow this, or the request comes from another site.",
    404: "Not found.",
    408: "The body arrived too slowly.",
    409: "The request conflicts with the state of the service.",
    413: "The body is too large.",
    414: "The URL is too long.",
    415: "The media type of the body is not supported.",
    421: "The Host header does not name this service.",
    422: "The request is not valid.",
    431: "The request header is too large.",
    500: "An unexpected error occurred; the log of the service has the details.",
    503: "The service is busy, or cannot reach its store; try again later.",
}
MAX_ERRORS = 5  # described per request
MAX_CHARACTERS = 500  # of each part of a description
MAX_DETAIL = 4000  # characters; names in it may be as long as a body


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return a problem document."""
    title = HTTPStatus(status).phrase
    if len(detail) > MAX_DETAIL:
        detail = f"{detail[:MAX_DETAIL]}…"
    detail = detail.encode(errors="backslashreplace").decode()  # lone surrogates are not UTF-8
    content = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return JSONResponse(content, status, headers, media_type=MEDIA_TYPE)


def add_problem_handlers(app: FastAPI) -> None:
    """Answer every exception with a problem document."""

    @app.exception_handler(HTTPException)
    async def _(request: Request, error: HTTPException):
        headers, detail = dict(error.headers or {}), str(error.detail)
        if error.status_code == 405:
            headers["Allow"] = _allowed_methods(app, request) or headers.get("Allow", "")
            detail = f"{request.method} is not allowed here, use {headers['Allow']}."
        elif detail == HTTPStatus.NOT_FOUND.phrase:
            detail = "Nothing is served at this address. See /openapi.json for all routes."
        return problem(error.status_code, detail, headers)

    @app.exception_handler(RequestValidationError)
    async def _(request: Request, error: RequestValidationError):
        return problem(422, describe_errors(error))

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
        return problem(400, "The client disconnected.")  # only the metrics see it

    @app.exception_handler(Exception)  # raised again after that, so that the server logs it
    async def _(request: Request, error: Exception):
        return problem(500, UNEXPECTED, {"Connection": "close"})


def _allowed_methods(app: FastAPI, request: Request) -> str:
    """Return the documented methods of the requested path."""
    path = getattr(request.scope.get("route"), "path_format", "")
    return ", ".join(sorted(map(str.upper, app.openapi()["paths"].get(path, ()))))


def describe_errors(error: RequestValidationError | ValidationError) -> str:
    """Return a sentence that names the first invalid fields of a request."""
    errors = error.errors()
    more = [f"and {len(errors) - MAX_ERRORS:,} more"] if len(errors) > MAX_ERRORS else []
    return "; ".join([*map(_describe, errors[:MAX_ERRORS]), *more]) + "."


def _describe(error) -> str:
    place = ".".join(str(part) for part in error["loc"] if part != "body")
    reason = error["msg"].removeprefix("Value error, ").rstrip(".")
    return f"{place[:MAX_CHARACTERS] or 'The request'}: {reason[:MAX_CHARACTERS]}"
