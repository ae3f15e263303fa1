"""Bodies of requests, in JSON."""

from __future__ import annotations

from typing import Any, TypeVar

from fastapi import Depends, HTTPException, Request
from pydantic import BaseModel, ValidationError

from polytopic.server.problems import told_of

JSON = "application/json"
Model = TypeVar("Model", bound=BaseModel)


def media_type(request: Request) -> str:
    """Return the type of a body, without its parameters."""
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def check_type(request: Request, *types: str) -> None:
    """Refuse a body of another type."""
    found = media_type(request)
    if found not in types:
        raise HTTPException(415, f"Content-Type == {found!r}, must be {' or '.join(types)}.")


def read_json(model: type[Model], body: bytes) -> Model:
    """Return what a body says."""
    try:
        return model.model_validate_json(body, strict=True)
    except ValidationError as error:
        raise HTTPException(422, told_of(error)) from error


def body_of(model: type[BaseModel]) -> Any:
    """Return the dependency that reads a body, after those of the route: who may not, is told."""

    async def read(request: Request) -> BaseModel:
        check_type(request, JSON)
        return read_json(model, await request.body())

    return Depends(read)
