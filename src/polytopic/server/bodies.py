"""Bodies of requests, in JSON."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from fastapi import Depends, HTTPException, Request
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from polytopic.server.problems import told_of
from polytopic.server.work import Workers

JSON = "application/json"
SMALL = 16 << 10  # bytes that are read at once, which takes less time than to ask a thread
VALUES = 500_000  # in one body
CONTAINERS = 100_000  # objects and lists among them
BLOCK = 1 << 20  # bytes that are looked through at once
QUOTE, COMMA, BRACE, BRACKET = b'",{['
Model = TypeVar("Model", bound=BaseModel)


class Bodies:
    """How many bytes of bodies are in memory, of all requests.

    Parameters
    ----------
    most : int
        How many there may be.
    """

    def __init__(self, most: int) -> None:
        self.most, self.n_bytes = most, 0

    @property
    def are_too_many(self) -> bool:
        """Whether who adds to them must give up."""
        return self.n_bytes > self.most


def media_type(request: Request) -> str:
    """Return the type of a body, without its parameters."""
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def check_type(request: Request, *types: str) -> None:
    """Refuse a body of another type."""
    found = media_type(request)
    if found not in types:
        raise HTTPException(415, f"Content-Type == {found!r}, must be {' or '.join(types)}.")


def read_json(model: type[Model], body: bytes) -> Model:
    """Return what a body says; raise :class:`ValueError` where it makes no sense."""
    try:
        if len(body) <= SMALL:
            return model.model_validate_json(body, strict=True)
        check_extent(body)
        return model.model_validate(_parsed(body), strict=True)
    except ValidationError as error:
        raise ValueError(told_of(error)) from error


def _parsed(body: bytes) -> Any:
    try:
        return from_json(body)
    except ValueError as error:
        raise ValueError(f"the request: Invalid JSON: {error}.") from error


class Extent(NamedTuple):
    """How much there is in a JSON text: values, and objects and lists among them."""

    values: int
    containers: int


def extent(body: bytes) -> Extent:
    """Count the values of a JSON text before it is parsed, which takes memory for each of them.

    An upper bound: empty objects and lists count as two values.
    """
    body = body.replace(rb"\\", b"").replace(rb"\"", b"")  # so that quotes are ends of strings
    commas = containers = 0
    inside = 0  # whether a block begins inside a string
    for start in range(0, len(body), BLOCK):
        block = np.frombuffer(body, np.uint8, min(BLOCK, len(body) - start), start)
        quotes = np.cumsum(block == QUOTE, dtype=np.uint8)  # modulo 256, which is even
        outside = ((quotes + inside) & 1) == 0
        commas += int(np.count_nonzero(outside & (block == COMMA)))
        containers += int(np.count_nonzero(outside & ((block == BRACE) | (block == BRACKET))))
        inside = (inside + int(quotes[-1])) & 1
    return Extent(commas + containers, containers)


def check_extent(body: bytes) -> None:
    """Refuse a JSON text that would take far more memory than its bytes."""
    found = extent(body)
    for name, n, most in (
        ("values", found.values, VALUES),
        ("objects and lists", found.containers, CONTAINERS),
    ):
        if n > most:
            raise ValueError(f"the request has {n:,} {name}, must have {most:,} at most.")


async def read_large_json(workers: Workers, model: type[Model], body: bytes) -> Model:
    """Return what a body says, read in a thread unless that takes no time."""
    if len(body) <= SMALL:
        return read_json(model, body)
    return await workers.run(read_json, model, body)


def body_of(model: type[BaseModel]) -> Any:
    """Return the dependency that reads a body, after those of the route: who may not, is told."""

    async def read(request: Request) -> BaseModel:
        check_type(request, JSON)
        workers = request.app.state.service.workers
        return await read_large_json(workers, model, await request.body())

    return Depends(read)
