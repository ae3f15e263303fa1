"""Request bodies: how much memory they take, and JSON that is checked before it is parsed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from fastapi import Depends, HTTPException, Request
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from polytopic.server.problems import describe_errors
from polytopic.server.workers import Workers

JSON = "application/json"
SMALL = 16 << 10  # bytes; parsing less is faster than handing it to a thread
MAX_VALUES = 500_000  # in one body
MAX_CONTAINERS = 100_000  # objects and arrays among them
BLOCK = 1 << 20  # bytes scanned at once
QUOTE, COMMA, BRACE, BRACKET = b'",{['
Model = TypeVar("Model", bound=BaseModel)


class BodyMemory:
    """Counts the bytes of all request bodies that are in memory.

    Parameters
    ----------
    limit : int
        The largest number of bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.n_bytes = limit, 0

    @property
    def is_full(self) -> bool:
        """Whether the limit is exceeded, so that the request which exceeds it must fail."""
        return self.n_bytes > self.limit


def media_type(content_type: str) -> str:
    """Return the media type of a ``Content-Type`` header, without parameters."""
    return content_type.partition(";")[0].strip().lower()


def check_media_type(request: Request, *allowed: str) -> None:
    """Reject a body of any other media type with status 415."""
    found = media_type(request.headers.get("Content-Type", ""))
    if found not in allowed:
        raise HTTPException(415, f"Content-Type == {found!r}, must be {' or '.join(allowed)}.")


def decode_json(body: bytes) -> Any:
    """Return the value of a JSON body; raise :class:`ValueError` if it is invalid or too large."""
    if len(body) > SMALL:
        check_json_size(body)
    try:
        return from_json(body)
    except ValueError as error:
        raise ValueError(f"The request: Invalid JSON: {error}.") from error


def validate(model: type[Model], value: Any) -> Model:
    """Return a value as an instance of ``model``; raise :class:`ValueError` if it is not one."""
    try:
        return model.model_validate(value, strict=True)
    except ValidationError as error:
        raise ValueError(describe_errors(error)) from error


async def parse_body(workers: Workers, parse: Callable[[bytes], Any], body: bytes) -> Any:
    """Return ``parse(body)``; large bodies are parsed by a worker thread."""
    return parse(body) if len(body) <= SMALL else await workers.run(parse, body)


class JSONSize(NamedTuple):
    """The number of values in a JSON text, and of the objects and arrays among them."""

    values: int
    containers: int


def json_size(body: bytes) -> JSONSize:
    """Count the values of a JSON text without parsing it, because each parsed value takes memory.

    The result is an upper bound: an empty object or array counts as two values.
    """
    body = body.replace(rb"\\", b"").replace(rb"\"", b"")  # the remaining quotes delimit strings
    commas = containers = 0
    inside = 0  # 1 if the block starts inside a string
    for start in range(0, len(body), BLOCK):
        block = np.frombuffer(body, np.uint8, min(BLOCK, len(body) - start), start)
        quotes = np.cumsum(block == QUOTE, dtype=np.uint8)  # overflow keeps the parity
        outside = ((quotes + inside) & 1) == 0
        commas += int(np.count_nonzero(outside & (block == COMMA)))
        containers += int(np.count_nonzero(outside & ((block == BRACE) | (block == BRACKET))))
        inside = (inside + int(quotes[-1])) & 1
    return JSONSize(commas + containers, containers)


def check_json_size(body: bytes) -> None:
    """Reject a JSON text that would take far more memory than it has bytes."""
    size = json_size(body)
    for name, n, limit in (
        ("values", size.values, MAX_VALUES),
        ("objects and arrays", size.containers, MAX_CONTAINERS),
    ):
        if n > limit:
            raise ValueError(f"The request has {n:,} {name}, must have at most {limit:,}.")


def json_body(model: type[BaseModel]) -> Any:
    """Return the dependency that reads a JSON body.

    FastAPI resolves it after the dependencies of the route, so that the token is checked first.
    """

    def parse(body: bytes) -> BaseModel:
        return validate(model, decode_json(body))

    async def read(request: Request) -> BaseModel:
        check_media_type(request, JSON)
        return await parse_body(request.app.state.service.workers, parse, await request.body())

    return Depends(read)
