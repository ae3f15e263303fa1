"""Failures as problem documents (RFC 9457), with the library's own sentence."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from polytopic.errors import PolytopicError
from polytopic.server.work import BusyError

MEDIA_TYPE = "application/problem+json"
BUSY = "the service has too much to do; try again in a moment."


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return a problem document."""
    title = HTTPStatus(status).phrase
    content = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return JSONResponse(content, status, headers, media_type=MEDIA_TYPE)


def handle_problems(app: FastAPI) -> None:
    """Tell every failure as a problem document."""

    @app.exception_handler(HTTPException)
    async def _(request: Request, error: HTTPException):
        return problem(error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def _(request: Request, error: RequestValidationError):
        return problem(422, told_of(error))

    @app.exception_handler(ValueError)
    @app.exception_handler(TypeError)
    async def _(request: Request, error: Exception):
        return problem(422, str(error))

    @app.exception_handler(PolytopicError)
    async def _(request: Request, error: PolytopicError):
        return problem(409, str(error))

    @app.exception_handler(BusyError)
    async def _(request: Request, error: BusyError):
        return problem(503, BUSY, {"Retry-After": "1"})


def told_of(error: RequestValidationError | ValidationError) -> str:
    """Return what is wrong with a request."""
    return "; ".join(map(_told, error.errors())) + "."


def _told(error) -> str:
    place = ".".join(str(part) for part in error["loc"] if part != "body")
    return f"{place or 'the request'}: {error['msg'].removeprefix('Value error, ').rstrip('.')}"
